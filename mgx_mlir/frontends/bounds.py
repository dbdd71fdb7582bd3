"""Checks that the values an operator reads (indices, lengths, labels, ratios) are within limits.

A constant is checked at import. A program input is checked on the host at each call, which costs no
kernel. A computed value is checked during the run by the op `require`.
"""

from __future__ import annotations

import numpy as np

from mgx_mlir.core.dtypes import INT64, DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends.helpers import (
    compare,
    convert,
    extent,
    greater_equal,
    require,
    single,
    slice_,
    squeeze,
)
from mgx_mlir.frontends.values import Value
from mgx_mlir.passes.analysis.input_values import dim_source, source_of
from mgx_mlir.programs.build import Builder
from mgx_mlir.programs.value_rules import Term, ValueRule


@dataclass(frozen=True)
class Dim:
    """A limit: the extent of `of` along `axis`, plus `more`."""

    of: Value
    axis: int
    name: str  # name of the limit in messages
    more: int = 0


@dataclass(frozen=True)
class Sum:
    """A limit: `base`, plus parts that depend on values."""

    base: int
    # (value, axis, factor): extent of the axis times the factor; axis -1: the value's one element
    parts: tuple[tuple[Value, int, int], ...]
    name: str  # name of the limit in messages

    def value(self, b: Builder, dtype: DType) -> Value:
        """Return the sum as a 0-d tensor."""
        total = b.literal(self.base, INT64)
        for v, axis, factor in self.parts:
            part = extent(b, v, axis) if axis >= 0 else convert(b, single(b, v, self.name), INT64)
            total = b.add(total, b.mul(part, factor))
        return convert(b, total, dtype)


Limit = int | Sum  # a number, or a sum known only at run time


def within(
    b: Builder,
    x: Value,
    what: str,
    low: int | None,
    below: int | Dim | Sum | None = None,
    *,
    besides: int | None = None,
    column: int | None = None,
    computed: bool = True,
) -> Value:
    """Return `x`; the run fails unless its elements lie in [low, below).

    what: the operand, for messages. low: None stands for -below. below: None stands for no limit.
    besides: an additional allowed value. column: check only this index of the last axis. computed:
    check computed values too, which costs a kernel and a synchronization. Errors: ModelError for a
    constant.
    """
    limit = _settled(b, below)
    known = b.const(x)
    if known is not None and not isinstance(limit, Sum):
        _check_constant(known, what, low, limit, besides, column)
        return x
    source = source_of(x) if column is None else x
    given = _is_argument(source, ir.InsertionPoint.current.block)
    if given and known is None and _stated(b, source, what, low, limit, besides, column):
        return x
    if not computed and not given and known is None:
        return x
    return _required(b, x, what, low, limit, besides, column)


def _settled(b: Builder, below: int | Dim | Sum | None) -> Limit | None:
    """Return a limit with its known parts folded into the base."""
    if isinstance(below, Dim):
        name = f"{below.name}{f' + {below.more}' if below.more else ''}"
        below = Sum(below.more, ((below.of, below.axis, 1),), name)
    if not isinstance(below, Sum):
        return below
    base, parts = below.base, []
    for v, axis, factor in below.parts:
        if axis >= 0:
            n = None if b.dims(v)[axis] == DYN else b.dims(v)[axis]
        else:
            known = b.const(v)
            n = int(known.max()) if known is not None and known.size else None
        if n is None:
            parts.append((v, axis, factor))
        else:
            base += factor * n
    return Sum(base, tuple(parts), below.name) if parts else base


def body_reads_input(x: Value) -> bool:
    """Return whether `x` is a program input that is read in a branch or a loop.

    The checks of a call skip it, because a run may not reach it.
    """
    owner = source_of(x).owner
    return (
        isinstance(owner, ir.Block)
        and owner != ir.InsertionPoint.current.block
        and owner.owner.operation.name == "func.func"
    )


