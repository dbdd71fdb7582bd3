"""Lengths of ranges that follow from dims: they are computed on the host, without a kernel."""

from __future__ import annotations

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.core.errors import MgxError
from tests.support.models import parsed

# positions of the rows of x between bounds that are dims, or numbers
NET = """(float[r,c] x) => (int64[n] y) {
s = Shape (x)
rows = Gather <axis = 0> (s, zero)
columns = Gather <axis = 0> (s, one)
y = Range (START, LIMIT, step)
}"""


@pytest.mark.parametrize(
    ("start", "limit", "step"),
    [("zero", "rows", 1), ("rows", "columns", 1), ("rows", "columns", 3), ("one", "columns", 4)],
)
def test_a_range_of_dims(start: str, limit: str, step: int) -> None:
    text = NET.replace("START", start).replace("LIMIT", limit)
    given = {"zero": np.array(0), "one": np.array(1), "step": np.array(step)}
    model = parsed(text, given, opset=18).SerializeToString()
    program = mgx_mlir.compile(model, "cpu", cache=False)
    for rows, columns in ((1, 9), (4, 4), (7, 2), (0, 5), (5, 16)):
        ends = {"zero": 0, "one": 1, "rows": rows, "columns": columns}
        (found,) = program.run(x=np.zeros((rows, columns), np.float32))
        np.testing.assert_array_equal(found, np.arange(ends[start], ends[limit], step))


def test_launches() -> None:
    """A kernel for the elements, none for their number."""
    text = NET.replace("START", "zero").replace("LIMIT", "rows")
    given = {"zero": np.array(0), "one": np.array(1), "step": np.array(1)}
    model = parsed(text, given, opset=18).SerializeToString()
    program = mgx_mlir.compile(model, "gpu", arch="gfx942", cache=False)
    assert len(program.executable.dispatches["main"]) == 1


def test_too_many_elements() -> None:
    """The bound of a range holds for lengths on the host, too."""
    text = NET.replace("START", "low").replace("LIMIT", "rows")
    given = {
        "zero": np.array(0), "one": np.array(1), "step": np.array(1), "low": np.array(-(2**40)),
    }  # fmt: skip
    model = parsed(text, given, opset=18).SerializeToString()
    program = mgx_mlir.compile(model, "cpu", cache=False)
    with pytest.raises(MgxError, match="elements"):
        program.run(x=np.zeros((3, 2), np.float32))
