"""Generators and buffers: random numbers, the run-time range, allocate and fill."""

from __future__ import annotations

import secrets

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import RunError, ShapeError
from mgx_mlir.core.op import HostOp, InferView, Op, Operand, Result, check
from mgx_mlir.core.shapes import DYN, TensorType, can_hold, merge_dim, one_element, show_dims
from mgx_mlir.dialects.migraphx.axes import check_index_type, check_rank, check_same_dtype
from mgx_mlir.dialects.migraphx.pointwise_base import ANY, FLOAT, INTEGER, NUMBER, check_dtype
from mgx_mlir.dialects.migraphx.samples import Example, example, floats, generator, i64, ints


def _check_one(t: TensorType, what: str) -> None:
    """Check that it is a scalar: rank 0, or one element."""
    check(
        one_element(t),
        lambda: f"{what} expected one element, got dims {show_dims(t.dims)}",
    )


class RandomSeed(HostOp, name="random_seed", pure=False):
    """A seed, different in every run.

    Rank 0, of the integer type `dtype`. MIGraphX `random_seed` (there dims {1}).

    ```mlir
    %0 = "migraphx.random_seed"() {dtype = ui64} : () -> tensor<ui64>
    ```
    """

    out: Result
    dtype = attr.type_("uint64")

    @staticmethod
    def infer(o: InferView) -> TensorType:
        found = TensorType(o.dtype, ())
        check_dtype(found, INTEGER, "dtype")
        return found

    @staticmethod
    def reference(*, dtype: DType) -> np.ndarray:
        return np.array(secrets.randbits(32)).astype(dtype.np)

    @staticmethod
    def examples() -> list[Example]:
        return []  # no two results are equal


