"""Control flow: Loop and Scan. Their graphs become regions; captures are built outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx

from mgx_mlir.core.dtypes import BOOL, INT64
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, is_a
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.views import Identity
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.extents import extents, spread
from mgx_mlir.frontends.helpers import (
    axis_in,
    compare,
    concat,
    convert,
    require,
    reshape,
    transpose,
    unsqueeze,
    zeros,
)
from mgx_mlir.frontends.onnx.appended import appended, without
from mgx_mlir.frontends.onnx.counters import counters
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.onnx.structures import (
    TENSOR,
    DynamicList,
    Joined,
    TensorList,
    Texts,
    build,
    describe,
    form_of,
    tensors,
)
from mgx_mlir.frontends.onnx.texts import numbered, tensor_of
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Held, HostValue, Value, has_failed
from mgx_mlir.programs.build import Builder

_MOST = 1 << 20  # most iterations of a loop whose results have one row for each
_UNROLLED = 1 << 15  # most nodes of an unrolled loop
_TRIES = 16  # each retry makes more of the carried dims dynamic
_FLAGS = (TensorType(INT64, ()), TensorType(BOOL, ()))  # the iteration number, the condition


# ---- Loop ----------------------------------------------------------------------------------------


@onnx_op("Loop", since=1, structures=True)
def loop(
    b: Builder,
    node: Node,
    trips: Value | None = None,
    cond: Value | None = None,
    *carried: Held,
    body: onnx.GraphProto,
) -> tuple[Any, ...]:
    """Import Loop. A loop that carries sequences is unrolled if possible, because they may grow
    with each iteration. Otherwise they have the same length in each.
    """
    if len(body.input) != len(carried) + 2:
        raise ModelError(
            f"the body expected {len(carried) + 2} inputs, got {len(body.input)}"
        )  # fmt: skip
    if trips is None and cond is None:
        raise ModelError("neither a number of iterations nor a condition: the loop never ends")
    if any(v is None for v in carried):
        raise NotSupported("a carried value that is absent")
    if not node.settle(body):
        return node.failed()
    count = b.literal(np.int64(2**63 - 1)) if trips is None else convert(b, trips, INT64)
    going = b.literal(np.bool_(True)) if cond is None else cond
    conditional = cond is not None
    if conditional and (counted := _counted(b, node, body, carried, count)) is not None:
        count, conditional = counted, False  # the body's own condition adds nothing
    flags = [
        TensorType(t, (1,) * _rank(v)) for t, v in zip((INT64, BOOL), body.input, strict=False)
    ]

    table = node.importer.text_table
    kept, strings = numbered(b, carried, table)
    forms = [form_of(v) for v in kept]
    scanned: set[int] = set()
    listed = any(form != TENSOR for form in forms)
    if listed and (known := _known_trips(b, count, going)) * len(body.node) <= _UNROLLED:
        return _unrolled(b, node, known, conditional, carried, body, flags)
    lists = [i for i, v in enumerate(carried) if isinstance(v, TensorList)]
    if grown := appended(body, lists):
        return _stacked(b, node, trips, cond, carried, body, grown, (count, going, flags))

    def inside(arguments: Sequence[ir.Value]) -> list[Any]:
        number, again, *rest = arguments
        held = [
            Texts(tensor_of(v), table) if i in strings else v
            for i, v in enumerate(build(forms, rest))
        ]
        found = node.inline(body, [number, again, *held])
        if has_failed(found):
            return found
        found, made = numbered(b, found, table)
        states = {i - 1 for i in made if i <= len(forms)}
        if states != strings:
            wrong = min(states ^ strings)
            raise ModelError(f"carried value {wrong} is strings before or after the body, not both")
        scanned.update(i - 1 for i in made if i > len(forms))
        if not conditional:
            found[0] = again  # without a condition input, the body's own is ignored
        for i, (form, v) in enumerate(zip(forms, found[1:], strict=False)):
            if form_of(v) != form:
                raise NotSupported(
                    f"carried value {i} that is {describe(form)}, then {describe(form_of(v))}: "
                    f"{_WHY_NOT}"
                )
        return tensors(found)

    found = counted_loop(b, node, count, going, tensors(kept), inside, flags)
    if found is None:
        return node.failed()
    scans = len(body.output) - 1 - len(forms)
    made = build([*forms, *[TENSOR] * scans], found)
    return tuple(
        Texts(tensor_of(v), table) if i in strings | scanned else v for i, v in enumerate(made)
    )


def _counted(
    b: Builder, node: Node, body: onnx.GraphProto, carried: Sequence[Held], count: Value
) -> Value | None:
    """Return the number of iterations of a started loop whose condition depends only on
    counters.
    """

    def whole(v: Held) -> Value | None:
        if not isinstance(v, ir.Value):
            return None
        t = TensorType.of(v)
        if t.dtype.is_float or t.dtype.is_bool or t.elements != 1:
            return None
        return b.reshape(convert(b, v, INT64), dims=list(b.dims(count)))

    def known(name: str) -> int | None:
        v = whole(node.value(name))
        found = None if v is None else b.const(v)
        return None if found is None else int(found.reshape(-1)[0])

    for c in (found := counters(body, known)) or ():
        if isinstance(c.bound, str):
            bound = whole(node.value(c.bound))
        elif c.bound_is_state:
            bound = whole(carried[c.bound])
        else:
            bound = b.literal(np.full(b.dims(count), c.bound, np.int64))
        start = None if c.state is None else whole(carried[c.state])
        if bound is None or (start is None) != (c.state is None):
            return None
        left = bound if start is None else b.sub(bound, start)
        # one iteration, and one more for each later number below the bound
        more = b.max(b.add(left, int(c.inclusive) - c.first), 0)
        count = b.min(count, b.add(more, 1))
    return count if found else None


def _stacked(
    b: Builder,
    node: Node,
    trips: Value | None,
    cond: Value | None,
    carried: Sequence[Held],
    body: onnx.GraphProto,
    grown: dict[int, str],
    driven: tuple[Value, Value, Sequence[TensorType]],
) -> tuple[Any, ...]:
    """Return a loop that appends to lists: appended values are stacked as scan outputs.

    If lists are only concatenated later, and appended values have a dynamic extent along that axis,
    the loop concatenates.
    """
    kept = [v for i, v in enumerate(carried) if i not in grown]
    mark = b.remembered()
    found = loop(b, node, trips, cond, *kept, body=without(body, grown))
    if has_failed(found):
        return found
    axes = [_ragged(node, i, v) for i, v in zip(grown, found[-len(grown) :], strict=True)]
    joined = {i: a for i, a in zip(grown, axes, strict=True) if a is not None}
    if len(joined) == len(grown) and all(form_of(v) == TENSOR for v in kept):
        kinds = [TensorType.of(v) for v in found[-len(grown) :]]
        found[-1].owner.erase()
        b.forget(mark)  # drop facts about erased values: new values may reuse their addresses
        return _joining(b, node, carried, without(body, grown), joined, kinds, driven,
                         conditional=cond is not None)  # fmt: skip
    states, scans = list(found[: len(kept)]), list(found[len(kept) : len(found) - len(grown)])
    stacks = list(found[len(found) - len(grown) :])
    out: list[Held] = []
    for i, v in enumerate(carried):
        if i not in grown:
            out.append(states.pop(0))
            continue
        rows = [unsqueeze(b, x, [0]) for x in v.items] if isinstance(v, TensorList) else []
        out.append(DynamicList(concat(b, [*rows, stacks.pop(0)], 0)))
    return (*out, *scans)


def _ragged(node: Node, output: int, stack: Value) -> int | None:
    """Return the axis that a list is concatenated along, if its elements' extents may differ
    there.
    """
    axis, dims = node.joined_along(output), TensorType.of(stack).dims[1:]
    if axis is None or not -len(dims) <= axis < len(dims):
        return None
    return axis % len(dims) if dims[axis] == DYN else None


def _joining(
    b: Builder,
    node: Node,
    carried: Sequence[Any],
    body: onnx.GraphProto,
    lists: dict[int, int],
    stacks: Sequence[TensorType],
    driven: tuple[Value, Value, Sequence[TensorType]],
    *,
    conditional: bool,
) -> tuple[Any, ...]:
    """Return a loop that concatenates the values appended to lists, each along its axis.

    `stacks` are the types of the appended values of all iterations.
    """
    count, going, flags = driven
    kept = [v for i, v in enumerate(carried) if i not in lists]
    starts: list[Value] = []
    for (i, axis), t in zip(lists.items(), stacks, strict=True):
        dims = [1 if d == DYN else d for d in t.dims[1:]]
        dims[axis] = 0
        items = carried[i].items
        starts.append(concat(b, items, axis) if items else zeros(b, dims, t.dtype))

    def inside(arguments: Sequence[ir.Value]) -> list[Any]:
        number, again, *rest = arguments
        found = node.inline(body, [number, again, *rest[: len(kept)]])
        if has_failed(found):
            return found
        if not conditional:
            found[0] = again
        longer: list[Value] = []
        elements = tensors(found[len(found) - len(lists) :])
        for axis, before, v in zip(lists.values(), rest[len(kept) :], elements, strict=True):
            dims = extents(b, v)
            dims[axis] = extents(b, before)[axis]
            longer.append(concat(b, [spread(b, before, dims), v], axis))
        states, scans = found[: 1 + len(kept)], found[1 + len(kept) : len(found) - len(lists)]
        return [*states, *longer, *scans]

    found = counted_loop(b, node, count, going, [*kept, *starts], inside, flags)
    if found is None:
        return node.failed()
    states, scans = iter(found[: len(kept)]), found[len(kept) + len(lists) :]
    joined = iter(found[len(kept) : len(kept) + len(lists)])
    out = [
        Joined(next(joined), lists[i]) if i in lists else next(states) for i in range(len(carried))
    ]
    return (*out, *scans)


_WHY_NOT = "the number of iterations is known at run time only, or large"


def _known_trips(b: Builder, count: Value, going: Value) -> int:
    """Return the most iterations of a loop if known, and whether it starts; else more than the
    limit.
    """
    known, start = b.const(count), b.const(going)
    if known is None or start is None:
        return _UNROLLED + 1
    return max(int(known.reshape(-1)[0]), 0) if start.all() else 0


def _unrolled(
    b: Builder,
    node: Node,
    trips: int,
    conditional: bool,
    carried: Sequence[Any],
    body: onnx.GraphProto,
    flags: Sequence[TensorType],
) -> tuple[Any, ...]:
    """Return the body unrolled; its condition must be known in each iteration."""
    held, rows = list(carried), []
    limits.filled(flags[1].dims)
    going = b.literal(np.ones(flags[1].dims, bool))
    for i in range(trips):
        number = b.literal(np.full(flags[0].dims, i, np.int64))
        found = node.inline(body, [number, going, *held])
        if has_failed(found):
            return node.failed()
        if len(found) < 1 + len(held):
            raise ModelError(f"the body expected {1 + len(held)} outputs or more, got {len(found)}")
        held = found[1 : 1 + len(held)]
        rows.append(found[1 + len(held) :])
        if not conditional:
            continue
        again = b.const(found[0]) if isinstance(found[0], Value) else None
        if again is None:
            raise NotSupported("carried sequences and a condition that is known at run time only")
        if not again.all():
            break
        going = found[0]
    scans = []
    for i in range(len(body.output) - 1 - len(held)):
        if not rows:
            raise NotSupported("carried sequences and scan outputs of no iteration")
        if any(isinstance(row[i], HostValue) for row in rows):
            raise ModelError(f"scan output {i} expected a tensor")
        parts = [unsqueeze(b, row[i], [0]) for row in rows]
        scans.append(node.mark(b.concat(parts, axis=0), node.kind(rows[0][i])))
    return (*held, *scans)


def _rank(info: onnx.ValueInfoProto) -> int:
    """Return the rank that a body's input states, among those that an iteration number may have."""
    t = info.type.tensor_type
    return 1 if t.HasField("shape") and len(t.shape.dim) == 1 else 0


