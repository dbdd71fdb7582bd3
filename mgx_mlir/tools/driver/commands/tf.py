"""tf: the TensorFlow operators that the frontend reads."""

from __future__ import annotations

from mgx_mlir.core.errors import UsageError
from mgx_mlir.frontends.tf import ops
from mgx_mlir.frontends.tf.registry import operators
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.options import HELP, LIST

USAGE = "[--list]"
DESCRIPTION = "One name per line, sorted."
OPTIONS = (LIST, HELP)


def run(args: Arguments) -> int:
    """List the TensorFlow operators."""
    if args.file is not None:
        raise UsageError(f"expected no argument, got '{args.file}'")
    ops.load()
    print("\n".join(operators()))
    return 0
