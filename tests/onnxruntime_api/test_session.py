"""Equal answers of both packages: inputs and outputs, runs, errors, metadata."""

from __future__ import annotations

import contextlib
import importlib
import threading
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

from tests.onnxruntime_api.conftest import K, W, X, sum_of_two, two_outputs
from tests.support.models import ML, bytes_of, node, parsed_bytes

FEED = {"x": X, "k": K}


def error(ort: ModuleType, name: str) -> type[Exception]:
    state = importlib.import_module(f"{ort.__name__}.capi.onnxruntime_pybind11_state")
    return getattr(state, name)


@pytest.fixture
def session(ort: ModuleType) -> Any:
    return ort.InferenceSession(two_outputs(), providers=["CPUExecutionProvider"])


def test_what_a_session_says_of_its_model(ort: ModuleType, session: Any) -> None:
    said = [(a.name, a.type, a.shape) for a in (*session.get_inputs(), *session.get_outputs())]
    assert said == [
        ("x", "tensor(float)", ["batch", 3]),
        ("k", "tensor(float)", [3]),
        ("y", "tensor(float)", ["batch", 3]),
        ("z", "tensor(float)", ["batch", 3]),
    ]
    assert str(session.get_inputs()[0]) == (
        "NodeArg(name='x', type='tensor(float)', shape=['batch', 3])"
    )
    meta = session.get_modelmeta()
    assert (meta.producer_name, meta.graph_name, meta.domain) == ("me", "g", "org.example")
    assert (meta.description, meta.version) == ("what it is", 7)
    assert meta.custom_metadata_map == {"a": "b"}
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert session.get_provider_options() == {"CPUExecutionProvider": {}}
    assert session.get_overridable_initializers() == []
    assert isinstance(session.get_session_options(), ort.SessionOptions)


@pytest.mark.parametrize("ort", ["ours"], indirect=True)
def test_an_output_has_the_type_of_its_values(ort: ModuleType) -> None:
    """The file states another one, which onnxruntime refuses and MIGraphX ignores."""
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (int64[2] y) { y = Relu(x) }'
    made = ort.InferenceSession(onnx.parser.parse_model(text).SerializeToString())
    [output] = made.get_outputs()
    [y] = made.run(None, {"x": np.array([1, -2], np.float32)})
    assert (output.type, output.shape, y.dtype) == ("tensor(float)", [2], np.float32)


def test_runs(session: Any) -> None:
    y, z = session.run(None, FEED)
    assert np.array_equal(y, X + W)
    assert np.array_equal(z, (X + W) * K)
    found = session.run(["z", "y", "z"], FEED)
    for got, want in zip(found, (z, y, z), strict=True):
        assert np.array_equal(got, want)
    assert len(session.run([], FEED)) == 2
    for rows in (0, 1, 5):  # the batch is dynamic
        x = np.ones((rows, 3), np.float32)
        assert np.array_equal(session.run(["y"], {"x": x, "k": K})[0], x + W)
    assert np.array_equal(session.run(["y"], {"x": X[:, ::-1], "k": K})[0], X[:, ::-1] + W)
    assert np.array_equal(session.run(["y"], {"x": X.tolist(), "k": K})[0], X + W)


@pytest.mark.parametrize(
    ("kind", "names", "feed"),
    [
        (ValueError, None, {"x": X}),
        ("InvalidArgument", None, {**FEED, "q": K}),
        ("InvalidArgument", ["q"], FEED),
        ("InvalidArgument", None, {**FEED, "x": X.astype(np.float64)}),
        ("InvalidArgument", None, {**FEED, "x": X.astype(np.int64)}),
        ("InvalidArgument", None, {**FEED, "x": X[0]}),
        ("InvalidArgument", None, {**FEED, "x": X[:, :2]}),
        (TypeError, "y", FEED),
    ],
)
def test_wrong_runs(ort: ModuleType, session: Any, kind: Any, names: Any, feed: Any) -> None:
    with pytest.raises(error(ort, kind) if isinstance(kind, str) else kind) as found:
        session.run(names, feed)
    if isinstance(kind, str):
        assert str(found.value).startswith("[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : ")
    assert len(session.run(None, FEED)) == 2  # still runs