def _of_ranks(b: Builder, types: Sequence[TensorType], made: Sequence[Value]) -> list[Value]:
    """Return the body's results with the carried values' ranks; one element keeps its first
    rank.
    """
    return [
        reshape(b, v, t.dims) if set(t.dims) | set(b.dims(v)) <= {1} else v
        for t, v in zip(types, made, strict=False)
    ]


def counted_loop(
    b: Builder,
    node: Node,
    count: Value,
    going: Value,
    carried: list[Value],
    inside: Callable[[Sequence[ir.Value]], list[Any]],
    flags: Sequence[TensorType],
    directions: Sequence[int] = (),
) -> list[ir.Value] | None:
    """Return a `loop` whose body `inside(arguments)` builds: [condition, carried.., scan
    elements..].

    Carried values whose dims change between iterations get dynamic dims, and the body is built
    again. None if the body has failed.
    """
    types = [TensorType.of(v) for v in carried]
    mark = b.remembered()
    for _ in range(_TRIES):
        draft = OPS["loop"](count, going, carried, results=[]).operation
        kinds = [t.mlir() for t in (*flags, *types)]
        block = draft.regions[0].blocks.append(*kinds, arg_locs=None)
        with ir.InsertionPoint(block):
            yields = inside(list(block.arguments))
            if has_failed(yields):
                draft.erase()
                return None
            if len(yields) < 1 + len(types):
                draft.erase()
                raise ModelError(
                    f"the body expected {1 + len(types)} outputs or more, got {len(yields)}"
                )
            yields = [yields[0], *_of_ranks(b, types, yields[1:]), *yields[1 + len(types) :]]
            OPS["yield"](yields)
        wider = []
        for i, (t, v) in enumerate(zip(types, yields[1:], strict=False)):
            have = TensorType.of(v)
            if have.dtype is not t.dtype or have.rank != t.rank:
                draft.erase()
                if have.dtype is t.dtype:
                    raise NotSupported(f"carried value {i} whose rank changes: {t}, then {have}")
                raise ModelError(f"carried value {i} is {t}, the body returns {have}")
            wider.append(
                t.with_dims(
                    DYN if x != y and x != DYN else x
                    for x, y in zip(t.dims, have.dims, strict=True)
                )
            )
        if wider == types:
            break
        draft.erase()
        b.forget(mark)
        types = wider
    rows, padded = _iterations(b, count, going, yields[0], block.arguments[1])
    scans = [TensorType.of(v) for v in yields[1 + len(types) :]]
    made = OPS["loop"](
        count,
        going,
        carried,
        results=[*types, *(t.with_dims((rows, *t.dims)) for t in scans)],
        max_iterations=rows if padded else 1,
        padded=padded,
        scan_output_directions=list(directions) if scans else [],
    ).operation
    block.append_to(made.regions[0])
    draft.erase()
    return list(made.results)


