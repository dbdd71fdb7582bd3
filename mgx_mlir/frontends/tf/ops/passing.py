"""Nodes that pass their input on; their effects are dropped."""

from __future__ import annotations

from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Held, Value
from mgx_mlir.programs.build import Builder


@tf_op("DebugGradientIdentity", "DebugGradientRefIdentity", "RefIdentity")
def passed(b: Builder, node: Node, x: Value) -> Value:
    """Import operators that pass their input on."""
    return x


@tf_op("Print", raw=True)
def printed(
    b: Builder,
    node: Node,
    x: Value,
    *data: Held,
    first_n: int = -1,
    summarize: int = 3,
) -> Value:
    """Import Print: nothing is printed."""
    return x
