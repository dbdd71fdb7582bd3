"""Products on GPUs: weights stored by row, and the tiles that are chosen for them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from mgx_mlir.core import dtypes
from mgx_mlir.core.context import new_context
from mgx_mlir.core.ir import ir
from mgx_mlir.hardware.chips import CHIPS
from mgx_mlir.passes.lowering.gpu.matmul.compilation_info import (
    MATMULS,
    MatmulSite,
    window_info,
    windows_info,
)
from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import (
    CONVOLUTION,
    DOT,
    GemmConfig,
    GemmShape,
    alternatives,
    config_from_json,
    default,
    padded_depth,
    shape_from_json,
)
from mgx_mlir.passes.lowering.gpu.matmul.mma import INTRINSICS, intrinsic_of
from mgx_mlir.passes.lowering.gpu.matmul.scalar_tiles import thread_tile
from mgx_mlir.passes.lowering.gpu.matmul.tiles import Extents, MmaSchedule, choose
from mgx_mlir.passes.lowering.options import LowerOptions
from mgx_mlir.passes.lowering.select import Refusal
from mgx_mlir.targets.child import shared_compiler
from mgx_mlir.targets.flags import gpu_ladder
from mgx_mlir.targets.report import gpu_report
from tests.lowering.programs import Programs, check, execute, text_of

extents = st.integers(1, 5000)


def products(dtype: str = "f32") -> Programs:
    """Dots and convolutions with constant weights, in kernels of their own."""
    rng = np.random.default_rng(4)
    net = Programs()
    kind = dtypes.from_name(dtype).np

    def draw(*dims: int) -> np.ndarray:
        return (rng.standard_normal(dims) / 4).astype(kind)

    def dot(m: int, k: int, n: int) -> None:
        x, w = draw(m, k), draw(k, n)
        net.add(lambda b, v: b.relu(b.dot(v, b.literal(w))), [x], np.maximum(wide(x) @ wide(w), 0))

    def convolution(size: int, c: int, f: int, window: int, stride: int) -> None:
        x, w = draw(1, size, size, c), draw(window, window, c, f)
        edge = window // 2
        padded = np.pad(wide(x), ((0, 0), (edge, edge), (edge, edge), (0, 0)))
        cut = np.lib.stride_tricks.sliding_window_view(padded, (window, window), axis=(1, 2))
        want = np.einsum("nhwcij,ijcf->nhwf", cut[:, ::stride, ::stride], wide(w))

        def build(b, v):
            return b.op(
                "convolution", v, b.literal(w), channels_last=True, padding=[edge] * 4,
                stride=[stride] * 2, dilation=[1, 1],
            )  # fmt: skip

        net.add(build, [x], want)

    dot(16, 32, 48)
    dot(5, 24, 20)
    dot(1, 64, 32)
    convolution(8, 16, 32, 3, 1)
    convolution(7, 16, 16, 3, 2)
    convolution(6, 32, 16, 1, 2)
    convolution(6, 3, 16, 3, 1)
    return net


def wide(a: np.ndarray) -> np.ndarray:
    return a.astype(np.float64)


STEP = "fuse_pointwise_reduce"


@pytest.mark.parametrize(("dtype", "tolerance"), [("f32", 1e-6), ("f16", 2e-3)])
def test_weights_stored_by_row(dtype: str, tolerance: float) -> None:
    """Lower as for GPUs, run on the CPU; weights have one row for each channel."""
    net = products(dtype)
    lowered = net.lowered(STEP, target="gpu")
    few = (16, 48) if dtype == "f16" else (16, 3, 3, 3)  # gathered, filled up to 16s
    assert sorted(a.shape for a in lowered.params.values()) == sorted(
        [(48, 32), (20, 24), (32, 64), (32, 3, 3, 16), (16, 3, 3, 16), (16, 1, 1, 32), few]
    )
    for got, want in zip(execute(lowered, net.inputs), net.want, strict=True):
        check(got, want, tolerance, dtype)


def kind_of(arch: str, dtype: str = "half_type"):
    return INTRINSICS[arch][dtypes.from_name(dtype)]


@settings(max_examples=60, deadline=None)
@example("gfx1100", "half_type", 1, 33, 65, 1)  # no tile that covers it has registers enough
@given(
    st.sampled_from(sorted(INTRINSICS)),
    st.sampled_from(["half_type", "bf16_type", "int8_type"]),
    st.integers(1, 300), extents, extents, extents,
)  # fmt: skip
def test_tiles(arch: str, dtype: str, lines: int, along: int, columns: int, depth: int) -> None:
    """A tile is held by the chip, its waves share it evenly, and no row of it is all beyond."""
    chip = CHIPS[arch]
    assume(dtypes.from_name(dtype) in INTRINSICS[arch])  # IREE has none of NVIDIA for int8
    kind, of = kind_of(arch, dtype), Extents(lines, along, columns, depth)
    tile = choose(chip, kind, of)
    assert all(n % w == 0 for n, w in zip(tile.tiles, tile.subgroups, strict=True))
    assert prod(tile.subgroups) <= (8 if chip.is_nvidia else 4)
    assert tile.held(kind) <= (chip.workgroup_lds or chip.lds)
    assert tile.registers(chip, kind, 1 if chip.is_nvidia else 0) <= (
        208 if chip.is_nvidia else 160
    )
    assert tile.tiles[0] <= max(lines, 1)
    assert (tile.tiles[1] // 2) * kind.rows < along
    assert tile.workgroups(kind, of) >= 1


def test_small_products_are_spread_over_the_chip() -> None:
    chip, kind = CHIPS["gfx942"], kind_of("gfx942")
    # ResNet-50's 3x3 convolutions at 14x14, BERT-base's dots of 128 rows
    convolution, dot = Extents(14, 14, 256, 2304), Extents(1, 128, 768, 768)
    assert choose(chip, kind, convolution).workgroups(kind, convolution) >= 56
    assert choose(chip, kind, dot).workgroups(kind, dot) >= 96
    large = choose(chip, kind, Extents(1, 4096, 4096, 4096))
    assert large.tiles[1] * large.tiles[2] >= 32


@pytest.mark.parametrize(("arch", "dims"), [
    ("gfx950", (2974, 768, 2048)), ("gfx950", (384, 3072, 768)), ("gfx942", (1773, 768, 512))
])  # fmt: skip
def test_tiles_of_three_and_six(arch: str, dims: tuple[int, int, int]) -> None:
    """Lanes load as much, and what a wave stores of rows that are cut is two of them at the most:
    powers of two leave half of the units idle, or give them a second round."""
    chip, kind = CHIPS[arch], kind_of(arch)
    tile = choose(chip, kind, Extents(1, *dims, apart=True))
    assert {3, 6} & set(tile.tiles)
    assert prod(tile.subgroups) > 4
    assert tile.loads_evenly(chip, kind)
    assert dims[0] % (tile.rows * 16) == 0 or tile.subgroup[1] <= 2


def test_deep_products_of_few_columns_are_split() -> None:
    """Depths are split where that saves far more than another launch costs; small dots are not."""
    deep = default("gfx942", GemmShape(DOT, "half_type", (128, 128, 65536)))
    assert deep.split >= 8
    assert deep.tile is not None
    assert deep.tile.tiles[0] == 1
    for dims in [(128, 768, 3072), (49, 512, 2048), (4096, 4096, 65536), (16, 4096, 4096)]:
        assert default("gfx942", GemmShape(DOT, "half_type", dims)).split == 1
    # the depth is no multiple of the parts'
    assert default("gfx942", GemmShape(DOT, "half_type", (128, 128, 65521))).split == 1


def test_rows_are_filled_up_where_that_is_worth_a_launch() -> None:
    def depth(arch: str, *dims: int, dtype: str = "half_type") -> int:
        return padded_depth(arch, GemmShape(DOT, dtype, dims))

    assert depth("gfx942", 197, 768, 3071) == 3072
    assert depth("gfx942", 197, 768, 3070) == 3072
    assert depth("gfx1100", 208, 768, 1001) == 1008
    assert depth("gfx942", 197, 768, 1001, dtype="int8_type") == 1008
    assert depth("gfx942", 64, 512, 13) == 13  # a small one
    assert depth("gfx942", 1, 768, 3071) == 3071  # a vector
    for k in (8, 1000, 3072):
        assert depth("gfx942", 197, 768, k) == k


def test_tiles_without_matrix_instructions() -> None:
    def tile(arch: str, *dims: int, dtype: str = "float_type", batch: tuple[int, ...] = ()):
        found = thread_tile(arch, GemmShape(DOT, dtype, dims, batch=batch))
        return None if found is None else (found.size, found.threads)

    assert tile("gfx1100", 1024, 1024, 1024) == ((64, 64), 128)
    assert tile("gfx1100", 128, 3072, 768) == ((64, 64), 256)
    assert tile("gfx1100", 128, 768, 768) == ((32, 32), 128)
    assert tile("gfx1100", 49, 512, 2048) == ((16, 32), 128)
    assert tile("gfx1100", 128, 64, 64, batch=(96,)) == ((64, 64), 128)
    assert tile("gfx1100", 128, 8, 768) is None  # read once
    assert tile("gfx1100", 7, 20, 64, batch=(12,)) == ((7, 32), 112)
    assert tile("gfx1100", 4, 100, 768) == ((4, 32), 128)
    assert tile("gfx1100", 7, 3, 16) == ((7, 32), 112)
    assert tile("gfx1100", 7, 3, 64) is None
    assert tile("gfx942", 128, 768, 768) is None  # has matrix instructions
    assert tile("gfx1100", 128, 768, 768, dtype="half_type") is None
    assert tile("gfx1250", 128, 768, 768) is None


@pytest.mark.parametrize("arch", ["gfx1030", "gfx1100", "sm_89"])
def test_tiles_of_threads_have_several_iterations(arch: str) -> None:
    """The store of a single iteration has no bound in IREE: rows past the last one are written."""
    shapes = [(rows, 64, depth) for rows in range(2, 140) for depth in (1, 2, 8, 24, 32, 33, 64)]
    for batch in ((), (3,)):
        for dims in shapes:
            tile = thread_tile(arch, GemmShape(DOT, "float_type", dims, batch=batch))
            assert (tile is None) == (dims[2] == 1), dims
            assert tile is None or tile.depth < dims[2], dims


def test_the_default_is_among_the_alternatives() -> None:
    for dims in [(128, 768, 3072), (197, 768, 768), (128, 128, 65536)]:
        product = GemmShape(DOT, "half_type", dims)
        found = alternatives("gfx942", product, 9)
        assert found[0] == default("gfx942", product)
        assert len(set(found)) == len(found) == 9
        assert GemmConfig(None) in found


def test_what_is_left_to_the_compiler() -> None:
    def dot(arch: str, dtype: str, *dims: int) -> bool:
        options = LowerOptions("gpu", arch=arch)
        return options.gemm_config(GemmShape(DOT, dtype, dims)).tile is None

    def convolution(*dims: int) -> bool:
        product = GemmShape(CONVOLUTION, "half_type", dims)
        return default("gfx942", product).tile is None

    half = "half_type"
    assert not dot("gfx942", half, 128, 768, 768)
    assert not dot("gfx942", "float_type", 128, 768, 768)
    assert dot("gfx1100", "float_type", 128, 768, 768)  # no matrix instruction
    assert dot("gfx942", "double_type", 128, 768, 768)
    assert dot("gfx942", half, 1, 768, 768)  # a vector
    assert dot("gfx1250", half, 128, 768, 768)  # no such chip in the table
    assert not convolution(1, 14, 14, 256, 3, 3, 256, 1, 1)
    assert convolution(1, 112, 112, 64, 7, 7, 3, 2, 2)
    off = LowerOptions("gpu", arch="gfx942", tiles=False)
    assert off.gemm_config(GemmShape(DOT, half, (128, 768, 768))) == GemmConfig(None)
    with new_context() as ctx, ir.Location.unknown():
        ctx.allow_unregistered_dialects = True
        assert matmul_info("gfx942", GemmShape(DOT, half, (8, 8, 8)), GemmConfig(None)) is None
        assert window_info("gfx942", [1, 56, 56, 64], 2) is not None
        assert "thread = [1, 1, 1, 1, 0, 0]" in str(window_info("gfx942", [1, 56, 56, 3], 2))


def test_a_choice_that_was_found_is_taken() -> None:
    tile = MmaSchedule((1, 1, 2), (1, 1, 1), 2)
    options = LowerOptions(
        "gpu",
        arch="gfx942",
        gemm_configs=lambda p, _: GemmConfig(tile) if p.dims[0] == 16 else None,
    )
    assert options.gemm_config(GemmShape(DOT, "half_type", (16, 32, 64))).tile == tile
    other = GemmShape(DOT, "half_type", (32, 32, 64))
    assert options.gemm_config(other) == default("gfx942", other)


def matmul_info(arch: str, product: GemmShape, config: GemmConfig) -> str | None:
    """Return the compilation info of the first rule that takes a matmul, as text."""
    site: Any = MatmulSite(arch, product, config)
    found = (rule.match(site, site) for rule in MATMULS)
    return next((str(info) for info in found if not isinstance(info, Refusal)), None)


def info_of(arch: str, dtype: str, *dims: int) -> str:
    """Return the compilation info of a dot, as text."""
    with new_context() as ctx, ir.Location.unknown():
        ctx.allow_unregistered_dialects = True
        product = GemmShape(DOT, dtype, dims)
        return str(matmul_info(arch, product, default(arch, product)))


def test_two_matrix_instructions_at_once() -> None:
    """In f16 on CDNA up to gfx942, if the depth has whole pairs of them, or is partial anyway."""
    half = "half_type"
    pair = "virtual_mma_layout<VMFMA_F32_16x16x32_F16, "
    assert pair in info_of("gfx942", half, 64, 64, 96)
    assert pair in info_of("gfx90a", half, 64, 64, 96)
    assert pair in info_of("gfx942", half, 64, 64, 200)
    assert "mma_layout<MFMA_F32_16x16x16_F16, " in info_of("gfx942", half, 64, 64, 80)
    for arch, dtype in (("gfx942", "bf16_type"), ("gfx950", half), ("gfx1100", half)):
        assert "virtual" not in info_of(arch, dtype, 64, 64, 96)


@pytest.mark.parametrize(
    ("arch", "depth", "stages"),
    [("gfx942", 256, 2), ("gfx942", 2304, 3), ("gfx1100", 2304, 2), ("gfx1201", 2304, 2)],
)
def test_a_long_loop_loads_two_turns_ahead(arch: str, depth: int, stages: int) -> None:
    """Chips with many registers load two iterations ahead."""
    found = info_of(arch, "half_type", 48, 512, depth)
    assert f"prefetch_num_stages = {stages}" in found


@pytest.mark.parametrize(
    ("arch", "dtype", "dims", "how"),
    [
        ("gfx942", "bf16_type", (128, 1000, 4096), "iterative-ilp"),
        ("gfx942", "half_type", (128, 1000, 4096), "iterative-ilp"),
        ("gfx942", "half_type", (100, 1024, 512), ""),  # a wave has four instructions in a turn
        ("gfx950", "half_type", (1920, 4224, 4096), "iterative-maxocc"),  # 16 results of a wave
        ("gfx950", "half_type", (2048, 4096, 4096), "iterative-ilp"),  # the same, of eight waves
        ("gfx950", "bf16_type", (100, 300, 200), ""),  # no loop
        ("gfx1100", "half_type", (128, 1000, 4096), ""),
    ],
)
def test_reads_of_the_lds_are_put_ahead(
    arch: str, dtype: str, dims: tuple[int, int, int], how: str
) -> None:
    found = info_of(arch, dtype, *dims)
    assert ("amdgpu-sched-strategy" in found) == bool(how)
    assert how in found


def test_a_unit_that_multiplies_fast_has_large_tiles() -> None:
    """On gfx950 a tile of 8 by 8 matrix instructions waits for what comes from the cache."""
    assert "workgroup = [128, 256, 0]" in info_of("gfx950", "half_type", 2048, 4096, 4096)
    assert "workgroup = [128, 128, 0]" in info_of("gfx950", "half_type", 1920, 4224, 4096)


def test_more_waves_share_what_follows() -> None:
    """1024^3 in f16 on gfx950: four waves, and eight where a gelu follows."""
    plain = GemmShape(DOT, "half_type", (1024, 1024, 1024))
    heavy = replace(plain, heavy=True)
    assert plain == heavy
    found = [default("gfx950", p).tile for p in (plain, heavy)]
    assert [t and prod(t.subgroups) for t in found] == [4, 8]


def test_reads_beside_masks_are_not() -> None:
    """80 channels of 20x20, 3x3, in bf16 on gfx942 had two scalar registers spilled."""
    with new_context() as ctx, ir.Location.unknown():
        ctx.allow_unregistered_dialects = True
        product = GemmShape(CONVOLUTION, "bf16_type", (1, 20, 20, 80, 3, 3, 80, 1, 1))
        found = str(windows_info("gfx942", product, 1, 64))
    assert "mma_kind" in found
    assert "amdgpu-sched-strategy" not in found


def test_more_waves_keep_their_loop() -> None:
    """Unrolled, one of few turns had up to 60 registers of a lane in memory beside a residual."""
    chip, kind = CHIPS["gfx942"], intrinsic_of("gfx942", dtypes.HALF, 4096)
    assert kind is not None
    long, short = (choose(chip, kind, Extents(1, 2048, 4096, k, apart=True)) for k in (4096, 512))
    assert (prod(long.subgroups), prod(short.subgroups)) == (8, 8)
    for k, kept in ((4096, True), (512, True), (64, False)):
        found = info_of("gfx942", "half_type", 2048, 4096, k)
        assert ("amdgpu-unroll-threshold" in found) == kept


def test_a_lane_has_neighbouring_columns() -> None:
    """A lane loads and stores neighbours of a row at once, unless a wave's one tile is partial."""
    assert "col_major = true" in info_of("gfx942", "half_type", 197, 3072, 768)
    assert "col_major = true" in info_of("gfx950", "bf16_type", 1021, 1000, 512)
    assert "col_major" not in info_of("gfx942", "half_type", 16, 40, 512)
    assert "col_major" not in info_of("gfx1100", "half_type", 197, 3072, 768)


