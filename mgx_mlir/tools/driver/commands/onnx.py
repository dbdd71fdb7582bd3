"""onnx: the ONNX operators that the frontend reads."""

from __future__ import annotations

from mgx_mlir.core.errors import UsageError
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.options import HELP, LIST

USAGE = "[--list]"
DESCRIPTION = "One name per line, sorted; those of other domains as domain::name."
OPTIONS = (LIST, HELP)


def run(args: Arguments) -> int:
    """List the ONNX operators."""
    # start-up: only what the command asks for is loaded
    from mgx_mlir.frontends.onnx import ops
    from mgx_mlir.frontends.onnx.registry import operators

    if args.file is not None:
        raise UsageError(f"expected no argument, got '{args.file}'")
    ops.load()
    print("\n".join(sorted(f"{d}::{n}" if d else n for d, n in operators())))
    return 0