def _iterations(
    b: Builder, count: Value, going: Value, again: Value, argument: Value
) -> tuple[int, bool]:
    """Return the number of iterations, and True; DYN and False if it is dynamic."""
    known, start = b.const(count), b.const(going)
    always = _passed_on(again) == argument or _is_true(b, again)
    if known is None or start is None or not start.all() or not always:
        return DYN, False
    n = max(int(known.reshape(-1)[0]), 0)
    return (n, True) if n <= _MOST else (DYN, False)


def _passed_on(v: Value) -> Value:
    """Return the value behind identities: bodies return their condition through one."""
    owner = v.owner
    while is_a(owner, Identity):
        v = owner.operands[0]
        owner = v.owner
    return v


def _is_true(b: Builder, v: Value) -> bool:
    known = b.const(v)
    return known is not None and bool(known.all())


# ---- Scan ----------------------------------------------------------------------------------------


@onnx_op("Scan", since=9)
def scan(
    b: Builder,
    node: Node,
    *operands: Value,
    body: onnx.GraphProto,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] | None = None,
    scan_input_directions: Sequence[int] | None = None,
    scan_output_axes: Sequence[int] | None = None,
    scan_output_directions: Sequence[int] | None = None,
) -> tuple[Any, ...]:
    """Import Scan: a loop over slices of the inputs, with the body's outputs stacked."""
    states = len(operands) - num_scan_inputs
    if num_scan_inputs < 1 or states < 0:
        raise ModelError(f"expected {num_scan_inputs} scan inputs, got {len(operands)} inputs")
    if len(body.input) != len(operands):
        raise ModelError(f"the body expected {len(operands)} inputs, got {len(body.input)}")
    outputs = len(body.output) - states
    if outputs < 0:
        raise ModelError(f"the body expected {states} outputs or more, got {len(body.output)}")
    ins, outs = (
        (scan_input_axes, scan_input_directions, num_scan_inputs, "scan_input"),
        (scan_output_axes, scan_output_directions, outputs, "scan_output"),
    )
    for axes, ways, n, what in (ins, outs):
        for given, name in ((axes, "axes"), (ways, "directions")):
            if given and len(given) != n:
                raise ModelError(f"attribute '{what}_{name}' expected {n} numbers")
    if not node.settle(body):
        return node.failed()
    sources = list(operands[states:])
    axes = [
        axis_in(a, len(b.dims(v)))
        for a, v in zip(scan_input_axes or [0] * num_scan_inputs, sources, strict=True)
    ]
    ways = list(scan_input_directions or [0] * num_scan_inputs)
    back = list(scan_output_directions or [0] * outputs)
    found = _scanned(b, node, body, operands[:states], sources, axes, ways, back)
    if found is None:
        return node.failed()
    placed = []
    for i, v in enumerate(found[states:]):
        rank = len(b.dims(v))
        axis = axis_in((scan_output_axes or [0] * outputs)[i], rank)
        order = list(range(1, rank))
        order.insert(axis, 0)
        placed.append(transpose(b, v, order))
    return (*found[:states], *placed)


