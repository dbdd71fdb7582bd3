"""Lowerings of the convolutions, and what windows have in common."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, linalg, tensor
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.linear import Convolution, ConvolutionBackwards
from mgx_mlir.dialects.migraphx.pooling import Pooling
from mgx_mlir.dialects.migraphx.quant import QuantConvolution
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import PARALLEL, REDUCTION, LoweringContext
from mgx_mlir.passes.lowering.contraction import collapsed, multiply_accumulate, pad_tensor
from mgx_mlir.passes.lowering.expr import Expr, Extent
from mgx_mlir.passes.lowering.gpu.matmul import (
    compilation_info,
    gathered_convolution,
    gemm_shape,
    image_windows,
)
from mgx_mlir.passes.lowering.gpu.matmul.stored_rows import rows_of
from mgx_mlir.passes.lowering.ops.linear import (
    accumulator,
    contract,
    rounded,
    store,
)
from mgx_mlir.passes.lowering.ops.movement import extract_slice
from mgx_mlir.passes.lowering.registry import lowers
from mgx_mlir.passes.lowering.scalar import Number


@lowers(Convolution, lazy=True)
def convolution(op: Convolution, ins: Sequence[Expr], e: LoweringContext) -> ir.Value:
    """Named linalg convolutions for the plain 2-D forms, one generic rule for all others."""
    out = TensorType.of(op.out)
    acc = accumulator(out.dtype)
    if isinstance(ins[1], gathered_convolution.WindowRows):
        return rounded(e, _gathered(e, op, ins[0], ins[1], out, acc), acc, out.dtype)
    rows = rows_of(e, ins[1])
    x, w = e.tensor(op.input), rows or e.tensor(op.weights)
    found = convolved(e, op, x, w, out, acc, by_row=rows is not None)
    return rounded(e, found, acc, out.dtype)


def _gathered(
    e: LoweringContext,
    op: Convolution,
    image: Expr,
    rows: gathered_convolution.WindowRows,
    out: TensorType,
    acc: DType,
) -> ir.Value:
    """Return the convolution as a dot of gathered windows."""
    dims = [*e.expr_extents(image)[:1], *out.dims[1:]]
    found = contract(
        e,
        gathered_convolution.windows(e, op, image, rows, dims),
        rows.value,
        dims,
        acc,
        by_row=True,
    )
    usual = [1 if d == DYN else d for d in out.dims]
    depth = rows.type.dims[-1]
    compilation_info.give_form(
        e, found, compilation_info.GATHERED_WINDOWS, "convolution of few channels",
        lambda arch: compilation_info.gathered_info(arch, rows.type.dtype, usual, depth),
    )  # fmt: skip
    return found


def convolved(
    e: LoweringContext,
    op: Convolution | QuantConvolution,
    x: ir.Value,
    w: ir.Value,
    out: TensorType,
    acc: DType,
    by_row: bool = False,
) -> ir.Value:
    """Return the convolution that `op` states of tensors of `out`'s type, accumulated in `acc`.

    by_row: the weights of channels-last images are [f, kh, kw, c].
    """
    spatial = out.rank - 2
    strides, dilations = list(op.stride), list(op.dilation)
    first = 1 if op.channels_last else 2
    kernel = _kernel(e, w, spatial, op.channels_last, by_row)
    if by_row and e.options.regions and image_windows.takes(e, op):
        size = e.extents(x)[first : first + spatial]
        border = padding_of(e, op, size, kernel)
        counts = window_counts(e, op, size, kernel, border)
        return image_windows.lower(e, op, x, w, counts, border, acc)
    x = padded_input(e, op, x, kernel)
    size = e.extents(x)[first : first + spatial]
    windows = [
        window_count(e, i, k, s, d)
        for i, k, s, d in zip(size, kernel, strides, dilations, strict=True)
    ]
    if by_row:
        x = trim_windows(e, x, first, windows, kernel, dilations)
        row = spatial == 1  # an image of height 1
        if row:
            x, w = _with_height(e, x, 1), _with_height(e, w, 1)
            windows, kernel = [1, *windows], [1, *kernel]
            strides, dilations = [1, *strides], [1, *dilations]
        own = [e.extents(x)[0], *windows, e.extents(w)[0]]
        found = linalg.conv_2d_nhwc_fhwc(
            x, w, outs=[e.fill(own, acc, 0)], strides=strides, dilations=dilations
        )
        element = TensorType.of(op.weights).dtype
        dims = [*own, *kernel, e.extents(w)[-1], *strides]  # static where the product is asked for
        compilation_info.give_matmul(
            e,
            found,
            lambda: gemm_shape.GemmShape(
                gemm_shape.CONVOLUTION, element.name, tuple(e.static_dims(dims))
            ),
        )
        return _without_height(e, found) if row else found
    return _convolve(e, x, w, windows, strides, dilations, op.group, op.channels_last, out, acc)


def _kernel(
    e: LoweringContext, w: ir.Value, spatial: int, channels_last: bool, by_row: bool
) -> Sequence[Extent]:
    """Return the extents of the window in the weights."""
    first = 1 if by_row else 0 if channels_last else 2
    return e.extents(w)[first : first + spatial]


def padded_input(
    e: LoweringContext,
    op: Convolution | QuantConvolution,
    x: ir.Value,
    kernel: Sequence[Extent],
) -> ir.Value:
    """Return the input of a convolution with its border, which its region may have been given."""
    if op.out in e.plan.padded_inputs:
        return e.plan.padded_inputs[op.out]
    first = 1 if op.channels_last else 2
    low, high = padding_of(e, op, e.extents(x)[first : first + len(kernel)], kernel)
    number = op.pad_value if isinstance(op, QuantConvolution) else 0
    return pad_spatial(e, x, low, high, first, number)


def padding_of(
    e: LoweringContext,
    op: Convolution | QuantConvolution | Pooling,
    size: Sequence[Extent],
    kernel: Sequence[Extent],
) -> tuple[list[Extent], list[Extent]]:
    """Begin and end padding per spatial axis; `same` modes are computed, at run time if need be."""
    spatial = len(size)
    if op.padding_mode == "default_":
        padding = list(op.padding)
        if len(padding) == spatial:
            padding = padding * 2
        return list(padding[:spatial]), list(padding[spatial:])
    low: list[Extent] = []
    high: list[Extent] = []
    dilation = getattr(op, "dilation", None) or getattr(op, "dilations", (1,) * spatial)
    for i, k, s, d in zip(size, kernel, op.stride, dilation, strict=True):
        if isinstance(i, int) and isinstance(k, int):
            most = max((-(-i // s) - 1) * s + (k - 1) * d + 1 - i, 0)
            total: Extent = most
            half: Extent = most // 2
        else:
            count = e.div(e.add(i, s - 1), s)
            reach = e.add(e.mul(e.sub(k, 1), d), 1)
            need = e.add(e.mul(e.sub(count, 1), s), reach)
            raw = e.sub(need, i)
            total = arith.MaxSIOp(e.index(raw), e.index(0)).result
            half = e.div(total, 2)
        rest = e.sub(total, half)
        low.append(rest if op.padding_mode == "same_lower" else half)
        high.append(half if op.padding_mode == "same_lower" else rest)
    return low, high


def pad_spatial(
    e: LoweringContext,
    x: ir.Value,
    low: Sequence[Extent],
    high: Sequence[Extent],
    first: int,
    number: Number,
) -> ir.Value:
    """`x` with constant padding on the axes from `first` on."""
    if all(isinstance(p, int) and p == 0 for p in [*low, *high]):
        return x
    kind = ir.RankedTensorType(x.type)
    lows: list[Extent] = [0] * kind.rank
    highs: list[Extent] = [0] * kind.rank
    lows[first : first + len(low)] = low
    highs[first : first + len(high)] = high
    dims = [
        d + a + b if d != DYN and isinstance(a, int) and isinstance(b, int) else DYN
        for d, a, b in zip(kind.shape, lows, highs, strict=True)
    ]
    return pad_tensor(e, x, lows, highs, dims, number)


def trim_windows(
    e: LoweringContext,
    x: ir.Value,
    first: int,
    windows: Sequence[Extent],
    kernel: Sequence[Extent],
    dilations: Sequence[int],
) -> ir.Value:
    """`x` without what a lone window of an axis does not reach.

    Loops of one iteration are folded away, and what then indexes the axis is the window's loop
    alone: IREE takes its extent from `x`, be that longer than the window.
    """
    sizes = e.extents(x)
    offsets: list[Extent] = [0] * len(sizes)
    have = list(sizes)
    for i, (n, k, d) in enumerate(zip(windows, kernel, dilations, strict=True)):
        if isinstance(n, int) and n == 1:
            sizes[first + i] = e.add(e.mul(e.sub(k, 1), d), 1)
    if sizes == have:
        return x
    return extract_slice(e, x, offsets, sizes, [1] * len(sizes))


def window_counts(
    e: LoweringContext,
    op: Convolution | QuantConvolution,
    size: Sequence[Extent],
    kernel: Sequence[Extent],
    border: tuple[Sequence[Extent], Sequence[Extent]],
) -> list[Extent]:
    """Return how many windows fit along each axis of an image with its border."""
    ends = [e.add(a, b) for a, b in zip(*border, strict=True)]
    return [
        window_count(e, e.add(i, n), k, s, d)
        for i, n, k, s, d in zip(size, ends, kernel, op.stride, op.dilation, strict=True)
    ]


def window_count(
    e: LoweringContext, size: Extent, kernel: Extent, stride: int, dilation: int
) -> Extent:
    """Return how many windows fit.

    (size - dilation * (kernel - 1) - 1) // stride + 1, at least 0.
    """
    reach = e.add(e.mul(e.sub(kernel, 1), dilation), 1)
    rest = e.sub(size, reach)
    if isinstance(rest, int):
        return max(rest // stride + 1, 0)
    # floor division, so that an input smaller than the kernel gives no window
    count = arith.FloorDivSIOp(rest, e.index(stride)).result
    return arith.MaxSIOp(arith.AddIOp(count, e.index(1)).result, e.index(0)).result


_NAMED: dict[tuple[int, bool], str] = {
    (2, False): "conv_2d_nchw_fchw",
    (2, True): "conv_2d_nhwc_hwcf",
}


def _convolve(
    e: LoweringContext,
    x: ir.Value,
    w: ir.Value,
    windows: Sequence[Extent],
    strides: list[int],
    dilations: list[int],
    group: int,
    channels_last: bool,
    out: TensorType,
    acc: DType,
) -> ir.Value:
    """Return the convolution of an already padded input."""
    spatial = len(windows)
    ew = e.extents(w)
    kernel, first = (ew[:spatial], 1) if channels_last else (ew[2:], 2)
    x = trim_windows(e, x, first, windows, kernel, dilations)
    ex = e.extents(x)
    batch = ex[0]
    outputs = ew[-1] if channels_last else ew[0]
    inputs = ex[-1] if channels_last else ex[1]
    own = [batch, *windows, outputs] if channels_last else [batch, outputs, *windows]
    if out.elements == 0:
        return e.empty(own, acc)
    wide = out.dtype.is_float
    if group == 1 and wide and (spatial, channels_last) in _NAMED:
        named = getattr(linalg, _NAMED[(spatial, channels_last)])
        return named(x, w, outs=[e.fill(own, acc, 0)], strides=strides, dilations=dilations)
    if group == 1 and wide and channels_last and spatial == 1:
        # conv_1d_nwc_wcf is some 50 times slower than the same rows as a 2-D image of height 1
        tall = linalg.conv_2d_nhwc_hwcf(
            _with_height(e, x, 1),
            _with_height(e, w, 0),
            outs=[e.fill([batch, 1, windows[0], outputs], acc, 0)],
            strides=[1, *strides],
            dilations=[1, *dilations],
        )
        return _without_height(e, tall)
    if wide and channels_last and spatial == 2 and inputs == group == outputs:
        # one filter per channel; weights are [kh, kw, 1, C]
        flat = collapsed(e, w, [ew[0], ew[1], group])
        found = linalg.depthwise_conv_2d_nhwc_hwc(
            x, flat, outs=[e.fill(own, acc, 0)], strides=strides, dilations=dilations
        )
        compilation_info.put(
            e, found, lambda arch: compilation_info.window_info(arch, own, spatial)
        )
        return found
    if wide and channels_last and e.options.target == "gpu" and inputs == group == outputs:
        return _depthwise(e, x, w, own, strides, dilations, out, acc)
    if group == 1:
        return _conv_generic(e, x, w, own, strides, dilations, channels_last, False, out, acc)
    return _conv_grouped(e, x, w, own, strides, dilations, group, channels_last, out, acc)


def _with_height(e: LoweringContext, value: ir.Value, axis: int) -> ir.Value:
    """Return a rank-3 tensor with an extent of 1 inserted before `axis`."""
    kind = ir.RankedTensorType(value.type)
    own: list[Extent] = e.extents(value)
    own.insert(axis, 1)
    first = [[0, 1], [2], [3]] if axis < 2 else [[0], [1, 2], [3]]
    return tensor.ExpandShapeOp(
        ir.RankedTensorType.get(e.static_dims(own), kind.element_type),
        value,
        first,
        e.dynamic_values(own),
        e.static_dims(own),
    ).result


def _without_height(e: LoweringContext, value: ir.Value) -> ir.Value:
    """Return the rows of an image [n, 1, w, c]."""
    kind = ir.RankedTensorType(value.type)
    images, _, *rest = kind.shape
    flat = ir.RankedTensorType.get([images, *rest], kind.element_type)
    return tensor.CollapseShapeOp(flat, value, [[0, 1], [2], [3]]).result


def _split(e: LoweringContext, value: ir.Value, axis: int, group: int, dtype: DType) -> ir.Value:
    """`axis` as two dims, the first of them `group`."""
    kind = ir.RankedTensorType(value.type)
    extents = e.extents(value)
    each = e.div(extents[axis], group)
    dims = e.static_dims([*extents[:axis], group, each, *extents[axis + 1 :]])
    own = [*extents[:axis], group, each, *extents[axis + 1 :]]
    groups = [[i] for i in range(axis)]
    groups.append([axis, axis + 1])
    groups += [[i + 1] for i in range(axis + 1, kind.rank)]
    return tensor.ExpandShapeOp(
        ir.RankedTensorType.get(dims, kind.element_type),
        value,
        groups,
        e.dynamic_values(own),
        e.static_dims(own),
    ).result


def _conv_grouped(
    e: LoweringContext,
    x: ir.Value,
    w: ir.Value,
    own: Sequence[Extent],
    strides: list[int],
    dilations: list[int],
    group: int,
    channels_last: bool,
    out: TensorType,
    acc: DType,
) -> ir.Value:
    """Channels of both sides split into [group, each]."""
    c = len(own) - 1 if channels_last else 1
    xs = _split(e, x, c, group, out.dtype)
    ws = _split(e, w, len(own) - 1 if channels_last else 0, group, out.dtype)
    outputs = own[c]
    grouped = [*own[:c], group, e.div(outputs, group), *own[c + 1 :]]
    found = _conv_generic(e, xs, ws, grouped, strides, dilations, channels_last, True, out, acc)
    each, sums = e.div(e.extents(x)[c], group), 1 + len(strides)
    compilation_info.put(
        e, found, lambda arch: compilation_info.group_info(arch, out.dtype, grouped, each, sums)
    )
    kind = ir.RankedTensorType(found.type)
    dims = e.static_dims(own)
    groups = [[i] for i in range(c)] + [[c, c + 1]] + [[i + 1] for i in range(c + 1, len(own))]
    return tensor.CollapseShapeOp(
        ir.RankedTensorType.get(dims, kind.element_type), found, groups
    ).result


def _read_places(
    windows: Sequence[ir.AffineExpr], taps: Sequence[ir.AffineExpr],
    strides: Sequence[int], dilations: Sequence[int],
) -> list[ir.AffineExpr]:  # fmt: skip
    """Return where a window's taps are: window * stride + tap * dilation, by axis."""
    return [
        a * ir.AffineConstantExpr.get(st) + b * ir.AffineConstantExpr.get(di)
        for a, b, st, di in zip(windows, taps, strides, dilations, strict=True)
    ]


