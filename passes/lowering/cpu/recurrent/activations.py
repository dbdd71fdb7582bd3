"""Activation functions of recurrent networks on vectors of f32."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS
from mgx_mlir.dialects.migraphx.activations import Activation
from mgx_mlir.passes.lowering.cpu.frame import exponential
from mgx_mlir.passes.lowering.cpu.frame.scalars import VectorScalars
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import WorkgroupBuilder
from mgx_mlir.passes.lowering.scalar import TypedScalar

Function: TypeAlias = Callable[[WorkgroupBuilder, ir.Value], ir.Value]


def vector_function(f: Activation) -> Function | None:
    """Return an activation on vectors of f32, None where there is none."""
    if f.name in _OWN:
        return _OWN[f.name]
    scalar = _COMPOSED.get(f.name) or getattr(OPS.get(f.name), "scalar", None)
    if scalar is None:
        return None

    def apply(k: WorkgroupBuilder, x: ir.Value) -> ir.Value:
        lanes = ir.VectorType(x.type).shape[0]
        b = VectorScalars(k, lanes, dtypes.FLOAT, dtypes.FLOAT)
        return scalar(b, TypedScalar(x, dtypes.FLOAT), **f.values).value

    return apply


def _affine(b: VectorScalars, x: TypedScalar, alpha: float, beta: float) -> TypedScalar:
    return b.add(b.mul(x, alpha), beta)


def _hard_sigmoid(b: VectorScalars, x: TypedScalar, alpha: float, beta: float) -> TypedScalar:
    return b.min(b.max(_affine(b, x, alpha, beta), 0.0), 1.0)


def _scaled_tanh(b: VectorScalars, x: TypedScalar, alpha: float, beta: float) -> TypedScalar:
    inner = exponential.tanh(b.k, b.mul(x, beta).value)
    return b.mul(TypedScalar(inner, x.dtype), alpha)


def _softplus(b: VectorScalars, x: TypedScalar) -> TypedScalar:
    return b.add(b.max(x, 0.0), _log1p(b, b.exp(b.neg(b.abs(x)))))


def _log1p(b: VectorScalars, x: TypedScalar) -> TypedScalar:
    """log(1 + x), 0 <= x: x / (u - 1) corrects the rounding of u = 1 + x."""
    u = b.add(x, 1.0)
    near = b.cmp("eq", u, 1.0)
    rest = b.select(near, 1.0, b.sub(u, 1.0))
    return b.select(near, x, b.mul(b.log(u), b.div(x, rest)))


def _softsign(b: VectorScalars, x: TypedScalar) -> TypedScalar:
    return b.div(x, b.add(b.abs(x), 1.0))


def _thresholded_relu(b: VectorScalars, x: TypedScalar, alpha: float) -> TypedScalar:
    return b.select(b.cmp("gt", x, alpha), x, 0.0)


_OWN: dict[str, Function] = {"sigmoid": exponential.sigmoid, "tanh": exponential.tanh}
# functions of dialects/migraphx/activations.py that are no operators
_COMPOSED: dict[str, Callable[..., TypedScalar]] = {
    "affine": _affine,
    "hard_sigmoid": _hard_sigmoid,
    "scaled_tanh": _scaled_tanh,
    "softplus": _softplus,
    "softsign": _softsign,
    "thresholded_relu": _thresholded_relu,
}
