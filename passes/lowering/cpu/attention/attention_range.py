"""The range of cache rows that the queries of a group see: rows masked for all are skipped.

A mask that makes a score -inf gives its key weight 0. A NaN in its value would still make the sum
NaN, but rows of a cache past the last one may hold anything, so they are skipped.
"""

from __future__ import annotations

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.core.op import is_a
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.pointwise_other import Where
from mgx_mlir.passes.analysis.attention_form import AttentionForm, RowReaders
from mgx_mlir.passes.analysis.constants import splat
from mgx_mlir.passes.lowering.cpu.attention.attention_site import AttentionSite
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.scalar import constant_of

FEWEST = 32  # from this many keys on, the search for visible keys pays off
ALIGNED = 16  # divisor of the first key's index


def mask_of(form: AttentionForm) -> ir.Value | None:
    """Return the mask operand that makes scores -inf; None without one."""
    ops = list(form.scores)
    while ops and is_a(ops[-1], Convert):
        ops.pop()
    if not ops or not is_a(ops[-1], Where):
        return None
    condition, _, other = ops[-1].operands
    hidden = splat(other)
    if hidden is None or float(hidden) != -float("inf") or condition not in form.operands:
        return None
    return condition


def visible_keys(
    site: AttentionSite, readers: RowReaders | None, first: Index, count: Index
) -> tuple[Index, Index]:
    """Return a range that contains all keys visible to queries [first, first + count).

    It has all keys if a query sees none.
    """
    k, keys = site.k, site.keys
    mask = mask_of(site.form) if site.cached else None
    if mask is None or readers is None or (isinstance(keys, int) and keys < FEWEST):
        return 0, keys
    read, lanes, most = readers.operands[mask], readers.lanes, k.index(keys)

    def row(i: Index, carried: list[ir.Value]) -> list[ir.Value]:
        at = [*site.lead, k.add(first, i)]

        def bits(key: Index, masked: bool) -> ir.Value:
            site.elements.masked = masked
            found = read(site.elements, [*at, key], lanes).value
            site.elements.masked = False
            return found

        def some(key: Index, masked: bool, found: list[ir.Value]) -> list[ir.Value]:
            low, high = found
            is_seen = _any(bits(key, masked))
            low = arith.SelectOp(is_seen, k.index(k.min(low, key)), low).result
            return [low, arith.SelectOp(is_seen, k.index(k.add(key, lanes)), high).result]

        low, high = k.along(keys, lanes, [most, k.index(0)], some)
        none = k.is_equal(high, 0)
        last = k.max(k.sub(high, lanes), 0)
        high = k.index(k.add(last, _length(k, bits(last, True), lanes)))
        low = arith.SelectOp(none, k.index(0), low).result
        high = arith.SelectOp(none, most, high).result
        return [k.index(k.min(carried[0], low)), k.index(k.max(carried[1], high))]

    low, high = k.loop(0, count, 1, [most, k.index(0)], row)
    return k.sub(low, k.rem(low, ALIGNED)), k.min(high, most)


def _length(k: WorkgroupBuilder, bits: ir.Value, lanes: int) -> ir.Value:
    """Return the number of lanes up to and including the last set one."""
    kind = k.vector_type(lanes, dtypes.INT32)
    each = [ir.IntegerAttr.get(kind.element_type, i + 1) for i in range(lanes)]
    numbers = constant_of(kind, ir.DenseElementsAttr.get(each, kind))
    held = arith.SelectOp(bits, numbers, k.splat(0, lanes, dtypes.INT32)).result
    most = vector.ReductionOp(kind.element_type, ir.Attribute.parse("#vector.kind<maxsi>"), held)
    return arith.IndexCastOp(ir.IndexType.get(), most.result).result


def _any(bits: ir.Value) -> ir.Value:
    kind = ir.VectorType(bits.type)
    either = ir.Attribute.parse("#vector.kind<or>")
    return vector.ReductionOp(kind.element_type, either, bits).result
