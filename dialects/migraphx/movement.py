"""Ops that take part of a tensor, put tensors together or pad them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core.dynamic_dims import UndecidedError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import InferView, Op, Operand, Result, ViewOp, check
from mgx_mlir.core.shapes import (
    DYN,
    TensorType,
    add_dim,
    at_most,
    can_hold,
    merge_dim,
    one_element,
    show_dims,
)
from mgx_mlir.dialects.migraphx.axes import (
    axis_of,
    ceil_div,
    check_index_type,
    check_rank,
    check_same_dtype,
    normalize_axes,
    normalize_axis,
    show_list,
)
from mgx_mlir.dialects.migraphx.samples import Example, example, floats, i64, ints


def slice_bounds(start: int, end: int, extent: int) -> tuple[int, int]:
    """Clamp a slice's bounds into [0, extent]; negative ones count from the end."""
    low = start + extent if start < 0 else start
    high = end + extent if end < 0 else end
    low = min(max(low, 0), extent)
    return low, max(min(high, extent), low)


class Slice(ViewOp, name="slice"):
    """Elements `starts` to `ends` (exclusive) along `axes`.

    Any dtype. Negative bounds count from the end, bounds beyond the extent are clamped, an empty
    range gives extent 0. Each of `axes`, `starts` and `ends` is an attribute, or a 1-D integer
    operand of static length, never both. An extent that is sliced at run time, or that is dynamic
    already, is dynamic. Errors: lengths differ, axes repeat. MIGraphX `slice`.

    ```mlir
    %0 = "migraphx.slice"(%x) {axes = array<i64: 1>, starts = array<i64: 0>, ends = array<i64: 2>}
           : (tensor<2x5xf32>) -> tensor<2x2xf32>
    ```
    """

    input: Operand
    input_starts: Operand | None
    input_ends: Operand | None
    input_axes: Operand | None
    out: Result
    axes = attr.ints(())
    starts = attr.ints(())
    ends = attr.ints(())

    @staticmethod
    def infer(o: InferView) -> TensorType:
        lengths: dict[str, int] = {}
        for name in ("starts", "ends", "axes"):
            values, operand = getattr(o, name), getattr(o, f"input_{name}")
            if operand is None:
                lengths[name] = len(values)
                continue
            check(
                not values,
                f"expected either attribute '{name}' or operand 'input_{name}', got both",
            )
            check_rank(operand, 1, f"operand 'input_{name}'")
            check_index_type(operand, f"operand 'input_{name}'")
            lengths[name] = operand.dims[0]
            check(operand.dims[0] != DYN, f"operand 'input_{name}' expected a static length, got ?")
        check(
            len(set(lengths.values())) == 1,
            lambda: (
                "expected as many starts, ends and axes, got "
                + ", ".join(str(n) for n in lengths.values())
            ),
        )
        if o.input_axes is not None:
            return o.input.with_dims([DYN] * o.input.rank)
        dims = list(o.input.dims)
        run_time = o.input_starts is not None or o.input_ends is not None
        for i, axis in enumerate(normalize_axes(o.axes, o.input.rank)):
            if run_time or dims[axis] == DYN:
                dims[axis] = DYN
            else:
                try:
                    low, high = slice_bounds(o.starts[i], o.ends[i], dims[axis])
                    dims[axis] = high - low
                except UndecidedError:
                    dims[axis] = DYN
        return o.input.with_dims(dims)

    @staticmethod
    def strides(o: InferView, ins: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        return ins[0]

    @staticmethod
    def reference(
        x: np.ndarray,
        input_starts: np.ndarray | None = None,
        input_ends: np.ndarray | None = None,
        input_axes: np.ndarray | None = None,
        *,
        axes: Sequence[int] = (),
        starts: Sequence[int] = (),
        ends: Sequence[int] = (),
    ) -> np.ndarray:
        starts = starts if input_starts is None else [int(v) for v in input_starts]
        ends = ends if input_ends is None else [int(v) for v in input_ends]
        axes = axes if input_axes is None else [int(v) for v in input_axes]
        where: list[slice] = [slice(None)] * x.ndim
        for axis, start, end in zip(normalize_axes(axes, x.ndim), starts, ends, strict=True):
            where[axis] = slice(*slice_bounds(start, end, x.shape[axis]))
        return x[tuple(where)]

    @staticmethod
    def examples() -> list[Example]:
        big = np.iinfo(np.int64).max
        return [
            example(floats(4, 5), axes=[1], starts=[1], ends=[3]),
            example(floats(4, 5), axes=[0, -1], starts=[-3, 0], ends=[big, -1]),
            example(floats(4, 5), axes=[0], starts=[3], ends=[1]),
            example(floats(4, 5), axes=[0], starts=[-big], ends=[2]),
            example(floats(4, 5)),
            example(ints(0, 5), axes=[0], starts=[0], ends=[3]),
            example(floats(4, 5), i64(1), axes=[1], ends=[4]),
            example(floats(4, 5), None, i64(-1), axes=[1], starts=[1]),
            example(floats(4, 5), i64(1, 0), i64(2, 3), axes=[1, 0]),
            example(floats(4, 5), i64(1), i64(big), i64(-1)),
        ]


def cut_of(op: ir.OpView) -> tuple[int, int, int] | None:
    """Return (axis, low, high) of a slice along one axis with known bounds; None for others."""
    if len(op.operands) > 1 or len(op.axes) != 1 or len(op.starts) != 1:
        return None
    dims = TensorType.of(op.operands[0]).dims
    axis: int = op.axes[0] % len(dims)
    if dims[axis] == DYN:
        return None
    low, high = slice_bounds(op.starts[0], op.ends[0], dims[axis])
    return axis, low, max(low, high)


class Step(ViewOp, name="step"):
    """Every `steps[i]`-th element along `axes[i]`, from the first on.

    Any dtype. Errors: a step below 1, lengths differ, axes repeat. MIGraphX `step`.

    ```mlir
    %0 = "migraphx.step"(%x) {axes = array<i64: 1>, steps = array<i64: 2>}
           : (tensor<2x5xf32>) -> tensor<2x3xf32>
    ```
    """

    input: Operand
    out: Result
    axes = attr.ints()
    steps = attr.ints()

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check(
            len(o.axes) == len(o.steps),
            lambda: f"expected as many steps as axes ({len(o.axes)}), got {len(o.steps)}",
        )
        check(
            all(s >= 1 for s in o.steps),
            lambda: f"steps expected at least 1, got {show_list(o.steps)}",
        )
        dims = list(o.input.dims)
        for axis, step in zip(normalize_axes(o.axes, o.input.rank), o.steps, strict=True):
            if dims[axis] != DYN:
                dims[axis] = ceil_div(dims[axis], step)
        return o.input.with_dims(dims)

    @staticmethod
    def strides(o: InferView, ins: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        out = list(ins[0])
        for axis, step in zip(normalize_axes(o.axes, o.input.rank), o.steps, strict=True):
            if out[axis] != DYN:
                out[axis] *= step
        return tuple(out)

    @staticmethod
    def reference(x: np.ndarray, *, axes: Sequence[int], steps: Sequence[int]) -> np.ndarray:
        where: list[slice] = [slice(None)] * x.ndim
        for axis, step in zip(axes, steps, strict=True):
            where[axis] = slice(None, None, step)
        return x[tuple(where)]

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(4, 5), axes=[1], steps=[2]),
            example(floats(4, 5), axes=[-1, 0], steps=[3, 2]),
            example(floats(4, 5), axes=[0], steps=[9]),
            example(ints(0, 5), axes=[0], steps=[2]),
        ]


