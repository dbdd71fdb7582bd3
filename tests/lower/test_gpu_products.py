"""Products on GPUs: weights stored by row, and the tiles that are chosen for them."""

from __future__ import annotations

import re
from math import prod

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mgx_mlir.core import dtypes
from mgx_mlir.core.chips import CHIPS
from mgx_mlir.core.context import new_context
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lower.gpu_tiles import (
    choose,
    convolution_info,
    matmul_info,
    window_info,
)
from mgx_mlir.targets.child import shared_compiler
from mgx_mlir.targets.flags import gpu_ladder
from mgx_mlir.targets.report import gpu_report
from tests.lower.programs import Programs, check, execute

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
    """As on GPUs, run on the processor; the weights are as many, with a row for each channel."""
    net = products(dtype)
    lowered = net.lowered(STEP, target="gpu")
    assert sorted(a.shape for a in lowered.params.values()) == sorted(
        [(48, 32), (20, 24), (32, 64), (32, 3, 3, 16), (16, 3, 3, 16), (16, 1, 1, 32),
         (16, 3, 3, 3)]
    )  # fmt: skip
    for got, want in zip(execute(lowered, net.inputs), net.want, strict=True):
        check(got, want, tolerance, dtype)


@settings(max_examples=60, deadline=None)
@example("gfx1100", 1, 33, 65, 1)  # no tile that covers it has registers enough
@given(st.sampled_from(sorted(CHIPS)), st.integers(1, 300), extents, extents, extents)
def test_tiles(arch: str, lines: int, along: int, columns: int, depth: int) -> None:
    """A tile is held by the chip, its waves share it evenly, and no row of it is all beyond."""
    chip = CHIPS[arch]
    tile = choose(chip, lines, along, columns, depth)
    assert all(n % w == 0 for n, w in zip(tile.size, tile.waves, strict=True))
    assert prod(tile.waves) <= 4
    rows = tile.size[0] * tile.size[1]
    assert (rows + tile.size[2]) * 16 * 16 * tile.steps * 2 <= chip.lds
    assert tile.registers(chip) <= 112
    assert tile.size[0] <= max(lines, 1)
    assert (tile.size[1] // 2) * 16 < along
    assert tile.workgroups(lines, along, columns) >= 1


def test_small_products_are_spread_over_the_chip() -> None:
    chip = CHIPS["gfx942"]
    # ResNet-50's 3x3 convolutions at 14x14, BERT-base's dots of 128 rows
    assert choose(chip, 14, 14, 256, 2304).workgroups(14, 14, 256) >= 56
    assert choose(chip, 1, 128, 768, 768).workgroups(1, 128, 768) >= 96
    large = choose(chip, 1, 4096, 4096, 4096)
    assert large.size[1] * large.size[2] >= 32


def test_what_is_left_to_the_compiler() -> None:
    with new_context() as ctx, ir.Location.unknown():
        ctx.allow_unregistered_dialects = True
        half, f32 = dtypes.HALF, dtypes.FLOAT
        assert matmul_info("gfx942", half, 128, 768, 768) is not None
        assert matmul_info("gfx942", f32, 128, 768, 768) is None  # 16-bit tiles alone
        assert matmul_info("gfx90a", dtypes.BF16, 128, 768, 768) is None
        assert matmul_info("gfx942", half, 1, 768, 768) is None  # a vector
        assert matmul_info("gfx1103", half, 128, 768, 768) is None  # no such chip in the table
        assert convolution_info("gfx942", half, [1, 14, 14, 256], [3, 3], 256) is not None
        assert convolution_info("gfx942", half, [1, 112, 112, 64], [7, 7], 3) is None
        assert window_info("gfx942", [1, 56, 56, 64], 2) is not None
        assert window_info("gfx942", [1, 56, 56, 3], 2) is None


def test_the_info_on_the_ops() -> None:
    lowered = products("f16").lowered(STEP, target="gpu", arch="gfx942")
    ctx = new_context()
    ctx.allow_unregistered_dialects = True
    text = str(ir.Module.parse(lowered.bytecode, ctx))
    # all but the dot with one row and the convolution of three channels
    assert len(re.findall("compilation_info = #iree_codegen", text)) == 5
    untiled = products("f16").lowered(STEP, target="gpu", arch="gfx942", tiles=False)
    assert "compilation_info" not in str(ir.Module.parse(untiled.bytecode, ctx))


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100"])
def test_compiled_without_spills(arch: str) -> None:
    lowered = products("f16").lowered(STEP, target="gpu", arch=arch)
    made = shared_compiler().run(lowered.bytecode, gpu_ladder(arch)[0].flags)
    report = gpu_report(made.vmfb)
    assert len(report.kernels) == 7
    assert [k.name for k in report.kernels if k.spills or k.scratch] == []
