"""Gathers of neighbours in NVIDIA's kernels as reads of them, inside the compile worker.

IREE gathers what is read by an index, as rows of dynamic number are that stay within the last one,
element by element. Where the index grows by one along a vector, its elements are neighbours:

    write shared, extract (gather base[index])[i]  ->  write shared, read base[extract index[i, 0]]

This file imports nothing of the package, as the worker that loads it.
"""

from __future__ import annotations

import math
from typing import Any


def change(ir: Any, write: Any) -> None:
    """Read neighbours at once that are gathered one by one, where a write takes them."""
    taken = write.operands[0].owner
    if isinstance(taken, ir.Block) or taken.name != "vector.extract" or len(taken.operands) != 1:
        return
    gather = taken.operands[0].owner
    if isinstance(gather, ir.Block) or gather.name != "vector.gather":
        return
    base, *offsets = list(gather.operands)[: 1 + ir.MemRefType(gather.operands[0].type).rank]
    places, mask = list(gather.operands)[1 + len(offsets) :][:2]
    kind, at = ir.VectorType(write.operands[0].type), taken.attributes["static_position"]
    whole = ir.VectorType(places.type)
    if any(_constant(ir, o) != 0 for o in offsets) or not _is_splat(ir, mask, 1):
        return
    if math.prod(kind.shape) != kind.shape[-1] or _step(ir, places, whole.rank - 1) != 1:
        return
    lead = [int(n) for n in at]
    rest = [0] * (whole.rank - len(lead))
    with ir.InsertionPoint(write):
        first = ir.Operation.create(
            "vector.extract", results=[ir.IndexType.get()], operands=[places],
            attributes={"static_position": ir.DenseI64ArrayAttr.get([*lead, *rest])},
        ).results[0]  # fmt: skip
        padding = ir.Operation.create("ub.poison", results=[kind.element_type]).results[0]
        rank = len(offsets)
        minor = [ir.AffineDimExpr.get(rank - 1)]
        flat = ir.VectorType.get([kind.shape[-1]], kind.element_type)
        found = ir.Operation.create(
            "vector.transfer_read", results=[flat], operands=[base, *offsets[:-1], first, padding],
            attributes={
                "in_bounds": ir.ArrayAttr.get([ir.BoolAttr.get(True)]),
                "permutation_map": ir.AffineMapAttr.get(ir.AffineMap.get(rank, 0, minor)),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, rank, 1, 0]),
            },
        ).results[0]  # fmt: skip
    write.operands[0] = found
    width = ir.MemRefType(write.operands[1].type).rank
    minor = [ir.AffineDimExpr.get(width - 1)]
    write.attributes["in_bounds"] = ir.ArrayAttr.get([ir.BoolAttr.get(True)])
    write.attributes["permutation_map"] = ir.AffineMapAttr.get(ir.AffineMap.get(width, 0, minor))


def _is_splat(ir: Any, value: Any, number: int) -> bool:
    """Return whether a vector is a constant of one number."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return False
    attribute = owner.attributes["value"]
    return attribute.is_splat and int(attribute.get_splat_value().value) == number


def _step(ir: Any, value: Any, dim: int) -> int | None:
    """Return by how much the elements of a vector grow along a dim, None where it is not known."""
    owner = value.owner
    kind = ir.VectorType(value.type)
    if kind.shape[dim] == 1:
        return 0
    if isinstance(owner, ir.Block):
        return None
    name = owner.name
    if name == "arith.constant":
        return 0 if owner.attributes["value"].is_splat else None
    if name == "vector.step":
        return 1
    if name == "vector.broadcast":
        source = owner.operands[0]
        if not isinstance(source.type, ir.VectorType):
            return 0
        below = ir.VectorType(source.type)
        own = dim - (kind.rank - below.rank)
        return 0 if own < 0 or below.shape[own] == 1 else _step(ir, source, own)
    if name == "vector.transpose":
        return _step(ir, owner.operands[0], int(owner.attributes["permutation"][dim]))
    if name == "vector.shape_cast":
        below = ir.VectorType(owner.operands[0].type)
        own = below.rank - (kind.rank - dim)
        same = own >= 0 and list(below.shape)[own:] == list(kind.shape)[dim:]
        return _step(ir, owner.operands[0], own) if same else None
    if name in ("arith.addi", "arith.muli", "arith.minui", "arith.minsi"):
        a, b = (_step(ir, v, dim) for v in owner.operands)
        if a is None or b is None:
            return None
        if name == "arith.addi":
            return a + b
        return 0 if a == b == 0 else None
    return None


def _constant(ir: Any, value: Any) -> int | None:
    """Return the number that an index always is, None where it is not known."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return ir.IntegerAttr(owner.attributes["value"]).value


__all__ = ["change"]
