"""Pooling over sliding windows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core import dtypes
from mgx_mlir.core.op import InferView, Op, Operand, Result, check
from mgx_mlir.core.shapes import TensorType, can_hold
from mgx_mlir.dialects.migraphx.samples import Example, example, floats, ints
from mgx_mlir.dialects.migraphx.windows import (
    PADDING_MODES,
    channels_first,
    check_window,
    pad_spatial,
    window_counts,
    window_pads,
    windows,
)
from mgx_mlir.dialects.migraphx.windows import (
    channels_last as to_channels_last,
)

MODES = ("average", "max", "lpnorm")


class Pooling(Op, name="pooling"):
    """Reduce each window of `input` (N, C, spatial..) to its average, largest value or p-norm.

    Any number type; any number of spatial axes. `padding` has one number per spatial axis, or all
    beginnings and then all ends; `padding_mode` as in convolution. `ceil_mode` adds a last window
    that ends beyond the padding, if it starts inside of the input or the padding before it. Padding
    counts in an average only with `count_include_pad`, and elements beyond it never do. Padding is
    never a maximum, and is 0 in a norm. `lp_order` is p; 0 counts the nonzero elements.
    `dyn_global` makes the window as large as the input and ignores the window attributes.
    `channels_last`: input and result are (N, spatial.., C). Integer averages truncate. Errors:
    lists of a wrong length, a window that does not fit. MIGraphX `pooling`; `channels_last` is
    ours.

    ```mlir
    %0 = "migraphx.pooling"(%x) {mode = "max", padding = array<i64: 1, 1>,
           padding_mode = "default_", stride = array<i64: 2, 2>, lengths = array<i64: 3, 3>,
           dilations = array<i64: 1, 1>, ceil_mode = false, count_include_pad = false,
           lp_order = 2 : i64, dyn_global = false, channels_last = false}
           : (tensor<1x8x16x16xf32>) -> tensor<1x8x8x8xf32>
    ```
    """

    input: Operand
    out: Result
    mode = attr.enum(MODES, "average")
    padding = attr.ints((0, 0))
    padding_mode = attr.enum(PADDING_MODES, "default_")
    stride = attr.ints((1, 1))
    lengths = attr.ints((1, 1))
    dilations = attr.ints((1, 1))
    ceil_mode = attr.bool_(False)
    count_include_pad = attr.bool_(False)
    lp_order = attr.int_(2)
    dyn_global = attr.bool_(False)
    channels_last = attr.bool_(False)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        rank = o.input.rank
        check(not o.input.dtype.is_bool, "expected a number type, got i1")
        check(rank >= 3, lambda: f"input expected rank 3 or more, got {o.input}")
        check(o.lp_order >= 0, lambda: f"lp_order expected at least 0, got {o.lp_order}")
        dims = o.input.dims
        batch, channels = dims[0], dims[-1] if o.channels_last else dims[1]
        spatial = dims[1:-1] if o.channels_last else dims[2:]
        if o.dyn_global:
            check(can_hold(spatial, [1]), lambda: f"expected spatial elements, got {o.input}")
            counts = [1] * len(spatial)
        else:
            check_window(
                rank - 2, o.padding, stride=o.stride, lengths=o.lengths, dilations=o.dilations
            )
            counts = window_counts(
                spatial, o.lengths, o.stride, o.dilations, o.padding, o.padding_mode, o.ceil_mode
            )
        if o.channels_last:
            return o.input.with_dims((batch, *counts, channels))
        return o.input.with_dims((batch, channels, *counts))

    @staticmethod
    def reference(
        x: np.ndarray,
        *,
        mode: str = "average",
        padding: Sequence[int] = (0, 0),
        padding_mode: str = "default_",
        stride: Sequence[int] = (1, 1),
        lengths: Sequence[int] = (1, 1),
        dilations: Sequence[int] = (1, 1),
        ceil_mode: bool = False,
        count_include_pad: bool = False,
        lp_order: int = 2,
        dyn_global: bool = False,
        channels_last: bool = False,
    ) -> np.ndarray:
        if channels_last:
            x = channels_first(x)
        spatial = x.shape[2:]
        n = len(spatial)
        if dyn_global:
            padding, padding_mode, lengths = (0,) * n, "default_", spatial
            stride = dilations = (1,) * n
        counts = window_counts(
            spatial, lengths, stride, dilations, padding, padding_mode, ceil_mode
        )
        pads = window_pads(spatial, lengths, stride, dilations, padding, padding_mode)
        # a window of ceil_mode may end beyond the padding, where elements do not count
        reach = [
            (c - 1) * s + (k - 1) * d + 1 - (e + b + a)
            for c, s, k, d, e, (b, a) in zip(
                counts, stride, lengths, dilations, spatial, pads, strict=True
            )
        ]
        room = [(b, a + max(r, 0)) for (b, a), r in zip(pads, reach, strict=True)]
        how = lengths, stride, dilations, counts
        if mode == "max":
            low = dtypes.from_numpy(x.dtype).lowest()
            out = reduce_windows(pad_spatial(x, room, low), np.maximum, *how)
        elif mode == "average":
            wide = x if x.dtype.kind == "f" else x.astype(np.int64)
            total = reduce_windows(pad_spatial(wide, room), np.add, *how)
            inside = np.ones((1, 1, *spatial), np.int64)
            if count_include_pad:
                inside = pad_spatial(inside, pads, 1)
                inside = pad_spatial(inside, [(0, max(r, 0)) for r in reach])
            else:
                inside = pad_spatial(inside, room)
            cells = reduce_windows(inside, np.add, *how)
            if x.dtype.kind == "f":
                out = total / cells.astype(x.dtype)
            else:
                out = np.trunc(total / np.maximum(cells, 1)).astype(x.dtype)
        else:
            out = _norm(pad_spatial(x, room), lp_order, *how)
        return to_channels_last(out) if channels_last else out

    @staticmethod
    def examples() -> list[Example]:
        x = floats(2, 3, 8, 7)
        three = {"lengths": [3, 3], "stride": [2, 2]}
        out = [
            example(x, mode=mode, **three, **more)
            for mode in MODES
            for more in (
                {},
                {"padding": [1, 1]},
                {"padding": [0, 1, 2, 1]},
                {"padding": [1, 1], "ceil_mode": True},
                {"padding": [0, 0], "ceil_mode": True},
                {"padding": [1, 1], "ceil_mode": True, "count_include_pad": True},
                {"padding": [1, 1], "count_include_pad": True},
                {"dilations": [2, 1]},
                {"dilations": [2, 2], "ceil_mode": True},
                {"padding_mode": "same_upper"},
                {"padding_mode": "same_lower"},
                {"dyn_global": True},
                {"padding": [1, 1], "channels_last": True},
            )
            if mode == "average" or "count_include_pad" not in more
        ]
        one = {"padding": [1], "stride": [1], "dilations": [1], "lengths": [2]}
        cube = {
            "padding": [0, 1, 0],
            "stride": [2, 1, 1],
            "dilations": [1, 1, 1],
            "lengths": [2, 3, 1],
        }
        return [
            *out,
            example(x, mode="lpnorm", lp_order=1, **three),
            example(x, mode="lpnorm", lp_order=3, **three),
            example(np.where(x > 0, x, np.float32(0)), mode="lpnorm", lp_order=0, **three),
            example(floats(1, 2, 9), mode="average", **one),
            example(floats(1, 2, 4, 5, 6), mode="max", **cube),
            example(floats(1, 2, 4, 5, 6), mode="average", **cube),
            example(ints(1, 2, 5, 5, dtype=np.int32), mode="average", **three),
            example(ints(1, 2, 5, 5, dtype=np.int8), mode="max", **three, padding=[1, 1]),
            example(floats(1, 2, 6, 6, dtype=np.float16), mode="average", **three),
            example(floats(1, 2, 6, 6, dtype=np.float64), mode="max", **three),
            example(floats(0, 2, 6, 6), mode="max", **three),
            example(floats(1, 2, 40, 40), lengths=[40, 40]),
        ]


def reduce_windows(
    x: np.ndarray,
    fold: np.ufunc,
    lengths: Sequence[int],
    stride: Sequence[int],
    dilations: Sequence[int],
    counts: Sequence[int],
) -> np.ndarray:
    """Fold each window of padded `x` (.., spatial..) to one element."""
    n = len(lengths)
    view = windows(x, lengths, stride, dilations, counts)
    lead = x.ndim - n
    if math.prod(lengths) > 64:
        axes = tuple(range(lead, lead + n))
        return fold.reduce(view, axis=axes)
    # small windows: one array operation per tap
    out: np.ndarray | None = None
    for at in np.ndindex(*lengths):
        part = view[(*[slice(None)] * lead, *at)]
        out = np.array(part) if out is None else fold(out, part)
    assert out is not None
    return out


def _norm(x: np.ndarray, order: int, *how: Sequence[int]) -> np.ndarray:
    real = x.astype(np.result_type(x.dtype, np.float32))
    if order == 0:
        return reduce_windows((real != 0).astype(real.dtype), np.add, *how)
    if order == 1:
        return reduce_windows(np.abs(real), np.add, *how)
    total = reduce_windows(np.abs(real) ** order, np.add, *how)
    return np.sqrt(total) if order == 2 else total ** (1 / order)
