"""Words of gfx1100's instructions by name, for kernels of a few instructions."""

from __future__ import annotations

from benchmarks.emulator.encodings import opcodes


def numbered(kind: str, name: str) -> int:
    return next(n for n, o in opcodes("gfx1100")[kind].items() if o.name == name)


def scalar(name: str, d: int, a: int, b: int) -> int:
    return 0x80000000 | numbered("SOP2", name) << 23 | d << 16 | b << 8 | a


def scalar_move(name: str, d: int, a: int) -> int:
    return 0xBE800000 | d << 16 | numbered("SOP1", name) << 8 | a


def vector(name: str, d: int, a: int, b: int) -> int:
    return numbered("VOP2", name) << 25 | d << 17 | b << 9 | a


def vector_move(d: int, a: int) -> int:
    return 0x7E000000 | d << 17 | numbered("VOP1", "v_mov_b32") << 9 | a


def program(name: str, k: int = 0) -> int:
    return 0xBF800000 | numbered("SOPP", name) << 16 | k & 0xFFFF


def stored(address: int, data: int) -> tuple[int, int]:
    """ds_store_b32."""
    return 0xD8000000 | numbered("DS", "ds_store_b32") << 18, data << 8 | address
