"""Lowerings of the convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, linalg
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.linear import Convolution, ConvolutionBackwards
from mgx_mlir.dialects.migraphx.quant import QuantConvolution
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import PARALLEL, REDUCTION, LoweringContext
from mgx_mlir.passes.lowering.contraction import (
    collapsed,
    joined_axes,
    multiply_accumulate,
    split_axis,
)
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
from mgx_mlir.passes.lowering.ops.windows import (
    WindowAxis,
    axes_of,
    pad_spatial,
    tap_indices,
    trim_windows,
)
from mgx_mlir.passes.lowering.registry import lowers


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
    first, taps = (1 if op.channels_last else 2), (1 if by_row else 0 if op.channels_last else 2)
    kernel = e.extents(w)[taps : taps + spatial]
    if by_row and e.options.regions and image_windows.takes(e, op):
        axes = axes_of(e, op, e.extents(x)[first : first + spatial], kernel)
        border = [a.low for a in axes], [a.high for a in axes]
        return image_windows.lower(e, op, x, w, [a.count(e) for a in axes], border, acc)
    x = padded_input(e, op, x, kernel)
    size = e.extents(x)[first : first + spatial]
    axes = list(map(WindowAxis, size, kernel, op.stride, op.dilation))
    form = _Form(axes, [a.count(e) for a in axes], op.group, op.channels_last, out, acc)
    return _by_row(e, op, x, w, form) if by_row else _convolve(e, x, w, form)


def padded_input(
    e: LoweringContext,
    op: Convolution | QuantConvolution,
    x: ir.Value,
    kernel: Sequence[Extent],
) -> ir.Value:
    """Return the padded input of a convolution, which may be an operand of its region."""
    if op.out in e.plan.padded_inputs:
        return e.plan.padded_inputs[op.out]
    first = 1 if op.channels_last else 2
    axes = axes_of(e, op, e.extents(x)[first : first + len(kernel)], kernel)
    number = op.pad_value if isinstance(op, QuantConvolution) else 0
    return pad_spatial(e, x, [a.low for a in axes], [a.high for a in axes], first, number)


@dataclass(frozen=True)
class _Form:
    """A convolution of an input with its border."""

    axes: Sequence[WindowAxis]
    windows: Sequence[Extent]  # number of windows along each axis
    group: int
    channels_last: bool
    out: TensorType
    acc: DType

    @property
    def steps(self) -> dict[str, list[int]]:
        """Return strides and dilations as linalg's convolutions take them."""
        strides, dilations = ([getattr(a, n) for a in self.axes] for n in ("stride", "dilation"))
        return {"strides": strides, "dilations": dilations}

    def with_height(self) -> _Form:
        """Return the form of an image of height 1."""
        axes, windows = [WindowAxis(1, 1, 1, 1), *self.axes], [1, *self.windows]
        return replace(self, axes=axes, windows=windows)


def _by_row(
    e: LoweringContext,
    op: Convolution | QuantConvolution,
    x: ir.Value,
    w: ir.Value,
    form: _Form,
) -> ir.Value:
    """Return the convolution of channels-last images with weights [f, kh, kw, c]."""
    x = trim_windows(e, x, 1, form.windows, form.axes)
    row = len(form.axes) == 1  # an image of height 1
    if row:
        x, w, form = _with_height(e, x, 1), _with_height(e, w, 1), form.with_height()
    own = [e.extents(x)[0], *form.windows, e.extents(w)[0]]
    found = linalg.conv_2d_nhwc_fhwc(x, w, outs=[e.fill(own, form.acc, 0)], **form.steps)
    element = TensorType.of(op.weights).dtype
    taps = [a.length for a in form.axes]
    dims = [
        *own,
        *taps,
        e.extents(w)[-1],
        *form.steps["strides"],
    ]
    compilation_info.give_matmul(
        e,
        found,
        lambda: gemm_shape.GemmShape(
            gemm_shape.CONVOLUTION, element.name, tuple(e.static_dims(dims))
        ),
    )
    return _without_height(e, found) if row else found


_NAMED: dict[tuple[int, bool], str] = {
    (2, False): "conv_2d_nchw_fchw",
    (2, True): "conv_2d_nhwc_hwcf",
}


