"""Instructions of a wave of compiled code, their cost, and the bound of a launch."""

from __future__ import annotations

from dataclasses import fields, replace
from math import inf
from typing import Any

import numpy as np
import pytest

from benchmarks import gpu_published
from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import TargetError
from mgx_mlir.hardware.chips import CHIPS, LAUNCH_US
from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import DOT, GemmConfig, GemmShape
from mgx_mlir.passes.lowering.gpu.matmul.tiles import MmaSchedule
from mgx_mlir.targets.kernel_bounds import compile_with_bounds, moved, time_us, workgroups
from mgx_mlir.targets.kernel_time import FROM_CACHE, cost, kernel_time
from mgx_mlir.targets.kernel_walk import AsmInstruction, Code, Walk, functions, walk
from mgx_mlir.targets.report import KernelReport
from tests.lowering.programs import Programs

CHIP = CHIPS["gfx942"]


def code(*lines: str) -> Code:
    """Assembly of one function: labels end in a colon."""
    text = ["f:", *(line if line.endswith(":") else f"\t{line}" for line in lines)]
    return functions(text)["f"]


def run(*lines: str) -> tuple[list[str], bool]:
    """The names of what a wave runs, and whether that is exact."""
    found: Walk = walk(code(*lines, "s_endpgm"))
    return [found.code.instructions[p].name for p in found.places], found.exact


@pytest.mark.parametrize(
    ("head", "step", "trips"),
    [
        ("s_mov_b32 s4, 0", ("s_add_i32 s4, s4, 8", "s_cmp_lt_u32 s4, 0x40"), 8),
        ("s_movk_i32 s4, 0xffe0", ("s_addk_i32 s4, 0x10", "s_cmp_lg_u32 s4, 0"), 2),
        ("s_mov_b32 s4, -3", ("s_add_i32 s4, s4, 1", "s_cmpk_lt_i32 s4, 0x2"), 5),
        ("s_movk_i32 s4, 0x64", ("s_sub_i32 s4, s4, 50", "s_cmp_gt_i32 s4, -100"), 4),
        ("s_mov_b64 s[4:5], 0", ("s_addk_i32 s5, 1", "s_cmp_lg_u32 s5, 3"), 3),
    ],
)
def test_loops_of_known_numbers(head: str, step: tuple[str, str], trips: int) -> None:
    names, exact = run(head, ".L1:", "v_add_u32_e32 v0, s4, v1", *step, "s_cbranch_scc1 .L1")
    assert names.count("v_add_u32") == trips
    assert exact


def test_branches_on_masks() -> None:
    loop = [".L1:", "v_nop", "s_add_i32 s4, s4, 1", "s_cmp_eq_u32 s4, 4"]
    names, exact = run(
        "s_mov_b32 s4, 0", *loop, "s_cselect_b64 s[6:7], -1, 0", "s_and_b64 vcc, exec, s[6:7]",
        "s_cbranch_vccz .L1",
    )  # fmt: skip
    assert (names.count("v_nop"), exact) == (4, True)
    # a loop that never ends stands where no lane comes
    names, exact = run(".L1:", "v_nop", "s_and_b64 vcc, exec, -1", "s_cbranch_vccnz .L1")
    assert (names.count("v_nop"), exact) == (1, False)


def test_lanes_that_differ_go_both_ways_and_a_loop_of_lanes_once() -> None:
    names, exact = run(
        "s_and_saveexec_b64 s[0:1], vcc", "s_cbranch_execz .L2", "v_mul_f32_e32 v0, v1, v2", ".L2:",
        "s_cbranch_execnz .L4", "v_nop", ".L3:", "v_add_f32_e32 v0, v1, v2",
        "s_andn2_b64 exec, exec, vcc", "s_cbranch_execnz .L3", "s_endpgm", ".L4:",
        "v_sub_f32_e32 v0, v1, v2", "s_branch .L3",
    )  # fmt: skip
    assert "v_mul_f32" in names
    assert "v_nop" not in names  # a branch around nothing for lanes that are there
    assert names.count("v_sub_f32") == names.count("v_add_f32") == 1
    assert not exact