def _depthwise(
    e: LoweringContext,
    x: ir.Value,
    w: ir.Value,
    own: Sequence[Extent],
    strides: list[int],
    dilations: list[int],
    out: TensorType,
    acc: DType,
) -> ir.Value:
    """out[n, s.., c] += x[n, s*stride + k*dilation .., c] * w[k.., c], of other images than those
    of two axes, in tiles of windows: as a grouped one it lies in scratch memory on GPUs."""
    spatial, rank = len(strides), len(own)
    d = [ir.AffineDimExpr.get(i) for i in range(rank + spatial)]
    s, k, c = d[1 : rank - 1], d[rank:], d[rank - 1]
    where = _read_places(s, k, strides, dilations)
    maps = [
        ir.AffineMap.get(rank + spatial, 0, [d[0], *where, c]),
        ir.AffineMap.get(rank + spatial, 0, [*k, c]),
        ir.AffineMap.get(rank + spatial, 0, d[:rank]),
    ]
    flat = collapsed(e, w, [*e.extents(w)[:spatial], own[-1]])
    iterators = [PARALLEL] * rank + [REDUCTION] * spatial
    found = multiply_accumulate(e, x, flat, e.fill(own, acc, 0), maps, iterators, out.dtype, acc)
    compilation_info.put(e, found, lambda arch: compilation_info.window_info(arch, own, spatial))
    return found