def _convolve(e: LoweringContext, x: ir.Value, w: ir.Value, form: _Form) -> ir.Value:
    """Return the convolution of an already padded input."""
    channels_last, group, out, acc = form.channels_last, form.group, form.out, form.acc
    spatial = len(form.axes)
    ew = e.extents(w)
    x = trim_windows(e, x, 1 if channels_last else 2, form.windows, form.axes)
    ex = e.extents(x)
    outputs, inputs = (ew[-1], ex[-1]) if channels_last else (ew[0], ex[1])
    own = [ex[0], *form.windows, outputs] if channels_last else [ex[0], outputs, *form.windows]
    if out.elements == 0:
        return e.empty(own, acc)
    wide = out.dtype.is_float
    if group == 1 and wide and (spatial, channels_last) in _NAMED:
        named = getattr(linalg, _NAMED[(spatial, channels_last)])
        return named(x, w, outs=[e.fill(own, acc, 0)], **form.steps)
    if group == 1 and wide and channels_last and spatial == 1:
        # conv_1d_nwc_wcf is some 50 times slower than the same rows as a 2-D image of height 1
        high, taps = _with_height(e, x, 1), _with_height(e, w, 0)
        init = e.fill([ex[0], 1, form.windows[0], outputs], acc, 0)
        tall = linalg.conv_2d_nhwc_hwcf(high, taps, outs=[init], **form.with_height().steps)
        return _without_height(e, tall)
    if wide and channels_last and spatial == 2 and inputs == group == outputs:
        # one filter per channel; weights are [kh, kw, 1, C]
        flat = collapsed(e, w, [ew[0], ew[1], group])
        init = e.fill(own, acc, 0)
        found = linalg.depthwise_conv_2d_nhwc_hwc(x, flat, outs=[init], **form.steps)
        compilation_info.put(
            e, found, lambda arch: compilation_info.window_info(arch, own, spatial)
        )
        return found
    if wide and channels_last and e.options.target == "gpu" and inputs == group == outputs:
        return _depthwise(e, x, w, own, form)
    if group == 1:
        return _conv_generic(e, x, w, own, form)
    return _conv_grouped(e, x, w, own, form)


def _with_height(e: LoweringContext, value: ir.Value, axis: int) -> ir.Value:
    """Return a rank-3 tensor with an extent of 1 inserted before `axis`."""
    own: list[Extent] = e.extents(value)
    own.insert(axis, 1)
    return split_axis(e, value, own, 0 if axis < 2 else 1)


def _without_height(e: LoweringContext, value: ir.Value) -> ir.Value:
    """Return the rows of an image [n, 1, w, c]."""
    images, _, *rest = ir.RankedTensorType(value.type).shape
    return joined_axes(value, [images, *rest], 0)


def _grouped(e: LoweringContext, value: ir.Value, axis: int, group: int) -> ir.Value:
    """`axis` as two dims, the first of them `group`."""
    extents = e.extents(value)
    each = e.div(extents[axis], group)
    return split_axis(e, value, [*extents[:axis], group, each, *extents[axis + 1 :]], axis)


def _conv_grouped(
    e: LoweringContext, x: ir.Value, w: ir.Value, own: Sequence[Extent], form: _Form
) -> ir.Value:
    """Channels of both sides split into [group, each]."""
    group, dtype = form.group, form.out.dtype
    c = len(own) - 1 if form.channels_last else 1
    xs, ws = _grouped(e, x, c, group), _grouped(e, w, c if form.channels_last else 0, group)
    grouped = [*own[:c], group, e.div(own[c], group), *own[c + 1 :]]
    found = _conv_generic(e, xs, ws, grouped, form, grouped=True)
    each, sums = e.div(e.extents(x)[c], group), 1 + len(form.axes)
    compilation_info.put(
        e, found, lambda arch: compilation_info.group_info(arch, dtype, grouped, each, sums)
    )
    return joined_axes(found, e.static_dims(own), c)


