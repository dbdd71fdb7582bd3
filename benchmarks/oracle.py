"""onnxruntime as the oracle: inputs for a model, its answer, and the error of another answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

SEED = 5


def session(model: str | Path | bytes, threads: int = 1, *, exact: bool = False) -> Any:
    """An onnxruntime session of a file or its bytes on the CPU, with its default optimisations.

    exact: products of u8 and i8 do not saturate. By default they do on x86 processors without VNNI:
    the results are then wrong by a tenth where weights are large, and take three quarters of the
    time.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    given = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])


def inputs_for(path: Path, model: Any | None = None) -> dict[str, np.ndarray]:
    """The inputs stored beside a model (`NAME.inputs.npz`), else drawn for it.

    Drawn: floats standard normal, integers 0 or 1 (an index that is always in range), bools at
    random; a dynamic dimension counts as 1. `model` is an onnxruntime session, made if not given.
    """
    stored = path.with_suffix(".inputs.npz")
    if stored.exists():
        with np.load(stored) as archive:
            return {name: archive[name] for name in archive.files}
    rng = np.random.default_rng(SEED)
    result = {}
    for value in (model or session(path)).get_inputs():
        dims = [d if isinstance(d, int) else 1 for d in value.shape]
        kind = value.type.removeprefix("tensor(").removesuffix(")")
        dtype = {"float": "float32", "double": "float64"}.get(kind, kind)
        if dtype == "bool" or dtype.startswith(("int", "uint")):
            result[value.name] = rng.integers(0, 2, dims).astype(dtype)
        elif dtype.startswith("float"):
            result[value.name] = rng.standard_normal(dims).astype(dtype)
        else:
            raise ValueError(f"cannot draw input '{value.name}' of type {value.type}")
    return result


def relative_error(got: np.ndarray, wanted: np.ndarray) -> float:
    """max|a-b| / max|b| in float64: inf for another shape or dtype, or NaN on one side only."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return float("inf")
    if got.dtype == object:  # strings
        return 0.0 if np.array_equal(got, wanted) else float("inf")
    if wanted.size == 0:
        return 0.0
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if not np.isfinite(a[~same]).all() or not np.isfinite(b[~same]).all():
        return float("inf")
    largest = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    difference = np.abs(a[~same] - b[~same]).max(initial=0.0)
    if difference == 0:
        return 0.0
    return float(difference / largest) if largest else float("inf")


def worst_error(got: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> float:
    """The largest relative error over the outputs; inf when there are not as many."""
    if len(got) != len(wanted):
        return float("inf")
    pairs = zip(got, wanted, strict=True)
    return max((relative_error(np.asarray(a), np.asarray(b)) for a, b in pairs), default=0.0)