def _conv_generic(
    e: LoweringContext,
    x: ir.Value,
    w: ir.Value,
    own: Sequence[Extent],
    strides: list[int],
    dilations: list[int],
    channels_last: bool,
    grouped: bool,
    out: TensorType,
    acc: DType,
) -> ir.Value:
    """out[n, (g), o, s..] += x[n, (g), c, s*stride + k*dilation ..] * w[(g), o, c, k..]."""
    spatial = len(strides)
    parallel = len(own)
    total = parallel + 1 + spatial
    d = [ir.AffineDimExpr.get(i) for i in range(total)]
    n, c, k = d[0], d[parallel], d[parallel + 1 :]
    g = 1 if grouped else 0
    if channels_last:
        s, channel_dims = d[1 : 1 + spatial], d[1 + spatial : parallel]
    else:
        channel_dims, s = d[1 : 2 + g], d[2 + g : parallel]
    where = _read_places(s, k, strides, dilations)
    lead, o = channel_dims[:g], channel_dims[g]
    if channels_last:
        in_map = [n, *where, *lead, c]
        w_map = [*k, c, *lead, o]
    else:
        in_map = [n, *lead, c, *where]
        w_map = [*lead, o, c, *k]
    maps = [
        ir.AffineMap.get(total, 0, in_map),
        ir.AffineMap.get(total, 0, w_map),
        ir.AffineMap.get(total, 0, d[:parallel]),
    ]
    iterators = [PARALLEL] * parallel + [REDUCTION] * (1 + spatial)
    init = e.fill(own, acc, 0)
    return multiply_accumulate(e, x, w, init, maps, iterators, out.dtype, acc)


