"""Lowerings of ops that cut, join, pad, flip or repeat tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import ShapeError
from mgx_mlir.core.ir import arith, ir, tensor
from mgx_mlir.core.op import Op
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.axes import axis_of, normalize_axes
from mgx_mlir.dialects.migraphx.broadcasts import BroadcastForDot, BroadcastWithDims
from mgx_mlir.dialects.migraphx.buffers import AsShape
from mgx_mlir.dialects.migraphx.movement import (
    Concat,
    FixedPad,
    Pad,
    Reverse,
    ScanSlice,
    Slice,
    Step,
)
from mgx_mlir.passes.lowering import host, symbols
from mgx_mlir.passes.lowering import index as indices
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from mgx_mlir.passes.lowering.cpu.nest import copies
from mgx_mlir.passes.lowering.expr import Expr, Extent, Leaf, Splat, View, broadcast_map
from mgx_mlir.passes.lowering.gpu import plain_concat
from mgx_mlir.passes.lowering.iree.linalg_ext import whole
from mgx_mlir.passes.lowering.registry import lowers
from mgx_mlir.passes.lowering.scalar import Number, constant
from mgx_mlir.passes.lowering.views import reshape_tensor

# ---- parts of tensors ----------------------------------------------------------------------------


def extract_slice(
    e: LoweringContext,
    x: ir.Value,
    offsets: Sequence[Extent],
    sizes: Sequence[Extent],
    strides: Sequence[int] | None = None,
) -> ir.Value:
    """tensor.extract_slice; the caller keeps it inside of `x`."""
    kind = ir.RankedTensorType(x.type)
    result = ir.RankedTensorType.get(e.static_dims(sizes), kind.element_type)
    if 0 in sizes:
        # an offset at the end is invalid, even for an empty slice
        return tensor.EmptyOp(list(sizes), kind.element_type).result
    whole = result == kind and kind.has_static_shape  # two `?` may differ
    if whole and all(isinstance(o, int) and o == 0 for o in offsets) and not strides:
        return x
    steps = list(strides or [1] * kind.rank)
    return tensor.ExtractSliceOp(
        result,
        x,
        e.dynamic_values(offsets),
        e.dynamic_values(sizes),
        [],
        e.static_dims(offsets),
        e.static_dims(sizes),
        steps,
    ).result


def insert_slice(
    e: LoweringContext,
    x: ir.Value,
    into: ir.Value,
    offsets: Sequence[Extent],
    sizes: Sequence[Extent],
) -> ir.Value:
    """tensor.insert_slice with unit strides."""
    return tensor.InsertSliceOp(
        x,
        into,
        e.dynamic_values(offsets),
        e.dynamic_values(sizes),
        [],
        e.static_dims(offsets),
        e.static_dims(sizes),
        [1] * len(offsets),
    ).result


def _bounds(
    e: LoweringContext, start: Extent, end: Extent, extent: Extent
) -> tuple[Extent, Extent]:
    """Offset and size of a slice: negative bounds count from the end, all are clamped."""
    low = _bound(e, start, extent)
    high = _bound(e, end, extent)
    return low, e.max(e.sub(high, low), 0)


def _bound(e: LoweringContext, x: Extent, extent: Extent) -> Extent:
    if isinstance(x, int):
        if isinstance(extent, int):
            return min(max(x + extent if x < 0 else x, 0), extent)
        if x < 0:
            return e.max(e.add(extent, max(x, -(2**62))), 0)
        return e.min(extent, min(x, 2**62)) if x else 0
    # clamped to both ends first, so that adding the extent cannot overflow
    negated = e.sub(0, extent)
    inside = e.index(indices.clamp(e, x, negated, extent))
    return indices.wrap(e, inside, extent, dtypes.INT64)


@lowers(Slice)
def slice_(
    op: Slice,
    ins: tuple[ir.Value, ir.Value | None, ir.Value | None, ir.Value | None],
    e: LoweringContext,
) -> ir.Value:
    """Attributes, run-time operands, or both."""
    own = e.extents(ins[0])
    offsets, sizes = slice_bounds(e, op, own)
    if _is_dynamic_row(e, own, sizes):
        return _row(e, ins[0], offsets[0], sizes)
    return extract_slice(e, ins[0], offsets, sizes)


def _is_dynamic_row(e: LoweringContext, own: Sequence[Extent], sizes: Sequence[Extent]) -> bool:
    """Return whether a slice is one whole row of dynamic length, on a GPU (hazard 51)."""
    rest = list(zip(own[1:], sizes[1:], strict=True))
    return (
        e.options.target == "gpu" and bool(rest) and sizes[0] == 1
        and own[0] != 1 and all(a is b or a == b for a, b in rest)
        and not all(isinstance(a, int) for a, _ in rest)
    )  # fmt: skip


def _row(e: LoweringContext, x: ir.Value, at: Extent, sizes: Sequence[Extent]) -> ir.Value:
    """Return a row as a slice of the flat tensor."""
    t = TensorType.of(x)
    length: Extent = 1
    for n in sizes[1:]:
        length = e.mul(length, n)
    whole = e.mul(e.extents(x)[0], length)
    flat = reshape_tensor(e, x, t.with_dims(e.static_dims([whole])), [whole])
    row = extract_slice(e, flat, [e.mul(at, length)], [length])
    return reshape_tensor(e, row, t.with_dims(e.static_dims(sizes)), list(sizes))


def slice_bounds(
    e: LoweringContext, op: Slice, own: Sequence[Extent]
) -> tuple[list[Extent], list[Extent]]:
    """Return offsets and sizes of a slice of a tensor of these extents."""
    starts = list(op.starts) if op.input_starts is None else host.extents_of(e, op.input_starts)
    ends = list(op.ends) if op.input_ends is None else host.extents_of(e, op.input_ends)
    if op.input_axes is not None:
        axes = host.extents_of(e, op.input_axes)
        if not all(isinstance(a, int) for a in axes):
            return _bounds_of_any_axes(e, own, axes, starts, ends)
        axes = [int(a) for a in axes]  # type: ignore[arg-type]
    else:
        axes = list(op.axes)
    offsets: list[Extent] = [0] * len(own)
    sizes = list(own)
    for axis, start, end in zip(normalize_axes(axes, len(own)), starts, ends, strict=True):
        offsets[axis], sizes[axis] = _bounds(e, start, end, own[axis])
    return offsets, sizes


def _bounds_of_any_axes(
    e: LoweringContext,
    own: Sequence[Extent],
    axes: Sequence[Extent],
    starts: Sequence[Extent],
    ends: Sequence[Extent],
) -> tuple[list[Extent], list[Extent]]:
    """Return offsets and sizes along dynamic axes: each dim is searched among them."""
    offsets: list[Extent] = [0] * len(own)
    sizes = list(own)
    for dim, extent in enumerate(own):
        for axis, start, end in zip(axes, starts, ends, strict=True):
            low, size = _bounds(e, start, end, extent)
            mine = arith.OrIOp(
                indices.compare(e, indices.EQ, axis, dim),
                indices.compare(e, indices.EQ, axis, dim - len(own)),
            ).result
            offsets[dim] = indices.select(e, mine, low, offsets[dim])
            sizes[dim] = indices.select(e, mine, size, sizes[dim])
    return offsets, sizes


@lowers(Step)
def step(op: Step, ins: tuple[ir.Value], e: LoweringContext) -> ir.Value:
    """Return a strided extract_slice."""
    x = ins[0]
    sizes = e.extents(x)
    strides = [1] * len(sizes)
    for axis, s in zip(normalize_axes(op.axes, len(sizes)), op.steps, strict=True):
        sizes[axis] = indices.ceil_div(e, sizes[axis], s)
        # one element needs no stride, and some passes refuse a stride beyond the extent
        strides[axis] = 1 if sizes[axis] == 1 else s
    return extract_slice(e, x, [0] * len(sizes), sizes, strides)


@lowers(ScanSlice)
def scan_slice(op: ScanSlice, ins: tuple[ir.Value, ir.Value], e: LoweringContext) -> ir.Value:
    """Return a slice of one element at a run-time position, clamped to the axis."""
    x = ins[0]
    sizes = e.extents(x)
    axis = axis_of(op.axis, len(sizes))
    last = indices.last_of(e, sizes[axis])
    at = indices.clamp(e, one_index(e, op.index), 0, last)
    if op.direction:
        at = e.sub(last, at)
    offsets: list[Extent] = [0] * len(sizes)
    offsets[axis], sizes[axis] = at, 1
    return extract_slice(e, x, offsets, sizes)


def one_index(e: LoweringContext, v: ir.Value) -> Extent:
    """Return the one element of an integer operand, an int where it is known."""
    followed = e.elements(v)
    if followed is not None:
        return host.extents_of(e, v)[0]
    t = TensorType.of(v)
    value = indices.read(e.tensor(v), [e.index(0)] * t.rank)
    return indices.to_index(value, t.dtype)


# ---- joining -------------------------------------------------------------------------------------


def concat_extents(
    e: LoweringContext, op: Concat, parts: Sequence[Sequence[Extent]]
) -> tuple[list[Extent], list[Extent]]:
    """Return the extents of a concatenation of parts of these extents, and where each begins."""
    out = TensorType.of(op.out)
    axis = axis_of(op.axis, out.rank)
    extents = list(parts[0])
    for have in parts[1:]:
        extents = [a if isinstance(a, int) else b for a, b in zip(extents, have, strict=True)]
    total: Extent = 0
    offsets: list[Extent] = []
    for have in parts:
        offsets.append(total)
        total = e.add(total, have[axis])
    extents[axis] = total
    if out.dims[axis] != DYN:
        e.sizes.equal(total, out.dims[axis])
        extents[axis] = out.dims[axis]
    return extents, offsets


@lowers(Concat)
def concat(op: Concat, ins: tuple[list[ir.Value]], e: LoweringContext) -> ir.Value:
    """Return a chain of insert_slice: tensor.concat is several times slower."""
    out = TensorType.of(op.out)
    axis = axis_of(op.axis, out.rank)
    parts = [(x, e.extents(x)) for x in ins[0]]
    extents, offsets = concat_extents(e, op, [have for _, have in parts])
    if len(parts) == 1 and 0 not in parts[0][1]:
        return parts[0][0]
    if plain_concat.takes(e, op, ins[0]):
        return plain_concat.concat(e, op, ins[0])
    result = e.empty(extents, out.dtype)
    for (x, have), offset in zip(parts, offsets, strict=True):
        where: list[Extent] = [0] * out.rank
        where[axis] = offset
        sizes = list(extents)
        sizes[axis] = have[axis]
        if 0 in sizes:  # another part may make the result empty
            continue
        cast = e.refine(x, TensorType(out.dtype, tuple(e.static_dims(sizes))))
        result = insert_slice(e, cast, result, where, sizes)
    return result


# ---- padding -------------------------------------------------------------------------------------


def pad_constant(
    e: LoweringContext,
    x: ir.Value,
    t: TensorType,
    low: Sequence[int],
    high: Sequence[Extent],
    number: Number,
) -> ir.Value:
    """tensor.pad with one value."""
    if not any(low) and all(isinstance(h, int) and h == 0 for h in high):
        return x
    own = e.extents(x)
    sizes = [e.add(e.add(d, a), b) for d, a, b in zip(own, low, high, strict=True)]
    if 0 in own:
        return e.fill(sizes, t.dtype, number)
    result = ir.RankedTensorType.get(e.static_dims(sizes), ir.RankedTensorType(x.type).element_type)
    value = constant(number, t.dtype).value
    if e.in_kernel:
        return _pad_in_kernel(e, x, t, low, own, sizes, value)
    op = tensor.PadOp(result, x, [], e.dynamic_values(high), list(low), e.static_dims(high))
    index = ir.IndexType.get()
    block = op.regions[0].blocks.append(*[index] * t.rank, arg_locs=None)
    with ir.InsertionPoint(block):
        tensor.YieldOp(value)
    return op.result


def _pad_in_kernel(
    e: LoweringContext,
    x: ir.Value,
    t: TensorType,
    low: Sequence[int],
    own: Sequence[Extent],
    sizes: Sequence[Extent],
    value: ir.Value,
) -> ir.Value:
    """Make a choice by position: IREE has no code for a tensor.pad that ends a kernel."""

    def body(where: list[ir.Value]) -> ir.Value:
        source: list[ir.Value] = []
        inside = indices.true()
        for i, at in enumerate(where):
            inner = e.index(e.sub(at, low[i]))
            if sizes[i] is not own[i]:
                inside = arith.AndIOp(inside, indices.in_range(e, inner, own[i])).result
            source.append(e.index(indices.clamp(e, inner, 0, indices.last_of(e, own[i]))))
        return arith.SelectOp(inside, indices.read_safely(e, x, source, own), value).result

    return indices.from_positions(e, sizes, t.dtype, body)


@lowers(Pad)
def pad(op: Pad, ins: tuple[ir.Value], e: LoweringContext) -> ir.Value:
    """Constant pads are tensor.pad; reflections and edges read from computed positions."""
    x, t = ins[0], TensorType.of(op.input)
    low, high = list(op.pads[: t.rank]), list(op.pads[t.rank :])
    if op.mode == "constant":
        number = op.value if t.dtype.is_float else int(op.value)
        return pad_constant(e, x, t, low, high, number)
    if not any(low) and not any(high):
        return x
    own = e.extents(x)
    sizes = [e.add(d, a + b) for d, a, b in zip(own, low, high, strict=True)]
    if 0 in sizes:
        return e.empty(sizes, t.dtype)

    def body(where: list[ir.Value]) -> ir.Value:
        source: list[ir.Value] = []
        for i, at in enumerate(where):
            if low[i] == 0 and high[i] == 0:
                source.append(at)
                continue
            inner = e.sub(at, low[i])
            last = indices.last_of(e, own[i])
            if op.mode == "reflect":
                inner = indices.mirrored(e, inner, last)
            source.append(e.index(indices.clamp(e, inner, 0, last)))
        return indices.read_safely(e, x, source, own)

    return indices.from_positions(e, sizes, t.dtype, body)


@lowers(FixedPad)
def fixed_pad(op: FixedPad, ins: tuple[ir.Value], e: LoweringContext) -> ir.Value:
    """Zeros at the ends up to the static dims."""
    x, t = ins[0], TensorType.of(op.input)
    high = [e.sub(m, d) for m, d in zip(op.max_dims, e.extents(x), strict=True)]
    for h in high:
        e.sizes.at_most(0, h)
    padded = pad_constant(e, x, t, [0] * t.rank, high, 0)
    return e.refine(padded, TensorType.of(op.out))


# ---- other orders --------------------------------------------------------------------------------


@lowers(Reverse)
def reverse(op: Reverse, ins: tuple[ir.Value], e: LoweringContext) -> ir.Value:
    """Read each flipped axis from its end."""
    t = TensorType.of(op.input)
    return flip(e, ins[0], t.dtype, set(normalize_axes(op.axes, t.rank)))


def flip(e: LoweringContext, x: ir.Value, dtype: DType, axes: set[int]) -> ir.Value:
    """`x` with `axes` in the other direction."""
    own = e.extents(x)
    if 0 in own or all(isinstance(own[a], int) and own[a] == 1 for a in axes):
        return x
    x = whole(e, x)

    def body(where: list[ir.Value]) -> ir.Value:
        source = [
            e.index(e.sub(indices.last_of(e, own[i]), at)) if i in axes else at
            for i, at in enumerate(where)
        ]
        return indices.read(x, source)

    return indices.from_positions(e, own, dtype, body)


# ---- run-time broadcasts -------------------------------------------------------------------------


def _run_time_broadcast(
    e: LoweringContext, op: Op, x: ir.Value, t: TensorType, out: TensorType, extents: list[Extent]
) -> Expr:
    """Build a right-aligned broadcast whose dynamic extents are 1 or the result's at run time."""
    shift = out.rank - t.rank
    have = e.extents(x)
    kind = TensorType(t.dtype, tuple(e.static_dims(have)))
    own = e.sizes.of_tensor(x)
    unsure = [
        i
        for i, d in enumerate(have)
        if not isinstance(d, int) and own[i] != e.sizes.of(extents[i + shift])
    ]
    for i, d in enumerate(own):
        e.sizes.equal(d, extents[i + shift], one=True)
    result = TensorType(out.dtype, tuple(e.static_dims(extents)))
    if not unsure:
        entries = broadcast_map(kind, result)
        return View(result, Leaf(kind, x), entries, list(extents))

    isa = isa_of(e.options.arch) if e.has_vector_kernels(op.operation) else None
    if isa is not None:
        ones = [isinstance(d, int) and d == 1 for d in have]
        wanted = [1 if one else extents[i + shift] for i, one in enumerate(ones)]
        made = copies.broadcast(e, x, t.dtype, wanted, unsure, isa)
        if made is not None and not shift and wanted == list(extents):
            return Leaf(result, made)
        if made is not None:
            kind = TensorType(t.dtype, tuple(e.static_dims(wanted)))
            return View(result, Leaf(kind, made), broadcast_map(kind, result), list(extents))

    def body(where: list[ir.Value]) -> ir.Value:
        source: list[ir.Value] = []
        for i, d in enumerate(have):
            at = where[i + shift]
            if i in unsure:
                at = indices.select(e, indices.compare(e, indices.EQ, d, 1), 0, at)
            elif isinstance(d, int) and d == 1:
                at = e.index(0)
            source.append(at)
        return indices.read(x, source)

    return Leaf(result, indices.from_positions(e, extents, t.dtype, body))


