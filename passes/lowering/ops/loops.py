"""Lowering of loops to scf.for or scf.while, with a buffer for each scan output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.ir import arith, ir, scf, tensor
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.op import is_a
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.control import Loop
from mgx_mlir.dialects.migraphx.views import Identity
from mgx_mlir.passes.analysis.control_flow import captured, host_arguments, is_static
from mgx_mlir.passes.lowering import assertions, index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent, Leaf, Splat
from mgx_mlir.passes.lowering.iree import buffer_views, iree_ops
from mgx_mlir.passes.lowering.ops.carried import (
    Carried,
    elements_of,
    flag,
    flatten,
    i1,
    opaque,
    shared_with_others,
    unflatten,
)
from mgx_mlir.passes.lowering.ops.movement import extract_slice, insert_slice
from mgx_mlir.passes.lowering.registry import Results, lowers
from mgx_mlir.passes.lowering.scalar import TypedScalar, signless

_FIRST_ROWS = 16  # first rows of a growing buffer
_PREALLOCATED = 1 << 26  # most bytes of a buffer that is allocated for the maximum trip count


@lowers(Loop)
def loop(op: Loop, ins: tuple[()], e: LoweringContext) -> Results:
    """scf.for where the condition stays true, else scf.while; each scan output is a buffer."""
    return _Loop(op, e).run()


def _count(e: LoweringContext, v: ir.Value) -> Extent:
    """Return a number of iterations, 0 where it is negative."""
    t = TensorType.of(v)
    held = e.elements(v)
    if held is not None:
        x = held.reshape(-1)[0]
        if not isinstance(x, TypedScalar):
            return min(max(int(x), 0), 2**63 - 1)
        value = x.value
    else:
        value = index.read_only_element(e, e.tensor(v))
    return e.max(index.to_index(value, t.dtype), 0)


def _bind(e: LoweringContext, argument: ir.Value, value: Carried) -> None:
    """Bind a block argument to a lowered value."""
    if isinstance(value, ir.Value):
        t = TensorType.of(argument).with_dims(ir.RankedTensorType(value.type).shape)
        e.bind(argument, Leaf(t, value))
    else:
        e.bind(argument, value)


def _tied(e: LoweringContext, value: ir.Value, extents: Sequence[Extent]) -> ir.Value:
    """Return `value` tied to these dynamic extents, as IREE does not find extents of branch results
    inside of a loop.


    """
    return iree_ops.tied(value, e.dynamic_values(extents))


def _buffer(e: LoweringContext, extents: Sequence[Extent], t: TensorType) -> ir.Value:
    """Return a new buffer of `extents`.

    Two plain tensor.empty would be merged. The barrier waits for the memory, which a loop without
    iterations would pass on unallocated.
    """
    kind = ir.RankedTensorType.get(e.static_dims(extents), signless(t.dtype))
    made = iree_ops.build("flow.tensor.alloca", e.dynamic_values(extents), [kind])
    return e.barrier(made.result, extents)


def _ready(e: LoweringContext, value: ir.Value) -> ir.Value:
    """Return an initial value of a loop; a tensor is computed before the loop.

    IREE does not end where iterations wait for a computation before the loop (hazard 48).
    """
    if not isinstance(value.type, ir.RankedTensorType):
        return value
    return e.barrier(value, e.extents(value))


def _in_place(e: LoweringContext, buffer: ir.Value) -> ir.Value:
    """Return a loop's buffer, annotated with the program's device.

    IREE finds no device for a loop-carried tensor, and copies it whole in each iteration. Not for
    values with equal copies: IREE 3.13 updates both in one buffer.
    """
    device = {"target": ir.Attribute.parse("#hal.device.promise<@__device_0>")}
    operands = [buffer, *e.dynamic_values(e.extents(buffer))]
    return iree_ops.build("flow.tensor.transfer", operands, [buffer.type], attributes=device).result


@dataclass
class _Scan:
    """A scan output: its element's type, and the buffer that the loop carries for it.

    `rows` is the buffer's first extent, None where it grows; `fixed` says that the buffer is made
    ahead of the loop, which needs the element's extents.
    """

    type: TensorType
    backward: bool
    rows: Extent | None
    fixed: bool
    start: ir.Value


class _Loop:
    """The lowering of one loop."""

    def __init__(self, op: Loop, e: LoweringContext) -> None:
        self.op, self.e = op.operation, e
        self.padded, self.most = op.padded, op.max_iterations
        self.block = self.op.regions[0].blocks[0]
        self.arguments = list(self.block.arguments)
        last = self.block.operations[len(self.block.operations) - 1].operation
        self.yields = list(last.operands)
        self.types = [TensorType.of(a) for a in self.arguments[2:]]
        directions = list(op.scan_output_directions) or [0] * self.scan_count
        self.directions = [bool(d) for d in directions]
        self.scans: list[_Scan] = []
        self.static = is_static(self.op)

    @property
    def scan_count(self) -> int:
        return len(self.yields) - 1 - len(self.types)

    # ---- before the loop ---------------------------------------------------------------------

    def run(self) -> list[Carried]:
        e, operands = self.e, list(self.op.operands)
        going = flag(e, operands[1])
        self.limit = _count(e, operands[0])
        if self.padded:
            self.limit = e.min(self.limit, self.most)
        if going is False:
            self.limit, going = 0, True
        # the number of iterations is known before the loop
        self.exact = going is True and self.is_true(self.yields[0])
        if isinstance(self.limit, int) and self.limit == 0:
            self.exact = True
        held = host_arguments(self.op, lambda v: e.elements(v) is not None)
        self.scalars = [a in held for a in self.arguments[2:]]
        for v in captured(self.op):
            self.settle(v)
        start: list[Carried] = []
        for v, t, is_host in zip(operands[2:], self.types, self.scalars, strict=True):
            start.append(e.scope.elements[v] if is_host else e.refine(e.tensor(v), t))
        for v, backward in zip(self.yields[1 + len(self.types) :], self.directions, strict=True):
            self.scans.append(self.scan(TensorType.of(v), backward))
        buffers = [s.start for s in self.scans]
        self.kinds = [e.mlir_type(t) for t in self.types]
        shared = [True] * len(start)
        initial = [*flatten(e, start, self.types, shared, static=self.static), *buffers]
        if isinstance(self.limit, int) and self.limit == 0:
            results, count = initial, 0
        elif (
            self.exact and all(t.is_static for t in self.types) and all(s.fixed for s in self.scans)
        ):  # IREE takes the carried extents of an scf.for to be the first ones
            results, count = self.counted(initial), self.limit
        else:
            results, count = self.conditional(initial, going)
        n = len(results) - len(buffers)
        results = [
            buffer_views.settled(e, v) if isinstance(v.type, ir.RankedTensorType) else opaque(v)
            for v in results
        ]
        count = opaque(count)
        carried = self.carried(results[:n])
        return [
            *carried,
            *(self.output(s, b, count) for s, b in zip(self.scans, results[n:], strict=True)),
        ]

    def carried(self, values: Sequence[ir.Value]) -> list[Carried]:
        """Return the carried values as lists."""
        return unflatten(self.e, values, self.types, self.scalars, self.kinds, static=self.static)

    def is_true(self, v: ir.Value) -> bool:
        """Return whether a condition that the body yields is what it got, or constant true."""
        if v == self.arguments[1]:
            return True
        owner = v.owner
        if isinstance(owner, ir.Block):
            return False
        if is_a(owner, Identity):
            return self.is_true(owner.operands[0])
        if is_literal(owner):
            return bool(literals.array_of(owner).all())
        held = self.e.elements(v)
        return held is not None and held.reshape(-1)[0] is True

    def settle(self, v: ir.Value) -> None:
        """Materialise captured values before the loop, not in each iteration."""
        found = self.e.scope.exprs.get(v)
        if found is not None and not isinstance(found, Leaf | Splat):
            self.e.tensor(v)

    def scan(self, t: TensorType, backward: bool) -> _Scan:
        e, rows = self.e, self.limit
        if self.padded:
            rows = self.most
        bytes_ = t.elements * t.dtype.size
        small = isinstance(rows, int) and rows * max(bytes_, 1) <= _PREALLOCATED
        known = self.exact or self.padded or small
        if t.is_static and known:
            return _Scan(t, backward, rows, True, _buffer(e, [rows, *t.dims], t))
        none = opaque(e.index(0))
        extents = [none if d == DYN else d for d in t.dims]
        if known and not t.is_static:
            # extents of the elements are known in the first iteration; until then there are none
            return _Scan(t, backward, rows, False, self.buffer([rows, *extents], t))
        return _Scan(t, backward, None, False, self.buffer([none, *extents], t))

    def is_cleared(self) -> bool:
        """Return whether a part of the buffers is not written by the loop."""
        same = isinstance(self.limit, int) and self.limit == self.most
        return self.padded and not (self.exact and same)

    def buffer(self, extents: Sequence[Extent], t: TensorType) -> ir.Value:
        """Return an empty buffer of the type that the loop carries."""
        kind = self.e.mlir_type(t.with_dims([self.first_dim(extents[0]), *t.dims]))
        made = _buffer(self.e, extents, t)
        return made if made.type == kind else tensor.CastOp(kind, made).result

    def first_dim(self, rows: Extent) -> int:
        known = isinstance(rows, int) and (self.padded or (self.exact and rows))
        return rows if known and isinstance(rows, int) else DYN

    # ---- the loop ----------------------------------------------------------------------------

    def counted(self, initial: list[ir.Value]) -> list[ir.Value]:
        """Build a loop whose number of iterations is known before it."""
        e = self.e
        made = scf.ForOp(e.index(0), e.index(self.limit), e.index(1), initial)
        with ir.InsertionPoint(made.body), e.inner_scope():
            true = np.empty((), object)
            true[()] = True
            found = self.body(made.induction_variable, true, list(made.inner_iter_args))
            scf.YieldOp(found[1])
            assertions.wait(e, made.body)
        return list(made.results)

    def conditional(
        self, initial: list[ir.Value], going: bool | ir.Value
    ) -> tuple[list[ir.Value], ir.Value]:
        """Build a loop that its body may end, or whose carried extents change."""
        e = self.e
        flags = [] if self.exact else [i1(going)]
        own = len(initial) - len(self.scans)  # buffers of scans are computed already
        start = [e.index(0), *flags, *(_ready(e, v) for v in initial[:own]), *initial[own:]]
        kinds = [v.type for v in start]
        made = ir.Operation.create("scf.while", results=kinds, operands=start, regions=2)
        before = made.regions[0].blocks.append(*kinds, arg_locs=None)
        with ir.InsertionPoint(before):
            i, *rest = before.arguments
            more = index.compare(e, index.SLT, i, self.limit)
            for flag in rest[: len(flags)]:
                more = arith.AndIOp(more, flag).result
            scf.ConditionOp(more, list(before.arguments))
        after = made.regions[1].blocks.append(*kinds, arg_locs=None)
        with ir.InsertionPoint(after), e.inner_scope():
            i, rest = after.arguments[0], list[ir.Value](after.arguments)[1:]
            held = np.empty((), object)
            held[()] = TypedScalar(rest[0], dtypes.BOOL) if flags else True
            again, found = self.body(i, held, rest[len(flags) :])
            following = [e.index(e.add(i, 1))]
            if flags:
                # the flag is true here, but must be read: IREE would drop it from this region only,
                # and mix up the arguments of the two regions
                following.append(arith.AndIOp(i1(again), rest[0]).result)
            scf.YieldOp([*following, *found])
            assertions.wait(e, after)
        count, *results = made.results
        return list(results[len(flags) :]), count

    def body(
        self, number: ir.Value, going: np.ndarray, state: list[ir.Value]
    ) -> tuple[bool | ir.Value, list[ir.Value]]:
        """Build one iteration; return the next condition, and the next state."""
        e = self.e
        n = len(state) - len(self.scans)
        held = np.empty((), object)
        held[()] = TypedScalar(index.as_i64(e, number), dtypes.INT64)
        for argument, value in zip(self.arguments[:2], (held, going), strict=True):
            e.bind(argument, np.broadcast_to(value, TensorType.of(argument).dims))
        for argument, value in zip(self.arguments[2:], self.carried(state[:n]), strict=True):
            _bind(e, argument, value)
        yields = e.statements(self.block)
        again = flag(e, yields[0])
        following: list[Carried] = []
        for v, t, is_host in zip(yields[1:], self.types, self.scalars, strict=False):
            following.append(elements_of(e, v) if is_host else e.refine(e.tensor(v), t))
        elements = [e.tensor(v) for v in yields[1 + len(self.types) :]]
        rows = zip(self.scans, state[n:], elements, strict=True)
        # all assertions before the first write, as a later one would wait for it
        fitted = [self.fitted(i, s, b, number, x) for i, (s, b, x) in enumerate(rows)]
        buffers = [
            _in_place(e, self.append(s, b, number, x))
            for s, b, x in zip(self.scans, state[n:], fitted, strict=True)
        ]
        shared = shared_with_others(yields[1 : 1 + len(self.types)], self.block)
        return again, [*flatten(e, following, self.types, shared, static=self.static), *buffers]

    def fitted(
        self, at: int, s: _Scan, buffer: ir.Value, number: ir.Value, element: ir.Value
    ) -> ir.Value:
        """Return the next element of a scan output, whose extents are those of the first one."""
        e = self.e
        have = ir.RankedTensorType(element.type).shape
        known = [d if d != DYN else n for d, n in zip(s.type.dims, have, strict=True)]
        element = e.refine(element, s.type.with_dims(known))
        first = ("eq", e.sizes.of(number), e.sizes.of(0))
        for axis, d in enumerate(s.type.dims):
            if d == DYN:
                same = ("eq", e.sizes.of_dim(element, axis), e.sizes.of_dim(buffer, 1 + axis))
                expected = f"the same dim {axis} of scan output {at} in all iterations"
                e.sizes.check((first, same), expected)
        return element

    def append(self, s: _Scan, buffer: ir.Value, number: ir.Value, element: ir.Value) -> ir.Value:
        """Return the buffer with one more element."""
        e = self.e
        if not s.fixed:
            buffer = self.grown(s, buffer, number, element)
        row: Extent = number
        if s.backward and self.exact:
            row = e.sub(e.sub(self.limit, number), 1)
        own = e.extents(element)
        return insert_slice(e, element, buffer, [row, *[0] * len(own)], [1, *own])

    def grown(self, s: _Scan, buffer: ir.Value, number: ir.Value, element: ir.Value) -> ir.Value:
        """Return the buffer with capacity for one more element: twice the size if it is full."""
        e, extents, own = self.e, self.e.extents(buffer), self.e.extents(element)
        at_first = s.rows is not None
        full = index.compare(e, index.EQ, number, 0 if at_first else extents[0])

        def rows() -> Extent:
            if s.rows is not None:
                return s.rows
            return index.clamp(e, e.mul(extents[0], 2), _FIRST_ROWS, self.limit)

        branch = scf.IfOp(full, [buffer.type], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            # rows are computed in the branch and again after it: IREE 3.13 hoists a branch before
            # the kernel that writes to its result, but not the branch's captured values
            made = _buffer(e, [rows(), *own], s.type)
            if not at_first:
                made = insert_slice(e, buffer, made, [0] * len(extents), extents)
            made = made if made.type == buffer.type else tensor.CastOp(buffer.type, made).result
            scf.YieldOp([made])
        with ir.InsertionPoint(branch.regions[1].blocks[0]):
            scf.YieldOp([buffer])
        now = [
            have if isinstance(have, int) else index.select(e, full, new, have)
            for new, have in zip([rows(), *own], extents, strict=True)
        ]
        return _tied(e, branch.results[0], now)

    # ---- after the loop ----------------------------------------------------------------------

    def output(self, s: _Scan, buffer: ir.Value, count: Extent) -> ir.Value:
        """Return a scan output from the buffer that the loop leaves."""
        e, extents = self.e, self.e.extents(buffer)
        rows = extents[0] if self.padded else count
        turned = s.backward and not self.exact
        if not turned and not self.is_cleared():
            if self.exact or self.padded:
                return buffer
            return extract_slice(e, buffer, [0] * len(extents), [rows, *extents[1:]])

        def row(where: list[ir.Value]) -> ir.Value:
            step: Extent = where[0]
            if turned:
                step = e.sub(e.sub(count, step), 1)
            at = e.index(index.clamp(e, step, 0, index.last_of(e, extents[0])))
            value = index.read_safely(e, buffer, [at, *where[1:]], extents[:1])
            inside = index.compare(e, index.SLT, where[0], count)
            return arith.SelectOp(inside, value, index.zero_of(value.type)).result

        return index.from_positions_alone(e, [rows, *extents[1:]], s.type.dtype, row)
