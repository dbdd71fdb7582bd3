"""Elements at computed indices of slices whose rows lie apart, on emulated GPUs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mgx_mlir
from tests.support.models import parsed

FORMS = {  # three rows of 64 of each of eight blocks
    "plain": ("8,15,64", "s = Slice (x, from, to, axis)"),
    "dim of 1": ("8,15,1,64", "u = Slice (x, from, to, axis) s = Reshape (u, dims)"),
    "expanded": ("8,960", "u = Slice (x, from_column, to_column, axis) s = Reshape (u, dims)"),
    "dynamic": ("n,15,64", "s = Slice (x, from, to, axis)"),
}
READERS = {  # the threads of all have vectors of elements
    "gather": ("y = Gather <axis = 2> (s, at)", lambda s: s[:, :, AT]),
    "wrap": ('y = Pad <mode = "wrap"> (s, pads)',
             lambda s: np.pad(s, ((0, 0), (1, 0), (2, 3)), "wrap")),
    "rows": ("t = Reshape (s, rows) y = Gather <axis = 1> (t, at)",
             lambda s: s.reshape(-1, 64)[:, AT]),
}  # fmt: skip
AT = np.array([5, 7, 63, 0, 1, 2, 3, 4, 62, 9, 33, 32, 31, 17, 16, 15])
NUMBERS = {
    "from": [9], "to": [12], "axis": [1], "from_column": [576], "to_column": [768],
    "dims": [8, 3, 64], "rows": [-1, 64], "at": AT, "pads": [0, 1, 2, 0, 0, 3],
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("form", FORMS)
def test_rows_of_slices_that_lie_apart(
    form: str, reader: str, gpu_arch: str, library: Path
) -> None:
    (dims, slices), (node, want) = FORMS[form], READERS[reader]
    result = "a,b" if reader == "rows" else "a,b,c"
    model = parsed(
        f"(float[{dims}] x) => (float[{result}] y) {{ {slices} {node} }}",
        {name: np.array(value) for name, value in NUMBERS.items()}, opset=19,
    )  # fmt: skip
    compiled = mgx_mlir.compile(
        model.SerializeToString(), "gpu", arch=gpu_arch, emulate=True, cache=False
    )
    x = np.random.default_rng(0).standard_normal((8, 15, 64)).astype(np.float32)
    shape = [8 if d == "n" else int(d) for d in dims.split(",")]
    (got,) = compiled.run(x=x.reshape(shape))
    np.testing.assert_array_equal(got, want(x[:, 9:12]))
