"""Biases as initial sums of GPU matmuls, instead of 0.

If a bias is read where it is added, its latency comes after the loop over the depth (500 clocks by
the bound of compiled code, a fifth of a short matmul). In the type of the sums it needs no
conversion, and is loaded with the first operands of the loop.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.hardware.chips import CHIPS
from mgx_mlir.passes.lowering.context import PARALLEL, LoweringContext
from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import GemmConfig, GemmShape
from mgx_mlir.passes.lowering.gpu.matmul.mma import SIDE
from mgx_mlir.passes.lowering.scalar import computed, signless


class Bias(NamedTuple):
    """A constant row that is added to a matmul."""

    added: ir.Value  # result of the op that adds it
    row: ir.Value  # the bias's elements in the type of the sums


def bias_of(
    e: LoweringContext,
    kernel: ir.Operation,
    dot: ir.Operation,
    gemm: GemmShape,
    config: GemmConfig,
) -> Bias | None:
    """Return the constant row that a kernel adds to a matmul of whole tiles of columns, and to
    nothing else; None without one, and where the sums are in parts."""
    if not _takes_sums(e.options.arch, gemm, config):
        return None
    out, uses = TensorType.of(dot.results[0]), list(dot.results[0].uses)
    if len(uses) != 1 or uses[0].owner.name != "migraphx.add":
        return None
    if computed(out.dtype) is not dtypes.FLOAT:
        return None
    add = uses[0].owner
    array = _row(kernel, add.operands[1 - uses[0].operand_number], out.dims[-1])
    if array is None:
        return None
    wide = e.repacked(array, ("sums",), lambda: _words(array))
    return Bias(add.results[0], e.parameter(wide))


def _takes_sums(arch: str, gemm: GemmShape, config: GemmConfig) -> bool:
    """Return whether a tile supports nonzero initial sums."""
    chip, tile, mma = CHIPS.get(arch), config.tile, gemm.intrinsic(arch)
    if chip is None or chip.lanes == 32 or tile is None or mma is None or config.split > 1:
        return False
    rows, columns = (n * SIDE for n in tile.tiles[1:])
    if gemm.dims[1] % columns:
        return False
    # with several instructions of partial rows IREE moves sums through the LDS, exceeds its size or
    # does not end; in f32 it refuses such a kernel
    return gemm.dims[0] % rows == 0 or (mma.bytes < 4 and tile.subgroup[1:] == (1, 1))


def _row(kernel: ir.Operation, value: ir.Value, columns: int) -> np.ndarray | None:
    """Return the constant row that a kernel's value broadcasts, None for anything else."""
    spread = value.owner
    if isinstance(spread, ir.Block) or spread.name != "migraphx.multibroadcast":
        return None
    source = spread.operands[0]
    t = TensorType.of(source)
    if not isinstance(source.owner, ir.Block) or t.elements != columns or t.dims[-1:] != (columns,):
        return None
    body = kernel.regions[0].blocks[0]
    outside = dict(zip(body.arguments, kernel.operands, strict=True)).get(source)
    if outside is None or isinstance(outside.owner, ir.Block):
        return None
    return literals.array_of(outside.owner) if outside.owner.name == "migraphx.literal" else None


def _words(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).astype(np.float32).view(np.int32)


def first_sums(e: LoweringContext, row: ir.Value, rows: int) -> ir.Value:
    """Return sums initialised with a row.

    IREE replaces initial sums from a linalg loop by zeros, and adds them after the matmul; not so
    for bitcast integers.
    """
    columns = ir.RankedTensorType(row.type).shape[0]
    d = [ir.AffineDimExpr.get(i) for i in range(2)]
    maps = [ir.AffineMap.get(2, 0, [d[1]]), ir.AffineMap.get(2, 0, d)]
    init = e.empty([rows, columns], dtypes.INT32)

    def body(x: ir.Value, _: ir.Value) -> ir.Value:
        return x

    found = e.generic([row], [init], maps, [PARALLEL] * 2, body)[0]
    kind = ir.RankedTensorType.get([rows, columns], signless(dtypes.FLOAT))
    return arith.BitcastOp(kind, found).result


__all__ = ["Bias", "bias_of", "first_sums"]
