"""Chains of views as one strided index map, and the shortest chain that computes such a map.

A map gives, for each result dim, atoms (extent, stride) over the row-major elements of the
source, outermost first; stride 0 repeats. Every reshape, transpose and broadcast of static dims
turns a map into a map, or into no map (a reshape across a transposed border).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import BroadcastOp, Op, as_value, is_a
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.broadcasts import Broadcast, Multibroadcast, Scalar
from mgx_mlir.dialects.migraphx.movement import Slice
from mgx_mlir.dialects.migraphx.views import NopView, ReshapeOp, Transpose
from mgx_mlir.rewrite.pattern import Rewriter

Atom = tuple[int, int]
Map = tuple[tuple[Atom, ...], ...]
Dims = tuple[int, ...]

# the views that a map can express
VIEWS = (ReshapeOp, NopView, BroadcastOp, Transpose)
VIEWS_AND_SLICE = (*VIEWS, Slice)


@dataclass(frozen=True)
class Step:
    """One op of a chain: `reshape` to dims, `transpose` by dims, `multibroadcast` to dims, or
    `broadcast` to dims at `axis`."""

    kind: str
    dims: Dims
    axis: int = 0

    def build(self, rw: Rewriter, x: ir.Value) -> ir.Value:
        """Build the op on `x`."""
        if self.kind == "reshape":
            return rw.op("reshape", x, dims=self.dims)
        if self.kind == "transpose":
            return rw.op("transpose", x, permutation=self.dims)
        if self.kind == "broadcast":
            return rw.op("broadcast", x, axis=self.axis, out_lens=self.dims)
        return rw.op("multibroadcast", [x], out_lens=self.dims)

    def apply(self, m: Map) -> Map | None:
        """Return the map after this op."""
        if self.kind == "reshape":
            return reshaped(m, self.dims)
        if self.kind == "transpose":
            return tuple(m[p] for p in self.dims)
        at = self.axis if self.kind == "broadcast" else len(self.dims) - len(m)
        return broadcast(m, self.dims, at)


# ---- maps ---------------------------------------------------------------------------------------


def start(dims: Sequence[int]) -> Map:
    """Return the map of a tensor onto itself."""
    out: list[tuple[Atom, ...]] = []
    stride = 1
    for d in reversed(dims):
        out.append(((d, stride),) if d != 1 else ())
        stride *= d
    return tuple(reversed(out))


def extents(m: Map) -> Dims:
    """Return the result dims of a map."""
    return tuple(prod(n for n, _ in atoms) for atoms in m)


def merged(atoms: Sequence[Atom]) -> list[Atom]:
    """Return the atoms with neighbours joined where one continues the other."""
    out: list[Atom] = []
    for n, s in atoms:
        if out and (out[-1][1] == n * s if s else out[-1][1] == 0):
            out[-1] = (out[-1][0] * n, s)
        else:
            out.append((n, s))
    return out


def reshaped(m: Map, dims: Sequence[int]) -> Map | None:
    """Return the map with other dims of the same elements; None where strides cannot express it."""
    left = merged([a for atoms in m for a in atoms])
    left.reverse()
    out: list[tuple[Atom, ...]] = []
    for d in dims:
        atoms: list[Atom] = []
        while d != 1:
            if not left:
                return None
            n, s = left.pop()
            if d % n == 0:
                atoms.append((n, s))
                d //= n
            elif n % d == 0:
                atoms.append((d, s * (n // d)))
                left.append((n // d, s))
                d = 1
            else:
                return None
        out.append(tuple(merged(atoms)))
    return None if left else tuple(out)


def broadcast(m: Map, dims: Sequence[int], at: int) -> Map:
    """Return the map placed at axis `at` of `dims`, extents of 1 and all other axes repeated."""
    out: list[tuple[Atom, ...]] = []
    for i, d in enumerate(dims):
        own = m[i - at] if 0 <= i - at < len(m) else ()
        out.append(own if own or d == 1 else ((d, 0),))
    return tuple(out)


def view_of(op: ir.Operation, m: Map) -> Map | None:
    """Return the map after a view op on operand 0; None where it is not such a view."""
    if is_a(op, NopView):
        return m
    if len(op.operands) != 1:
        return None
    dims = TensorType.of(op.result).dims
    if DYN in dims or 0 in dims:
        return None
    if is_a(op, ReshapeOp):
        return reshaped(m, dims)
    view = op.opview
    if is_a(op, Transpose):
        permutation: Sequence[int] = view.permutation
        return tuple(m[p] for p in permutation)
    if is_a(op, Scalar):
        return broadcast((), dims, 0)
    if is_a(op, Broadcast):
        return broadcast(m, dims, view.axis)
    if is_a(op, Multibroadcast):
        return broadcast(m, dims, len(dims) - len(m))
    return None


def compose(source: ir.Value, ops: Sequence[ir.Operation]) -> Map | None:
    """Return the map of a chain of views from `source`; None for dynamic dims, or no such map."""
    m: Map | None = start(TensorType.of(source).dims)
    for op in ops:
        m = None if m is None else view_of(op, m)
    return m


def trace(
    value: ir.Value, views: tuple[type[Op], ...] = VIEWS
) -> tuple[ir.Value, Map, list[ir.Operation]] | None:
    """Return the source that `value` is a view of, the map, and the ops between, source first.

    The longest chain that a map can express; None for dynamic or empty dims.
    """
    ops: list[ir.Operation] = []
    dims = TensorType.of(value).dims
    if DYN in dims or 0 in dims:
        return None
    at = value
    while True:
        owner = at.owner
        if not is_a(owner, views):
            break
        source = owner.operands[0]
        dims = TensorType.of(source).dims
        if DYN in dims or 0 in dims or (not is_a(owner, NopView) and len(owner.operands) != 1):
            break
        ops.append(owner.operation)
        at = source
    ops.reverse()
    begin = 0
    while True:
        source = ops[begin].operands[0] if begin < len(ops) else value
        m: Map | None = start(TensorType.of(source).dims)
        for i in range(begin, len(ops)):
            m = view_of(ops[i], m)
            if m is None:
                begin = i if i > begin else begin + 1
                break
        else:
            assert m is not None
            return source, m, ops[begin:]


def varying(m: Map) -> frozenset[int]:
    """Return the result axes along which the elements differ."""
    return frozenset(i for i, atoms in enumerate(m) if any(s for _, s in atoms))


# ---- the shortest chain -------------------------------------------------------------------------


def steps_for(dims: Dims, m: Map) -> list[Step]:
    """Return a short chain from a tensor of `dims` to the map `m`, which has every element."""
    out = extents(m)
    if m == start(dims):
        return []
    # the units of the result: runs of repeated and of source atoms inside each dim
    units: list[list[Atom]] = []
    for atoms in m:
        runs: list[list[Atom]] = []
        for a in atoms:
            if runs and (runs[-1][-1][1] == 0) == (a[1] == 0):
                runs[-1].append(a)
            else:
                runs.append([a])
        units += runs or [[]]
    lens = tuple(prod(n for n, _ in u) for u in units)
    source = [[] if u and u[0][1] == 0 else u for u in units]
    steps = _best_shape_steps(dims, source, lens)
    if out != lens:
        steps.append(Step("reshape", out))
    return steps


def _best_shape_steps(dims: Dims, units: list[list[Atom]], lens: Dims) -> list[Step]:
    """Return steps to dims `lens`: source units in order, the others broadcast."""
    wanted = tuple(prod(n for n, _ in u) for u in units)
    options = [_with_broadcast(steps, dims, wanted, lens) for steps in _order(dims, units, wanted)]
    return min(options, key=len)


def _with_broadcast(steps: list[Step], dims: Dims, wanted: Dims, lens: Dims) -> list[Step]:
    """Return `steps` from `dims`, then a reshape to `wanted` and a broadcast to `lens`, as
    needed.
    """
    have = dims
    for s in steps:
        have = tuple(have[p] for p in s.dims) if s.kind == "transpose" else s.dims
    if have == lens:
        return steps
    short = len(wanted) - len(have)
    if short >= 0 and all(d == 1 for d in wanted[:short]) and wanted[short:] == have:
        return [*steps, Step("multibroadcast", lens)] if lens != have else steps
    if lens != wanted:
        for axis in range(short + 1):
            rest = wanted[:axis] + wanted[axis + len(have) :]
            # `broadcast` repeats whole axes: its own extents stay as they are
            fits = lens[axis : axis + len(have)] == have
            if fits and all(d == 1 for d in rest):
                return [*steps, Step("broadcast", lens, axis)]
    if steps and steps[-1].kind == "reshape":
        steps = steps[:-1]
    steps = [*steps, Step("reshape", wanted)]
    return steps if wanted == lens else [*steps, Step("multibroadcast", lens)]


def _order(dims: Dims, units: list[list[Atom]], wanted: Dims) -> list[list[Step]]:
    """Return the ways to bring the source's elements into the order of `units`."""
    flat = merged([a for u in units for a in u])
    by_stride = sorted(flat, key=lambda a: -a[1])
    if flat == by_stride:
        return [[]]
    ways: list[list[Step]] = []
    # transpose the source's own dims
    position = _positions(dims, flat)
    if position is not None:
        ways.append([Step("transpose", _placed(dims, position, wanted))])
    # reshape to one dim per unit, then transpose into place
    if all(len(merged(u)) <= 1 for u in units):
        order = sorted(range(len(units)), key=lambda i: -merged(units[i])[0][1] if units[i] else 0)
        place = tuple(order.index(i) for i in range(len(units)))
        ways.append([Step("reshape", tuple(wanted[i] for i in order)), Step("transpose", place)])
    coarse = tuple(n for n, _ in by_stride)
    ways.append([Step("reshape", coarse), Step("transpose", tuple(map(by_stride.index, flat)))])
    return ways


