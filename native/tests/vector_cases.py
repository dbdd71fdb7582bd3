"""The instruction cases of make_vectors.py, by family, with their results in numpy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import vector_edges
from make_vectors import Case
from vector_matrices import matrices, pairs_of_instructions
from vector_values import (
    CDNA,
    F16,
    F32,
    FLOATS,
    HALVES,
    I32,
    INTS,
    RDNA,
    U32,
    N,
    bits,
    low32,
    on,
    signed,
    three,
    wide,
)


def integers() -> Iterator[Case]:
    a, b, c = (wide(x) for x in INTS)
    sa, sb, sc = (signed(x) for x in INTS)
    s24 = lambda x: ((x & 0xFFFFFF) ^ 0x800000) - 0x800000  # noqa: E731
    both: list[tuple[str, Any]] = [
        ("v_and_b32 v10, v1, v2", a & b),
        ("v_or_b32 v10, v1, v2", a | b),
        ("v_xor_b32 v10, v1, v2", a ^ b),
        ("v_xnor_b32 v10, v1, v2", ~(a ^ b)),
        ("v_not_b32 v10, v1", ~a),
        ("v_lshlrev_b32 v10, v1, v2", b << (a & 31)),
        ("v_lshrrev_b32 v10, v1, v2", b >> (a & 31)),
        ("v_ashrrev_i32 v10, v1, v2", sb >> (sa & 31)),
        ("v_min_u32 v10, v1, v2", np.minimum(a, b)),
        ("v_max_i32 v10, v1, v2", np.maximum(sa, sb)),
        ("v_mul_u32_u24 v10, v1, v2", (a & 0xFFFFFF) * (b & 0xFFFFFF)),
        ("v_mul_i32_i24 v10, v1, v2", s24(sa) * s24(sb)),
        ("v_mul_hi_u32 v10, v1, v2", (a * b) >> np.uint64(32)),
        ("v_mul_hi_i32 v10, v1, v2", (sa * sb) >> 32),
        ("v_mul_lo_u32 v10, v1, v2", a * b),
        ("v_mad_u32_u24 v10, v1, v2, v3", (a & 0xFFFFFF) * (b & 0xFFFFFF) + c),
        ("v_add3_u32 v10, v1, v2, v3", a + b + c),
        ("v_lshl_add_u32 v10, v1, v2, v3", (a << (b & 31)) + c),
        ("v_add_lshl_u32 v10, v1, v2, v3", ((a + b) & 0xFFFFFFFF) << (c & 31)),
        ("v_lshl_or_b32 v10, v1, v2, v3", (a << (b & 31)) | c),
        ("v_and_or_b32 v10, v1, v2, v3", (a & b) | c),
        ("v_or3_b32 v10, v1, v2, v3", a | b | c),
        ("v_xad_u32 v10, v1, v2, v3", (a ^ b) + c),
        ("v_bfi_b32 v10, v1, v2, v3", (a & b) | (~a & c)),
        ("v_alignbit_b32 v10, v1, v2, v3", ((a << np.uint64(32)) | b) >> (c & 31)),
        ("v_alignbyte_b32 v10, v1, v2, v3", ((a << np.uint64(32)) | b) >> (8 * (c & 3))),
        ("v_min3_i32 v10, v1, v2, v3", np.minimum(np.minimum(sa, sb), sc)),
        ("v_med3_u32 v10, v1, v2, v3", np.sort(np.stack([a, b, c]), axis=0)[1]),
        ("v_bcnt_u32_b32 v10, v1, v2", np.asarray([bin(int(x)).count("1") for x in a]) + sb),
        ("v_bfe_u32 v10, v1, 3, 5", (a >> np.uint64(3)) & 31),
        ("v_bfe_i32 v10, v1, 3, 5", ((((sa >> 3) & 31) ^ 16) - 16)),
    ]
    for text, want in both:
        yield from on(CDNA + RDNA, text, three(INTS), {"v10": low32(np.asarray(want))})
    order = [
        [(int(y) >> 8 * k & 255) for k in range(4)] + [(int(x) >> 8 * k & 255) for k in range(4)]
        for x, y in zip(a, b, strict=True)
    ]
    picked = [r[5] | r[0] << 8 | 0 << 16 | 255 << 24 for r in order]
    inputs = three(INTS) | {"v3": np.full(N, 0x0D0C0005, U32)}
    yield from on(
        CDNA + RDNA, "v_perm_b32 v10, v1, v2, v3", inputs, {"v10": np.asarray(picked, U32)}
    )
    zeros = np.asarray([32 - int(x).bit_length() if x else 0xFFFFFFFF for x in a])
    yield from on(CDNA, "v_ffbh_u32 v10, v1", three(INTS), {"v10": low32(zeros)})
    yield from on(RDNA, "v_clz_i32_u32 v10, v1", three(INTS), {"v10": low32(zeros)})
    yield from on(CDNA, "v_add_u32 v10, v1, v2", three(INTS), {"v10": low32(a + b)})
    yield from on(RDNA, "v_add_nc_u32 v10, v1, v2", three(INTS), {"v10": low32(a + b)})
    less = np.where(a < b, 0, a - b)
    yield from on(CDNA, "v_sub_u32 v10, v1, v2 clamp", three(INTS), {"v10": low32(less)})
    yield from on(RDNA, "v_sub_nc_u32 v10, v1, v2 clamp", three(INTS), {"v10": low32(less)})
    product = a * b + (c | c << np.uint64(32))
    wide_inputs = three(INTS) | {"v4": INTS[2], "v5": INTS[2]}
    want = {"v10": low32(product), "v11": low32(product >> np.uint64(32))}
    yield from on(CDNA, "v_mad_u64_u32 v[10:11], s[20:21], v1, v2, v[4:5]", wide_inputs, want)
    yield from on(RDNA, "v_mad_u64_u32 v[10:11], s20, v1, v2, v[4:5]", wide_inputs, want)


def carries() -> Iterator[Case]:
    a, b, _ = (wide(x) for x in INTS)
    mask = sum(int(m) << k for k, m in enumerate((a + b) >> np.uint64(32)))
    full = mask | mask << 16
    text = "v_add_co_u32 v10, vcc, v1, v2 ; v_addc_co_u32 v11, vcc, v2, v1, vcc"
    carry = (a + b) >> np.uint64(32)
    want = {"v10": low32(a + b), "v11": low32(a + b + carry)}
    yield from on(CDNA, text, three(INTS), want)
    for arch in RDNA:
        yield Case(
            arch,
            "v_add_co_u32 v10, vcc_lo, v1, v2",
            three(INTS),
            {"v10": low32(a + b), "s106": np.asarray([full], U32)},
        )


def floats() -> Iterator[Case]:
    x, y, z = FLOATS
    with np.errstate(all="ignore"):
        exact: list[tuple[str, Any]] = [
            ("v_add_f32 v10, v1, v2", x + y),
            ("v_sub_f32 v10, v1, v2", x - y),
            ("v_mul_f32 v10, v1, v2", x * y),
            ("v_mul_f32 v10, -v1, |v2|", -x * np.abs(y)),
            ("v_add_f32 v10, v1, v2 clamp", np.nan_to_num(np.clip(x + y, 0, 1))),
            ("v_fma_f32 v10, v1, v2, v3", (np.longdouble(x) * y + z).astype(F32)),
            ("v_fma_f32 v10, v2, v3, 1.0", (np.longdouble(y) * z + 1).astype(F32)),
            ("v_floor_f32 v10, v2", np.floor(y)),
            ("v_ceil_f32 v10, v2", np.ceil(y)),
            ("v_trunc_f32 v10, v2", np.trunc(y)),
            ("v_rndne_f32 v10, v2", np.rint(y)),
            ("v_sqrt_f32 v10, |v2|", np.sqrt(np.abs(y))),
            ("v_mul_f32 v10, 0x42280000, v2", F32(42.0) * y),
        ]
        near: list[tuple[str, Any]] = [
            ("v_rcp_f32 v10, v2", 1 / y.astype(np.float64)),
            ("v_rsq_f32 v10, |v2|", 1 / np.sqrt(np.abs(y.astype(np.float64)))),
            ("v_exp_f32 v10, v3", np.exp2(z.astype(np.float64))),
            ("v_log_f32 v10, |v3|", np.log2(np.abs(z.astype(np.float64)))),
        ]
    for text, want in exact:
        yield from on(CDNA + RDNA, text, three(FLOATS), {"v10": bits(want.astype(F32))})
    for text, want in near:
        yield from on(CDNA + RDNA, text, three(FLOATS), {"v10": bits(want.astype(F32))}, ulp=2)
    # with a number in the code: two roundings, then one
    for name, archs, kind in (
        ("mad", ("gfx90a",), F32),
        ("fma", (*CDNA[1:], *RDNA), np.longdouble),
    ):
        with np.errstate(all="ignore"):
            first = (x.astype(kind) * kind(42) + z).astype(F32)
            second = (x.astype(kind) * y + kind(42)).astype(F32)
        for text, want in (
            (f"v_{name}mk_f32 v10, v1, 0x42280000, v3", first),
            (f"v_{name}ak_f32 v10, v1, v2, 0x42280000", second),
        ):
            yield from on(archs, text, three(FLOATS), {"v10": bits(want)})
    u, v = FLOATS[1], FLOATS[2]
    for name, want in (("max", np.maximum(u, v)), ("min", np.minimum(u, v))):
        yield from on(
            CDNA + RDNA[:1], f"v_{name}_f32 v10, v2, v3", three(FLOATS), {"v10": bits(want)}
        )
        yield from on(RDNA[1:], f"v_{name}_num_f32 v10, v2, v3", three(FLOATS), {"v10": bits(want)})
    nan = FLOATS.copy()
    nan[1, ::2] = np.nan
    yield from on(
        CDNA + RDNA[:1], "v_max_f32 v10, v2, v3", three(nan), {"v10": bits(np.fmax(nan[1], nan[2]))}
    )
    for name, f in (
        ("lt", np.less),
        ("nge", lambda p, q: ~(p >= q)),
        ("u", lambda p, q: np.isnan(p) | np.isnan(q)),
    ):
        half = sum(int(m) << k for k, m in enumerate(f(nan[1], nan[2])))
        want = np.asarray([half | half << 16], U32)
        yield from on(
            CDNA, f"v_cmp_{name}_f32 vcc, v2, v3", three(nan), {"s106": want, "s107": want}
        )
        yield from on(RDNA, f"v_cmp_{name}_f32 vcc_lo, v2, v3", three(nan), {"s106": want})
    # division, as compilers write it, must be correctly rounded
    text = (
        "v_div_scale_f32 v4, {s}, v2, v2, v1 ; v_div_scale_f32 v5, {c}, v1, v2, v1 ; "
        "v_rcp_f32 v6, v4 ; "
        "v_fma_f32 v7, -v4, v6, 1.0 ; v_fmac_f32 v6, v7, v6 ; v_mul_f32 v7, v5, v6 ; "
        "v_fma_f32 v8, -v4, v7, v5 ; "
        "v_fmac_f32 v7, v8, v6 ; v_fma_f32 v4, -v4, v7, v5 ; v_div_fmas_f32 v4, v4, v6, v7 ; "
        "v_div_fixup_f32 v10, v4, v2, v1"
    )
    with np.errstate(all="ignore"):
        quotient = FLOATS[0] / FLOATS[1]
    keep = FLOATS[0] != 0
    values = FLOATS.copy()
    values[0, ~keep], values[1, ~keep] = 1, 3
    quotient[~keep] = F32(1) / F32(3)
    yield from on(CDNA, text.format(s="s[20:21]", c="vcc"), three(values), {"v10": bits(quotient)})
    yield from on(RDNA, text.format(s="s20", c="vcc_lo"), three(values), {"v10": bits(quotient)})


def pairs(a: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(a).view(U32)


def halves() -> Iterator[Case]:
    inputs = {f"v{k + 1}": pairs(HALVES[k]) for k in range(3)}
    lo, hi = HALVES[:, ::2], HALVES[:, 1::2]

    def only(a: np.ndarray) -> np.ndarray:  # GFX9 clears the other half
        return a.astype(F16).view(np.uint16).astype(U32)

    with np.errstate(all="ignore"):
        fused = (lo[0].astype(np.longdouble) * lo[1] + lo[2]).astype(F16)
        single: list[tuple[str, Any]] = [
            ("v_add_f16 v10, v1, v2", lo[0] + lo[1]),
            ("v_mul_f16 v10, v1, v2", lo[0] * lo[1]),
            ("v_sub_f16 v10, v1, v2", lo[0] - lo[1]),
        ]
        packed: list[tuple[str, Any]] = [
            ("v_pk_add_f16 v10, v1, v2", HALVES[0] + HALVES[1]),
            ("v_pk_mul_f16 v10, v1, v2", HALVES[0] * HALVES[1]),
            (
                "v_pk_fma_f16 v10, v1, v2, v3",
                (np.longdouble(HALVES[0]) * HALVES[1] + HALVES[2]).astype(F16),
            ),
            ("v_pk_add_f16 v10, v1, v2 neg_lo:[0,1] neg_hi:[0,1]", HALVES[0] - HALVES[1]),
        ]
        crossed = np.stack([hi[0] + lo[1], lo[0] + hi[1]], axis=1).ravel()
    for text, want in single:
        yield from on(CDNA, text, inputs, {"v10": only(want)})
        true16 = text.replace("v10,", "v10.l,").replace("v1,", "v1.l,").replace(", v2", ", v2.l")
        both = inputs | {"v10": np.full(N, 0xABCD0000, U32)}
        yield from on(RDNA, true16, both, {"v10": only(want) | U32(0xABCD0000)})
    with np.errstate(all="ignore"):
        high = only(hi[0] + hi[1]) << U32(16)
    yield from on(
        RDNA,
        "v_add_f16 v10.h, v1.h, v2.h",
        inputs | {"v10": np.full(N, 0x1234, U32)},
        {"v10": high | U32(0x1234)},
    )
    keep = inputs | {"v10": np.full(N, 0xABCD0000, U32)}
    yield from on(CDNA, "v_fma_f16 v10, v1, v2, v3", keep, {"v10": only(fused) | U32(0xABCD0000)})
    for text, want in packed:
        yield from on(CDNA + RDNA, text, inputs, {"v10": pairs(want.astype(F16))})
    yield from on(
        CDNA + RDNA,
        "v_pk_add_f16 v10, v1, v2 op_sel:[1,0] op_sel_hi:[0,1]",
        inputs,
        {"v10": pairs(crossed)},
    )
    with np.errstate(all="ignore"):
        mixed = (np.longdouble(hi[0]) * lo[1] + FLOATS[2]).astype(F32)
    yield from on(
        ("gfx942", *RDNA),
        "v_fma_mix_f32 v10, v1, v2, v3 op_sel:[1,0,0] op_sel_hi:[1,1,0]",
        inputs | {"v3": bits(FLOATS[2])},
        {"v10": bits(mixed)},
    )
    shorts = INTS.view(np.uint16)
    ints = {f"v{k + 1}": INTS[k] for k in range(3)}
    yield from on(
        CDNA + RDNA, "v_pk_add_u16 v10, v1, v2", ints, {"v10": pairs(shorts[0] + shorts[1])}
    )
    yield from on(
        CDNA + RDNA, "v_pk_mul_lo_u16 v10, v1, v2", ints, {"v10": pairs(shorts[0] * shorts[1])}
    )
    single32 = (FLOATS[1] + FLOATS[2], FLOATS[0] * FLOATS[1])
    regs = {
        "v2": bits(FLOATS[1]),
        "v3": bits(FLOATS[0]),
        "v4": bits(FLOATS[2]),
        "v5": bits(FLOATS[1]),
    }
    with np.errstate(all="ignore"):
        yield from on(
            CDNA,
            "v_pk_add_f32 v[10:11], v[2:3], v[4:5]",
            regs,
            {"v10": bits(single32[0]), "v11": bits(FLOATS[0] + FLOATS[1])},
        )
        yield from on(
            CDNA,
            "v_pk_mul_f32 v[10:11], v[2:3], v[4:5] op_sel_hi:[0,1]",
            regs,
            {"v10": bits(FLOATS[1] * FLOATS[2]), "v11": bits(FLOATS[1] * FLOATS[1])},
        )


def conversions() -> Iterator[Case]:
    x = FLOATS[1]
    wide_range = np.asarray(
        [
            0,
            1.5,
            -2.5,
            3e9,
            -3e9,
            5e9,
            2**31,
            -(2**31),
            0.99,
            -0.99,
            1e20,
            -1e20,
            255.5,
            65504,
            65520,
            1e-7,
        ],
        F32,
    )
    inputs = {"v1": bits(wide_range), "v2": bits(x)}
    trunc = np.trunc(wide_range.astype(np.float64))
    yield from on(
        CDNA + RDNA,
        "v_cvt_i32_f32 v10, v1",
        inputs,
        {"v10": low32(np.clip(trunc, -(2**31), 2**31 - 1).astype(np.int64))},
    )
    yield from on(
        CDNA + RDNA,
        "v_cvt_u32_f32 v10, v1",
        inputs,
        {"v10": low32(np.clip(trunc, 0, 2**32 - 1).astype(np.int64))},
    )
    yield from on(
        CDNA + RDNA,
        "v_cvt_f32_i32 v10, v1",
        {"v1": INTS[0]},
        {"v10": bits(INTS[0].view(I32).astype(F32))},
    )
    yield from on(
        CDNA + RDNA, "v_cvt_f32_u32 v10, v1", {"v1": INTS[0]}, {"v10": bits(INTS[0].astype(F32))}
    )
    yield from on(
        CDNA + RDNA,
        "v_cvt_f32_ubyte2 v10, v1",
        {"v1": INTS[0]},
        {"v10": bits((INTS[0] >> 16 & 255).astype(F32))},
    )
    with np.errstate(all="ignore"):
        half = wide_range.astype(F16).view(np.uint16).astype(U32)
    yield from on(CDNA, "v_cvt_f16_f32 v10, v1", inputs, {"v10": half})
    yield from on(
        RDNA, "v_cvt_f16_f32 v10.l, v1", inputs | {"v10": np.zeros(N, U32)}, {"v10": half}
    )
    h = {"v1": pairs(HALVES[0])}
    yield from on(CDNA, "v_cvt_f32_f16 v10, v1", h, {"v10": bits(HALVES[0][::2].astype(F32))})
    yield from on(
        CDNA,
        "v_cvt_f32_f16_sdwa v10, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1",
        h,
        {"v10": bits(HALVES[0][1::2].astype(F32))},
    )
    yield from on(RDNA, "v_cvt_f32_f16 v10, v1.h", h, {"v10": bits(HALVES[0][1::2].astype(F32))})
    down = np.copysign((np.abs(x).view(U32) & U32(0xFFFFE000)).view(F32), x)
    zero = (np.stack([down, down], axis=1).astype(F16)).view(U32).ravel()
    name = dict.fromkeys(CDNA, "v_cvt_pkrtz_f16_f32") | dict.fromkeys(RDNA, "v_cvt_pk_rtz_f16_f32")
    for arch in CDNA + RDNA:
        yield Case(arch, f"{name[arch]} v10, v2, v2", {"v2": bits(x)}, {"v10": zero})
    import ml_dtypes

    bf = (
        np.stack([FLOATS[1], FLOATS[2]], axis=1)
        .astype(ml_dtypes.bfloat16)
        .view(np.uint16)
        .view(U32)
        .ravel()
    )
    yield Case("gfx950", "v_cvt_pk_bf16_f32 v10, v2, v3", three(FLOATS), {"v10": bf})
    codes = np.arange(256, dtype=np.uint8).reshape(N, 16)[:, [1, 5, 9, 15]]
    packed = np.ascontiguousarray(codes).view(U32).ravel()
    for arch, kind in (("gfx942", ml_dtypes.float8_e4m3fnuz), ("gfx950", ml_dtypes.float8_e4m3fn)):
        values = codes.view(kind).astype(F32)
        yield Case(
            arch,
            "v_cvt_f32_fp8_sdwa v10, v1 src0_sel:BYTE_1",
            {"v1": packed},
            {"v10": bits(values[:, 1].copy())},
        )
    kinds = (("gfx942", ml_dtypes.float8_e4m3fnuz), ("gfx950", ml_dtypes.float8_e4m3fn))
    for arch, kind in kinds:
        small = np.clip(FLOATS[1] / 10, -200, 200)
        both = np.stack([small, FLOATS[2]], axis=1).astype(kind).view(np.uint8)
        want = both[:, 0].astype(U32) | both[:, 1].astype(U32) << 8
        yield Case(
            arch,
            "v_cvt_pk_fp8_f32 v10, v2, v3",
            {"v2": bits(small), "v3": bits(FLOATS[2]), "v10": np.zeros(N, U32)},
            {"v10": want},
        )


def lanes() -> Iterator[Case]:
    index = np.arange(64, dtype=U32)
    full = {"v1": index * 3 + 1, "v10": np.full(64, 7, U32)}
    v = full["v1"]
    rows = index // 16 * 16
    moved: list[tuple[str, Any]] = [
        ("quad_perm:[3,2,1,0]", v[index ^ 3]),
        ("row_ror:4", v[rows + (index - 4) % 16]),
        ("row_mirror", v[rows + 15 - index % 16]),
        ("row_half_mirror", v[index // 8 * 8 + 7 - index % 8]),
        ("row_shr:1", np.where(index % 16 >= 1, v[np.maximum(index, 1) - 1], 7)),
        ("row_shl:2", np.where(index % 16 < 14, v[np.minimum(index + 2, 63)], 7)),
        (
            "row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1",
            np.where(index % 16 >= 1, v[np.maximum(index, 1) - 1], 0),
        ),
    ]
    for how, want in moved:
        for arch in CDNA:
            yield Case(
                arch,
                f"v_mov_b32_dpp v10, v1 {how}"
                + ("" if "mask" in how else " row_mask:0xf bank_mask:0xf"),
                full,
                {"v10": want},
            )
        for arch in RDNA:
            short = {k: a[:32] for k, a in full.items()}
            yield Case(
                arch,
                f"v_mov_b32_dpp v10, v1 {how}"
                + ("" if "mask" in how else " row_mask:0xf bank_mask:0xf"),
                short,
                {"v10": np.asarray(want)[:32]},
            )
    want = np.where(index // 16 % 2 == 1, v[np.maximum(rows, 1) - 1], 7)
    yield from on(
        CDNA, "v_mov_b32_dpp v10, v1 row_bcast:15 row_mask:0xa bank_mask:0xf", full, {"v10": want}
    )
    yield from on(
        RDNA,
        "v_mov_b32_dpp v10, v1 row_xmask:5 row_mask:0xf bank_mask:0xf",
        {k: a[:32] for k, a in full.items()},
        {"v10": v[(index ^ 5)[:32]]},
    )
    yield from on(
        RDNA,
        "v_mov_b32_dpp v10, v1 dpp8:[7,6,5,4,3,2,1,0]",
        {k: a[:32] for k, a in full.items()},
        {"v10": v[(index ^ 7)[:32]]},
    )
    yield from on(CDNA + RDNA, "v_readfirstlane_b32 s20, v1", {"v1": v[:32]}, {"s20": v[:1]})
    yield from on(CDNA + RDNA, "v_readlane_b32 s20, v1, 5", {"v1": v[:32]}, {"s20": v[5:6]})
    for archs, count in ((CDNA, 64), (RDNA, 32)):
        written = full["v10"][:count].copy()
        written[9] = 77
        yield from on(
            archs,
            "v_writelane_b32 v10, s3, 9",
            {"v10": full["v10"][:count], "s3": np.asarray([77], U32)},
            {"v10": written},
        )
    low, high = np.arange(32), np.arange(32, 64)
    yield from on(
        CDNA,
        "v_mbcnt_lo_u32_b32 v10, -1, 0 ; v_mbcnt_hi_u32_b32 v10, -1, v10",
        {},
        {"v10": np.concatenate([low, high]).astype(U32)},
    )
    flipped = {
        "v1": v[:32],
        "v10": full["v10"][:32],
        "s4": np.asarray([0x76543210], U32),
        "s5": np.asarray([0xFEDCBA98], U32),
    }
    yield from on(RDNA, "v_permlanex16_b32 v10, v1, s4, s5", flipped, {"v10": v[(index ^ 16)[:32]]})
    back = {"v1": v, "v2": ((index * 4 + 20) % 256).astype(U32)}
    yield from on(CDNA, "ds_bpermute_b32 v10, v2, v1", back, {"v10": v[(index + 5) % 64]})
    yield from on(
        CDNA, "ds_swizzle_b32 v10, v1 offset:swizzle(SWAP,16)", {"v1": v}, {"v10": v[index ^ 16]}
    )
    a, b = index + 100, index + 200
    for size in (16, 32):
        x, y = a.copy(), b.copy()
        for base in range(0, 64, 2 * size):
            x[base + size : base + 2 * size], y[base : base + size] = (
                b[base : base + size],
                a[base + size : base + 2 * size],
            )
        yield Case(
            "gfx950", f"v_permlane{size}_swap_b32 v1, v2", {"v1": a, "v2": b}, {"v1": x, "v2": y}
        )


def scalars() -> Iterator[Case]:
    pairs_of = list(itertools.product([0, 1, 5, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], repeat=2))

    def sx(x: int) -> int:
        return (x & 0xFFFFFFFF ^ 0x80000000) - 0x80000000

    ops: list[tuple[str, str, Callable[[int, int], int], Callable[[int, int, int], int]]] = [
        ("s_add_u32", "s_add_co_u32", lambda a, b: a + b, lambda a, b, r: a + b > 0xFFFFFFFF),
        ("s_sub_u32", "s_sub_co_u32", lambda a, b: a - b, lambda a, b, r: b > a),
        ("s_add_i32", "s_add_co_i32", lambda a, b: a + b, lambda a, b, r: sx(a) + sx(b) != sx(r)),
        ("s_and_b32", "", lambda a, b: a & b, lambda a, b, r: r != 0),
        ("s_lshl_b32", "", lambda a, b: a << (b & 31), lambda a, b, r: r != 0),
        ("s_ashr_i32", "", lambda a, b: sx(a) >> (b & 31), lambda a, b, r: r != 0),
        ("s_min_i32", "", lambda a, b: min(sx(a), sx(b)), lambda a, b, r: sx(a) < sx(b)),
        ("s_max_u32", "", lambda a, b: max(a, b), lambda a, b, r: a > b),
    ]
    for name, later, f, flag in ops:
        for n, (a, b) in enumerate(pairs_of):
            arch = (CDNA + RDNA)[n % 5]
            spelled = later if later and arch == "gfx1201" else name
            r = f(a, b) & 0xFFFFFFFF
            yield Case(
                arch,
                f"{spelled} s10, s1, s2 ; s_cselect_b32 s11, 1, 0",
                {"s1": np.asarray([a], U32), "s2": np.asarray([b], U32)},
                {"s10": np.asarray([r], U32), "s11": np.asarray([int(flag(a, b, r))], U32)},
            )
    yield from on(
        CDNA + RDNA,
        "s_bfe_u32 s10, s1, 0x80004 ; s_bfe_i32 s11, s1, 0x80004",
        {"s1": np.asarray([0xABCDEF12], U32)},
        {"s10": np.asarray([0xF1], U32), "s11": np.asarray([0xFFFFFFF1], U32)},
    )
    # 12 bits from bit 28, over both words; from bit 56, cut at the end
    yield from on(
        CDNA + RDNA,
        "s_bfe_u64 s[10:11], s[2:3], 0xc001c ; s_bfe_i64 s[12:13], s[2:3], 0xc001c ; "
        "s_bfe_i64 s[14:15], s[2:3], 0xc0038 ; s_cselect_b32 s16, 1, 0",
        {"s2": np.asarray([0xABCDEF12], U32), "s3": np.asarray([0x7F0000F1], U32)},
        {"s10": np.asarray([0xF1A], U32), "s11": np.asarray([0], U32),
         "s12": np.asarray([0xFFFFFF1A], U32), "s13": np.asarray([0xFFFFFFFF], U32),
         "s14": np.asarray([0x7F], U32), "s15": np.asarray([0], U32),
         "s16": np.asarray([1], U32)},
    )  # fmt: skip
    yield from on(
        CDNA + RDNA,
        "s_mul_hi_u32 s10, s1, s2",
        {"s1": np.asarray([0xFFFFFFFF], U32), "s2": np.asarray([0xFFFFFFFF], U32)},
        {"s10": np.asarray([0xFFFFFFFE], U32)},
    )
    # a loop: 10 + 9 + ... + 1
    yield from on(
        CDNA,
        "s_mov_b32 s1, 10 ; s_mov_b32 s2, 0 ; s_add_u32 s2, s2, s1 ; s_sub_u32 s1, s1, 1 ; "
        "s_cmp_lg_u32 s1, 0 ; s_cbranch_scc1 65532",
        {},
        {"s2": np.asarray([55], U32)},
    )


def local_memory() -> Iterator[Case]:
    index = np.arange(32, dtype=U32)
    inputs = {
        "v1": index * 16,
        "v2": index + 1,
        "v3": index + 101,
        "v4": index + 201,
        "v5": index + 301,
    }
    spelled = {"w": "ds_write_b128", "r": "ds_read_b64", "p": "ds_read2_b32"}
    later = {"w": "ds_store_b128", "r": "ds_load_b64", "p": "ds_load_2addr_b32"}
    for arch in CDNA + RDNA:
        n = later if arch.startswith("gfx1") else spelled
        text = (
            f"{n['w']} v1, v[2:5] ; {n['r']} v[10:11], v1 offset:8 ; "
            f"{n['p']} v[12:13], v1 offset0:3 offset1:1"
        )
        yield Case(
            arch,
            text,
            inputs,
            {"v10": index + 201, "v11": index + 301, "v12": index + 301, "v13": index + 101},
        )
    same = {"v1": np.zeros(32, U32), "v2": np.ones(32, U32), "v3": np.zeros(32, U32)}
    for arch in RDNA:
        yield Case(arch, "ds_store_b32 v1, v3 ; ds_add_rtn_u32 v10, v1, v2", same, {"v10": index})
    bytes_in = {
        "v1": index * 4,
        "v2": np.full(32, 0x80FF, U32) + index,
        "v10": np.full(32, 0x55550000, U32),
    }
    low = (0x80FF + index) & 255
    for arch in CDNA:
        yield Case(
            arch,
            "ds_write_b32 v1, v2 ; ds_read_i8 v11, v1 ; ds_read_u8_d16_hi v10, v1",
            bytes_in,
            {"v11": ((low.astype(I32) ^ 128) - 128).view(U32), "v10": low << 16},
        )


def every_case() -> Iterator[Case]:
    for family in (
        scalars,
        integers,
        carries,
        floats,
        halves,
        conversions,
        lanes,
        local_memory,
        matrices,
        pairs_of_instructions,
        vector_edges.every_case,
    ):
        yield from family()
