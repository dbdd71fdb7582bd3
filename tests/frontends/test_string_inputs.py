"""Inputs of strings: numbers in the program's table, those that it has not behind it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

import mgx_mlir
from mgx_mlir.core.errors import MgxError, RunError
from tests.support.models import bytes_of
from tests.support.oracle import ort_session

KINDS = {"s": TensorProto.STRING, "f": TensorProto.FLOAT, "i": TensorProto.INT64,
         "b": TensorProto.BOOL}  # fmt: skip


def node(op: str, inputs: str, output: str, **attributes: Any) -> NodeProto:
    domain = "ai.onnx.ml" if op.endswith(("Encoder", "Mapper", "Extractor")) else ""
    return helper.make_node(op, inputs.split(), [output], domain=domain, **attributes)


def model(nodes: Sequence[NodeProto], outputs: Sequence[str], ml: int = 3) -> bytes:
    """Return a model of two inputs of strings, x and z; an output's first letter is its type."""
    inputs = {n: (TensorProto.STRING, ["N", 2]) for n in "xz"}
    words = np.array([["red", "green"], ["red", "café"]], object)
    weights = {"word": np.array("red", object), "words": words, "second": np.array([1]),
               "flat": np.array([-1])}  # fmt: skip
    made = {o: (KINDS[o[0]], None) for o in outputs}
    return bytes_of(nodes, inputs, made, weights, opset=19, ml=ml)


COLOURS = ["red", "blue", "café"]
NODES = [
    node("Equal", "x word", "b_word"),
    node("Equal", "z x", "b_inputs"),
    node("OneHotEncoder", "x", "f_hot", cats_strings=COLOURS),
    node("LabelEncoder", "x", "f_label", keys_strings=COLOURS, values_floats=[0.5, 2.0, -1.0],
         default_float=9.0),
    node("LabelEncoder", "x", "i_label", keys_strings=COLOURS, values_int64s=[7, 8, 9]),
    node("LabelEncoder", "z", "s_label", keys_strings=COLOURS, values_strings=["r", "b", "c"],
         default_string="none"),
    node("LabelEncoder", "s_label", "i_again", keys_strings=["none", "c"], values_int64s=[1, 2]),
    node("CategoryMapper", "x", "i_mapped", cats_strings=COLOURS, cats_int64s=[4, 5, 6]),
    node("CategoryMapper", "i_mapped", "s_mapped", cats_strings=COLOURS, cats_int64s=[6, 5, 4]),
    node("Identity", "x", "s_same"),
    node("Where", "b_inputs x word", "s_where"),
    node("Concat", "z words x s_label", "s_joined", axis=0),
    node("Gather", "s_joined second", "s_column", axis=1),
    node("Reshape", "x flat", "s_flat"),
    node("ArrayFeatureExtractor", "x second", "s_extracted"),
    node("Shape", "s_joined", "i_shape"),
    node("TfIdfVectorizer", "words", "f_counts", max_gram_length=1, min_gram_length=1,
         max_skip_count=0, mode="TF", ngram_counts=[0], ngram_indexes=[0, 1],
         pool_strings=["red", "café"]),
]  # fmt: skip
OUTPUTS = [n.output[0] for n in NODES]
WORDS = ["red", "blue", "café", "green", "", "none", "unheard"]


