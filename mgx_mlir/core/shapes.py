"""Tensor types as Python values, and arithmetic on dims for inference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.dynamic_dims import DYN as DYN
from mgx_mlir.core.dynamic_dims import all_named, is_named, may_be_negative, named
from mgx_mlir.core.errors import ShapeError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.relations import product_form, remainder_form, state, sum_form
from mgx_mlir.core.type_cache import MEMO

_PAST = 2**63  # above every dimension


@dataclass(frozen=True)
class TensorType:
    """A ranked tensor type: element type and dims (DYN for a dynamic dim)."""

    dtype: DType
    dims: tuple[int, ...]

    @property
    def rank(self) -> int:
        """Return the number of dims."""
        return len(self.dims)

    @property
    def is_static(self) -> bool:
        """No dim is DYN."""
        return DYN not in self.dims

    @property
    def is_known(self) -> bool:
        """True where each dim is a number: none is dynamic, with a name or without."""
        return not any(d == DYN or is_named(d) for d in self.dims)

    @property
    def elements(self) -> int:
        """The number of elements; DYN when a dimension is dynamic."""
        n = 1
        for d in self.dims:
            if d == DYN:
                return DYN
            n *= d
        return n

    def with_dims(self, dims: Iterable[int]) -> TensorType:
        """Return this element type with other dims."""
        return replace(self, dims=tuple(dims))

    def with_dtype(self, dtype: DType) -> TensorType:
        """Return these dims with another element type."""
        return replace(self, dtype=dtype)

    @staticmethod
    def of(t: ir.Type | ir.Value) -> TensorType:
        """Return the TensorType of an MLIR tensor type or value."""
        kind = t.type if isinstance(t, ir.Value) else t
        memo = MEMO.get()
        if memo is not None and (known := memo.types.get(kind)) is not None:
            return known
        if not isinstance(kind, ir.RankedTensorType):
            raise ShapeError(f"expected a ranked tensor, got {kind}")
        found = TensorType(dtypes.from_mlir(kind.element_type), all_named(kind.shape))
        if memo is not None:
            memo.types[kind] = found
        return found

    def mlir(self) -> ir.RankedTensorType:
        """Return the RankedTensorType in the current context; ShapeError beyond 64 bits."""
        if any(int.__ge__(d, _PAST) for d in self.dims):
            raise ShapeError(f"dims {show_dims(self.dims)} do not fit 64 bits")
        dims = [DYN if may_be_negative(d) else int(d) for d in self.dims]
        return ir.RankedTensorType.get(dims, self.dtype.ir_type())

    def __str__(self) -> str:
        dims = "".join(f"{'?' if d == DYN else d}x" for d in self.dims)
        return f"tensor<{dims}{self.dtype.mlir}>"


def standard_strides(dims: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides in elements; DYN where the product of the extents to the right is
    unknown.
    """
    out: list[int] = []
    step = 1
    for d in reversed(dims):
        out.append(step)
        step = DYN if DYN in (d, step) else step * d
    return tuple(reversed(out))


def _differ_at_run_time(a: int, b: int) -> bool:
    """Return whether one of two extents is dynamic, and they are not known to be equal."""
    return DYN in (a, b) or (a != b and (is_named(a) or is_named(b)))


def compatible(a: int, b: int) -> bool:
    """Return whether two extents can be equal; dynamic ones are checked at run time."""
    if _differ_at_run_time(a, b):
        state(("eq", a, b))
        return True
    return a == b


def same_count(a: int, b: int, factors: Iterable[int]) -> bool:
    """Return whether two element counts can be equal, or one of their common `factors` is 0.

    Dynamic ones are checked at run time.
    """
    if _differ_at_run_time(a, b):
        state(("eq", a, b), *(("eq", d, 0) for d in factors if d == DYN))
        return True
    return a == b


def at_most(a: int, b: int) -> bool:
    """Return whether `a` can be `b` or less; dynamic extents are checked at run time."""
    if DYN in (a, b) or is_named(a) or is_named(b):
        state(("le", a, b))
        return True
    return a <= b


def broadcasts_to(a: int, b: int) -> bool:
    """Return whether `a` can be `b` or 1; dynamic extents are checked at run time."""
    if a != 1 and _differ_at_run_time(a, b):
        state(("eq", a, b), ("eq", a, 1))
        return True
    return a in (1, b)


