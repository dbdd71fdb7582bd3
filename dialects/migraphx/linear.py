"""Matmuls and convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core.op import InferView, Op, Operand, Result, check
from mgx_mlir.core.shapes import (
    DYN,
    TensorType,
    add_dim,
    at_most,
    can_hold,
    compatible,
    is_multiple,
    merge_dim,
    merge_dims,
    product,
    show_dims,
)
from mgx_mlir.dialects.migraphx.axes import check_same_dtype
from mgx_mlir.dialects.migraphx.samples import Example, example, floats, ints
from mgx_mlir.dialects.migraphx.windows import (
    PADDING_MODES,
    both_pads,
    channels_first,
    check_window,
    convolve,
    pad_spatial,
    window_counts,
    window_pads,
    windows,
)
from mgx_mlir.dialects.migraphx.windows import (
    channels_last as to_channels_last,
)


def dot_dims(a: TensorType, b: TensorType) -> tuple[int, ...]:
    """Return the dims of a batched matmul; ShapeError where the operands do not fit."""
    check(
        a.rank >= 2 and a.rank == b.rank,
        lambda: f"expected operands of one rank, 2 or more, got {a} and {b}",
    )
    batch = merge_dims(a.dims[:-2], b.dims[:-2])
    check(
        batch is not None,
        lambda: f"batch dims {show_dims(a.dims[:-2])} and {show_dims(b.dims[:-2])} do not match",
    )
    check(
        compatible(a.dims[-1], b.dims[-2]),
        lambda: f"inner dims do not match: {show_dims(a.dims)} x {show_dims(b.dims)}",
    )
    assert batch is not None
    return (*batch, a.dims[-2], b.dims[-1])


class Dot(Op, name="dot"):
    """The batched matmul of `a` (.., M, K) and `b` (.., K, N).

    One dtype, not bool; equal rank of 2 or more, equal batch dims (broadcast before). 16- and
    8-bit floats accumulate in f32 and round once; integers wrap. MIGraphX `dot`.

    ```mlir
    %0 = "migraphx.dot"(%a, %b) : (tensor<?x3x4xf32>, tensor<?x4x5xf32>) -> tensor<?x3x5xf32>
    ```
    """

    a: Operand
    b: Operand
    out: Result

    @staticmethod
    def infer(o: InferView) -> TensorType:
        dtype = check_same_dtype([o.a, o.b])
        check(not dtype.is_bool, "expected a number type, got i1")
        return TensorType(dtype, dot_dims(o.a, o.b))

    reference = staticmethod(np.matmul)

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(3, 4), floats(4, 5)),
            example(floats(2, 3, 4), floats(2, 4, 5)),
            example(floats(2, 2, 1, 7), floats(2, 2, 7, 3)),
            example(floats(3, 4, dtype=np.float16), floats(4, 5, dtype=np.float16)),
            example(floats(3, 4, dtype=np.float64), floats(4, 5, dtype=np.float64)),
            example(ints(3, 4), ints(4, 2)),
            example(ints(3, 4, dtype=np.int32), ints(4, 2, dtype=np.int32)),
            example(floats(3, 0), floats(0, 5)),
            example(floats(0, 3), floats(3, 5)),
        ]


class Conv(Op):
    """Base of the convolutions: `n` spatial axes, their window attributes and checks."""

    input: Operand
    weights: Operand
    out: Result


def check_conv(o: InferView, *, last: bool = False) -> tuple[TensorType, TensorType]:
    """Check input (N, C, spatial..) and weights (O, C/group, kernel..), as far as ranks."""
    check_same_dtype([o.input, o.weights])
    check(not o.input.dtype.is_bool, "expected a number type, got i1")
    rank = o.input.rank
    check(rank >= 3, lambda: f"input expected rank 3 or more, got {o.input}")
    check(
        o.weights.rank == rank,
        lambda: f"weights expected rank {rank} as the input, got rank {o.weights.rank}",
    )
    check_window(rank - 2, o.padding, stride=o.stride, dilation=o.dilation)
    if not last:
        return o.input, o.weights
    d, w = o.input.dims, o.weights.dims
    return (
        o.input.with_dims((d[0], d[-1], *d[1:-1])),
        o.weights.with_dims((w[-1], w[-2], *w[:-2])),
    )


def conv_dims(o: InferView) -> tuple[int, ...]:
    """Return the result dims of a convolution (of any element types)."""
    x, w = check_conv(o, last=o.channels_last)
    check(o.group >= 1, lambda: f"group expected at least 1, got {o.group}")
    channels, outs, per_group = x.dims[1], w.dims[0], w.dims[1]
    check(
        compatible(channels, product((per_group, o.group))),
        lambda: (
            f"input expected {per_group * o.group} channels "
            f"({per_group} of the weights times group {o.group}), got {channels}"
        ),
    )
    check(
        is_multiple(outs, o.group),
        lambda: f"output channels ({outs}) expected a multiple of group ({o.group})",
    )
    kernel = w.dims[2:]
    check(can_hold(kernel, [1]), lambda: f"weights expected no empty window, got {o.weights}")
    counts = window_counts(x.dims[2:], kernel, o.stride, o.dilation, o.padding, o.padding_mode)
    if o.channels_last:
        return (x.dims[0], *counts, outs)
    return (x.dims[0], outs, *counts)


class Convolution(Conv, name="convolution"):
    """Cross-correlation of `input` (N, C, spatial..) with `weights` (O, C/group, kernel..).

    One dtype, not bool; any number of spatial axes. `padding` has one number per spatial axis,
    or all beginnings and then all ends; with `padding_mode` same_upper or same_lower it is
    computed so that the result has ceil(extent / stride). `channels_last`: input and result are
    (N, spatial.., C), weights (kernel.., C/group, O). 16- and 8-bit floats accumulate in f32.
    Errors: channels do not fit the groups, lists of a wrong length, a window that does not fit.
    MIGraphX `convolution`; `channels_last` is ours.

    ```mlir
    %0 = "migraphx.convolution"(%x, %w) {padding = array<i64: 1, 1>, stride = array<i64: 1, 1>,
           dilation = array<i64: 1, 1>, group = 1 : i64, padding_mode = "default_",
           channels_last = false}
           : (tensor<?x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<?x4x8x8xf32>
    ```
    """

    padding = attr.ints((0, 0))
    stride = attr.ints((1, 1))
    dilation = attr.ints((1, 1))
    group = attr.int_(1)
    padding_mode = attr.enum(PADDING_MODES, "default_")
    channels_last = attr.bool_(False)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        return TensorType(o.input.dtype, conv_dims(o))

    @staticmethod
    def reference(
        x: np.ndarray,
        w: np.ndarray,
        *,
        padding: Sequence[int] = (0, 0),
        stride: Sequence[int] = (1, 1),
        dilation: Sequence[int] = (1, 1),
        group: int = 1,
        padding_mode: str = "default_",
        channels_last: bool = False,
    ) -> np.ndarray:
        if channels_last:
            x = channels_first(x)
            w = np.moveaxis(w, (-1, -2), (0, 1))
        pads = window_pads(x.shape[2:], w.shape[2:], stride, dilation, padding, padding_mode)
        out = convolve(x, w, pads=pads, stride=stride, dilation=dilation, group=group)
        return to_channels_last(out) if channels_last else out

    @staticmethod
    def examples() -> list[Example]:
        half = np.float16
        one = {"padding": [0], "stride": [1], "dilation": [1]}
        return [
            example(floats(2, 3, 8, 7), floats(4, 3, 3, 3)),
            example(floats(1, 3, 8, 7), floats(4, 3, 3, 3), padding=[1, 1], stride=[2, 2]),
            example(floats(1, 3, 9, 9), floats(4, 3, 3, 2), padding=[0, 1, 2, 1], dilation=[2, 3]),
            example(floats(1, 4, 6, 6), floats(6, 2, 3, 3), group=2, padding=[1, 1]),
            example(floats(2, 4, 6, 6), floats(8, 1, 3, 3), group=4),
            example(floats(1, 3, 7, 6), floats(2, 3, 3, 2), padding_mode="same_upper"),
            example(
                floats(1, 3, 7, 6), floats(2, 3, 4, 2), padding_mode="same_lower", stride=[2, 3]
            ),
            example(floats(2, 3, 9), floats(4, 3, 2), padding=[1], stride=[2], dilation=[1]),
            example(
                floats(1, 2, 5, 6, 4),
                floats(3, 2, 3, 2, 1),
                padding=[1, 0, 0],
                stride=[1, 2, 1],
                dilation=[1, 1, 1],
            ),
            example(floats(1, 3, 5, 5, dtype=half), floats(2, 3, 1, 1, dtype=half)),
            example(ints(1, 2, 5, dtype=np.int32), ints(3, 2, 3, dtype=np.int32), **one),
            example(floats(0, 3, 5), floats(2, 3, 3), **one),
            example(
                floats(1, 8, 7, 4), floats(3, 3, 2, 6), group=2, padding=[1, 1], channels_last=True
            ),
        ]


class ConvolutionBackwards(Conv, name="convolution_backwards"):
    """The transposed convolution: each element of `input` adds its multiple of the kernel.

    `input` (N, C, spatial..), `weights` (C, O/group, kernel..), one dtype, not bool. A spatial
    extent is stride * (d - 1) + dilation * (k - 1) + 1 less both paddings; with `padding_mode`
    same_upper or same_lower it is stride * d. MIGraphX `convolution_backwards`.

    ```mlir
    %0 = "migraphx.convolution_backwards"(%x, %w) {padding = array<i64: 0, 0>,
           stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>, padding_mode = "default_",
           group = 1 : i64} : (tensor<1x3x4x4xf32>, tensor<3x2x2x2xf32>) -> tensor<1x2x8x8xf32>
    ```
    """

    padding = attr.ints((0, 0))
    stride = attr.ints((1, 1))
    dilation = attr.ints((1, 1))
    padding_mode = attr.enum(PADDING_MODES, "default_")
    group = attr.int_(1)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        x, w = check_conv(o)
        check(o.group >= 1, lambda: f"group expected at least 1, got {o.group}")
        channels = merge_dim(x.dims[1], w.dims[0])
        check(
            channels is not None,
            lambda: f"input expected {w.dims[0]} channels as the weights, got {x.dims[1]}",
        )
        check(
            is_multiple(channels or 0, o.group),
            lambda: f"input channels ({channels}) expected a multiple of group ({o.group})",
        )
        outs = product((w.dims[1], o.group))
        dims = [
            n
            for _, n in backward_extents(
                x.dims[2:], w.dims[2:], o.stride, o.dilation, o.padding, o.padding_mode
            )
        ]
        for i, n in enumerate(dims):
            check(
                at_most(0, n),
                lambda i=i, n=n: f"spatial dim {i} expected a result of 0 or more, got {n}",
            )
        return TensorType(o.input.dtype, (x.dims[0], outs, *dims))

    @staticmethod
    def reference(
        x: np.ndarray,
        w: np.ndarray,
        *,
        padding: Sequence[int] = (0, 0),
        stride: Sequence[int] = (1, 1),
        dilation: Sequence[int] = (1, 1),
        padding_mode: str = "default_",
        group: int = 1,
    ) -> np.ndarray:
        n, channels = x.shape[:2]
        spatial, kernel = x.shape[2:], w.shape[2:]
        if x.dtype.kind != "f":
            x, w = x.astype(np.int64), w.astype(np.int64)
        outs = w.shape[1] * group
        wanted = backward_extents(spatial, kernel, stride, dilation, padding, padding_mode)
        full = [
            max(_full_extent(d, k, s, r), before + extent)
            for d, k, s, r, (before, extent) in zip(
                spatial, kernel, stride, dilation, wanted, strict=True
            )
        ]
        out = np.zeros((n, outs, *full), np.result_type(x, w))
        grouped = x.reshape(n, group, channels // group, math.prod(spatial))
        rows = w.reshape(group, channels // group, w.shape[1], *kernel)
        for at in np.ndindex(*kernel):
            # part of the result from every input element, at this index of its window
            part = np.matmul(np.swapaxes(rows[(..., *at)], 1, 2), grouped)
            where = tuple(
                slice(p * r, p * r + (d - 1) * s + 1, s) if d else slice(0, 0)
                for p, r, d, s in zip(at, dilation, spatial, stride, strict=True)
            )
            out[(slice(None), slice(None), *where)] += part.reshape(n, outs, *spatial)
        cut = [slice(before, before + extent) for before, extent in wanted]
        return out[(slice(None), slice(None), *cut)]

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(1, 3, 4, 5), floats(3, 2, 3, 3)),
            example(floats(2, 3, 4, 5), floats(3, 2, 3, 2), stride=[2, 3], padding=[1, 0]),
            example(floats(1, 3, 4, 5), floats(3, 2, 3, 2), dilation=[2, 1], padding=[0, 1, 2, 0]),
            example(floats(1, 4, 3, 3), floats(4, 3, 2, 2), group=2, stride=[2, 2]),
            example(floats(1, 2, 5), floats(2, 3, 3), padding=[1], stride=[2], dilation=[1]),
            example(
                floats(1, 2, 4, 4), floats(2, 2, 3, 3), padding_mode="same_upper", stride=[2, 2]
            ),
        ]


def _full_extent(d: int, k: int, stride: int, dilation: int) -> int:
    steps, taps = product((stride, add_dim(d, -1))), product((dilation, add_dim(k, -1)))
    return add_dim(add_dim(steps, taps), 1)


def backward_extents(
    extents: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    mode: str,
) -> list[tuple[int, int]]:
    """Return (crop at the begin, result extent) of each spatial axis of a transposed
    convolution.
    """
    out: list[tuple[int, int]] = []
    n = len(stride)
    for i, (d, k, s, r) in enumerate(zip(extents, kernel, stride, dilation, strict=True)):
        if mode == "default_":
            before, after = both_pads(padding, n)[i]
            wanted = add_dim(_full_extent(d, k, s, r), -before - after)
        else:
            # the result has extent stride * d: zeros follow where no window reaches
            wanted = product((s, d))
            total = 0 if k == DYN else max(r * (k - 1) + 1 - s, 0)
            before = total // 2 if mode == "same_upper" else total - total // 2
        out.append((before, wanted))
    return out


class Im2Col(Conv, name="im2col"):
    """The patches of `input` that a 2-D convolution multiplies: {windows, channels * kernel}.

    `input` (1, C, H, W), `weights` (O, C, kh, kw), of which only the dims count. Any dtype.
    Errors: batch is not 1, rank is not 4. MIGraphX `im2col`.

    ```mlir
    %0 = "migraphx.im2col"(%x, %w) {padding = array<i64: 0, 0>, stride = array<i64: 1, 1>,
           dilation = array<i64: 1, 1>, padding_mode = "default_"}
           : (tensor<1x3x4x4xf32>, tensor<8x3x3x3xf32>) -> tensor<4x27xf32>
    ```
    """

    raw = True
    padding = attr.ints((0, 0))
    stride = attr.ints((1, 1))
    dilation = attr.ints((1, 1))
    padding_mode = attr.enum(PADDING_MODES, "default_")

    @staticmethod
    def infer(o: InferView) -> TensorType:
        x, w = check_conv(o)
        check(x.rank == 4, lambda: f"input expected rank 4, got rank {x.rank}")
        check(compatible(x.dims[0], 1), lambda: f"batch expected 1, got {x.dims[0]}")
        check(
            compatible(x.dims[1], w.dims[1]),
            lambda: f"input expected {w.dims[1]} channels as the weights, got {x.dims[1]}",
        )
        rows = window_counts(
            x.dims[2:], w.dims[2:], o.stride, o.dilation, o.padding, o.padding_mode
        )
        columns = (w.dims[1], w.dims[2], w.dims[3])
        return o.input.with_dims(
            (
                DYN if DYN in rows else rows[0] * rows[1],
                DYN if DYN in columns else columns[0] * columns[1] * columns[2],
            )
        )

    @staticmethod
    def reference(
        x: np.ndarray,
        w: np.ndarray,
        *,
        padding: Sequence[int] = (0, 0),
        stride: Sequence[int] = (1, 1),
        dilation: Sequence[int] = (1, 1),
        padding_mode: str = "default_",
    ) -> np.ndarray:
        kernel = w.shape[2:]
        pads = window_pads(x.shape[2:], kernel, stride, dilation, padding, padding_mode)
        counts = window_counts(x.shape[2:], kernel, stride, dilation, padding, padding_mode)
        view = windows(pad_spatial(x, pads), kernel, stride, dilation, counts)[0]
        rows = counts[0] * counts[1]
        return np.moveaxis(view, (3, 4), (0, 1)).reshape(rows, view.size // rows if rows else 0)

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(1, 3, 5, 6), floats(4, 3, 3, 2)),
            example(floats(1, 2, 5, 5), floats(4, 2, 3, 3), padding=[1, 1], stride=[2, 2]),
            example(floats(1, 2, 7, 7), floats(4, 2, 3, 3), padding=[1, 0, 0, 2], dilation=[2, 1]),
        ]
