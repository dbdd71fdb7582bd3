"""Kernels that are alike share their code; those that differ in more than their weights do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from mgx_mlir.compiler.models import read_model
from mgx_mlir.core.context import new_context
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering import equal_kernels, module
from mgx_mlir.passes.lowering.iree import outline
from mgx_mlir.passes.lowering.lower import lower_to_linalg
from mgx_mlir.passes.lowering.options import LowerOptions
from mgx_mlir.passes.pipelines import pipeline
from mgx_mlir.rewrite.passes import run_pipeline
from tests.support.compare import agrees
from tests.support.models import Nodes


class Net(Nodes):
    """A model of one input `x` and one output."""

    def __init__(self, seed: int, *dims: int | str) -> None:
        super().__init__(seed)
        self.dims = list(dims)

    def weight(self, *dims: int) -> np.ndarray:
        return (self.rng.normal(size=dims) / np.sqrt(dims[0])).astype(np.float32)

    def of(self, y: str) -> bytes:
        return self.model({"x": self.dims}, y, opset=18).SerializeToString()


def attention(net: Net, x: str, width: int = 32, heads: int = 2) -> str:
    def part(order: Sequence[int]) -> str:
        y = net.op("Add", net.op("MatMul", x, net.weight(width, width)), net.weight(width))
        y = net.op("Reshape", y, np.array([0, 0, heads, width // heads]))
        return net.op("Transpose", y, perm=order)

    q, k, v = part([0, 2, 1, 3]), part([0, 2, 3, 1]), part([0, 2, 1, 3])
    scores = net.op("Mul", net.op("MatMul", q, k), (width / heads) ** -0.5)
    y = net.op("MatMul", net.op("Softmax", scores, axis=-1), v)
    y = net.op("Reshape", net.op("Transpose", y, perm=[0, 2, 1, 3]), np.array([0, 0, width]))
    return net.op("Add", x, net.op("MatMul", y, net.weight(width, width)))


def layers(*dims: int | str) -> bytes:
    net, x = Net(1, *dims), "x"
    for _ in range(4):
        x = attention(net, x)
        h = net.op("Relu", net.op("MatMul", x, net.weight(32, 64)))
        x = net.op("Add", x, net.op("MatMul", h, net.weight(64, 32)))
        x = net.op("LayerNormalization", x, net.weight(32), net.weight(32), axis=-1)
    return net.of(x)


def convolutions() -> bytes:
    """Blocks that are alike, and some that differ in one thing each."""
    net, x = Net(2, 1, 16, 12, 12), "x"
    last: dict[str, str] = {}
    for low, high, stride in [(0.0, 6.0, 1), (0.0, 6.0, 1), (-1.0, 6.0, 1), (0.0, 6.0, 1)]:
        y = net.op("Conv", x, net.weight(16, 16, 3, 3), net.weight(16), pads=[1] * 4,
                   strides=[stride] * 2)  # fmt: skip
        y = net.op("Clip", y, low, high)
        y = net.op("Conv", y, net.weight(16, 1, 3, 3), net.weight(16), pads=[1] * 4, group=16)
        x = net.op("Add", x, y)
        last[x] = y
    # the sums of a product added to itself, to another tensor, and to both
    w = net.weight(16, 16, 1, 1)
    a, b = list(last.values())[-2:]
    found = [net.op("Add", net.op("Conv", v, w), u) for v, u in [(a, b), (b, a), (a, a)]]
    return net.of(net.op("Concat", *found, axis=1))


def scalars() -> bytes:
    """Kernels of equal ops and types with other numbers, orders and broadcasts."""
    net, x = Net(3, 8, 8), "x"
    found = []
    for number in (1.5, 2.0, 1.5):
        y = net.op("Softmax", net.op("Mul", x, number), axis=-1)
        x = net.op("MatMul", y, net.weight(8, 8))
        found.append(x)
    for shape in ((1, 8), (8, 1), (8,), (1, 8)):
        y = net.op("MatMul", x, net.weight(8, 8))
        x = net.op("Sub", net.op("Exp", net.op("Tanh", y)), net.weight(*shape))
        found.append(x)
    for turned in (False, True, False):
        y = net.op("MatMul", x, net.weight(8, 8))
        x = net.op("Sub", *((x, y) if turned else (y, x)))
        found.append(x)
    return net.of(net.op("Concat", *found, axis=0))


def affine(count: int) -> bytes:
    """Layers whose sums are scaled and moved by a number that each has for itself."""
    net, x = Net(4, 1, 16, "rows", 8), "x"
    for i in range(count):
        y = net.op("Conv", x, net.weight(16, 16, 3, 3), net.weight(16), pads=[1] * 4)
        y = net.op("Add", net.op("Mul", y, [0.3 + i]), 0.1 + i)
        y = net.op("Mul", net.op("Relu", y), 0.5)
        x = net.op("Add", net.op("Mul", net.op("MatMul", y, net.weight(8, 8)), [0.7 + i]), x)
    return net.of(x)


MODELS = {
    "affine": (affine(3), (1, 16, 9, 8)),
    "layers": (layers(1, 12, 32), (1, 12, 32)),
    "open_layers": (layers("batch", "length", 32), (2, 9, 32)),
    "convolutions": (convolutions(), (1, 16, 12, 12)),
    "scalars": (scalars(), (8, 8)),
}


def lowered(model: bytes) -> ir.Module:
    program = read_model(model)
    run_pipeline(program.module, pipeline("cpu"), store=program.store)
    ctx = new_context()
    ctx.allow_unregistered_dialects = True
    return ir.Module.parse(lower_to_linalg(program, LowerOptions("cpu")).bytecode, ctx)


def count(root: ir.Module, name: str) -> int:
    found = Counter[str]()

    def visit(op: ir.Operation) -> ir.WalkResult:
        found[op.name] += 1
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit)
    return found[name]


@pytest.mark.parametrize("name", MODELS)
def test_results(name: str) -> None:
    """Kernels that share code give onnxruntime's results."""
    model, dims = MODELS[name]
    x = np.random.default_rng(7).normal(size=dims).astype(np.float32)
    agrees(model, [{"x": x}], rtol=2e-5, atol=2e-5, threads=1)


