"""Sequences and optionals, whose structure is known when the model is read (structures.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from mgx_mlir.core.dtypes import INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends.bounds import within
from mgx_mlir.frontends.branches import choose
from mgx_mlir.frontends.extents import extents, reshaped, times
from mgx_mlir.frontends.helpers import (
    axis_in,
    compare,
    convert,
    extent,
    greater_equal,
    require,
    reshape,
    single,
    squeeze,
    transpose,
    unsqueeze,
)
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.onnx.structures import (
    ABSENT,
    TENSOR,
    DynamicList,
    DynamicParts,
    Joined,
    TensorList,
    describe,
    form_of,
)
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.shaping import split_by, split_evenly, split_static
from mgx_mlir.frontends.values import Held, HostValue, Outputs, Value, has_failed
from mgx_mlir.programs.build import Builder

_MOST = 1 << 16  # most elements of a sequence from one node
_MOST_BRANCHES = 64  # most branches of a choice among elements of different dims
_MOST_BRANCHES = 64  # branches of a choice among elements that differ in dims


# ---- sequences ---------------------------------------------------------------------------------


@onnx_op("SequenceConstruct", since=11)
def sequence_construct(b: Builder, node: Node, *xs: Value) -> TensorList:
    """Import SequenceConstruct: a list that exists only during import."""
    if not xs or any(x is None for x in xs):
        raise ModelError("expected at least one input, none of them absent")
    return _list(b, xs)


@onnx_op("SequenceEmpty", since=11)
def sequence_empty(b: Builder, node: Node, *, dtype: int = 1) -> TensorList:
    """Import SequenceEmpty."""
    return TensorList(())


@onnx_op("SequenceLength", since=11, structures=True)
def sequence_length(b: Builder, node: Node, sequence: Held) -> Value:
    """Import SequenceLength, which is known at import except for lists of dynamic length."""
    if isinstance(sequence, DynamicParts):
        return _part_count(b, sequence)
    if isinstance(sequence, DynamicList):
        return extent(b, sequence.stack, 0)
    return b.literal(np.int64(len(_items(sequence))))


@onnx_op("SequenceAt", since=11, structures=True)
def sequence_at(b: Builder, node: Node, sequence: Held, position: Value) -> Value:
    """Import SequenceAt; a position known only at run time needs elements of one type."""
    if isinstance(sequence, DynamicList):
        parts = sequence if isinstance(sequence, DynamicParts) else None
        count = extent(b, sequence.stack, 0) if parts is None else _part_count(b, parts)
        at = convert(b, single(b, position, "position"), INT64)
        at = b.where(compare(b, "less", at, 0), b.add(at, count), at)
        inside = b.logical_and(greater_equal(b, at, 0), compare(b, "less", at, count))
        at = require(b, at, inside, "a position in the sequence")
        if parts is not None:
            begin = b.mul(at, parts.part)
            end = b.min(b.add(begin, parts.part), extent(b, parts.whole, parts.axis))
            bounds = (unsqueeze(b, v, [0]) for v in (begin, end))
            found = b.op("slice", parts.whole, *bounds, axes=[parts.axis])
            return node.mark(found, node.kind(parts.whole))
        found = b.gather(sequence.stack, b.reshape(at, dims=[1]), axis=0)
        return node.mark(squeeze(b, found, [0]), node.kind(sequence.stack))
    items = _items(sequence)
    if not items:
        raise ModelError("there is no element in an empty sequence")
    at = b.const(single(b, position, "position"))
    if at is not None:
        return items[_place(int(at), len(items), len(items) - 1)]
    n, kinds = len(items), {(b.dtype(v), len(b.dims(v))) for v in items}
    apart = DYN in b.dims(items[0]) or len({b.dims(v) for v in items}) > 1
    if apart and len(kinds) == 1 and n <= _MOST_BRANCHES:
        at = _place_in(b, position, n)
        return node.mark(choose(b, at, n, lambda i: b.identity(items[i])), node.kind(items[0]))
    at = _from_front(b, position, len(items), items, "position")
    rows = [unsqueeze(b, v, [0]) for v in items]
    found = b.gather(b.concat(rows, axis=0), at, axis=0)
    return node.mark(found, node.kind(items[0]))


@onnx_op("SequenceInsert", since=11, structures=True)
def sequence_insert(
    b: Builder, node: Node, sequence: Held, tensor: Value, position: Value | None = None
) -> TensorList:
    """Import SequenceInsert, also at a position known only at run time."""
    items = list(_items(sequence))
    if form_of(tensor) != TENSOR:
        raise ModelError(f"expected a tensor to insert, got {describe(form_of(tensor))}")
    n = len(items)
    at = np.int64(n) if position is None else b.const(single(b, position, "position"))
    if at is not None:
        items.insert(_place(int(at), n, n), tensor)
        return _list(b, items)
    assert position is not None
    at = _from_front(b, position, n, [*items, tensor], "position")
    # element i of the result: i before the position, the tensor at it, i - 1 after it
    made = []
    for i in range(n + 1):
        later = items[i - 1] if i else tensor
        behind = b.where(compare(b, "equal", at, i), tensor, later)
        made.append(b.where(compare(b, "greater", at, i), items[i], behind) if i < n else behind)
    return _list(b, [node.mark(v, node.kind(tensor)) for v in made])


@onnx_op("SequenceErase", since=11, structures=True)
def sequence_erase(
    b: Builder, node: Node, sequence: Held, position: Value | None = None
) -> TensorList:
    """Import SequenceErase, also at a position known only at run time."""
    items = list(_items(sequence))
    n = len(items)
    if not n:
        raise ModelError("there is no element in an empty sequence")
    at = np.int64(n - 1) if position is None else b.const(single(b, position, "position"))
    if at is not None:
        del items[_place(int(at), n, n - 1)]
        return TensorList(tuple(items))
    assert position is not None
    at = _from_front(b, position, n, items, "position")
    made = [b.where(compare(b, "greater", at, i), items[i], items[i + 1]) for i in range(n - 1)]
    return TensorList(tuple(node.mark(v, node.kind(items[0])) for v in made))


@onnx_op("SplitToSequence", since=11)
def split_to_sequence(
    b: Builder,
    node: Node,
    x: Value,
    split: Value | None = None,
    *,
    axis: int = 0,
    keepdims: int = 1,
) -> TensorList | DynamicList:
    """Import SplitToSequence."""
    rank = len(b.dims(x))
    axis = axis_in(axis, rank)
    size = b.dims(x)[axis]
    ones = split is None or (b.dims(split) == () and b.const(split) == 1)
    if size == DYN and ones:
        stack = transpose(b, x, [axis, *(i for i in range(rank) if i != axis)])
        if keepdims or split is not None:
            stack = unsqueeze(b, stack, [axis + 1])
        return DynamicList(node.mark(stack, node.kind(x)))
    if split is None:
        _check_count(size)
        parts = split_static(b, x, axis, [1] * size)
        if not keepdims:
            parts = [squeeze(b, p, [axis]) for p in parts]
    elif b.dims(split) == () and (size == DYN or b.const(split) is None):
        return _open_parts(b, node, x, axis, split)
    elif b.dims(split) == ():
        parts = _in_parts_of(b, node, x, axis, split)
    else:
        parts = split_by(b, x, axis, convert(b, split, INT64))
    return TensorList(tuple(node.mark(p, node.kind(x)) for p in parts))


def _in_parts_of(b: Builder, node: Node, x: Value, axis: int, split: Value) -> Sequence[Value]:
    """Return parts of one size, and a last part with the rest."""
    size = b.dims(x)[axis]
    part = int(node.const(split, "split"))
    if part < 1:
        raise ModelError(f"input 'split' expected at least 1, got {part}")
    count = -(-size // part)
    _check_count(count)
    if size % part == 0:
        return split_evenly(b, x, axis, count) if count else ()
    return split_static(b, x, axis, [part] * (count - 1) + [size - part * (count - 1)])


def _open_parts(b: Builder, node: Node, x: Value, axis: int, split: Value) -> DynamicParts:
    """Return parts of one size, whose number is known only at run time."""
    part = within(b, convert(b, split, INT64), "split", 1)
    known = b.const(part)
    size = extent(b, x, axis)
    fits = compare(b, "equal", b.mod(size, part), 0)
    count = b.div(size, part)
    rank = len(b.dims(x))
    order = [axis, *(i for i in range(rank) if i != axis)]
    moved = require(
        b, transpose(b, x, order), fits, f"dim {axis} divided into equal parts, for a list"
    )
    rows = reshaped(
        b, moved, [count, part if known is None else int(known), *extents(b, moved)[1:]]
    )
    back = [0, *range(2, axis + 2), 1, *range(axis + 2, rank + 1)]
    stack = node.mark(transpose(b, rows, back), node.kind(x))
    return DynamicParts(stack, x, axis, part)


def _part_count(b: Builder, parts: DynamicParts) -> Value:
    size = extent(b, parts.whole, parts.axis)
    return b.div(b.add(size, b.sub(parts.part, 1)), parts.part)


def _check_count(count: int) -> None:
    if count > _MOST:
        raise NotSupported(f"a sequence of {count} elements")


@onnx_op("ConcatFromSequence", since=11, structures=True)
def concat_from_sequence(
    b: Builder, node: Node, sequence: Held, *, axis: int, new_axis: int = 0
) -> Value:
    """Import ConcatFromSequence: a concat, or with `new_axis` a stack."""
    if isinstance(sequence, Joined):
        return node.mark(sequence.value, node.kind(sequence.value))
    if isinstance(sequence, DynamicParts) and not new_axis:
        whole = sequence.whole
        if axis_in(axis, len(b.dims(whole))) == sequence.axis:
            return node.mark(b.identity(whole), node.kind(whole))
    if isinstance(sequence, DynamicList):
        joined = _joined(b, sequence.stack, axis, bool(new_axis))
        return node.mark(joined, node.kind(sequence.stack))
    items = list(_items(sequence))
    if not items:
        raise ModelError("there is nothing to join in an empty sequence")
    rank = len(b.dims(items[0])) + bool(new_axis)
    axis = axis_in(axis, rank)
    if new_axis:
        items = [unsqueeze(b, v, [axis]) for v in items]
    found = items[0] if len(items) == 1 else b.concat(items, axis=axis)
    return node.mark(found, node.kind(_items(sequence)[0]))


def _joined(b: Builder, stack: Value, axis: int, new_axis: bool) -> Value:
    """Concatenate the elements of a stack along one of their axes, or a new one."""
    rank = len(b.dims(stack))
    axis = axis_in(axis, rank if new_axis else rank - 1)
    order = list(range(1, rank))
    moved = transpose(b, stack, [*order[:axis], 0, *order[axis:]])
    if new_axis:
        return moved
    own = extents(b, moved)
    return reshaped(b, moved, [*own[:axis], times(b, own[axis], own[axis + 1]), *own[axis + 2 :]])


@onnx_op("SequenceMap", since=17, structures=True)
def sequence_map(
    b: Builder, node: Node, sequence: Held, *more: Held, body: onnx.GraphProto
) -> tuple[Any, ...]:
    """Import SequenceMap: its body once per element; other sequences have the same length, tensors
    repeat.
    """
    given = (sequence, *more)
    if len(body.input) != len(given):
        raise ModelError(f"the body expected {len(body.input)} inputs, got {len(given)}")
    count = len(_items(sequence))
    for i, v in enumerate(given):
        if isinstance(v, TensorList) and len(v.items) != count:
            raise ModelError(f"input {i} expected {count} elements, got {len(v.items)}")
    rows = []
    for i in range(count):
        row = [v.items[i] if isinstance(v, TensorList) else v for v in given]
        rows.append(node.inline(body, row))
        if has_failed(rows[-1]):
            return node.failed()
    return tuple(TensorList(tuple(row[i] for row in rows)) for i in range(len(body.output)))


@onnx_op("Identity", since=14, structures=True)
def identity(b: Builder, node: Node, x: Held) -> Outputs:
    """Import Identity of tensors, sequences and optionals."""
    return x if isinstance(x, HostValue) else b.identity(x)


def _items(value: Held) -> tuple[Value, ...]:
    if isinstance(value, TensorList):
        return value.items
    raise ModelError(f"expected a sequence, got {describe(form_of(value))}")


def _list(b: Builder, items: Sequence[Value]) -> TensorList:
    """Return a sequence; ModelError if its elements differ in element type."""
    kinds = {b.dtype(v).name for v in items}
    if len(kinds) > 1:
        raise ModelError(f"expected elements of one type, got {' and '.join(sorted(kinds))}")
    return TensorList(tuple(items))


def _place(at: int, count: int, last: int) -> int:
    """Return a known position counted from the front, in a sequence of `count`; `last` is the
    largest.
    """
    if not -count <= at <= last:
        raise ModelError(f"position {at} is outside of a sequence of {count}")
    return at + count if at < 0 else at


def _from_front(
    b: Builder, position: Value, count: int, items: Sequence[Value], what: str
) -> Value:
    """Return a run-time position as 0-d i64 from the front; all elements must have one type."""
    types = {b.type(v) for v in items}
    if len(types) > 1 or DYN in b.dims(items[0]):
        raise NotSupported(f"'{what}' is computed at run time, the elements differ in their dims")
    return _place_in(b, position, count, count + (len(items) > count))


def _place_in(b: Builder, position: Value, count: int, below: int | None = None) -> Value:
    """Return a run-time position as 0-d i64 from the front; it is below `below` or count."""
    at = within(b, single(b, position, "position"), "position", -count, below or count)
    at = reshape(b, convert(b, at, INT64), [])
    return b.where(compare(b, "less", at, 0), b.add(at, count), at)


# ---- optionals ---------------------------------------------------------------------------------


@onnx_op("Optional", since=15, structures=True)
def optional(
    b: Builder, node: Node, x: Held | None = None, *, type: onnx.TypeProto | None = None
) -> Outputs:
    """Import Optional, of an element or empty."""
    return ABSENT if x is None else x


@onnx_op("OptionalHasElement", since=15, structures=True)
def optional_has_element(b: Builder, node: Node, x: Held | None = None) -> Value:
    """Import OptionalHasElement, which is known at import."""
    return b.literal(np.bool_(x is not None and x is not ABSENT))


@onnx_op("OptionalGetElement", since=15, structures=True)
def optional_get_element(b: Builder, node: Node, x: Held) -> Outputs:
    """Import OptionalGetElement."""
    if x is ABSENT:
        raise ModelError("there is no element in an empty optional")
    return x
