"""Branches and loops of the dialect, built from functions; tensor lists may pass through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mgx_mlir.core.dtypes import BOOL, INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, is_a
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.pointwise_binary import Add
from mgx_mlir.dialects.migraphx.views import Identity
from mgx_mlir.frontends.branches import joined_types, same_count
from mgx_mlir.frontends.helpers import convert, extent, single, squeeze, unsqueeze
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.tf.lists import NotScanned, with_elements, zeros
from mgx_mlir.frontends.tf.values import TensorList
from mgx_mlir.frontends.values import POISON, Held, HostValue, Value, has_failed
from mgx_mlir.programs.build import Builder

MOST_ROWS = 1 << 20  # most iterations of a loop whose results have one row for each
_TRIES = 16  # each retry makes more of the carried dims dynamic
_ENDLESS = np.int64(2**63 - 1)

Build = Callable[[], Sequence[Held]]


def _has_dims_of(b: Builder, v: Value, source: Value, first: Value | None = None) -> None:
    """State that `v` has the dims of `source` for every size, after the leading dims of `first`."""
    if not b.probe.active:
        return
    b.probe.state_dims(v, source, first)


def truth(b: Builder, v: Held) -> Value:
    """Return whether a condition holds: a nonzero number, or a nonempty tensor."""
    if isinstance(v, HostValue):
        raise NotSupported(f"a condition that is a {v.what}")
    assert isinstance(v, ir.Value)
    value, dims = v, b.dims(v)
    if dims and dims != (1,):
        if DYN in dims:
            raise NotSupported("a condition of dynamic dims")
        return b.literal(np.bool_(all(dims)))
    if b.dtype(value) is not BOOL:
        value = b.not_(convert(b, b.equal(value, 0), BOOL))
    return squeeze(b, value, [0]) if dims else value


def tensors(values: Sequence[Held], what: str) -> list[Value]:
    """Return the tensor of each value: itself, or a list's elements. NotSupported for others."""
    out: list[Value] = []
    for i, v in enumerate(values):
        tensor = v.stacked if isinstance(v, TensorList) else v
        if tensor is None:
            raise NotSupported(f"{what} {i}, an empty tensor list of unknown elements")
        if isinstance(tensor, HostValue):
            raise NotSupported(f"{what} {i} that is a {tensor.what}")
        assert isinstance(tensor, ir.Value)
        out.append(tensor)
    return out


def like(value: Held, found: Value) -> Held:
    """Return `found` as the same kind of value as `value`."""
    return with_elements(value, found) if isinstance(value, TensorList) else found


def branch(b: Builder, cond: Value, then: Build, other: Build) -> list[Held]:
    """Return the result of one of two builders, by `cond`; [POISON] if one has failed.

    With a known condition, its builder builds in place.
    """
    known = b.const(cond)
    if known is not None:
        return list(then() if bool(known.reshape(-1)[0]) else other())
    draft = OPS["if"](cond, [], results=[]).operation
    try:
        given, yields = [], []
        for build, region in zip((then, other), draft.regions, strict=True):
            with ir.InsertionPoint(region.blocks.append()):
                given.append(build())
                if has_failed(given[-1]):
                    draft.erase()
                    return [POISON]
                yields.append(tensors(given[-1], "output"))
                OPS["yield"](yields[-1])
        same_count(yields)
        types = joined_types(yields)
    except BaseException:
        if draft.parent is not None:
            draft.erase()
        raise
    made = OPS["if"](cond, [], results=types).operation
    for old, new in zip(draft.regions, made.regions, strict=True):
        old.blocks[0].append_to(new)
    draft.erase()
    for r, x, y in zip(made.results, *yields, strict=True):
        if b.probe.active and all(b.probe.same(x, i, y, i) for i in range(len(b.dims(x)))):
            _has_dims_of(b, r, x)
    return [like(g, r) for g, r in zip(given[0], made.results, strict=True)]


def choose(b: Builder, index: Held, builds: Sequence[Build]) -> list[Held]:
    """Return the result of builder `index`; of the last one for an index out of range."""
    if len(builds) == 1:
        return list(builds[0]())
    if isinstance(index, HostValue):
        raise NotSupported(f"a branch index that is a {index.what}")
    assert isinstance(index, ir.Value)
    index = single(b, index, "branch index")
    known = b.const(index)
    if known is not None:
        i = int(known.reshape(-1)[0])
        return list(builds[i if 0 <= i < len(builds) else -1]())
    # nested ifs, the first builder outermost
    numbers = list(range(len(builds) - 1))

    def from_(at: int) -> list[Held]:
        if at == len(numbers):
            return list(builds[-1]())
        hit = convert(b, b.equal(index, numbers[at]), BOOL)
        return branch(b, hit, builds[at], lambda: from_(at + 1))

    return from_(0)


