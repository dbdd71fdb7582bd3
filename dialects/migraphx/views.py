"""Ops that give a tensor other dims or another order without changing its elements."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core.op import InferView, Operand, Result, ViewOp, check
from mgx_mlir.core.shapes import (
    DYN,
    TensorType,
    compatible,
    is_multiple,
    product,
    show_dims,
    standard_strides,
)
from mgx_mlir.dialects.migraphx.axes import (
    axis_of,
    check_index_type,
    check_rank,
    normalize_axes,
    reshape_dims,
    run_time_dims,
    show_list,
)
from mgx_mlir.dialects.migraphx.samples import Example, example, floats, i64, ints


class View(ViewOp):
    """Base of the views of `input`."""

    input: Operand
    out: Result

    @staticmethod
    def strides(o: InferView, ins: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        return ins[0]


class NopView(View):
    """Base of the views that keep dims and elements; only the memory order may change."""


class ReshapeOp(View):
    """Base of the views with other dims and the same elements in row-major order."""


class Identity(NopView, name="identity"):
    """`input` itself. Any dims, any dtype. MIGraphX `identity`.

    ```mlir
    %0 = "migraphx.identity"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
    """

    @staticmethod
    def infer(o: InferView) -> TensorType:
        return o.input

    @staticmethod
    def reference(x: np.ndarray) -> np.ndarray:
        return x

    @staticmethod
    def examples() -> list[Example]:
        return [example(floats(2, 3)), example(ints(4)), example(floats())]


class Contiguous(NopView, name="contiguous"):
    """`input` in standard row-major memory order. Any dims, any dtype. MIGraphX `contiguous`.

    Values do not change; lowering drops it, because strides are not part of the types.

    ```mlir
    %0 = "migraphx.contiguous"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
    """

    @staticmethod
    def infer(o: InferView) -> TensorType:
        return o.input

    @staticmethod
    def strides(o: InferView, ins: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        return standard_strides(o.input.dims)

    @staticmethod
    def reference(x: np.ndarray) -> np.ndarray:
        return np.array(x, order="C")

    @staticmethod
    def examples() -> list[Example]:
        return [example(floats(3, 2).T), example(floats()), example(ints(0, 2))]


class Layout(NopView, name="layout"):
    """`input` stored in the memory order that `permutation` gives; dims do not change.

    Any dims, any dtype. `permutation` lists the axes from the slowest to the fastest.
    Lowering drops it, because strides are not part of the types. MIGraphX `layout`.

    ```mlir
    %0 = "migraphx.layout"(%x) {permutation = array<i64: 0, 2, 3, 1>}
           : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
    ```
    """

    permutation = attr.ints()

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_permutation(o.permutation, o.input.rank)
        return o.input

    @staticmethod
    def strides(o: InferView, ins: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        inner = standard_strides([o.input.dims[p] for p in o.permutation])
        out = [0] * len(inner)
        for axis, stride in zip(o.permutation, inner, strict=True):
            out[axis] = stride
        return tuple(out)

    @staticmethod
    def reference(x: np.ndarray, *, permutation: Sequence[int]) -> np.ndarray:
        return x

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(1, 3, 4, 2), permutation=[0, 2, 3, 1]),
            example(floats(), permutation=[]),
        ]


def check_permutation(permutation: Sequence[int], rank: int) -> None:
    """Raise ShapeError unless `permutation` names each axis of this rank once."""
    check(
        sorted(permutation) == list(range(rank)),
        lambda: (
            f"permutation expected each of 0 to {rank - 1} once for rank {rank}, "
            f"got {show_list(permutation)}"
            if rank
            else f"permutation expected [] for rank 0, got {show_list(permutation)}"
        ),
    )


class Transpose(View, name="transpose"):
    """Permute the axes: axis i of the result is axis `permutation[i]` of `input`.

    Any dims, any dtype. Error: `permutation` is not one of the input's axes. MIGraphX `transpose`.

    ```mlir
    %0 = "migraphx.transpose"(%x) {permutation = array<i64: 1, 0>}
           : (tensor<2x3xf32>) -> tensor<3x2xf32>
    ```
    """

    permutation = attr.ints()

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_permutation(o.permutation, o.input.rank)
        return o.input.with_dims(o.input.dims[p] for p in o.permutation)

    @staticmethod
    def strides(o: InferView, ins: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        permutation: Sequence[int] = o.permutation
        return tuple(ins[0][p] for p in permutation)

    @staticmethod
    def reference(x: np.ndarray, *, permutation: Sequence[int]) -> np.ndarray:
        return x.transpose(permutation)

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(2, 3), permutation=[1, 0]),
            example(floats(2, 3, 4, 5), permutation=[0, 2, 3, 1]),
            example(ints(2, 0, 3), permutation=[2, 1, 0]),
            example(floats(), permutation=[]),
        ]


class Reshape(ReshapeOp, name="reshape"):
    """Give `input` other dims with the same elements in row-major order.

    Any dtype. In `dims` 0 copies the input's extent at that position and one -1 takes what is
    left. With the operand `dims_tensor` (1-D, integer, static length) the dims, in which 0 and
    -1 mean the same, come at run time, and the attribute stays empty; the builder may state
    more precise results. There 0 is an extent with `allowzero`, and without where `input` has no
    elements and the copied extent would ask for some. Errors: element counts differ, two -1, 0
    beyond the input's rank, `allowzero` without the operand.
    MIGraphX `reshape`; the operand and `allowzero` are ours.

    ```mlir
    %0 = "migraphx.reshape"(%x) {dims = array<i64: 0, -1>} : (tensor<?x3x4xf32>) -> tensor<?x12xf32>
    %1 = "migraphx.reshape"(%x, %d) {dims = array<i64>}
           : (tensor<?x3x4xf32>, tensor<2xi64>) -> tensor<?x?xf32>
    ```
    """

    dims_tensor: Operand | None
    dims = attr.ints(())
    allowzero = attr.bool_(optional=True)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check(
            not o.allowzero or o.dims_tensor is not None,
            "attribute 'allowzero' expected operand 'dims_tensor'",
        )
        if o.dims_tensor is not None:
            check(not o.dims, "expected either attribute 'dims' or operand 'dims_tensor', got both")
            check_rank(o.dims_tensor, 1, "operand 'dims_tensor'")
            check_index_type(o.dims_tensor, "operand 'dims_tensor'")
            n = o.dims_tensor.dims[0]
            check(n != DYN, "operand 'dims_tensor' expected a static length, got ?")
            check_result_rank(o, n)
            return o.input.with_dims([DYN] * n)
        check_result_rank(o, len(o.dims))
        return o.input.with_dims(reshape_dims(o.dims, o.input.dims))

    @staticmethod
    def strides(o: InferView, ins: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        if o.dims_tensor is not None:
            out = o.results[0].dims if o.results else [DYN] * o.dims_tensor.dims[0]
            return standard_strides(out)
        return standard_strides(reshape_dims(o.dims, o.input.dims))

    @staticmethod
    def reference(
        x: np.ndarray,
        dims_tensor: np.ndarray | None = None,
        *,
        dims: Sequence[int] = (),
        allowzero: bool | None = None,
    ) -> np.ndarray:
        if dims_tensor is None:
            return x.reshape(reshape_dims(dims, x.shape))
        wanted = [int(d) for d in dims_tensor]
        return x.reshape(run_time_dims(wanted, x.shape, allowzero=bool(allowzero)))

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(2, 3, 4), dims=[6, 4]),
            example(floats(2, 3, 4), dims=[0, -1]),
            example(floats(2, 3, 4), dims=[-1, 1, 2]),
            example(floats(1, 1), dims=[]),
            example(floats(), dims=[1, 1]),
            example(ints(0, 3), dims=[0, 6]),
            example(floats(2, 3, 4), i64(4, -1)),
            example(floats(2, 3, 4), i64(0, 12)),
            example(floats(1, 2, 0, 3), i64(2, 0)),
            example(floats(2, 0, 3), i64(0, 0, 6), allowzero=True),
            example(floats(2, 3, 4), i64(4, -1), allowzero=True),
            example(floats(3, 0), i64(0, 0, 4)),
        ]


def check_result_rank(o: InferView, rank: int) -> None:
    """Check that the stated result has as many dims as the attribute asks for."""
    if o.results:
        stated = o.results[0].rank
        check(
            stated == rank,
            lambda: f"number of dims ({rank}) does not match result rank ({stated})",
        )


class ReshapeLazy(ReshapeOp, name="reshape_lazy"):
    """A reshape that only changes strides. MIGraphX `reshape_lazy`.

    Dims as `reshape`; static dims. Values are those of `reshape`; `strides` raises ShapeError
    where the input's strides do not allow it.

    ```mlir
    %0 = "migraphx.reshape_lazy"(%x) {dims = array<i64: 6, 4>}
           : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
    ```
    """

    dims = attr.ints(())

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_result_rank(o, len(o.dims))
        return o.input.with_dims(reshape_dims(o.dims, o.input.dims))

    @staticmethod
    def strides(o: InferView, ins: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        dims = reshape_dims(o.dims, o.input.dims)
        found = lazy_strides(o.input.dims, ins[0], dims)
        check(
            found is not None,
            lambda: (
                f"dims {show_dims(o.input.dims)} with strides {show_list(ins[0])} "
                f"cannot become {show_dims(dims)} without a copy"
            ),
        )
        assert found is not None
        return found

    @staticmethod
    def reference(x: np.ndarray, *, dims: Sequence[int] = ()) -> np.ndarray:
        return x.reshape(reshape_dims(dims, x.shape))

    @staticmethod
    def examples() -> list[Example]:
        return [example(floats(2, 3, 4), dims=[6, 4]), example(floats(2, 3), dims=[0, 3, 1])]


def lazy_strides(
    dims: Sequence[int], strides: Sequence[int], wanted: Sequence[int]
) -> tuple[int, ...] | None:
    """Strides that show a buffer of (dims, strides) as `wanted`; None where it takes a copy.

    Both dims lists are cut into the shortest runs of equal element count; a run can be
    reshaped when its input axes are laid out one after the other.
    """
    if DYN in (*dims, *strides, *wanted):
        return None
    if 0 in dims:
        return standard_strides(wanted)
    source = [(d, s) for d, s in zip(dims, strides, strict=True) if d != 1]
    out: list[int] = []
    i = j = 0
    while j < len(wanted):
        if wanted[j] == 1:
            # an axis of one element: the stride that continues what is right of it
            out.append(source[i][0] * source[i][1] if i < len(source) else 1)
            j += 1
            continue
        run, count, first, start = wanted[j], 1, j + 1, i
        while count != run:
            if count < run:
                if i == len(source):
                    return None
                count *= source[i][0]
                i += 1
            elif first == len(wanted):
                return None
            else:
                run *= wanted[first]
                first += 1
        part = source[start:i]
        for (_, left), (extent, right) in itertools.pairwise(part):
            if left != extent * right:
                return None
        step = part[-1][1]
        run_strides = [step * s for s in standard_strides(wanted[j:first])]
        out += run_strides
        j = first
    return tuple(out)


class Flatten(ReshapeOp, name="flatten"):
    """Collapse to two dims: the extents before `axis`, and those from it on.

    Any dtype; `axis` in [-rank, rank]; a scalar becomes {1, 1}. MIGraphX `flatten`.

    ```mlir
    %0 = "migraphx.flatten"(%x) {axis = 1 : i64} : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
    ```
    """

    axis = attr.int_(1)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        rank = o.input.rank
        check(
            -rank <= o.axis <= max(rank, 1),
            lambda: f"axis ({o.axis}) is out of range for rank {rank}, expected {-rank} to {rank}",
        )
        axis = min(axis_of(o.axis, rank), rank)
        dims = o.input.dims
        return o.input.with_dims([product(dims[:axis]), product(dims[axis:])])

    @staticmethod
    def strides(o: InferView, ins: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        return standard_strides(Flatten.infer(o).dims)

    @staticmethod
    def reference(x: np.ndarray, *, axis: int = 1) -> np.ndarray:
        axis = min(axis_of(axis, x.ndim), x.ndim)
        rows = int(np.prod(x.shape[:axis], dtype=np.int64))
        return x.reshape(rows, int(np.prod(x.shape[axis:], dtype=np.int64)))

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(2, 3, 4), axis=1),
            example(floats(2, 3, 4), axis=0),
            example(floats(2, 3, 4), axis=3),
            example(floats(2, 3, 4), axis=-1),
            example(floats(5)),
            example(floats()),
            example(floats(2, 0, 4), axis=2),
        ]


class Squeeze(ReshapeOp, name="squeeze"):
    """Drop the axes `axes`, whose extent is 1; all static extents of 1 where `axes` is empty.

    Any dtype. A dynamic extent named in `axes` must be 1 at run time. MIGraphX `squeeze`.

    ```mlir
    %0 = "migraphx.squeeze"(%x) {axes = array<i64: 1>} : (tensor<2x1x4xf32>) -> tensor<2x4xf32>
    ```
    """

    axes = attr.ints(())

    @staticmethod
    def infer(o: InferView) -> TensorType:
        gone = squeezed(o.axes, o.input.dims)
        for a in gone:
            check(
                compatible(o.input.dims[a], 1),
                lambda a=a: f"dim {a} expected extent 1, got {o.input.dims[a]}",
            )
        return o.input.with_dims(d for i, d in enumerate(o.input.dims) if i not in gone)

    @staticmethod
    def strides(o: InferView, ins: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        gone = squeezed(o.axes, o.input.dims)
        return tuple(s for i, s in enumerate(ins[0]) if i not in gone)

    @staticmethod
    def reference(x: np.ndarray, *, axes: Sequence[int] = ()) -> np.ndarray:
        return np.squeeze(x, squeezed(axes, x.shape))

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(1, 3, 1, 2)),
            example(floats(1, 3, 1, 2), axes=[0]),
            example(floats(1, 3, 1, 2), axes=[-2]),
            example(floats(1, 1)),
            example(ints(1, 0), axes=[0]),
            example(floats()),
        ]


def squeezed(axes: Sequence[int], dims: Sequence[int]) -> tuple[int, ...]:
    """Return the axes that a squeeze drops: those named, else all of extent 1."""
    if axes:
        return normalize_axes(axes, len(dims))
    return tuple(i for i, d in enumerate(dims) if d == 1)


class Unsqueeze(ReshapeOp, name="unsqueeze"):
    """Insert axes of extent 1 at `axes`, counted in the result.

    With `steps` the inserted axis k takes extent `steps[k]` off the input axis that follows
    it: {12} with axes 0 and steps 3 is {3, 4}. Any dtype. Errors: axes repeat or are out of
    range, a step does not divide. MIGraphX `unsqueeze`.

    ```mlir
    %0 = "migraphx.unsqueeze"(%x) {axes = array<i64: 0>, steps = array<i64>}
           : (tensor<3xf32>) -> tensor<1x3xf32>
    %1 = "migraphx.unsqueeze"(%y) {axes = array<i64: 0>, steps = array<i64: 3>}
           : (tensor<12xf32>) -> tensor<3x4xf32>
    ```
    """

    axes = attr.ints()
    steps = attr.ints(())

    @staticmethod
    def infer(o: InferView) -> TensorType:
        return o.input.with_dims(unsqueezed(o.input.dims, o.axes, o.steps))

    @staticmethod
    def strides(o: InferView, ins: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        dims = unsqueezed(o.input.dims, o.axes, o.steps)
        axes = normalize_axes(o.axes, len(dims))
        out: list[int] = []
        for i in reversed(range(len(dims))):
            at = i - sum(a < i for a in axes)  # the input axis that dim i belongs to
            if i not in axes:
                out.append(ins[0][at])
            elif at == len(ins[0]):
                out.append(1)
            else:
                # one step of the new axis skips all that lies right of it in the input axis
                extent, stride = dims[i + 1], out[-1]
                out.append(DYN if DYN in (extent, stride) else extent * stride)
        return tuple(reversed(out))

    @staticmethod
    def reference(x: np.ndarray, *, axes: Sequence[int], steps: Sequence[int] = ()) -> np.ndarray:
        return x.reshape(unsqueezed(x.shape, axes, steps))

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(3), axes=[0]),
            example(floats(3, 4), axes=[0, 2, -1]),
            example(floats(), axes=[0]),
            example(floats(12), axes=[0], steps=[3]),
            example(floats(2, 12, 5), axes=[1, 2], steps=[3, 2]),
            example(ints(0, 2), axes=[1]),
        ]


def unsqueezed(dims: Sequence[int], axes: Sequence[int], steps: Sequence[int]) -> tuple[int, ...]:
    """Return the dims that `unsqueeze` gives."""
    rank = len(dims) + len(axes)
    where = normalize_axes(axes, rank)
    check(
        not steps or len(steps) == len(axes),
        lambda: f"expected as many steps as axes ({len(axes)}), got {len(steps)}",
    )
    check(all(s >= 1 for s in steps), lambda: f"steps expected at least 1, got {show_list(steps)}")
    left, at = list(dims), 0
    out: list[int] = []
    for i in range(rank):
        if i not in where:
            out.append(left[at])
            at += 1
            continue
        step = steps[where.index(i)] if steps else 1
        if step != 1:
            check(
                at < len(left),
                lambda i=i, step=step: f"step ({step}) at axis {i} has no input axis to split",
            )
            check(
                is_multiple(left[at], step),
                lambda at=at, step=step: f"step ({step}) does not divide dim {at} ({left[at]})",
            )
            if left[at] != DYN:
                left[at] //= step
        out.append(step)
    return tuple(out)