@pytest.mark.parametrize("unknown", ["s_load_dword s4, s[0:1], 0x0", "v_readfirstlane_b32 s4, v0"])
def test_numbers_from_memory_are_not_known(unknown: str) -> None:
    names, exact = run(
        "s_mov_b32 s4, 0", ".L1:", "v_nop", "s_add_i32 s4, s4, 1", unknown,
        "s_cmp_lt_u32 s4, 9", "s_cbranch_scc1 .L1",
    )  # fmt: skip
    assert (names.count("v_nop"), exact) == (1, False)


def test_a_branch_to_nowhere_and_code_without_an_end() -> None:
    assert run("s_branch .L9") == (["s_branch", "s_endpgm"], False)
    found = walk(code(".L1:", "v_nop", "s_branch .L1"))
    assert not found.exact
    assert len(found.places) == 1_000_000


def of(name: str, *operands: str, arch: str = "gfx942"):
    return cost(AsmInstruction(name, operands), CHIPS[arch])


def test_what_instructions_cost() -> None:
    # 8192 operations at 512 a clock and SIMD; twice the rate for 8 bits, an eighth for f32
    assert of("v_mfma_f32_16x16x16_f16").clocks == 16
    assert of("v_mfma_i32_16x16x32_i8").clocks == 16
    assert of("v_mfma_f32_16x16x4_f32").clocks == 32
    assert of("v_mfma_f32_16x16x16f16", arch="gfx90a").clocks == 32
    assert of("v_mfma_f32_16x16x8bf16", arch="gfx90a").clocks == 32  # half the rate
    assert of("v_mfma_f32_16x16x16_f16", arch="gfx950").clocks == 16  # half the rate
    assert of("v_mfma_f32_16x16x32_f16", arch="gfx950").clocks == 16
    assert of("v_wmma_f32_16x16x16_f16", arch="gfx1100").clocks == 32
    assert of("v_wmma_i32_16x16x16_iu8", arch="gfx1201").clocks == 8
    # four times the results of one of 16x16 in twice the time, so half the depth is as good
    assert of("v_mfma_f32_32x32x8_f16").clocks == 32
    assert of("v_mfma_f32_32x32x8f16", arch="gfx90a").clocks == 64
    assert of("v_mfma_f32_32x32x4bf16", arch="gfx90a").clocks == 64  # half the rate
    assert of("v_mfma_f32_32x32x16_bf16", arch="gfx950").clocks == 32
    assert of("v_mfma_f32_32x32x8_bf16", arch="gfx950").clocks == 32  # half the rate
    # a sparse instruction multiplies two of four elements in depth
    assert of("v_smfmac_f32_16x16x32_f16").clocks == 16
    assert of("v_add_f32").clocks == 4
    assert of("v_exp_f32").clocks == 16
    assert of("v_add_f32", arch="gfx1100").clocks == 1
    # 64 lanes of 16 bytes, from the LDS at 128 a clock, from the cache at 64
    assert of("ds_read_b128").clocks == of("ds_read2_b64").clocks == 8
    assert of("ds_read_u16").clocks == 1
    # gfx950 reads twice as much, and writes as much
    assert of("ds_read_b128", arch="gfx950").clocks == 4
    assert of("ds_write_b128", arch="gfx950").clocks == 8
    assert of("buffer_load_dwordx4").clocks == 16
    assert of("buffer_load_b128", arch="gfx1100").clocks == 8
    assert of("buffer_load_dwordx4").loads == "memory"
    assert not of("buffer_store_dword").loads


def test_what_waits_wait_for() -> None:
    none = 99
    assert of("s_waitcnt", "vmcnt(3)").waits == (3, none)
    assert of("s_waitcnt", "vmcnt(0) lgkmcnt(1)").waits == (0, 1)
    assert of("s_wait_loadcnt", "0x2", arch="gfx1201").waits == (2, none)
    assert of("s_wait_dscnt", "0x0", arch="gfx1201").waits == (none, 0)
    assert of("s_wait_loadcnt_dscnt", "0x102", arch="gfx1201").waits == (1, 2)