class Reverse(Op, name="reverse"):
    """Flip the axes `axes`. Any dtype. Errors: axes repeat or are out of range.

    MIGraphX `reverse`.

    ```mlir
    %0 = "migraphx.reverse"(%x) {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
    """

    raw = True
    input: Operand
    out: Result
    axes = attr.ints()

    @staticmethod
    def infer(o: InferView) -> TensorType:
        normalize_axes(o.axes, o.input.rank)
        return o.input

    @staticmethod
    def reference(x: np.ndarray, *, axes: Sequence[int]) -> np.ndarray:
        return np.flip(x, tuple(axes))

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(2, 3), axes=[1]),
            example(floats(2, 3, 4), axes=[0, -1]),
            example(floats(2, 3), axes=[]),
            example(ints(0, 3), axes=[0, 1]),
        ]


class ScanSlice(Op, name="scan_slice"):
    """The slice of `data` at `index` along `axis`, which keeps extent 1. MIGraphX `scan_slice`.

    `index` is an integer tensor of one element; `direction` 0 counts from the front, 1 from the
    back. Any dtype. An index outside of the axis is clamped to it.

    ```mlir
    %0 = "migraphx.scan_slice"(%x, %i) {axis = 0 : i64, direction = 0 : i64}
           : (tensor<5x3xf32>, tensor<1xi64>) -> tensor<1x3xf32>
    ```
    """

    raw = True
    data: Operand
    index: Operand
    out: Result
    axis = attr.int_(0)
    direction = attr.int_(0)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        axis = normalize_axis(o.axis, o.data.rank)
        check(o.direction in (0, 1), lambda: f"direction expected 0 or 1, got {o.direction}")
        check_index_type(o.index, "operand 'index'")
        check(
            one_element(o.index),
            lambda: f"operand 'index' expected 1 element, got {o.index.elements}",
        )
        check(
            can_hold([o.data.dims[axis]], [1]),
            lambda: f"dim {axis} expected at least 1 element, got 0",
        )
        dims = list(o.data.dims)
        dims[axis] = 1
        return o.data.with_dims(dims)

    @staticmethod
    def reference(
        data: np.ndarray, index: np.ndarray, *, axis: int = 0, direction: int = 0
    ) -> np.ndarray:
        last = data.shape[axis] - 1
        at = min(max(int(index.reshape(())), 0), last)
        return np.take(data, [last - at if direction else at], axis)

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(5, 3), i64(2)),
            example(floats(5, 3), i64(0), axis=1, direction=1),
            example(floats(5, 3), np.array(9, np.int32), axis=-1),
        ]


