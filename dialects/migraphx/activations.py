"""Activation functions of the recurrent ops: by name, in numpy, and as pointwise ops.

Every pointwise operator of one float is one. `affine`, `hard_sigmoid`, `scaled_tanh`, `softplus`,
`softsign` and `thresholded_relu` have no operator, and consist of several.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import numpy as np

from mgx_mlir.core.dtypes import BOOL
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, check
from mgx_mlir.core.records import dataclass
from mgx_mlir.dialects.migraphx.pointwise_base import FLOAT, Unary
from mgx_mlir.programs.build import Builder

Array = np.ndarray
Values = Mapping[str, float]
Reference = Callable[[Array, Values], Array]
Build = Callable[[Builder, ir.Value, Values], ir.Value]


@dataclass(frozen=True)
class Activation:
    """One function: `reference(x)` in numpy, `build(b, x)` with a Builder."""

    name: str
    values: Values
    function: Reference
    builder: Build

    def reference(self, x: Array) -> Array:
        """Compute the function in numpy, in the type of `x`."""
        return self.function(x, self.values)

    def build(self, b: Builder, x: ir.Value) -> ir.Value:
        """Build its pointwise ops."""
        return self.builder(b, x, self.values)


def _softplus(b: Builder, x: ir.Value, _: Values) -> ir.Value:
    """Return max(x, 0) + log(1 + u), u = exp(-|x|), by 2 atanh(u / (2 + u)), which is accurate in
    the tail.
    """
    u = b.exp(b.neg(b.abs(x)))
    return b.add(b.max(x, 0), b.mul(b.atanh(b.div(u, b.add(u, 2))), 2))


def _thresholded_relu(b: Builder, x: ir.Value, v: Values) -> ir.Value:
    return b.where(b.convert(b.greater(x, v["alpha"]), target_type=BOOL), x, 0)


def _line(x: Array, v: Values) -> Array:
    return x * x.dtype.type(v["alpha"]) + x.dtype.type(v["beta"])


def _line_ops(b: Builder, x: ir.Value, v: Values) -> ir.Value:
    return b.add(b.mul(x, v["alpha"]), v["beta"])


# name -> (default values, numpy, ops); computed in the type of x
_COMPOSED: dict[str, tuple[Values, Reference, Build]] = {
    "affine": ({"alpha": 1.0, "beta": 0.0}, _line, _line_ops),
    "hard_sigmoid": (
        {"alpha": 0.2, "beta": 0.5},
        lambda x, v: np.clip(_line(x, v), 0, 1),
        lambda b, x, v: b.min(b.max(_line_ops(b, x, v), 0), 1),
    ),
    "scaled_tanh": (
        {"alpha": 1.0, "beta": 1.0},
        lambda x, v: x.dtype.type(v["alpha"]) * np.tanh(x.dtype.type(v["beta"]) * x),
        lambda b, x, v: b.mul(b.tanh(b.mul(x, v["beta"])), v["alpha"]),
    ),
    "softplus": ({}, lambda x, _: np.logaddexp(x, x.dtype.type(0)), _softplus),
    "softsign": (
        {},
        lambda x, _: x / (1 + np.abs(x)),
        lambda b, x, _: b.div(x, b.add(b.abs(x), 1)),
    ),
    "thresholded_relu": (
        {"alpha": 1.0},
        lambda x, v: np.where(x > x.dtype.type(v["alpha"]), x, x.dtype.type(0)),
        _thresholded_relu,
    ),
}


def parse_activation(text: str) -> Activation:
    """Return the function for `relu`, or `leaky_relu{alpha=0.1}`; ShapeError if there is none."""
    found = re.fullmatch(r"\s*(\w+)\s*(?:\{(.*)\})?\s*", text)
    name = found.group(1) if found else ""
    cls = OPS.get(name)
    if name in _COMPOSED:
        values, function, builder = _COMPOSED[name]
    else:
        check(
            cls is not None and issubclass(cls, Unary) and bool(cls.TYPES & FLOAT),
            lambda: f"activation expected a pointwise operator of one float, got '{text}'",
        )
        assert cls is not None
        values = {k: float(d.default) for k, d in cls.ATTRS.items()}

        def function(x: Array, v: Values, /) -> Array:
            return cls.reference(x, **v)

        def builder(b: Builder, x: ir.Value, v: Values, /) -> ir.Value:
            return b.op(name, x, **v)

    values = dict(values)
    for part in filter(None, ((found.group(2) if found else "") or "").split(",")):
        key, _, number = part.partition("=")
        check(key.strip() in values, f"activation '{text}' has no attribute '{key.strip()}'")
        try:
            values[key.strip()] = float(number)
        except ValueError:
            check(False, f"activation '{text}' expected a number, got '{number}'")
    return Activation(name, values, function, builder)
