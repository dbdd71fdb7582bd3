"""Tables of rows whose numbers a matmul multiplies, too: gathers read them out of its panels.

The embeddings of a language model are often the weights of its logits. A matmul holds them in
panels, and a second copy in rows would be the largest tensor of a small model.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir, vector
from mgx_mlir.core.op import Kernel, is_a
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.blocked_dot import BlockedDot
from mgx_mlir.dialects.migraphx.indexing import Gather
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.passes.lowering import index, views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.axis_view import line_step
from mgx_mlir.passes.lowering.cpu.frame.sites import KernelSite, literal_of
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.matmul.dot_kernel import Stored, stored_weights
from mgx_mlir.passes.lowering.cpu.nest.nest import Line, Nest, Tile
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.select import KernelRule, Refusal

_WORD = 4  # bytes of neighbours that are read together: an i32


@dataclass(frozen=True)
class _Plan:
    """A gather of rows, and the panels that have them as columns."""

    op: Gather
    panels: Stored
    unit: int  # neighbours of a column along the depth


def _match(e: LoweringContext, site: KernelSite) -> _Plan | Refusal:
    """Take a kernel that looks up rows of a constant, if a matmul of the function reads them."""
    op = site.members[0].opview
    if len(site.members) != 2 or not isinstance(op, Gather):
        return Refusal("it is not a single gather")
    t, literal = TensorType.of(op.data), literal_of(op.data)
    if literal is None or op.indices not in list(site.body.arguments):
        return Refusal("its table or its indices are computed")
    if t.rank != 2 or op.axis % 2 or 0 in (*t.dims, *TensorType.of(op.indices).dims):
        return Refusal("it does not look up rows of a matrix")
    table = literals.seen_of(literal)
    for panels in _stored(e, site, t.dims[::-1]):
        unit = panels.unit
        if unit is None or unit not in (1, _WORD // t.dtype.size):
            continue
        if _place(panels.weights.T) == _place(table):
            return _Plan(op, panels, unit)
    return Refusal("no matmul reads its table in panels")


def _stored(
    e: LoweringContext, site: KernelSite, dims: tuple[int, ...]
) -> Iterator[Stored]:  # fmt: skip
    """Yield the weights of `dims` that matmuls of the function hold in panels."""
    for view in site.op.block.operations:
        if not is_a(view, Kernel) or not any(TensorType.of(v).dims == dims for v in view.operands):
            continue
        for op in view.regions[0].blocks[0].operations:
            dot = op.operation.opview
            if isinstance(dot, BlockedDot | Dot):
                found = stored_weights(e, dot, site.isa)
                yield from (s for s in found if s.weights.shape == dims)


def _place(array: np.ndarray) -> tuple[object, ...]:
    """Return where the elements of an array are in memory."""
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype


def _build(e: LoweringContext, site: KernelSite, plan: _Plan) -> list[ir.Value]:
    """Build copies of the columns of panels, a word of neighbours at a time."""
    op, stored, isa = plan.op, plan.panels, site.isa
    t, it = TensorType.of(op.data), TensorType.of(op.indices)
    indices = e.tensor(site.op.operands[ir.BlockArgument(op.indices).arg_number])
    counts = e.extents(indices)
    count = e.product(counts)
    rows, depth = t.dims
    unit, width = plan.unit, stored.width
    lanes = isa.lanes_of(t.dtype)

    def body(tile: Tile) -> list[ir.Value]:
        k = tile.k

        def line(row: Line) -> list[ir.Value]:
            number = k.element(k.inputs[1], [row.at[0]])
            at = index.normalized(k, number, rows, it.dtype)
            panel, column = k.div(at, width), k.mul(k.rem(at, width), unit)

            def part(j: Index, lanes: int, masked: bool) -> list[ir.Value]:
                units = [k.div(k.add(j, n), unit) for n in range(0, lanes, unit)]
                if masked:  # units past the last one are not stored
                    units = [k.min(u, -(-depth // unit) - 1) for u in units]
                words = [k.read(k.inputs[0], [panel, u, column], unit) for u in units]
                return [_joined(k, words, t.dtype, unit)]

            return row.vectors(part)

        return tile.lines(line)

    positions = views.reshaped(e, indices, [count])
    dims: list[Extent] = [count, depth]
    inputs = [e.parameter(stored.packed(e)), positions]
    nest = Nest(inputs, dims, [t.dtype], (line_step(count, depth),), lanes)
    made = views.reshaped(e, nest.run(body)[0], [*counts, depth])
    e.sizes.relations_of(op.operation, Gather)
    return [e.refine(made, TensorType.of(op.out))]


def _joined(k: WorkgroupBuilder, words: list[ir.Value], dtype: DType, unit: int) -> ir.Value:
    """Return vectors of `unit` neighbours as one vector."""
    if unit == 1:
        found = [vector.ExtractOp(v, [], [0]).result for v in words]
        return vector.FromElementsOp(k.vector_type(len(words), dtype), found).result
    one = k.vector_type(1, dtypes.INT32)
    found = [vector.ExtractOp(vector.BitCastOp(one, v).result, [], [0]).result for v in words]
    whole = vector.FromElementsOp(k.vector_type(len(words), dtypes.INT32), found).result
    return vector.BitCastOp(k.vector_type(len(words) * unit, dtype), whole).result


RULE = KernelRule("panel_rows", (), _match, _build)
