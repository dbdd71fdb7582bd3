"""Linear resizing of images as vector loops, against float64."""

from __future__ import annotations

import numpy as np
import onnx.helper
import onnx.numpy_helper
import pytest

import mgx_mlir
from mgx_mlir.dialects.migraphx.resize import Resize
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.lowering.programs import check
from tests.support.compare import agrees
from tests.support.models import bytes_of, node
from tests.support.oracle import ort_session

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

# (order of the dims ahead of it, scales of N, C, H, W, coordinates)
CASES = [
    ((1, 1, 2, 2), "half_pixel"),
    ((1, 1, 2, 2), "align_corners"),
    ((1, 1, 3, 2), "pytorch_half_pixel"),
    ((1, 1, 0.5, 0.75), "half_pixel"),
    ((1, 1, 1.7, 1.3), "asymmetric"),
    ((1, 1, 1, 2.5), "half_pixel"),
    ((1, 1, 3, 1), "half_pixel"),
    ((1, 2, 2, 1), "half_pixel"),  # channels follow: W in place of them
    ((1, 3, 1, 1), "half_pixel"),
]
# strips of 512 columns, workgroups of some rows, tails of any length
SIZES = [(1, 1, 1, 1), (2, 3, 7, 5), (1, 2, 33, 17), (3, 1, 2, 600), (1, 2, 300, 3), (2, 8, 9, 16)]


def _program(kind: str) -> tuple[mgx_mlir.IreeProgram, bytes]:
    code = getattr(onnx.TensorProto, kind)
    nodes, held, outputs = [], {}, {}
    for i, (scales, mode) in enumerate(CASES):
        held[f"s{i}"] = np.float32(scales)
        nodes.append(node("Resize", f"x _ s{i}", f"y{i}", mode="linear",
                          coordinate_transformation_mode=mode))  # fmt: skip
        outputs[f"y{i}"] = (code, [f"{d}{i}" for d in "nchw"])
    model = bytes_of(nodes, {"x": (code, list("nchw"))}, outputs, held, opset=18)
    return mgx_mlir.compile(model, "cpu", cache=False, threads=2), model


@pytest.fixture(scope="module")
def program() -> tuple[mgx_mlir.IreeProgram, bytes]:
    return _program("FLOAT")


def test_sizes(program: tuple[mgx_mlir.IreeProgram, bytes]) -> None:
    made, _ = program
    assert not made.executable.fallbacks
    kernels = [n for n in made.executable.dispatches["main"] if n.endswith("_resize")]
    assert len(kernels) == len(CASES)
    rng = np.random.default_rng(0)
    for dims in SIZES:
        x = rng.standard_normal(dims).astype(np.float32)
        for (scales, mode), y in zip(CASES, made.run({"x": x}), strict=True):
            want = Resize.reference(
                x.astype(np.float64), scales=scales, mode="linear",
                coordinate_transformation_mode=mode,
            )  # fmt: skip
            check(y, want, 1e-6, f"{dims} by {scales}, {mode}")


def test_special_numbers(program: tuple[mgx_mlir.IreeProgram, bytes]) -> None:
    """NaN and infinities are where onnxruntime has them; no elements are none."""
    made, model = program
    x = np.random.default_rng(1).standard_normal((1, 2, 9, 20)).astype(np.float32)
    x[0, 0, 3, 4], x[0, 1, 8, 19], x[0, 1, 0, 0] = np.nan, np.inf, -np.inf
    found = made.run({"x": x})
    session = ort_session(model)
    for (scales, mode), y, want in zip(CASES, found, session.run(None, {"x": x}), strict=True):
        # along axes that keep their extent onnxruntime weighs neighbours by 0, which is NaN of
        # an infinity
        seen = np.isfinite(want)
        assert not np.isfinite(y).all(), (scales, mode)
        np.testing.assert_allclose(y[seen], want[seen], rtol=1e-4, atol=1e-5)
    for dims in ((0, 2, 3, 4), (2, 0, 3, 4), (1, 1, 0, 4), (1, 1, 3, 0)):
        for (scales, _), y in zip(CASES, made.run({"x": np.zeros(dims, np.float32)}), strict=True):
            assert y.shape == tuple(int(d * s) for d, s in zip(dims, scales, strict=True))


def test_narrow() -> None:
    """16-bit floats are weighed in f32 and rounded once."""
    made, _ = _program("FLOAT16")
    x = np.random.default_rng(2).standard_normal((1, 3, 11, 30)).astype(np.float16)
    for (scales, mode), y in zip(CASES, made.run({"x": x}), strict=True):
        want = Resize.reference(
            x.astype(np.float64), scales=scales, mode="linear", coordinate_transformation_mode=mode
        )
        check(y.astype(np.float64), want, 1e-3, f"{scales}, {mode}")


def test_fixed_dims() -> None:
    """Resizes by scales and to sizes are one kernel each, with onnxruntime's results."""
    nodes, held = [], {}
    for i, mode in enumerate(["half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners"]):
        for kind, numbers in (
            ("s", np.float32([1, 1, 2, 3])), ("w", np.int64([2, 3, 13, 40])),
            ("v", np.int64([2, 3, 20, 1])),
        ):  # fmt: skip
            held[f"{kind}{i}"] = numbers
            operands = f"x _ s{i}" if kind == "s" else f"x _ _ {kind}{i}"
            nodes.append(node("Resize", operands, f"y{kind}{i}", mode="linear",
                              coordinate_transformation_mode=mode))  # fmt: skip
    outputs = {n.output[0]: [None] * 4 for n in nodes}
    model = bytes_of(nodes, {"x": [2, 3, 7, 13]}, outputs, held, opset=18)
    x = np.random.default_rng(3).standard_normal((2, 3, 7, 13)).astype(np.float32)
    made = agrees(model, [{"x": x}], rtol=0, atol=1e-6, scaled=True)
    kernels = [n for n in made.executable.dispatches["main"] if n.endswith("_resize")]
    assert len(kernels) == len(nodes) - 2  # half_pixel is the other one where lengths are above 1
