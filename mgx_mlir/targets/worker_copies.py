"""Loops of NVIDIA's kernels that copy to shared memory ahead, inside the compile worker.

IREE 3.13 loads a tile, waits, stores it to shared memory, waits at a barrier, and multiplies. Here
its code is changed between two of its phases, where a loop still reads as it is meant:

    barrier; v = read global[i]; write shared, v; barrier; multiply by shared
    ->  wait; barrier; copy shared[s + n] = global[i + n]; multiply by shared[s]

So copies of the next n iterations are under way (`cp.async`) while one multiplies. Shared memory
holds n + 1 tiles, and its rows lie 16 bytes further apart than they are long: eight neighbouring
rows then meet each bank once. `prefetch_num_stages` of a kernel is its number of tiles.

This file imports nothing of the package, as the worker that loads it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mgx_mlir.targets import worker_gathers as gathers
else:
    import worker_gathers as gathers  # the worker has loaded it from beside this file

_WORKGROUP = "#gpu.address_space<workgroup>"
_PADDING = 16  # bytes between rows of shared memory
_PURE = (
    "affine.", "arith.", "iree_codegen.index_hint", "vector.broadcast", "vector.create_mask",
    "vector.extract", "vector.shape_cast", "vector.step", "vector.transpose",
)  # fmt: skip
_COPIED = (4, 8, 16)  # bytes that an asynchronous copy moves
_READ, _WRITE = "vector.transfer_read", "vector.transfer_write"
_EQUAL, _LESS_SIGNED, _LESS = 0, 2, 6  # predicates of arith.cmpi


def change(ir: Any, function: Any, stages: int) -> int:
    """Let loops of a function copy ahead, and pad rows; return how many loops do.

    stages: tiles that shared memory holds; 1: nothing is copied ahead.
    """
    for write in walk(ir, function, _WRITE):
        gathers.change(ir, write)
    buffers = [_Buffer(ir, a) for a in walk(ir, function, "memref.alloc")]
    loops = [_Loop(ir, op) for op in walk(ir, function, "scf.for")] if stages > 1 else []
    loops = [loop for loop in loops if loop.fits(buffers)]
    for loop in loops:
        loop.change(stages)
    for buffer in buffers:
        buffer.grow()
    return len(loops)


def walk(ir: Any, op: Any, name: str) -> list[Any]:
    """Return the operations of a name inside of one."""
    found: list[Any] = []

    def visit(each: Any) -> Any:
        if each.name == name:
            found.append(each)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return found


def _segments(op: Any) -> list[int]:
    return [int(n) for n in op.attributes["operandSegmentSizes"]]


def _base(op: Any) -> Any:
    """Return the memref that a read or a write is of."""
    return op.operands[0 if op.name == _READ else 1]


def _indices(op: Any) -> list[Any]:
    first = 1 if op.name == _READ else 2
    return list(op.operands)[first : first + _segments(op)[first]]


class _Buffer:
    """A tensor of shared memory with its views: it grows to several tiles, of padded rows."""

    def __init__(self, ir: Any, op: Any) -> None:
        self.ir, self.op, self.tiles = ir, op, 1
        self.kind = ir.MemRefType(op.results[0].type)
        self.accesses: list[Any] = []  # reads and writes
        self.ends: list[Any] = []  # deallocations, which shared memory has no need of
        self.fits = str(self.kind.memory_space) == _WORKGROUP and self.kind.rank > 1
        self.fits = self.fits and self.kind.has_static_shape and self._collect(op.results[0])

    def _collect(self, value: Any) -> bool:
        """Collect reads and writes; return whether no view stands in the way."""
        for use in value.uses:
            user = use.owner.operation
            if user.name in (_READ, _WRITE):
                self.accesses.append(user)
            elif user.name == "memref.dealloc":
                self.ends.append(user)
            elif user.name != "memref.expand_shape" or not self._collect(user.results[0]):
                return False
        return True

    def grow(self) -> None:
        """Give it `tiles` tiles and rows that are padded."""
        if not self.fits:
            return
        ir, kind = self.ir, self.kind
        dims = [self.tiles * kind.shape[0], *kind.shape[1:]]
        more = _PADDING * 8 // bits(kind.element_type)
        whole = [*dims[:-1], dims[-1] + more]
        old = self.op.results[0]
        with ir.InsertionPoint(self.op):
            made = ir.MemRefType.get(whole, kind.element_type, None, kind.memory_space)
            alloc = ir.Operation.create("memref.alloc", results=[made], attributes={
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
            }).results[0]  # fmt: skip
            strides = [1]
            for n in reversed(whole[1:]):
                strides.insert(0, strides[0] * n)
            view = ir.Operation.create(
                "memref.subview", results=[self._type(dims, strides)], operands=[alloc],
                attributes={
                    "static_offsets": ir.DenseI64ArrayAttr.get([0] * len(dims)),
                    "static_sizes": ir.DenseI64ArrayAttr.get(dims),
                    "static_strides": ir.DenseI64ArrayAttr.get([1] * len(dims)),
                    "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
                },
            ).results[0]  # fmt: skip
        for end in self.ends:
            end.erase()
        old.replace_all_uses_with(view)
        self.op.erase()
        self._views(view, strides)

    def _type(self, dims: Sequence[int], strides: Sequence[int]) -> Any:
        layout = self.ir.StridedLayoutAttr.get(0, list(strides))
        kind = self.kind
        return self.ir.MemRefType.get(list(dims), kind.element_type, layout, kind.memory_space)

    def _views(self, value: Any, strides: Sequence[int]) -> None:
        """Give views of a value their new types."""
        for use in list(value.uses):
            op = use.owner.operation
            if op.name != "memref.expand_shape":
                continue
            dims = list(self.ir.MemRefType(op.results[0].type).shape)
            dims[0] *= self.tiles
            own: list[int] = [0] * len(dims)
            for group, stride in zip(op.attributes["reassociation"], strides, strict=True):
                for i in reversed([int(n) for n in group]):
                    own[i] = stride
                    stride *= dims[i]
            op.attributes["static_output_shape"] = self.ir.DenseI64ArrayAttr.get(dims)
            op.results[0].set_type(self._type(dims, own))
            self._views(op.results[0], own)


class _Loop:
    """A loop with copies to shared memory through registers."""

    def __init__(self, ir: Any, op: Any) -> None:
        self.ir, self.op = ir, op
        self.body = op.regions[0].blocks[0]
        self.ops = [o.operation for o in self.body.operations]
        self.pairs: list[tuple[Any, Any]] = []  # reads of global memory, and where each is written
        self.part: list[Any] = []  # operations ahead of the second barrier
        self.needed: list[Any] = []  # operations that make the indices of copies
        self.barriers: list[Any] = []
        self.buffers: list[_Buffer] = []

    # ---- what fits -----------------------------------------------------------------------------

    def fits(self, buffers: Sequence[_Buffer]) -> bool:
        """Return whether it copies whole, aligned vectors between its two barriers, to buffers of
        its own."""
        places = [i for i, o in enumerate(self.ops) if o.name == "gpu.barrier"]
        if len(places) != 2 or any(len(o.regions) for o in self.ops):
            return False
        self.barriers, self.part = [self.ops[i] for i in places], self.ops[: places[1]]
        writes = [o for o in self.ops if o.name == _WRITE]
        for write in writes:
            read = write.operands[0].owner
            read = read if isinstance(read, self.ir.Block) else read.operation
            if write not in self.part or not self._is_copy(read, write):
                return False
            self.pairs.append((read, write))
        if not writes or any(self.ops.index(w) < places[0] for w in writes):
            return False
        if not self._slice():
            return False
        written = [_base(w) for w in writes]
        self.buffers = [b for b in buffers if b.op.results[0] in written]
        return all(any(b.op.results[0] == w for b in self.buffers) for w in written) and all(
            b.fits and all(a in self.ops for a in b.accesses) for b in self.buffers
        )

    def _slice(self) -> bool:
        """Find what the indices of copies are made of; return whether all of it is pure."""
        needed: list[Any] = []
        queue = [i for pair in self.pairs for op in pair for i in _indices(op)]
        queue += [v for read, _ in self.pairs for v in self._sizes(read)]
        while queue:
            owner = queue.pop().owner
            if isinstance(owner, self.ir.Block) or owner.operation not in self.ops:
                continue
            op = owner.operation
            if op not in self.part or not op.name.startswith(_PURE):
                return False
            if op not in needed:
                needed.append(op)
                queue += op.operands
        self.needed = [o for o in self.part if o in needed]
        return True

    def _is_copy(self, read: Any, write: Any) -> bool:
        """Return whether a read and a write are one copy of neighbouring, aligned elements."""
        if isinstance(read, self.ir.Block) or read.name != _READ or read not in self.part:
            return False
        kind = self.ir.VectorType(read.results[0].type)
        if math.prod(kind.shape) != kind.shape[-1] or len(list(read.results[0].uses)) != 1:
            return False
        if not _is_plain(self.ir, read) or not _is_plain(self.ir, write) or _segments(write)[-1]:
            return False
        if _segments(read)[-1] and _prefix(self.ir, read) is None:
            return False
        return _bytes(self.ir, kind) in _COPIED and all(
            self._is_aligned(op, kind.shape[-1]) for op in (read, write)
        )

    def _is_aligned(self, op: Any, count: int) -> bool:
        """Return whether an access begins at a multiple of `count` elements."""
        base = _base(op)
        strides, _ = self.ir.MemRefType(base.type).get_strides_and_offset()
        lead = zip(strides[:-1], _indices(op)[:-1], strict=True)
        moved = [s for s, i in lead if constant(self.ir, i) != 0]
        if strides[-1] != 1 or any(s < 0 or s % count for s in moved):
            return False
        while base.owner.name in ("memref.assume_alignment", "memref.expand_shape"):
            base = base.owner.operands[0]
        known = base.owner.name in ("memref.alloc", "hal.interface.binding.subspan")
        return known and _divides(self.ir, count, _indices(op)[-1])

    # ---- the change ----------------------------------------------------------------------------

    def change(self, stages: int) -> None:
        """Copy `stages` - 1 iterations ahead."""
        ir, op, old = self.ir, self.op, self.body.arguments[0]
        for buffer in self.buffers:
            buffer.tiles = stages
        low, high, step, *inits = op.operands
        with ir.InsertionPoint(op):
            zero, group = self._number(0), None
            for i in range(stages - 1):
                at = self._add(low, self._times(step, i))
                self._guarded(self._is_less(at, high), old, at, self._number(i))
                group = self._group()
            loop = ir.Operation.create(
                "scf.for", results=[*(r.type for r in op.results), zero.type],
                operands=[low, high, step, *inits, zero], regions=1,
            )  # fmt: skip
        index = zero.type
        block = loop.regions[0].blocks.append(index, *(r.type for r in op.results), index)
        *carried, stage = block.arguments
        place = carried[0]
        for o in self.ops:
            block.append(o)
        for before, now in zip(self.body.arguments, carried, strict=True):
            before.replace_all_uses_with(now)
        for buffer in self.buffers:
            for access in buffer.accesses:
                if access.name == _READ:
                    self._at_stage(access, stage)
        with ir.InsertionPoint(self.barriers[1]):
            self._wait(group, stages - 2)
        with ir.InsertionPoint(self.ops[self.ops.index(self.barriers[1]) + 1]):
            later = self._add(place, self._times(step, stages - 1))
            first = self._compared(stage, zero, _EQUAL)
            free = self._chosen(first, self._number(stages - 1), self._add(stage, self._number(-1)))
            self._guarded(self._compared(later, high, _LESS), place, later, free)
            self._group()
        ends = self.ops[-1]
        with ir.InsertionPoint(ends):
            following = self._add(stage, self._number(1))
            last = self._compared(following, self._number(stages), _EQUAL)
            following = self._chosen(last, zero, following)
            ir.Operation.create("scf.yield", operands=[*ends.operands, following])
        ends.erase()
        for before, now in zip(op.results, list(loop.results)[:-1], strict=True):
            before.replace_all_uses_with(now)
        with ir.InsertionPoint(op):
            self._wait(group, 0)
        for read, write in self.pairs:
            write.erase()
            read.erase()
        self.barriers[0].erase()
        op.erase()

    def _guarded(self, condition: Any, own: Any, place: Any, stage: Any) -> None:
        """Copy the tiles of an iteration where a condition holds; own: what the loop counts."""
        if constant(self.ir, condition) == 1:
            self._copies(own, place, stage)
            return
        branch = self.ir.Operation.create("scf.if", operands=[condition], regions=2)
        with self.ir.InsertionPoint(branch.regions[0].blocks.append()):
            self._copies(own, place, stage)
            self.ir.Operation.create("scf.yield")

    def _copies(self, own: Any, place: Any, stage: Any) -> None:
        """Copy the tiles of the iteration at `place` to a stage."""
        ir = self.ir
        known = {own: place}

        def value(v: Any) -> Any:
            return known.get(v, v)

        for op in self.needed:
            copy = op.clone()
            for i, v in enumerate(op.operands):
                copy.operands[i] = value(v)
            known.update(zip(op.results, copy.results, strict=True))
        token = ir.Type.parse("!nvgpu.device.async.token")
        for read, write in self.pairs:
            kind = ir.VectorType(read.results[0].type)
            there, here = [[value(v) for v in _indices(o)] for o in (write, read)]
            there[0] = self._add(there[0], self._times(stage, _extent(ir, _base(write))))
            count, known_count = ir.IntegerAttr.get(ir.IndexType.get(), kind.shape[-1]), []
            if _segments(read)[-1]:
                sizes = [value(v) for v in self._sizes(read)]
                known_count = [self._within(sizes, kind.shape[-1])]
            more = {"bypassL1": ir.UnitAttr.get()} if _bytes(ir, kind) == _COPIED[-1] else {}
            segments = [1, len(there), 1, len(here), len(known_count)]
            ir.Operation.create(
                "nvgpu.device_async_copy", results=[token],
                operands=[_base(write), *there, _base(read), *here, *known_count],
                attributes={
                    "dstElements": count, **more,
                    "operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments),
                },
            )  # fmt: skip

    def _sizes(self, read: Any) -> list[Any]:
        """Return the sizes of a read's mask; none without one."""
        return (_prefix(self.ir, read) or []) if _segments(read)[-1] else []

    def _within(self, sizes: Sequence[Any], most: int) -> Any:
        """Return how many elements of a vector a mask of these sizes leaves, the first ones."""
        *lead, last = sizes
        zero, whole = self._number(0), self._number(most)
        if constant(self.ir, last) is None:
            last = self._chosen(self._compared(last, whole, _LESS_SIGNED), last, whole)
            last = self._chosen(self._compared(last, zero, _LESS_SIGNED), zero, last)
        for size in lead:
            last = self._chosen(self._compared(zero, size, _LESS_SIGNED), last, zero)
        return last

    def _at_stage(self, access: Any, stage: Any) -> None:
        """Let a read be of a stage."""
        with self.ir.InsertionPoint(access):
            begin = self._times(stage, _extent(self.ir, _base(access)))
            access.operands[1] = self._add(access.operands[1], begin)

    def _group(self) -> Any:
        """Make the copies since the last group one; return it."""
        token = self.ir.Type.parse("!nvgpu.device.async.token")
        return self.ir.Operation.create("nvgpu.device_async_create_group", results=[token]).results[
            0
        ]

    def _wait(self, group: Any, count: int) -> None:
        """Wait until at most `count` groups are in flight; group: one ahead of the loop."""
        ir = self.ir
        most = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), count)
        ir.Operation.create(
            "nvgpu.device_async_wait", operands=[group], attributes={"numGroups": most}
        )

    # ---- numbers -------------------------------------------------------------------------------

    def _number(self, n: int) -> Any:
        kind = self.ir.IndexType.get()
        attributes = {"value": self.ir.IntegerAttr.get(kind, n)}
        return self.ir.Operation.create(
            "arith.constant", results=[kind], attributes=attributes
        ).results[0]

    def _add(self, a: Any, b: Any) -> Any:
        first, second = constant(self.ir, a), constant(self.ir, b)
        if first is not None and second is not None:
            return self._number(first + second)
        return self._made("arith.addi", a, b)

    def _times(self, a: Any, n: int) -> Any:
        known = constant(self.ir, a)
        if known is not None:
            return self._number(known * n)
        return self._made("arith.muli", a, self._number(n))

    def _made(self, name: str, a: Any, b: Any) -> Any:
        flags = {"overflowFlags": self.ir.Attribute.parse("#arith.overflow<none>")}
        return self.ir.Operation.create(
            name, results=[a.type], operands=[a, b], attributes=flags
        ).results[0]

    def _compared(self, a: Any, b: Any, predicate: int) -> Any:
        ir = self.ir
        attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
        return ir.Operation.create(
            "arith.cmpi", results=[ir.IntegerType.get_signless(1)], operands=[a, b],
            attributes={"predicate": attribute},
        ).results[0]  # fmt: skip

    def _is_less(self, a: Any, b: Any) -> Any:
        """Return a < b, a constant where both are."""
        first, second = constant(self.ir, a), constant(self.ir, b)
        if first is None or second is None:
            return self._compared(a, b, _LESS)
        bit = self.ir.IntegerType.get_signless(1)
        attributes = {"value": self.ir.IntegerAttr.get(bit, int(first < second))}
        return self.ir.Operation.create(
            "arith.constant", results=[bit], attributes=attributes
        ).results[0]

    def _chosen(self, condition: Any, a: Any, b: Any) -> Any:
        return self.ir.Operation.create(
            "arith.select", results=[a.type], operands=[condition, a, b]
        ).results[0]