class RandomUniform(Op, name="random_uniform"):
    """Uniform random numbers of a seed: floats in [0, 1), integers over the non-negative range.

    `seed` is one integer, `shape` gives dims and type of the result (float or integer) and its
    values are not read. The numbers are those of the Mersenne Twister mt19937, two 32-bit draws
    for a float. MIGraphX `random_uniform`.

    ```mlir
    %0 = "migraphx.random_uniform"(%seed, %x) : (tensor<ui64>, tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
    """

    raw = True
    seed: Operand
    shape: Operand
    out: Result

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_index_type(o.seed, "operand 'seed'")
        _check_one(o.seed, "operand 'seed'")
        check_dtype(o.shape, NUMBER, "operand 'shape'")
        return o.shape

    @staticmethod
    def reference(seed: np.ndarray, shape: np.ndarray) -> np.ndarray:
        generator = np.random.MT19937()
        generator._legacy_seeding(int(seed.reshape(-1)[0]) & 0xFFFFFFFF)
        dtype = dtypes.from_numpy(shape.dtype)
        bits = 64 if dtype.is_float or dtype.bits == 64 else 32
        draws = generator.random_raw(shape.size * bits // 32).astype(np.uint64)
        if dtype.is_float:
            low, high = draws.reshape(-1, 2).T.astype(np.float64)
            unit = (low + high * 2.0**32) / 2.0**64
            found = np.minimum(unit, np.nextafter(1, 0)).astype(dtype.np)
            # values rounded up to 1 become the largest value below 1
            one = found.astype(np.float64) >= 1
            bits_of_one = np.array(1, dtype.np).view(f"u{dtype.size}")
            found[one] = (bits_of_one - 1).astype(f"u{dtype.size}").view(dtype.np)
        else:
            if bits == 64:
                first, second = draws.reshape(-1, 2).T
                draws = (first << np.uint64(32)) | second
            wanted = dtype.bits - (1 if dtype.is_signed else 0)
            found = (draws >> np.uint64(bits - wanted)).astype(dtype.np)
        return found.reshape(shape.shape)

    @staticmethod
    def examples() -> list[Example]:
        seed = np.array(7, np.uint64)
        kinds = (np.float32, np.float64, np.float16, np.int32, np.uint8, np.int64)
        return [example(seed, np.zeros((2, 3), k)) for k in kinds]


class Multinomial(Op, name="multinomial"):
    """Samples of categories: the first category whose cumulative weight exceeds r times the last.

    `cdf` {batch, categories} holds running sums of weights, `randoms` {batch, samples} numbers
    r in [0, 1), both of one float type; the result {batch, samples} is of the integer (or float)
    type `dtype`. Errors: other ranks, batches that differ. MIGraphX `multinomial`.

    ```mlir
    %0 = "migraphx.multinomial"(%cdf, %r) {dtype = i32}
           : (tensor<2x5xf32>, tensor<2x8xf32>) -> tensor<2x8xi32>
    ```
    """

    cdf: Operand
    randoms: Operand
    out: Result
    dtype = attr.type_("int32")

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_same_dtype([o.cdf, o.randoms])
        check_dtype(o.cdf, FLOAT)
        check_rank(o.cdf, 2, "cdf")
        check_rank(o.randoms, 2, "randoms")
        rows = merge_dim(o.cdf.dims[0], o.randoms.dims[0])
        check(
            rows is not None,
            lambda: f"expected equal batches, got {o.cdf.dims[0]} and {o.randoms.dims[0]}",
        )
        check(can_hold([o.cdf.dims[1]], [1]), "cdf expected at least one category, got none")
        check_dtype(TensorType(o.dtype, ()), NUMBER, "dtype")
        assert rows is not None
        return TensorType(o.dtype, (rows, o.randoms.dims[1]))

    @staticmethod
    def reference(cdf: np.ndarray, randoms: np.ndarray, *, dtype: DType) -> np.ndarray:
        target = randoms * cdf[:, -1:]
        rows: list[np.ndarray] = [
            np.searchsorted(c, t, side="right") for c, t in zip(cdf, target, strict=True)
        ]
        found = np.array(rows).reshape(randoms.shape)
        return np.minimum(found, cdf.shape[1] - 1).astype(dtype.np)

    @staticmethod
    def examples() -> list[Example]:
        cdf = np.cumsum(np.abs(floats(2, 5)), axis=1)
        r = generator(0, (2, 9)).random((2, 9)).astype(np.float32)
        return [
            example(cdf, r),
            example(cdf, r, dtype=dtypes.INT64),
            example(np.array([[0.0, 0, 1, 1]], np.float32), np.array([[0, 0.5]], np.float32)),
        ]


class DynamicRange(Op, name="dynamic_range"):
    """start, start + delta, ... up to but without limit; rank 1, of a dynamic extent.

    The three are one element each, of one type (float or integer); the result has it. Errors at
    run time: delta is 0, more than `max_output` elements. MIGraphX `dynamic_range`; ONNX Range.

    ```mlir
    %0 = "migraphx.dynamic_range"(%start, %limit, %delta)
           : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
    ```
    """

    start: Operand
    limit: Operand
    delta: Operand
    out: Result
    max_output = attr.int_(2**31 - 1)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_same_dtype([o.start, o.limit, o.delta])
        check_dtype(o.start, NUMBER)
        for name in ("start", "limit", "delta"):
            _check_one(getattr(o, name), f"operand '{name}'")
        start, limit, delta = (o.const(name) for name in ("start", "limit", "delta"))
        if start is not None and limit is not None and np.array_equal(start, limit):
            return TensorType(o.start.dtype, (0,))  # for any delta
        if start is None or limit is None or delta is None:
            return TensorType(o.start.dtype, (DYN,))
        try:
            return TensorType(o.start.dtype, (range_count(start, limit, delta, o.max_output),))
        except RunError as e:
            raise ShapeError(e.message) from None

    @staticmethod
    def reference(
        start: np.ndarray, limit: np.ndarray, delta: np.ndarray, *, max_output: int
    ) -> np.ndarray:
        n = range_count(start, limit, delta, max_output)
        first, step = start.reshape(-1)[0], delta.reshape(-1)[0]
        return first + np.arange(n).astype(start.dtype) * step

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(i64(0).reshape(()), i64(10).reshape(()), i64(3).reshape(())),
            example(i64(10), i64(0), i64(-4)),
            example(i64(3), i64(0), i64(1)),
            example(
                ints(low=-9, high=9), ints(low=9, high=30, seed=1), ints(low=1, high=5, seed=2)
            ),
            example(*(np.array(v, np.float32) for v in (0, 1, 0.25))),
            example(*(np.array(v, np.float64) for v in (1, -1, -0.3))),
        ]