def test_sums_begin_with_a_bias() -> None:
    """Sums begin with a bias on CDNA, if the dot has no other reader and tiles have all columns."""

    def begins(m: int, n: int, arch: str = "gfx942", *, twice: bool = False) -> bool:
        net, c = Programs(), np.arange(n).astype(np.float16)
        w = np.random.default_rng(0).standard_normal((64, n)).astype(np.float16)

        def build(b, x):
            y = b.dot(x, b.literal(w))
            z = b.add(b.literal(c), y)
            return b.mul(z, y) if twice else z

        net.add(build, [np.zeros((m, 64), np.float16)], np.zeros((m, n)))
        lowered = net.lowered(STEP, target="gpu", arch=arch)
        module = text_of(lowered)
        found = "arith.bitcast" in module
        # the same row, read once
        assert sum(a.size == n and a.ndim == 1 for a in lowered.params.values()) == 1
        return found

    assert begins(64, 96)
    assert begins(33, 96, "gfx950")
    assert not begins(64, 100)
    assert not begins(64, 96, twice=True)
    assert not begins(1, 96)
    assert not begins(64, 96, "gfx1100")


def test_a_depth_of_one_turn_takes_more_steps() -> None:
    """Without a loop a lane has the operands of few steps at once: one wait for loads, not two."""
    chip, kind = CHIPS["gfx950"], kind_of("gfx950")
    tile = choose(chip, kind, Extents(1, 100, 1024, 512, apart=True))
    assert tile.k_tiles * kind.depth == 512


