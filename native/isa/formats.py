"""Bit layouts of the instruction formats of each generation: the one place that states them.

`make_tables.py` probes a disassembler through these layouts and writes them, with the opcodes it
found, as C++ tables. Bits count from 0 at the low end of the first 32-bit word.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Format:
    """An instruction format.

    mask, match: what the first word must look like. words: 32-bit words without a literal.
    opcode: (bit, width). fields: operand letter -> (kind, bit, width); kinds: v a VGPR number, r a
    9-bit source, s an 8-bit scalar source, b an SGPR pair's number, q an SGPR quad's number,
    k an immediate. modifiers: name -> (bit, width).
    """

    name: str
    mask: int
    match: int
    words: int
    opcode: tuple[int, int]
    fields: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    modifiers: dict[str, tuple[int, int]] = field(default_factory=dict)


def _scalar() -> list[Format]:
    return [
        Format("SOP1", 0xFF800000, 0xBE800000, 1, (8, 8), {"d": ("s", 16, 7), "a": ("s", 0, 8)}),
        Format(
            "SOPC",
            0xFF800000,
            0xBF000000,
            1,
            (16, 7),
            {"a": ("s", 0, 8), "b": ("s", 8, 8), "k": ("k", 8, 8)},
        ),
        Format("SOPP", 0xFF800000, 0xBF800000, 1, (16, 7), {"k": ("k", 0, 16)}),
        Format("SOPK", 0xF0000000, 0xB0000000, 1, (23, 5), {"d": ("s", 16, 7), "k": ("k", 0, 16)}),
        Format(
            "SOP2",
            0xC0000000,
            0x80000000,
            1,
            (23, 7),
            {"d": ("s", 16, 7), "a": ("s", 0, 8), "b": ("s", 8, 8)},
        ),
    ]


_D_A = {"d": ("v", 17, 8), "a": ("r", 0, 9)}
_ABC = {"a": ("r", 32, 9), "b": ("r", 41, 9), "c": ("r", 50, 9)}
_PACKED = {
    "clamp": (15, 1),
    "opsel": (11, 3),
    "opselhi": (59, 2),
    "opselhi2": (14, 1),
    "neglo": (61, 3),
    "neghi": (8, 3),
}
_VOP3 = {"clamp": (15, 1), "opsel": (11, 4), "abs": (8, 3), "omod": (59, 2), "neg": (61, 3)}


def _vector() -> list[Format]:
    return [
        Format("VOP1", 0xFE000000, 0x7E000000, 1, (9, 8), _D_A),
        Format("VOPC", 0xFE000000, 0x7C000000, 1, (17, 8), {"a": ("r", 0, 9), "b": ("v", 9, 8)}),
        Format("VOP2", 0x80000000, 0x00000000, 1, (25, 6), {**_D_A, "b": ("v", 9, 8)}),
    ]


def _vop3(packed: tuple[int, int], plain: int) -> list[Format]:
    d = {"d": ("v", 0, 8)}
    return [
        Format("VOP3P", *packed, 2, (16, 7), {**d, **_ABC}, _PACKED),
        Format("VOP3", 0xFC000000, plain, 2, (16, 10), {**d, "s": ("s", 8, 7), **_ABC}, _VOP3),
    ]


_DS = {"a": ("v", 32, 8), "x": ("v", 40, 8), "y": ("v", 48, 8), "d": ("v", 56, 8)}
_OFFSETS = {"offset0": (0, 8), "offset1": (8, 8)}
_FLAT = {"a": ("v", 32, 8), "x": ("v", 40, 8), "s": ("s", 48, 7), "d": ("v", 56, 8)}
_MUBUF = {"a": ("v", 32, 8), "d": ("v", 40, 8), "r": ("q", 48, 5), "o": ("s", 56, 8)}


def _flat(mask: int, matches: tuple[int, int, int], **rest: dict) -> list[Format]:
    names = ("FLAT", "SCRATCH", "GLOBAL")
    return [
        Format(n, mask, m, **rest)  # type: ignore[arg-type]
        for n, m in zip(names, matches, strict=True)
    ]


GFX9 = [
    *_scalar(),
    Format(
        "SMEM",
        0xFC000000,
        0xC0000000,
        2,
        (18, 8),
        {"d": ("s", 6, 7), "b": ("b", 0, 6), "o": ("s", 57, 7)},
        {"imm": (17, 1), "glc": (16, 1), "soff": (14, 1), "offset": (32, 21)},
    ),
    *_vector(),
    *_vop3((0xFF800000, 0xD3800000), 0xD0000000),
    Format(
        "DS", 0xFC000000, 0xD8000000, 2, (17, 8), _DS, {**_OFFSETS, "gds": (16, 1), "acc": (25, 1)}
    ),
    *_flat(
        0xFC00C000,
        (0xDC000000, 0xDC004000, 0xDC008000),
        words=2,
        opcode=(18, 7),
        fields=_FLAT,
        modifiers={
            "offset": (0, 13),
            "sve": (13, 1),
            "glc": (16, 1),
            "slc": (17, 1),
            "scc": (25, 1),
            "acc": (55, 1),
        },
    ),
    Format(
        "MUBUF",
        0xFC000000,
        0xE0000000,
        2,
        (18, 7),
        _MUBUF,
        {
            "offset": (0, 12),
            "offen": (12, 1),
            "idxen": (13, 1),
            "glc": (14, 1),
            "scc": (15, 1),
            "lds": (16, 1),
            "slc": (17, 1),
            "acc": (55, 1),
        },
    ),
]

_VOPD_X = {"d": ("v", 56, 8), "a": ("r", 0, 9), "b": ("v", 9, 8)}
_VOPD_Y = {"d": ("v", 48, 8), "a": ("r", 32, 9), "b": ("v", 41, 8)}
_VOPD = [
    Format("VOPDX", 0xFC000000, 0xC8000000, 2, (22, 4), _VOPD_X),
    Format("VOPDY", 0xFC000000, 0xC8000000, 2, (17, 5), _VOPD_Y),
]

GFX10 = [
    *_scalar(),
    Format(
        "SMEM",
        0xFC000000,
        0xF4000000,
        2,
        (18, 8),
        {"d": ("s", 6, 7), "b": ("b", 0, 6), "o": ("s", 57, 7)},
        {"dlc": (14, 1), "glc": (16, 1), "offset": (32, 21)},
    ),
    *_vector(),
    *_vop3((0xFF800000, 0xCC000000), 0xD4000000),
    Format("DS", 0xFC000000, 0xD8000000, 2, (18, 8), _DS, {**_OFFSETS, "gds": (17, 1)}),
    *_flat(
        0xFC00C000,
        (0xDC000000, 0xDC004000, 0xDC008000),
        words=2,
        opcode=(18, 7),
        fields=_FLAT,
        modifiers={
            "offset": (0, 12),
            "dlc": (12, 1),
            "lds": (13, 1),
            "glc": (16, 1),
            "slc": (17, 1),
        },
    ),
    Format(
        "MUBUF",
        0xFC000000,
        0xE0000000,
        2,
        (18, 7),
        _MUBUF,
        {
            "offset": (0, 12),
            "offen": (12, 1),
            "idxen": (13, 1),
            "glc": (14, 1),
            "dlc": (15, 1),
            "lds": (16, 1),
            "slc": (54, 1),
            "tfe": (55, 1),
        },
    ),
]

GFX11 = [
    *_scalar(),
    Format(
        "SMEM",
        0xFC000000,
        0xF4000000,
        2,
        (18, 8),
        {"d": ("s", 6, 7), "b": ("b", 0, 6), "o": ("s", 57, 7)},
        {"dlc": (13, 1), "glc": (14, 1), "offset": (32, 21)},
    ),
    *_vector(),
    *_vop3((0xFF000000, 0xCC000000), 0xD4000000),
    *_VOPD,
    Format("DS", 0xFC000000, 0xD8000000, 2, (18, 8), _DS, {**_OFFSETS, "gds": (17, 1)}),
    *_flat(
        0xFC030000,
        (0xDC000000, 0xDC010000, 0xDC020000),
        words=2,
        opcode=(18, 7),
        fields=_FLAT,
        modifiers={
            "offset": (0, 13),
            "dlc": (13, 1),
            "glc": (14, 1),
            "slc": (15, 1),
            "sve": (55, 1),
        },
    ),
    Format(
        "MUBUF",
        0xFC000000,
        0xE0000000,
        2,
        (18, 8),
        _MUBUF,
        {
            "offset": (0, 12),
            "slc": (12, 1),
            "dlc": (13, 1),
            "glc": (14, 1),
            "tfe": (53, 1),
            "offen": (54, 1),
            "idxen": (55, 1),
        },
    ),
]

_TEMPORAL = {"scope": (50, 2), "th": (52, 3)}
GFX12 = [
    *_scalar(),
    Format(
        "SMEM",
        0xFC000000,
        0xF4000000,
        2,
        (13, 6),
        {"d": ("s", 6, 7), "b": ("b", 0, 6), "o": ("s", 57, 7)},
        {"scope": (21, 2), "th": (23, 2), "offset": (32, 24)},
    ),
    *_vector(),
    *_vop3((0xFF000000, 0xCC000000), 0xD4000000),
    *_VOPD,
    Format("DS", 0xFC000000, 0xD8000000, 2, (18, 8), _DS, _OFFSETS),
    *_flat(
        0xFF000000,
        (0xEC000000, 0xED000000, 0xEE000000),
        words=3,
        opcode=(14, 7),
        fields={"a": ("v", 64, 8), "x": ("v", 55, 8), "s": ("s", 0, 7), "d": ("v", 32, 8)},
        modifiers={"offset": (72, 24), "sve": (49, 1), **_TEMPORAL},
    ),
    Format(
        "MUBUF",
        0xFC000000,
        0xC4000000,
        3,
        (14, 8),
        {"a": ("v", 64, 8), "d": ("v", 32, 8), "r": ("s", 41, 9), "o": ("s", 0, 7)},
        {"offset": (72, 24), "tfe": (22, 1), "offen": (62, 1), "idxen": (63, 1), **_TEMPORAL},
    ),
]

GENERATIONS = {
    "gfx9": (GFX9, ("gfx90a", "gfx942", "gfx950")),
    "gfx10": (GFX10, ("gfx1030",)),
    "gfx11": (GFX11, ("gfx1100", "gfx1151")),
    "gfx12": (GFX12, ("gfx1201",)),
}
