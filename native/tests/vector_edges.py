"""Cases at the edges: division, what hardware was seen to do, and forms that are easily overlooked.

`seen` holds values that tinygrad's tests (MIT, test/amd/hw) assert on RDNA3, RDNA4 and gfx950; the
other results are numpy's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import vector_modes
import vector_seeds
from make_vectors import Case
from vector_values import CDNA, F32, FLOATS, INTS, RDNA, U32, N, bits, on, signed, wide

ALL = (*CDNA, *RDNA)
NAN, INFINITY = 0x7FC00000, 0x7F800000


def every(value: int) -> np.ndarray:
    return np.full(N, value, U32)


def vcc(arch: str) -> str:
    return "vcc_lo" if arch in RDNA else "vcc"


def division_steps(arch: str) -> str:
    """v10 = v1 / v2 in f32, in the steps that LLVM's AMDGPU backend takes."""
    unused = "s4" if arch in RDNA else "s[4:5]"
    return " ; ".join(
        [
            f"v_div_scale_f32 v3, {unused}, v2, v2, v1",
            f"v_div_scale_f32 v4, {vcc(arch)}, v1, v2, v1",
            "v_rcp_f32 v5, v3",
            "v_fma_f32 v6, -v3, v5, 1.0",
            "v_fma_f32 v5, v6, v5, v5",
            "v_mul_f32 v6, v4, v5",
            "v_fma_f32 v7, -v3, v6, v4",
            "v_fma_f32 v6, v7, v5, v6",
            "v_fma_f32 v7, -v3, v6, v4",
            "v_div_fmas_f32 v7, v7, v5, v6",
            "v_div_fixup_f32 v10, v7, v2, v1",
        ]
    )


def wide_division_steps(arch: str) -> str:
    """v[10:11] = v[2:3] / v[4:5] in f64."""
    unused = "s4" if arch in RDNA else "s[4:5]"
    return " ; ".join(
        [
            f"v_div_scale_f64 v[20:21], {unused}, v[4:5], v[4:5], v[2:3]",
            f"v_div_scale_f64 v[22:23], {vcc(arch)}, v[2:3], v[4:5], v[2:3]",
            "v_rcp_f64 v[24:25], v[20:21]",
            "v_fma_f64 v[26:27], -v[20:21], v[24:25], 1.0",
            "v_fma_f64 v[24:25], v[24:25], v[26:27], v[24:25]",
            "v_fma_f64 v[26:27], -v[20:21], v[24:25], 1.0",
            "v_fma_f64 v[24:25], v[24:25], v[26:27], v[24:25]",
            "v_mul_f64 v[26:27], v[22:23], v[24:25]",
            "v_fma_f64 v[28:29], -v[20:21], v[26:27], v[22:23]",
            "v_div_fmas_f64 v[28:29], v[28:29], v[24:25], v[26:27]",
            "v_div_fixup_f64 v[10:11], v[28:29], v[4:5], v[2:3]",
        ]
    )


def divisions() -> Iterator[Case]:
    """Quotients of all pairs of edges, to the last bit."""
    edges = [
        0,
        1,
        3,
        1e-45,
        1e-40,
        1.1754944e-38,
        1e-30,
        1e20,
        3e38,
        3.4028235e38,
        2.0**127,
        2.0**-100,
        0.75,
        np.inf,
        np.nan,
        7e-39,
    ]
    numbers = np.asarray(edges, F32)
    double = np.asarray(
        [
            0,
            1,
            3,
            5e-324,
            1e-310,
            2.3e-308,
            1e-200,
            1e200,
            1.7e308,
            2.0**1023,
            0.75,
            np.inf,
            np.nan,
            1e-290,
            9e-320,
            7,
        ],
        np.float64,
    )
    with np.errstate(all="ignore"):
        for arch in ALL:
            for turn in range(0, N, 3):
                n, d = numbers, np.roll(-numbers, turn)
                yield Case(
                    arch, division_steps(arch), {"v1": bits(n), "v2": bits(d)}, {"v10": bits(n / d)}
                )
                n, d = double, np.roll(-double, turn)
                low, high = (np.stack([a]).view(U32).reshape(N, 2).T.copy() for a in (n, d))
                want = (n / d).view(U32).reshape(N, 2).T.copy()
                nan = np.isnan(n / d)
                ins = {"v2": low[0], "v3": low[1], "v4": high[0], "v5": high[1]}
                outs = {"v10": np.where(nan, 0, want[0]).astype(U32), "v11": want[1]}
                text = wide_division_steps(arch)
                if nan.any():  # a NaN's low word is not stated
                    text += f" ; v_cmp_u_f64 {vcc(arch)}, v[10:11], v[10:11] ; v_mov_b32 v12, 0"
                    text += f" ; v_cndmask_b32 v10, v10, v12, {vcc(arch)}"
                yield Case(arch, text, ins, outs)


