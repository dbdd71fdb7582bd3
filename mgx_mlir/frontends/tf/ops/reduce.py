"""Reductions over axes, and softmax."""

from __future__ import annotations

from typing import Any

from mgx_mlir.core.build import Builder
from mgx_mlir.frontends.helpers import Value, axes_in, convert, squeeze, wide
from mgx_mlir.frontends.tf.registry import tf_op


def _register(name: str, op: str) -> None:
    @tf_op(name)
    def reduction(
        b: Builder, node: Any, x: Value, axes: Value, *, keep_dims: bool = False
    ) -> Value:
        found = axes_in(node.ints(axes, "reduction_indices"), len(b.dims(x)))
        if not found:
            return x
        dtype = b.dtype(x)
        y = getattr(b, op)(convert(b, x, wide(dtype)), axes=found)
        return convert(b, y if keep_dims else squeeze(b, y, found), dtype)


for _name, _op in {"Mean": "reduce_mean", "Sum": "reduce_sum", "Max": "reduce_max"}.items():
    _register(_name, _op)


@tf_op("Softmax")
def softmax(b: Builder, node: Any, x: Value) -> Value:
    return b.softmax(x, axis=len(b.dims(x)) - 1)
