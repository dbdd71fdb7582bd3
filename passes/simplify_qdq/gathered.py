"""A pattern of simplify_qdq on quantised tables: their rows are looked up in 8 bits."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.indexing import Gather
from mgx_mlir.dialects.migraphx.quant import DequantizeLinear
from mgx_mlir.passes.analysis.constants import is_constant, splat
from mgx_mlir.passes.analysis.view_chains import Map, build_map, trace, varying
from mgx_mlir.rewrite.pattern import Replacement, Rewriter, defined_by, no_match, pattern


@pattern(Gather)
def find_gathered_table(op: Gather, rw: Rewriter) -> Replacement:
    """gather(dq(x, s, z), i) -> dq(gather(x, i), s, z), x constant

    Only the rows that are looked up are dequantised. Scale and zero point are scalars, or vary
    along other axes, or only along the gathered one; then they are looked up as well. Exact.
    """
    found = defined_by(op.data, DequantizeLinear)
    if found is None or not is_constant(found.input):
        return no_match("the table is no dequantised constant")
    data, at, out = (TensorType.of(v) for v in (op.data, op.indices, op.out))
    axis = op.axis % data.rank
    if DYN in out.dims or 0 in out.dims:
        return no_match("dims are empty, or known only at run time")
    if out.is_known and out.elements > data.elements:
        return no_match("the lookup is larger than the table")
    if not at.rank:
        return no_match("one row is looked up")
    parameters: list[ir.Value | None] = []
    for v in (found.scale, found.zero_point):
        made = None if v is None else _looked_up(rw, op, v, axis, at.dims, out.dims)
        if v is not None and made is None:
            return no_match("scale or zero point varies along several axes with the gathered one")
        parameters.append(made)
    rw.merge_location(found)
    rows = rw.op("gather", found.input, op.indices, axis=axis)
    return rw.op("dequantizelinear", rows, *parameters)


def _looked_up(
    rw: Rewriter, op: Gather, v: ir.Value, axis: int, at: tuple[int, ...], dims: tuple[int, ...]
) -> ir.Value | None:
    """Return a scale or zero point of a table for what is gathered from it; None: there is none."""
    number = splat(v)
    if number is not None:
        return rw.multibroadcast(rw.literal(np.asarray(number)), dims)
    found = trace(v)
    if found is None:
        return None
    source, m, _ = found
    if axis not in varying(m):
        repeated: Map = tuple(((d, 0),) if d != 1 else () for d in at)
        return build_map(rw, source, (*m[:axis], *repeated, *m[axis + 1 :]))
    own = TensorType.of(source)
    if varying(m) != frozenset((axis,)) or m[axis] != ((own.elements, 1),):
        return None
    flat = source if own.rank == 1 else rw.op("reshape", source, dims=[own.elements])
    rows = rw.op("gather", flat, op.indices, axis=0)
    ones = [1] * (len(dims) - axis - len(at))
    rows = rw.op("reshape", rows, dims=[*[1] * axis, *at, *ones])
    return rw.multibroadcast(rows, dims)