def drawn(rows: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(rows)
    return {n: rng.choice(np.array(WORDS, object), (rows, 2)) for n in "xz"}


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_operators_of_strings(target: str) -> None:
    """Compile once, and once more from the cache; compare with onnxruntime at several sizes."""
    data = model(NODES, OUTPUTS)
    oracle = ort_session(data)
    for rows in (7, 1):
        program = mgx_mlir.compile(data, target)
        given = drawn(rows)
        wanted = oracle.run(None, given)
        for inputs in (given, {n: a.astype(str) for n, a in given.items()}):
            for name, got, want in zip(OUTPUTS, program.run(inputs), wanted, strict=True):
                assert (got.shape, got.dtype) == (want.shape, want.dtype), name
                np.testing.assert_array_equal(got, want, err_msg=name)


def test_labels_of_the_first_opset() -> None:
    """There a LabelEncoder lists its classes, whose places are the numbers."""
    nodes = [
        node("LabelEncoder", "x", "i_place", classes_strings=COLOURS, default_int64=2),
        node("LabelEncoder", "i_place", "s_class", classes_strings=COLOURS[:2]),
    ]
    made = model(nodes, ["i_place", "s_class"], ml=1)
    x = np.array([["red", "café"], ["green", "blue"]], object)
    want: Any = ort_session(made).run(None, {"x": x, "z": x})
    got: Any = mgx_mlir.compile(made, target="ref").run({"x": x, "z": x})
    assert [a.tolist() for a in got] == [a.tolist() for a in want]
    assert want[1].tolist() == [["red", "_Unused"], ["_Unused", "blue"]]


def test_strings_of_a_call_are_forgotten() -> None:
    """Strings of one call's inputs that are not in the table are unknown to the next call."""
    program = mgx_mlir.compile(model([node("Identity", "x", "s_same")], ["s_same"]), "ref")
    for words in (["a", "b"], ["c", "a"]):
        (got,) = program.run({"x": [words], "z": [words]})
        assert got.tolist() == [words]
    assert program.signature.texts == ()


def test_calls_like_earlier_ones() -> None:
    """Calls of a size that came before, which are checked less, take and give the same strings."""
    label = node("LabelEncoder", "x", "i_label", keys_strings=COLOURS, values_int64s=[7, 8, 9],
                 default_int64=-5)  # fmt: skip
    data = model([label, NODES[9], NODES[1]], ["i_label", "s_same", "b_inputs"])
    program = mgx_mlir.compile(data, "cpu")
    session = ort_session(data)
    rows = [["red", "blue"], ["new", "red"], ["other", "new"], ["other", "other"], ["café", ""]]
    for x in rows * 2:
        for z in (x, ["new", "red"], ["red", "blue"]):
            given = {"x": np.array([x, z], object), "z": np.array([z, z], object)}
            wanted: list[Any] = list(session.run(None, given))
            for got, want in zip(program.run(given), wanted, strict=True):
                assert got.tolist() == want.tolist()
    for wrong in ([1.0], None, 3):
        with pytest.raises(RunError, match="input 'x' expected strings, got"):
            program.run({**given, "x": np.array([["red", wrong], ["red", "new"]], object)})


def test_what_is_no_string() -> None:
    program = mgx_mlir.compile(model([node("Identity", "x", "s_same")], ["s_same"]), "ref")
    z = np.array([["a", "b"]])
    with pytest.raises(RunError, match="input 'x' expected strings, got float32"):
        program.run({"x": np.zeros((1, 2), np.float32), "z": z})
    with pytest.raises(RunError, match="input 'x' expected strings, got float"):
        program.run({"x": np.array([["a", np.nan]], object), "z": z})
    with pytest.raises(RunError, match=r"input 'x' expected string \{\[0..\], 2\}, got \{1, 1\}"):
        program.run({"x": [["a"]], "z": z})


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (node("Concat", "x second", "s_y", axis=0), "(?s)Concat.*got strings and numbers"),
    ],
)
def test_what_strings_are_refused_by(wrong: NodeProto, text: str) -> None:
    with pytest.raises(MgxError, match=text):
        mgx_mlir.compile(model([wrong], [wrong.output[0]]), "ref")


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (
            node("StringNormalizer", "s_label", "s_y"),
            "(?s)StringNormalizer.*not computed from",
        ),
        (node("Cast", "s_label", "f_y", to=TensorProto.FLOAT), "(?s)Cast.*a tensor of strings"),
    ],
)
def test_strings_that_the_program_computes(made: NodeProto, text: str) -> None:
    """Operators that make strings run before the program, and cannot read its values."""
    with pytest.raises(MgxError, match=text):
        mgx_mlir.compile(model([NODES[5], made], [made.output[0]]), "ref")


def test_a_program_of_migraphx_names_gives_numbers(tmp_path: Path) -> None:
    """Inputs are strings or numbers; outputs are indices into the table of a compiled program."""
    data = model([NODES[5], node("Identity", "x", "s_same")], ["s_label", "s_same"])
    path = tmp_path / "labels.onnx"
    path.write_bytes(data)
    program = mgx_mlir.parse_onnx(str(path))
    program.compile(mgx_mlir.get_target("ref"))
    words = np.array([["red", "unheard"]], object)
    given = {"x": words, "z": words}
    label, same = (np.array(a.tolist()).reshape(1, 2) for a in program.run(given))
    compiled = mgx_mlir.compile(data, "ref")
    want_label, want_same = compiled.run(given)
    table = compiled.signature.texts
    shown = compiled.signature.outputs[0].shown
    assert shown is not None
    assert [shown.texts[i] for i in label[0]] == want_label[0].tolist() == ["r", "none"]
    assert (table[same[0, 0]], want_same[0, 0]) == ("red", "red")
    assert same[0, 1] >= len(table)  # a string that is in no table