def test_wrong_models(ort: ModuleType, tmp_path: Any) -> None:
    with pytest.raises(error(ort, "NoSuchFile")):
        ort.InferenceSession(str(tmp_path / "none.onnx"))
    with pytest.raises(error(ort, "InvalidProtobuf")):
        ort.InferenceSession(b"no model at all")
    with pytest.raises(error(ort, "InvalidArgument")):
        ort.InferenceSession(b"")
    with pytest.raises(TypeError):
        ort.InferenceSession(3)


def test_a_terminated_run(ort: ModuleType, session: Any) -> None:
    options = ort.RunOptions()
    options.terminate = True
    with pytest.raises(error(ort, "Fail")):
        session.run(None, FEED, options)
    options.terminate = False
    assert len(session.run(None, FEED, options)) == 2


def test_a_missing_provider_is_left_out_with_a_warning(ort: ModuleType) -> None:
    with pytest.warns(UserWarning, match="CUDAExecutionProvider"):
        made = ort.InferenceSession(
            two_outputs(), providers=["CUDAExecutionProvider", "CPUExecutionProvider"]
        )
    assert made.get_providers() == ["CPUExecutionProvider"]
    with pytest.raises(ValueError, match="provider_options"):
        ort.InferenceSession(
            two_outputs(),
            providers=["CPUExecutionProvider"],
            provider_options=[{}, {}],
            enable_fallback=0,
        )


def test_asynchronous_runs(session: Any) -> None:
    found: list[Any] = []
    done = threading.Event()

    def callback(results: list[Any], data: Any, problem: str) -> None:
        found.append((results, data, problem))
        done.set()

    session.run_async(["y"], FEED, callback, 5)
    assert done.wait(30)
    [(results, data, problem)] = found
    assert np.array_equal(results[0], X + W)
    assert (data, problem) == (5, "")
    done.clear()
    session.run_async(["y"], {**FEED, "x": X[0]}, callback, None)
    assert done.wait(30)
    assert found[1][0] == []
    assert "x" in found[1][2]
    with pytest.raises(ValueError, match="k"):
        session.run_async(["y"], {"x": X}, callback, None)


def test_initializers_that_a_run_may_override(ort: ModuleType) -> None:
    made = ort.InferenceSession(
        parsed_bytes("(float[3] x, float[3] w) => (float[3] y) { y = Add (x, w) }", {"w": W})
    )
    assert [a.name for a in made.get_inputs()] == ["x"]
    assert [a.name for a in made.get_overridable_initializers()] == ["w"]
    assert np.array_equal(made.run(None, {"x": K})[0], K + W)
    assert np.array_equal(made.run(None, {"x": K, "w": K})[0], K + K)
    assert np.array_equal(made.run(None, {"x": K})[0], K + W)


