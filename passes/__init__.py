"""The passes: one file each, named as in MIGraphX. Importing this declares them, and no more."""

from mgx_mlir.core.passes import PASSES

PASS_NAMES = (
    "dead_code_elimination",
)

PASSES.declare(__name__, PASS_NAMES)