def indices_within(b: Builder, indices: Value, data: Value, axis: int) -> Value:
    """Return indices into an axis; check them during the run if a body reads them from an input."""
    if not body_reads_input(indices):
        return indices  # checked at the call (passes/analysis/input_values.py), or computed
    n = extent(b, data, axis)
    wide = convert(b, indices, INT64)
    fits = b.logical_and(greater_equal(b, wide, b.neg(n)), compare(b, "less", wide, n))
    return require(b, indices, all_true(b, fits), f"indices within dim {axis}")


def nonzero_divisor(b: Builder, y: Value) -> Value:
    """Return an integer divisor; check it during the run if a body reads it from an input."""
    if b.dtype(y).is_float or not body_reads_input(y):
        return y
    return require(b, y, all_true(b, b.not_(compare(b, "equal", y, 0))), "a divisor other than 0")


def all_true(b: Builder, condition: Value) -> Value:
    """Return whether all elements are true, as a 0-d bool tensor."""
    rank = len(b.dims(condition))
    if not rank:
        return condition
    wrong = b.reduce_sum(convert(b, b.not_(condition), INT64), axes=list(range(rank)))
    return compare(b, "equal", squeeze(b, wrong, range(rank)), 0)


def _check_constant(
    known: np.ndarray, what: str, low: int | None, n: int | None, besides: int | None,
    column: int | None,
) -> None:  # fmt: skip
    low = low if low is not None or n is None else -n
    assert low is not None
    values = known if column is None else known[..., column]
    fits = (values >= low) & (True if n is None else values < n)
    if besides is not None:
        fits |= values == besides
    if not np.all(fits):
        wrong = np.asarray(values)[~np.asarray(fits)].ravel()[0]
        raise ModelError(f"{what} expected {_limits(low, n)}, got {wrong}")


def _limits(low: int, n: int | None) -> str:
    return f"values from {low} on" if n is None else f"values in [{low}, {n})"


def _stated(
    b: Builder,
    source: Value,
    what: str,
    low: int | None,
    limit: Limit | None,
    besides: int | None,
    column: int | None,
) -> bool:
    """Add a rule for a program input; return whether that was possible."""
    here = ir.InsertionPoint.current.block
    terms: list[Term] = []
    for v, axis, factor in limit.parts if isinstance(limit, Sum) else ():
        found = dim_source(v, axis) if axis >= 0 else (source_of(v), -1)
        if found is None or not _is_argument(found[0], here):
            return False
        terms.append((ir.BlockArgument(found[0]).arg_number, found[1], factor))
    b.rules.append(
        ValueRule(
            ir.BlockArgument(source).arg_number,
            str(ir.Location.current),
            limit.base if isinstance(limit, Sum) else limit,
            tuple(terms),
            column,
            low,
            besides,
            b.operator,
            what,
        )
    )
    return True


def _is_argument(v: ir.Value, here: ir.Block) -> bool:
    """Return whether `v` is an argument of the entry function, and `here` is its block."""
    return (
        isinstance(v.owner, ir.Block)
        and v.owner == here
        and here.owner.operation.name == "func.func"
    )


def _required(
    b: Builder,
    x: Value,
    what: str,
    low: int | None,
    limit: Limit | None,
    besides: int | None,
    column: int | None,
) -> Value:
    rank = len(b.dims(x))
    values = x if column is None else slice_(b, x, [rank - 1], [column], [column + 1])
    if limit is None:
        assert low is not None
        fits, told = greater_equal(b, values, low), f"{what} from {low} on"
    else:
        fits, told = _inside(b, values, what, low, limit)
    if besides is not None:
        fits = b.logical_or(fits, compare(b, "equal", values, besides))
    return require(b, x, all_true(b, fits), told)


def _inside(
    b: Builder, values: Value, what: str, low: int | None, limit: Limit
) -> tuple[Value, str]:
    """Return whether each value lies in [low, limit), and the limits in words, for messages."""
    n = limit.value(b, b.dtype(values)) if isinstance(limit, Sum) else limit
    least = low if low is not None else b.neg(n) if isinstance(limit, Sum) else -limit
    fits = b.logical_and(greater_equal(b, values, least), compare(b, "less", values, n))
    if isinstance(limit, Sum):
        begin = low if low is not None else f"-({limit.name})"
        return fits, f"{what} from {begin} to less than {limit.name}"
    return fits, f"{what} in [{least}, {limit})"
