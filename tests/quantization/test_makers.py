"""Quantised models in the forms that their makers write: right on ref, and on cpu (slow)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import mgx_mlir as migraphx
from tests.support.models import Nodes, bytes_of
from tests.support.oracle import ort_session

FP8, FP4 = ml_dtypes.float8_e4m3fn, ml_dtypes.float4_e2m1fn
INT4, UINT4 = ml_dtypes.int4, ml_dtypes.uint4
MS = "com.microsoft"
BATCH = 2


class Net(Nodes):
    """A graph under construction; `exact`: onnxruntime computes it as ONNX says."""

    def __init__(self, opset: int = 21, *, exact: bool = True) -> None:
        super().__init__()
        self.opset, self.exact = opset, exact
        self.feeds: dict[str, np.ndarray] = {}
        self.result = ""

    def const(self, value: Any, dtype: Any = np.float32) -> str:
        return super().const(value, dtype)

    def drawn(self, *dims: int, fan_in: int = 1) -> np.ndarray:
        return (self.rng.standard_normal(dims) / np.sqrt(fan_in)).astype(np.float32)

    def input(self, *dims: int) -> str:
        self.feeds["x"] = self.drawn(BATCH, *dims)
        return "x"

    def qdq(self, x: str, scale: Any, zero: Any, dtype: Any = np.uint8, **more: Any) -> str:
        """An activation through 8 or 16 bits."""
        s, z = self.const(scale), self.const(zero, dtype)
        codes = self.op("QuantizeLinear", x, s, z, **more)
        return self.op("DequantizeLinear", codes, s, z, **more)

    def weight(
        self, *dims: int, axis: int | None = 0, fan_in: int, power_of_two: bool = False,
        zeros: bool = True,
    ) -> str:  # fmt: skip
        """Weights that are i8 in the file, of a scale for each index of an axis."""
        w = self.drawn(*dims, fan_in=fan_in)
        others = tuple(i for i in range(w.ndim) if axis is not None and i != axis)
        scale = np.abs(w).max(others or None) / 127
        if power_of_two:
            scale = 2.0 ** np.ceil(np.log2(scale))
        shape = [-1 if i == axis else 1 for i in range(w.ndim)] if axis is not None else []
        codes = self.const(np.rint(w / np.reshape(scale, shape)), np.int8)
        more = {} if axis is None else {"axis": axis}
        points = [self.const(np.zeros_like(scale), np.int8)] if zeros else []
        return self.op("DequantizeLinear", codes, self.const(scale), *points, **more)

    def float_weight(self, *dims: int, axis: int, fan_in: int) -> str:
        """Weights that are f32 in the file and quantised in the graph."""
        w = self.drawn(*dims, fan_in=fan_in)
        scale = np.abs(w).max(tuple(i for i in range(w.ndim) if i != axis)) / 127
        return self.qdq(self.const(w), scale, np.zeros_like(scale), np.int8, axis=axis)

    def proto(self) -> onnx.ModelProto:
        return self.model(self.feeds, self.result, opset=self.opset, ir_version=10, ms=1)


def torch_pt2e_convolutions() -> tuple[Net, float]:
    """i8 activations with zero points, weights by channel, a residual add."""
    g = Net(exact=False)  # onnxruntime fuses DequantizeLinear without zero points, and fails
    x = g.qdq(g.input(3, 10, 10), 0.02, -3, np.int8)
    a = g.op(
        "Conv", x, g.weight(8, 3, 3, 3, fan_in=27, zeros=False), g.const(g.drawn(8)), pads=[1] * 4
    )
    a = g.qdq(g.op("Relu", a), 0.015, -128, np.int8)
    w = g.weight(8, 1, 3, 3, fan_in=9, zeros=False)
    b = g.qdq(g.op("Conv", a, w, g.const(g.drawn(8)), pads=[1] * 4, group=8), 0.03, 5, np.int8)
    b = g.qdq(g.op("Relu", g.op("Add", a, b)), 0.03, -128, np.int8)
    b = g.op("Flatten", g.qdq(g.op("GlobalAveragePool", b), 0.02, -128, np.int8))
    b = g.op("Gemm", b, g.weight(5, 8, fan_in=8, zeros=False), g.const(g.drawn(5)), transB=1)
    g.result = g.qdq(b, 0.03, 2, np.int8)
    return g, 0.03


def torch_fx_with_a_reduced_range() -> tuple[Net, float]:
    """A Clip of codes between QuantizeLinear and DequantizeLinear, of weights too."""
    g = Net()
    scale = g.const(0.04)

    def clipped(x: str, s: str, zero: Any, low: int, high: int, dtype: Any, **more: Any) -> str:
        z = g.const(zero, dtype)
        codes = g.op("QuantizeLinear", x, s, z, **more)
        codes = g.op("Clip", codes, g.const(low, dtype), g.const(high, dtype))
        return g.op("DequantizeLinear", codes, s, z, **more)

    x = clipped(g.input(3, 8, 8), scale, 60, 0, 127, np.uint8)
    w = g.const(g.drawn(8, 3, 3, 3, fan_in=27))
    w = clipped(w, g.const(np.full(8, 0.004)), np.zeros(8), -127, 127, np.int8, axis=0)
    a = g.op("Relu", g.op("Conv", x, w, g.const(g.drawn(8))))
    g.result = clipped(a, scale, 0, 0, 127, np.uint8)
    return g, 0.04


def nncf_convolutions() -> tuple[Net, float]:
    """f32 weights with pairs of their own, activations u8, ahead of depthwise by channel."""
    g = Net(13)
    x = g.qdq(g.input(3, 10, 10), 0.02, 120)
    w = g.float_weight(8, 3, 3, 3, axis=0, fan_in=27)
    a = g.op("Relu", g.op("Conv", x, w, pads=[1] * 4))
    d = g.qdq(a, np.linspace(0.01, 0.02, 8), np.zeros(8), axis=1)
    w = g.float_weight(8, 1, 3, 3, axis=0, fan_in=9)
    b = g.op("Conv", d, w, g.const(np.ones(8)), pads=[1] * 4, group=8)
    b = g.qdq(g.op("Clip", b, g.const(0), g.const(6)), 6 / 255, 0)
    b = g.qdq(g.op("Conv", b, g.float_weight(8, 8, 1, 1, axis=0, fan_in=8)), 0.03, 130)
    g.result = g.op("Add", g.qdq(a, 0.02, 0), b)
    return g, 0.03


def nncf_attention() -> tuple[Net, float]:
    g = Net(13)
    x = g.qdq(g.input(6, 16), 0.03, 120)

    def linear() -> str:
        w = g.float_weight(16, 16, axis=1, fan_in=16)
        return g.op("Add", g.op("MatMul", x, w), g.const(g.drawn(16)))

    q, k, v = g.qdq(linear(), 0.04, 128), g.qdq(linear(), 0.04, 128), linear()
    s = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 2, 1]))
    s = g.op("Softmax", g.op("Mul", s, g.const(0.25)), axis=-1)
    g.result = g.op("MatMul", s, v)
    return g, 1e-5


def neural_compressor_convolution() -> tuple[Net, float]:
    """u8 activations, an i32 bias with a scale by channel, poolings and Concat in 8 bits."""
    g = Net(13)
    x = g.qdq(g.input(3, 10, 10), 0.02, 128)
    w = g.weight(8, 3, 3, 3, fan_in=27)
    scales = 0.02 * list(g.weights.values())[-2]
    bias = g.const(g.rng.integers(-2000, 2000, 8), np.int32)
    zeros = g.const(np.zeros(8), np.int32)
    bias = g.op("DequantizeLinear", bias, g.const(scales), zeros, axis=0)
    a = g.qdq(g.op("Relu", g.op("Conv", x, w, bias, strides=[2, 2], pads=[1] * 4)), 0.015, 0)
    a = g.op("MaxPool", a, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    a = g.qdq(a, 0.015, 0)
    g.result = g.qdq(g.op("Concat", a, a, axis=1), 0.02, 0)
    return g, 0.02


def neural_compressor_16_bits() -> tuple[Net, float]:
    """Pairs of com.microsoft: u16 activations, i16 weights."""
    g = Net(17)
    x = g.qdq(g.input(6, 16), 1e-4, 32768, np.uint16, domain=MS)
    codes, zero = g.const(g.rng.integers(-3000, 3000, (16, 8)), np.int16), g.const(0, np.int16)
    w = g.op("DequantizeLinear", codes, g.const(1e-4), zero, domain=MS)
    g.result = g.qdq(g.op("MatMul", x, w), 1e-4, 32768, np.uint16, domain=MS)
    return g, 1e-4


def quark_powers_of_two() -> tuple[Net, float]:
    """Scales that are powers of two, an i8 bias, activations in the forms of Vitis AI."""
    g = Net(17)
    x = g.qdq(g.input(3, 10, 10), 2.0**-5, 0, np.int8)
    w = g.weight(8, 3, 3, 3, axis=None, fan_in=27, power_of_two=True)
    codes, zero = g.const(g.rng.integers(-128, 128, 8), np.int8), g.const(0, np.int8)
    bias = g.op("DequantizeLinear", codes, g.const(2.0**-6), zero)
    a = g.op("LeakyRelu", g.op("Conv", x, w, bias, pads=[1] * 4), alpha=26 / 256)
    a = g.qdq(a, 2.0**-4, 0, np.int8)
    a = g.qdq(g.op("Mul", g.op("GlobalAveragePool", a), g.const(1.28)), 2.0**-6, 0, np.int8)
    a = g.op("HardSigmoid", a, alpha=1 / 6, beta=0.5)
    g.result = g.qdq(a, 2.0**-7, 0, np.int8)
    return g, 2.0**-7


def modelopt_fp8() -> tuple[Net, float]:
    g = Net(19)
    x = g.qdq(g.input(6, 16), 0.01, 0, FP8)
    codes = g.const(g.drawn(16, 24, fan_in=16) * 100, FP8)
    w = g.op("DequantizeLinear", codes, g.const(0.01), g.const(0, FP8))
    y = g.qdq(g.op("Softmax", g.op("MatMul", x, w)), 1 / 448, 0, FP8)
    g.result = g.op("MatMul", y, g.const(g.drawn(24, 4)))
    return g, 1e-5


def modelopt_int4_awq() -> tuple[Net, float]:
    """Activations times factors ahead of weights in blocks of 64."""
    g = Net(exact=False)  # onnxruntime rounds the activations of such a product to 8 bits
    x = g.op("Mul", g.input(6, 128), g.const(g.rng.uniform(0.5, 2, 128)))
    codes = g.const(g.rng.integers(-8, 8, (128, 24)), INT4)
    scales = g.const(g.rng.uniform(0.01, 0.02, (2, 24)))
    w = g.op("DequantizeLinear", codes, scales, axis=0, block_size=64)
    g.result = g.op("MatMul", x, w)
    return g, 1e-4


def modelopt_nvfp4() -> tuple[Net, float]:
    """Weights of 4-bit floats in blocks of 16, whose scales are 8-bit floats themselves."""
    g = Net(23, exact=False)
    scales = g.const(g.rng.uniform(8, 200, (4, 24)), FP8)
    scales = g.op("DequantizeLinear", scales, g.const(1e-4))
    codes = g.const(g.drawn(64, 24), FP4)
    w = g.op("DequantizeLinear", codes, scales, axis=0, block_size=16)
    g.result = g.op("MatMul", g.input(64), w)
    return g, 1e-4


def olive_transposed_blocks() -> tuple[Net, float]:
    g = Net()
    codes, zeros = (g.const(g.rng.integers(0, 16, (24, n)), UINT4) for n in (32, 1))
    scales = g.const(g.rng.uniform(0.01, 0.02, (24, 1)))
    w = g.op("DequantizeLinear", codes, scales, zeros, axis=1, block_size=32)
    g.result = g.op("MatMul", g.input(6, 32), g.op("Transpose", w, perm=[1, 0]))
    return g, 1e-5


def tf2onnx_fake_quant() -> tuple[Net, float]:
    """Transposes on both sides of pairs, weights as TensorFlow lays them out."""
    g = Net(13)
    x = g.qdq(g.op("Transpose", g.input(10, 10, 3), perm=[0, 3, 1, 2]), 0.02, 127)
    w = g.qdq(g.const(g.drawn(3, 3, 3, 8, fan_in=27)), 0.005, 0, np.int8)
    w = g.op("Transpose", w, perm=[3, 2, 0, 1])
    a = g.op("Conv", x, w, g.const(np.ones(8)), pads=[0, 0, 1, 1], strides=[2, 2])
    a = g.qdq(g.op("Clip", a, g.const(0), g.const(6)), 6 / 255, 0)
    a = g.op("Transpose", a, perm=[0, 2, 3, 1])
    g.result = g.qdq(g.op("ReduceMean", a, axes=[1, 2], keepdims=0), 0.01, 0)
    return g, 0.01


def tflite_activations() -> tuple[Net, float]:
    """Sigmoid, Mul, Resize and a pooling between i8 pairs."""
    g = Net(13)
    x = g.qdq(g.input(4, 8, 8), 0.02, -1, np.int8)
    m = g.op("Mul", x, g.qdq(g.op("Sigmoid", x), 1 / 256, -128, np.int8))
    m = g.qdq(m, 0.02, -100, np.int8)
    r = g.op(
        "Resize", m, "", g.const([1, 1, 2, 2]), mode="nearest", nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    )  # fmt: skip
    r = g.qdq(r, 0.02, -100, np.int8)
    a = g.op("AveragePool", r, kernel_shape=[2, 2], strides=[2, 2])
    g.result = g.qdq(a, 0.02, -100, np.int8)
    return g, 0.02


def transposed_convolution_by_channel() -> tuple[Net, float]:
    g = Net(13)
    x = g.qdq(g.input(4, 5, 5), 0.02, 120)
    w = g.weight(4, 6, 3, 3, axis=1, fan_in=36)
    g.result = g.qdq(g.op("ConvTranspose", x, w, strides=[2, 2]), 0.03, 128)
    return g, 0.03


FORMS: Sequence[Callable[[], tuple[Net, float]]] = (
    torch_pt2e_convolutions, torch_fx_with_a_reduced_range, nncf_convolutions, nncf_attention,
    neural_compressor_convolution, neural_compressor_16_bits, quark_powers_of_two, modelopt_fp8,
    modelopt_int4_awq, modelopt_nvfp4, olive_transposed_blocks, tf2onnx_fake_quant,
    tflite_activations, transposed_convolution_by_channel,
)  # fmt: skip


@pytest.mark.parametrize(
    "target",
    ["ref", pytest.param("cpu", marks=pytest.mark.slow)],  # a compile takes seconds
)
@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)
def test_forms_of_makers(form: Callable[[], tuple[Net, float]], target: str) -> None:
    """Within a step of the last scale, and hardly an element off by one."""
    net, step = form()
    model = net.proto()
    if net.exact:
        session = ort_session(model)
        [want] = session.run(None, net.feeds)
    else:
        [want] = ReferenceEvaluator(model).run(None, net.feeds)
    got = np.asarray(migraphx.compile(model, target=target).run(net.feeds)[0])
    off = np.abs(got.astype(np.float64) - np.asarray(want))
    assert off.max() <= 1.01 * step
    assert (off > 1e-4).mean() < 0.01


def test_computed_operands_of_dynamic_depth() -> None:
    """The number of zero points in a sum is dynamic: scores times values, as in attention."""
    net = Net()
    left, right = net.qdq("p", 1 / 255, -128, np.int8), net.qdq("x", 0.03, -8, np.int8)
    y = net.qdq(net.op("MatMul", left, right), 0.04, 2, np.int8)
    inputs = {"p": ["b", "n", "n"], "x": ["b", "n", 33]}
    model = bytes_of(net.nodes, inputs, {y: ["b", "n", 33]}, net.weights, opset=21, ir_version=10)
    session = ort_session(model)
    program = migraphx.compile(model, target="cpu")
    for batch, length in ((1, 1), (2, 5), (1, 40)):
        feeds = {"p": net.rng.uniform(0, 1, (batch, length, length)).astype(np.float32),
                 "x": net.drawn(batch, length, 33)}  # fmt: skip
        want, got = session.run(None, feeds)[0], np.asarray(program.run(feeds)[0])
        assert np.abs(got - want).max() <= 0.041, (batch, length)
        assert (got == want).mean() > 0.9