def seen() -> Iterator[Case]:
    """Values that were asserted on hardware."""
    for sign, want in ((F32(1), 0x7F800000), (F32(-1), 0xFF800000)):  # an estimate that is none
        ins = {"v1": every(NAN), "v2": bits(np.full(N, sign)), "v3": bits(np.ones(N, F32))}
        yield from on(ALL, "v_div_fixup_f32 v10, v1, v2, v3", ins, {"v10": every(want)})
    scales: list[tuple[Any, Any, str, int, int]] = [
        (1.0, 4.0, "v1", 0x3F800000, 0),  # nothing to scale
        (1.0, 0.0, "v1", NAN, 1),
        (0.0, 1.0, "v1", NAN, 1),
        (3.4028235e38, 1.0, "v2", 0x5F800000, 1),  # 2^64
        (1.1754944e-38, 1.0, "v1", 0x20800000, 1),  # 2^-126 by 2^64
        (1.0, 2.0**127, "v1", 0x3F800000, 1),
    ]
    for n, d, scaled, want, flag in scales:
        ins = {"v1": bits(np.full(N, n, F32)), "v2": bits(np.full(N, d, F32))}
        for arch in ALL:
            outs = {"v10": every(want), "s8": np.asarray([0xFFFFFFFF * flag], U32)}
            text = f"v_div_scale_f32 v10, {vcc(arch)}, {scaled}, v2, v1 ; s_mov_b32 s8, vcc_lo"
            yield Case(arch, text, ins, outs)
    for x in (INFINITY, NAN):
        yield from on(ALL, "v_fract_f32 v10, v1", {"v1": every(x)}, {"v10": every(NAN)})
    # the mode's bit 9 (IEEE 754) or denormal results switch output modifiers off
    three = {"v1": bits(np.full(N, 3, F32))}
    off = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0 ; "
    off += "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 9, 1), "
    for archs, ieee, want in (
        (CDNA, 1, 4.0),
        (("gfx1100",), 1, 4.0),
        (CDNA, 0, 8.0),
        (("gfx1100",), 0, 8.0),
    ):
        yield from on(
            archs,
            f"{off}{ieee} ; v_add_f32 v10, v1, 1.0 mul:2",
            three,
            {"v10": bits(np.full(N, want, F32))},
        )
    yield from on(ALL, "v_add_f32 v10, v1, 1.0 mul:4", three, {"v10": bits(np.full(N, 4, F32))})
    flush = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0"
    x = FLOATS[1:2].repeat(2, 0)
    for how, by in (("mul:2", 2), ("mul:4", 4), ("div:2", 0.5)):
        text = f"{flush} ; v_mul_f32 v10, v1, v2 {how}"
        want = x[0] * x[1] * F32(by)
        yield from on(ALL, text, {"v1": bits(x[0]), "v2": bits(x[1])}, {"v10": bits(want + F32(0))})
    # 2^-130 is denormal: the unit of exponentials gives zero
    yield from on(ALL, "v_exp_f32 v10, v1", {"v1": bits(np.full(N, -130, F32))}, {"v10": every(0)})
    yield from on(
        RDNA, "v_permlane64_b32 v10, v1", {"v1": INTS[0], "v10": INTS[1]}, {"v10": INTS[1]}
    )
    for x, want in ((0x47700000, 0x7C), (INFINITY, 0x7C), (0xFF800000, 0xFC)):
        ins = {"v1": every(x), "v2": bits(np.ones(N, F32)), "v10": every(0xDEADBEEF)}
        yield from on(
            ("gfx950", "gfx1201"),
            "v_cvt_pk_bf8_f32 v10, v1, v2",
            ins,
            {"v10": every(0xDEAD3C00 | want)},
        )
    ins = {"v1": every(0x3F803C00), "v10": every(0)}  # 1.0 is f32's pattern to integers
    yield from on(ALL, "v_pk_add_u16 v10, v1, 1.0", ins, {"v10": every(0x7F003C00)})
    for arch in RDNA:  # row 1 of 16 lanes reads what its own lanes name
        if arch == "gfx1201":
            lane = np.arange(32, dtype=U32)
            ins = {"v1": lane * 3, "v2": (lane * 7 + 3) % 16}
            want = ((lane & 16) | ins["v2"]) * 3
            yield Case(arch, "v_permlane16_var_b32 v10, v1, v2", ins, {"v10": want})
            yield Case(
                arch,
                "v_permlanex16_var_b32 v10, v1, v2",
                ins,
                {"v10": (((lane & 16) ^ 16) | ins["v2"]) * 3},
            )


