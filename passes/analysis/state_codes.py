"""Matmuls of recurrent states, also in 8 bits, where no kernel runs all steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.rewrite.pattern import Rewriter


def state_product(
    rw: Rewriter, state: ir.Value, recurrence: ir.Value, scale: ir.Value | None
) -> ir.Value:
    """Build {batch, hidden} times {hidden, rows}.

    With `scale` in 8 bits: `recurrence` holds whole numbers then, and `scale` the step of each row.
    """
    if scale is None:
        return rw.op("dot", state, recurrence)
    codes, step = _in_8_bits(rw, state)
    sums = rw.op("dot", codes, recurrence)
    wide, rows = _like(rw, sums, [step, rw.op("unsqueeze", scale, axes=[0])])
    return rw.op("mul", sums, rw.op("mul", wide, rows))


def _in_8_bits(rw: Rewriter, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Build whole numbers for {batch, hidden} and their step {1, 1}.

    They are 256 over the range of all elements, 0 in it.
    """
    t = TensorType.of(x)
    zero, one, most = (rw.literal(np.full((1, 1), n, t.dtype.np)) for n in (0, 1, 255))
    low = rw.op("min", rw.op("reduce_min", x, axes=[0, 1]), zero)
    high = rw.op("max", rw.op("reduce_max", x, axes=[0, 1]), zero)
    step = rw.op("div", rw.op("sub", high, low), most)
    some = rw.op("convert", rw.op("greater", step, zero), target_type=dtypes.BOOL)
    step = rw.op("where", some, step, one)
    place = rw.op("nearbyint", rw.op("div", rw.op("neg", low), step))
    wide, first, last = _like(rw, x, [step, rw.op("neg", place), rw.op("sub", most, place)])
    codes = rw.op("nearbyint", rw.op("div", x, wide))
    return rw.op("min", rw.op("max", codes, first), last), step


def _like(rw: Rewriter, x: ir.Value, values: Sequence[ir.Value]) -> list[ir.Value]:
    """Build values in the dims of `x`, which may be run-time ones."""
    dims = TensorType.of(x).dims
    if DYN in dims:
        return [rw.op("multibroadcast", [v, x]) for v in values]
    return [rw.op("multibroadcast", [v], out_lens=list(dims)) for v in values]