def _joined(e: LoweringContext, a: Extent, b: Extent, stated: int) -> Extent:
    """Return the extent that two broadcast to: the other one where one of them is 1."""
    known = e.sizes.joined(a, b)
    joined: Extent
    if known is not None:
        joined = a if known else b
    else:
        joined = indices.select(e, indices.compare(e, indices.EQ, a, 1), b, a)
    if stated == DYN:
        return joined
    e.sizes.equal(joined, stated)
    return stated


@lowers(BroadcastWithDims, lazy=True)
def broadcast_with_dims(op: BroadcastWithDims, ins: tuple[Expr, Expr], e: LoweringContext) -> Expr:
    """Both the input's extents and the wanted ones may be 1 at run time."""
    x, t, out = ins[0], TensorType.of(op.input), TensorType.of(op.out)
    own = e.expr_extents(x)
    wanted = host.extents_of(e, op.dims)
    full = [1] * (out.rank - len(own)) + own
    asked = [1] * (out.rank - len(wanted)) + wanted
    for d in e.dynamic_values(wanted):
        e.sizes.at_most(0, d)
    extents = [_joined(e, a, b, s) for a, b, s in zip(full, asked, out.dims, strict=True)]
    if isinstance(x, Splat):
        return Splat(TensorType(out.dtype, tuple(e.static_dims(extents))), x.number, extents)
    return _run_time_broadcast(e, op, e.tensor(x), t, out, extents)


