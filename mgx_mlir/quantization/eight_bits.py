"""Dots and convolutions in 8 bits: operands quantised and dequantised, by static or dynamic
ranges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.analysis.repeated import repeated
from mgx_mlir.programs.build import Builder
from mgx_mlir.quantization.calibrate import Calibration
from mgx_mlir.quantization.ranges import Range
from mgx_mlir.quantization.sites import Place, Site

_TINY = 1e-30  # scale of an array of zeros
_LEAST_CHANNEL = 1e-5  # lower bound of the magnitude of a channel in smoothing


@dataclass(frozen=True)
class Scheme:
    """Rounding of operands to 8 bits."""

    # type of activations: int8, uint8 or fp8e4m3fn; weights are int8 or the f8 type
    dtype: DType = dtypes.INT8
    per_channel: bool = True  # scale for each output channel of a weight, else one for all
    asymmetric: bool = False  # activations have a zero point; never for f8
    # the mean error that rounding the weights adds to each output channel is subtracted
    bias_correction: bool = False
    # exponent in [0, 1] that moves large activations of a channel to its weights; None: off.
    # Depthwise convolutions use 1. Source: Xiao et al., SmoothQuant, 2022.
    smooth: float | None = None
    # weights of consecutive dots or convolutions are balanced per channel (`equalise`)
    equalize: bool = False

    @property
    def weight_dtype(self) -> DType:
        """Type of the weights, signed, so that they need no zero point."""
        return dtypes.INT8 if self.dtype.is_integer else self.dtype


@dataclass(frozen=True)
class Parameters:
    """Scale and zero point of one value; `axis` if there is one scale for each index of it."""

    scale: np.ndarray
    zero: int = 0
    axis: int | None = None


def span_of(dtype: DType) -> tuple[float, float]:
    """Return the least and the greatest quantised value.

    -128 is left out, so that a value and its opposite are rounded the same way.
    """
    if dtype.is_float:
        top = float(dtypes.float_info(dtype.np).max)
        return -top, top
    return (0.0, 255.0) if dtype.is_unsigned else (-127.0, 127.0)


def activation_parameters(found: Range, dtype: DType, *, asymmetric: bool) -> Parameters:
    """Return scale and zero point for a range, widened to include 0."""
    low, high = min(found[0], 0.0), max(found[1], 0.0)
    least, most = span_of(dtype)
    if dtype.is_float or not (asymmetric or dtype.is_unsigned):
        return Parameters(np.array(max(max(-low, high) / most, _TINY), np.float32))
    least = float(dtype.lowest())
    scale = max((high - low) / (most - least), _TINY)
    zero = int(np.clip(round(least - low / scale), least, most))
    return Parameters(np.array(scale, np.float32), zero)


def weight_parameters(w: np.ndarray, axis: int | None, dtype: DType) -> Parameters:
    """Return the scales of constant weights: symmetric, by the largest magnitude."""
    magnitude = np.abs(np.nan_to_num(w.astype(np.float32)))
    if axis is None:
        largest: np.ndarray = np.asarray(magnitude.max(initial=0.0))
    else:
        others = tuple(i for i in range(w.ndim) if i != axis % w.ndim)
        largest = magnitude.max(others, initial=0.0)
    scale = np.maximum(largest / span_of(dtype)[1], _TINY).astype(np.float32)
    return Parameters(scale, 0, axis)


def codes_of(w: np.ndarray, p: Parameters, dtype: DType) -> np.ndarray:
    """Return constant weights as codes."""
    scaled = w.astype(np.float32) / _along(p.scale, w.ndim, p.axis)
    least, most = span_of(dtype)
    scaled = np.clip(scaled, least, most)
    return (np.rint(scaled) if dtype.is_integer else scaled).astype(dtype.np)


def restored(codes: np.ndarray, p: Parameters) -> np.ndarray:
    """Return the dequantised codes, in f32."""
    return codes.astype(np.float32) * _along(p.scale, codes.ndim, p.axis)


def _along(numbers: np.ndarray, rank: int, axis: int | None) -> np.ndarray:
    if axis is None:
        return np.asarray(numbers)
    dims = [1] * rank
    dims[axis] = -1
    return np.asarray(numbers).reshape(dims)


# ---- rewriting -----------------------------------------------------------------------------------


@dataclass
class Quantiser:
    """Quantise and dequantise the operands of sites to 8 bits, in their program."""

    scheme: Scheme
    # ranges of activations by value index. Missing ones are computed in each run, as in
    # DynamicQuantizeLinear.
    ranges: Mapping[Place, Range]
    calibration: Calibration | None = None  # observed channels, for smoothing and bias correction
    builder: Builder = field(default_factory=Builder)
    # quantised form of each activation, shared by all its dots and convolutions
    _made: dict[ir.Value, ir.Value] = field(default_factory=dict)

    def apply(self, site: Site) -> ir.Value:
        """Quantise the operands of one site; return its new value."""
        op = site.op
        x = op.operands[0]
        with op.location:
            if site.weights is None:
                for i, place in enumerate(site.values):
                    op.operands[i] = self._activation(op.operands[i], place)
                return op.results[0]
            with ir.InsertionPoint(op):
                factors = self._smoothing(site)
                weights = site.weights.astype(np.float32)
                if factors is None:
                    op.operands[0] = self._activation(x, site.values[0])
                else:
                    weights = _multiplied(weights, site, factors)
                    op.operands[0] = self._smoothed(x, site, factors)
                op.operands[1], change = self._weights(op.operands[1], weights, site)
                if factors is not None:  # factors of weights whose activations are not divided
                    change = _multiplied(change, site, 1 / factors)
            return self._corrected(site, change) if self.scheme.bias_correction else op.results[0]

    def _smoothing(self, site: Site) -> np.ndarray | None:
        """Return the divisor of each activation channel, None without smoothing."""
        alpha = self.scheme.smooth
        if alpha is None or self.calibration is None or site.weights is None:
            return None
        channels = self.calibration.observers[site.values[0]].channels.get(site.channel_axis)
        if channels is None:
            return None
        of_values = np.maximum(channels.largest, _LEAST_CHANNEL)
        magnitude = np.abs(site.weights.astype(np.float32))
        if site.kind == "convolution":
            by_group = magnitude.reshape(_groups(site), -1, *magnitude.shape[1:])
            of_weights = by_group.max((1, *range(3, by_group.ndim))).reshape(-1)
            if magnitude.shape[1] == 1:
                alpha = 1.0  # each channel has its own weights and scale
        else:
            others = tuple(i for i in range(magnitude.ndim) if i != magnitude.ndim - 2)
            of_weights = magnitude.max(others)
        of_weights = np.maximum(of_weights, _LEAST_CHANNEL)
        return (of_values**alpha / of_weights ** (1 - alpha)).astype(np.float32)

    def _smoothed(self, x: ir.Value, site: Site, factors: np.ndarray) -> ir.Value:
        b, t = self.builder, TensorType.of(x)
        assert self.calibration is not None
        less = (1 / factors).astype(t.dtype.np)
        if site.kind == "convolution":
            less = less.reshape(-1, *[1] * (t.rank - 2))
        scaled = b.op("mul", x, _like(b, less, x))
        channels = self.calibration.observers[site.values[0]].channels[site.channel_axis]
        lowest, highest = channels.lowest / factors, channels.highest / factors
        return self._pair(scaled, (float(lowest.min()), float(highest.max())))

    def _activation(self, x: ir.Value, place: Place) -> ir.Value:
        made = self._made.get(x)
        if made is None:
            if isinstance(x.owner, ir.Block):
                point = ir.InsertionPoint.at_block_begin(x.owner)
            else:
                point = ir.InsertionPoint.after(x.owner)
            with point:
                made = self._pair(x, self.ranges.get(place))
            self._made[x] = made
        return made

    def _pair(self, x: ir.Value, found: Range | None) -> ir.Value:
        b, dtype = self.builder, TensorType.of(x).dtype
        wide = dtype if dtype.size >= 4 else dtypes.FLOAT
        value = x if wide is dtype else b.op("convert", x, target_type=wide)
        target = self.scheme.dtype
        zero: ir.Value | None = None
        if found is None:
            scale, zero = self._found_at_run_time(value, wide)
            scale = _repeated(b, scale, value)
            if zero is not None:
                target = TensorType.of(zero).dtype
                zero = _repeated(b, zero, value)
        else:
            p = activation_parameters(found, target, asymmetric=self.scheme.asymmetric)
            scale = _like(b, p.scale.astype(wide.np), value)
            if target.is_integer:
                zero = _like(b, np.array(p.zero, target.np), value)
        q = b.op("quantizelinear", value, scale, zero, out_type=target)
        out = b.op("dequantizelinear", q, scale, zero)
        return out if wide is dtype else b.op("convert", out, target_type=dtype)

    def _found_at_run_time(self, x: ir.Value, wide: DType) -> tuple[ir.Value, ir.Value | None]:
        """Build the scale and zero point of x from its range in each run; for f8 only the scale."""
        b = self.builder
        axes = list(range(TensorType.of(x).rank))

        def least_dims(v: ir.Value) -> ir.Value:
            return b.op("reshape", v, dims=[]) if axes else v

        if self.scheme.dtype.is_float:
            magnitude = b.abs(x)
            top = least_dims(b.op("reduce_max", magnitude, axes=axes) if axes else magnitude)
            scale = b.max(b.div(top, span_of(self.scheme.dtype)[1]), _TINY)
            return scale, None
        high = b.max(least_dims(b.op("reduce_max", x, axes=axes) if axes else x), 0)
        low = b.min(least_dims(b.op("reduce_min", x, axes=axes) if axes else x), 0)
        scale = b.max(b.div(b.sub(high, low), 255), _TINY)
        place = b.nearbyint(b.div(b.neg(low), scale))
        bounded = b.clip(place, b.literal(0, wide), b.literal(255, wide))
        return scale, b.op("convert", bounded, target_type=dtypes.UINT8)

    def _weights(
        self, value: ir.Value, weights: np.ndarray, site: Site
    ) -> tuple[ir.Value, np.ndarray]:
        """Build the weights' codes, dequantised, with the operand's dims.

        Also returns the rounding error.
        """
        b, scheme, t = self.builder, self.scheme, TensorType.of(value)
        axis = site.output_axis if scheme.per_channel else None
        p = weight_parameters(weights, axis, scheme.weight_dtype)
        codes = codes_of(weights, p, scheme.weight_dtype)
        wide = t.dtype if t.dtype.size >= 4 else dtypes.FLOAT
        literal = b.literal(codes)
        numbers = _along(p.scale, codes.ndim, p.axis).astype(wide.np)
        scale = b.multibroadcast(b.literal(numbers), codes.shape)
        made = b.op("dequantizelinear", literal, scale)
        if wide is not t.dtype:
            made = b.op("convert", made, target_type=t.dtype)
        found = repeated(value)
        assert found is not None  # a site without computed weights has weights
        made = found.of(made)
        return made, restored(codes, p) - weights

    def _corrected(self, site: Site, change: np.ndarray) -> ir.Value:
        """Subtract the mean that a change of the weights adds to each output channel."""
        b, out = self.builder, site.op.results[0]
        if self.calibration is None:
            return out
        seen = self.calibration.observers[site.values[0]].channels.get(site.channel_axis)
        if seen is None:
            return out
        if site.kind == "convolution":
            groups = _groups(site)
            means = seen.means.reshape(groups, -1)
            each = change.reshape(groups, change.shape[0] // groups, change.shape[1], -1).sum(-1)
            shift = np.einsum("goc,gc->go", each, means).reshape(-1)
            shift = shift.reshape(-1, *[1] * (change.ndim - 2))
        else:
            shift = np.einsum("k,...kn->...n", seen.means, change)
            if shift.ndim > 1:
                return out  # weights have several batches
        t = TensorType.of(out)
        with ir.InsertionPoint.after(site.op):
            less = _like(b, shift.astype(t.dtype.np), out)
            made = b.op("sub", out, less)
            # `less` reads dynamic dims of the op's own result
            own = [v.owner.operation for v in (less, made)]
            out.replace_all_uses_except(made, own)
        return made


def _groups(site: Site) -> int:
    return int(site.op.opview.group)


def _multiplied(weights: np.ndarray, site: Site, factors: np.ndarray) -> np.ndarray:
    """Return weights times a factor per channel of the activations."""
    if site.kind == "dot":
        return weights * _along(factors, weights.ndim, -2)
    by_group = weights.reshape(_groups(site), -1, *weights.shape[1:])
    each = factors.reshape(_groups(site), 1, -1, *[1] * (weights.ndim - 2))
    return (by_group * each).reshape(weights.shape)


def _like(b: Builder, numbers: np.ndarray, x: ir.Value) -> ir.Value:
    """Build numbers with the dims of `x`, static or not."""
    return _repeated(b, b.literal(numbers), x)


def _repeated(b: Builder, numbers: ir.Value, x: ir.Value) -> ir.Value:
    t = TensorType.of(x)
    if TensorType.of(numbers).dims == t.dims:
        return numbers
    return (
        b.multibroadcast(numbers, t.dims) if t.is_static else b.op("multibroadcast", [numbers, x])
    )
