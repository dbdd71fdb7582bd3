"""Cases of the mode register, of NaN and zeros in minima and maxima, and of registers by m0.

The results are those of AMD's instruction set documents; numpy computes them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from make_vectors import Case
from vector_values import CDNA, F32, INTS, RDNA, U32, N, bits, on, wide

ALL = (*CDNA, *RDNA)
FLUSH = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0 ; "  # f32's denormals
IEEE = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 9, 1), 1 ; "
NUMBERS = {"gfx1201": "_num"}  # suffix of minNum and maxNum on gfx12

# +-0, denormals, infinities, a signalling NaN, quiet ones: f32, and the same of f16
SINGLES = [0, 0x80000000, 1, 0x80400000, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000,
           0x7F800001, 0xFF812345, 0x7FC00000, 0xFFC00001]  # fmt: skip
HALVES = [0, 0x8000, 1, 0x8200, 0x3C00, 0xBC00, 0x7C00, 0xFC00, 0x7C01, 0xFC12, 0x7E00, 0xFE01]
KINDS = {
    "f32": (SINGLES, 0x7F800000, 0x400000, 0x80000000, F32),
    "f16": (HALVES, 0x7C00, 0x200, 0x8000, np.float16),
}


def key(value: int, kind: str) -> int:
    """Numbers in their order, -0 below +0."""
    sign = KINDS[kind][3]
    return -(value & (sign - 1)) - 1 if value & sign else value


def extreme(a: int, b: int, kind: str, largest: bool, ieee: bool) -> int:
    _, infinity, quiet, sign, _ = KINDS[kind]
    nan = [(x & (sign - 1)) > infinity for x in (a, b)]
    if ieee:
        for x, is_nan in zip((a, b), nan, strict=True):
            if is_nan and not x & quiet:
                return x | quiet
    if nan[0] and nan[1]:
        return a | quiet
    if nan[0] or nan[1]:
        return b if nan[0] else a
    return (max if largest else min)(a, b, key=lambda x: key(x, kind))


def best(a: np.ndarray, b: np.ndarray, kind: str, largest: bool, ieee: bool) -> np.ndarray:
    both = zip(a.tolist(), b.tolist(), strict=True)
    return np.asarray([extreme(x, y, kind, largest, ieee) for x, y in both], U32)


def pairs(kind: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Every pair of a kind's values, N at a time."""
    values = KINDS[kind][0]
    both = [(a, b) for a in values for b in values]
    for at in range(0, len(both), N):
        part = (both[at : at + N] * N)[:N]
        yield np.asarray([a for a, _ in part], U32), np.asarray([b for _, b in part], U32)


def extremes() -> Iterator[Case]:
    for kind in KINDS:
        for a, b in pairs(kind):
            for arch in ALL:
                for name, largest in (("max", True), ("min", False)):
                    text = f"v_{name}{NUMBERS.get(arch, '')}_{kind} "
                    text += "v10.l, v1.l, v2.l" if kind == "f16" and arch in RDNA else "v10, v1, v2"
                    ins = {"v1": a, "v2": b, "v10": a * U32(0)}
                    modes = [("", False)] if arch == "gfx1201" else [("", False), (IEEE, True)]
                    for mode, ieee in modes:
                        yield Case(arch, mode + text, ins, {"v10": best(a, b, kind, largest, ieee)})
                    if kind == "f32":
                        x, y = (np.where(v & 0x7F800000, v, v & 0x80000000) for v in (a, b))
                        want = best(x, y, kind, largest, False)
                        yield Case(arch, FLUSH + text, ins, {"v10": want})