class Pad(Op, name="pad"):
    """Extend each axis by `pads`: first the counts at the beginnings, then those at the ends.

    `mode`: `constant` writes `value` (converted to the element type), `reflect` mirrors without
    repeating the border, `edge` repeats it. Any dtype. Errors: the length of `pads` is not
    twice the rank, a negative pad (that is `slice`), a reflection longer than its axis, an
    edge or reflection of an empty axis. MIGraphX `pad`.

    ```mlir
    %0 = "migraphx.pad"(%x) {mode = "constant", pads = array<i64: 0, 1, 0, 2>, value = 0.0 : f64}
           : (tensor<2x3xf32>) -> tensor<2x6xf32>
    ```
    """

    raw = True
    input: Operand
    out: Result
    mode = attr.enum(("constant", "reflect", "edge"), "constant")
    pads = attr.ints()
    value = attr.float_(0.0)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        rank = o.input.rank
        check(
            len(o.pads) == 2 * rank,
            lambda: f"pads expected {2 * rank} numbers for rank {rank}, got {len(o.pads)}",
        )
        check(
            all(p >= 0 for p in o.pads),
            lambda: f"pads expected no negative number, got {show_list(o.pads)}",
        )
        dims: list[int] = []
        for axis, extent in enumerate(o.input.dims):
            before, after = o.pads[axis], o.pads[rank + axis]
            if o.mode != "constant" and before + after:
                limit = add_dim(extent, -1) if o.mode == "reflect" else extent
                most = max(before, after)
                check(
                    can_hold([extent], [1]) and (o.mode == "edge" or at_most(most, limit)),
                    lambda axis=axis, limit=limit, most=most: (
                        f"mode {o.mode} of dim {axis} "
                        f"expected pads up to {max(limit, 0)}, got {most}"
                    ),
                )
            dims.append(DYN if extent == DYN else extent + before + after)
        return o.input.with_dims(dims)

    @staticmethod
    def reference(
        x: np.ndarray, *, mode: str = "constant", pads: Sequence[int], value: float = 0.0
    ) -> np.ndarray:
        widths = list(zip(pads[: x.ndim], pads[x.ndim :], strict=True))
        if mode == "constant":
            out = np.full(
                [b + d + a for d, (b, a) in zip(x.shape, widths, strict=True)],
                np.array(value).astype(x.dtype),
                x.dtype,
            )
            out[tuple(slice(b, b + d) for d, (b, _) in zip(x.shape, widths, strict=True))] = x
            return out
        return np.pad(x, widths, mode=mode) if x.ndim else x  # type: ignore[call-overload]

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(2, 3), pads=[0, 1, 0, 2]),
            example(floats(2, 3), pads=[1, 0, 2, 3], value=-1.5),
            example(ints(2, 3), pads=[1, 0, 0, 1], value=7.0),
            example(floats(3, 4), mode="reflect", pads=[2, 1, 1, 3]),
            example(floats(3, 4), mode="edge", pads=[4, 0, 1, 2]),
            example(floats(), pads=[]),
            example(floats(0, 2), pads=[1, 0, 1, 0], value=float("-inf")),
        ]


