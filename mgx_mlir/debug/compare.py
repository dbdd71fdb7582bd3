"""Compares the outputs of two runs: elementwise and by rms, both must hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.program_ir import ProgramIR
from mgx_mlir.core.shapes import TensorType

CHUNK = 1 << 20  # elements compared at a time, in f64
SHOWN = 5  # differing elements listed of one output


@dataclass(frozen=True)
class Tolerances:
    """Limits of a comparison.

    Elementwise |a - b| <= atol * s + rtol * |b|; ||a - b|| / (sqrt(n) * max(|a|, |b|)) <= rms.
    Where `scaled`, s is the reference's largest magnitude, at most `cap`, else s is 1: an absolute
    limit alone would pass anything on outputs that are all small, as those of a softmax.
    Integers and bools must be equal, or differ by at most `integer`.
    """

    rms: float = 1e-3
    atol: float = 1e-3
    rtol: float = 1e-3
    scaled: bool = True
    cap: float = 1.0
    integer: float = 0.0

    def with_limits(self, rms: float | None, atol: float | None, rtol: float | None) -> Tolerances:
        """These, with what a user states; a stated atol is taken literally."""
        found = self
        if rms is not None:
            found = replace(found, rms=rms)
        if atol is not None:
            found = replace(found, atol=atol, scaled=False, integer=atol)
        if rtol is not None:
            found = replace(found, rtol=rtol)
        return found

    def __str__(self) -> str:
        return f"rms-tol {self.rms:g}, atol {self.atol:g}, rtol {self.rtol:g}"


# MIGraphX's 1e-3 would pass a model with a wrong weight: the sign of the largest element of one
# weight flipped moves ResNet-50's outputs by 1e-4 to 8e-2 of their maximum (rms 4e-5 and more),
# BERT's by 2e-4 to 5e-3, while two correct engines differ by 1e-5 and less.
FULL_PRECISION = Tolerances(rms=1e-5, atol=5e-5, rtol=5e-5, cap=float("inf"))

# MIGraphX's limits for programs that compute in half or bf16: eight bits of mantissa, and sums
# in another order, leave some percent of the largest magnitude. 8-bit floats have less still.
LOW_PRECISION = Tolerances(rms=8e-2, atol=4e-2, rtol=4e-2)


def default_tolerances(program: ProgramIR) -> Tolerances:
    """The limits for a program: wider where a value has a 16- or 8-bit float type."""
    low = False

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal low
        for r in op.results:
            if isinstance(r.type, ir.RankedTensorType):
                low = low or TensorType.of(r).dtype.is_low_precision
        return ir.WalkResult.INTERRUPT if low else ir.WalkResult.ADVANCE

    with program.ctx:
        program.module.operation.walk(visit)
        for t in program.main().regions[0].blocks[0].arguments:
            low = low or TensorType.of(t).dtype.is_low_precision
    return LOW_PRECISION if low else FULL_PRECISION


@dataclass
class Comparison:
    """How one output compares: `problems` are why it fails, `warnings` what else to know.

    `max_abs`, `max_rel` and `rms` are over the elements that are finite on both sides; `worst`
    is the index of max_abs. `different` lists (index, target, reference) of elements beyond the
    elementwise limit, `count` how many there are.
    """

    name: str
    max_abs: float = 0.0
    max_rel: float = 0.0
    rms: float = 0.0
    worst: tuple[int, ...] = ()
    count: int = 0
    elements: int = 0
    different: list[tuple[tuple[int, ...], float, float]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.problems


def compare(
    name: str,
    got: np.ndarray,
    wanted: np.ndarray,
    tolerances: Tolerances,
    sides: tuple[str, str] = ("target", "reference"),
) -> Comparison:
    """Compare an output with the reference's; `sides` are their names in messages."""
    found = Comparison(name, elements=got.size)
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        found.problems.append(
            f"shape mismatch: {sides[0]} has {_shape(got)}, {sides[1]} has {_shape(wanted)}"
        )
        return found
    if got.size:
        _Pair(found, got.reshape(-1), wanted.reshape(-1), got.shape, tolerances, sides).run()
    return found


def _shape(a: np.ndarray) -> str:
    return f"{dtypes.from_numpy(a.dtype).name}, {{{', '.join(map(str, a.shape))}}}"