def second_results() -> Iterator[Case]:
    """Carries of 65-bit sums, clamp, and parts of results."""
    a, b, c = INTS
    top = b
    addend = [int(low) | int(high) << 32 for low, high in zip(c, top, strict=True)]
    for name, is_signed in (("u64_u32", False), ("i64_i32", True)):
        low, high, carry = [], [], 0
        for lane in range(N):
            x, y, z = int(a[lane]), int(b[lane]), addend[lane]
            if is_signed:
                x, y = (v - (v >> 31 << 32) for v in (x, y))
                z -= z >> 63 << 64
            total = x * y + z
            low.append(total & 0xFFFFFFFF)
            high.append(total >> 32 & 0xFFFFFFFF)
            carry |= (total >> 64 & 1) << lane
        ins = {"v1": a, "v2": b, "v4": c, "v5": top}
        repeated = carry | carry << 16
        outs = {
            "v10": np.asarray(low, U32),
            "v11": np.asarray(high, U32),
            "s8": np.asarray([repeated], U32),
        }
        for arch in ALL:
            spelled = f"v_mad_{'co_' if arch == 'gfx1201' else ''}{name}"
            mask = "s8" if arch in RDNA else "s[8:9]"
            yield Case(arch, f"{spelled} v[10:11], {mask}, v1, v2, v[4:5]", ins, outs)
    saturated = np.minimum(wide(a) + wide(b), 0xFFFFFFFF).astype(U32)
    for arch in ALL:
        mask = "s8" if arch in RDNA else "vcc"
        yield Case(
            arch,
            f"v_add_co_u32 v10, {mask}, v1, v2 clamp",
            {"v1": a, "v2": b},
            {"v10": saturated},
        )
    text = "v_add_co_u32_sdwa v10, vcc, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE "
    text += "src0_sel:DWORD src1_sel:BYTE_0"
    want = (c & 0xFFFF) | ((a + (b & 255)) << U32(16))
    yield from on(CDNA, text, {"v1": a, "v2": b, "v10": c}, {"v10": want})
    x, y, z = wide(a & 0xFFFFFF), wide(b & 0xFFFFFF), wide(c)
    ins = {"v1": a, "v2": b, "v3": c}
    yield from on(
        ALL,
        "v_mad_u32_u24 v10, v1, v2, v3 clamp",
        ins,
        {"v10": np.minimum(x * y + z, 0xFFFFFFFF).astype(U32)},
    )
    halves = [np.stack([v & 0xFFFF, v >> U32(16)]).astype(np.int64) for v in (a, b)]
    total = np.minimum(halves[0] + halves[1], 0xFFFF).astype(U32)
    yield from on(
        ALL, "v_pk_add_u16 v10, v1, v2 clamp", ins, {"v10": total[0] | total[1] << U32(16)}
    )
    s = [np.where(h > 32767, h - 65536, h) for h in halves]
    total = np.clip(s[0] - s[1], -32768, 32767).astype(np.int64) & 0xFFFF
    yield from on(
        ALL, "v_pk_sub_i16 v10, v1, v2 clamp", ins, {"v10": (total[0] | total[1] << 16).astype(U32)}
    )


