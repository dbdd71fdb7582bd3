"""The steps of the examples in onnxruntime's Python documentation, on the models of its package.

Load and predict, metadata, common errors, profiling, and the bindings of its API page; each for
both packages, and the snippets of docs/onnxruntime.md.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnxruntime.datasets import get_example

from tests.support.models import parsed_bytes

ROOT = Path(__file__).resolve().parents[2]


def test_load_and_predict(ort: ModuleType) -> None:
    session = ort.InferenceSession(
        get_example("sigmoid.onnx"), providers=ort.get_available_providers()
    )
    [i], [o] = session.get_inputs(), session.get_outputs()
    assert (i.name, i.shape, i.type) == ("x", [3, 4, 5], "tensor(float)")
    assert (o.name, o.shape, o.type) == ("y", [3, 4, 5], "tensor(float)")
    x = np.random.default_rng(3).random((3, 4, 5)).astype(np.float32)
    [y] = session.run([o.name], {i.name: x})
    assert np.allclose(y, 1 / (1 + np.exp(-x.astype(np.float64))), atol=1e-6)


def test_labels_and_probabilities_of_a_classifier(ort: ModuleType) -> None:
    session = ort.InferenceSession(get_example("logreg_iris.onnx"))
    assert [a.type for a in session.get_outputs()] == [
        "tensor(int64)", "seq(map(int64,tensor(float)))",
    ]  # fmt: skip
    name = session.get_inputs()[0].name
    x = np.array([[5.1, 3.5], [6.7, 3.1], [5.9, 3.0]], np.float32)
    labels, chances = session.run(None, {name: x})
    assert labels.dtype == np.int64
    for row, label in zip(chances, labels, strict=True):
        assert sum(row.values()) == pytest.approx(1, abs=1e-5)
        assert max(row, key=row.__getitem__) == label
    [again] = session.run([session.get_outputs()[0].name], {name: x.tolist()})
    assert np.array_equal(again, labels)


def test_common_errors(ort: ModuleType) -> None:
    session = ort.InferenceSession(get_example("logreg_iris.onnx"))
    name, label = session.get_inputs()[0].name, session.get_outputs()[0].name
    good = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    for names, feed in (
        ([label], {name: good.astype(np.float64)}),
        (["misspelled"], {name: good}),
        ([label], {"misspelled": good}),
        ([label], {name: np.ones((1, 2, 3, 4), np.float32)}),
    ):
        with pytest.raises(Exception, match=r"INVALID_ARGUMENT|missing"):
            session.run(names, feed)
    assert session.run([label], {name: good})[0].shape == (3,)


def test_metadata(ort: ModuleType) -> None:
    path = get_example("logreg_iris.onnx")
    meta, proto = ort.InferenceSession(path).get_modelmeta(), onnx.load(path)
    assert meta.producer_name == proto.producer_name
    assert meta.graph_name == proto.graph.name
    assert meta.version == proto.model_version
    assert meta.description == proto.doc_string
    assert meta.custom_metadata_map == {p.key: p.value for p in proto.metadata_props}


def test_profile(ort: ModuleType, tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "p")
    session = ort.InferenceSession(get_example("mul_1.onnx"), options)
    x = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    session.run(None, {session.get_inputs()[0].name: x})
    assert any(e["cat"] == "Session" for e in json.loads(Path(session.end_profiling()).read_text()))


def test_values_on_a_device(ort: ModuleType) -> None:
    session = ort.InferenceSession(get_example("mul_1.onnx"))
    x = ort.OrtValue.ortvalue_from_numpy(np.array([[1, 2], [3, 4], [5, 6]], np.float32))
    assert x.device_name() == "cpu"
    assert x.is_tensor()
    i, o = session.get_inputs()[0].name, session.get_outputs()[0].name
    [y] = session.run([o], {i: x})
    assert np.array_equal(y, x.numpy() ** 2)
    binding = session.io_binding()
    binding.bind_input(
        name=i, device_type=x.device_name(), device_id=0, element_type=np.float32,
        shape=x.shape(), buffer_ptr=x.data_ptr(),
    )  # fmt: skip
    place = ort.OrtValue.ortvalue_from_shape_and_type([3, 2], np.float32, "cpu", 0)
    binding.bind_output(
        name=o, device_type=place.device_name(), device_id=0, element_type=np.float32,
        shape=place.shape(), buffer_ptr=place.data_ptr(),
    )  # fmt: skip
    session.run_with_iobinding(binding)
    assert np.array_equal(place.numpy(), y)


def test_the_pages_snippets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    page = (ROOT / "docs/onnxruntime.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    data = parsed_bytes("(float[n] x) => (float[n] y) { y = Neg (x) }")
    (tmp_path / "m.onnx").write_bytes(data)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    names: dict[str, Any] = {"x": np.ones(3, np.float32)}
    for block in blocks:
        exec(compile(block, "docs/onnxruntime.md", "exec"), names)
    assert np.array_equal(names["y"], -names["x"])
    assert "[('x', 'tensor(float)', ['n'])]" in capsys.readouterr().out
