"""Activation functions of the recurrent ops: by name, in numpy, and as pointwise ops.

Every pointwise operator of one float is one; `affine`, `hard_sigmoid`, `scaled_tanh`, `softplus`,
`softsign` and `thresholded_relu` have no operator of their own and stand for several.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgx_mlir.core.op import OPS, check
from mgx_mlir.dialects.migraphx.pointwise_base import FLOAT, Unary

Array = np.ndarray


@dataclass(frozen=True)
class Activation:
    """One function: `reference(x)` in numpy, `build(b, x)` with a Builder."""

    name: str
    values: dict[str, float]
    function: Callable[..., Array]
    builder: Callable[..., Any]

    def reference(self, x: Array) -> Array:
        return self.function(x, **self.values)

    def build(self, b: Any, x: Any) -> Any:
        return self.builder(b, x, **self.values)


def _softplus(b: Any, x: Any) -> Any:
    """max(x, 0) + log(1 + exp(-|x|)), which never overflows."""
    return b.add(b.max(x, 0), b.log(b.add(b.exp(b.neg(b.abs(x))), 1)))


def _thresholded_relu(b: Any, x: Any, alpha: float) -> Any:
    from mgx_mlir.core.dtypes import BOOL

    return b.where(b.convert(b.greater(x, alpha), target_type=BOOL), x, 0)


# name -> (default values, numpy, ops); computed in the type of x
_COMPOSED: dict[str, tuple[dict[str, float], Callable[..., Array], Callable[..., Any]]] = {
    "affine": (
        {"alpha": 1.0, "beta": 0.0},
        lambda x, alpha, beta: x * x.dtype.type(alpha) + x.dtype.type(beta),
        lambda b, x, alpha, beta: b.add(b.mul(x, alpha), beta),
    ),
    "hard_sigmoid": (
        {"alpha": 0.2, "beta": 0.5},
        lambda x, alpha, beta: np.clip(x * x.dtype.type(alpha) + x.dtype.type(beta), 0, 1),
        lambda b, x, alpha, beta: b.min(b.max(b.add(b.mul(x, alpha), beta), 0), 1),
    ),
    "scaled_tanh": (
        {"alpha": 1.0, "beta": 1.0},
        lambda x, alpha, beta: x.dtype.type(alpha) * np.tanh(x.dtype.type(beta) * x),
        lambda b, x, alpha, beta: b.mul(b.tanh(b.mul(x, beta)), alpha),
    ),
    "softplus": ({}, lambda x: np.logaddexp(x, x.dtype.type(0)), _softplus),
    "softsign": ({}, lambda x: x / (1 + np.abs(x)), lambda b, x: b.div(x, b.add(b.abs(x), 1))),
    "thresholded_relu": (
        {"alpha": 1.0},
        lambda x, alpha: np.where(x > x.dtype.type(alpha), x, x.dtype.type(0)),
        _thresholded_relu,
    ),
}


def parse_activation(text: str) -> Activation:
    """Return the function of `relu`, or `leaky_relu{alpha=0.1}`; ShapeError where there is none."""
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
        function = cls.reference

        def builder(b: Any, x: Any, **attributes: float) -> Any:
            return b.op(name, x, **attributes)

    values = dict(values)
    for part in filter(None, ((found.group(2) if found else "") or "").split(",")):
        key, _, number = part.partition("=")
        check(key.strip() in values, f"activation '{text}' has no attribute '{key.strip()}'")
        try:
            values[key.strip()] = float(number)
        except ValueError:
            check(False, f"activation '{text}' expected a number, got '{number}'")
    return Activation(name, values, function, builder)
