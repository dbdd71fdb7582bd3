"""rewrite_resize: resizes as views where they repeat or skip elements, else as gathers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Op
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.resize import Resize, coordinates, nearest
from mgx_mlir.rewrite.passes import PatternPass, option
from mgx_mlir.rewrite.pattern import Pattern, Replacement, Rewriter, no_match, pattern

f32 = np.float32


@pattern(Resize)
def rewrite_nearest_resize(op: Resize, rw: Rewriter) -> Replacement:
    """nearest resize(x) -> reshape(broadcast(reshape(x))), or step(slice(x)), else gather(x)

    An axis that repeats each element is broadcast, one that takes every n-th is sliced; any
    other is gathered unless `affine-only`.
    """
    if op.mode != "nearest":
        return no_match("mode {} interpolates", op.mode)
    axes = _resized(op)
    if isinstance(axes, str):
        return no_match(axes)
    places = [
        (axis, nearest(at, TensorType.of(op.input).dims[axis], op.nearest_mode))
        for axis, at in axes
    ]
    repeats: dict[int, int] = {}
    slices: dict[int, tuple[int, int, int]] = {}
    rest: list[tuple[int, np.ndarray]] = []
    for axis, where in places:
        n = TensorType.of(op.input).dims[axis]
        if (times := _repetition(where, n)) is not None:
            repeats[axis] = times
        elif (found := _progression(where)) is not None:
            slices[axis] = found
        else:
            rest.append((axis, where))
    if rest and rw.options.affine_only:
        return no_match("axis {} is no repetition or step (affine-only is on)", rest[0][0])
    x = _sliced(rw, op.input, slices)
    for axis, where in rest:
        x = rw.op("gather", x, rw.literal(where), axis=axis)
    return _repeated(rw, x, repeats)


@pattern(Resize)
def rewrite_linear_resize(op: Resize, rw: Rewriter) -> Replacement:
    """linear resize(x) -> gather(x, lower) * (1 - t) + gather(x, upper) * t, axis by axis"""
    if op.mode != "linear":
        return no_match("mode {} is not linear", op.mode)
    if rw.options.affine_only:
        return no_match("it is no view (affine-only is on)")
    if op.antialias or op.exclude_outside:
        return no_match("antialias or exclude_outside: more than two weights")
    t = TensorType.of(op.input)
    if not t.dtype.is_float:
        return no_match("{} truncates, so the last bit could differ", t.dtype)
    axes = _resized(op)
    if isinstance(axes, str):
        return no_match(axes)
    wide = dtypes.FLOAT if t.dtype.is_low_precision else t.dtype
    x = op.input if wide is t.dtype else rw.op("convert", op.input, target_type=wide)
    for axis, at in axes:
        dims = TensorType.of(x).dims
        exact = at.astype(np.float64)
        low = np.floor(exact)
        upper = exact - low
        ends = [np.clip(low + i, 0, dims[axis] - 1).astype(np.int64) for i in (0, 1)]
        parts: list[ir.Value] = []
        for where, weight in zip(ends, (1 - upper, upper), strict=True):
            part = rw.op("gather", x, rw.literal(where), axis=axis)
            out = TensorType.of(part).dims
            factor = rw.op("broadcast", rw.literal(weight, wide), axis=axis, out_lens=list(out))
            parts.append(rw.op("mul", part, factor))
        x = rw.op("add", *parts)
    return x if wide is t.dtype else rw.op("convert", x, target_type=t.dtype)


def _resized(op: Op) -> list[tuple[int, np.ndarray]] | str:
    """Return each resized axis with its elements' input coordinates; or why they are unknown."""
    t, out = TensorType.of(op.input), TensorType.of(op.out)
    if op.target is not None or not (t.is_known and out.is_known):
        return "extents or scales are known at run time only"
    if op.roi:
        return "it crops (roi)"
    if 0 in t.dims or 0 in out.dims:
        return "an extent is 0"
    axes: list[tuple[int, np.ndarray]] = []
    for axis, (n, extent) in enumerate(zip(t.dims, out.dims, strict=True)):
        scale = f32(op.scales[axis]) if op.scales else f32(extent) / f32(n)
        if extent == n and scale == 1:
            continue
        mode = op.coordinate_transformation_mode
        axes.append((axis, coordinates(mode, extent, n, scale, (0.0, 1.0))))
    return axes


def _repetition(where: np.ndarray, n: int) -> int | None:
    """Return the number of repetitions of each of `n` elements; None if it is not uniform."""
    times, rest = divmod(len(where), n)
    even = not rest and np.array_equal(where, np.arange(len(where)) // max(times, 1))
    return times if even else None


def _progression(where: np.ndarray) -> tuple[int, int, int] | None:
    """Return (first, end, step) of an arithmetic progression, else None."""
    steps = np.diff(where)
    step = int(steps[0]) if len(steps) else 1
    if step < 1 or (steps != step).any():
        return None
    return int(where[0]), int(where[-1]) + 1, step


def _sliced(rw: Rewriter, x: ir.Value, slices: dict[int, tuple[int, int, int]]) -> ir.Value:
    if not slices:
        return x
    axes = list(slices)
    starts, ends, steps = (list(v) for v in zip(*slices.values(), strict=True))
    x = rw.op("slice", x, axes=axes, starts=starts, ends=ends)
    if any(s > 1 for s in steps):
        x = rw.op("step", x, axes=axes, steps=steps)
    return x


def _repeated(rw: Rewriter, x: ir.Value, repeats: dict[int, int]) -> ir.Value:
    """Repeat each element along the axes in `repeats`."""
    dims = TensorType.of(x).dims
    many = {a: k for a, k in repeats.items() if k > 1}
    if not many:
        return x
    if all(dims[a] == 1 for a in many):
        return rw.multibroadcast(x, [many.get(a, d) for a, d in enumerate(dims)])
    split = _flat((d, 1) if a in many else (d,) for a, d in enumerate(dims))
    wide = _flat((d, many[a]) if a in many else (d,) for a, d in enumerate(dims))
    x = rw.multibroadcast(rw.op("reshape", x, dims=split), wide)
    return rw.op("reshape", x, dims=[d * many.get(a, 1) for a, d in enumerate(dims)])


def _flat(parts: Iterable[Sequence[int]]) -> list[int]:
    return [d for part in parts for d in part]


@dataclass(frozen=True)
class RewriteResize(PatternPass):
    """Resizing by integer factors as views; with `affine-only` off by gathers too.

    Views move and merge with others. Gathers are slower than the lowering of resize, which
    blends in one loop for each axis: pipelines have `affine-only`.
    """

    name: ClassVar[str] = "rewrite_resize"
    patterns: ClassVar[tuple[Pattern, ...]] = (rewrite_nearest_resize, rewrite_linear_resize)
    affine_only: bool = option(False, "only rewrite resizes that are views")
