"""Constant weights of GPU matmuls, stored with a row of weights for each result channel.

A matrix instruction takes runs along the depth of both operands. Elements of weights [K, N] along K
are N apart, and are read from the LDS one by one; those of [N, K] are read in whole registers.
"""

from __future__ import annotations

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.linear import Convolution
from mgx_mlir.dialects.migraphx.quant import QuantConvolution
from mgx_mlir.passes.lowering.context import PARAMETER_ELEMENTS, LoweringContext
from mgx_mlir.passes.lowering.expr import Expr, Leaf, View
from mgx_mlir.passes.lowering.gpu.matmul import gemm_shape
from mgx_mlir.passes.lowering.gpu.matmul.gathered_convolution import window_rows

DOTS = ("migraphx.dot", "migraphx.quant_dot")
_LITERAL = "migraphx.literal"


class StoredRows(View):
    """Weights as a view of the parameter that holds them row by row."""


# axes of the stored array in the weights of a dot and of channels-last convolutions
_DOT, _CONVOLUTION, _ROW_CONVOLUTION = (1, 0), (3, 0, 1, 2), (2, 0, 1)


def stored_by_row(e: LoweringContext, arg: ir.Value, value: ir.Value) -> Expr | None:
    """Return a kernel's weights, its argument `arg`, as a view of a parameter that has their rows.

    None where they are used in another way, or are not constant.
    """
    windows = window_rows(e, arg, value)
    if windows is not None:
        return windows
    owner = value.owner
    uses = list(arg.uses)
    if isinstance(owner, ir.Block) or owner.name != _LITERAL or len(uses) != 1:
        return None
    order = _order(uses[0])
    t = TensorType.of(value)
    if order is None or t.elements <= PARAMETER_ELEMENTS:
        return None
    depth = _depth(e, uses[0].owner) if order == _DOT else 0
    array = _turned(e, literals.array_of(owner), order, depth)
    leaf = Leaf(TensorType(t.dtype, array.shape), e.parameter(array))
    return StoredRows(t, leaf, order, list(t.dims))


def rows_of(e: LoweringContext, weights: Expr) -> ir.Value | None:
    """Return the tensor that is stored by row behind the weights, else None."""
    return e.tensor(weights.source) if isinstance(weights, StoredRows) else None


def _order(use: ir.OpOperand) -> tuple[int, ...] | None:
    """Return the axis order in which an op wants its weights stored."""
    if use.operand_number != 1:
        return None
    op = use.owner
    x, t = (TensorType.of(v) for v in list(op.operands)[:2])
    if x.dtype is not t.dtype or not (t.dtype.is_float or t.dtype is dtypes.INT8):
        return None
    if op.name.startswith("migraphx.quant_") and len(op.operands) > 2:
        return None  # scaled ahead of the matmul
    if op.name in DOTS and t.rank == 2 and x.rank == 2:
        return _DOT
    if is_a(op, (Convolution, QuantConvolution)) and t.rank in (3, 4):
        view = op.opview
        order = _CONVOLUTION if t.rank == 4 else _ROW_CONVOLUTION
        return order if view.channels_last and view.group == 1 else None
    return None


def _depth(e: LoweringContext, dot: ir.Operation) -> int:
    """Return the length of a row of a dot's weights.

    It is padded with zeros if rows of the other operand, from outside of the kernel, are padded by
    a copy too.
    """
    x = dot.operands[0]
    gemm = gemm_shape.shape_of_dot(dot)
    outside = isinstance(x.owner, ir.Block) and TensorType.of(x).is_static
    if not e.options.tiles or not outside:
        return gemm.dims[2]
    return gemm_shape.padded_depth(e.options.arch, gemm)


def _turned(
    e: LoweringContext, array: np.ndarray, order: tuple[int, ...], depth: int
) -> np.ndarray:
    """Return the array in another order, its rows filled up with zeros to `depth` elements.

    Equal weights give the same object, and one parameter.
    """

    def make() -> np.ndarray:
        turned = np.ascontiguousarray(array.transpose(order))
        if depth > turned.shape[-1]:
            turned = np.pad(turned, ((0, 0), (0, depth - turned.shape[-1])))
        return turned

    return e.repacked(array, ("rows", order, depth), make)