# ---- loops ---------------------------------------------------------------------------------------


def while_loop(
    b: Builder,
    initial: Sequence[Held],
    cond: Callable[[Sequence[Held]], Held],
    body: Callable[[Sequence[Held]], Sequence[Held]],
) -> list[Held]:
    """Run `body` repeatedly on its own results while `cond` holds; [POISON] if one has failed.

    If each iteration writes one element of a tensor list, at the iteration's index, the list is a
    scan output. Other lists are carried whole.
    """
    going = cond(initial)
    if going is POISON:
        return [POISON]
    going = truth(b, going)
    start = b.const(going)
    if start is not None and not bool(start.reshape(-1)[0]):
        return list(initial)
    scanned = {i for i, v in enumerate(initial) if isinstance(v, TensorList) and v.stacked is None}
    initial = list(initial)
    for _ in range(2 + len(scanned)):
        try:
            return _Loop(b, initial, going, cond, body, scanned).build()
        except _Whole as e:
            # dims of its elements are those of the written values
            scanned.discard(e.index)
            extents = e.extents and [
                d if isinstance(d, int) else b.shape(d[0], d[1], d[1] + 1) for d in e.extents
            ]
            stated = initial[e.index]
            assert isinstance(stated, TensorList)
            initial[e.index] = zeros(b, stated, extents)
    raise NotSupported("tensor lists whose elements' dims are not known")


class _Whole(Exception):
    """Raised if a list must be carried whole; has its elements' extents: numbers, or (value,
    axis).
    """

    def __init__(self, index: int, extents: list[Any] | None) -> None:
        self.index, self.extents = index, extents
        super().__init__()