def _positions(dims: Dims, flat: list[Atom]) -> list[tuple[int, int]] | None:
    """Return for each source dim its position in the new order; None where an atom splits a dim."""
    out: list[tuple[int, int]] = []
    for atoms in start(dims):
        if not atoms:
            out.append((len(flat), 0))
            continue
        n, s = atoms[0]
        for i, (m, t) in enumerate(flat):
            if t <= s and s * n <= t * m:
                out.append((i, -s))
                break
        else:
            return None
    return out


def _placed(dims: Dims, position: list[tuple[int, int]], wanted: Dims) -> Dims:
    """Return the permutation in that order, extents of 1 where `wanted` has them if it can be."""
    full = sorted((i for i, d in enumerate(dims) if d != 1), key=lambda i: position[i])
    ones = [i for i, d in enumerate(dims) if d == 1]
    left, unused = list(full), list(ones)
    out: list[int] = []
    for d in wanted:
        if d == 1 and unused:
            out.append(unused.pop(0))
        elif d != 1 and left:
            out.append(left.pop(0))
    return (*out, *left, *unused)


def build_map(rw: Rewriter, x: ir.Value, m: Map) -> ir.Value:
    """Build the shortest chain from `x` to the map `m` over it."""
    value = as_value(x)
    for step in steps_for(TensorType.of(value).dims, m):
        value = step.build(rw, value)
    return value
