"""Operators that make strings of strings, or numbers of their text, against onnxruntime.

The words are one-byte characters where onnxruntime's StringNormalizer reads them: it asks the
system for a locale that may not be there, and is given "C".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, parser

import mgx_mlir
from mgx_mlir.core.errors import ModelError, RunError
from tests.support.models import bytes_of
from tests.support.oracle import ort_session

KINDS = {"s": TensorProto.STRING, "f": TensorProto.FLOAT, "i": TensorProto.INT64,
         "b": TensorProto.BOOL}  # fmt: skip
TOKENS = {"mark": 0, "pad_value": "#", "mincharnum": 1}
GRAMS: dict[str, Any] = {
    "max_gram_length": 2, "min_gram_length": 1, "max_skip_count": 1, "mode": "TFIDF",
    "ngram_counts": [0, 4], "ngram_indexes": [2, 0, 4, 1, 3], "weights": [0.5, 2.0, 1.5, 3.0, 4.0],
    "pool_strings": ["the", "fox", "dog", "b", "the", "fox"],
}  # fmt: skip
TEXTS = ["The quick fox", "", "a b, the dog", "the  FOX;the fox"]


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    domains = {"Tokenizer": "com.microsoft", "OneHotEncoder": "ai.onnx.ml"}
    domain = domains.get(op, "ai.onnx.ml" if op.endswith(("Encoder", "Extractor")) else "")
    return helper.make_node(op, inputs.split(), outputs.split(), domain=domain, **attributes)


def model(
    nodes: Sequence[NodeProto], inputs: Mapping[str, Sequence[Any]], outputs: Sequence[str]
) -> bytes:
    """Return a model; the first letter of an input's or output's name is its type."""
    weights = {"minus": np.array([-1]), "one": np.array([1]), "first": np.array([0]),
               "both": np.array([0, 1]), "word": np.array(["-"], object)}  # fmt: skip
    ends = ({n: (KINDS[n[0]], d) for n, d in inputs.items()},
            {o: (KINDS[o[0]], None) for o in outputs})  # fmt: skip
    return bytes_of(nodes, *ends, weights, opset=20, ml=3, ms=1)


def check(data: bytes, calls: Sequence[Mapping[str, np.ndarray]], target: str = "ref") -> Any:
    """Compile once, run each call, and compare with onnxruntime."""
    oracle: Any = ort_session(data)
    program = mgx_mlir.compile(data, target)
    for given in calls:
        for got, want in zip(program.run(given), oracle.run(None, given), strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            if want.dtype == object:
                assert got.tolist() == want.tolist()
            else:
                np.testing.assert_allclose(got, want, rtol=1e-6)
    return program


def words(*texts: str) -> np.ndarray:
    return np.array(texts, object)


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_texts_become_features(target: str, tmp_path: Path) -> None:
    """The chain that skl2onnx writes for a column of texts; saved, and at several sizes."""
    lower = node("StringNormalizer", "s_flat", "s_low", case_change_action="LOWER", locale="C")
    nodes = [
        node("ArrayFeatureExtractor", "s_x one", "s_column"),
        node("Reshape", "s_column minus", "s_flat"), lower,
        node("Tokenizer", "s_low", "s_token", **TOKENS, tokenexp="[a-z]+"),
        node("Flatten", "s_token", "s_rows"),
        node("TfIdfVectorizer", "s_rows", "f_grams", **GRAMS),
        node("Concat", "f_grams f_more", "f_all", axis=1),
        node("ReduceSum", "f_all one", "f_y", keepdims=1),
    ]  # fmt: skip
    data = model(nodes, {"s_x": ["N", 2], "f_more": ["N", 3]}, ["f_y", "f_grams", "s_token"])
    rng, calls = np.random.default_rng(2), []
    for rows in (4, 1):
        texts = np.stack([words(*TEXTS[:rows]), words(*TEXTS[:rows][::-1])], 1)
        calls.append({"s_x": texts, "f_more": rng.standard_normal((rows, 3)).astype(np.float32)})
    program = check(data, calls, target)
    assert program.input_names == ["s_x", "f_more"]
    saved = str(tmp_path / "texts.mxr")
    mgx_mlir.save(program, saved)
    got = mgx_mlir.load(saved).run(calls[0])
    for a, b in zip(got, program.run(calls[0]), strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(RunError, match="missing inputs: s_x"):
        program.run({"f_more": calls[0]["f_more"]})


@pytest.mark.parametrize(
    "attributes",
    [
        {"separators": [" ", "[,;]"]}, {"separators": [""]}, {"separators": [" "], "mark": 1},
        {"tokenexp": "[[:alpha:]]+", "mincharnum": 2}, {"tokenexp": "\\w*", "mark": 1},
        {"separators": ["x*"], "mincharnum": 2},
    ],
)  # fmt: skip
def test_tokenizer(attributes: dict[str, Any]) -> None:
    nodes = [node("Tokenizer", "s_x", "s_y", **{**TOKENS, **attributes})]
    check(model(nodes, {"s_x": ["N"]}, ["s_y"]), [{"s_x": words(*TEXTS, "née x,y")}])
    check(model(nodes, {"s_x": ["N", 2]}, ["s_y"]), [{"s_x": words(*TEXTS).reshape(2, 2)}])


@pytest.mark.parametrize("sensitive", [0, 1])
@pytest.mark.parametrize("action", ["NONE", "LOWER", "UPPER"])
def test_string_normalizer(action: str, sensitive: int) -> None:
    stop: list[dict[str, Any]] = [{}, {"stopwords": ["the", "Fox"]}]
    for more in stop:
        given = {"case_change_action": action, "is_case_sensitive": sensitive, "locale": "C"}
        nodes = [node("StringNormalizer", "s_x", "s_y", **given, **more)]
        check(model(nodes, {"s_x": ["N"]}, ["s_y"]),
              [{"s_x": words("The", "fox", "Fox", "b")}, {"s_x": words("THE")}])  # fmt: skip
        check(model(nodes, {"s_x": [1, "N"]}, ["s_y"]), [{"s_x": words("The", "b")[None]}])


def test_other_operators_of_strings() -> None:
    nodes = [
        node("StringConcat", "s_x word", "s_dash"), node("StringConcat", "s_dash s_x", "s_joined"),
        node("StringSplit", "s_joined", "s_parts i_parts", delimiter="-"),
        node("StringSplit", "s_x", "s_words i_words", maxsplit=1),
        node("RegexFullMatch", "s_x", "b_match", pattern="[a-z]+ ?.*"),
        node("OneHotEncoder", "s_dash", "f_hot", cats_strings=["a-", "B-"]),
    ]  # fmt: skip
    outputs = [o for n in nodes for o in n.output]
    calls = [{"s_x": words("a", " B  c ", "", "3")}, {"s_x": words("a-b")}]
    check(model(nodes, {"s_x": ["N"]}, outputs), calls)


def test_a_category_that_must_be_there() -> None:
    hot = node("OneHotEncoder", "s_x", "f_y", cats_strings=["a", "b"], zeros=0)
    program = check(model([hot], {"s_x": ["N"]}, ["f_y"]), [{"s_x": words("b", "a", "b")}])
    with pytest.raises(RunError, match="elements that are in a category"):
        program.run({"s_x": words("b", "c")})


def test_casts() -> None:
    floats = node("Cast", "s_x", "f_y", to=TensorProto.FLOAT)
    ints = node("Cast", "s_x", "i_y", to=TensorProto.INT64)
    numbers = words("1.5", " -2", "3e2", "12abc")
    check(model([floats, ints], {"s_x": ["N"]}, ["f_y", "i_y"]), [{"s_x": numbers}])
    check(model([floats], {"s_x": ["N"]}, ["f_y"]), [{"s_x": words("NaN", "-INF", ".5")}])
    hot = node("OneHotEncoder", "s_f", "f_hot", cats_strings=["1.5", "0"])
    nodes = [node("Cast", "f_x", "s_f", to=8), node("Cast", "i_x", "s_i", to=8), hot]
    values = np.array([1.5, 1e20, 1 / 3, np.nan, -np.inf, 123456789, 0.0, 1e-7], np.float32)
    check(model(nodes, {"f_x": ["N"], "i_x": ["N"]}, ["s_f", "s_i", "f_hot"]),
          [{"f_x": values, "i_x": np.arange(8) - 4}])  # fmt: skip
    program = mgx_mlir.compile(model([floats], {"s_x": ["N"]}, ["f_y"]), "ref")
    with pytest.raises(RunError, match="Cast of 'f_y/text': expected a number, got 'none'"):
        program.run({"s_x": words("none")})


def bodies(text: str) -> list[GraphProto]:
    return [parser.parse_graph(t) for t in text.split("%")]


def with_opsets(graph: GraphProto) -> ModelProto:
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_strings_in_branches(target: str) -> None:
    """One branch gives an input's strings, split in it; the other one constants and other words."""
    split, constant = bodies(
        "a () => (string[M] s_a) { s_a = Identity (s_x) } % b () => (string[M] s_b) "
        "{ s_z = StringConcat (s_x, s_x) w = Constant <value_strings = ['no', 'a']> () "
        "s_b = Concat <axis = 0> (w, s_z) }".replace("'", '"')
    )
    graph = parser.parse_graph(
        "g (string[N] s_x, bool b_c) => (string[M] s_y, bool[M] b_y) "
        '{ s = Constant <value_strings = ["a"]> () }'
    )
    graph.node.append(helper.make_node("If", ["b_c"], ["s_y"], then_branch=split,
                                       else_branch=constant))  # fmt: skip
    graph.node.append(helper.make_node("Equal", ["s_y", "s"], ["b_y"]))
    calls = [{"s_x": words("a", "c"), "b_c": np.array(c)} for c in (True, False)]
    check(with_opsets(graph).SerializeToString(), calls, target)


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_strings_in_loops(target: str) -> None:
    """A carried string that changes with the iteration, and a scan output of strings."""
    (body,) = bodies(
        "body (int64 i, bool c, string[1] s) => (bool c2, string[1] s2, string[1] s3) "
        "{ c2 = Identity (c) one = Constant <value_ints = [1]> () at = Reshape (i, one) "
        "s2 = Gather <axis = 0> (s_x, at) s3 = Identity (s) }"
    )
    graph = parser.parse_graph(
        "g (string[N] s_x, int64 i_n) => (string[1] s_y, string[T, 1] s_z) "
        '{ t = Constant <value = bool {1}> () s = Constant <value_strings = ["start"]> () }'
    )
    graph.node.append(helper.make_node("Loop", ["i_n", "t", "s"], ["s_y", "s_z"], body=body))
    program = mgx_mlir.compile(with_opsets(graph).SerializeToString(), target)
    for n in (3, 1):  # onnxruntime gives "" for the strings of a scan output of one iteration
        last, each = program.run({"s_x": words("a", "c", "d"), "i_n": np.array(n)})
        assert last.tolist() == [["a", "c", "d"][n - 1]]
        assert each.tolist() == [[w] for w in ["start", "a", "c"][:n]]


@pytest.mark.parametrize("mode", ["TFIDF", "IDF"])
def test_weights_are_those_of_the_ngrams(mode: str) -> None:
    """A weight belongs to an n-gram, wherever ngram_indexes puts its count."""
    grams = {**GRAMS, "pool_int64s": [1, 2, 3, 4, 1, 2], "mode": mode}
    del grams["pool_strings"]
    rows = np.array([[1, 2, 3, 1], [4, 4, 1, 2]])
    for places in ([2, 0, 4, 1, 3], [2, 0, 5, 1, 3]):  # a column that no n-gram has
        given = node("TfIdfVectorizer", "i_x", "f_y", **{**grams, "ngram_indexes": places})
        check(model([given], {"i_x": [2, 4]}, ["f_y"]), [{"i_x": rows}])
    short = node("TfIdfVectorizer", "i_x", "f_y", **{**grams, "weights": [1.0]})
    with pytest.raises(ModelError, match="expected 5 weights, got 1"):
        mgx_mlir.compile(model([short], {"i_x": [2, 4]}, ["f_y"]), "ref")