def kernel(**changes: int) -> KernelReport:
    row: dict[str, Any] = {f.name: 0 for f in fields(KernelReport)}
    row |= {n: 64 for n in ("vgprs", "given") if n in row}
    row |= {"name": "f", "arch": "gfx942", "lds": 16384, "workgroup": (256, 1, 1), **changes}
    return KernelReport(**row)


def test_caches_move_what_all_workgroups_load() -> None:
    loads = code(*["buffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen"] * 100, "s_endpgm")
    shared = replace(CHIP, together=16)
    alone, found = (kernel_time(kernel(), loads, chip, 304) for chip in (CHIP, shared))
    # four waves of 64 lanes load 16 bytes a hundred times, at 16 bytes a clock in place of 64
    assert found.traffic_us == pytest.approx(4 * 64 * 16 * 100 / 16 / 2100)
    assert (found.us, found.bound_by) == (found.traffic_us, "cache")
    assert alone.traffic_us == 0
    assert alone.us < found.us
    # units that have no workgroup leave their share to the others
    few = kernel_time(kernel(), loads, shared, 76)
    assert few.traffic_us == pytest.approx(found.traffic_us / 4)


def test_the_published_times_stand_with_their_source() -> None:
    """The constant of gfx950 is that of the page, which a script writes from the table."""
    page = (gpu_published.TABLE.parent / "published-gemms.md").read_text()
    assert f"{CHIPS['gfx950'].together} bytes a clock of each unit" in page
    text = gpu_published.TABLE.read_text()
    assert "github.com/ROCm/aiter, read 2026-11-29" in text
    assert page.count("\n| ") == text.count("\ngfx9") + 2  # rows, and a head of each architecture


def test_a_fit_finds_the_constants_of_its_times() -> None:
    """Times that are made by a fit's own formula."""
    made = gpu_published.Fit(2.0, 0.75, 20)
    chip = CHIPS["gfx950"]
    parts = [gpu_published.Part(b, m, t) for b, m, t in ((1, 0.5, 1e6), (3, 30, 1e6), (5, 1, 3e8))]
    rows = [gpu_published.Row("gfx950", (1, 1, 1), made.estimate(chip, [p]), (p,)) for p in parts]
    found = gpu_published.fitted(chip, rows)
    assert gpu_published.worst(found, chip, rows) == pytest.approx(1)
    assert (found.start, round(found.share, 2), found.rate) == (2.0, 0.75, 20)


def test_the_bound_is_of_the_busiest_unit_or_of_waiting() -> None:
    busy = code(*["v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]"] * 100, "s_endpgm")
    found = kernel_time(kernel(), busy, CHIP, 304)
    assert found.busy["matrix"] == 1600  # four waves on four SIMDs
    assert found.us == pytest.approx(1601 / 2100)
    # twice the workgroups take twice as long; a workgroup more than there are units a round more
    assert kernel_time(kernel(), busy, CHIP, 608).us == pytest.approx(3200 / 2100)
    assert kernel_time(kernel(), busy, CHIP, 305).us == pytest.approx(3200 / 2100)
    # one wave alone waits for its load; four workgroups fill the gap
    load = "buffer_load_dwordx4 v[0:3], v4, s[0:3], 0 offen"
    waits = code(load, "s_waitcnt vmcnt(0)", "v_nop", "s_endpgm")
    one = kernel_time(kernel(), waits, CHIP, 304)
    assert one.alone > FROM_CACHE
    assert one.bound_by == "waiting"
    assert kernel_time(kernel(), waits, CHIP, 4 * 304).us == pytest.approx(one.us)
    large = kernel(lds=65536)  # one workgroup to a unit
    assert kernel_time(large, waits, CHIP, 4 * 304).us == pytest.approx(4 * one.us)


