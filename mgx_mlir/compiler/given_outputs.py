"""The caller's arrays that a run writes its results to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import RunError
from mgx_mlir.core.literals import aligned_copy
from mgx_mlir.programs.signature import Pair, Port, Signature
from mgx_mlir.runtime.buffers import address, span


class Places:
    """The arrays that are given for the results of one run, checked before it.

    `given` is a list in the order of the outputs, a mapping by name, or the array of the only one.
    Errors: RunError that lists everything that is wrong.
    """

    def __init__(self, signature: Signature, given: Any) -> None:
        ports = signature.outputs
        if signature.output_groups or any(p.text or p.shown or p.element for p in ports):
            raise RunError("'out' is for results that are tensors of numbers: leave it out")
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
        if problems := problems or _shared(ports, self._arrays):
            raise RunError("; ".join(problems))

    def caches(self, inputs: Sequence[np.ndarray], pairs: Sequence[Pair]) -> dict[int, np.ndarray]:
        """Return the memory of the results that use inputs' memory: see `caches_of`."""
        return caches_of(self._arrays, inputs, pairs)

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
            if a is not result and not is_same(a, result):
                a[...] = result
            found.append(a)
        return found


def caches_of(
    given: Sequence[np.ndarray | None], inputs: Sequence[np.ndarray], pairs: Sequence[Pair]
) -> dict[int, np.ndarray]:
    """Return the memory of the results that use inputs' memory, by their number.

    `given`: the caller's array for each result. Empty unless a result's array is its input's. The
    other results of `pairs` get new memory with a copy of the input. Where two inputs share memory
    that would be written, nothing is in place.
    """
    own = {k: i for i, k in pairs if is_same(given[k], inputs[i])}
    if not own:
        return {}
    spans = sorted((*span(a), i) for i, a in enumerate(inputs) if a.nbytes)
    written = set(own.values())
    reached, last = 0, -1  # the largest end so far, and its array
    for begin, end, i in spans:
        if begin < reached and (i in written or last in written):
            return {}
        if end > reached:
            reached, last = end, i
    return {k: inputs[i] if k in own else aligned_copy(inputs[i]) for i, k in pairs}


def is_same(a: np.ndarray | None, b: np.ndarray) -> bool:
    """Return whether two dense arrays have the same elements in the same memory."""
    if a is b and b.flags.carray:
        return b.nbytes > 0
    if a is None or a.shape != b.shape or a.dtype != b.dtype or not b.nbytes:
        return False
    plain = a.flags.c_contiguous and b.flags.c_contiguous and b.flags.writeable
    return plain and address(a) == address(b)


def _problems(p: Port, a: object) -> list[str]:
    """Say why an array cannot take a result."""
    if not isinstance(a, np.ndarray):
        return [f"'out' of '{p.name}' expected an array, got {type(a).__name__}"]
    kind = dtypes.from_name(p.dtype)
    if a.dtype != kind.np:
        swapped = "" if a.dtype.isnative else " of another byte order"
        return [f"'out' of '{p.name}' expected {kind.np.name}, got {a.dtype.name}{swapped}"]
    if not a.flags.writeable:
        return [f"'out' of '{p.name}' is read-only"]
    if len(a.shape) != len(p.dims) or any(
        d not in (-1, n) for d, n in zip(p.dims, a.shape, strict=True)
    ):
        return [f"'out' of '{p.name}' expected {p}, got {_dims(a)}"]
    if a.size > 1 and any(n > 1 and not step for n, step in zip(a.shape, a.strides, strict=True)):
        return [f"'out' of '{p.name}' has several elements at one address"]
    return []


def _shared(ports: Sequence[Port], arrays: Sequence[np.ndarray | None]) -> list[str]:
    """Say which arrays have elements in the memory of others."""
    given = [(p.name, a) for p, a in zip(ports, arrays, strict=True) if a is not None and a.nbytes]
    if len(given) < 2:
        return []
    ranges = sorted(_range(a) for _, a in given)
    if all(a[1] <= b[0] for a, b in pairwise(ranges)):
        return []
    return [
        f"'out' of '{second}' shares memory with 'out' of '{first}'"
        for (first, a), (second, b) in combinations(given, 2)
        if _overlap(a, b)
    ]


def _range(a: np.ndarray) -> tuple[int, int]:
    """Return the address range of an array of any strides."""
    if a.flags.c_contiguous:
        return span(a)
    ends = [(n - 1) * step for n, step in zip(a.shape, a.strides, strict=True)]
    begin = address(a)
    return begin + sum(min(e, 0) for e in ends), begin + sum(max(e, 0) for e in ends) + a.itemsize


def _overlap(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two arrays share an element; False where that would take long to decide."""
    try:
        # numpy's stubs allow no `max_work` but 0
        return np.shares_memory(a, b, max_work=1000)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return False


def _dims(a: np.ndarray) -> str:
    return "{" + ", ".join(map(str, a.shape)) + "}"
