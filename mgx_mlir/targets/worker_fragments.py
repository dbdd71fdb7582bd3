"""Operands of matrix instructions on NVIDIA GPUs, read by `ldmatrix`, inside the compile worker.

A lane of `mma.sync` has pairs of neighbouring elements along the depth. IREE 3.13 reads each pair
by itself, or each element where rows lie along the other dim. `ldmatrix` gives four pairs at once:
lanes say where rows of 16 bytes begin, and the hardware gives each lane its pairs.

    v = read shared[lane / 4, 2 * (lane % 4)]..; mma.sync(.. of v)
    ->  mma.sync(ldmatrix shared[lane % 8, ..])

What a lane reads is followed through casts, transposes and slices, and the place of each element is
computed for the threads of two waves. An operand that does not lie so is read as before.

This file imports nothing of the package, as the worker that loads it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_SIDE = 8  # rows of a matrix of `ldmatrix`, and elements of its rows
_PAIR = 2  # elements of a register
_LANES = 32
_WORKGROUP = "#gpu.address_space<workgroup>"
_READ = "vector.transfer_read"
_VIEWS = ("memref.expand_shape", "memref.subview")
_PARTS = (
    "vector.shape_cast", "vector.transpose", "vector.extract", "vector.extract_strided_slice",
    "vector.insert_strided_slice",
)  # fmt: skip
# number of each loop's count in the second evaluation of an index: the address of an element may
# depend on it, the distance between two elements may not
_OTHER = 3
Element = tuple[Any, int]  # a read, and the distance of an element from the read's address


class _UnknownError(Exception):
    """An index that is computed in another way than is known here."""


@dataclass
class _Fragment:
    """An operand of matrix instructions."""

    value: Any
    read: Any  # the first of its reads
    begin: int  # distance of its first element from that read's address
    places: list[int]  # place of the first element, by thread
    stride: int  # elements between rows of shared memory
    turned: bool  # rows lie along the depth, in place of pairs
    first_use: int  # index in the block of the first instruction that has it


def change(ir: Any, function: Any, threads: int) -> int:
    """Read the operands of a function's matrix instructions by `ldmatrix`; return how many.

    threads: of a workgroup.
    """
    with function.context, ir.Location.unknown():
        return _Fragments(ir, function, threads).change()


class _Fragments:
    def __init__(self, ir: Any, function: Any, threads: int) -> None:
        self.ir, self.function = ir, function
        last = (threads - 1) // _LANES * _LANES
        self.threads = [*range(min(threads, _LANES)), *(range(last, threads) if last else ())]
        self.traces: dict[Any, list[Element | None] | None] = {}
        self.numbers: dict[tuple[Any, int, int], int] = {}
        self.begins: dict[tuple[Any, int], list[int]] = {}
        self.lanes: dict[tuple[int, int, int, bool], Any] = {}
        self.ids: list[Any] = []

    def change(self) -> int:
        ir, instructions = self.ir, list[Any]()

        def visit(op: Any) -> Any:
            if op.name == "nvgpu.mma.sync":
                instructions.append(op)
            elif op.name == "gpu.thread_id" and str(op.attributes["dimension"]) == "#gpu.dim<x>":
                self.ids.append(op)
            return ir.WalkResult.ADVANCE

        self.function.walk(visit)
        if not self.ids:
            return 0
        blocks = list[Any]()
        for op in instructions:
            if not any(op.block == b for b in blocks):
                blocks.append(op.block)
        return sum(self._of_block(b) for b in blocks)

    def _of_block(self, block: Any) -> int:
        ops = [o.operation for o in block.operations]
        rows: dict[Any, _Fragment | None] = {}
        columns: dict[Any, _Fragment | None] = {}
        for place, op in enumerate(ops):
            if op.name != "nvgpu.mma.sync":
                continue
            for known, v, count in ((rows, op.operands[0], 4), (columns, op.operands[1], 2)):
                if v not in known:
                    known[v] = self._fragment(v, count, block, place)
        self._order(ops)
        count = 0
        for one in (f for f in rows.values() if f is not None and not f.turned):
            made = self._made(one, _SIDE * one.stride, _SIDE, 4)
            one.value.replace_all_uses_with(made)
            count += 1
        left = [f for f in columns.values() if f is not None]
        order = {o: i for i, o in enumerate(ops)}
        left.sort(key=lambda f: order[f.read])
        while left:
            a = left.pop(0)
            along, down = 2 * _SIDE, _SIDE * a.stride  # distances along the depth and the columns
            if a.turned:
                along, down = 2 * _SIDE * a.stride, _SIDE
            odd = _SIDE * a.stride if a.turned else _SIDE
            beside = (f for step in (along, down) for f in left if self._is_beside(a, f, step))
            b = next((f for f in beside if order[a.read] < f.first_use), None)
            if b is None:
                a.value.replace_all_uses_with(self._made(a, odd, 0, 2))
                count += 1
                continue
            left.remove(b)
            a.first_use = min(a.first_use, b.first_use)
            both = self._made(a, odd, b.places[0] - a.places[0], 4)
            for f, first in ((a, 0), (b, 2)):
                f.value.replace_all_uses_with(self._half(both, first, f.value.type))
            count += 2
        return count

    def _order(self, ops: Sequence[Any]) -> None:
        """Note the instructions of a block, and how many of them have sums of their own."""
        self.ops, self.order = ops, {o: i for i, o in enumerate(ops)}
        self.instructions = [i for i, o in enumerate(ops) if o.name == "nvgpu.mma.sync"]
        results = {ops[i].results[0] for i in self.instructions}
        later = (n for n, i in enumerate(self.instructions) if ops[i].operands[2] in results)
        self.step = next(later, len(self.instructions))

    def _ahead(self, one: _Fragment) -> Any:
        """Return the operation ahead of which an operand is read: an instruction one step of the
        depth before the first that has it, so that reads lie between instructions."""
        at = self.instructions.index(one.first_use)
        place = self.instructions[max(0, at - self.step)]
        return self.ops[place] if place > self.order[one.read] else one.read

    def _is_beside(self, a: _Fragment, b: _Fragment, step: int) -> bool:
        same = a.stride == b.stride and a.turned == b.turned
        return (
            same
            and _buffer(a.read) == _buffer(b.read)
            and all(y - x == step for x, y in zip(a.places, b.places, strict=True))
        )

    # ---- what a lane reads ---------------------------------------------------------------------

    def _fragment(self, v: Any, registers: int, block: Any, place: int) -> _Fragment | None:
        """Return an operand that `ldmatrix` can read, else None."""
        if str(self.ir.VectorType(v.type).element_type) not in ("f16", "bf16"):
            return None
        traced = self._traced(v)
        if traced is None or len(traced) != registers * _PAIR:
            return None
        elements = [e for e in traced if e is not None]
        if len(elements) != len(traced):
            return None
        read, begin = elements[0]
        stride = self._stride(read)
        same = all(_buffer(r) == _buffer(read) and r.block == block for r, _ in elements)
        if not same or stride <= 0 or stride % _SIDE:
            return None
        try:
            looks = [
                [[p + at for p in self._begins(r, other)] for r, at in elements]
                for other in (0, _OTHER)
            ]
        except _UnknownError:
            return None
        for turned in (False, True):
            near, row = (stride, 1) if turned else (1, stride)  # along the depth, and across
            if registers == 4:
                apart = (0, _SIDE * row, _SIDE * near, _SIDE * (row + near))
            else:
                apart = (0, _SIDE * near)
            wanted = [d + i * near for d in apart for i in range(_PAIR)]
            if all(self._lies(look, wanted, near, row) for look in looks):
                return _Fragment(v, read, begin, looks[0][0], stride, turned, place)
        return None

    def _lies(
        self, look: Sequence[Sequence[int]], wanted: Sequence[int], near: int, row: int
    ) -> bool:
        """Return whether elements lie where `ldmatrix` gives them to lanes."""
        for i, t in enumerate(self.threads):
            first, lane = look[0][i], t % _LANES
            begin = look[0][i - lane]
            if first != begin + lane // 4 * row + _PAIR * (lane % 4) * near or begin % _SIDE:
                return False
            if any(own[i] - first != d for own, d in zip(look, wanted, strict=True)):
                return False
        return True

    def _traced(self, v: Any) -> list[Element | None] | None:
        """Return where each element of a vector is read, in order; None: not followed.

        An element that is not read, as a constant, is None.
        """
        if v not in self.traces:
            self.traces[v] = self._found(v)
        return self.traces[v]

    def _found(self, v: Any) -> list[Element | None] | None:
        ir, owner = self.ir, v.owner
        if isinstance(owner, ir.Block):
            return None
        op = owner.operation
        own = list(ir.VectorType(v.type).shape) if isinstance(v.type, ir.VectorType) else []
        if op.name == _READ:
            return self._of_read(op)
        if op.name in ("arith.constant", "ub.poison") and own:
            none: list[Element | None] = [None] * math.prod(own)
            return none
        if op.name not in _PARTS:
            return None
        if not isinstance(op.operands[0].type, ir.VectorType):
            return None
        below = self._traced(op.operands[0])
        dims = list(ir.VectorType(op.operands[0].type).shape)
        if below is None or op.name == "vector.shape_cast":
            return below
        strides, begin = _strides(dims), 0
        if op.name == "vector.transpose":
            strides = [strides[i] for i in _ints(op.attributes["permutation"])]
        elif op.name == "vector.extract":
            at = _ints(op.attributes["static_position"])
            if any(i < 0 for i in at):
                return None
            begin = sum(i * s for i, s in zip(at, strides[: len(at)], strict=True))
            strides = strides[len(at) :]
        else:
            if any(n != 1 for n in _ints(op.attributes["strides"])):
                return None
            at = _ints(op.attributes["offsets"])
            if op.name == "vector.insert_strided_slice":
                whole = self._traced(op.operands[1])
                if whole is None:
                    return None
                return _inserted(whole, own, below, dims, at)
            begin = sum(i * s for i, s in zip(at, strides[: len(at)], strict=True))
        return [below[begin + i] for i in _places(own, strides)]

    def _of_read(self, op: Any) -> list[Element | None] | None:
        ir = self.ir
        base, kind = ir.MemRefType(op.operands[0].type), ir.VectorType(op.results[0].type)
        if str(base.memory_space) != _WORKGROUP or _ints(op.attributes["operandSegmentSizes"])[3]:
            return None
        strides, _ = base.get_strides_and_offset()
        taken: list[int] = []
        for expr in op.attributes["permutation_map"].value.results:
            expr = expr.maybe_downcast()
            if not isinstance(expr, ir.AffineDimExpr):
                return None
            taken.append(strides[expr.position])
        return [(op, at) for at in _places(list(kind.shape), taken)]

    def _stride(self, read: Any) -> int:
        """Return the elements between two rows of shared memory."""
        kind = self.ir.MemRefType(_buffer(read).type)
        dims, (strides, _) = list(kind.shape), kind.get_strides_and_offset()
        rows = [s for n, s in zip(dims[:-1], strides[:-1], strict=True) if n > 1]
        return rows[-1] if rows else 0

    def _begins(self, read: Any, other: int) -> list[int]:
        """Return where each thread's read begins; other: the number of each loop's count."""
        key = read, other
        if key not in self.begins:
            base = self.ir.MemRefType(read.operands[0].type)
            strides, _ = base.get_strides_and_offset()
            indices = list(read.operands)[1 : 1 + base.rank]
            each = [(i, s) for i, s in zip(indices, strides, strict=True) if s]
            self.begins[key] = [
                sum(self._number(i, t, other) * s for i, s in each) for t in self.threads
            ]
        return self.begins[key]

    def _number(self, v: Any, thread: int, other: int) -> int:
        key = v, thread, other
        if key not in self.numbers:
            self.numbers[key] = self._computed(v, thread, other)
        return self.numbers[key]

    def _computed(self, v: Any, thread: int, other: int) -> int:
        ir, owner = self.ir, v.owner
        if isinstance(owner, ir.Block):
            return other
        op = owner.operation
        if op.name == "gpu.thread_id":
            return thread if str(op.attributes["dimension"]) == "#gpu.dim<x>" else 0
        if op.name == "arith.constant":
            return ir.IntegerAttr(op.attributes["value"]).value
        each = [self._number(o, thread, other) for o in op.operands]
        if op.name == "iree_codegen.index_hint":
            return each[0]
        if op.name in ("arith.addi", "arith.muli"):
            return each[0] + each[1] if op.name == "arith.addi" else each[0] * each[1]
        if op.name == "affine.apply":
            return _applied(ir, op.attributes["map"].value, each)
        if op.name not in ("affine.delinearize_index", "affine.linearize_index"):
            raise _UnknownError
        basis = _ints(op.attributes["static_basis"])
        if any(n < 0 for n in basis):
            raise _UnknownError
        if op.name == "affine.linearize_index":
            total = 0
            for i, at in enumerate(each):
                total = total * (basis[i - len(each)] if i else 1) + at
            return total
        count, rest = len(op.results), each[0]
        found: list[int] = []
        for n in reversed(basis[len(basis) - count + 1 :]):
            found.insert(0, rest % n)
            rest //= n
        found.insert(0, rest)
        return found[[r == v for r in op.results].index(True)]

    # ---- the reads that are made ---------------------------------------------------------------

    def _made(self, one: _Fragment, odd: int, upper: int, count: int) -> Any:
        """Return an `ldmatrix` of `count` matrices, the first of which is that of a fragment.

        odd, upper: distance of every second matrix, and of the last two, from the first one.
        """
        ir = self.ir
        base = ir.MemRefType(one.read.operands[0].type)
        indices = list(one.read.operands)[1 : 1 + base.rank]
        lane = self._lane(one.stride, odd, upper, one.turned)
        kind = ir.VectorType.get([count, _PAIR], base.element_type)
        with ir.InsertionPoint(self._ahead(one)):
            more = _added(ir, lane, _constant(ir, one.begin))
            indices[-1] = _added(ir, indices[-1], more)
            return ir.Operation.create(
                "nvgpu.ldmatrix", results=[kind], operands=[one.read.operands[0], *indices],
                attributes={
                    "transpose": ir.BoolAttr.get(one.turned),
                    "numTiles": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), count),
                },
            ).results[0]  # fmt: skip

    def _half(self, both: Any, first: int, kind: Any) -> Any:
        """Return two of four matrices."""
        ir = self.ir
        numbers = {"offsets": [first, 0], "sizes": [2, _PAIR], "strides": [1, 1]}
        wide = ir.IntegerType.get_signless(64)
        with ir.InsertionPoint.after(both.owner):
            return ir.Operation.create(
                "vector.extract_strided_slice", results=[kind], operands=[both],
                attributes={
                    name: ir.ArrayAttr.get([ir.IntegerAttr.get(wide, n) for n in each])
                    for name, each in numbers.items()
                },
            ).results[0]  # fmt: skip

    def _lane(self, stride: int, odd: int, upper: int, turned: bool) -> Any:
        """Return how far the row that a lane names lies from the lane's pair."""
        key = stride, odd, upper, turned
        if key not in self.lanes:
            ir = self.ir
            lane = ir.AffineSymbolExpr.get(0)
            total = ir.AffineConstantExpr.get(0)
            for by, of, times in lane_terms(stride, odd, upper, turned=turned):
                part = ir.AffineExpr.get_mod(lane, ir.AffineConstantExpr.get(of))
                part = ir.AffineExpr.get_floor_div(part, ir.AffineConstantExpr.get(by))
                part = ir.AffineExpr.get_mul(part, ir.AffineConstantExpr.get(times))
                total = ir.AffineExpr.get_add(total, part)
            thread = self.ids[0].operation
            ops = [o.operation for o in thread.block.operations]
            with ir.InsertionPoint(ops[ops.index(thread) + 1]):
                self.lanes[key] = ir.Operation.create(
                    "affine.apply", results=[ir.IndexType.get()], operands=[thread.results[0]],
                    attributes={"map": ir.AffineMapAttr.get(ir.AffineMap.get(0, 1, [total]))},
                ).results[0]  # fmt: skip
        return self.lanes[key]