def test_few_workgroups_are_made_more() -> None:
    """Among tiles with similar bounds the smallest is chosen, so that more units work. With
    gathered rows, which each workgroup recomputes, it is the tile that reads least."""
    chip, kind = CHIPS["gfx942"], intrinsic_of("gfx942", dtypes.HALF, 512)
    assert kind is not None
    of = Extents(7, 7, 512, 4608)
    spread, gathered = choose(chip, kind, of), choose(chip, kind, replace(of, gathered=True))
    assert spread.workgroups(kind, of) > 200
    assert gathered.workgroups(kind, of) < 100


TILE = {"size": [1, 2, 2], "waves": [1, 2, 1], "steps": 4}


def test_choices_and_products_as_json() -> None:
    product = GemmShape(CONVOLUTION, "half_type", (1, 14, 14, 256, 3, 3, 256, 1, 1))
    assert shape_from_json(product.to_json()) == product
    for choice in (GemmConfig(None), GemmConfig(MmaSchedule((1, 2, 2), (1, 2, 1), 4), 8)):
        assert config_from_json(json.loads(json.dumps(choice.to_json()))) == choice
    assert config_from_json({"tile": TILE, "split": 2}) == GemmConfig(
        MmaSchedule((1, 2, 2), (1, 2, 1), 4), 2
    )


