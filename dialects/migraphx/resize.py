"""Resizing of images, or tensors of any rank, by interpolation along axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core.op import InferView, Op, Operand, Result, check
from mgx_mlir.core.shapes import DYN, TensorType, compatible
from mgx_mlir.dialects.migraphx.axes import check_rank, show_list
from mgx_mlir.dialects.migraphx.samples import Example, example, floats, i64, ints

NEAREST = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
f32 = np.float32


def scaled_extent(extent: int, scale: float) -> int:
    """Return floor(extent * scale) in f32, the type of scales."""
    return math.floor(f32(extent) * f32(scale))


class Resize(Op, name="resize"):
    """Resample `input` to other extents, each axis by itself.

    The extents are `sizes` (0 keeps an extent), or floor(extent * scale) of `scales`, or come at
    run time in the operand `target`: 1-D of static length rank, integers are sizes (a negative one
    keeps an extent), floats are scales; then every extent is dynamic. `mode` nearest picks one
    element (`nearest_mode` rounds its coordinate), linear and cubic weigh 2 and 4
    (`cubic_coeff_a`), and take any number type; nearest takes any dtype.
    `coordinate_transformation_mode` maps a position of the result to the input. Of ONNX's further
    modes: `exclude_outside` drops the weights of elements outside, `antialias` widens the filter
    when shrinking (linear, cubic), `roi` (starts, then ends, of all axes) and `extrapolation_value`
    belong to tf_crop_and_resize. Errors: no extents or several, lists that do not fit the rank.
    MIGraphX `resize`; the last four are ours.

    ```mlir
    %0 = "migraphx.resize"(%x) {scales = array<f64: 1.0, 1.0, 2.0, 2.0>, sizes = array<i64>,
           nearest_mode = "floor", mode = "linear", coordinate_transformation_mode = "half_pixel",
           cubic_coeff_a = -0.75 : f64} : (tensor<1x3x4x4xf32>) -> tensor<1x3x8x8xf32>
    ```
    """

    input: Operand
    target: Operand | None
    out: Result
    scales = attr.floats(())
    sizes = attr.ints(())
    nearest_mode = attr.enum(NEAREST, "floor")
    mode = attr.enum(("nearest", "linear", "cubic"), "nearest")
    coordinate_transformation_mode = attr.enum(COORDINATES, "half_pixel")
    cubic_coeff_a = attr.float_(-0.75)
    exclude_outside = attr.bool_(False)
    antialias = attr.bool_(False)
    roi = attr.floats(())
    extrapolation_value = attr.float_(0.0)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        rank = o.input.rank
        check(
            o.mode == "nearest" or not o.input.dtype.is_bool,
            lambda: f"mode {o.mode} expected a number type, got i1",
        )
        check(not o.antialias or o.mode != "nearest", "antialias expected mode linear or cubic")
        crop = o.coordinate_transformation_mode == "tf_crop_and_resize"
        check(
            len(o.roi) == (2 * rank if crop else 0),
            lambda: (
                f"roi expected {2 * rank if crop else 0} numbers for "
                f"{o.coordinate_transformation_mode}, got {len(o.roi)}"
            ),
        )
        if o.target is not None:
            check(
                not o.sizes and not o.scales,
                "expected either attributes 'sizes' or 'scales' or operand 'target', got both",
            )
            check_rank(o.target, 1, "target")
            check(
                not o.target.dtype.is_bool,
                "target expected integer sizes or float scales, got i1",
            )
            check(
                compatible(o.target.dims[0], rank),
                lambda: f"target expected {rank} elements, got {o.target.dims[0]}",
            )
            return o.input.with_dims([DYN] * rank)
        check(
            bool(o.sizes) != bool(o.scales) or rank == 0,
            "requires one of attributes 'sizes' and 'scales', or operand 'target'",
        )
        if o.sizes:
            _check_length("sizes", o.sizes, rank)
            check(
                all(s >= 0 for s in o.sizes),
                lambda: f"sizes expected no negative number, got {show_list(o.sizes)}",
            )
            return o.input.with_dims(s or d for s, d in zip(o.sizes, o.input.dims, strict=True))
        _check_length("scales", o.scales, rank)
        check(
            all(s > 0 for s in o.scales),
            lambda: f"scales expected positive numbers, got {show_list(o.scales)}",
        )
        return o.input.with_dims(
            DYN if d == DYN else scaled_extent(d, s)
            for d, s in zip(o.input.dims, o.scales, strict=True)
        )

    @staticmethod
    def reference(
        x: np.ndarray,
        target: np.ndarray | None = None,
        *,
        scales: Sequence[float] = (),
        sizes: Sequence[int] = (),
        nearest_mode: str = "floor",
        mode: str = "nearest",
        coordinate_transformation_mode: str = "half_pixel",
        cubic_coeff_a: float = -0.75,
        exclude_outside: bool = False,
        antialias: bool = False,
        roi: Sequence[float] = (),
        extrapolation_value: float = 0.0,
    ) -> np.ndarray:
        if target is not None:
            if target.dtype.kind == "f":
                scales = [float(v) for v in target]
            else:
                sizes = [d if v < 0 else int(v) for v, d in zip(target, x.shape, strict=True)]
        if sizes:
            keeps = target is None
            extents = [s or (d if keeps else 0) for s, d in zip(sizes, x.shape, strict=True)]
            factors = [f32(e) / f32(max(d, 1)) for e, d in zip(extents, x.shape, strict=True)]
        else:
            extents = [scaled_extent(d, s) for d, s in zip(x.shape, scales, strict=True)]
            factors = [f32(s) for s in scales]
        if math.prod(extents) == 0:
            return np.zeros(extents, x.dtype)
        whole = mode == "nearest"
        out = x if whole else x.astype(np.result_type(x.dtype, np.float32))
        outside: list[np.ndarray] = []
        for axis, (extent, factor) in enumerate(zip(extents, factors, strict=True)):
            length = x.shape[axis]
            if extent == length and factor == 1 and not roi:
                outside.append(np.zeros(extent, np.bool_))
                continue
            span = (roi[axis], roi[axis + x.ndim]) if roi else (0.0, 1.0)
            at = coordinates(coordinate_transformation_mode, extent, length, factor, span)
            outside.append((at < 0) | (at > length - 1))
            if whole:
                out = np.take(out, nearest(at, length, nearest_mode), axis)
                continue
            kernel = Cubic(cubic_coeff_a) if mode == "cubic" else Linear()
            shrink = min(float(factor), 1.0) if antialias else 1.0
            table = weights(at, length, kernel, shrink, exclude_outside, out.dtype)
            out = weighed(table, out, axis)
        if roi:
            mask = np.zeros(extents, np.bool_)
            for axis, gone in enumerate(outside):
                mask |= gone.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
            out = np.where(mask, np.array(extrapolation_value).astype(out.dtype), out)
        if x.dtype.kind in "iu" and not whole:
            info = np.iinfo(x.dtype)
            return np.clip(np.trunc(out), info.min, info.max).astype(x.dtype)
        return out

    @staticmethod
    def examples() -> list[Example]:
        x = floats(1, 2, 4, 5)
        up, down = [1, 1, 2, 3], [1, 1, 0.6, 0.5]
        out = [
            example(x, mode=mode, scales=scales, coordinate_transformation_mode=c)
            for mode in ("nearest", "linear", "cubic")
            for scales in (up, down)
            for c in COORDINATES[:6]
        ]
        out += [
            example(x, scales=scales, nearest_mode=n, coordinate_transformation_mode=c)
            for scales in (up, down)
            for n in NEAREST
            for c in ("half_pixel", "asymmetric", "align_corners")
        ]
        return [
            *out,
            example(x, sizes=[1, 2, 7, 3], mode="linear"),
            example(x, sizes=[0, 0, 1, 9], mode="cubic", cubic_coeff_a=-0.5),
            example(x, sizes=[1, 2, 7, 3], mode="cubic", exclude_outside=True),
            example(x, scales=down, mode="linear", antialias=True),
            example(x, scales=down, mode="cubic", antialias=True),
            example(
                x,
                sizes=[1, 2, 3, 4],
                mode="linear",
                coordinate_transformation_mode="tf_crop_and_resize",
                roi=[0, 0, 0.4, -0.2, 1, 1, 0.9, 1.1],
                extrapolation_value=10.0,
            ),
            example(x, i64(1, 2, 8, 5), mode="linear"),
            example(x, i64(-1, -1, 8, 5), mode="linear"),
            example(x, np.array([1, 1, 1.5, 2], np.float32)),
            example(ints(3, 4, dtype=np.uint8, low=0, high=200), scales=[2, 2]),
            example(floats(6), scales=[0.5]),
            example(floats(2, 3, 4), scales=[1, 2, 2], mode="linear"),
            example(floats(1, 2, 4, 4, dtype=np.float16), scales=[1, 1, 2, 2], mode="linear"),
            example(floats(1, 0, 4), scales=[1, 1, 2]),
        ]


def _check_length(name: str, values: Sequence[float], rank: int) -> None:
    check(
        len(values) == rank,
        lambda: f"{name} expected {rank} numbers for rank {rank}, got {len(values)}",
    )


def coordinates(
    mode: str, extent: int, length: int, scale: np.float32, span: tuple[float, float]
) -> np.ndarray:
    """Map each position 0 .. extent-1 of the result to the input, in f32 as in ONNX."""
    at = np.arange(extent, dtype=f32)
    half = f32(0.5)
    if mode == "asymmetric":
        return at / scale
    if mode == "align_corners":
        return at * f32(length - 1) / f32(extent - 1) if extent > 1 else np.zeros(extent, f32)
    if mode == "pytorch_half_pixel" and extent <= 1:
        return np.zeros(extent, f32)
    if mode == "tf_half_pixel_for_nn":
        return (at + half) / scale
    if mode == "tf_crop_and_resize":
        start, end = f32(span[0]), f32(span[1])
        last = f32(length - 1)
        if extent > 1:
            return start * last + at * (end - start) * last / f32(extent - 1)
        return np.full(extent, half * (start + end) * last, f32)
    if mode == "half_pixel_symmetric":
        # keep the centre where the exact extent is not whole
        adjustment = f32(extent) / (scale * f32(length))
        offset = f32(length) / f32(2) * (f32(1) - adjustment)
        return offset + (at + half) / scale - half
    return (at + half) / scale - half


def nearest(at: np.ndarray, length: int, mode: str) -> np.ndarray:
    """Round coordinates to indices of existing elements."""
    low = np.floor(at)
    if mode == "floor":
        found = low
    elif mode == "ceil":
        found = np.ceil(at)
    elif mode == "round_prefer_floor":
        found = np.ceil(at - f32(0.5))
    else:
        found = np.floor(at + f32(0.5))
    return np.clip(found, 0, length - 1).astype(np.int64)


class Linear:
    """The triangle: weight 1 - |distance|."""

    support = 1

    def __call__(self, t: np.ndarray) -> np.ndarray:
        return np.maximum(1 - np.abs(t), 0)


class Cubic:
    """Keys' cubic convolution with coefficient `a`."""

    support = 2

    def __init__(self, a: float) -> None:
        self.a = a

    def __call__(self, t: np.ndarray) -> np.ndarray:
        a, t = self.a, np.abs(t)
        near = ((a + 2) * t - (a + 3)) * t * t + 1
        far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
        return np.where(t <= 1, near, np.where(t < 2, far, 0.0))


