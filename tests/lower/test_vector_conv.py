"""Convolutions as vector loops against onnxruntime: windows, borders, channels, epilogues."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import mgx_mlir
from mgx_mlir.api.compile import read_model
from mgx_mlir.core.context import new_context
from mgx_mlir.core.ir import ir
from mgx_mlir.core.passes import run_pipeline
from mgx_mlir.passes.lower.module import LowerOptions, lower_to_linalg
from mgx_mlir.passes.lower.vector import convolution as loops
from mgx_mlir.passes.lower.vector.isa import AVX2, AVX512, NEON, Isa, isa_of
from mgx_mlir.passes.pipelines import pipeline
from tests.lower.vector_kernels import run

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

PER_MODEL = 8


class _Net:
    """An ONNX model of convolutions beside each other, each with inputs of its own."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.inputs: dict[str, np.ndarray] = {}
        self.outputs: list[str] = []
        self.vector_kernels = 0

    def draw(self, *dims: int) -> np.ndarray:
        return self.numbers.standard_normal(dims).astype(np.float32)

    def constant(self, array: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def argument(self, *dims: int) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.draw(*dims)
        return name

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def output(self, name: str) -> None:
        self.outputs.append(name)

    def model(self) -> bytes:
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes,
            "convolutions",
            [value(n, TensorProto.FLOAT, a.shape) for n, a in self.inputs.items()],
            [value(n, TensorProto.FLOAT, None) for n in self.outputs],
            self.weights,
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
        made.ir_version = 9
        return onnx.shape_inference.infer_shapes(made).SerializeToString()

    def check(self, threads: int = 1) -> None:
        """As many vector kernels as there should be, each its own dispatch, with right numbers."""
        model = self.model()
        assert _vector_kernels(model) == self.vector_kernels
        program = mgx_mlir.compile(model, target="cpu", threads=threads, cache=False)
        assert not program.executable.fallbacks
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        want = session.run(self.outputs, self.inputs)
        got = program.run(self.inputs)
        for found, expected in zip(got, want, strict=True):
            scale = max(1.0, float(np.abs(expected).max()))
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * scale)


def _vector_kernels(model: bytes) -> int:
    program = read_model(model)
    run_pipeline(program.module, pipeline("cpu"), store=program.store)
    lowered = lower_to_linalg(program, LowerOptions("cpu"))
    ctx = new_context()
    ctx.allow_unregistered_dialects = True
    return str(ir.Module.parse(lowered.bytecode, ctx)).count('"flow.dispatch.workgroups"')


# ---- drawing -------------------------------------------------------------------------------------


def _scaled(net: _Net, y: str, dims: tuple[int, ...]) -> str:
    return net.node("Mul", y, net.argument(dims[0], dims[1], 1, 1))


def _residual(net: _Net, y: str, dims: tuple[int, ...]) -> str:
    return net.node("Relu", net.node("Add", net.argument(*dims), y))


def _clip(net: _Net, y: str, dims: tuple[int, ...]) -> str:
    low, high = (net.constant(np.array(v, np.float32)) for v in (-0.5, 0.75))
    return net.node("Clip", y, low, high)


EPILOGUES: tuple[Callable[[_Net, str, tuple[int, ...]], str], ...] = (
    lambda net, y, dims: y,
    lambda net, y, dims: net.node("Relu", y),
    lambda net, y, dims: net.node("Gelu", y),
    lambda net, y, dims: net.node("Mul", y, net.node("Sigmoid", y)),
    lambda net, y, dims: net.node("HardSwish", y),
    _clip,
    _residual,
    _scaled,
)


def _convolution(net: _Net, epilogue: Callable[[_Net, str, tuple[int, ...]], str]) -> None:
    """A random convolution. Weights of all-different channels, so that no panel is another's."""
    r = net.random
    kernel = [r.choice((1, 1, 2, 3, 3, 5)) for _ in range(2)]
    stride = [r.choice((1, 1, 2, 3)) for _ in range(2)]
    dilation = [r.choice((1, 1, 2)) for _ in range(2)]
    low, high = ([r.randint(0, k // 2 + 1) for k in kernel] for _ in range(2))
    size = [
        max(r.randint(1, 30), d * (k - 1) + 1 - a - b)
        for k, d, a, b in zip(kernel, dilation, low, high, strict=True)
    ]
    counts = [
        (n + a + b - d * (k - 1) - 1) // s + 1
        for n, a, b, k, d, s in zip(size, low, high, kernel, dilation, stride, strict=True)
    ]
    batch, ci = r.randint(1, 3), r.choice((1, 3, 7, 16, 32, 48, 96))
    co = r.choice((16, 16, 32, 48, 64, 80, 96, 24, 5))
    w = net.draw(co, ci, *kernel) / np.float32(np.sqrt(ci * kernel[0] * kernel[1]))
    inputs = [net.argument(batch, ci, *size), net.constant(w)]
    if r.random() < 0.7:
        inputs.append(net.constant(net.draw(co)))
    y = net.node(
        "Conv", *inputs, pads=[*low, *high], strides=stride, dilations=dilation,
        kernel_shape=kernel,
    )  # fmt: skip
    net.output(epilogue(net, y, (batch, co, *counts)))
    net.vector_kernels += co % 16 == 0 and counts[1] >= 4


@pytest.mark.parametrize("seed", range(6))
def test_random(seed: int) -> None:
    net = _Net(seed)
    for i in range(PER_MODEL):
        _convolution(net, EPILOGUES[(i + seed) % len(EPILOGUES)])
    net.check(threads=1 + seed % 2)