@pytest.mark.parametrize(
    "value",
    [
        None, 3, [], {}, {"tile": None}, {"tile": None, "split": 2}, {"tile": TILE, "split": True},
        {"tile": TILE, "split": 0}, {"tile": TILE, "split": 1 << 40}, {"tile": [], "split": 1},
        {"tile": {**TILE, "size": [1, 2]}, "split": 1},
        {"tile": {**TILE, "steps": "4"}, "split": 1},
        {"tile": {**TILE, "size": [1, 2, 1 << 60]}, "split": 1},
        {"tile": {**TILE, "waves": [1, 3, 1]}, "split": 1},
        {"tile": {**TILE, "waves": 3}, "split": 1}, {"tile": {**TILE, "more": 1}, "split": 1},
    ],
)  # fmt: skip
def test_choices_that_are_none(value: object) -> None:
    assert config_from_json(value) is None


@pytest.mark.parametrize(
    "change",
    [{"op": "pooling"}, {"op": 3}, {"dims": [1, 2]}, {"dims": [1, 2, -3]}, {"dims": "123"},
     {"dims": [1, 2, True]}, {"dtype": "string"}, {"dtype": []}, {"layout": "both"},
     {"batch": [0]}, {"batch": 3}, {"batch": [1] * 99},
     {"more": 1}],
)  # fmt: skip
def test_products_that_are_none(change: dict[str, object]) -> None:
    value = GemmShape(DOT, "half_type", (1, 2, 3)).to_json()
    assert shape_from_json(value) is not None
    assert shape_from_json({**value, **change}) is None


