"""Nets of many images whose first layers run image by image (passes/loop_images.py)."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import mgx_mlir
from tests.support.oracle import ort_session
from zoo.made import Graph

SIDE = 160  # columns of an image, so that a layer of 16 channels has 1.6 MB
LOOP = '"migraphx.loop"'


def net(batch: int | str) -> bytes:
    """Three convolutions with a shortcut, a pooling, and a matmul of the mean of each channel."""
    g = Graph(3)
    x = g.input("x", [batch, 3, SIDE, SIDE])
    first = g.op("Relu", g.op("Conv", x, g.weight(16, 3, 3, 3), g.weight(16), pads=[1] * 4))
    second = g.op("Conv", first, g.weight(16, 16, 3, 3), g.weight(16), pads=[1] * 4)
    both = g.op("Relu", g.op("Add", second, first))
    small = g.op("MaxPool", both, kernel_shape=[2, 2], strides=[2, 2])
    third = g.op("Conv", small, g.weight(32, 16, 1, 1), g.weight(32))
    mean = g.op("Flatten", g.op("GlobalAveragePool", third))
    g.output(g.op("Gemm", mean, g.weight(32, 10), g.weight(10)), "y", [batch, 10])
    return g.model().SerializeToString()


def images(count: int) -> np.ndarray:
    return np.random.default_rng(count).standard_normal((count, 3, SIDE, SIDE)).astype(np.float32)


def check(program: mgx_mlir.CompiledProgram, model: bytes, count: int) -> None:
    x = images(count)
    (want,) = ort_session(model).run(None, {"x": x})
    (got,) = program.run({"x": x})
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())


@pytest.mark.parametrize("threads", [1, 2])
def test_any_number_of_images(threads: int) -> None:
    model = net("n")
    program = mgx_mlir.compile(model, "cpu", threads=threads, cache=False)
    assert LOOP in str(program.program.module)
    for count in (1, 2, 5, 1):
        check(program, model, count)
    assert program.run({"x": images(0)})[0].shape == (0, 10)


def test_a_fixed_number_of_images() -> None:
    model = net(4)
    program = mgx_mlir.compile(model, "cpu", threads=1, cache=False)
    assert LOOP in str(program.program.module)
    check(program, model, 4)


@pytest.mark.parametrize(("batch", "threads"), [(1, 1), ("n", 8)])
def test_one_image_and_many_threads_have_no_loop(batch: int | str, threads: int) -> None:
    program = mgx_mlir.compile(net(batch), "cpu", threads=threads, cache=False)
    assert LOOP not in str(program.program.module)


def test_programs_for_few_and_many_threads_are_kept_apart() -> None:
    few, more, many = (mgx_mlir.CompileOptions("cpu", threads=n).key() for n in (1, 4, 8))
    assert few == more != many


def test_a_pass_is_left_out_before_any_pass_is_loaded() -> None:
    code = "import mgx_mlir; mgx_mlir.CompileOptions('cpu', disable=['loop_images'])"
    subprocess.run([sys.executable, "-c", code], check=True)
