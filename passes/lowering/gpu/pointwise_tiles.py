"""Tiles of pointwise loops on NVIDIA GPUs: full workgroups, whose threads move 16 bytes each.

IREE gives a workgroup one row of the last dim. Rows of 128 elements are then 32 threads, and 8,192
workgroups take longer to start than to copy: 2 MB into 2 MB take 6.2 us on an H200.
AMD's loops keep IREE's tiles: no clock has judged others.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mgx_mlir.core.ir import ir
from mgx_mlir.hardware.chips import CHIPS, Chip
from mgx_mlir.passes.lowering.gpu.matmul.compilation_info import threads_attribute
from mgx_mlir.passes.lowering.gpu.rows import element_bits
from mgx_mlir.passes.lowering.options import LowerOptions

BYTES = 16  # bytes that a thread loads at once
THREADS = 256  # most threads of a workgroup
LEAST = 1 << 16  # elements; fewer do not fill the chip either way
_BYTE = 8


def give(options: LowerOptions, block: ir.Block) -> None:
    """Give the loop of a kernel its tile, where it is the only one and nothing is reduced."""
    chip = CHIPS.get(options.arch) if options.target == "gpu" and options.tiles else None
    if chip is None or not chip.is_nvidia:
        return
    loops = [op for op in block.operations if op.operation.name.startswith("linalg.")]
    if len(loops) != 1 or loops[0].operation.name != "linalg.generic":
        return
    found = tile_of(chip, loops[0].operation)
    if found is not None:
        loops[0].operation.attributes["compilation_info"] = found


def tile_of(chip: Chip, loop: ir.Operation) -> ir.Attribute | None:
    """Return the tile of a loop of static dims; None where IREE's own is kept."""
    attributes = loop.attributes
    if "compilation_info" in attributes:
        return None
    iterators = [str(a) for a in ir.ArrayAttr(attributes["iterator_types"])]
    kinds = [ir.RankedTensorType(r.type) for r in loop.results]
    dims = list(kinds[0].shape)
    if any("parallel" not in i for i in iterators) or len(iterators) != len(dims):
        return None
    if any(list(k.shape) != dims or not k.has_static_shape for k in kinds):
        return None
    if prod(dims) < LEAST or not _is_by_rows(attributes, len(dims)):
        return None
    widest = max(_BYTE, *(element_bits(v.type) for v in (*loop.operands, *loop.results)))
    return _tile(chip, dims, max(BYTES * _BYTE // widest, 1))


def _is_by_rows(attributes: ir.OpAttributeMap, rank: int) -> bool:
    """Return whether each operand's last dim is the loop's last one, or does not depend on it."""
    last = ir.AffineDimExpr.get(rank - 1)
    for a in ir.ArrayAttr(attributes["indexing_maps"]):
        results = list(ir.AffineMapAttr(a).value.results)
        if any(r == last for r in results[:-1]):
            return False
    return True


def _tile(chip: Chip, dims: Sequence[int], run: int) -> ir.Attribute | None:
    """Return threads of `run` elements of the last dim, along the last dims first."""
    while dims[-1] % run:
        run //= 2
    left, threads = THREADS, [1] * len(dims)
    for d in reversed(range(len(dims))):
        extent = dims[d] // run if d == len(dims) - 1 else dims[d]
        threads[d] = max(n for n in range(1, left + 1) if extent % n == 0)
        left //= threads[d]
    count = prod(threads)
    if count < 2 * chip.lanes or count % chip.lanes:
        return None
    own = [*[1] * (len(dims) - 1), run]
    size = [n * r for n, r in zip(threads, own, strict=True)]
    return threads_attribute(chip, count, own, size)


__all__ = ["give", "tile_of"]
