"""Compare the outputs of two runs elementwise and by rms; both must hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.names import safe_name

if TYPE_CHECKING:
    from mgx_mlir.debug.tolerances import Tolerances

CHUNK = 1 << 20  # elements compared at a time, in f64
SHOWN = 5  # differing elements listed of one output
SHOWN_TEXT = 80  # characters of a string


@dataclass
class Comparison:
    """Comparison of one output with its reference."""

    name: str
    # largest absolute difference of elements that are finite on both sides
    max_abs: float = 0.0
    # largest difference of the same elements, relative to the reference
    max_rel: float = 0.0
    # rms difference of the same elements, relative to the largest finite magnitude of both sides
    rms: float = 0.0
    worst: tuple[int, ...] = ()  # index of `max_abs`
    count: int = 0  # number of elements beyond the elementwise limit, or of unequal strings
    elements: int = 0  # number of elements
    strings: bool = False  # elements are strings: there are no differences, only unequal ones
    sides: tuple[str, str] = ("target", "reference")  # names of the two sides in messages
    limits: Tolerances | None = None
    shapes: tuple[str, str] | None = None  # types and dims of the two sides, if they differ
    # first element beyond the limit, else the first unequal one: (flat index, target, reference)
    mismatch: tuple[int, float, float] | None = None
    # first NaN or infinity of a side, by its name in `sides`: (flat index, value)
    odd: dict[str, tuple[int, float]] = field(default_factory=dict)
    zero: tuple[str, ...] = ()  # sides whose elements are all 0
    # first elements beyond the limit, SHOWN at most: (index, target, reference)
    different: list[tuple[tuple[int, ...], float, float]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)  # reasons of the failure
    warnings: list[str] = field(default_factory=list)  # remarks that do not fail the output

    @property
    def passed(self) -> bool:
        """Return whether no check failed."""
        return not self.problems


def compare(
    name: str,
    got: np.ndarray,
    wanted: np.ndarray,
    tolerances: Tolerances,
    sides: tuple[str, str] = ("target", "reference"),
) -> Comparison:
    """Compare an output with the reference's; `sides` are their names in messages.

    Arrays of objects hold strings, which must be equal.
    """
    found = Comparison(name, elements=got.size, limits=tolerances, sides=sides)
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        found.shapes = (shape_text(got), shape_text(wanted))
        found.problems.append(
            f"shape mismatch: {sides[0]} has {found.shapes[0]}, {sides[1]} has {found.shapes[1]}"
        )
        return found
    if got.dtype == object:
        found.strings = True
        _compare_strings(found, got, wanted)
    elif got.size:
        _Pair(found, got.reshape(-1), wanted.reshape(-1), got.shape, tolerances, sides).run()
    return found


def _compare_strings(found: Comparison, got: np.ndarray, wanted: np.ndarray) -> None:
    """Count the strings that differ, and note the first: strings have no tolerance."""
    unlike = np.flatnonzero(np.asarray(got != wanted, bool).reshape(-1))
    found.count = len(unlike)
    if not found.count:
        return
    flat = int(unlike[0])
    where = ", ".join(str(int(i)) for i in np.unravel_index(flat, got.shape))
    a, b = (safe_name(str(x.reshape(-1)[flat])[:SHOWN_TEXT]) for x in (got, wanted))
    what = "string differs" if found.count == 1 else "strings differ"
    found.problems.append(
        f"{found.count} of {found.elements} {what}, at {{{where}}} "
        f"{found.sides[0]} has '{a}', {found.sides[1]} '{b}'"
    )


def shape_text(a: np.ndarray) -> str:
    """Return the type and dims of an array, as messages show them."""
    name = "string" if a.dtype == object else dtypes.from_numpy(a.dtype).name
    return f"{name}, {{{', '.join(map(str, a.shape))}}}"


class _Pair:
    """Two flat arrays, read in chunks: once for the magnitudes, once for the differences."""

    def __init__(
        self,
        found: Comparison,
        a: np.ndarray,
        b: np.ndarray,
        dims: tuple[int, ...],
        limits: Tolerances,
        sides: tuple[str, str],
    ) -> None:
        self.found, self.a, self.b, self.dims = found, a, b, dims
        self.limits, self.sides = limits, sides
        dtype = dtypes.from_numpy(a.dtype)
        self.is_float = dtype.is_float
        # smallest normal number of the type that the values are computed in
        self.least = 0.0
        if dtype.is_float:
            info: Any = ml_dtypes.finfo(np.float64 if dtype is dtypes.DOUBLE else np.float32)
            self.least = float(info.tiny)
        self.undefined = 0  # elements that are NaN on both sides
        # elements that are finite on one side only, or infinite with different signs
        self.unlike = 0
        self.compared = 0
        self.apart = 0  # elements whose difference exceeds the rms limit
        self.square = 0.0
        # first difference beyond the limit (True), and first one at all (False)
        self.first: dict[bool, tuple[int, float, float]] = {}

    def run(self) -> None:
        largest_a, odd_a = self._largest(self.a, self.sides[0])
        largest_b, odd_b = self._largest(self.b, self.sides[1])
        scale = min(self.limits.cap, largest_b) if self.limits.scaled else 1.0
        magnitude = max(largest_a, largest_b)
        with np.errstate(all="ignore"):
            for start in range(0, self.a.size, CHUNK):
                self._chunk(start, scale, magnitude)
        if self.compared and magnitude > 0:
            self.found.rms = float(np.sqrt(self.square / self.compared) / magnitude)
        self.found.mismatch = self.first.get(True, self.first.get(False))
        self._judge((largest_a, largest_b), (odd_a, odd_b))

    def _largest(self, flat: np.ndarray, side: str) -> tuple[float, int]:
        """Return the largest finite magnitude, and the number of elements that are not finite."""
        largest, odd = 0.0, 0
        for start in range(0, flat.size, CHUNK):
            part = np.abs(flat[start : start + CHUNK].astype(np.float64))
            finite = np.isfinite(part)
            if side not in self.found.odd and not finite.all():
                at = start + int(np.argmin(finite))
                self.found.odd[side] = (at, float(flat[at]))
            odd += int(part.size - np.count_nonzero(finite))
            largest = max(largest, float(np.max(part, where=finite, initial=0.0)))
        return largest, odd

    def _chunk(self, start: int, scale: float, magnitude: float) -> None:
        raw_a, raw_b = self.a[start : start + CHUNK], self.b[start : start + CHUNK]
        a, b = raw_a.astype(np.float64), raw_b.astype(np.float64)
        finite = np.isfinite(a) & np.isfinite(b)
        undefined = np.isnan(a) & np.isnan(b)
        same = (raw_a == raw_b) | undefined
        self.undefined += int(np.count_nonzero(undefined))
        difference = np.where(finite, np.abs(a - b), 0.0)
        if self.least:
            # IREE's CPU runtime flushes subnormal numbers to 0 (docs/special-values.md)
            difference[np.maximum(np.abs(a), np.abs(b)) < self.least] = 0.0
        if not self.is_float and raw_a.dtype.itemsize == 8:
            # f64 cannot represent all 64-bit integers
            difference = np.where(~same & (difference == 0), 1.0, difference)
        if self.is_float:
            limit = self.limits.atol * scale + self.limits.rtol * np.abs(b)
        else:
            limit = np.float64(self.limits.integer)
        if self.is_float and not self.limits.elementwise:
            limit = np.float64(np.inf)
        beyond = np.where(finite, difference > limit, ~same)
        for key, where in ((True, beyond), (False, ~same)):
            if key not in self.first and where.any():
                at = int(np.argmax(where))
                self.first[key] = (start + at, float(a[at]), float(b[at]))
        self.unlike += int(np.count_nonzero(~finite & ~same))
        self.compared += int(np.count_nonzero(finite))
        self.square += float(np.sum(difference * difference))
        self.apart += int(np.count_nonzero(difference > self.limits.rms * magnitude))
        self._worst(start, difference, b)
        for i in np.flatnonzero(beyond)[: max(SHOWN - len(self.found.different), 0)]:
            self.found.different.append((self._index(start + int(i)), float(a[i]), float(b[i])))
        self.found.count += int(np.count_nonzero(beyond))

    def _worst(self, start: int, difference: np.ndarray, b: np.ndarray) -> None:
        at = int(np.argmax(difference))
        if difference[at] > self.found.max_abs or not self.found.worst:
            self.found.max_abs = max(float(difference[at]), self.found.max_abs)
            self.found.worst = self._index(start + at)
        nonzero = np.isfinite(b) & (b != 0)
        relative = np.divide(difference, np.abs(b), out=np.zeros_like(b), where=nonzero)
        self.found.max_rel = max(self.found.max_rel, float(relative.max(initial=0.0)))

    def _index(self, flat: int) -> tuple[int, ...]:
        return tuple(int(i) for i in np.unravel_index(flat, self.dims)) if self.dims else ()

    def _judge(self, largest: tuple[float, float], odd: tuple[int, int]) -> None:
        found, limits = self.found, self.limits
        if found.count:
            what = "element differs" if found.count == 1 else "elements differ"
            found.problems.append(f"{found.count} of {found.elements} {what}")
        few = None if limits.few is None else max(limits.few * self.compared, 1)
        if found.rms > limits.rms and (few is None or self.apart > few):
            found.problems.append(f"rms {found.rms:.3g} is above {limits.rms:g}")
        if self.unlike:
            found.problems.append(f"{self.unlike} NaN or infinite on one side only")
        if not self.compared:
            found.problems.append("no element is finite on both sides: there is nothing to compare")
        if self.undefined:
            found.warnings.append(
                f"undefined: {self.undefined} of {found.elements} elements are NaN on both sides"
            )
        for side, n in zip(self.sides, odd, strict=True):
            if n > self.undefined:
                found.warnings.append(f"{side}: {n} of {found.elements} elements are NaN or inf")
        for side, magnitude, n in zip(self.sides, largest, odd, strict=True):
            if magnitude == 0 and not n:
                found.zero += (side,)
                found.warnings.append(f"{side}: all elements are 0")


def as_array(value: Any) -> np.ndarray:
    """Return an output as one array; maps become rows of values in the order of sorted keys."""
    maps = isinstance(value, list) and bool(value) and all(isinstance(m, dict) for m in value)
    if not maps:
        return np.asarray(value)
    return np.array([[m[k] for k in sorted(m)] for m in value], np.float32)


def compare_all(
    names: Sequence[str],
    got: Sequence[Any],
    wanted_names: Sequence[str],
    wanted: Sequence[Any],
    tolerances: Sequence[Tolerances],
    sides: tuple[str, str] = ("target", "reference"),
) -> list[Comparison]:
    """Compare outputs by name, or by position if the two sides name them differently.

    `tolerances` has the limits of each target output. An output that one side lacks fails.
    """
    by_name = set(names) == set(wanted_names) and len(set(names)) == len(names)
    other = dict(zip(wanted_names, wanted, strict=True)) if by_name else {}
    out = []
    for i, (name, array) in enumerate(zip(names, got, strict=True)):
        if not by_name and i >= len(wanted):
            out.append(Comparison(name, sides=sides, problems=[f"{sides[1]} has no such output"]))
            continue
        b = other[name] if by_name else wanted[i]
        found = compare(name, as_array(array), as_array(b), tolerances[i], sides)
        if not by_name:
            found.warnings.append(f"compared with {sides[1]}'s '{wanted_names[i]}' by position")
        out.append(found)
    out += [
        Comparison(name, sides=sides, problems=[f"{sides[0]} has no such output"])
        for name in wanted_names[len(got) :]
    ]
    return out