def test_layers_share() -> None:
    """Four layers launch the executables of one."""
    for name in ("layers", "open_layers"):
        made = lowered(MODELS[name][0])
        assert count(made, "flow.executable") * 4 == count(made, "flow.dispatch")


def test_numbers_of_layers_are_inputs() -> None:
    """Numbers that differ between layers are inputs, like weights; 0.5, which all have, is not."""
    one, three = lowered(affine(1)), lowered(affine(3))
    assert count(three, "flow.executable") == count(one, "flow.executable")
    kernels = [str(op) for op in three.body.operations if op.operation.name == "flow.executable"]
    assert sum("dense<5.000000e-01>" in text for text in kernels) == 1


@pytest.mark.parametrize("name", MODELS)
def test_equal_descriptions_are_equal_code(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of one description are equal when each of them is built."""
    texts: dict[ir.Attribute, list[str]] = {}

    def compared(root: ir.Module) -> None:
        def visit(op: ir.Operation) -> ir.WalkResult:
            if op.name != "flow.dispatch.workgroups":
                return ir.WalkResult.ADVANCE
            if equal_kernels.CODE in op.attributes:
                alone = ir.Module.create()
                with ir.InsertionPoint(alone.body):
                    copy = op.clone()
                    outline._executable("kernel", copy)
                    copy.erase()
                texts.setdefault(op.attributes[equal_kernels.CODE], []).append(str(alone))
            return ir.WalkResult.SKIP

        root.operation.walk(visit)
        shared = [found for found in texts.values() if len(found) > 1]
        assert shared
        assert all(len(set(found)) == 1 for found in shared)
        outline.outline_kernels(root)

    monkeypatch.setattr(equal_kernels.Codes, "number", lambda self, key: None)
    monkeypatch.setattr(module, "outline_kernels", compared)
    lowered(MODELS[name][0])
    assert texts