class _Loop:
    """A loop under construction: rebuilt until the types of its carried values are stable."""

    def __init__(
        self,
        b: Builder,
        initial: list[Held],
        going: Value,
        cond: Callable[[Sequence[Held]], Held],
        body: Callable[[Sequence[Held]], Sequence[Held]],
        scanned: set[int],
    ) -> None:
        self.b, self.initial, self.going, self.cond, self.body = b, initial, going, cond, body
        self.scanned = scanned
        self.carried = [i for i in range(len(initial)) if i not in scanned]
        self.values = tensors([initial[i] for i in self.carried], "loop variable")
        # values whose dims are the same in every iteration
        self.kept = set(range(len(self.values)))

    def build(self) -> list[Held]:
        """Build the loop; return its results, [POISON] if the body failed."""
        b = self.b
        types = [TensorType.of(v) for v in self.values]
        mark = b.remembered()
        for _ in range(_TRIES):
            draft = OPS["loop"](b.literal(_ENDLESS), self.going, self.values, results=[]).operation
            try:
                found = self._draft(draft, types)
            except BaseException:
                draft.erase()
                b.forget(mark)
                raise
            if found is None:
                draft.erase()
                return [POISON]
            if found == types and self.settled:
                return self._made(draft, types)
            draft.erase()
            b.forget(mark)
            types = found
        raise NotSupported("a loop whose dims change in each attempt")

    def _draft(self, draft: ir.Operation, types: list[TensorType]) -> list[TensorType] | None:
        """Fill the body; return the types that its carried values should have. None: it failed."""
        b = self.b
        flags = (TensorType(INT64, ()), TensorType(BOOL, ()))
        block = draft.regions[0].blocks.append(*(t.mlir() for t in (*flags, *types)), arg_locs=None)
        held: dict[int, Value] = dict(zip(self.carried, block.arguments[2:], strict=True))
        for i, v in enumerate(self.values):
            if i in self.kept and b.probe.active:
                _has_dims_of(b, block.arguments[2 + i], v)
        try:
            return self._filled(block, held, types)
        except NotScanned as e:
            raise _Whole(e.index, self._extents(e.item, block)) from None

    def _extents(self, item: Value | None, block: ir.Block) -> list[Any] | None:
        """Return the extents of a list's written elements, as extents of the loop's inputs."""
        if item is None:
            return None
        b = self.b
        out: list[Any] = []
        owned = list(zip(list(block.arguments)[2:], self.values, strict=True))
        for i, d in enumerate(b.dims(item)):
            found: Any = d
            if d == DYN:
                places = (
                    (v, j)
                    for a, v in owned
                    for j in range(len(b.dims(a)))
                    if b.probe.same(item, i, a, j)
                )
                found = next(places, None)
            if found is None:
                return None
            out.append(found)
        return out

    def _filled(
        self, block: ir.Block, held: dict[int, Value], types: list[TensorType]
    ) -> list[TensorType] | None:
        b = self.b
        with ir.InsertionPoint(block):
            arguments = [
                like(v, held[i]) if i in held else self._list(i).marked(i)
                for i, v in enumerate(self.initial)
            ]
            found = self.body(arguments)
            if has_failed(found):
                return None
            if len(found) != len(self.initial):
                raise ModelError(
                    f"the body gives {len(found)} values, expected {len(self.initial)}"
                )
            again = self.cond(found)
            if again is POISON:
                return None
            nexts = tensors([found[i] for i in self.carried], "loop variable")
            self.counters = _counters(b, self.values, block.arguments[2:], nexts)
            rows = [self._row(i, found[i], block) for i in sorted(self.scanned)]
            again = truth(b, again)
            limits = _limits(b, block, again, nexts, self.counters)
            known = [b.const(v) for v in limits or ()]
            self.count: int | None = None
            if limits is not None and all(k is not None for k in known):
                self.count = min((max(int(k.reshape(-1)[0]), 0) for k in known if k is not None),
                                 default=int(_ENDLESS))  # fmt: skip
            self.limits = limits
            for i, row in zip(sorted(self.scanned), rows, strict=True):
                extents = self._extents(row, block)
                if extents is not None and not self._writes_all(self._list(i)):
                    raise _Whole(i, extents)
            self.found = found
            self.yields = [again if self.count is None else block.arguments[1], *nexts, *rows]
            OPS["yield"](self.yields)
        out = []
        changed = set()
        for i, (t, v) in enumerate(zip(types, nexts, strict=True)):
            have = TensorType.of(v)
            if have.dtype is not t.dtype:
                raise ModelError(f"loop variable {i} is {t}, the body makes {have} of it")
            if have.rank != t.rank:
                raise NotSupported(f"loop variable {i} whose rank changes: {t}, then {have}")
            out.append(
                t.with_dims(
                    DYN if x != y and x != DYN else x
                    for x, y in zip(t.dims, have.dims, strict=True)
                )
            )
            argument = block.arguments[2 + i]
            if i in self.kept and not all(
                b.probe.same(v, k, argument, k) for k in range(have.rank)
            ):
                changed.add(i)
        self.settled = not changed or not b.probe.active
        self.kept -= changed
        return out

    def _row(self, index: int, found: Held, block: ir.Block) -> Value:
        """Return the value that the body writes to a list at the iteration's index."""
        if not isinstance(found, TensorList) or found.mark != index:
            raise NotSupported(
                f"loop variable {index}, a tensor list that the body replaces by another one"
            )
        if found.written is None:
            raise NotScanned(index, None)
        place, item = found.written
        start = self.counters.get(_argument_number(place, block))
        if start != 0:
            raise NotScanned(index, item)
        return item

    def _made(self, draft: ir.Operation, types: list[TensorType]) -> list[Held]:
        b = self.b
        block = draft.regions[0].blocks[0]
        scans = [TensorType.of(v) for v in self.yields[1 + len(types) :]]
        known = self.count is not None and self.count <= MOST_ROWS
        rows = self.count if known and self.count is not None else DYN
        count = b.literal(_ENDLESS if self.count is None else np.int64(self.count))
        made = OPS["loop"](
            count,
            self.going,
            self.values,
            results=[*types, *(t.with_dims((rows, *t.dims)) for t in scans)],
            max_iterations=max(rows, 1),
            padded=known and bool(scans),
            scan_output_directions=[0] * len(scans),
        ).operation
        block.append_to(made.regions[0])
        draft.erase()
        results = list(made.results)
        for i, v in enumerate(results):
            if i >= len(types):
                _has_dims_of(b, v, self.yields[1 + i], first=v)
            elif i in self.kept:
                _has_dims_of(b, v, self.values[i])
        out: list[Any] = [None] * len(self.initial)
        for i, v in zip(self.carried, results[: len(types)], strict=True):
            out[i] = like(self.initial[i], v)
        for i, v in zip(sorted(self.scanned), results[len(types) :], strict=True):
            out[i] = with_elements(self._list(i), self._all_rows(self._list(i), v))
        return out

    def _list(self, index: int) -> TensorList:
        """Return the loop variable `index`, which is a list."""
        found = self.initial[index]
        assert isinstance(found, TensorList)
        return found

    def _writes_all(self, stated: TensorList) -> bool:
        """Return whether there are as many iterations as elements of a list."""
        size = self.b.const(stated.size)
        if size is not None and self.count is not None:
            return self.count == int(size)
        return bool(self.limits) and all(
            _same_number(self.b, v, stated.size) for v in self.limits or ()
        )

    def _all_rows(self, stated: TensorList, rows: Value) -> Value:
        """Return the elements of a list: the written ones, then zeros."""
        b = self.b
        if self._writes_all(stated):
            return rows
        count = extent(b, rows, 0)
        missing = unsqueeze(b, b.max(b.sub(convert(b, stated.size, INT64), count), 0), [0])
        dims = b.concat([missing, b.shape(rows, 1)], axis=0)
        zero = b.literal(np.zeros((1,) * len(b.dims(rows)), b.dtype(rows).np))
        return b.concat([rows, b.op("broadcast_with_dims", zero, dims)], axis=0)


