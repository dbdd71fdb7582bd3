"""Arrays of a caller's that a run writes its results to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import RunError
from mgx_mlir.programs.signature import Port, Signature


class Places:
    """The arrays that are given for the results of one run, checked before it.

    `given` is a list in the order of the outputs, a mapping by name, or the array of the only one.
    Errors: RunError that lists everything that is wrong.
    """

    def __init__(self, signature: Signature, given: Any) -> None:
        ports = signature.outputs
        if signature.output_groups or any(p.text or p.shown or p.element for p in ports):
            raise RunError("expected no 'out' for results that are no tensors of a plain type")
        self._ports, problems = ports, list[str]()
        if isinstance(given, np.ndarray):
            given = [given]
        if isinstance(given, Mapping):
            unknown = sorted(str(n) for n in given if n not in signature.output_names)
            problems += [f"unknown outputs: {', '.join(unknown)}"] if unknown else []
            given = [given.get(p.name) for p in ports]
        elif not isinstance(given, Sequence) or len(given) != len(ports):
            count = len(given) if isinstance(given, Sequence) else type(given).__name__
            raise RunError(f"'out' expected {len(ports)} arrays, got {count}")
        self._arrays: list[np.ndarray | None] = list(given)
        for p, a in zip(ports, self._arrays, strict=True):
            problems += [] if a is None else _problems(p, a)
        if problems:
            raise RunError("; ".join(problems))

    def filled(self, results: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the given arrays with the results in them. RunError where a size differs."""
        for p, a, result in zip(self._ports, self._arrays, results, strict=True):
            if a is not None and a.shape != result.shape:
                raise RunError(f"'out' of '{p.name}' expected {_dims(result)}, got {_dims(a)}")
        found: list[np.ndarray] = []
        for a, result in zip(self._arrays, results, strict=True):
            if a is None:
                found.append(result)
                continue
            a[...] = result
            found.append(a)
        return found


def _problems(p: Port, a: object) -> list[str]:
    """Say why an array cannot take a result."""
    if not isinstance(a, np.ndarray):
        return [f"'out' of '{p.name}' expected an array, got {type(a).__name__}"]
    kind = dtypes.from_name(p.dtype)
    if a.dtype != kind.np:
        return [f"'out' of '{p.name}' expected {kind.np.name}, got {a.dtype.name}"]
    if not a.flags.writeable:
        return [f"'out' of '{p.name}' is read-only"]
    if len(a.shape) != len(p.dims) or any(
        d not in (-1, n) for d, n in zip(p.dims, a.shape, strict=True)
    ):
        return [f"'out' of '{p.name}' expected {p}, got {_dims(a)}"]
    return []


def _dims(a: np.ndarray) -> str:
    return "{" + ", ".join(map(str, a.shape)) + "}"