# ---- transposed convolution ----------------------------------------------------------------------


@lowers(ConvolutionBackwards)
def convolution_backwards(
    op: ConvolutionBackwards, ins: Sequence[ir.Value], e: LoweringContext
) -> ir.Value:
    """Lower to a convolution of the zero-dilated input with mirrored, transposed weights."""
    x, w = ins
    out = TensorType.of(op.out)
    acc = accumulator(out.dtype)
    spatial = out.rank - 2
    group = op.group
    kernel = e.extents(w)[2:]
    size = e.extents(x)[2:]
    reach = [e.mul(e.sub(k, 1), d) for k, d in zip(kernel, op.dilation, strict=True)]
    low, high = _backward_padding(e, op, reach)
    # zeros between the elements
    wide = [e.add(e.mul(e.sub(i, 1), s), 1) for i, s in zip(size, op.stride, strict=True)]
    if all(s == 1 for s in op.stride) and all(isinstance(p, int) and p >= 0 for p in [*low, *high]):
        spread = pad_spatial(e, x, low, high, 2, 0)
    else:
        spread = _spread(e, x, out.dtype, wide, low, high, op.stride)
    mirrored = _mirror(e, w, group, out.dtype)
    windows = [
        window_count(e, i, k, 1, d)
        for i, k, d in zip(e.extents(spread)[2:], kernel, op.dilation, strict=True)
    ]
    found = _convolve(
        e, spread, mirrored, windows, [1] * spatial, list(op.dilation), group, False, out, acc
    )
    return store(e, found, acc, out.dtype)


