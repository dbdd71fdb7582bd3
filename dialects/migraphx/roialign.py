"""ROI align: pooling of image regions at fractional coordinates."""

from __future__ import annotations

import math

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core.op import InferView, Op, Operand, Result, check
from mgx_mlir.core.shapes import TensorType, compatible, merge_dim
from mgx_mlir.dialects.migraphx.axes import check_index_type, check_rank, check_same_dtype
from mgx_mlir.dialects.migraphx.samples import Example, example, floats, i64

_FEW = 64  # most samples of a bin along an axis that are computed at once
# most samples of a bin along an axis: no finite region of an image needs as many
MOST_SAMPLES = 1 << 15


class RoiAlign(Op, name="roialign"):
    """Pool each region of `input` (N, C, H, W) to output_height x output_width bins.

    `rois` (regions, 4) holds x1, y1, x2, y2 before `spatial_scale`, of the input's float type;
    `batch_indices` (regions) is the image of each. A bin is sampled at `sampling_ratio` x
    `sampling_ratio` points (0: as many as it has pixels, rounded up) by bilinear interpolation;
    `mode` average, or max, which takes the largest weighted corner as ONNX Runtime does. half_pixel
    shifts the region by half a pixel; output_half_pixel does not, and makes each side at least 1.
    Result: (regions, C, output_height, output_width). MIGraphX `roialign`.

    ```mlir
    %0 = "migraphx.roialign"(%x, %rois, %batch) {coordinate_transformation_mode = "half_pixel",
           mode = "average", output_height = 2 : i64, output_width = 2 : i64,
           sampling_ratio = 2 : i64, spatial_scale = 1.0 : f64}
           : (tensor<1x3x8x8xf32>, tensor<5x4xf32>, tensor<5xi64>) -> tensor<5x3x2x2xf32>
    ```
    """

    input: Operand
    rois: Operand
    batch_indices: Operand
    out: Result
    coordinate_transformation_mode = attr.enum(("output_half_pixel", "half_pixel"), "half_pixel")
    mode = attr.enum(("average", "max"), "average")
    output_height = attr.int_(1)
    output_width = attr.int_(1)
    sampling_ratio = attr.int_(0)
    spatial_scale = attr.float_(1.0)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        check_rank(o.input, 4, "input")
        check_rank(o.rois, 2, "rois")
        check_rank(o.batch_indices, 1, "batch_indices")
        dtype = check_same_dtype([o.input, o.rois])
        check(dtype.is_float, lambda: f"input expected a float type, got {dtype.mlir}")
        check_index_type(o.batch_indices, "batch_indices")
        check(
            compatible(o.rois.dims[1], 4),
            lambda: f"rois expected 4 numbers each, got {o.rois.dims[1]}",
        )
        count = merge_dim(o.rois.dims[0], o.batch_indices.dims[0])
        check(
            count is not None,
            lambda: (
                f"batch_indices expected {o.rois.dims[0]} elements as the rois, "
                f"got {o.batch_indices.dims[0]}"
            ),
        )
        check(
            o.output_height >= 1 and o.output_width >= 1,
            lambda: f"output expected at least 1 x 1, got {o.output_height} x {o.output_width}",
        )
        check(
            o.sampling_ratio >= 0,
            lambda: f"sampling_ratio expected at least 0, got {o.sampling_ratio}",
        )
        assert count is not None
        return o.input.with_dims((count, o.input.dims[1], o.output_height, o.output_width))

    @staticmethod
    def reference(
        x: np.ndarray,
        rois: np.ndarray,
        batch_indices: np.ndarray,
        *,
        coordinate_transformation_mode: str = "half_pixel",
        mode: str = "average",
        output_height: int = 1,
        output_width: int = 1,
        sampling_ratio: int = 0,
        spatial_scale: float = 1.0,
    ) -> np.ndarray:
        half = coordinate_transformation_mode == "half_pixel"
        out = np.zeros((len(rois), x.shape[1], output_height, output_width), x.dtype)
        scaled = rois * x.dtype.type(spatial_scale) - x.dtype.type(0.5 if half else 0)
        for r, (x1, y1, x2, y2) in enumerate(scaled):
            width, height = x2 - x1, y2 - y1
            if not half:
                width, height = max(width, 1), max(height, 1)
            image = x[min(max(int(batch_indices[r]), 0), x.shape[0] - 1)]
            rows = _samples(y1, height, output_height, sampling_ratio)
            columns = _samples(x1, width, output_width, sampling_ratio)
            if max(rows.shape[1], columns.shape[1]) <= _FEW:
                out[r] = _pool(image, rows, columns, mode)
                continue
            for i, j in np.ndindex(output_height, output_width):
                out[r, :, i, j] = _bin(image, rows[i], columns[j], mode)
        return out

    @staticmethod
    def examples() -> list[Example]:
        x = floats(2, 3, 8, 10)
        rois = np.array(
            [[1, 1, 6, 5], [0.5, 2.25, 3, 7.75], [-2, -3, 4, 4], [5, 5, 12, 11], [3, 3, 3.2, 3.1]],
            np.float32,
        )
        batch = i64(0, 1, 1, 0, 1)
        size = {"output_height": 3, "output_width": 2}
        return [
            example(x, rois, batch, **size),
            example(x, rois, batch, **size, sampling_ratio=2),
            example(x, rois, batch, **size, mode="max", sampling_ratio=2),
            example(x, rois, batch, **size, coordinate_transformation_mode="output_half_pixel"),
            example(x, rois * 2, batch, **size, spatial_scale=0.5),
            example(x, rois[:0], batch[:0], **size),
        ]


