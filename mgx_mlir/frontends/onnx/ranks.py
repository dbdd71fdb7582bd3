"""`If` whose branches differ in rank by axes of extent 1: its result keeps these axes, marked.

squeeze(x, axes) | x -> x, whose `axes` an output drops if their extent is 1. The condition must
agree with the extents, else the run fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, Pointwise, is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.views import Identity, Squeeze
from mgx_mlir.frontends.helpers import compare, extent, require, unsqueeze
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder
from mgx_mlir.symbolic.expressions import Expr

Axes = tuple[int, ...]  # axes that one branch removes from a result


def axes_left_out(yields: Sequence[Sequence[Value]]) -> tuple[int, list[Axes]] | None:
    """Return the squeezing branch, and the axes of each result; None for other branches."""
    lower: set[int] = set()
    found: list[Axes] = []
    for pair in zip(*yields, strict=True):
        ranks = [TensorType.of(v).rank for v in pair]
        if ranks[0] == ranks[1]:
            found.append(())
            continue
        less = int(ranks[1] < ranks[0])
        axes = _squeezed(pair[less])
        high = TensorType.of(pair[1 - less]).dims
        if len(axes) != abs(ranks[0] - ranks[1]) or any(high[a] == 1 for a in axes):
            return None
        lower.add(less)
        found.append(axes)
    return (lower.pop(), found) if len(lower) == 1 else None


def _squeezed(v: Value) -> Axes:
    """Return the axes that were squeezed in a value's elementwise inputs."""
    rank = TensorType.of(v).rank
    while not isinstance(owner := v.owner, ir.Block):
        if is_a(owner, Squeeze):
            before = TensorType.of(owner.operands[0])
            axes = tuple(ir.DenseI64ArrayAttr(owner.attributes["axes"]))
            return tuple(sorted(a % before.rank for a in axes))
        by_element = is_a(owner, Identity) or is_a(owner, Pointwise)
        if not by_element or TensorType.of(owner.operands[0]).rank != rank:
            break
        v = owner.operands[0]
    return ()


def passed_on(low: Sequence[Value], high: Sequence[Value], axes: Sequence[Axes]) -> bool:
    """Return whether one branch yields outer values, and the other one squeezes them."""
    for v, whole, left_out in zip(low, high, axes, strict=True):
        v = _source(v)
        if not left_out or isinstance(v.owner, ir.Block) or not is_a(v.owner, Squeeze):
            return False
        if _source(v.owner.operands[0]) != _source(whole):
            return False
    return True


def _source(v: Value) -> Value:
    while not isinstance(v.owner, ir.Block) and is_a(v.owner, Identity):
        v = v.owner.operands[0]
    return v


def outside(v: Value) -> Value:
    """Return the outer value that a branch yields."""
    return _source(v)


def keep_axes(b: Builder, regions: Sequence[ir.Region], low: int, axes: Sequence[Axes]) -> None:
    """Add the axes again to the squeezing branch's results; check the other branch's extents."""
    for k, region in enumerate(regions):
        last = region.blocks[0].operations[-1].operation
        with ir.InsertionPoint(last):
            held = [
                unsqueeze(b, v, a) if k == low else _none_is_one(b, v, a)
                for v, a in zip(last.operands, axes, strict=True)
            ]
            OPS["yield"](held)
        last.erase()


def _none_is_one(b: Builder, v: Value, axes: Axes) -> Value:
    for axis in axes:
        other = b.not_(compare(b, "equal", extent(b, v, axis), 1))
        what = f"an extent other than 1 of dim {axis}, which the other branch drops"
        v = require(b, v, other, what)
    return v


def checked_extents(b: Builder, v: Value, axes: Axes, squeezes: Value) -> Value:
    """Return v; the run fails unless `squeezes` agrees with v's extents along `axes`."""
    ones = [compare(b, "equal", extent(b, v, a), 1) for a in axes]
    every = some = ones[0]
    for one in ones[1:]:
        every, some = b.logical_and(every, one), b.logical_or(some, one)
    if len(ones) == 1 and _same(b, squeezes, every):
        return v
    fits = b.logical_or(b.logical_and(squeezes, every), b.not_(b.logical_or(squeezes, some)))
    names = ", ".join(map(str, axes))
    what = f"an extent of 1 of dim {names} exactly where the condition takes the branch without it"
    return require(b, v, fits, what)


def _same(b: Builder, a: Value, c: Value) -> bool:
    found = [b.probe.elements(v) for v in (a, c)]
    if any(e is None or len(e) != 1 for e in found):
        return False
    (x,), (y,) = (e or [] for e in found)
    return b.probe.are_equal(x, y)


def sizes_in(b: Builder, condition: Value) -> str:
    """Return the names of the dynamic dims in a condition, as in "'n', 'm'"."""
    found = b.probe.elements(condition) or []
    return ", ".join(f"'{n}'" for n in dict.fromkeys(_names(found)))


def _names(found: Iterable[object]) -> Iterable[str]:
    for e in found:
        if not isinstance(e, Expr):
            continue
        for m in e.terms:
            for atom in m:
                if atom.kind == "size":
                    yield str(atom)
                else:
                    yield from _names(atom.arguments)
