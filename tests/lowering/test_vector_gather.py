"""Elements gathered by indices that several lines share: types, strips, tails, dynamic dims."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

import mgx_mlir
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.support.models import bytes_of, node

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

TYPES: dict[str, Any] = {
    "FLOAT": np.float32, "FLOAT16": np.float16, "BFLOAT16": ml_dtypes.bfloat16,
    "DOUBLE": np.float64, "INT8": np.int8, "UINT8": np.uint8, "INT64": np.int64,
    "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn,
}  # fmt: skip
# elements of a line, and of the result's: strips of 512, tails of any length
LENGTHS = [(1, 1), (5, 17), (40, 31), (700, 3), (9, 512), (33, 1100)]


@pytest.mark.parametrize("fixed", [False, True])
def test_elements_of_lines(fixed: bool) -> None:
    """Rows of one table of indices, from both ends of the axis, and indices of two axes."""
    rng = np.random.default_rng(3)
    given, want, inputs, outputs, nodes = {}, {}, {}, {}, []
    for i, (length, count) in enumerate(LENGTHS):
        for j, (name, kind) in enumerate(TYPES.items()):
            n, code = f"{i}_{j}", getattr(TensorProto, name)
            x = rng.integers(0, 100, (2, 3, length)).astype(kind)
            dims = (1, count) if j % 2 else (count,)
            at = rng.integers(-length, length, dims).astype(np.int32 if j % 3 else np.int64)
            index = TensorProto.INT32 if j % 3 else TensorProto.INT64
            given |= {f"x{n}": x, f"i{n}": at}
            want[f"y{n}"] = x.view(f"u{x.itemsize}").take(at, 2).view(kind)
            names = [f"{d}{n}" for d in "abc"]
            inputs[f"x{n}"] = (code, list(x.shape) if fixed else names)
            inputs[f"i{n}"] = (
                index,
                list(dims) if fixed else [f"{d}i{n}" for d in "de"[-len(dims) :]],
            )
            outputs[f"y{n}"] = (code, [None] * want[f"y{n}"].ndim)
            nodes.append(node("Gather", f"x{n} i{n}", f"y{n}", axis=-1))
    program = mgx_mlir.compile(bytes_of(nodes, inputs, outputs, opset=19), "cpu", cache=False)
    launched = program.executable.dispatches["main"]
    assert len(launched) == len(nodes), launched
    for name, found in zip(program.output_names, program.run(given), strict=True):
        assert found.tobytes() == want[name].tobytes(), name


def test_no_elements() -> None:
    """Sizes of the run: no lines, no indices."""
    nodes = [node("Gather", "x i", "y", axis=1)]
    inputs = {"x": (TensorProto.FLOAT, ["n", "m"]), "i": (TensorProto.INT64, ["k"])}
    outputs = {"y": (TensorProto.FLOAT, [None, None])}
    program = mgx_mlir.compile(bytes_of(nodes, inputs, outputs, opset=19), "cpu", cache=False)
    for n, m, k in ((0, 4, 3), (5, 4, 0), (5, 0, 0), (6, 4, 20)):
        x, at = np.arange(n * m, dtype=np.float32).reshape(n, m), np.arange(k) % max(m, 1)
        (found,) = program.run({"x": x, "i": at})
        np.testing.assert_array_equal(found, x.take(at, 1))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_images_to_other_sizes_take_two_kernels_or_less(mode: str) -> None:
    """Nearest elements at places that are no multiple: rows are copied, then elements of lines."""
    nodes, held = [node("Resize", "x _ _ s", "y", mode=mode)], {"s": np.int64([1, 8, 57, 31])}
    inputs, outputs = (
        {"x": (TensorProto.FLOAT, [1, 8, 40, 40])},
        {"y": (TensorProto.FLOAT, [None] * 4)},
    )
    program = mgx_mlir.compile(bytes_of(nodes, inputs, outputs, held, opset=19), "cpu", cache=False)
    launched = program.executable.dispatches["main"]
    assert len(launched) <= 2
    assert all("gather" in n or "resize" in n for n in launched), launched
