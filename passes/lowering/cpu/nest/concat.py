"""Pointwise ops around concatenations as one CPU kernel: vectors along the rows of the result."""

from __future__ import annotations

from collections.abc import Mapping

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.shapes import TensorType, product
from mgx_mlir.dialects.migraphx.fused import FusedConcat
from mgx_mlir.passes.analysis.access_maps import reader
from mgx_mlir.passes.fuse_concat import readable
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.elements import Elements, narrow
from mgx_mlir.passes.lowering.cpu.frame.sites import KernelSite
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index
from mgx_mlir.passes.lowering.cpu.nest.nest import Line, Nest, Tile
from mgx_mlir.passes.lowering.named_body import operand_tensors
from mgx_mlir.passes.lowering.select import KernelRule, Refusal
from mgx_mlir.passes.lowering.views import reshape_tensor

_GROUP_ELEMENTS = 8192  # elements of a workgroup; fewer do not pay for its start


def match(e: LoweringContext, site: KernelSite) -> int | Refusal:
    """Take a concatenation whose runs are read by vectors; the plan is a run's length."""
    results = site.members[-1].operands
    if len(results) != 1:
        return Refusal(f"it has {len(results)} results")
    run = readable(results[0], list(site.body.arguments))
    return Refusal("its parts are not read by vectors") if run is None else run


def build(e: LoweringContext, site: KernelSite, run: int) -> list[ir.Value]:
    """Build the rows of the result."""
    result = site.members[-1].operands[0]
    found = rows(result, operand_tensors(e, site.op, site.body), run)
    t = TensorType.of(result)
    if t.dtype.is_bool:
        found = e.cast_tensor(found, dtypes.INT8, dtypes.BOOL)
    return [reshape_tensor(e, found, t, list(t.dims))]


RULE = KernelRule("concat", (FusedConcat,), match, build)


def rows(value: ir.Value, operands: Mapping[ir.Value, ir.Value], run: int) -> ir.Value:
    """Return the kernel's result as (rows, last dim), bools as bytes.

    operands: the tensor of each block argument. run: elements read together, as `readable` found.
    """
    t = TensorType.of(value)
    dtype = dtypes.INT8 if t.dtype.is_bool else t.dtype
    length, count = t.dims[-1], product(t.dims[:-1])
    read = reader(value, t.rank - 1, set(operands), run=run)
    order = list(operands)
    step = min(count, max(1, _GROUP_ELEMENTS // length))

    def body(tile: Tile) -> list[ir.Value]:
        k = tile.k
        elements = Elements(k, dict(zip(order, k.inputs, strict=True)))

        def line(row: Line) -> list[ir.Value]:
            at = k.coordinates(row.at[0], t.dims[:-1])

            def some(column: Index, n: int, c: list[ir.Value]) -> list[ir.Value]:
                found = read(elements, [*at, column], n)
                if t.dtype.is_bool:
                    vector = arith.ExtUIOp(k.vector_type(n, dtype), found.value).result
                else:
                    vector = narrow(k, found, dtype, n).value
                return row.after(c).write([vector], column, masked=False)

            full, made = length // run * run, list(row.made)
            if full:
                made = k.loop(0, full, run, made, lambda j, c: some(j, run, c))
            return some(full, length - full, made) if full < length else made

        return tile.lines(line)

    inputs = [operands[v] for v in order]
    return Nest(inputs, [count, length], [dtype], (step,), run).run(body)[0]