def _same_number(b: Builder, x: Value, y: Value) -> bool:
    """Return whether two scalars are equal for every size of the dynamic dims."""
    x, y = _uncast(x), _uncast(y)
    if x == y:
        return True
    if not b.probe.active:
        return False
    found, wanted = b.probe.elements(x), b.probe.elements(y)
    return (
        found is not None
        and wanted is not None
        and len(found) == len(wanted)
        and all(map(b.probe.are_equal, found, wanted))
    )


def _argument_number(v: Value, block: ir.Block) -> int | None:
    """Return the index of the carried value of a block argument."""
    v = _uncast(v)
    return next((i for i, a in enumerate(list(block.arguments)[2:]) if a == v), None)


def _uncast(v: Value) -> Value:
    """Return the integer that an integer was cast from."""
    owner = v.owner
    while is_a(owner, (Convert, Identity)):
        source = owner.operands[0]
        if not TensorType.of(source).dtype.is_integer:
            break
        v, owner = source, source.owner
    return v


def _counters(
    b: Builder, starts: Sequence[Value], arguments: Sequence[Value], nexts: Sequence[Value]
) -> dict[int | None, int]:
    """Return the known starts of carried scalars to which every iteration adds 1."""
    out: dict[int | None, int] = {}
    for i, (start, argument, after) in enumerate(zip(starts, arguments, nexts, strict=True)):
        t = TensorType.of(start)
        if t.dims or not t.dtype.is_integer:
            continue
        owner = _uncast(after).owner
        known = b.const(start)
        if known is None or not is_a(owner, Add):
            continue
        x, y = owner.operands
        for base, step in ((x, y), (y, x)):
            if _uncast(base) == argument and _is_one(b, step):
                out[i] = int(known)
    return out


def _is_one(b: Builder, v: Value) -> bool:
    known = b.const(v)
    return known is not None and known.size == 1 and int(known.reshape(-1)[0]) == 1


def _limits(
    b: Builder,
    block: ir.Block,
    again: Value,
    nexts: Sequence[Value],
    counters: dict[int | None, int],
) -> list[Value] | None:
    """Return scalars whose minimum is the iteration count; None if it depends on more.

    The condition compares counters with numbers from outside of the loop.
    """
    owner = again.owner
    name = getattr(owner, "name", "")
    if name == "migraphx.logical_and":
        parts = [_limits(b, block, v, nexts, counters) for v in owner.operands]
        return None if None in parts else [v for p in parts for v in p or ()]
    if name == "migraphx.convert":
        return _limits(b, block, owner.operands[0], nexts, counters)
    if name == "migraphx.literal":
        known = b.const(again)
        return [] if known is not None and bool(known.all()) else None
    if name not in ("migraphx.less", "migraphx.greater"):
        return None
    low, high = owner.operands if name == "migraphx.less" else reversed(list(owner.operands))
    t = TensorType.of(high)
    if t.elements != 1 or not t.dtype.is_integer:
        return None
    if b.const(high) is None and _is_inside(high, block):
        return None
    for i, v in enumerate(nexts):
        if i in counters and _uncast(v) == _uncast(low):
            start = counters[i]
            if start == 0:
                return [high]
            known = b.const(high)
            return None if known is None else [b.literal(known - known.dtype.type(start))]
    return None


def _is_inside(v: Value, block: ir.Block) -> bool:
    """Return whether a value is defined in a block, or is its argument."""
    owner = v.owner
    return (owner if isinstance(owner, ir.Block) else owner.operation.block) == block
