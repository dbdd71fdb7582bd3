"""QDQ models of attention and GELU, of dynamic batch and length, against onnxruntime as written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import mgx_mlir
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.support.models import Nodes
from tests.support.oracle import ort_session


@dataclass(frozen=True)
class Net:
    """heads of `head`; activations signed or not, symmetric or not; weights scaled by channel;
    a mask that is added, or that chooses; open: batch and length."""

    heads: int
    head: int
    signed: bool = False
    symmetric: bool = False
    by_channel: bool = False
    chosen: bool = False
    is_dynamic: bool = True


class _Graph(Nodes):
    """Nodes of a QDQ model: each value is quantised by a range that fits it."""

    def __init__(self, net: Net, seed: int) -> None:
        super().__init__(seed)
        self.net = net
        # factor of each range: scales in simple ratios would make ties in rounding
        self.factors: dict[tuple[float, float], float] = {}

    def quantised(self, x: str, low: float, high: float) -> str:
        """Quantise and dequantise a value of [low, high]."""
        info = np.iinfo(np.int8 if self.net.signed else np.uint8)
        if self.net.symmetric:
            high = max(-low, high)
            low = -high
        factor = self.factors.setdefault((low, high), self.rng.uniform(0.9, 1.1))
        scale = factor * (high - low) / 255
        zero = np.rint(info.min - factor * low / scale)
        parameters = [
            self.const(np.float32(scale)),
            self.const(np.clip(zero, info.min, info.max).astype(info.dtype)),
        ]
        return self.op("DequantizeLinear", self.op("QuantizeLinear", x, *parameters), *parameters)

    def product(self, x: str, depth: int, columns: int) -> str:
        w = self.rng.integers(-127, 128, (depth, columns)).astype(np.int8)
        base = 1.2 / 127 / np.sqrt(depth)
        scale = base * self.rng.uniform(0.5, 1, columns) if self.net.by_channel else base
        one = np.asarray(scale, np.float32)
        zero = self.const(np.zeros(one.shape, np.int8))
        attributes = {"axis": 1} if self.net.by_channel else {}
        held = self.op("DequantizeLinear", self.const(w), self.const(one), zero, **attributes)
        y = self.quantised(self.op("MatMul", x, held), -4, 4)
        bias = self.const(self.rng.standard_normal(columns).astype(np.float32) / 4)
        return self.quantised(self.op("Add", y, bias), -4, 4)

    def split(self, x: str, order: list[int]) -> str:
        dims = self.const(np.array([0, 0, self.net.heads, self.net.head]))
        y = self.quantised(self.op("Reshape", x, dims), -4, 4)
        return self.quantised(self.op("Transpose", y, perm=order), -4, 4)

    def scaled(self, x: str) -> str:
        factor = self.const(np.float32(self.net.head**-0.25))
        return self.quantised(self.op("Mul", x, factor), -2, 2)


def _model(net: Net, seed: int) -> tuple[bytes, float]:
    """Return a model, and the step of its result."""
    g, width = _Graph(net, seed), net.heads * net.head
    x = g.quantised("x", -3, 3)
    q, k, v = (
        g.split(g.product(x, width, width), order)
        for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    )
    scores = g.quantised(g.op("MatMul", g.scaled(q), g.scaled(k)), -6, 6)
    if net.chosen:
        masked = g.op("Where", "mask", scores, g.const(np.float32(-1e4)))
    else:
        masked = g.quantised(g.op("Add", scores, "mask"), -12, 6)
    shares = g.quantised(g.op("Softmax", masked, axis=-1), 0, 1)
    y = g.quantised(g.op("MatMul", shares, v), -4, 4)
    y = g.quantised(g.op("Transpose", y, perm=[0, 2, 1, 3]), -4, 4)
    y = g.op("Reshape", y, g.const(np.array([0, 0, width])))
    y = g.product(y, width, width)
    y = g.quantised(g.op("Add", y, x), -6, 6)
    ones = [g.const(g.rng.uniform(0.5, 1, width).astype(np.float32)) for _ in range(2)]
    y = g.quantised(g.op("LayerNormalization", y, *ones), -4, 4)
    y = g.product(y, width, 2 * width)
    e = g.quantised(g.op("Erf", g.op("Div", y, g.const(np.float32(np.sqrt(2))))), -1, 1)
    e = g.quantised(g.op("Add", e, g.const(np.float32(1))), 0, 2)
    y = g.op("Mul", y, g.op("Mul", e, g.const(np.float32(0.5))))
    y = g.quantised(y, -1, 4)
    dims: list[Any] = ["b", "s"] if net.is_dynamic else [2, 9]
    g.op("Identity", y, into=["out"])
    kind = TensorProto.BOOL if net.chosen else TensorProto.FLOAT
    inputs = {"x": [*dims, width], "mask": (kind, [dims[0], 1, 1, dims[1]])}
    model = g.model(inputs, {"out": [*dims, 2 * width]})
    return model.SerializeToString(), float(g.weights[g.nodes[-2].input[1]])


NETS = [
    Net(3, 20),
    Net(2, 33, signed=True, by_channel=True, chosen=True),
    Net(2, 64, signed=True, symmetric=True, is_dynamic=False),
]


@pytest.mark.parametrize("net", NETS, ids=str)
def test_attention(net: Net) -> None:
    """Integers are those of the graph: only what lies half way between two steps may differ."""
    data, step = _model(net, 0)
    session = ort_session(data, optimised=False)
    program = mgx_mlir.compile(data, "cpu", cache=False)
    isa = isa_of("host")
    if isa is not None and isa.byte_dot:
        assert isinstance(program, IreeProgram)
        assert not program.executable.fallbacks
        products = [k.name for k in program.kernels if "dot" in k.name]
        assert len(products) == 7
        assert all(name.startswith("cpu::quant_dot_") for name in products), products
    rng = np.random.default_rng(1)
    sizes = [(2, 9), (1, 1), (3, 37), (1, 130)] if net.is_dynamic else [(2, 9)]
    for batch, length in sizes:
        x = rng.standard_normal((batch, length, net.heads * net.head)).astype(np.float32)
        seen = rng.uniform(size=(batch, 1, 1, length)) < 0.8
        mask = seen if net.chosen else np.where(seen, 0, -12).astype(np.float32)
        want = np.asarray(session.run(None, {"x": x, "mask": mask})[0])
        got = np.asarray(program.run({"x": x, "mask": mask})[0])
        off = np.abs(got - want) / step
        assert (off > 0.5).mean() < 0.005, f"{batch} x {length}: {(off > 0.5).mean()}"
        assert off.max() < 2.5, f"{batch} x {length}: {off.max()}"
