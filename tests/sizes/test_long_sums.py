"""A size that reads another one many times, at many depths, takes no longer than others."""

from __future__ import annotations

import time

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.core.errors import RunError
from mgx_mlir.passes.lower.forms import Atoms, as_form, bounded, divided, show
from tests.models.made import Graph

DEEP = 60  # 2 to that is more than anyone waits for


def test_forms() -> None:
    form = Atoms().get("input", 0, 0)
    for i in range(DEEP):
        form = bounded("max", divided("div", form, as_form(i + 2)), form * form - i)
    begin = time.process_time()
    assert [a.kind for a in form.inputs()] == ["input"]
    assert not list(form.values())
    assert form.from_inputs
    assert form.is_never_negative
    assert show(form, ["x"]) == "a size that is computed"
    assert time.process_time() - begin < 1


def test_an_assertion_of_a_long_size() -> None:
    """Each size is read twice by the next one; what it must be is checked in a call."""
    g = Graph(1)
    x, y = g.input("x", ["n", 2]), g.input("y", ["m", 2])
    size = g.op("Shape", x, start=0, end=1)
    for i in range(DEEP):
        half = g.op("Div", size, g.ints(i + 2))
        size = g.op("Max", half, g.op("Sub", size, g.ints(i % 2)))
    g.output(g.op("Add", g.op("Slice", x, g.ints(0), size, g.ints(0)), y), "z", ["k", 2])
    program = mgx_mlir.compile(g.model().SerializeToString(), "cpu")
    rows = 100
    wanted = rows
    for i in range(DEEP):
        wanted = max(wanted // (i + 2), wanted - i % 2)
    given = {"x": np.ones((rows, 2), np.float32), "y": np.ones((wanted, 2), np.float32)}
    assert program.run(given)[0].tolist() == np.full((wanted, 2), 2).tolist()
    with pytest.raises(RunError, match="expected"):
        program.run({**given, "y": np.ones((wanted - 1, 2), np.float32)})