def moved_pairs() -> Iterator[Case]:
    """DPP of 64-bit operations: both words come from lane 3 of the row."""
    lane = np.arange(64, dtype=U32)
    low, high = lane * 5 + 1, bits((lane * F32(1.5)).astype(F32))
    row = lane // 16 * 16 + 3
    ins = {"v2": low, "v3": high, "v10": lane, "v11": lane}
    yield from on(
        CDNA[1:],
        "v_mov_b64_dpp v[10:11], v[2:3] row_newbcast:3",
        ins,
        {"v10": low[row], "v11": high[row]},
    )
    x, y, z = (np.arange(64) * f + 0.5 for f in (1.25, -2.0, 3.0))
    words = [v.view(U32).reshape(64, 2).T.copy() for v in (x, y, z)]
    want = (x[row] * y + z).view(U32).reshape(64, 2).T.copy()
    ins = {
        "v2": words[0][0],
        "v3": words[0][1],
        "v4": words[1][0],
        "v5": words[1][1],
        "v10": words[2][0],
        "v11": words[2][1],
    }
    yield from on(
        CDNA,
        "v_fmac_f64_dpp v[10:11], v[2:3], v[4:5] row_newbcast:3",
        ins,
        {"v10": want[0], "v11": want[1]},
    )


def sums() -> Iterator[Case]:
    """Differences and dots of small elements."""
    a, b, c = INTS
    part = [np.stack([v >> U32(8 * k) & 255 for k in range(4)]).astype(np.int64) for v in (a, b)]
    apart = np.abs(part[0] - part[1])
    ins = {"v1": a, "v2": b, "v3": c}
    low = np.int64(0xFFFFFFFF)
    yield from on(
        ALL,
        "v_sad_u8 v10, v1, v2, v3",
        ins,
        {"v10": (apart.sum(0) + wide(c).astype(np.int64) & low).astype(U32)},
    )
    masked = np.where(part[1] != 0, apart, 0).sum(0)
    yield from on(
        ALL,
        "v_msad_u8 v10, v1, v2, v3",
        ins,
        {"v10": (masked + c.astype(np.int64) & low).astype(U32)},
    )
    yield from on(
        ALL,
        "v_sad_u32 v10, v1, v2, v3",
        ins,
        {
            "v10": (
                np.abs(a.astype(np.int64) - b.astype(np.int64)) + c.astype(np.int64) & low
            ).astype(U32)
        },
    )
    nibbles = [np.stack([v >> U32(4 * k) & 15 for k in range(8)]).astype(np.int64) for v in (a, b)]
    dot = (nibbles[0] * nibbles[1]).sum(0)
    yield from on(
        ALL,
        "v_dot8_u32_u4 v10, v1, v2, v3",
        ins,
        {"v10": (dot + c.astype(np.int64) & low).astype(U32)},
    )
    yield from on(
        ALL,
        "v_dot8_u32_u4 v10, v1, v2, v3 clamp",
        ins,
        {"v10": np.minimum(dot + c.astype(np.int64), low).astype(U32)},
    )
    s = [np.where(v > 7, v - 16, v) for v in nibbles]
    total = (s[0] * s[1]).sum(0) + signed(c)
    yield from on(CDNA, "v_dot8_i32_i4 v10, v1, v2, v3", ins, {"v10": (total & low).astype(U32)})
    yield from on(
        RDNA,
        "v_dot8_i32_iu4 v10, v1, v2, v3 neg_lo:[1,1,0]",
        ins,
        {"v10": (total & low).astype(U32)},
    )
    yield from on(ALL, "v_nop ; v_mov_b32 v10, v1", ins, {"v10": a})