def _depthwise(
    e: LoweringContext, x: ir.Value, w: ir.Value, own: Sequence[Extent], form: _Form
) -> ir.Value:
    """out[n, s.., c] += x[n, s*stride + k*dilation .., c] * w[k.., c], for images without two
    axes, in tiles of windows; as a grouped one it would be in scratch memory on GPUs.
    """
    spatial, rank = len(form.axes), len(own)
    d = [ir.AffineDimExpr.get(i) for i in range(rank + spatial)]
    s, k, c = d[1 : rank - 1], d[rank:], d[rank - 1]
    maps = [[d[0], *tap_indices(s, k, form.axes), c], [*k, c], d[:rank]]
    flat = collapsed(e, w, [*e.extents(w)[:spatial], own[-1]])
    found = _accumulated(e, x, flat, own, form, maps, spatial)
    compilation_info.put(e, found, lambda arch: compilation_info.window_info(arch, own, spatial))
    return found


def _conv_generic(
    e: LoweringContext,
    x: ir.Value,
    w: ir.Value,
    own: Sequence[Extent],
    form: _Form,
    *,
    grouped: bool = False,
) -> ir.Value:
    """out[n, (g), o, s..] += x[n, (g), c, s*stride + k*dilation ..] * w[(g), o, c, k..]."""
    spatial, parallel = len(form.axes), len(own)
    d = [ir.AffineDimExpr.get(i) for i in range(parallel + 1 + spatial)]
    n, c, k = d[0], d[parallel], d[parallel + 1 :]
    g = 1 if grouped else 0
    if form.channels_last:
        s, channel_dims = d[1 : 1 + spatial], d[1 + spatial : parallel]
    else:
        channel_dims, s = d[1 : 2 + g], d[2 + g : parallel]
    where = tap_indices(s, k, form.axes)
    lead, o = channel_dims[:g], channel_dims[g]
    if form.channels_last:
        maps = [[n, *where, *lead, c], [*k, c, *lead, o], d[:parallel]]
    else:
        maps = [[n, *lead, c, *where], [*lead, o, c, *k], d[:parallel]]
    return _accumulated(e, x, w, own, form, maps, 1 + spatial)


def _accumulated(
    e: LoweringContext,
    x: ir.Value,
    w: ir.Value,
    own: Sequence[Extent],
    form: _Form,
    maps: Sequence[Sequence[ir.AffineExpr]],
    sums: int,
) -> ir.Value:
    """Sum x * w over `sums` dims behind those of the result.

    maps: indices of x, w and the result.
    """
    total = len(own) + sums
    affine = [ir.AffineMap.get(total, 0, list(m)) for m in maps]
    iterators = [PARALLEL] * len(own) + [REDUCTION] * sums
    init = e.fill(own, form.acc, 0)
    return multiply_accumulate(e, x, w, init, affine, iterators, form.out.dtype, form.acc)


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
    axes = list(map(WindowAxis, e.extents(spread)[2:], kernel, [1] * spatial, op.dilation))
    form = _Form(axes, [a.count(e) for a in axes], group, False, out, acc)
    return store(e, _convolve(e, spread, mirrored, form), acc, out.dtype)


def _backward_padding(
    e: LoweringContext, op: ConvolutionBackwards, reach: Sequence[Extent]
) -> tuple[list[Extent], list[Extent]]:
    """Return the padding of the dilated input; negative padding crops."""
    spatial = len(reach)
    if op.padding_mode == "default_":
        padding = list(op.padding) * (2 if len(op.padding) == spatial else 1)
        low = [e.sub(r, p) for r, p in zip(reach, padding[:spatial], strict=True)]
        high = [e.sub(r, p) for r, p in zip(reach, padding[spatial:], strict=True)]
        return low, high
    # the result has stride * extent elements; zeros follow where the windows end earlier
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
    """Return `x` with stride - 1 zeros between its elements, padded or cropped, as a select by
    position.
    """
    own = e.extents(x)
    padded = [e.add(e.add(n, a), b) for n, a, b in zip(wide, low, high, strict=True)]
    extents = [*own[:2], *padded]
    if 0 in own:
        return e.fill(extents, dtype, 0)

    def body(where: list[ir.Value]) -> ir.Value:
        source, inside = list(where[:2]), index.true()
        for i, at in enumerate(where[2:]):
            position = e.max(e.sub(at, low[i]), -1)
            fits = index.in_range(e, e.index(position), wide[i])
            safe = index.clamp(e, position, 0, index.last_of(e, wide[i]))
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
        return index.read(w, [row, inner, *taps])

    identity = ir.AffineMap.get_identity(rank)
    return e.generic([], [init], [identity], [PARALLEL] * rank, body)[0]
