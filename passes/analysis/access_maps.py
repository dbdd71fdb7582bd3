"""Readers of an element, or a run of elements, of a value through views and pointwise ops.

`reader(value, lane)` follows views (reshapes, transposes, broadcasts, slices) and pointwise ops
from a value to existing tensors. It returns a function that reads the element at given coordinates,
or with a `lane` a run of elements along that dim. A run must be contiguous in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import gcd
from typing import Any

from mgx_mlir.core.dynamic_dims import UndecidedError, is_named
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import BroadcastOp, Op, Pointwise, is_a, op_class
from mgx_mlir.core.shapes import DYN, TensorType, product
from mgx_mlir.dialects.migraphx.broadcasts import Broadcast, Scalar
from mgx_mlir.dialects.migraphx.movement import Concat, Slice
from mgx_mlir.dialects.migraphx.views import NopView, ReshapeOp, Transpose
from mgx_mlir.passes.analysis.constants import splat

# an index is a number or a value of the target's IR; `k` does arithmetic on them (WorkgroupBuilder)
Coords = list[Any]
Reader = Callable[[Any, Coords, int], Any]
Step = Callable[[Any, Coords], Coords]


class Unreadable(Exception):
    """A value that cannot be read that way; the message is the reason."""


def reader(
    value: ir.Value, lane: int | None, leaves: Collection[ir.Value], *, run: int = 1
) -> Reader:
    """Return how to read `value`: f(k, coords, lanes) gives a typed scalar or vector.

    leaves: where to stop; a value that is neither a leaf, a view nor pointwise is Unreadable.
    lane: the dim along which `lanes` elements are read; run: a divisor of the start of such a run
    (at most its length).
    """
    number = splat(value)
    dtype = TensorType.of(value).dtype
    if number is not None and value not in leaves:
        return lambda k, at, lanes: k.constant(number, dtype, lanes)
    if value in leaves:
        dims = TensorType.of(value).dims
        if lane is not None and lane != len(dims) - 1:
            raise Unreadable(f"dim {lane} of {TensorType.of(value)} is not the last one")
        along = lane is not None
        return lambda k, at, lanes: k.leaf(value, at, lanes, along)
    owner = value.owner
    if isinstance(owner, ir.Block):
        raise Unreadable("a block argument that is not an operand")
    if is_a(owner, Pointwise):
        check_computable(owner)
        own = owner.opview
        parts = [reader(v, lane, leaves, run=run) for v in owner.operands]
        return lambda k, at, lanes: k.pointwise(own, [p(k, at, lanes) for p in parts])
    if is_a(owner, Concat):
        return _concat(owner.opview, lane, leaves, run)
    try:
        source, step, inner, aligned = through(owner, lane, run)
    except UndecidedError as e:
        raise Unreadable(f"'{owner.name}' of dynamic dims: {e}") from None
    read = reader(source, inner, leaves, run=aligned)
    return lambda k, at, lanes: read(k, step(k, at), lanes)


def varies_along(value: ir.Value, lane: int | None, leaves: Collection[ir.Value]) -> bool:
    """Return whether elements of a value that differ only in one dim are read at different
    addresses.

    `reader` can read `value`.
    """
    if lane is None or (splat(value) is not None and value not in leaves):
        return False
    if value in leaves or isinstance(value.owner, ir.Block):
        return True
    owner = value.owner
    if is_a(owner, Pointwise):
        return any(varies_along(v, lane, leaves) for v in owner.operands)
    if is_a(owner, Concat):
        return True
    source, _, inner, _ = through(owner, lane)
    return varies_along(source, inner, leaves)


def check_computable(op: ir.Operation) -> None:
    """Raise Unreadable for a pointwise op that readers cannot compute with."""
    cls = op_class(op)
    if cls is None or cls.raw or TensorType.of(op.results[0]).dtype.size == 8:
        raise Unreadable(f"'{op.name}' works on bits or on 64-bit elements")


def _concat(op: Op, lane: int | None, leaves: Collection[ir.Value], run: int) -> Reader:
    """Read the operand that contains an index; a run must be in one operand."""
    values = list(op.operation.operands)
    kinds = [TensorType.of(v) for v in values]
    axis: int = op.axis % kinds[0].rank
    extents = [t.dims[axis] for t in kinds]
    if any(not t.is_static or 0 in t.dims for t in kinds) or any(map(is_named, extents)):
        raise Unreadable("dynamic or empty dims")
    if lane == axis and (run == 1 or any(n % run for n in extents)):
        raise Unreadable(f"runs cross the borders of parts of {extents}")
    reads = [reader(v, lane, leaves, run=run) for v in values]
    starts = [sum(extents[:i]) for i in range(len(extents))]
    dtype = kinds[0].dtype

    def read(k: Any, at: Coords, lanes: int) -> Any:
        def part(i: int, here: Any) -> Any:
            return reads[i](k, [*at[:axis], here, *at[axis + 1 :]], lanes)

        return k.choose(at[axis], starts, extents, part, dtype, lanes)

    return read


def through(
    op: ir.Operation, lane: int | None, run: int = 1
) -> tuple[ir.Value, Step, int | None, int]:
    """Return a view's source, and its coordinates, lane and run from those of the view.

    Raises Unreadable for an op that is not such a view.
    """
    name, source = op.name, op.operands[0] if len(op.operands) else None
    if source is None or not len(op.results):
        raise Unreadable(f"'{name}' is no view")
    have, want = TensorType.of(source).dims, TensorType.of(op.results[0]).dims
    if DYN in have or DYN in want or 0 in have or 0 in want:
        raise Unreadable("dynamic or empty dims")
    view = op.opview
    if is_a(op, NopView):
        return source, lambda k, at: at, lane, run
    if is_a(op, Transpose):
        permutation = list(view.permutation)
        back = [permutation.index(i) for i in range(len(permutation))]
        inner = None if lane is None else permutation[lane]
        return source, lambda k, at: [at[i] for i in back], inner, run
    if is_a(op, BroadcastOp):
        shift = view.axis if is_a(op, Broadcast) else len(want) - len(have)
        if is_a(op, Scalar):
            shift = 0
        kept = [d == want[i + shift] if i + shift < len(want) else False
                for i, d in enumerate(have)]  # fmt: skip
        if any(not same and is_named(d) for d, same in zip(have, kept, strict=True)):
            raise Unreadable("dims may be broadcast at run time")
        inner = None
        if lane is not None and 0 <= lane - shift < len(have) and kept[lane - shift]:
            inner = lane - shift
        return (
            source,
            lambda k, at: [at[i + shift] if same else 0 for i, same in enumerate(kept)],
            inner,
            run,
        )
    if is_a(op, Slice) and len(op.operands) == 1:
        starts = [0] * len(have)
        for axis, start in zip(view.axes, view.starts, strict=True):
            at: int = axis % len(have)
            d = have[at]
            starts[at] = start and max(0, min(start + d if start < 0 else start, d))
        return (
            source,
            lambda k, at: [k.add(i, s) for i, s in zip(at, starts, strict=True)],
            lane,
            run if lane is None else gcd(run, starts[lane]) if starts[lane] else run,
        )
    if is_a(op, ReshapeOp) and len(op.operands) == 1:
        step, inner = regrouped(want, have, lane, run)
        return source, step, inner, run
    raise Unreadable(f"'{name}' is no view")


def regrouped(
    have: Sequence[int], want: Sequence[int], lane: int | None, run: int = 1
) -> tuple[Step, int | None]:
    """Map coordinates in dims `have` to those in dims `want` of the same row-major element."""
    groups = grouped(have, want)
    inner: int | None = None
    for a, b in groups:
        if lane is None or lane not in a:
            continue
        if any(have[i] != 1 for i in a if i > lane):
            raise Unreadable("a reshape makes the run non-contiguous")
        last = next((i for i in reversed(b) if want[i] != 1), b[-1] if b else None)
        if last is None:
            continue
        # a run must not cross the end of its row
        whole = want[last] == have[lane] or not want[last] % have[lane]
        if not whole and (run == 1 or is_named(want[last]) or want[last] % run):
            raise Unreadable(f"runs of {have[lane]} cross rows of {want[last]}")
        inner = last

    def step(k: Any, at: Coords) -> Coords:
        out: Coords = [0] * len(want)
        for a, b in groups:
            filled = [i for i in a if have[i] != 1]
            wanted = [j for j in b if want[j] != 1]
            if len(filled) == len(wanted) == 1:
                out[wanted[0]] = at[filled[0]]
                continue
            flat: Any = 0
            for i in filled:
                flat = k.add(k.mul(flat, have[i]), at[i])
            for n, j in enumerate(reversed(wanted)):
                out[j] = k.rem(flat, want[j]) if n + 1 < len(wanted) else flat
                flat = k.div(flat, want[j]) if n + 1 < len(wanted) else flat
        return out

    return step, inner


def grouped(have: Sequence[int], want: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Return the dims of both sides in the smallest groups of equal products, in order."""
    if product(have) != product(want):
        raise Unreadable("a reshape of other elements")
    if any(map(is_named, (*have, *want))):
        return _grouped_dynamic(have, want)
    out: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(have) or j < len(want):
        a, b, left, right = [], [], 1, 1
        if i < len(have):
            a, left, i = [i], have[i], i + 1
        if j < len(want):
            b, right, j = [j], want[j], j + 1
        while left != right:
            if left < right:
                a.append(i)
                left, i = left * have[i], i + 1
            else:
                b.append(j)
                right, j = right * want[j], j + 1
        out.append((a, b))
    return out


def _grouped_dynamic(have: Sequence[int], want: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Do the same as `grouped`, for dims that are only compared for equality."""
    out: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(have) or j < len(want):
        left, right = len(have) - i, len(want) - j
        sizes = [
            (m, n) for m in range(min(left, 1), left + 1) for n in range(min(right, 1), right + 1)
        ]
        m, n = next(
            (m, n)
            for m, n in sorted(sizes, key=sum)
            if m + n and product(have[i : i + m]) == product(want[j : j + n])
        )
        out.append((list(range(i, i + m)), list(range(j, j + n))))
        i, j = i + m, j + n
    return out