def is_multiple(a: int, n: int) -> bool:
    """Return whether n > 0 can divide `a`; dynamic extents are checked at run time."""
    if a == DYN:
        rest = remainder_form(a, n)
        if rest is not None and n != 1:
            state(("eq", rest, 0))
        return True
    return is_named(a) or is_named(n) or a % n == 0


def can_hold(extents: Iterable[int], wanted: Iterable[int]) -> bool:
    """Return whether no extent of `extents` is 0, or one of `wanted` is 0.

    Dynamic ones are checked at run time.
    """
    extents, wanted = list(extents), list(wanted)
    if 0 in wanted or not any(d in (0, DYN) for d in extents):
        return True
    nothing = [("eq", d, 0) for d in wanted if d == DYN]
    if 0 in extents:
        if nothing:
            state(*nothing)
        return bool(nothing)
    for d in extents:
        if d == DYN:
            state(("ne", d, 0), *nothing)
    return True


def one_element(t: TensorType) -> bool:
    """Return whether a tensor can have one element; dynamic extents are checked at run time."""
    return all(compatible(d, 1) for d in t.dims)


def add_dim(a: int, b: int) -> int:
    """Return the sum of two extents; DYN when one of them is."""
    if DYN in (a, b):
        found = sum_form(a, b, DYN)
        return DYN if found is None else found
    return a + b


def merge_dim(a: int, b: int) -> int | None:
    """Return the more precise of two extents that must be equal; None where they cannot be."""
    if _differ_at_run_time(a, b):
        state(("eq", a, b))
    if b == DYN or (a != DYN and a != b and is_named(b)):
        return a
    if a == DYN or (a != b and is_named(a)):
        return b
    if a == b:
        # symbolic/extents.py has other extents
        return a if isinstance(a, int) else b  # pyright: ignore[reportUnnecessaryIsInstance]
    return None


def merge_dims(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...] | None:
    """Apply merge_dim to two lists of dims of equal rank; None where two differ."""
    if len(a) != len(b):
        return None
    merged = [merge_dim(x, y) for x, y in zip(a, b, strict=True)]
    return None if any(m is None for m in merged) else tuple(m for m in merged if m is not None)


def broadcast_dims(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Broadcast dims as numpy does; dynamic with 1 is dynamic, dynamic with a static extent above 1
    is static.

    Raises ShapeError where extents differ and none is 1.
    """
    rank = max((len(s) for s in shapes), default=0)
    out: list[int] = []
    for axis in range(-rank, 0):
        extents = [s[axis] for s in shapes if len(s) >= -axis]
        fixed = {d for d in extents if d not in (1, DYN)}
        if len(fixed) > 1:
            # different names may still have equal sizes, or size 1
            fixed -= (unsettled := {d for d in fixed if is_named(d)})
            extents += [DYN] * bool(unsettled and not fixed)
        if len(fixed) > 1:
            text = " and ".join("{" + ", ".join(map(str, s)) + "}" for s in shapes)
            raise ShapeError(f"dims {text} do not broadcast")
        dynamic_ones = [d for d in extents if d == DYN]
        out.append(next(iter(fixed)) if fixed else next(iter(dynamic_ones), 1))
        for i, d in enumerate(dynamic_ones):
            for other in (*fixed, *dynamic_ones[i + 1 :]):
                state(("eq", d, other), ("eq", d, 1), *([("eq", other, 1)] if other == DYN else []))
    return tuple(out)


def show_dims(dims: Iterable[int]) -> str:
    """Return dims in the form of messages: `{2, ?}`."""
    # symbolic/extents.py has other extents
    each = (
        str(named(d) if isinstance(d, int) else d)  # pyright: ignore[reportUnnecessaryIsInstance]
        for d in dims
    )
    return "{" + ", ".join(each) + "}"


def product(dims: Iterable[int]) -> int:
    """Return the product of extents; DYN when one of them is, unless another is zero."""
    n, dynamic, dims = 1, False, list(dims)
    for d in dims:
        if d == DYN:
            dynamic = True
        else:
            n *= d
    if not dynamic or n == 0:
        return n
    found = product_form(dims, DYN)
    return DYN if found is None else found
