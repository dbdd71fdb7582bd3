"""gather of rows as one CPU kernel: what follows the axis is copied by vectors."""

from __future__ import annotations

from math import prod

from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.axes import axis_of
from mgx_mlir.dialects.migraphx.indexing import Gather
from mgx_mlir.passes.lowering import index, views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.axis_view import (
    GROUP_ELEMENTS,
    UNKNOWN,
    AxisView,
    tile_size,
)
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.sites import KernelSite, OpSite
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.select import KernelRule, Refusal, refused

_LEAST = 8  # elements of a row: fewer are copied one by one
_TOGETHER = 4  # registers


def refusal(op: Gather) -> str | None:
    """Return why no kernel of our own copies these rows, None if one does."""
    t, it = TensorType.of(op.data), TensorType.of(op.indices)
    rest = t.dims[axis_of(op.axis, t.rank) + 1 :]
    if t.dtype.is_bool:
        return "it copies bits"
    if 0 in (*t.dims, *it.dims):
        return "it has no elements"
    known = [d for d in rest if d != DYN]
    return "its rows are short" if len(known) == len(rest) and prod(known) < _LEAST else None


def _match(e: LoweringContext, op: Gather) -> Refusal | None:
    reason = refusal(op)
    if TensorType.of(op.indices).elements == 1 and e.elements(op.indices) is not None:
        reason = "one known row is a slice"
    return refused(reason)


def match_kernel(e: LoweringContext, site: KernelSite) -> Gather | Refusal:
    """Take a kernel that is a gather alone."""
    op = site.body.operations[0]
    if len(site.members) != 2 or not isinstance(op, Gather):
        return Refusal("it is no gather alone")
    if any(v not in list(site.body.arguments) for v in (op.data, op.indices)):
        return Refusal("it gathers what the kernel computes")
    return _match(e, op) or op


def build_kernel(e: LoweringContext, site: KernelSite, op: Gather) -> list[ir.Value]:
    """Build the gather of the kernel's operands."""
    operands: dict[ir.Value, ir.Value] = dict(
        zip(site.body.arguments, site.op.operands, strict=True)
    )
    data, indices = (e.tensor(operands[v]) for v in (op.data, op.indices))
    made = build(e, op, data, indices, site.isa)
    e.sizes.relations_of(op.operation, Gather)
    return made


def build(
    e: LoweringContext, op: Gather, data: ir.Value, indices: ir.Value, isa: Isa
) -> list[ir.Value]:
    """Build copies of rows."""
    t, it = TensorType.of(op.data), TensorType.of(op.indices)
    axis = axis_of(op.axis, t.rank)
    view = AxisView.of(e, data, t, axis)
    outer, extent, inner = view.dims
    own, counts = e.extents(data), e.extents(indices)
    count = e.product(counts)
    flat = it.with_dims(e.static_dims([count]))
    places = views.reshape_tensor(e, indices, flat, [count])
    step = max(1, GROUP_ELEMENTS // (inner if isinstance(inner, int) else UNKNOWN))
    if isinstance(count, int):
        step = min(step, count)
    lanes = max(1, isa.lanes * 4 // t.dtype.size)

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        size = tile_size(k, k.at[1], step, count)
        copy = _Rows(k, [k.inner(extent), k.inner(inner)], lanes)

        def row(i: ir.Value, c: list[ir.Value]) -> list[ir.Value]:
            number = k.element(k.inputs[1], [k.add(k.at[1], i)])
            place = index.normalized(k, number, copy.extent, it.dtype)
            return [copy.copied(k.at[0], place, i, c[0])]

        made = k.loop(0, size, 1, [k.empty([1, size, copy.length], t.dtype)], row)[0]
        return [ResultTile(made, [*k.at, 0], [1, size, copy.length])]

    results = [([outer, count, inner], t.dtype)]
    grid = [(outer, 1), (count, step)]
    made = dispatch([view.tensor, places], results, grid, body, [*view.dims, count])[0]
    wanted = [*own[:axis], *counts, *own[axis + 1 :]]
    out = t.with_dims(e.static_dims(wanted))
    return [e.refine(views.reshape_tensor(e, made, out, wanted), TensorType.of(op.out))]


def _of_op(e: LoweringContext, site: OpSite, _: None) -> list[ir.Value]:
    data, indices = site.operands
    assert isinstance(data, ir.Value)
    assert isinstance(indices, ir.Value)
    return build(e, site.op, data, indices, site.isa)


KERNEL = KernelRule("gather_kernel", (), match_kernel, build_kernel)
OP = KernelRule("gather", (Gather,), lambda e, site: _match(e, site.op), _of_op)


class _Rows:
    """Copies rows; of an axis that turns out to be empty they are 0."""

    def __init__(self, k: WorkgroupBuilder, sizes: list[Index], lanes: int) -> None:
        self.k, self.lanes = k, lanes
        self.extent, self.length = sizes
        self.read: Index = self.length
        if not isinstance(self.extent, int):
            some = k.is_less(0, self.extent)
            self.read = arith.SelectOp(some, k.index(self.length), k.index(0)).result

    def copied(self, outer: Index, place: Index, i: ir.Value, into: ir.Value) -> ir.Value:
        """Return the tile with the row `place` as its row `i`."""
        k, source = self.k, self.k.inputs[0]

        def some(at: Index, lanes: int, masked: bool, c: list[ir.Value]) -> list[ir.Value]:
            v = k.read(source, [outer, place, at], lanes, masked=0.0 if masked else None)
            return [k.write(v, c[0], [0, i, at], masked=masked)]

        wide, made = self.lanes * _TOGETHER, [into]
        whole = k.sub(self.read, k.rem(self.read, wide))
        if whole != 0:
            made = k.loop(0, whole, wide, made, lambda at, c: some(at, wide, False, c))
        made = k.along(
            k.sub(self.read, whole), self.lanes, made,
            lambda at, masked, c: some(k.add(whole, at), self.lanes, masked, c),
        )  # fmt: skip
        if self.read is not self.length:
            kind = ir.RankedTensorType(into.type).element_type
            zero = index.zero_of(kind)
            made = k.loop(
                self.read, self.length, 1, made, lambda at, c: [k.put(zero, c[0], [0, i, at])]
            )
        return made[0]