def _scanned(
    b: Builder,
    node: Node,
    body: onnx.GraphProto,
    states: Sequence[Value],
    sources: Sequence[Value],
    axes: Sequence[int],
    ways: Sequence[int],
    back: Sequence[int],
) -> list[ir.Value] | None:
    """Return the last states, and the scan outputs along axis 0; None if the body has failed."""
    for v, a in zip(sources, axes, strict=True):
        if b.dims(v)[a] == 0:
            raise NotSupported("a scan over no elements")
    count = b.shape(sources[0], axes[0], axes[0] + 1)
    for v, a in zip(sources[1:], axes[1:], strict=True):
        same = compare(b, "equal", b.shape(v, a, a + 1), b.shape(sources[0], axes[0], axes[0] + 1))
        count = require(b, count, same, "scan inputs of one length")

    def inside(arguments: Sequence[ir.Value]) -> list[Any]:
        number, going, *held = arguments
        rows = [
            b.squeeze(b.scan_slice(v, number, axis=a, direction=d), axes=[a])
            for v, a, d in zip(sources, axes, ways, strict=True)
        ]
        found = node.inline(body, [*held, *rows])
        return found if has_failed(found) else [going, *found]

    going = b.literal(np.bool_(True))
    return counted_loop(b, node, count, going, list(states), inside, _FLAGS, back)


