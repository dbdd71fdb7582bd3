"""docs/onnx-operators.md is up to date; the importer of docs/onnx.md works as it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from contrib_cases import Case, Draws, check, model

import mgx_mlir
from mgx_mlir.compiler.options import CompileOptions
from mgx_mlir.compiler.program_cache import program_cache_key
from mgx_mlir.core.errors import MgxError
from mgx_mlir.frontends.onnx import registry
from mgx_mlir.frontends.onnx.importer import OnnxOptions, parse_onnx_buffer
from mgx_mlir.targets import get_target
from tests import written

DOCS = Path(__file__).resolve().parents[2] / "docs"
DOMAIN = "org.example"


def test_the_document_is_up_to_date() -> None:
    written.check("onnx-operators.md", written.script("onnx_operators").text(), "onnx_operators")


def test_restrictions_are_found() -> None:
    text = (DOCS / "onnx-operators.md").read_text()
    [row] = [line for line in text.splitlines() if line.startswith("| GroupQueryAttention ")]
    assert "qk_output with sliding_window_cache" in row
    assert "| BeamSearch | a search" in text


@contextmanager
def registered_for_a_while() -> Iterator[None]:
    """The example of docs/onnx.md, run as it stands there; its operators alone are taken back.

    The importer registers its own operators at the first model, which may be inside.
    """
    [code] = re.findall(r"```python\n(.*?)```", (DOCS / "onnx.md").read_text(), re.DOTALL)
    exec(compile(code, "docs/onnx.md", "exec"), {"__name__": "example"})
    assert (DOMAIN, "ScaledSwish") in registry._OPS
    try:
        yield
    finally:
        for key in [k for k in registry._OPS if k[0] == DOMAIN]:
            del registry._OPS[key]


@pytest.fixture
def example() -> Iterator[None]:
    with registered_for_a_while():
        yield


def test_operators_registered_beside_the_example_stay() -> None:
    key = ("org.example.late", "Late")
    with registered_for_a_while():
        registry.onnx_op(key[1], domain=key[0])(lambda b, node, x: x)
    found = registry._OPS.pop(key, None)
    assert found is not None
    assert (DOMAIN, "ScaledSwish") not in registry._OPS


def swish(x, scale=None, beta=1.0, mode="exact"):
    y = x / (1 + np.exp(-beta * x.astype(np.float64)))
    return y if scale is None else y * scale


@pytest.mark.usefixtures("example")
def test_the_example() -> None:
    g = Draws(1)
    x = g.floats(3, 4)
    cases = [
        Case("ScaledSwish", [x], domain=DOMAIN, want=swish),
        Case("ScaledSwish", [x, g.floats(4)], {"beta": 1.5}, domain=DOMAIN, want=swish),
    ]
    check(cases)


@pytest.mark.usefixtures("example")
def test_the_errors_of_the_example() -> None:
    """Both nodes are told of at once."""
    g = Draws(1)
    cases = [
        Case("ScaledSwish", [g.floats(3)], {"mode": "fast"}, domain=DOMAIN),
        Case("ScaledSwish", [g.ints(0, 9, 3)], domain=DOMAIN),
    ]
    with pytest.raises(MgxError) as error:
        parse_onnx_buffer(model(cases)[0])
    assert "mode fast" in str(error.value)
    assert "expected a float type" in str(error.value)


def key_of(data: bytes) -> str | None:
    return program_cache_key(data, CompileOptions("cpu"), get_target("cpu"))


def test_programs_are_not_looked_up_by_the_model_alone(request: pytest.FixtureRequest) -> None:
    data, _, _ = model([Case("Gelu", [Draws(1).floats(3)])])
    assert key_of(data) is not None
    request.getfixturevalue("example")
    assert key_of(data) is None


def test_refused_operators_say_why() -> None:
    case = Case("Snpe", [Draws(1).floats(3)], {"DLC": b"x"})
    with pytest.raises(MgxError, match="a payload for another runtime"):
        parse_onnx_buffer(model([case])[0])
    program = parse_onnx_buffer(model([case])[0], OnnxOptions(skip_unknown_operators=True))
    assert "migraphx.unknown" in str(program.module)
    with pytest.raises(MgxError, match="unknown"):
        mgx_mlir.compile(program, target="cpu")