def _backward_padding(
    e: LoweringContext, op: ConvolutionBackwards, reach: Sequence[Extent]
) -> tuple[list[Extent], list[Extent]]:
    """Return what the spread input is padded by; negative paddings cut."""
    spatial = len(reach)
    if op.padding_mode == "default_":
        padding = list(op.padding) * (2 if len(op.padding) == spatial else 1)
        low = [e.sub(r, p) for r, p in zip(reach, padding[:spatial], strict=True)]
        high = [e.sub(r, p) for r, p in zip(reach, padding[spatial:], strict=True)]
        return low, high
    # the result has stride * extent: zeros follow where the windows do not reach that far
    low: list[Extent] = []
    high: list[Extent] = []
    for r, s in zip(reach, op.stride, strict=True):
        total = e.max(e.sub(r, s - 1), 0)
        half = e.div(total, 2)
        before = half if op.padding_mode == "same_upper" else e.sub(total, half)
        low.append(e.sub(r, before))
        high.append(e.add(before, s - 1))
    return low, high


def _spread(
    e: LoweringContext,
    x: ir.Value,
    dtype: DType,
    wide: Sequence[Extent],
    low: Sequence[Extent],
    high: Sequence[Extent],
    strides: Sequence[int],
) -> ir.Value:
    """`x` with stride - 1 zeros between its elements, padded or cut: a choice by position."""
    own = e.extents(x)
    padded = [e.add(e.add(n, a), b) for n, a, b in zip(wide, low, high, strict=True)]
    extents = [*own[:2], *padded]
    if 0 in own:
        return e.fill(extents, dtype, 0)

    def body(where: list[ir.Value]) -> ir.Value:
        source, inside = list(where[:2]), index.true()
        for i, at in enumerate(where[2:]):
            place = e.max(e.sub(at, low[i]), -1)
            fits = index.in_range(e, e.index(place), wide[i])
            safe = index.clamp(e, place, 0, index.last_of(e, wide[i]))
            rest = e.rem(safe, strides[i])
            hit = arith.AndIOp(fits, index.compare(e, index.EQ, rest, 0)).result
            inside = arith.AndIOp(inside, hit).result
            source.append(e.index(e.div(safe, strides[i])))
        value = index.read_safely(e, x, source, own[2:])
        return arith.SelectOp(inside, value, index.zero_of(value.type)).result

    return index.from_positions(e, extents, dtype, body)


def _mirror(e: LoweringContext, w: ir.Value, group: int, dtype: DType) -> ir.Value:
    """Weights [C, O/group, k..] as [O, C/group, mirrored k..]."""
    extents = e.extents(w)
    c, o = extents[0], extents[1]
    each_in = e.div(c, group)
    outputs = e.mul(o, group)
    own = [outputs, each_in, *extents[2:]]
    init = e.empty(own, dtype)
    rank = len(own)

    def body(*_: ir.Value) -> ir.Value:
        at = [linalg.IndexOp(i).result for i in range(rank)]
        g = arith.DivSIOp(at[0], e.index(o)).result
        inner = arith.RemSIOp(at[0], e.index(o)).result
        row = arith.AddIOp(arith.MulIOp(g, e.index(each_in)).result, at[1]).result
        taps = [
            arith.SubIOp(e.index(e.sub(k, 1)), i).result
            for k, i in zip(extents[2:], at[2:], strict=True)
        ]
        return tensor.ExtractOp(w, [row, inner, *taps]).result

    identity = ir.AffineMap.get_identity(rank)
    return e.generic([], [init], [identity], [PARALLEL] * rank, body)[0]
