"""Ops that repeat a tensor along axes (stride 0), and the one that reads extents at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core.dtypes import INT64
from mgx_mlir.core.op import BroadcastOp, HostOp, InferView, Operand, Result, ViewOp, check
from mgx_mlir.core.shapes import (
    DYN,
    TensorType,
    broadcast_dims,
    broadcasts_to,
    compatible,
    one_element,
    show_dims,
)
from mgx_mlir.dialects.migraphx.axes import check_index_type, check_rank, out_dims, show_list
from mgx_mlir.dialects.migraphx.samples import Example, example, floats, i64, ints


def broadcast_strides(
    dims: Sequence[int], strides: Sequence[int], wanted: Sequence[int]
) -> tuple[int, ...]:
    """Return strides of a right-aligned broadcast: 0 for repeated extents."""
    missing = len(wanted) - len(dims)
    own = [
        0 if d == 1 and w != 1 else s
        for d, s, w in zip(dims, strides, wanted[missing:], strict=True)
    ]
    return (0,) * missing + tuple(own)


class Broadcast(BroadcastOp, name="broadcast"):
    """Place the axes of `input` from `axis` on in larger dims; repeat along all others.

    Any dtype. The result dims are `out_lens`, or those of the operand `ref`, or the min, max pairs
    of `out_dyn_dims` (a pair of two numbers is a dynamic extent). The extents of `input` equal
    those of the result from `axis` on. Errors: no result dims given, axes beyond them, extents
    differ. MIGraphX `broadcast`.

    ```mlir
    %0 = "migraphx.broadcast"(%bias) {axis = 1 : i64, out_lens = array<i64: 1, 8, 4, 4>,
           out_dyn_dims = array<i64>} : (tensor<8xf32>) -> tensor<1x8x4x4xf32>
    ```
    """

    input: Operand
    ref: Operand | None
    out: Result
    axis = attr.int_(0)
    out_lens = attr.ints(())
    out_dyn_dims = attr.ints(())

    @staticmethod
    def infer(o: InferView) -> TensorType:
        wanted = out_dims(o.out_lens, o.out_dyn_dims)
        if o.ref is not None:
            check(not o.out_lens, "expected either attribute 'out_lens' or operand 'ref', got both")
            wanted = o.ref.dims
        check(wanted is not None, "requires attribute 'out_lens' or operand 'ref'")
        assert wanted is not None
        full: Sequence[int] = wanted
        axis: int = o.axis
        check(
            o.ref is not None or DYN not in full,
            "out_dyn_dims with a dynamic extent requires operand 'ref'",
        )
        check(
            o.axis >= 0 and o.axis + o.input.rank <= len(full),
            lambda: (
                f"input of rank {o.input.rank} at axis {o.axis} does not fit "
                f"result rank {len(full)}"
            ),
        )
        check(
            all(compatible(d, full[axis + i]) for i, d in enumerate(o.input.dims)),
            lambda: (
                f"input dims {show_dims(o.input.dims)} at axis {o.axis} do not match "
                f"result dims {show_dims(full)}"
            ),
        )
        out = list(full)
        for i, d in enumerate(o.input.dims):
            if out[o.axis + i] == DYN:
                out[o.axis + i] = d
        return o.input.with_dims(out)

    @staticmethod
    def strides(o: InferView, ins: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        rank = Broadcast.infer(o).rank
        out = [0] * rank
        out[o.axis : o.axis + o.input.rank] = ins[0]
        return tuple(out)

    @staticmethod
    def reference(
        x: np.ndarray,
        ref: np.ndarray | None = None,
        *,
        axis: int = 0,
        out_lens: Sequence[int] = (),
        out_dyn_dims: Sequence[int] = (),
    ) -> np.ndarray:
        dims = (out_lens or out_dyn_dims[::2]) if ref is None else ref.shape
        return np.broadcast_to(x.reshape(x.shape + (1,) * (len(dims) - axis - x.ndim)), dims)

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(3), axis=1, out_lens=[2, 3, 4]),
            example(floats(3, 4), axis=1, out_lens=[2, 3, 4]),
            example(floats(3), floats(2, 3), axis=1),
            example(floats(), out_lens=[2, 2]),
            example(ints(0), axis=0, out_lens=[0, 2]),
        ]


class Multibroadcast(BroadcastOp, name="multibroadcast"):
    """numpy's broadcast of the first of `inputs`: right-aligned, extents of 1 are repeated.

    With one operand the result dims are `out_lens` (none: the operand's own), or the min, max
    pairs of `out_dyn_dims`; with more they are the common dims of all. Any dtype; the dtypes of
    the further operands do not matter. A dynamic extent is at run time either the result's
    or 1. Error: the dims do not broadcast. MIGraphX `multibroadcast`.

    ```mlir
    %0 = "migraphx.multibroadcast"(%x) {out_lens = array<i64: 2, 3>, out_dyn_dims = array<i64>}
           : (tensor<3xf32>) -> tensor<2x3xf32>
    %1 = "migraphx.multibroadcast"(%x, %y) {out_lens = array<i64>, out_dyn_dims = array<i64>}
           : (tensor<3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
    ```
    """

    inputs: Sequence[Operand]
    out: Result
    out_lens = attr.ints(())
    out_dyn_dims = attr.ints(())

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check(o.inputs, "expected at least 1 operand, got 0")
        first = o.inputs[0]
        wanted = out_dims(o.out_lens, o.out_dyn_dims)
        if len(o.inputs) > 1:
            check(
                not o.out_lens, "expected either attribute 'out_lens' or several operands, got both"
            )
            common = broadcast_dims(*(t.dims for t in o.inputs))
            if wanted is not None and len(wanted) == len(common):
                common = tuple(w if c == DYN else c for c, w in zip(common, wanted, strict=True))
            return first.with_dims(common)
        check(
            wanted is None or DYN not in wanted,
            "out_dyn_dims with a dynamic extent requires a second operand",
        )
        if wanted is None:
            wanted = ()
            check(first.rank == 0, "requires attribute 'out_lens' or a second operand")
        fits = len(wanted) >= first.rank and all(
            broadcasts_to(d, w)
            for d, w in zip(first.dims, wanted[len(wanted) - first.rank :], strict=True)
        )
        check(
            fits,
            lambda: f"input dims {show_dims(first.dims)} do not broadcast to {show_dims(wanted)}",
        )
        return first.with_dims(wanted)

    @staticmethod
    def strides(o: InferView, ins: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        return broadcast_strides(o.inputs[0].dims, ins[0], Multibroadcast.infer(o).dims)

    @staticmethod
    def reference(
        inputs: Sequence[np.ndarray],
        *,
        out_lens: Sequence[int] = (),
        out_dyn_dims: Sequence[int] = (),
    ) -> np.ndarray:
        if len(inputs) > 1:
            return np.broadcast_to(inputs[0], np.broadcast_shapes(*(x.shape for x in inputs)))
        return np.broadcast_to(inputs[0], out_lens or out_dyn_dims[::2])

    @staticmethod
    def examples() -> list[Example]:
        return [
            example([floats(3)], out_lens=[2, 3]),
            example([floats(2, 1, 3)], out_lens=[5, 2, 4, 3]),
            example([floats(3), floats(2, 1)]),
            example([floats(1, 3), ints(2, 1), floats(4, 1, 1)]),
            example([floats()], out_lens=[]),
            example([floats()], out_lens=[2]),
            example([floats(1)], out_lens=[0, 1]),
        ]


class Scalar(BroadcastOp, name="scalar"):
    """Repeat one element to the dims `scalar_bcst_dims` (all strides 0). MIGraphX `scalar`.

    Any dtype. Error: the number of elements of `input` is not 1.

    ```mlir
    %0 = "migraphx.scalar"(%x) {scalar_bcst_dims = array<i64: 2, 3>}
           : (tensor<f32>) -> tensor<2x3xf32>
    ```
    """

    input: Operand
    out: Result
    scalar_bcst_dims = attr.ints()

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check(
            one_element(o.input),
            lambda: f"input expected 1 element, got {o.input.elements}",
        )
        check(
            all(d >= 0 for d in o.scalar_bcst_dims),
            lambda: (
                f"scalar_bcst_dims expected no negative extent, got {show_list(o.scalar_bcst_dims)}"
            ),
        )
        return o.input.with_dims(o.scalar_bcst_dims)

    @staticmethod
    def strides(o: InferView, ins: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        return (0,) * len(o.scalar_bcst_dims)

    @staticmethod
    def reference(x: np.ndarray, *, scalar_bcst_dims: Sequence[int]) -> np.ndarray:
        return np.broadcast_to(x.reshape(()), scalar_bcst_dims)

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(), scalar_bcst_dims=[2, 3]),
            example(floats(1), scalar_bcst_dims=[4]),
            example(ints(1, 1), scalar_bcst_dims=[0]),
            example(floats(1), scalar_bcst_dims=[]),
        ]


class BroadcastWithDims(ViewOp, name="broadcast_with_dims"):
    """Broadcast `input` with the extents in `dims`, both ways as ONNX Expand does.

    `dims` is 1-D, integer, of static length; the result's rank is the larger one. An extent of
    the input that is neither 1 nor dynamic is known in the result, all others are dynamic; the
    builder may state more. Any dtype. MIGraphX `broadcast_with_dims`.

    ```mlir
    %0 = "migraphx.broadcast_with_dims"(%x, %dims)
           : (tensor<1x3xf32>, tensor<2xi64>) -> tensor<?x3xf32>
    ```
    """

    input: Operand
    dims: Operand
    out: Result

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_rank(o.dims, 1, "operand 'dims'")
        check_index_type(o.dims, "operand 'dims'")
        n = o.dims.dims[0]
        check(n != DYN, "operand 'dims' expected a static length, got ?")
        rank = max(n, o.input.rank)
        known = (1,) * (rank - o.input.rank) + o.input.dims
        given = rank - n  # leading axes beyond `dims` keep the input's extent
        wanted = o.const("dims")
        if wanted is not None and DYN not in known:
            return o.input.with_dims(broadcast_dims(known, [int(d) for d in wanted]))
        return o.input.with_dims(
            d if i < given or d not in (1, DYN) else DYN for i, d in enumerate(known)
        )

    @staticmethod
    def strides(o: InferView, ins: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        wanted = o.results[0].dims if o.results else BroadcastWithDims.infer(o).dims
        return broadcast_strides(o.input.dims, ins[0], wanted)

    @staticmethod
    def reference(x: np.ndarray, dims: np.ndarray) -> np.ndarray:
        return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(int(d) for d in dims)))

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(3), i64(2, 3)),
            example(floats(3, 1), i64(2, 1, 6)),
            example(floats(2, 3, 4), i64(1)),
            example(floats(), i64(2)),
            example(floats(), np.zeros(0, np.int64)),
            example(ints(1), i64(0)),
        ]


class BroadcastForDot(ViewOp, name="broadcast_for_dot"):
    """Broadcast all but the last two axes of `input` against those of `ref`.

    Any dtype; both have rank 2 or more. MIGraphX `broadcast_for_dot`.

    ```mlir
    %0 = "migraphx.broadcast_for_dot"(%a, %b)
           : (tensor<3x4xf32>, tensor<?x4x5xf32>) -> tensor<?x3x4xf32>
    ```
    """

    input: Operand
    ref: Operand
    out: Result

    @staticmethod
    def infer(o: InferView) -> TensorType:
        for t in (o.input, o.ref):
            check(t.rank >= 2, lambda t=t: f"expected operands of rank 2 or more, got {t}")
        batch = broadcast_dims(o.input.dims[:-2], o.ref.dims[:-2])
        return o.input.with_dims(batch + o.input.dims[-2:])

    @staticmethod
    def strides(o: InferView, ins: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        return broadcast_strides(o.input.dims, ins[0], BroadcastForDot.infer(o).dims)

    @staticmethod
    def reference(x: np.ndarray, ref: np.ndarray) -> np.ndarray:
        batch = np.broadcast_shapes(x.shape[:-2], ref.shape[:-2])
        return np.broadcast_to(x, batch + x.shape[-2:])

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(3, 4), floats(2, 4, 5)),
            example(floats(2, 1, 3, 4), floats(5, 4, 6)),
            example(floats(3, 4), floats(4, 2)),
        ]


class DimensionsOf(HostOp, name="dimensions_of"):
    """The extents of axes `start` to `end` (exclusive; 0: the rank) of `input` at run time, as i64.

    Any dims, any dtype. Error: the range does not lie in the rank. MIGraphX `dimensions_of`.

    ```mlir
    %0 = "migraphx.dimensions_of"(%x) {start = 0 : i64, end = 2 : i64}
           : (tensor<?x3x4xf32>) -> tensor<2xi64>
    ```
    """

    raw = True
    input: Operand
    out: Result
    start = attr.int_(0)
    end = attr.int_(0)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        end = o.end or o.input.rank
        check(
            0 <= o.start <= end <= o.input.rank,
            lambda: (
                f"start ({o.start}) to end ({end}) is not a range of axes of rank {o.input.rank}"
            ),
        )
        return TensorType(INT64, (end - o.start,))

    @staticmethod
    def reference(x: np.ndarray, *, start: int = 0, end: int = 0) -> np.ndarray:
        return np.array(x.shape[start : end or x.ndim], np.int64)

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(floats(2, 3, 4), start=0, end=3),
            example(floats(2, 3, 4), start=1),
            example(floats(2, 3, 4), start=1, end=2),
            example(floats()),
            example(floats(0, 2)),
        ]
