"""Prints the program of a TensorFlow model as MLIR: python -m mgx_mlir.frontends.tf FILE."""

from __future__ import annotations

import argparse
import sys

from mgx_mlir.core.errors import MgxError
from mgx_mlir.core.operand_segments import asm
from mgx_mlir.frontends.tf.options import TfOptions
from mgx_mlir.frontends.tf.program import parse_tf


def main(arguments: list[str] | None = None) -> int:
    """Print the program of a TensorFlow model; return the exit code."""
    parser = argparse.ArgumentParser(prog="mgx_mlir.frontends.tf", description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--nchw", action="store_true")
    parser.add_argument("--migraphx-layout", action="store_true")
    parser.add_argument("--dynamic", action="store_true", help="dynamic dims stay dynamic")
    parser.add_argument("--output-names", nargs="+", default=[])
    parser.add_argument("--skip-unknown-operators", action="store_true")
    parser.add_argument("--errors-to-stdout", action="store_true")
    parser.add_argument("--locations", action="store_true", help="print source nodes")
    given = parser.parse_args(arguments)
    options = TfOptions(
        is_nhwc=not given.nchw,
        migraphx_layout=given.migraphx_layout,
        batch_size=None if given.dynamic else 1,
        output_names=given.output_names,
        skip_unknown_operators=given.skip_unknown_operators,
    )
    try:
        program = parse_tf(given.file, options)
    except MgxError as e:
        print(e, file=sys.stdout if given.errors_to_stdout else sys.stderr)
        return 0 if given.errors_to_stdout else e.exit_code
    with program.ctx:
        print(
            asm(
                program.module.operation,
                enable_debug_info=given.locations,
                use_local_scope=given.locations,
            )
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