def lane_terms(stride: int, odd: int, upper: int, *, turned: bool) -> list[tuple[int, int, int]]:
    """Return how far the row that a lane names lies from the pair that it reads by itself.

    The distance is the sum of lane % of // by * times over the rows (by, of, times). A lane names
    row lane % 8 of matrix lane / 8. odd, upper: distance of every second matrix, and of the last
    two, from the first one. turned: rows lie along the depth.
    """
    near, row = (stride, 1) if turned else (1, stride)
    return [
        (1, _SIDE, stride), (4, 32, -row), (1, 4, -_PAIR * near), (8, 16, odd), (16, 32, upper),
    ]  # fmt: skip


def _buffer(read: Any) -> Any:
    """Return the tensor of shared memory, or its first view, that a read is of."""
    base = read.operands[0]
    while base.owner.name == "memref.expand_shape":
        base = base.owner.operands[0]
    return base


def _applied(ir: Any, of: Any, given: Sequence[int]) -> int:
    """Return the result of an affine map of one result."""

    def number(expr: Any) -> int:
        expr = expr.maybe_downcast()
        if isinstance(expr, ir.AffineConstantExpr):
            return expr.value
        if isinstance(expr, ir.AffineDimExpr):
            return given[expr.position]
        if isinstance(expr, ir.AffineSymbolExpr):
            return given[of.n_dims + expr.position]
        a, b = number(expr.lhs), number(expr.rhs)
        if isinstance(expr, ir.AffineAddExpr):
            return a + b
        if isinstance(expr, ir.AffineMulExpr):
            return a * b
        if isinstance(expr, ir.AffineModExpr):
            return a % b
        if isinstance(expr, ir.AffineFloorDivExpr):
            return a // b
        raise _UnknownError

    return number(of.results[0])