def _extent(ir: Any, base: Any) -> int:
    """Return the extent of the first dim of a memref."""
    return ir.MemRefType(base.type).shape[0]


def bits(kind: Any) -> int:
    """Return the width of an element."""
    return int(re.findall(r"\d+", str(kind))[0])


def _bytes(ir: Any, kind: Any) -> int:
    """Return the bytes of a vector's last dim."""
    return kind.shape[-1] * bits(kind.element_type) // 8


def _is_plain(ir: Any, op: Any) -> bool:
    """Return whether a read or a write is of neighbours, without a mask and within its bounds."""
    inside = all(str(b) == "true" for b in op.attributes["in_bounds"])
    last = op.attributes["permutation_map"].value.results[-1].maybe_downcast()
    along = isinstance(last, ir.AffineDimExpr) and last.position + 1 == (
        ir.MemRefType(_base(op).type).rank
    )
    return inside and along


def _prefix(ir: Any, read: Any) -> list[Any] | None:
    """Return the mask sizes of a read that is padded with 0; None for other reads."""
    mask = read.operands[-1]
    while not isinstance(mask.owner, ir.Block) and mask.owner.name == "vector.shape_cast":
        mask = mask.owner.operands[0]
    padding = read.operands[1 + _segments(read)[1]].owner
    if isinstance(mask.owner, ir.Block) or mask.owner.name != "vector.create_mask":
        return None
    kind = ir.VectorType(mask.type)
    if math.prod(kind.shape) != kind.shape[-1]:
        return None
    if isinstance(padding, ir.Block) or padding.name != "arith.constant":
        return None
    zero = (
        ir.FloatAttr
        if isinstance(padding.results[0].type, (ir.F16Type, ir.BF16Type, ir.F32Type))
        else ir.IntegerAttr
    )
    return list(mask.owner.operands) if zero(padding.attributes["value"]).value == 0 else None