def test_what_memory_gives_bounds_a_launch() -> None:
    few = code("v_nop", "s_endpgm")
    found = kernel_time(kernel(), few, CHIP, 304, 53_000_000)
    assert found.us == found.memory_us == pytest.approx(10)
    assert found.bound_by == "memory"
    assert kernel_time(kernel(), few, CHIP, 304).bound_by != "memory"


def test_bytes_from_the_text_of_the_compiler() -> None:
    """A place counts once; what is read in part, at computed places, of dynamic dims does not."""
    load, kind = "iree_tensor_ext.dispatch.tensor.load", "!iree_tensor_ext.dispatch.tensor"
    lines = [
        "      func.func @a() {",
        f"  %3 = {load} %0, offsets = [0, 0], sizes = [4, 8] : {kind}<..> -> tensor<4x8xf16>",
        f"  %4 = {load} %0, offsets = [0, 0], sizes = [4, 8] : {kind}<..> -> tensor<4x8xf16>",
        f"  %5 = {load} %1, offsets = [0], sizes = [9] : {kind}<..> -> tensor<9xi1>",
        f"  %6 = {load} %1, offsets = [0], sizes = [9] : {kind}<..> -> tensor<?xf32>",
        f"  %7 = {load} %2, offsets = [0], sizes = [1000] : {kind}<..> -> tensor<1000xbf16>",
        f"  %8 = {load} %2, offsets = [9], sizes = [1000] : {kind}<..> -> tensor<1000xbf16>",
        "  %9 = tensor.extract %7[%c0] : tensor<1000xbf16>",
        "  %10 = tensor.extract_slice %8[0] [1] [1] : tensor<1000xbf16> to tensor<1xbf16>",
        f"  {load[:-4]}store %9, %3, offsets = [0] : tensor<5xf8E4M3FNUZ> -> {kind}",
        "      func.func private @b() {",
    ]
    assert moved(lines) == {"a": 4 * 8 * 2 + 9 + 5, "b": 0}


@pytest.mark.parametrize(("target", "register"), [("gfx942", "s8"), ("gfx1201", "ttmp9")])
def test_workgroups_of_different_lengths(target: str, register: str) -> None:
    """A loop of as many turns as the workgroup's number says: the last one takes longest."""
    matrix = "\tv_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]"
    found = functions([
        f'\t.amdgcn_target "amdgcn-amd-amdhsa--{target}"', "f:",
        f"\ts_max_i32 s4, {register}, -7", "\ts_add_i32 s4, s4, 1", ".L1:", *[matrix] * 10,
        "\ts_add_i32 s4, s4, -1", "\ts_cmp_lg_u32 s4, 0", "\ts_cbranch_scc1 .L1", "\ts_endpgm",
        "\t.section .rodata", "\t.amdhsa_kernel f", "\t\t.amdhsa_user_sgpr_count 8",
    ])["f"]  # fmt: skip
    assert found.workgroup == register
    assert not walk(found).exact
    four = kernel_time(kernel(), found, CHIP, 4)
    assert four.exact
    assert four.us == pytest.approx(4 * 160 / 2100, rel=0.05)
    # one begins where the first, the shortest, was; between those that are followed all are known
    more = kernel_time(kernel(), found, CHIP, 305)
    assert more.us == pytest.approx(305 * 160 / 2100, rel=0.05)
    assert kernel_time(kernel(), found, CHIP, 608).us > more.us


@pytest.mark.parametrize("spill", ["vgpr_spills", "scratch"])
def test_what_spills_loses(spill: str) -> None:
    assert kernel_time(kernel(**{spill: 4}), code("s_endpgm"), CHIP, 1).us == inf


def test_workgroups_from_the_text_of_llvm() -> None:
    lines = [
        "define amdgpu_kernel void @a(ptr %0) {",
        "  %1 = tail call range(i32 0, 96) i32 @llvm.amdgcn.workgroup.id.x()",
        "  %2 = call noundef range(i32 0, 2) i32 @llvm.amdgcn.workgroup.id.y()",
        'define dso_local amdgpu_kernel void @"b$c"(ptr %0) {',
        "define amdgpu_kernel void @d(ptr %0) {",
        "  %1 = call i32 @llvm.amdgcn.workgroup.id.x()",
    ]
    assert workgroups(lines) == {"a": 192, "b$c": 1, "d": None}


