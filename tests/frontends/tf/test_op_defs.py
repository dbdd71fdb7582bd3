"""Our operators' operands, outputs, attributes and defaults against TensorFlow's definitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mgx_mlir.core.dtypes import DType
from mgx_mlir.frontends.signatures import REQUIRED
from mgx_mlir.frontends.tf import dtypes, ops
from mgx_mlir.frontends.tf.attributes import NEVER_MEANT
from mgx_mlir.frontends.tf.registry import find, operators

ops.load()
DEFS = json.loads((Path(__file__).parent / "data" / "op_defs.json").read_text())
# one function for several versions of an operator: it takes the most operands of them
VERSIONS = ("Matrix", "ImageProjectiveTransform", "SparseSegment")
# the default depends on the version, which the function looks at itself
BY_VERSION = {("MatrixDiagV3", "align"), ("MatrixDiagPartV3", "align"),
              ("MatrixSetDiagV3", "align")}  # fmt: skip
COUNTS = ("N", "num_split")  # attributes that count operands of a list


def test_every_operator_is_one_of_tensorflow() -> None:
    assert sorted(DEFS) == operators()


@pytest.mark.parametrize("name", operators())
def test_definition(name: str) -> None:
    ours, theirs = find(name), DEFS[name]
    assert ours is not None
    if theirs["inputs"] is None:
        assert ours.most is None
    elif name.startswith(VERSIONS):
        assert ours.required <= theirs["inputs"]
        assert ours.most is None or theirs["inputs"] <= ours.most
    else:
        assert (ours.required, ours.most) == (theirs["inputs"], theirs["inputs"])
    if len(theirs["outputs"]) > 1 or ours.outputs:
        assert list(ours.outputs) == theirs["outputs"]
    for key, (kind, default) in theirs["attributes"].items():
        if key in ours.attributes:
            if (name, key) not in BY_VERSION:
                assert same(ours.attributes[key], kind, default), key
        else:  # a refused default does not change results
            assert kind in ("type", "list(type)") or key in NEVER_MEANT or key in COUNTS, key


def same(ours: Any, kind: str, theirs: Any) -> bool:
    """Return whether a default is TensorFlow's or equivalent: None for a type, shape or format."""
    if ours is REQUIRED or theirs == "required":
        return (ours is REQUIRED) == (theirs == "required") or (
            ours is None and kind in ("type", "shape")
        )
    if isinstance(ours, DType):
        return dtypes.number_of(ours) == theirs
    if isinstance(theirs, dict):
        return ours is None or ours == theirs.get("text")
    if isinstance(theirs, list):  # one for each axis: left out
        return list(ours) == theirs or (not ours and set(theirs) == {1})
    return ours == pytest.approx(theirs) if kind == "float" else ours == theirs