def words(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.ascontiguousarray(a).view(U32).reshape(len(a), 2).T.copy()
    return low, high


def doubles() -> Iterator[Case]:
    """f64 keeps its denormals where f32 has none."""
    x = np.asarray([5e-324, -1e-310, 2.0**-1022, 0.0, -0.0, 1e-308, 3.5, -5e-324] * 2)
    y = np.asarray([5e-324, 3e-311, -(2.0**-1074), -0.0, 0.0, -1.1e-308, 1e-310, 1.0] * 2)
    (xl, xh), (yl, yh) = words(x), words(y)
    ins = {"v2": xl, "v3": xh, "v4": yl, "v5": yh}
    larger = np.where(x == y, np.where(np.signbit(x), y, x), np.maximum(x, y))
    for arch in ALL:
        suffix = "_num_f64" if arch == "gfx1201" else "_f64"
        for name, want in ((f"v_add{'_f64'}", x + y), (f"v_max{suffix}", larger)):
            low, high = words(want)
            text = f"{FLUSH}{name} v[10:11], v[2:3], v[4:5]"
            yield Case(arch, text, ins, {"v10": low, "v11": high})
        text = f"{FLUSH}v_frexp_exp_i32_f64 v10, v[2:3]"
        exponent = np.frexp(x)[1].astype(np.int32).view(U32)
        yield Case(arch, text, ins, {"v10": exponent})
        mask = "vcc_lo" if arch in RDNA else "vcc"
        text = (
            f"{FLUSH}v_cmp_lt_f64 {mask}, v[2:3], v[4:5] ; v_mov_b32 v10, 0 ; v_mov_b32 v11, 1 ; "
        )
        text += f"v_cndmask_b32 v10, v10, v11, {mask}"
        yield Case(arch, text, ins, {"v10": (x < y).astype(U32)})
        # f32 goes on without its own
        text = f"{FLUSH}v_add_f64 v[10:11], v[2:3], v[4:5] ; v_mul_f32 v12, 1.0, v1"
        tiny = {"v1": np.full(N, 0x80000007, U32)}
        yield Case(arch, text, ins | tiny, {"v12": np.full(N, 0x80000000, U32)})


def turns() -> Iterator[Case]:
    """Sine and cosine of many turns: whole ones leave nothing."""
    x = np.asarray([0.25, 0.75, 1e6 + 0.25, 2.0**23, 2.0**40, 2.0**63, -3.0, -2.25] * 2, F32)
    part = x.astype(np.float64) - np.rint(x.astype(np.float64))
    cosine = np.where(np.abs(part) == 0.25, 0, np.cos(2 * np.pi * part)).astype(F32)
    sine = np.where(part == 0, x * F32(0), np.sin(2 * np.pi * part)).astype(F32)
    yield from on(ALL, "v_sin_f32 v10, v1", {"v1": bits(x)}, {"v10": bits(sine)}, 1)
    kept = np.where(cosine == 0, F32(8), x)  # at a quarter the sign and the last bits are open
    cosine = np.where(cosine == 0, F32(1), cosine)
    yield from on(ALL, "v_cos_f32 v10, v1", {"v1": bits(kept)}, {"v10": bits(cosine)}, 1)
    # a flushed denormal has no exponent
    tiny = {"v1": np.full(N, 0x80000001, U32), "v2": np.full(N, 100, U32)}
    for text, want in (("v_frexp_exp_i32_f32 v10, v1", 0), ("v_frexp_mant_f32 v10, v1", 0x80000000),
                       ("v_ldexp_f32 v10, v1, v2", 0x80000000)):  # fmt: skip
        yield from on(ALL, FLUSH + text, tiny, {"v10": np.full(N, want, U32)})


def chosen_registers() -> Iterator[Case]:
    """v_movrel and s_movrel, and what m0 moves."""
    a, b, c = INTS
    ins = {"v4": a, "v5": b, "v6": c, "v10": c}
    move = "s_mov_b32 m0, {} ; "
    yield from on(RDNA, move.format(2) + "v_movrels_b32 v10, v4", ins, {"v10": c})
    yield from on(RDNA, move.format(-1) + "v_movrels_b32 v10, v5", ins, {"v10": a})
    yield from on(RDNA, move.format(3) + "v_movreld_b32 v10, v5", ins, {"v13": b, "v10": c})
    yield from on(RDNA, move.format(1) + "v_movrelsd_b32 v10, v4", ins, {"v11": b})
    two = move.format(0x20001)
    yield from on(RDNA, two + "v_movrelsd_2_b32 v10, v4", ins, {"v12": b})
    yield from on(RDNA, two + "v_swaprel_b32 v8, v4", ins, {"v10": b, "v5": c})
    scalars = {"s6": U32(11), "s7": U32(12), "s8": U32(13), "s9": U32(14)}
    scalars = {k: np.asarray([v], U32) for k, v in scalars.items()}
    first = {"s20": np.asarray([13], U32), "s21": np.asarray([14], U32)}
    yield from on(ALL, move.format(2) + "s_movrels_b64 s[20:21], s[6:7]", scalars, first)
    yield from on(ALL, move.format(2) + "s_movreld_b64 s[18:19], s[8:9]", scalars, first)
    yield from on(ALL, move.format(2) + "s_movrels_b32 s20, s6", scalars, {"s20": first["s20"]})


def small_kin() -> Iterator[Case]:
    a, b, c = INTS
    ins = {"v1": a, "v2": b, "v3": c}
    parts = [np.stack([v >> U32(8 * k) & 255 for k in range(4)]) for v in (a, b, c)]
    means = (parts[0] + parts[1] + (parts[2] & 1)) >> 1
    want = sum((means[k] << U32(8 * k) for k in range(4)), np.zeros(N, U32))
    yield from on(ALL, "v_lerp_u8 v10, v1, v2, v3", ins, {"v10": want})
    halves = np.stack([a & 0xFFFF, a >> U32(16)]).astype(np.int64)
    clipped = np.clip(np.where(halves > 0x7FFF, halves - 0x10000, halves), 0, 255).astype(U32)
    low = clipped[0] | clipped[1] << U32(8)
    yield from on(CDNA, "v_sat_pk_u8_i16 v10, v1", {"v1": a, "v10": c}, {"v10": low})
    kept = (c & 0xFFFF0000) | low
    yield from on(RDNA, "v_sat_pk_u8_i16 v10.l, v1", {"v1": a, "v10": c}, {"v10": kept})
    quad = wide(a) | wide(b) << np.uint64(32)
    ins = {"v2": a, "v3": b, "v4": c} | {f"v{6 + k}": INTS[k % 3] for k in range(4)}
    outs = {}
    for k in range(4):
        piece = (quad >> np.uint64(8 * k) & np.uint64(0xFFFFFFFF)).astype(U32)
        total = np.zeros(N, np.int64)
        for s in range(0, 32, 8):
            x, y = (piece >> U32(s) & 255).astype(np.int64), (c >> U32(s) & 255).astype(np.int64)
            total += np.where(y != 0, np.abs(x - y), 0)
        outs[f"v{10 + k}"] = (INTS[k % 3].astype(np.int64) + total & 0xFFFFFFFF).astype(U32)
    yield from on(ALL, "v_mqsad_u32_u8 v[10:13], v[2:3], v4, v[6:9]", ins, outs)
    for x, y, want in ((0x80000000, 1, 0x7FFFFFFF), (2, 5, 3), (0x7FFFFFFF, 0xD775547E, 0x5775547F),
                       (0x80000000, 0, 0x80000000)):  # fmt: skip
        scalars = {"s1": np.asarray([x], U32), "s2": np.asarray([y], U32)}
        yield from on(ALL, "s_absdiff_i32 s10, s1, s2", scalars, {"s10": np.asarray([want], U32)})
    # directions to a cube's faces
    x = np.asarray([3, -3, 1, 1, 1, -1, 2, 2] * 2, F32)
    y = np.asarray([1, 1, 4, -4, 2, 2, 2, -2] * 2, F32)
    z = np.asarray([2, -2, -3, 3, 5, -5, 2, 1] * 2, F32)
    axis = np.where((abs(z) >= abs(x)) & (abs(z) >= abs(y)), 2, np.where(abs(y) >= abs(x), 1, 0))
    along = np.choose(axis, [x, y, z])
    down = np.choose(axis, [-y, np.where(y < 0, -z, z), -y])
    across = np.choose(axis, [np.where(x < 0, z, -z), x, np.where(z < 0, -x, x)])
    ins = {"v1": bits(x), "v2": bits(y), "v3": bits(z)}
    wanted = {"id": 2 * axis + (along < 0), "ma": 2 * along, "sc": across, "tc": down}
    for name, value in wanted.items():
        text = f"v_cube{name}_f32 v10, v1, v2, v3"
        yield from on(ALL, text, ins, {"v10": bits(value.astype(F32))})


def every_case() -> Iterator[Case]:
    for family in (extremes, doubles, turns, chosen_registers, small_kin):
        yield from family()