def test_a_chip_whose_figures_are_not_known() -> None:
    with pytest.raises(TargetError, match="figures of gfx1250 are not known"):
        compile_with_bounds(b"", "gfx1250")


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100", "gfx1201"])
def test_a_compiled_product(arch: str) -> None:
    """The matrix instructions of all trips, the workgroups of the tile, parts as two launches."""
    rng = np.random.default_rng(0)
    net = Programs()
    m, k, n = 64, 2048, 96
    for _ in range(2):
        w = rng.standard_normal((k, n)).astype(np.float16)
        x = np.zeros((m, k), np.float16)
        net.add(lambda b, v, w=w: b.relu(b.dot(v, b.literal(w))), [x], np.zeros((m, n)))
    tile = MmaSchedule((1, 2, 1), (1, 2, 1), 4)
    choices = iter([GemmConfig(tile), GemmConfig(tile, 4)])
    lowered = net.lowered(
        "fuse_pointwise_reduce", target="gpu", arch=arch, gemm_configs=lambda *_: next(choices)
    )
    _, found = compile_with_bounds(lowered.bytecode, arch)
    assert list(found) == ["main"]
    whole = [x for x in found["main"] if x.kernel.name.endswith("64x96x2048_f16xf16xf32")]
    parts = [x for x in found["main"] if "4x64x96x512" in x.kernel.name]
    assert len(found["main"]) == 3
    read = (m * k + n * k + m * n) * 2
    assert [x.time and x.time.memory_us for x in whole] == [
        pytest.approx(read / CHIPS[arch].bandwidth / 1e3)
    ]
    assert [x.workgroups for x in (*whole, *parts)] == [2 * 6, 4 * 2 * 6]
    product = GemmShape(DOT, "half_type", (m, n, k))
    kind = product.intrinsic(arch)
    assert kind is not None
    for launch, depth in ((whole[0], k), (parts[0], k // 4)):
        assert launch.time is not None
        # two waves of a column of pieces each, on SIMDs of their own
        assert launch.time.busy["matrix"] == depth / kind.depth * kind.clocks(CHIPS[arch])
        assert launch.time.exact
    both = time_us(found["main"])
    assert both is not None
    assert both > 2 * LAUNCH_US
    assert time_us([]) is None


def test_kinds_are_what_the_clocks_are_of() -> None:
    """A kind's clocks are those of the instruction that it becomes."""
    from mgx_mlir.passes.lowering.gpu.matmul.mma import INTRINSICS

    names = {
        ("gfx942", dtypes.HALF): "v_mfma_f32_16x16x16_f16",
        ("gfx942", dtypes.INT8): "v_mfma_i32_16x16x32_i8",
        ("gfx942", dtypes.FLOAT): "v_mfma_f32_16x16x4_f32",
        ("gfx90a", dtypes.BF16): "v_mfma_f32_16x16x8bf16",
        ("gfx950", dtypes.FP8E4M3FN): "v_mfma_f32_16x16x32_fp8_fp8",
        ("gfx1201", dtypes.INT8): "v_wmma_i32_16x16x16_iu8",
    }
    for (arch, dtype), name in names.items():
        assert INTRINSICS[arch][dtype].clocks(CHIPS[arch]) == of(name, arch=arch).clocks


def test_arguments_that_the_hardware_loads() -> None:
    """The code that loads them is for firmware that does not, and is jumped over."""
    head = ["s_load_dwordx2 s[2:3], s[0:1], 0x0", "s_waitcnt lgkmcnt(0)", "s_branch .LBB0_0"]
    names, exact = run(*head, ".LBB0_0:", "v_nop")
    assert (names, exact) == (["v_nop", "s_endpgm"], True)
