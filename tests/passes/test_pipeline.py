"""The pipeline grammar: what is read, what is printed, where errors point."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgx_mlir.core.errors import PipelineError
from mgx_mlir.rewrite.pipeline import Nested, PassSpec, parse_pipeline, print_pipeline

NAMES = st.from_regex(r"[a-z][a-z0-9]*(-[a-z0-9]+){0,2}", fullmatch=True)
VALUES = st.one_of(st.none(), st.from_regex(r"[a-z0-9,.\-]+", fullmatch=True), st.just("a b c"))
SPECS = st.builds(
    PassSpec, NAMES, st.lists(st.tuples(NAMES, VALUES), max_size=3).map(tuple), st.just(0)
)
PIPELINES = st.recursive(
    st.lists(SPECS, max_size=4).map(lambda e: Nested("func.func", tuple(e))),
    lambda inner: st.lists(st.one_of(SPECS, inner), max_size=3).map(
        lambda e: Nested("builtin.module", tuple(e))
    ),
)


def shape(element):
    """A pipeline without its columns."""
    if isinstance(element, Nested):
        return (element.anchor, tuple(shape(e) for e in element.elements))
    return (element.name, element.options)


@given(PIPELINES)
def test_round_trip(pipeline):
    whole = Nested("builtin.module", (pipeline,))
    again = parse_pipeline(print_pipeline(whole))
    if shape(whole) != shape(again):
        # a module that holds just one module is that module
        assert shape(again) == shape(pipeline)
        assert pipeline.anchor == "builtin.module"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", "builtin.module()"),
        ("cse", "builtin.module(cse)"),
        (" cse , canonicalize ", "builtin.module(cse,canonicalize)"),
        (
            "builtin.module(mgx-a{max-iterations=8}, cse, func.func(canonicalize))",
            "builtin.module(mgx-a{max-iterations=8},cse,func.func(canonicalize))",
        ),
        ("a{x y=1,2 z='p q' w={u v}}", 'builtin.module(a{x y=1,2 z="p q" w="u v"})'),
        ("builtin.module(a),b", "builtin.module(builtin.module(a),b)"),
    ],
)
def test_forms(text, printed):
    assert print_pipeline(parse_pipeline(text)) == printed


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("a,,b", 3, "expected pass or op name, got ','"),
        ("a,", 3, "expected pass or op name, got the end"),
        ("func.func(a", 12, "expected ',' or ')', got the end"),
        ("a b", 3, "expected ',' or end of pipeline, got 'b'"),
        ("a)", 2, "expected ',' or end of pipeline, got ')'"),
        ("a{b", 2, "expected '}'"),
        ("a{b='c}", 5, "expected a closing '"),
        ("a{=c}", 3, "expected option name, got '='"),
        ("a(" * 40, 66, "nested deeper than 32 ops"),
    ],
)
def test_errors_point_at_a_column(text, column, message):
    with pytest.raises(PipelineError) as e:
        parse_pipeline(text)
    assert message in e.value.message
    assert e.value.location == f"pipeline:1:{column}"
    source, caret = e.value.notes[0].split("\n")
    assert source == text
    assert caret.index("^") - len("note: ") == column - 1
