"""Calls of functions: their bodies are imported in place."""

from __future__ import annotations

from mgx_mlir.frontends.tf.attributes import FunctionRef
from mgx_mlir.frontends.tf.node import Node
from mgx_mlir.frontends.tf.registry import tf_op
from mgx_mlir.frontends.values import Held, Outputs
from mgx_mlir.programs.build import Builder


@tf_op("PartitionedCall", "StatefulPartitionedCall", raw=True)
def call(b: Builder, node: Node, *inputs: Held, f: FunctionRef) -> Outputs:
    """Import PartitionedCall: the function's nodes, inlined."""
    return node.call(f, inputs)