def _constant(ir: Any, n: int) -> Any:
    kind = ir.IndexType.get()
    attributes = {"value": ir.IntegerAttr.get(kind, n)}
    return ir.Operation.create("arith.constant", results=[kind], attributes=attributes).results[0]


def _added(ir: Any, a: Any, b: Any) -> Any:
    flags = {"overflowFlags": ir.Attribute.parse("#arith.overflow<none>")}
    return ir.Operation.create(
        "arith.addi", results=[a.type], operands=[a, b], attributes=flags
    ).results[0]


def _ints(values: Any) -> list[int]:
    return [int(getattr(v, "value", v)) for v in values]


def _strides(dims: Sequence[int]) -> list[int]:
    found = [1]
    for n in reversed(list(dims)[1:]):
        found.insert(0, found[0] * n)
    return found


def _places(dims: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Return the distance of each element of dims, in order."""
    found = [0]
    for n, s in zip(dims, strides, strict=True):
        found = [p + i * s for p in found for i in range(n)]
    return found


def _inserted(
    whole: Sequence[Element | None], dims: Sequence[int], part: Sequence[Element | None],
    own: Sequence[int], at: Sequence[int],
) -> list[Element | None]:  # fmt: skip
    """Return the elements of a vector into which a part is put at `at`."""
    found, strides = list(whole), _strides(dims)
    begin = sum(i * s for i, s in zip(at, strides, strict=True))
    places = _places(own, strides[len(dims) - len(own) :])
    for p, element in zip(places, part, strict=True):
        found[begin + p] = element
    return found


__all__ = ["change", "lane_terms"]
