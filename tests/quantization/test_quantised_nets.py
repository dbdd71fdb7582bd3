"""Convolution nets that onnxruntime has quantised: its results, and values in 8 bits throughout."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

import mgx_mlir
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.support.oracle import ort_session
from zoo.made import Graph

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

DIMS = (3, 14, 18)


class Images(CalibrationDataReader):
    """Some drawn images."""

    def __init__(self) -> None:
        self.images: Iterator[np.ndarray] = iter(images(3)[:, None])

    def get_next(self) -> dict[str, np.ndarray] | None:
        found = next(self.images, None)
        return None if found is None else {"x": found}


def images(count: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal((count, *DIMS)).astype(np.float32)


def net() -> onnx.ModelProto:
    """A strided convolution, a pooling, a depthwise one, a residual, a concat and a mean."""
    g = Graph(3)
    g.input("x", (1, *DIMS))

    def conv(x: str, inputs: int, outputs: int, k: int, stride: int = 1, groups: int = 1) -> str:
        w = g.weight(outputs, inputs // groups, k, k, fan_in=inputs // groups * k * k)
        return g.op(
            "Conv", x, w, g.vector(outputs),
            kernel_shape=[k, k], strides=[stride] * 2, pads=[k // 2] * 4, group=groups,
        )  # fmt: skip

    y = g.op("Relu", conv("x", 3, 20, 3, 2))
    y = g.op("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    z = g.op("Relu", conv(y, 20, 20, 3, groups=20))
    y = g.op("Relu", g.op("Add", conv(z, 20, 20, 1), y))
    y = g.op("Concat", y, conv(y, 20, 12, 3), axis=1)
    y = g.op("Flatten", g.op("GlobalAveragePool", conv(y, 32, 32, 1)))
    g.output(g.op("MatMul", y, g.weight(32, 10)), "y", (1, 10))
    return g.model()


@pytest.mark.parametrize(
    ("form", "signed", "is_dynamic"),
    [
        (QuantFormat.QDQ, False, True),
        (QuantFormat.QDQ, True, False),
        (QuantFormat.QOperator, False, False),
        (QuantFormat.QOperator, True, True),
    ],
)
def test_nets(form: QuantFormat, signed: bool, is_dynamic: bool, tmp_path: Path) -> None:
    """Within one step of onnxruntime's; no product and no convolution is of floats."""
    whole, path = tmp_path / "net.onnx", tmp_path / "quantised.onnx"
    onnx.save(net(), whole)
    quantize_static(
        whole, path, Images(), quant_format=form, per_channel=signed, reduce_range=True,
        activation_type=QuantType.QInt8 if signed else QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )  # fmt: skip
    model = onnx.load(path)
    if is_dynamic:
        for v in (*model.graph.input, *model.graph.output):
            v.type.tensor_type.shape.dim[0].dim_param = "n"
        del model.graph.value_info[:]
        onnx.save(model, path)
    x = images(2 if is_dynamic else 1)
    want = ort_session(path).run(None, {"x": x})[0]
    program = mgx_mlir.compile(str(path), target="cpu", threads=1)
    (got,) = program.run([x])
    step = np.diff(np.unique(want)).min()
    assert np.abs(got - want).max() <= 1.01 * step
    names = [k.name for k in program.kernels]
    assert sum("quant_convolution" in n for n in names) == 5
    assert sum("quant_dot" in n for n in names) == 1
    assert not any(n.startswith(("cpu::convolution", "cpu::dot")) for n in names), names
