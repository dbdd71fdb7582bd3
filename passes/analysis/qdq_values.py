"""Queries about quantised programs: the dequantizelinear behind a value, equal scales."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import numpy as np

from mgx_mlir.core import literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import attributes_of, is_a, op_class
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.quant import DequantizeLinear, QuantizeLinear
from mgx_mlir.passes.analysis.constants import splat
from mgx_mlir.passes.analysis.view_chains import VIEWS, Map, trace, view_of
from mgx_mlir.rewrite.pattern import Rewriter

_DEPTH = 16  # most views between a dequantizelinear and its user
QUANTISERS = (QuantizeLinear, DequantizeLinear)


@dataclass(frozen=True)
class Dequantised:
    """A dequantizelinear behind views and float conversions."""

    op: DequantizeLinear
    moves: tuple[ir.Operation, ...]  # the views on it, in order; conversions are left out

    def apply(self, rw: Rewriter, x: ir.Value) -> ir.Value:
        """Apply the views to another value of the same dims."""
        return moved(rw, self.moves, x)

    def scale_map(self, value: ir.Value) -> tuple[ir.Value, Map] | None:
        """Return a scale or zero point of the op as (source, map to the dims after the views)."""
        return map_after(value, self.moves)


def map_after(value: ir.Value, moves: Iterable[ir.Operation]) -> tuple[ir.Value, Map] | None:
    """Return a value as (source, map to the dims after views on it, the first one first)."""
    found = trace(value)
    if found is None:
        return None
    source, m, _ = found
    after: Map | None = m
    for move in moves:
        after = None if after is None else view_of(move, after)
    return None if after is None else (source, after)


def dequantised(value: ir.Value) -> Dequantised | None:
    """Return the dequantizelinear behind `value`, through views and conversions between floats."""
    moves: list[ir.Operation] = []
    for _ in range(_DEPTH):
        owner = value.owner
        if isinstance(owner, ir.Block):
            return None
        op = owner.operation
        if is_a(op, DequantizeLinear):
            return Dequantised(cast(DequantizeLinear, op.opview), tuple(reversed(moves)))
        if is_a(op, VIEWS) and len(op.operands) == 1:
            moves.append(op)
        elif not is_a(op, Convert) or not TensorType.of(op.operands[0]).dtype.is_float:
            return None
        value = op.operands[0]
    return None


def moved(rw: Rewriter, moves: Iterable[ir.Operation], x: ir.Value) -> ir.Value:
    """Copy single-operand ops onto `x`, one after the other."""
    for op in moves:
        cls = op_class(op)
        assert cls is not None
        variadic = any(group.arity == "variadic" for group in cls.OPERANDS)
        x = rw.op(cls.mnemonic, [x] if variadic else x, **attributes_of(op))
    return x


def is_zero(zero_point: ir.Value | None) -> bool:
    """Say whether a zero point is absent or 0 everywhere."""
    if zero_point is None:
        return True
    found = splat(zero_point)
    return found is not None and bool(found == 0)


def same_constant(a: ir.Value | None, b: ir.Value | None) -> bool:
    """Return whether two scales (or zero points; absent means 0) are equal."""
    if a is None or b is None:
        return is_zero(a) and is_zero(b)
    if a == b:
        return True
    first, second = splat(a), splat(b)
    if first is not None and second is not None:
        return bool(first == second)
    if first is not None or second is not None:
        return False
    one, two = trace(a), trace(b)
    if one is None or two is None or one[1] != two[1]:
        return False
    return one[0] == two[0] or _equal_literals(one[0], two[0])


def _equal_literals(a: ir.Value, b: ir.Value) -> bool:
    if not (literals.is_literal(a) and literals.is_literal(b)) or a.type != b.type:
        return False
    return bool(np.array_equal(literals.array_of(a.owner), literals.array_of(b.owner)))