def test_sequences_maps_optionals_and_strings(ort: ModuleType) -> None:
    f = TensorProto.FLOAT
    text = "(seq(float[m,2]) s) => (float[n,2] c) { c = ConcatFromSequence <axis = 0> (s) }"
    made = ort.InferenceSession(parsed_bytes(text))
    assert [(a.type, a.shape) for a in made.get_inputs()] == [("seq(tensor(float))", [])]
    for count in (1, 3):
        parts = [np.full((i + 1, 2), i, np.float32) for i in range(count)]
        assert np.array_equal(made.run(None, {"s": parts})[0], np.concatenate(parts))
    with pytest.raises(error(ort, "InvalidArgument")):
        made.run(None, {"s": np.ones((1, 2), np.float32)})

    text = "(float[n,2] x) => (seq(float[]) s) { s = SplitToSequence <axis = 0> (x) }"
    made = ort.InferenceSession(parsed_bytes(text))
    [rows] = made.run(None, {"x": np.ones((2, 2), np.float32)})
    assert [r.shape for r in rows] == [(1, 2), (1, 2)]
    value = ort.OrtValue.ortvalue_from_numpy(np.ones((2, 2), np.float32))
    [kept] = made.run_with_ort_values(None, {"x": value})
    assert (kept.data_type(), kept.is_tensor(), kept.is_tensor_sequence()) == (
        "seq(tensor(float))", False, True,
    )  # fmt: skip
    with pytest.raises(RuntimeError):
        kept.numpy()

    kind = onnx.TypeProto()
    kind.sequence_type.elem_type.map_type.key_type = TensorProto.STRING
    value_type = kind.sequence_type.elem_type.map_type.value_type
    value_type.tensor_type.elem_type = f
    labels = node("ZipMap", "x", "m", domain=ML, classlabels_strings=["a", "b"])
    maps = onnx.ValueInfoProto(name="m", type=kind)
    made = ort.InferenceSession(bytes_of([labels], {"x": ["n", 2]}, [maps], ml=3))
    assert made.get_outputs()[0].type == "seq(map(string,tensor(float)))"
    [maps] = made.run(None, {"x": np.array([[1, 2]], np.float32)})
    assert maps == [{"a": 1.0, "b": 2.0}]

    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(f, [2]))
    given = onnx.ValueInfoProto(name="o", type=optional)
    result = {"c": (TensorProto.BOOL, [])}
    has = node("OptionalHasElement", "o", "c")
    made = ort.InferenceSession(bytes_of([has], [given], result, opset=18))
    assert made.get_inputs()[0].type == "optional(tensor(float))"
    assert [bool(made.run(None, feed)[0]) for feed in ({}, {"o": None}, {"o": X[0, :2]})] == [
        False, False, True,
    ]  # fmt: skip

    text = "(string[n] a, string[1] b) => (bool[n] c) { c = Equal (a, b) }"
    made = ort.InferenceSession(parsed_bytes(text, opset=19))
    assert made.get_inputs()[0].type == "tensor(string)"
    feed = {"a": np.array(["x", "y"]), "b": np.array(["x"], object)}
    assert made.run(None, feed)[0].tolist() == [True, False]
    with pytest.raises(error(ort, "InvalidArgument")):
        made.run(None, {**feed, "a": K})


def test_an_input_without_a_rank(ort: ModuleType) -> None:
    made = ort.InferenceSession(parsed_bytes("(float[] x) => (float[] y) { y = Neg (x) }"))
    assert made.get_inputs()[0].shape == []
    for x in (X, K, X[None]):
        assert np.array_equal(made.run(None, {"x": x})[0], -x)


def test_outputs_beside_an_input_without_a_rank(ort: ModuleType) -> None:
    text = "(float[] x, float[2,n] v) => (float[] y, float[] z) { y = Neg (x) z = Relu (v) }"
    made = ort.InferenceSession(parsed_bytes(text))
    assert [o.shape for o in made.get_outputs()] == [[], [2, "n"]]


def test_sizes_that_share_a_name_may_differ(ort: ModuleType) -> None:
    made = ort.InferenceSession(sum_of_two())
    assert np.array_equal(made.run(None, {"x": K, "z": K})[0], K + K)
    with (
        pytest.warns(UserWarning, match="compiled again")
        if "mgx" in ort.__name__
        else contextlib.nullcontext()
    ):
        assert np.array_equal(made.run(None, {"x": K, "z": K[:1]})[0], K + K[:1])


def test_types_that_numpy_has_not() -> None:
    import mgx_mlir.onnxruntime as ort

    text = "(bfloat16[2] x) => (bfloat16[2] y) { y = Neg (x) }"
    made = ort.InferenceSession(parsed_bytes(text))
    assert made.get_inputs()[0].type == "tensor(bfloat16)"
    x = np.array([1, -2], ml_dtypes.bfloat16)
    assert np.array_equal(made.run(None, {"x": x})[0], -x)
