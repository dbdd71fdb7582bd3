"""quantize_fp16, quantize_bf16 and autocast_fp8: programs in smaller types, before compiling."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import mgx_mlir.passes  # noqa: F401  (declares the passes)
from mgx_mlir.api.program import program
from mgx_mlir.core.errors import UsageError
from mgx_mlir.core.op import OPS
from mgx_mlir.printers.text import program_text
from mgx_mlir.rewrite.passes import PipelineLike, run_pipeline
from mgx_mlir.rewrite.switches import flag

# what is quantised already stays quantised: constants of it are not folded
_OPTIMIZE = "mgx-optimize-module{skip=quantizelinear,dequantizelinear}"


def quantize_fp16(prog: program, ins_names: Sequence[str] = ("all",)) -> None:
    """Compute the instructions of these names in f16; constants become f16.

    Parameters and results keep their types. References to instructions are stale afterwards.
    UsageError for a program that is compiled, and for names of no operator.
    """
    _truncate(prog, ins_names, "half")


def quantize_bf16(prog: program, ins_names: Sequence[str] = ("all",)) -> None:
    """Compute the instructions of these names in bf16; as quantize_fp16."""
    _truncate(prog, ins_names, "bf16")


def autocast_fp8(prog: program) -> None:
    """Give the program f32 parameters and results in place of f8 ones, converted inside."""
    _run(prog, ["autocast_fp8_pass"])


def _truncate(prog: program, ins_names: Sequence[str], float_type: str) -> None:
    if isinstance(ins_names, str):
        raise UsageError(f"ins_names expected a list of names, got '{ins_names}'")
    unknown = [name for name in ins_names if name != "all" and name not in OPS]
    if unknown:
        raise UsageError(
            f"ins_names has names that are not operators: {', '.join(unknown)}",
            notes=["expected names as the program prints them, or all"],
        )
    truncate = f"mgx-truncate-float{{ops={','.join(ins_names)} float-type={float_type}}}"
    _run(prog, ["normalize_ops", _OPTIMIZE, truncate, _OPTIMIZE])


def _run(prog: object, steps: PipelineLike) -> None:
    """Run passes on a copy, which then is the program: an error leaves it as it was."""
    if not isinstance(prog, program):
        raise UsageError(f"expected a program, got {type(prog).__name__}")
    if prog.is_compiled():
        raise UsageError(
            "the program is compiled and cannot be changed",
            notes=["quantize before compiling"],
        )
    copy = prog.program_ir.clone()
    run_pipeline(copy.module, steps, store=copy.store)
    if flag("MIGRAPHX_TRACE_QUANTIZATION"):
        print(f"Quantized:\n{program_text(copy)}", file=sys.stderr)
    copy.prune_store()
    prog.become(copy)
