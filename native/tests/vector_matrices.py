"""Cases of matrix instructions, whose lane layouts are AMD's published ones, and of VOPD pairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from make_vectors import Case
from vector_values import (
    CDNA,
    F16,
    F32,
    FLOATS,
    I32,
    RDNA,
    RNG,
    U32,
    bits,
    on,
)


def matrices() -> Iterator[Case]:
    import ml_dtypes

    lane = np.arange(64)

    def case(
        archs,
        name: str,
        m: int,
        k: int,
        kind: Any,
        per: int,
        asm_regs: tuple[int, int],
        sums: int = 64,
        rng: np.random.Generator = RNG,
    ) -> Iterator[Case]:
        groups = 64 // m
        held = k // groups
        if kind is np.int8:
            a, b = (rng.integers(-128, 128, (m, k)).astype(np.int8) for _ in range(2))
            c = rng.integers(-1000, 1000, (m, m)).astype(I32)
            d = a.astype(np.int64) @ b.T.astype(np.int64) + c
            out, c_bits, ulp = d.astype(I32).view(U32), c.view(U32), 0
        else:  # small integers: every order of summation is exact
            a, b = (rng.integers(-8, 9, (m, k)).astype(np.float64) for _ in range(2))
            c = rng.integers(-64, 64, (m, m)).astype(F32)
            d = (a @ b.T + c).astype(F32)
            out, c_bits, ulp = d.view(U32), c.view(U32), 0

        def held_by_lanes(x: np.ndarray) -> np.ndarray:  # [lane, register]
            rows = np.stack([x[lane % m, (lane // m) * held + j] for j in range(held)], axis=1)
            packed = rows.astype(kind)
            return np.ascontiguousarray(packed).view(np.uint8).reshape(64, -1).view(U32)

        ra, rb = held_by_lanes(a), held_by_lanes(b)
        regs = m * m // 64
        where = [
            ((r % 4) + 8 * (r // 4) + 4 * (lane // 32), lane % 32)
            if m == 32
            else (r + 4 * (lane // 16), lane % 16)
            for r in range(regs)
        ]
        na = ra.shape[1]
        span = lambda first, n: f"v{first}" if n == 1 else f"v[{first}:{first + n - 1}]"  # noqa: E731
        text = f"{name} {span(64, regs)}, {span(2, na)}, {span(20, na)}, {span(sums, regs)}"
        inputs = {f"v{2 + r}": ra[:, r] for r in range(na)} | {
            f"v{20 + r}": rb[:, r] for r in range(na)
        }
        inputs |= {f"v{sums + r}": c_bits[where[r]] for r in range(regs)}
        outputs = {f"v{64 + r}": out[where[r]] for r in range(regs)}
        yield from on(archs, text, inputs, outputs, ulp)

    yield from case(CDNA, "v_mfma_f32_16x16x16_f16", 16, 16, F16, 2, (2, 2))
    yield from case(CDNA, "v_mfma_f32_32x32x8_f16", 32, 8, F16, 2, (2, 2))
    yield from case(CDNA, "v_mfma_f32_16x16x4_f32", 16, 4, F32, 1, (1, 1))
    yield from case(
        ("gfx942", "gfx950"), "v_mfma_f32_16x16x16_bf16", 16, 16, ml_dtypes.bfloat16, 2, (2, 2)
    )
    yield from case(("gfx942", "gfx950"), "v_mfma_i32_16x16x32_i8", 16, 32, np.int8, 4, (2, 2))
    yield from case(("gfx942", "gfx950"), "v_mfma_i32_32x32x16_i8", 32, 16, np.int8, 4, (2, 2))
    yield from case(("gfx950",), "v_mfma_f32_16x16x32_f16", 16, 32, F16, 2, (4, 4))
    yield from case(("gfx950",), "v_mfma_f32_32x32x16_bf16", 32, 16, ml_dtypes.bfloat16, 2, (4, 4))
    yield from case(
        ("gfx942",), "v_mfma_f32_16x16x32_fp8_fp8", 16, 32, ml_dtypes.float8_e4m3fnuz, 4, (2, 2)
    )
    yield from doubles()
    yield from wave_matrices()
    # results over a part of the sums that were
    rng, late = np.random.default_rng(62), ("gfx942", "gfx950")
    yield from case(late, "v_mfma_f32_16x16x16_f16", 16, 16, F16, 2, (2, 2), sums=62, rng=rng)
    yield from case(late, "v_mfma_i32_16x16x32_i8", 16, 32, np.int8, 4, (2, 2), sums=62, rng=rng)
    yield from sparse()


def sparse() -> Iterator[Case]:
    """Two of each four elements of A, which ones in a register; D is the sum too."""
    import ml_dtypes

    rng, lane, late = np.random.default_rng(98), np.arange(64), ("gfx942", "gfx950")
    bf16, fp8 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fnuz
    for archs, name, m, k, kind, tail, first in (
        (late, "v_smfmac_f32_16x16x32_f16", 16, 32, F16, "", 0),
        (late, "v_smfmac_f32_16x16x32_f16", 16, 32, F16, " abid:2", 16),
        (late, "v_smfmac_f32_16x16x32_bf16", 16, 32, bf16, " cbsz:1 abid:1", 0),
        (late, "v_smfmac_f32_32x32x16_f16", 32, 16, F16, " abid:3", 24),
        (late[:1], "v_smfmac_f32_16x16x64_fp8_fp8", 16, 64, fp8, " abid:1", 16),
        (late[1:], "v_smfmac_f32_16x16x64_f16", 16, 64, F16, " abid:1", 16),
    ):
        held = k // 2 * m // 64  # elements of A in a lane
        places = np.sort(rng.permuted(np.tile(range(4), (m, k // 4, 1)), axis=2)[..., :2])
        packed, b = rng.integers(-8, 9, (m, k // 2)), rng.integers(-8, 9, (m, k))
        a = np.zeros((m, k // 4, 4), int)
        np.put_along_axis(a, places, packed.reshape(m, k // 4, 2), 2)
        c = rng.integers(-64, 64, (m, m))
        d = (a.reshape(m, k) @ b.T + c).astype(F32)

        def lanes(x: np.ndarray, each: int, m: int = m) -> np.ndarray:
            return np.stack([x[lane % m, lane // m * each + j] for j in range(each)], axis=1)

        def registers(x: np.ndarray, kind: Any = kind) -> np.ndarray:
            bytes_ = np.ascontiguousarray(x.astype(kind)).view(np.uint8)
            return bytes_.reshape(64, -1).view(U32)

        ra, rb = registers(lanes(packed, held)), registers(lanes(b, 2 * held))
        shifts = first + 2 * np.arange(held)
        index = (lanes(places.reshape(m, k // 2), held) << shifts).sum(axis=1).astype(U32)
        regs = m * m // 64
        row = [r % 4 + 8 * (r // 4) + 4 * (lane // 32) if m == 32 else r + 4 * (lane // 16)
               for r in range(regs)]  # fmt: skip
        inputs = {f"v{2 + r}": ra[:, r] for r in range(ra.shape[1])} | {"v50": index}
        inputs |= {f"v{20 + r}": rb[:, r] for r in range(rb.shape[1])}
        inputs |= {f"v{64 + r}": bits(c.astype(F32)[row[r], lane % m]) for r in range(regs)}
        outputs = {f"v{64 + r}": bits(d[row[r], lane % m]) for r in range(regs)}
        text = (
            f"{name} v[64:{63 + regs}], v[2:{1 + ra.shape[1]}], v[20:{19 + rb.shape[1]}], v50{tail}"
        )
        yield from on(archs, text, inputs, outputs)


def doubles() -> Iterator[Case]:
    lane = np.arange(64)
    a, b = RNG.standard_normal((16, 4)), RNG.standard_normal((16, 4))
    c = RNG.integers(-8, 8, (16, 16)).astype(np.float64)
    a, b = np.round(a * 8), np.round(b * 8)  # every order of summation is exact
    d = a @ b.T + c

    def halves(first: int, values: np.ndarray) -> dict[str, np.ndarray]:
        low, high = np.ascontiguousarray(values).view(U32).reshape(-1, 2).T
        return {f"v{first}": low, f"v{first + 1}": high}

    inputs = halves(2, a[lane % 16, lane // 16]) | halves(4, b[lane % 16, lane // 16])
    outputs: dict[str, np.ndarray] = {}
    for r in range(4):
        inputs |= halves(64 + 2 * r, c[4 * r + lane // 16, lane % 16])
        outputs |= halves(64 + 2 * r, d[4 * r + lane // 16, lane % 16])
    yield from on(
        CDNA, "v_mfma_f64_16x16x4_f64 v[64:71], v[2:3], v[4:5], v[64:71]", inputs, outputs
    )


def wave_matrices() -> Iterator[Case]:
    lane = np.arange(32)
    a, b = (RNG.integers(-8, 9, (16, 16)) for _ in range(2))
    c = RNG.integers(-64, 64, (16, 16))
    d = a @ b.T + c

    def packed(x: np.ndarray, kind: Any, gfx12: bool) -> np.ndarray:
        if gfx12:  # the wave's halves hold halves of K
            rows = np.stack([x[lane % 16, lane // 16 * 8 + j] for j in range(8)], axis=1)
        else:
            rows = x[lane % 16]
        return np.ascontiguousarray(rows.astype(kind)).view(np.uint8).reshape(32, -1).view(U32)

    for arch, gfx12 in (("gfx1100", False), ("gfx1201", True)):
        for name, kind, to in (("f32_16x16x16_f16", F16, F32), ("i32_16x16x16_iu8", np.int8, I32)):
            ra, rb = packed(a, kind, gfx12), packed(b, kind, gfx12)
            n = ra.shape[1]
            where = [
                (r + 8 * (lane // 16), lane % 16) if gfx12 else (2 * r + lane // 16, lane % 16)
                for r in range(8)
            ]
            sign = " neg_lo:[1,1,0]" if kind is np.int8 else ""
            text = f"v_wmma_{name} v[64:71], v[2:{1 + n}], v[20:{19 + n}], v[64:71]{sign}"
            inputs = {f"v{2 + r}": ra[:, r] for r in range(n)} | {
                f"v{20 + r}": rb[:, r] for r in range(n)
            }
            inputs |= {f"v{64 + r}": c.astype(to)[where[r]].view(U32) for r in range(8)}
            outputs = {f"v{64 + r}": d.astype(to)[where[r]].view(U32) for r in range(8)}
            yield Case(arch, text, inputs, outputs)


def pairs_of_instructions() -> Iterator[Case]:
    """VOPD: both halves read before either writes."""
    inputs = {"v2": bits(FLOATS[1]), "v3": bits(FLOATS[2])}
    yield from on(
        RDNA,
        "v_dual_mov_b32 v2, v3 :: v_dual_mov_b32 v3, v2",
        inputs,
        {"v2": bits(FLOATS[2]), "v3": bits(FLOATS[1])},
    )
    with np.errstate(all="ignore"):
        yield from on(
            RDNA,
            "v_dual_mul_f32 v2, v2, v3 :: v_dual_add_f32 v3, v3, v2",
            inputs,
            {"v2": bits(FLOATS[1] * FLOATS[2]), "v3": bits(FLOATS[2] + FLOATS[1])},
        )
