"""--fp16, --bf16, --int8, --fp8 and --int4-weights: a loaded program in smaller types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mgx_mlir.core.errors import UsageError
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.progress import counting, say

if TYPE_CHECKING:
    from mgx_mlir.api.program import program
    from mgx_mlir.debug.tolerances import Tolerances
    from mgx_mlir.quantization.four_bits import FourBits
    from mgx_mlir.quantization.quantize import Quantised

PRECISIONS = {  # in MIGraphX's order
    "--fp16": "half", "--bf16": "bf16", "--int8": "int8", "--fp8": "fp8", "--int4-weights": "int4",
}  # fmt: skip
# half a step of the type, relative to the largest value that shares a scale
STEPS = {"half": 2**-10, "bf16": 2**-7, "int8": 2**-7, "fp8": 2**-3, "int4": 2**-4}
_INT4 = 0.25  # 15 steps over 32 weights are 8 % of a matmul's rms, and errors of layers add up
_IN_16_BITS = ("--fp16", "--bf16")  # the second would find nothing in f32
_IN_8_BITS = ("--int8", "--fp8")


def tolerances_in(found: ProgramIR, precisions: tuple[str, ...]) -> list[Tolerances]:
    """Return the limits of each result of a program whose target computes in these types."""
    # start-up: only what the command asks for is loaded
    from mgx_mlir.debug.tolerances import output_tolerances

    each = output_tolerances(found, low=bool(precisions))
    if "int4" not in precisions:
        return each
    return [replace(t, rms=_INT4, atol=_INT4, rtol=_INT4) if t.rms else t for t in each]


def chosen(args: Arguments) -> tuple[str, ...]:
    """Return the precisions that were asked for, in the order in which they are applied."""
    return tuple(kind for flag, kind in PRECISIONS.items() if flag in args)


def check(args: Arguments) -> None:
    """Raise UsageError for options that do not go together."""
    for first, second in (_IN_16_BITS, _IN_8_BITS):
        if first in args and second in args:
            raise UsageError(f"options '{first}' and '{second}' exclude each other")
    both = [f for f in _IN_8_BITS if f in args]
    if "--calibrate" in args and not both and "--int4-weights" not in args:
        raise UsageError("option '--calibrate' needs --int8, --fp8 or --int4-weights")
    if "--calibration-method" in args and not both:
        raise UsageError("option '--calibration-method' needs --int8 or --fp8")
    if "--calibration-method" in args and "--calibrate" not in args:
        raise UsageError("option '--calibration-method' needs --calibrate")


def in_precision(made: program, kind: str, args: Arguments) -> None:
    """Convert a program to one of the precisions, in place. Errors: MgxError."""
    in_precision_with(made, kind, args, {})


def in_precision_with(
    made: program, kind: str, args: Arguments, more: Mapping[str, Any]
) -> Quantised | FourBits | None:
    """Convert a program to one of the precisions, in place, with more keywords of its function.

    Returns what quantising to 8 or 4 bits found. Errors: MgxError.
    """
    # start-up: only what the command asks for is loaded
    from mgx_mlir.api.quantize import quantize_bf16, quantize_fp16

    if kind == "half":
        quantize_fp16(made)
    elif kind == "bf16":
        quantize_bf16(made)
    elif kind == "int4":
        return _in_4_bits(made, args, more)
    else:
        return _in_8_bits(made, kind, args, more)
    return None


def _in_4_bits(made: program, args: Arguments, more: Mapping[str, Any]) -> FourBits:
    # start-up: only what the command asks for is loaded
    from mgx_mlir.api.quantize import quantize_int4_weights
    from mgx_mlir.api.target import get_target

    data = args.get("--calibrate")
    if data is None:
        return quantize_int4_weights(made, **more)
    here = get_target("ref" if "--ref" in args else "cpu")
    with counting("Calibrating") as progress:
        found = quantize_int4_weights(made, calibration=data, t=here, progress=progress, **more)
    count = len(found.codes)
    say(f"weights of {count} matmul{'s' * (count != 1)} in int4 by samples of {data}")
    return found


def _in_8_bits(made: program, kind: str, args: Arguments, more: Mapping[str, Any]) -> Quantised:
    # start-up: only what the command asks for is loaded
    from mgx_mlir.api.quantize import quantize_fp8, quantize_int8
    from mgx_mlir.api.target import get_target

    data = args.get("--calibrate")
    here = get_target("ref" if "--ref" in args else "cpu")
    method = args.get("--calibration-method", "minmax" if kind == "fp8" else "mse")
    function = quantize_fp8 if kind == "fp8" else quantize_int8
    with counting("Calibrating") as progress:
        found = function(made, here, data, method=method, progress=progress, **more)
    _tell(found, kind, data, ranges=more.get("ranges") is not None)
    return found


def _tell(found: Quantised, kind: str, data: str | None, *, ranges: bool) -> None:
    count = len(found.names)
    ops = f"{count} {'dot or convolution' if count == 1 else 'dots and convolutions'} in {kind}"
    if not count and found.kept:
        say(f"{kind}: no matmul is quantised: the outputs would change too much")
    elif not count:
        say(f"{kind}: the program has no dot or convolution with constant weights")
    elif ranges and data is None:
        say(f"{ops}, by ranges of a file")
    elif data is None:
        say(f"{ops}; each run finds the ranges of its activations (--calibrate fixes them)")
    else:
        say(f"{ops}, by ranges of {data}")
