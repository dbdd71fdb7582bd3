"""Registers all that this package has; the entry point `mgx_mlir.plugins` names this module."""

from mgx_example import importers, lowerings, ops
from mgx_mlir.passes import PASSES

# pass `merge_rolls` is the class MergeRolls of the module mgx_example.passes.merge_rolls
PASSES.declare("mgx_example.passes", ["merge_rolls"])

__all__ = ["importers", "lowerings", "ops"]