def weighed(table: np.ndarray, x: np.ndarray, axis: int) -> np.ndarray:
    """Return (result, input) weights times `x` along an axis; elements of weight 0 are not read.

    So an infinity or NaN only reaches results in which it has a weight.
    """
    zero = np.zeros((), x.dtype)
    special = ~np.isfinite(x)
    out = np.tensordot(table, np.where(special, zero, x), (1, axis))
    if special.any():
        given = np.moveaxis(np.where(special, x, zero), axis, 0)
        for column, part in zip(table.T, given, strict=True):
            weight = column.reshape(-1, *[1] * part.ndim)
            out = out + np.where((weight != 0) & (part != 0), weight * part, zero)
    return np.moveaxis(out, 0, axis)


def weights(
    at: np.ndarray,
    length: int,
    kernel: Linear | Cubic,
    shrink: float,
    exclude: bool,
    dtype: np.dtype,
) -> np.ndarray:
    """Return the (result, input) weights of one axis.

    Elements outside have the border's value, unless `exclude` drops them. `shrink` < 1 stretches
    the filter (antialiasing); its weights are scaled to sum 1.
    """
    exact = at.astype(np.float64)
    reach = kernel.support / shrink
    first = np.floor(exact - reach).astype(np.int64) + 1
    count = 2 * math.ceil(reach)
    places = first[:, None] + np.arange(count)
    w = kernel((places - exact[:, None]) * shrink)
    if exclude:
        w = np.where((places >= 0) & (places < length), w, 0.0)
    if exclude or shrink < 1:
        total = w.sum(1, keepdims=True)
        w = np.divide(w, total, out=np.zeros_like(w), where=total != 0)
    table = np.zeros((len(at), length))
    np.add.at(table, (np.arange(len(at))[:, None], np.clip(places, 0, length - 1)), w)
    return table.astype(dtype)