@lowers(BroadcastForDot)
def broadcast_for_dot(
    op: BroadcastForDot, ins: tuple[ir.Value, ir.Value], e: LoweringContext
) -> Expr:
    """Return the batch axes of one matrix operand as those of the other."""
    x, t, out = ins[0], TensorType.of(op.input), TensorType.of(op.out)
    own, other = e.extents(x), e.extents(ins[1])[:-2]
    batch = out.rank - 2
    full = [1] * (batch + 2 - len(own)) + own
    asked = [1] * (batch - len(other)) + other
    extents = [
        _joined(e, a, b, s) for a, b, s in zip(full[:batch], asked, out.dims[:batch], strict=True)
    ]
    return _run_time_broadcast(e, op, x, t, out, [*extents, *own[-2:]])


@lowers(AsShape)
def as_shape(op: AsShape, ins: tuple[ir.Value], e: LoweringContext) -> ir.Value:
    """Reshape a tensor; at most one extent of the shape may be dynamic."""
    x, out = ins[0], TensorType.of(op.out)
    unknown = [i for i, d in enumerate(out.dims) if d == DYN]
    if len(unknown) > 1:
        raise ShapeError("shape expected at most one dynamic extent")
    extents: list[Extent] = list(out.dims)
    if unknown:
        rest = prod(d for d in out.dims if d != DYN)
        extents[unknown[0]] = e.div(e.product(e.extents(x)), rest)
    e.sizes.equal(symbols.product(e.sizes.of_tensor(x)), symbols.product(map(e.sizes.of, extents)))
    return reshape_tensor(e, x, out, extents)
