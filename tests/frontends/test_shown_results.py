"""Results that a user sees in another form than their tensors: fewer axes, strings, maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, parser

import mgx_mlir
from mgx_mlir.core.errors import RunError
from tests.support.oracle import ort_session


def run_both(
    data: bytes, sizes: Sequence[tuple[int, ...]], target: str
) -> mgx_mlir.CompiledProgram:
    """Compile once, compare with onnxruntime at every size of `x`, and return the program."""
    oracle = ort_session(data)
    program = mgx_mlir.compile(data, target)
    for size in sizes:
        x = np.random.default_rng(3).standard_normal(size).astype(np.float32)
        for got, want in zip(program.run({"x": x}), oracle.run(None, {"x": x}), strict=True):
            same(got, want)
    return program


def same(got: Any, want: Any) -> None:
    if isinstance(want, list):
        for a, b in zip(got, want, strict=True):
            assert a == pytest.approx(b, abs=1e-6)
            assert [type(k) for k in a] == [type(k) for k in b]
    elif want.dtype == object:
        assert got.tolist() == want.tolist()
    else:
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def squeezing(dims: str, body: str) -> bytes:
    text = f'<ir_version: 8, opset_import: ["": 18]> g (float[{dims}] x) => (float y) {{{body}}}'
    return parser.parse_model(text).SerializeToString()


OUTER = [(3, 1, 4), (1, 1, 5), (2, 1, 1), (1, 1, 1)]
SQUEEZED = [
    ("N, 1, C", "s = Squeeze (x) t = Sigmoid (s) y = Add (t, s)", OUTER),
    ("N, 1, C", "s = Squeeze (x) y = Softmax <axis: int = -1> (s)", OUTER[:2]),
    ("N, 1", "s = Squeeze (x) k = Constant <value_float: float = 4.0> () y = Mul (s, k)",
     [(3, 1), (1, 1)]),
    ("N, 2, 1, 1", """s = Squeeze (x)
     w = Constant <value: tensor = float[2, 3] {1, 2, 3, 4, 5, 6}> ()
     b = Constant <value_floats: floats = [1.0, 2.0, 3.0]> ()
     m = MatMul (s, w) y = Add (m, b)""", [(4, 2, 1, 1), (1, 2, 1, 1)]),
    ("N, 2, 1, 1", """s = Squeeze (x)
     w = Constant <value: tensor = float[2, 3] {1, 2, 3, 4, 5, 6}> () y = Gemm (s, w)""",
     [(4, 2, 1, 1), (1, 2, 1, 1)]),
]  # fmt: skip


@pytest.mark.parametrize(("dims", "body", "sizes"), SQUEEZED)
def test_squeeze_without_axes(dims: str, body: str, sizes: list[tuple[int, ...]]) -> None:
    run_both(squeezing(dims, body), sizes, "ref")


def test_a_rank_that_a_reader_depends_on() -> None:
    """The axis that is summed over would be another one."""
    body = """s = Squeeze (x) k = Constant <value_ints: ints = [0]> ()
              y = ReduceSum <keepdims: int = 0> (s, k)"""
    program = run_both(squeezing("N, 1, C", body), [(3, 1, 4)], "ref")
    with pytest.raises(RunError, match="expected an extent other than 1 of dim 0, which would be"):
        program.run({"x": np.zeros((1, 1, 4), np.float32)})


def classifier(labels: list[Any], rows: int) -> bytes:
    """Return a linear classifier as skl2onnx writes it: scaled, normalized, and zipped."""
    kind = "strings" if isinstance(labels[0], str) else "ints"
    zipped = {"strings": "classlabels_strings", "ints": "classlabels_int64s"}[kind]
    numbers = np.random.default_rng(1).standard_normal(4 * rows).round(2).tolist()
    nodes = [
        ml("Scaler", ["x"], ["s"], offset=[0.1, 0.2, 0.3], scale=[1.0, 2.0, 3.0]),
        ml("LinearClassifier", ["s"], ["label", "p"], coefficients=numbers[: 3 * rows],
           intercepts=numbers[3 * rows :], post_transform="SOFTMAX" if rows > 1 else "LOGISTIC",
           **{f"classlabels_{kind}": labels}),
        ml("Normalizer", ["p"], ["q"], norm="L1"),
        ml("ZipMap", ["q"], ["z"], **{zipped: labels}),
    ]  # fmt: skip
    return pipeline(nodes, labels)


def ml(op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> Any:
    return helper.make_node(op, inputs, outputs, domain="ai.onnx.ml", **attributes)


def pipeline(nodes: list[Any], labels: list[Any], initial: Sequence[Any] = ()) -> bytes:
    number = TensorProto.STRING if isinstance(labels[0], str) else TensorProto.INT64
    value = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(number, value))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 3])],
        [helper.make_tensor_value_info("label", number, [None]), helper.make_value_info("z", maps)],
        list(initial),
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


@pytest.mark.parametrize(
    ("labels", "rows"), [(["eel", "cat", "dog"], 3), (["no", "yes"], 1), ([7, 5, 9], 3)]
)
def test_labels_and_maps(labels: list[Any], rows: int) -> None:
    run_both(classifier(labels, rows), [(4, 3), (1, 3)], "ref")


def test_strings_are_looked_up_by_computed_places() -> None:
    """Classes are an initializer; the second program is taken from the cache."""
    names = ["eel", "cat", "dog"]
    nodes = [
        helper.make_node("Softmax", ["x"], ["p"], axis=1),
        helper.make_node("ArgMax", ["p"], ["i"], axis=1),
        ml("ArrayFeatureExtractor", ["classes", "i"], ["c"]),
        helper.make_node("Reshape", ["c", "flat"], ["label"]),
        ml("ZipMap", ["p"], ["z"], classlabels_strings=names),
    ]
    initial = [
        helper.make_tensor("classes", TensorProto.STRING, [3], names),
        helper.make_tensor("flat", TensorProto.INT64, [1], [-1]),
    ]
    data = pipeline(nodes, names, initial)
    for _ in range(2):
        program = run_both(data, [(4, 3), (1, 3)], "cpu")
    assert program.output_names == ["label", "z"]