def test_the_info_on_the_ops() -> None:
    lowered = products("f16").lowered(STEP, target="gpu", arch="gfx942")
    text = text_of(lowered)
    assert len(re.findall("compilation_info = #iree_codegen", text)) == 7  # one row, too
    untiled = products("f16").lowered(STEP, target="gpu", arch="gfx942", tiles=False)
    assert "compilation_info" not in text_of(untiled)


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_compiled_without_spills(arch: str) -> None:
    lowered = products("f16").lowered(STEP, target="gpu", arch=arch)
    made = shared_compiler().run(lowered.bytecode, gpu_ladder(arch)[0].flags)
    report = gpu_report(made.vmfb)
    assert len(report.kernels) == 7
    assert [k.name for k in report.kernels if k.spills or k.scratch] == []


def test_stages_of_uneven_copies() -> None:
    """Three stages where all lanes load as much, or the same twice: else the compiler hands a
    lane's memory from turn to turn, and crashes now and then (hazard 40)."""
    chip, kind = CHIPS["gfx942"], kind_of("gfx942", "float_type")
    uneven = MmaSchedule((3, 1, 1), (3, 1, 1), 8)  # 128 vectors of weights by 192 lanes
    even = MmaSchedule((4, 1, 2), (2, 1, 1), 8)
    twice = MmaSchedule((1, 2, 2), (1, 2, 2), 2)  # 64 vectors of either by 256 lanes
    assert kind.depth * 8 * 9 == 288
    assert [t.stages(chip, kind, 288) for t in (uneven, even, twice)] == [2, 3, 3]


