"""Small weights in tables: numbers of those without, few globals, and what stays outside."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mgx_mlir as mgx
from mgx_mlir.passes.lowering.iree import weight_table
from tests.lowering.programs import lowered_model, text_of

ort = pytest.importorskip("onnxruntime")


class Model:
    """An ONNX graph that is written node by node."""

    def __init__(self, seed: int = 0) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.rng = np.random.default_rng(seed)

    def weight(self, *dims: int, dtype: type = np.float32) -> str:
        name = f"w{len(self.weights)}"
        values = self.rng.standard_normal(dims) / 4
        if np.dtype(dtype).kind in "iu":
            values = self.rng.integers(0, 5, dims)
        self.weights.append(numpy_helper.from_array(np.asarray(values).astype(dtype), name))
        return name

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def bytes(self, dims: Sequence[int | str], *outputs: str) -> bytes:
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)
        results = [onnx.ValueInfoProto(name=n) for n in outputs]
        graph = helper.make_graph(self.nodes, "g", [x], results, self.weights)
        opsets = [helper.make_opsetid("", 18)]
        made = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        return onnx.shape_inference.infer_shapes(made).SerializeToString()


def layers(m: Model, x: str, count: int, width: int = 40, dtype: type = np.float32) -> str:
    for _ in range(count):
        x = m.op("Add", m.op("MatMul", x, m.weight(width, width, dtype=dtype)),
                 m.weight(width, dtype=dtype))  # fmt: skip
        x = m.op("Relu", x)
    return x


def globals_of(model: bytes) -> list[str]:
    return re.findall(r"ml_program\.global private @(\w+)", text_of(lowered_model(model)))


def check(
    model: bytes, x: np.ndarray, rtol: float = 1e-4, **options: object
) -> mgx.CompiledProgram:
    made = mgx.compile(model, "cpu", cache=False, **options)
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    for got, want in zip(made.run({"x": x}), session.run(None, {"x": x}), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol / 10)
    return made


def test_a_deep_net_has_one_global() -> None:
    m = Model()
    model = m.bytes([3, 40], layers(m, "x", 60))
    assert globals_of(model) == ["table_f32"]
    made = check(model, m.rng.standard_normal((3, 40), np.float32))
    assert made.executable.launches("initializer") == []
    assert made.executable.plan["constants"] < 1000, "no weight is in the code"
    (table,) = made.params.values()
    assert table.nbytes == 60 * (40 * 48 * 4 + 40 * 4 + 32), "packed weights, on 64 bytes each"


def test_a_table_for_each_type() -> None:
    """Weights of f16 beside those of f32, and f16 matmuls, which IREE tiles, outside."""
    m = Model()
    half = m.op("Cast", "x", to=TensorProto.FLOAT16)
    for _ in range(16):
        half = m.op("Softmax", m.op("Add", half, m.weight(40, dtype=np.float16)))
    half = m.op("MatMul", half, m.weight(40, 40, dtype=np.float16))
    y = m.op("Add", layers(m, "x", 8), m.op("Cast", half, to=TensorProto.FLOAT))
    model = m.bytes([3, 40], y)
    assert len(globals_of(model)) == 3
    assert {"table_f32", "table_f16"} < set(globals_of(model))
    # f16 has 11 bits: onnxruntime rounds each of 16 softmaxes to it
    check(model, m.rng.standard_normal((3, 40), np.float32), rtol=2e-3, fast_math=False)


def test_weights_that_more_than_kernels_read_stay() -> None:
    """A result that is a weight, and one that a kernel reads too."""
    m = Model()
    shared = m.weight(40, 40)
    y = m.op("MatMul", layers(m, "x", 20), shared)
    result = m.op("Identity", shared)
    check(m.bytes([3, 40], y, result), m.rng.standard_normal((3, 40), np.float32))


def test_large_weights_and_few_weights_stay() -> None:
    few = Model()
    assert "table_f32" not in globals_of(few.bytes([3, 40], layers(few, "x", 3)))
    wide = Model()
    y = layers(wide, "x", 12)
    model = wide.bytes([3, 40], wide.op("MatMul", y, wide.weight(40, 4000)))
    names = globals_of(model)
    assert len(names) == 2
    assert "table_f32" in names
    assert weight_table.LARGEST < 40 * 4000 * 4
    check(model, wide.rng.standard_normal((3, 40), np.float32))


def test_branches_and_variants_share_a_table() -> None:
    m = Model()
    y = layers(m, "x", 10)
    branches = []
    for k in range(2):
        inner = Model(k + 1)
        inner.weights = m.weights
        layers(inner, y, 6)
        value = onnx.ValueInfoProto(name=f"r{k}")
        inner.nodes[-1].output[0] = f"r{k}"
        for node in inner.nodes:
            for names in (node.input, node.output):
                for at, name in enumerate(names):
                    if name.startswith("v") and name != y:
                        names[at] = f"b{k}{name}"
        branches.append(helper.make_graph(inner.nodes, f"b{k}", [], [value]))
    total = m.op("ReduceSum", "x", keepdims=0)
    zero = numpy_helper.from_array(np.float32(0), "zero")
    m.weights.append(zero)
    positive = m.op("Greater", total, "zero")
    z = m.op("If", positive, then_branch=branches[0], else_branch=branches[1])
    model = m.bytes([3, 40], z)
    assert "table_f32" in globals_of(model)
    x = m.rng.standard_normal((3, 40), np.float32)
    for sign in (x, -x):
        check(model, sign)


def test_dynamic_sizes_share_a_table() -> None:
    m = Model()
    model = m.bytes(["n", 40], layers(m, "x", 20))
    dim = mgx.dynamic_dimension(1, 64, {4, 16})
    made = mgx.compile(model, "cpu", cache=False, map_dyn_input_dims={"x": [dim, 40]})
    assert [k for k in made.params if k.startswith("table")] == ["table_f32"]
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    for n in (1, 4, 7, 16):
        x = m.rng.standard_normal((n, 40), np.float32)
        np.testing.assert_allclose(made.run({"x": x})[0], session.run(None, {"x": x})[0],
                                   rtol=1e-4, atol=1e-5)  # fmt: skip