def _samples(start: np.floating, size: np.floating, bins: int, ratio: int) -> np.ndarray:
    """Sample coordinates along one axis, (bins, samples)."""
    step = size / bins
    most = min(float(step), float(MOST_SAMPLES)) if step > 0 else 0
    count = ratio if ratio > 0 else math.ceil(most)
    inner = (np.arange(count) + 0.5) * step / max(count, 1)
    return start + np.arange(bins)[:, None] * step + inner


def _bin(image: np.ndarray, row: np.ndarray, column: np.ndarray, mode: str) -> np.ndarray:
    """Compute one bin of many samples, (C,). Samples outside of the image are 0."""
    y, x = (at[_corners(at, n)[3]] for at, n in ((row, image.shape[1]), (column, image.shape[2])))
    count, seen = row.size * column.size, y.size * x.size
    if not seen:
        channels: int = image.shape[0]
        return np.zeros(channels)
    found = _pool(image, y[None], x[None], mode)[:, 0, 0]
    if mode == "max":
        return found if seen == count else np.maximum(found, 0)
    return found * seen / count


def _corners(at: np.ndarray, extent: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (low index, high index, weight of the high one, inside) of coordinates."""
    inside = (at >= -1) & (at <= extent)  # NaN is outside
    at = np.where(inside, np.maximum(at, 0), 0)
    low = np.floor(at).astype(np.int64)
    over = low >= extent - 1
    low = np.where(over, extent - 1, low)
    high = np.where(over, extent - 1, low + 1)
    return low, high, np.where(over, 0.0, at - low), inside


def _pool(image: np.ndarray, rows: np.ndarray, columns: np.ndarray, mode: str) -> np.ndarray:
    """Sample image (C, H, W) at rows (bins, samples) x columns (bins, samples)."""
    y0, y1, wy, in_y = _corners(rows, image.shape[1])
    x0, x1, wx, in_x = _corners(columns, image.shape[2])
    inside = in_y[:, :, None, None] & in_x[None, None]
    wide_y, wide_x = wy[:, :, None, None], wx[None, None]
    parts: list[np.ndarray] = []
    for y, row_weight in ((y0, 1 - wide_y), (y1, wide_y)):
        for x, column_weight in ((x0, 1 - wide_x), (x1, wide_x)):
            corner = row_weight * column_weight * image[:, y[:, :, None, None], x[None, None]]
            parts.append(np.where(inside, corner, 0))
    # each part: (C, bin row, sample row, bin column, sample column)
    if mode == "max":
        best = np.maximum.reduce(parts)
        if best.shape[2] == 0 or best.shape[4] == 0:
            return np.zeros((best.shape[0], best.shape[1], best.shape[3]))
        return best.max((2, 4))
    total = np.add.reduce(parts)
    return total.sum((2, 4)) / max(total.shape[2] * total.shape[4], 1)