def constant(ir: Any, value: Any) -> int | None:
    """Return the number that a value always is, None where it is not known."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return ir.IntegerAttr(owner.attributes["value"]).value


def _divides(ir: Any, count: int, value: Any) -> bool:
    """Return whether an index is known to be a multiple of a number."""
    owner = value.owner
    if count == 1:
        return True
    if isinstance(owner, ir.Block):
        return False
    name = owner.name
    if name == "arith.constant":
        number = owner.attributes["value"]
        if isinstance(value.type, ir.VectorType):
            return number.is_splat and number.get_splat_value().value % count == 0
        return (constant(ir, value) or 0) % count == 0
    # elements at 0 of the last dim, where it is a vector
    if name == "vector.step":
        return True
    if name in ("vector.extract", "vector.broadcast", "vector.shape_cast"):
        return len(owner.operands) == 1 and _divides(ir, count, owner.operands[0])
    if name == "vector.transpose":
        last = [int(n) for n in owner.attributes["permutation"]][-1]
        kind = ir.VectorType(owner.operands[0].type)
        return (last == kind.rank - 1 or kind.shape[-1] == 1) and _divides(
            ir, count, owner.operands[0]
        )
    if name == "arith.addi":
        return all(_divides(ir, count, v) for v in owner.operands)
    if name == "arith.muli":
        return any(_divides(ir, count, v) for v in owner.operands)
    if owner.name == "affine.linearize_index":
        basis = [int(n) for n in owner.attributes["static_basis"]]
        *_, last = owner.operands
        return basis[-1] % count == 0 and _divides(ir, count, last)
    if owner.name != "affine.apply":
        return False
    found = owner.attributes["map"].value

    def divides(n: int, expr: Any) -> bool:
        expr = expr.maybe_downcast()
        if n == 1:
            return True
        if isinstance(expr, ir.AffineConstantExpr):
            return expr.value % n == 0
        if isinstance(expr, ir.AffineAddExpr):
            return divides(n, expr.lhs) and divides(n, expr.rhs)
        if isinstance(expr, ir.AffineMulExpr):
            each = [e.maybe_downcast() for e in (expr.lhs, expr.rhs)]
            by = [e.value for e in each if isinstance(e, ir.AffineConstantExpr)]
            rest = [e for e in each if not isinstance(e, ir.AffineConstantExpr)]
            left = n // math.gcd(n, math.prod(by))
            return left == 1 or (len(rest) == 1 and divides(left, rest[0]))
        if isinstance(expr, ir.AffineDimExpr):
            return _divides(ir, n, owner.operands[expr.position])
        if isinstance(expr, ir.AffineSymbolExpr):
            return _divides(ir, n, owner.operands[found.n_dims + expr.position])
        return False

    return divides(count, found.results[0])


__all__ = ["bits", "change", "constant", "walk"]
