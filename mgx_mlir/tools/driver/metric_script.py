"""A user's measure of a model: the function `metric` of a Python script, and its `data`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgx_mlir.core.errors import ModelError
from mgx_mlir.tools.driver.scripts import failure, run_names

NAME, DATA = "metric", "data"
Outputs = list[list[np.ndarray]]


@dataclass(frozen=True)
class MetricScript:
    """Contents of a script: its metric, whose errors name the script's line, and its samples.

    `samples` is None where it has no function `data`.
    """

    metric: Callable[[Outputs], float]
    samples: Callable[[], Any] | None


def script_of(text: str) -> tuple[str, str]:
    """Split SCRIPT.py:FUNCTION; the function is `metric` where none is stated."""
    path, colon, name = text.rpartition(":")
    if colon and path.endswith(".py") and name.isidentifier():
        return path, name
    return text, NAME


def read_metric(text: str) -> MetricScript:
    """Run a script and take its metric: a function of the results of each sample, to a number.

    The script is code, and does what it says: run none that you do not trust. FileError for a
    file that cannot be read, ModelError for a script that fails or has no such function.
    """
    path, name = script_of(text)
    names = run_names(path)
    function: Any = names.get(name)
    data: Any = names.get(DATA)
    if not callable(function):
        raise ModelError(
            f"the script has no function '{name}'",
            location=path,
            notes=[
                "expected `def metric(outputs)`: a list of results for each sample, to a number"
            ],
        )

    def metric(outputs: Outputs) -> float:
        try:
            value: Any = function(outputs)
            found = float(value)
        except Exception as e:
            raise failure(f"'{name}'", e, path) from None
        if math.isnan(found):
            raise ModelError(f"'{name}' expected a number, got nan", location=path)
        return found

    def samples() -> Any:
        try:
            return list(data())
        except Exception as e:
            raise failure(f"'{DATA}'", e, path) from None

    return MetricScript(metric, samples if callable(data) else None)
