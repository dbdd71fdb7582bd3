"""Small models whose inputs decide indices, lengths and sizes: values that fit, and that do not.

value_cases.json has a row for each: values that onnxruntime refuses, or that the operator's text
forbids. An array is its dims, filled as `f` does, or {dtype: elements}; `wrong` states what differs
from `legal`. Rows with `cpu` are compiled by default: together they have each way of checking.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.sizes.cases import Model, f


def _array(stated: Any) -> np.ndarray:
    if isinstance(stated, list):
        return f(*stated)
    ((dtype, elements),) = stated.items()
    return np.array(elements, dtype)


def _model(row: dict[str, Any]) -> Model:
    legal = {k: _array(v) for k, v in row["legal"].items()}
    wrong = [{**legal, **{k: _array(v) for k, v in w.items()}} for w in row["wrong"]]
    return Model(
        row["name"],
        row["inputs"],
        row["outputs"],
        row["body"],
        tuple(legal.values()),
        [tuple(w.values()) for w in wrong],
        row.get("opset", 18),
    )


_ROWS = json.loads(Path(__file__).with_suffix(".json").read_text())
VALUES = [_model(row) for row in _ROWS]
COMPILED = [_model(row) for row in _ROWS if row.get("cpu")]