def range_count(start: np.ndarray, limit: np.ndarray, delta: np.ndarray, most: int) -> int:
    """Return the number of elements of a range: max(0, ceil((limit - start) / delta))."""
    low, high, step = (v.reshape(-1)[0].item() for v in (start, limit, delta))
    if step == 0:
        raise RunError("delta expected a number other than 0, got 0")
    if isinstance(step, int):
        n = max(0, -((low - high) // step))
    else:
        quotient = (high - low) / step
        if not np.isfinite(quotient):
            raise RunError(f"expected finite bounds, got {low} to {high} by {step}")
        n = max(0, int(np.ceil(quotient)))
    if n > most:
        raise RunError(f"expected at most {most} elements, got {n}")
    return n


class Allocate(Op, name="allocate"):
    """A buffer whose values are unspecified; zeros in the reference.

    Its type is `shape`; or `buf_type` (f32 where unset) with the dims that the operand `dims`
    (i64, rank 1) holds at run time. Errors: both or neither given. MIGraphX `allocate`.

    ```mlir
    %0 = "migraphx.allocate"() {shape = tensor<2x3xf32>} : () -> tensor<2x3xf32>
    %1 = "migraphx.allocate"(%dims) {buf_type = f16} : (tensor<2xi64>) -> tensor<?x?xf16>
    ```
    """

    dims: Operand | None
    out: Result
    shape = attr.tensor_type(optional=True)
    buf_type = attr.type_(optional=True)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check(
            (o.dims is None) != (o.shape is None),
            "expected one of the attribute 'shape' and the operand 'dims'",
        )
        if o.shape is not None:
            check(o.shape.is_static, lambda: f"shape expected static dims, got {o.shape}")
            check(
                o.buf_type is None or o.buf_type is o.shape.dtype,
                lambda: f"buf_type expected {o.shape.dtype.mlir}, got {o.buf_type.mlir}",
            )
            return o.shape
        check_index_type(o.dims, "operand 'dims'")
        check_rank(o.dims, 1, "operand 'dims'")
        rank = o.dims.dims[0]
        check(rank != DYN, "operand 'dims' expected a static extent: it is the result's rank")
        known = o.const("dims")
        dims = (DYN,) * rank if known is None else tuple(int(d) for d in known)
        check(all(d == DYN or d >= 0 for d in dims), lambda: f"expected extents, got {list(dims)}")
        return TensorType(o.buf_type or dtypes.FLOAT, dims)

    @staticmethod
    def reference(
        dims: np.ndarray | None = None,
        *,
        shape: TensorType | None = None,
        buf_type: DType | None = None,
    ) -> np.ndarray:
        if shape is not None:
            return np.zeros(shape.dims, shape.dtype.np)
        assert dims is not None
        return np.zeros([int(d) for d in dims], (buf_type or dtypes.FLOAT).np)

    @staticmethod
    def examples() -> list[Example]:
        return [
            example(None, shape=TensorType(dtypes.FLOAT, (2, 3))),
            example(i64(2, 0, 3), buf_type=dtypes.HALF),
        ]


class Fill(Op, name="fill"):
    """A tensor of the buffer's type filled with one value.

    `value` is one element of the buffer's type (any). MIGraphX `fill` (there in place).

    ```mlir
    %0 = "migraphx.fill"(%value, %buffer) : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    ```
    """

    raw = True
    value: Operand
    buffer: Operand
    out: Result

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_same_dtype([o.value, o.buffer])
        check_dtype(o.value, ANY)
        _check_one(o.value, "operand 'value'")
        return o.buffer

    @staticmethod
    def reference(value: np.ndarray, buffer: np.ndarray) -> np.ndarray:
        return np.full(buffer.shape, value.reshape(-1)[0])

    @staticmethod
    def examples() -> list[Example]:
        kinds = (np.float32, np.float16, np.float64, np.int32, np.uint8)
        found = [example(np.array(3.5, k), np.zeros((2, 3), k)) for k in kinds]
        return [*found, example(floats(), np.zeros((3, 2), np.float32))]