class _Pair:
    """Two flat arrays, walked in chunks: once for the magnitudes, once for the differences."""

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
        self.is_float = dtypes.from_numpy(a.dtype).is_float
        self.unlike = 0  # elements that are finite on one side only, or infinite with two signs
        self.compared = 0
        self.square = 0.0

    def run(self) -> None:
        largest_a, odd_a = self._largest(self.a)
        largest_b, odd_b = self._largest(self.b)
        scale = min(self.limits.cap, largest_b) if self.limits.scaled else 1.0
        with np.errstate(all="ignore"):
            for start in range(0, self.a.size, CHUNK):
                self._chunk(start, scale)
        magnitude = max(largest_a, largest_b)
        if self.compared and magnitude > 0:
            self.found.rms = float(np.sqrt(self.square / self.compared) / magnitude)
        self._judge((largest_a, largest_b), (odd_a, odd_b))

    def _largest(self, flat: np.ndarray) -> tuple[float, int]:
        """The largest finite magnitude, and how many elements are not finite."""
        largest, odd = 0.0, 0
        for start in range(0, flat.size, CHUNK):
            part = np.abs(flat[start : start + CHUNK].astype(np.float64))
            finite = np.isfinite(part)
            odd += int(part.size - np.count_nonzero(finite))
            largest = max(largest, float(np.max(part, where=finite, initial=0.0)))
        return largest, odd

    def _chunk(self, start: int, scale: float) -> None:
        raw_a, raw_b = self.a[start : start + CHUNK], self.b[start : start + CHUNK]
        a, b = raw_a.astype(np.float64), raw_b.astype(np.float64)
        finite = np.isfinite(a) & np.isfinite(b)
        same = (raw_a == raw_b) | (np.isnan(a) & np.isnan(b))
        difference = np.where(finite, np.abs(a - b), 0.0)
        if not self.is_float and raw_a.dtype.itemsize == 8:
            # f64 does not tell all 64-bit integers apart
            difference = np.where(~same & (difference == 0), 1.0, difference)
        if self.is_float:
            limit = self.limits.atol * scale + self.limits.rtol * np.abs(b)
        else:
            limit = np.float64(self.limits.integer)
        beyond = np.where(finite, difference > limit, ~same)
        self.unlike += int(np.count_nonzero(~finite & ~same))
        self.compared += int(np.count_nonzero(finite))
        self.square += float(np.sum(difference * difference))
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
        if found.rms > limits.rms:
            found.problems.append(f"rms {found.rms:.3g} is above {limits.rms:g}")
        if self.unlike:
            found.problems.append(f"{self.unlike} NaN or infinite on one side only")
        if not self.compared:
            found.problems.append("no element is finite on both sides: nothing is compared")
        for side, n in zip(self.sides, odd, strict=True):
            if n:
                found.warnings.append(f"{side}: {n} of {found.elements} elements are NaN or inf")
        for side, magnitude, n in zip(self.sides, largest, odd, strict=True):
            if magnitude == 0 and not n:
                found.warnings.append(f"{side}: all elements are 0")


def compare_all(
    names: Sequence[str],
    got: Sequence[np.ndarray],
    wanted_names: Sequence[str],
    wanted: Sequence[np.ndarray],
    tolerances: Tolerances,
    sides: tuple[str, str] = ("target", "reference"),
) -> list[Comparison]:
    """Compare outputs by name, or by position where the two sides name them differently.

    An output that one side lacks fails.
    """
    by_name = set(names) == set(wanted_names) and len(set(names)) == len(names)
    other = dict(zip(wanted_names, wanted, strict=True)) if by_name else {}
    out = []
    for i, (name, array) in enumerate(zip(names, got, strict=True)):
        if not by_name and i >= len(wanted):
            out.append(Comparison(name, problems=[f"{sides[1]} has no such output"]))
            continue
        b = other[name] if by_name else wanted[i]
        found = compare(name, np.asarray(array), np.asarray(b), tolerances, sides)
        if not by_name:
            found.warnings.append(f"compared with {sides[1]}'s '{wanted_names[i]}' by position")
        out.append(found)
    out += [
        Comparison(name, problems=[f"{sides[0]} has no such output"])
        for name in wanted_names[len(got) :]
    ]
    return out