def test_turns_of_cut_tiles_are_in_pairs() -> None:
    """A turn that is left over waits for what it loads: 170 x 1280 x 11008 in f16 on gfx942 has 43,
    of which 42 are left behind the first."""
    assert "prefetch_num_stages = 2" in info_of("gfx942", "half_type", 170, 1280, 11008)
    assert "prefetch_num_stages = 3" in info_of("gfx942", "half_type", 170, 1280, 10752)
    assert "prefetch_num_stages = 3" in info_of("gfx942", "half_type", 192, 1280, 11008)


@pytest.mark.parametrize(
    ("dtype", "channels", "depth"),
    [("half_type", 80, 16), ("bf16_type", 48, 16), ("half_type", 64, 32), ("int8_type", 96, 32),
     ("half_type", 24, None)],
)  # fmt: skip
def test_channels_that_a_deep_instruction_does_not_divide(
    dtype: str, channels: int, depth: int | None
) -> None:
    """gfx950 has instructions of half the depth: without one the compiler's own tile went through
    scratch memory (Whisper's 80 channels: 260 bytes)."""
    product = GemmShape(CONVOLUTION, dtype, (1, 1, 3000, 384, 1, 3, channels, 1, 1))
    found = product.intrinsic("gfx950")
    assert (found and found.depth) == depth


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
@given(st.sampled_from([dtypes.FLOAT, dtypes.HALF, dtypes.BF16]), extents, extents, extents)
@example(dtypes.FLOAT, 64, 50257, 768)  # GPT-2's logits
@example(dtypes.BF16, 504, 72, 576)
@settings(max_examples=40, deadline=None)
def test_lanes_load_nothing_three_times(
    arch: str, dtype: dtypes.DType, rows: int, columns: int, depth: int
) -> None:
    """Six waves that loaded rows thrice, two turns ahead, crashed the compiler (hazard 40)."""
    chip, kind = CHIPS[arch], intrinsic_of(arch, dtype, depth)
    if kind is None:
        return
    tile = choose(chip, kind, Extents(1, rows, columns, depth, apart=True))
    row = kind.depth * tile.k_tiles * kind.bytes * 16
    turn = 64 * 16 * prod(tile.subgroups)
    assert all((turn // n) % 3 for n in (tile.rows * row, tile.tiles[2] * row) if turn % n == 0)
