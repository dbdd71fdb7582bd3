"""Cases of roundings by a seed, and of bf16 products that give bf16."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
from make_vectors import Case
from vector_values import F32, U32, N, bits

RNG = np.random.default_rng(61)
E4, E5 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
E4Z, E5Z = ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz


def neighbours(x: np.ndarray, kind: type, fraction: int, least: int) -> tuple[np.ndarray, ...]:
    """The values of a type at or below |x| and above it, and where between them |x| lies."""
    a = np.abs(x.astype(np.float64))
    unit = np.exp2(np.maximum(np.floor(np.log2(np.where(a == 0, 1.0, a))), least) - fraction)
    below = np.floor(a / unit) * unit
    return below, below + unit, (a - below) / unit


def by_seed(x: np.ndarray, seed: np.ndarray, kind: type, fraction: int, least: int) -> np.ndarray:
    """Up where the seed's high bits, as a number below 1, and the part that is cut off reach 1.

    Of that part as many bits count as the narrower type leaves of an f32.
    """
    below, above, part = neighbours(x, kind, fraction, least)
    kept = 23 - fraction
    share = (seed >> U32(9 + fraction)).astype(np.float64) / 2.0**kept
    part = np.floor(part * 2.0**kept) / 2.0**kept
    r = np.where(part + share >= 1, above, below)
    return np.copysign(r, x.astype(np.float64)).astype(F32).astype(kind)


def seeds() -> Iterator[Case]:
    x = (RNG.standard_normal(N) * np.exp2(RNG.integers(-12, 6, N))).astype(F32)
    # carries to the next power, exact, below the smallest normal number, zeros, far below, halves
    x[:8] = [1.99, -1.99, 1.5, 0.01, 0.0, -0.0, 1e-30, 1.0625]
    seed = RNG.integers(0, 2**32, N, dtype=np.uint64).astype(U32)
    ones = 0xFFFFFFFF
    seed[:8] = [ones, 0, ones, 0xF0000000, ones, ones, ones, 0x80000000]
    old = RNG.integers(0, 2**32, N, dtype=np.uint64).astype(U32)
    for arch, e4, e5 in (("gfx942", E4Z, E5Z), ("gfx950", E4, E5), ("gfx1201", E4, E5)):
        lower = arch == "gfx942"
        for name, kind, fraction, least in (
            ("fp8", e4, 3, -6 - lower),
            ("bf8", e5, 2, -14 - lower),
        ):
            code = by_seed(x, seed, kind, fraction, least).view(np.uint8).astype(U32)
            for byte in (0, 2):
                op = f"op_sel:[0,0,{byte & 1},{byte >> 1}]"
                op = f"byte_sel:{byte}" if arch == "gfx1201" else op
                want = (old & ~U32(255 << 8 * byte)) | code << U32(8 * byte)
                yield Case(arch, f"v_cvt_sr_{name}_f32 v10, v1, v2" + (f" {op}" if byte else ""),
                           {"v1": bits(x), "v2": seed, "v10": old}, {"v10": want})  # fmt: skip
            turned = by_seed(-np.abs(x), seed, kind, fraction, least).view(np.uint8).astype(U32)
            given = {"v1": bits(x), "v2": seed, "v10": old * U32(0)}
            yield Case(arch, f"v_cvt_sr_{name}_f32 v10, -|v1|, v2", given, {"v10": turned})
    big = np.asarray([np.inf, -np.inf, np.nan, 1e9, -1e9, 447.9, 57343.0, 60000.0], F32)
    none, all_ones = np.zeros(8, U32), np.full(8, 0xFFFFFFFF, U32)
    # fp8 without infinity: NaN in its place; 448 and 57344 are the largest
    fp8 = np.asarray([0x7F, 0xFF, 0x7F, 0x7F, 0xFF, 0x7E, 0x7F, 0x7F], U32)
    given = {"v1": bits(big), "v2": all_ones, "v10": none}
    yield Case("gfx950", "v_cvt_sr_fp8_f32 v10, v1, v2", given,
               {"v10": fp8})  # fmt: skip
    big[2] = 1e30  # NaN has many codes in bf8
    bf8 = np.asarray([0x7C, 0xFC, 0x7C, 0x7C, 0xFC, 0x5F, 0x7B, 0x7C], U32)
    given = {"v1": bits(big), "v2": all_ones, "v10": none}
    yield Case("gfx950", "v_cvt_sr_bf8_f32 v10, v1, v2", given,
               {"v10": bf8})  # fmt: skip
    halves = (("f16", np.float16, 10, -14), ("bf16", ml_dtypes.bfloat16, 7, -126))
    for name, kind, fraction, least in halves:
        code = by_seed(x, seed, kind, fraction, least).view(np.uint16).astype(U32)
        given = {"v1": bits(x), "v2": seed, "v10": old}
        yield Case("gfx950", f"v_cvt_sr_{name}_f32 v10, v1, v2", given,
                   {"v10": (old & U32(0xFFFF0000)) | code})  # fmt: skip
        yield Case("gfx950", f"v_cvt_sr_{name}_f32 v10, v1, v2 op_sel:[0,0,1]", given,
                   {"v10": (old & U32(0xFFFF)) | code << U32(16)})  # fmt: skip


def dots() -> Iterator[Case]:
    a, b, c = (RNG.standard_normal((N, 2)).astype(ml_dtypes.bfloat16) for _ in range(3))
    a[0], b[0] = [3e38, 3e38], [1, -1]
    c[1] = [np.inf, np.nan]
    with np.errstate(all="ignore"):
        products = (a.astype(np.float64) * b.astype(np.float64)).sum(1)
        low, high = ((products + c[:, k].astype(np.float64)) for k in (0, 1))
    packed = {f"v{k + 1}": v.view(U32).ravel() for k, v in enumerate((a, b, c))}
    old = RNG.integers(0, 2**32, N, dtype=np.uint64).astype(U32)

    def code(x: np.ndarray) -> np.ndarray:
        return x.astype(ml_dtypes.bfloat16).view(np.uint16).astype(U32)

    for arch in ("gfx1100", "gfx1201"):
        yield Case(arch, "v_dot2_bf16_bf16 v10.l, v1, v2, v3.l", {**packed, "v10": old},
                   {"v10": (old & U32(0xFFFF0000)) | code(low)})  # fmt: skip
        yield Case(arch, "v_dot2_bf16_bf16 v10.h, v1, v2, v3.h", {**packed, "v10": old},
                   {"v10": (old & U32(0xFFFF)) | code(high) << U32(16)})  # fmt: skip
        halves = [v.astype(np.float16) for v in (a[2:], b[2:], c[2:])]
        given = {f"v{k + 1}": v.view(U32).ravel() for k, v in enumerate(halves)}
        x, y, z = (v.astype(np.float64) for v in halves)
        want = ((x * y).sum(1) + z[:, 1]).astype(np.float16).view(np.uint16).astype(U32)
        yield Case(arch, "v_dot2_f16_f16 v10.h, v1, v2, v3.h", {**given, "v10": old[2:]},
                   {"v10": (old[2:] & U32(0xFFFF)) | want << U32(16)})  # fmt: skip


def every_case() -> Iterator[Case]:
    yield from seeds()
    yield from dots()
