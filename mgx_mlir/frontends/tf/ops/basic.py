"""Importers of constants, inputs and identity nodes."""

from __future__ import annotations

import numpy as np

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.literals import own
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.tf.values import Complex, Strings
from mgx_mlir.frontends.values import Outputs, Value
from mgx_mlir.programs.build import Builder


@tf_op("Const", "HostConst")
def const(b: Builder, node: Node, *, dtype: DType | int, value: np.ndarray) -> Outputs:
    """Import Const; strings exist only during import."""
    if value.dtype == object:
        return Strings(value)
    if value.dtype.kind == "c":
        return Complex(*(b.literal(own(f(value).copy())) for f in (np.real, np.imag)))
    if isinstance(dtype, DType) and value.dtype != dtype.np:
        raise ModelError(f"attribute 'value' expected {dtype.short}, got {value.dtype}")
    return b.literal(own(value))


@tf_op("Placeholder", "PlaceholderV2")
def placeholder(b: Builder, node: Node, *, dtype: DType | int, shape: object = None) -> Outputs:
    """Refuse a placeholder that is no input: inputs already have values."""
    raise ModelError("this placeholder is not among the inputs")


@tf_op("PlaceholderWithDefault")
def placeholder_with_default(b: Builder, node: Node, x: Value, *, shape: object = None) -> Value:
    """Import PlaceholderWithDefault: its default."""
    return x


@tf_op("Identity", "Snapshot", "StopGradient", "PreventGradient", "EnsureShape", raw=True)
def identity(b: Builder, node: Node, x: Value, *, shape: object = None) -> Value:
    """Import Identity and the operators that differ from it only in training."""
    return x


@tf_op("IdentityN", raw=True)
def identity_n(b: Builder, node: Node, *xs: Value) -> Outputs:
    """Import IdentityN."""
    return xs


@tf_op("CheckNumerics", raw=True)
def check_numerics(b: Builder, node: Node, x: Value) -> Value:
    """Import CheckNumerics as identity: the check is an effect, and inference graphs have none."""
    return x
