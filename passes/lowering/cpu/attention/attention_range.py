"""The range of cache rows that the queries of a group see: rows masked for all are skipped.

A mask that makes a score -inf gives its key weight 0. A NaN in its value would still make the sum
NaN, but rows of a cache past the last one may hold anything, so they are skipped.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.core.op import is_a
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.pointwise_other import Where
from mgx_mlir.passes.analysis.access_maps import Reader, Unreadable, reader
from mgx_mlir.passes.analysis.attention_form import AttentionForm, RowReaders
from mgx_mlir.passes.analysis.constants import splat
from mgx_mlir.passes.lowering.cpu.attention.attention_site import AttentionSite
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.scalar import constant_of

FEWEST = 32  # from this many keys on, the search for visible keys pays off
ALIGNED = 16  # divisor of the first key's index
WIDE = 64  # keys that are read together where one bit says enough: a register of bytes


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


@dataclass(frozen=True)
class VisibleKeys:
    """The keys of a group: all that a query sees are in [first, end); all queries see those of
    [first, full).
    """

    first: Index
    end: Index
    full: Index


def visible_keys(
    site: AttentionSite, readers: RowReaders | None, first: Index, count: Index
) -> VisibleKeys:
    """Return the range of the keys visible to queries [first, first + count).

    It has all keys if the queries see none. The first and the last query bound it, as a rule; rows
    between them are read in wide vectors, and one by one only where they see more.
    """
    k, keys = site.k, site.keys
    mask = mask_of(site.form) if site.cached else None
    if mask is None or readers is None or (isinstance(keys, int) and keys < FEWEST):
        return VisibleKeys(0, keys, 0)
    rows = _Rows(site, mask, readers, first)
    most = k.index(keys)
    none = [most, k.index(0)]
    if count == 1:
        low, high = rows.joined(0, none)
        return VisibleKeys(_aligned(k, low), k.min(high, most), 0)
    last = k.sub(count, 1)
    _, begun = ends = rows.joined(0, none)
    ends = rows.joined(last, ends)
    low, high = k.when(
        rows.outside(count, *ends),
        lambda: k.loop(0, count, 1, none, rows.joined),
        lambda: ends,
        [v.type for v in ends],
    )
    low, high = _aligned(k, low), k.min(high, most)
    # keys that the first query sees in a row, if the others see them, too
    start = rows.down(low)
    whole = k.max(k.sub(rows.down(begun), start), 0)
    hidden = rows.hidden(count, start, whole)
    full = arith.SelectOp(hidden, k.index(low), k.index(k.add(start, whole))).result
    return VisibleKeys(low, high, k.max(full, low))


def _aligned(k: WorkgroupBuilder, low: Index) -> Index:
    return k.sub(low, k.rem(low, ALIGNED))


class _Rows:
    """The rows of a mask that the queries of a group have."""

    def __init__(
        self, site: AttentionSite, mask: ir.Value, readers: RowReaders, first: Index
    ) -> None:
        self.site, self.k, self.first = site, site.k, first
        self.lanes, self.wide = readers.lanes, readers.lanes
        self.read = self.read_wide = readers.operands[mask]
        leaves = site.form.product.owner.operation.block.arguments
        try:
            self.read_wide = reader(mask, TensorType.of(mask).rank - 1, leaves, run=WIDE)
            self.wide = WIDE
        except Unreadable:
            pass

    def bits(self, read: Reader, row: Index, key: Index, lanes: int, *, masked: bool) -> ir.Value:
        """Return whether a query sees keys from one on."""
        elements = self.site.elements
        elements.masked = masked
        found = read(elements, [*self.site.lead, self.k.add(self.first, row), key], lanes).value
        elements.masked = False
        return found

    def joined(self, row: Index, carried: Sequence[ir.Value]) -> list[ir.Value]:
        """Return the range joined with that of a row: all keys if it sees none."""
        k, lanes, keys = self.k, self.lanes, self.site.keys
        most = k.index(keys)

        def some(key: Index, masked: bool, found: list[ir.Value]) -> list[ir.Value]:
            low, high = found
            is_seen = _any(self.bits(self.read, row, key, lanes, masked=masked))
            low = arith.SelectOp(is_seen, k.index(k.min(low, key)), low).result
            return [low, arith.SelectOp(is_seen, k.index(k.add(key, lanes)), high).result]

        low, high = k.along(keys, lanes, [most, k.index(0)], some)
        none = k.is_equal(high, 0)
        last = k.max(k.sub(high, lanes), 0)
        seen = self.bits(self.read, row, last, lanes, masked=True)
        high = k.index(k.add(last, _length(k, seen, lanes)))
        low = arith.SelectOp(none, k.index(0), low).result
        high = arith.SelectOp(none, most, high).result
        return [k.index(k.min(carried[0], low)), k.index(k.max(carried[1], high))]

    def down(self, key: Index) -> Index:
        """Return a key's index rounded down to that of a wide vector."""
        return self.k.sub(key, self.k.rem(key, self.wide))

    def outside(self, count: Index, low: Index, high: Index) -> ir.Value:
        """Return whether a row sees keys ahead of `low`, or from `high` on."""
        k, wide, keys = self.k, self.wide, self.site.keys
        before, behind = self.down(low), self.down(high)
        ahead = vector.CreateMaskOp(self._kind, [k.index(k.sub(low, before))]).result
        inside = vector.CreateMaskOp(self._kind, [k.index(k.sub(high, behind))]).result
        later = arith.XOrIOp(inside, self._all(True)).result
        rest = k.max(k.sub(keys, k.add(behind, wide)), 0)

        def row(i: Index, carried: list[ir.Value]) -> list[ir.Value]:
            def with_(found: ir.Value, key: Index, masked: bool, part: ir.Value | None) -> ir.Value:
                seen = self.bits(self.read_wide, i, key, wide, masked=masked)
                seen = seen if part is None else arith.AndIOp(seen, part).result
                return arith.OrIOp(found, seen).result

            found = with_(carried[0], before, True, ahead)
            found = with_(found, behind, True, later)
            made = k.loop(0, before, wide, [found], lambda j, c: [with_(c[0], j, False, None)])
            return k.along(
                rest, wide, made,
                lambda j, masked, c: [with_(c[0], k.add(behind, wide, j), masked, None)],
            )  # fmt: skip

        return _any(k.loop(0, count, 1, [self._all(False)], row)[0])

    @property
    def _kind(self) -> ir.VectorType:
        return ir.VectorType.get([self.wide], ir.IntegerType.get_signless(1))

    def _all(self, value: bool) -> ir.Value:
        """Return a wide vector of one bool."""
        each = ir.DenseElementsAttr.get_splat(self._kind, ir.BoolAttr.get(value))
        return constant_of(self._kind, each)

    def hidden(self, count: Index, start: Index, whole: Index) -> ir.Value:
        """Return whether a row does not see all of `whole` keys from `start` on."""
        k, wide, all_ = self.k, self.wide, self._all(True)

        def row(i: Index, carried: list[ir.Value]) -> list[ir.Value]:
            def some(key: Index, c: list[ir.Value]) -> list[ir.Value]:
                seen = self.bits(self.read_wide, i, k.add(start, key), wide, masked=False)
                return [arith.AndIOp(c[0], seen).result]

            return k.loop(0, whole, wide, carried, some)

        seen = k.loop(0, count, 1, [all_], row)[0]
        return _any(arith.XOrIOp(seen, all_).result)


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