def flat_addresses() -> Iterator[Case]:
    """LDS by a flat address: the base of its aperture, and an offset."""
    for archs, suffix in ((CDNA, "dword"), (RDNA, "b32")):
        text = (
            "s_mov_b64 s[4:5], src_shared_base ; v_mov_b32 v3, s5 ; v_lshlrev_b32 v2, 2, v1 ; "
            f"flat_store_{suffix} v[2:3], v4 ; flat_load_{suffix} v10, v[2:3] offset:0"
        )
        lane = np.arange(32, dtype=U32)
        yield from on(archs, text, {"v1": lane, "v4": lane * 9}, {"v10": lane * 9})


def factors() -> Iterator[Case]:
    """Matrix instructions whose layouts AMD's matrix instruction calculator (MIT) states."""
    rng = np.random.default_rng(5)
    # f64, 4x4x4, four blocks: A[i][k] in lane i + 4 b + 16 k, D[i][j] in j + 4 b + 16 i
    lane = np.arange(64)
    a, b, c = (rng.integers(-9, 9, (4, 4, 4)).astype(np.float64) for _ in range(3))
    d = a @ b + c
    block = lane // 4 % 4
    held = {"v2": a[block, lane % 4, lane // 16], "v4": b[block, lane // 16, lane % 4]}
    held["v6"] = c[block, lane // 16, lane % 4]
    ins: dict[str, np.ndarray] = {}
    for name, values in held.items():
        ins[name], ins[f"v{int(name[1:]) + 1}"] = values.view(U32).reshape(64, 2).T.copy()
    low, high = d[block, lane // 16, lane % 4].view(U32).reshape(64, 2).T.copy()
    for arch in CDNA:
        name = "v_mfma_f64_4x4x4f64" if arch == "gfx90a" else "v_mfma_f64_4x4x4_4b_f64"
        text = f"{name} v[10:11], v[2:3], v[4:5], v[6:7]"
        yield Case(arch, text, ins, {"v10": low, "v11": high})
    # sparse f16: lane i + 16 h holds, of row i of A, two of each four at 8 h + 0, 4, 16 and 20
    lane = np.arange(32)
    row, half = lane % 16, lane // 16
    starts = np.asarray([[8 * h + s for s in (0, 4, 16, 20)] for h in range(2)])
    index = rng.integers(0, 3, (32, 4))
    index = np.stack([index, index + 1], axis=2)  # two places of four, in order
    values = rng.integers(-4, 5, (32, 4, 2)).astype(np.float16)
    dense = np.zeros((16, 32))
    for k in range(32):
        for g in range(4):
            for p in range(2):
                dense[row[k], starts[half[k], g] + index[k, g, p]] = values[k, g, p]
    b16 = rng.integers(-4, 5, (32, 16)).astype(np.float16)
    order = np.asarray([[8 * h + j + (8 if j > 7 else 0) for j in range(16)] for h in range(2)])
    packed = np.stack([b16[order[half[k]], row[k]] for k in range(32)])
    codes = sum(index[:, n // 2, n % 2].astype(U32) << U32(2 * n) for n in range(8))
    ins = {f"v{2 + n}": values[:, n].copy().view(U32).ravel() for n in range(4)}
    ins |= {f"v{6 + n}": packed[:, 2 * n : 2 * n + 2].copy().view(U32).ravel() for n in range(8)}
    ins |= {"v14": codes << U32(16)}
    c32 = rng.integers(-9, 9, (16, 16)).astype(F32)
    want = (dense @ b16.astype(np.float64) + c32).astype(F32)
    # D: register r has row r in lanes 0 to 15 and row r + 8 in the others
    ins |= {f"v{20 + r}": bits(c32[r + 8 * half, row]) for r in range(8)}
    outs = {f"v{20 + r}": bits(want[r + 8 * half, row]) for r in range(8)}
    text = "v_swmmac_f32_16x16x32_f16 v[20:27], v[2:5], v[6:13], v14 index_key:1"
    yield Case("gfx1201", text, ins, outs)


def every_case() -> Iterator[Case]:
    for family in (
        factors,
        divisions,
        seen,
        second_results,
        moved_pairs,
        sums,
        flat_addresses,
        vector_modes.every_case,
        vector_seeds.every_case,
    ):
        yield from family()