@onnx_op("Scan", since=8)
def scan_of_batch(
    b: Builder,
    node: Node,
    sequence_lens: Value | None = None,
    *operands: Value,
    body: onnx.GraphProto,
    num_scan_inputs: int,
    directions: Sequence[int] | None = None,
) -> tuple[Any, ...]:
    """Import Scan of opset 8: each entry of the batch (axis 0) is scanned separately."""
    if sequence_lens is not None:
        raise NotSupported("lengths of the sequences")
    states = len(operands) - num_scan_inputs
    if num_scan_inputs < 1 or states < 0 or len(body.input) != len(operands):
        raise ModelError(f"expected {len(body.input)} inputs of the body, got {len(operands)}")
    if not node.settle(body):
        return node.failed()
    outputs = len(body.output) - states
    count = b.shape(operands[0], 0, 1)
    for v in operands[1:]:
        same = compare(b, "equal", b.shape(v, 0, 1), b.shape(operands[0], 0, 1))
        count = require(b, count, same, "operands of one batch")

    def inside(arguments: Sequence[ir.Value]) -> list[Any]:
        number, going = arguments
        rows = [b.squeeze(b.scan_slice(v, number, axis=0), axes=[0]) for v in operands]
        ways = list(directions or [0] * num_scan_inputs)
        found = _scanned(
            b, node, body, rows[:states], rows[states:], [0] * num_scan_inputs, ways, [0] * outputs
        )
        return list(node.failed()) if found is None else [going, *found]

    found = counted_loop(b, node, count, b.literal(np.bool_(True)), [], inside, _FLAGS)
    return node.failed() if found is None else tuple(found)