class FixedPad(Op, name="fixed_pad"):
    """Pad a tensor of dynamic dims with zeros, at the ends, to its largest dims.

    `max_dims` states them; MIGraphX takes them from the range of its type. Any dtype.
    MIGraphX `fixed_pad`.

    ```mlir
    %0 = "migraphx.fixed_pad"(%x) {max_dims = array<i64: 8, 3>}
           : (tensor<?x3xf32>) -> tensor<8x3xf32>
    ```
    """

    raw = True
    input: Operand
    out: Result
    max_dims = attr.ints()

    @staticmethod
    def infer(o: InferView) -> TensorType:
        fits = len(o.max_dims) == o.input.rank and all(
            at_most(d, m) for d, m in zip(o.input.dims, o.max_dims, strict=True)
        )
        check(
            fits,
            lambda: (
                f"max_dims expected at least {show_dims(o.input.dims)}, got {show_list(o.max_dims)}"
            ),
        )
        return o.input.with_dims(o.max_dims)

    @staticmethod
    def reference(x: np.ndarray, *, max_dims: Sequence[int]) -> np.ndarray:
        out = np.zeros(max_dims, x.dtype)
        out[tuple(slice(0, d) for d in x.shape)] = x
        return out

    @staticmethod
    def examples() -> list[Example]:
        return [example(floats(2, 3), max_dims=[4, 3]), example(floats(0), max_dims=[2])]


class Concat(Op, name="concat"):
    """Put `inputs` one after the other along `axis`.

    Any one dtype; dims are equal except at `axis`; rank 1 or more. MIGraphX `concat`.

    ```mlir
    %0 = "migraphx.concat"(%x, %y) {axis = 1 : i64}
           : (tensor<2x3xf32>, tensor<2x?xf32>) -> tensor<2x?xf32>
    ```
    """

    raw = True
    inputs: Sequence[Operand]
    out: Result
    axis = attr.int_(0)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check(o.inputs, "expected at least 1 operand, got 0")
        first = o.inputs[0]
        check_same_dtype(o.inputs)
        axis = normalize_axis(o.axis, first.rank)
        dims = list(first.dims)
        for i, t in enumerate(o.inputs[1:], 1):
            check_rank(t, first.rank, f"operand {i}")
            for d in range(first.rank):
                if d == axis:
                    dims[d] = DYN if DYN in (dims[d], t.dims[d]) else dims[d] + t.dims[d]
                    continue
                merged = merge_dim(dims[d], t.dims[d])
                check(
                    merged is not None,
                    lambda i=i, d=d, t=t: (
                        f"operand {i} expected extent {dims[d]} at dim {d}, got {t.dims[d]}"
                    ),
                )
                assert merged is not None
                dims[d] = merged
        return first.with_dims(dims)

    @staticmethod
    def reference(inputs: Sequence[np.ndarray], *, axis: int = 0) -> np.ndarray:
        return np.concatenate(list(inputs), axis_of(axis, inputs[0].ndim))

    @staticmethod
    def examples() -> list[Example]:
        return [
            example([floats(2, 3), floats(2, 1)], axis=1),
            example([floats(2, 3), floats(4, 3), floats(0, 3)], axis=0),
            example([ints(2, 3, 4), ints(2, 3, 2)], axis=-1),
            example([floats(3)], axis=0),
        ]
