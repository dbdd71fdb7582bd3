"""quantize_fp16, _bf16, _int8, _fp8, _int4_weights: programs in smaller types, before compiling."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import mgx_mlir.passes  # noqa: F401  (declares the passes)
from mgx_mlir.api.program import program
from mgx_mlir.api.target import target
from mgx_mlir.core import dtypes, interrupts
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import UsageError
from mgx_mlir.core.op import OPS
from mgx_mlir.passes.quantize_int4 import QuantizeInt4
from mgx_mlir.printers.text import program_text
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.quantization.calibrate import Progress
from mgx_mlir.quantization.eight_bits import Scheme
from mgx_mlir.quantization.four_bits import FourBits, with_compensated_weights
from mgx_mlir.quantization.quantize import (
    OPTIMIZE,
    Metric,
    Options,
    Quantised,
    prepared,
    quantised,
    runs_on,
)
from mgx_mlir.quantization.scales import KnownRanges
from mgx_mlir.rewrite.passes import PipelineLike, run_pipeline
from mgx_mlir.rewrite.switches import flag

_OPS = ("dot", "convolution")


@interrupts.held
def quantize_fp16(prog: program, ins_names: Sequence[str] = ("all",)) -> None:
    """Compute the instructions of these names in f16; constants become f16.

    Parameters and results keep their types. References to instructions are stale afterwards.
    UsageError for a program that is compiled, and for names of no operator.
    """
    _truncate(prog, ins_names, "half")


@interrupts.held
def quantize_bf16(prog: program, ins_names: Sequence[str] = ("all",)) -> None:
    """Compute the instructions of these names in bf16; as quantize_fp16.

    Of all instructions, sums of computed values that a norm reads and the norm stay in f32.
    """
    _truncate(prog, ins_names, "bf16")


@interrupts.held
def quantize_int8(
    prog: program,
    t: target,
    calibration: Any = None,
    ins_names: Sequence[str] = _OPS,
    *,
    method: str = "mse",
    percentile: float = 99.99,
    per_channel: bool = True,
    asymmetric: bool = False,
    bias_correction: bool = False,
    smooth: float | None = None,
    equalize: bool = False,
    computed_operands: bool = False,
    keep: Sequence[str] = (),
    max_error: float | None = None,
    metric: Metric | None = None,
    least: float = 0.0,
    kept_type: str | None = None,
    samples: int | None = None,
    ranges: KnownRanges | None = None,
    evaluate: Any = None,
    sensitivity: bool = False,
    progress: Progress | None = None,
) -> Quantised:
    """Compute dots and convolutions with constant weights in 8-bit integers.

    calibration: mappings of arrays by input name, any iterable of samples (torch's DataLoader),
        or the path of an .npz or a folder; each is run on `t` (a gpu's on this CPU) to find the
        ranges of activations. Without it each run finds its own, which needs no data and costs
        a pass over each activation.
    method: "minmax", "percentile", "entropy" or "mse".
    per_channel: a scale for each output channel of a weight.
    asymmetric: activations have a zero point.
    bias_correction: the mean that rounding the weights adds is subtracted.
    smooth: in [0, 1], the share of an activation channel's range that is moved into the weights
        (SmoothQuant).
    equalize: scale channels between consecutive layers, so that their weights have equal
        ranges.
    computed_operands: quantise matmuls of two activations too.
    keep: names of source nodes that stay as they are.
    max_error: dots and convolutions stay in float, those with the most error per multiplication
        first, until the outputs change by at most this part of their root mean square.
    metric, least: stop instead when the metric of the samples' outputs reaches `least`.
    kept_type: "fp16" or "bf16", the type of those where it suffices.
    ranges: those of an earlier call, instead of samples.
    evaluate: the samples for max_error, metric and sensitivity (the first 16 of calibration).
    sensitivity: measure the error of each quantised dot or convolution alone.
    progress: called with the number of samples that are done.

    Returns what was quantised, what was kept, and the ranges. References to instructions are
    stale afterwards. Errors: UsageError for a compiled program and wrong options, FileError.
    MIGraphX quantize_int8; its calibration is "minmax" over symmetric ranges and one scale for
    a weight.
    """
    scheme = Scheme(
        dtypes.UINT8 if asymmetric else dtypes.INT8, per_channel, asymmetric, bias_correction,
        smooth, equalize,
    )  # fmt: skip
    options = Options(
        scheme, _names(ins_names), computed_operands, tuple(keep), method, percentile, max_error,
        metric, least, _kept_dtype(kept_type), samples, evaluate,
    )  # fmt: skip
    return _in_8_bits(prog, t, calibration, options, ranges, progress, sensitivity)


@interrupts.held
def quantize_fp8(
    prog: program,
    t: target,
    calibration: Any = None,
    *,
    method: str = "minmax",
    computed_operands: bool = False,
    keep: Sequence[str] = (),
    max_error: float | None = None,
    metric: Metric | None = None,
    least: float = 0.0,
    kept_type: str | None = None,
    samples: int | None = None,
    ranges: KnownRanges | None = None,
    evaluate: Any = None,
    sensitivity: bool = False,
    progress: Progress | None = None,
) -> Quantised:
    """Compute dots and convolutions with constant weights in 8-bit floats (OCP's E4M3FN).

    As quantize_int8; the largest magnitude of a range becomes the type's largest number. Devices
    that have the FNUZ types alone (gfx942) are given those by the pass fp8_ocp_to_fnuz.
    """
    options = Options(
        Scheme(_fp8()), _OPS, computed_operands, tuple(keep), method, 99.99, max_error, metric,
        least, _kept_dtype(kept_type), samples, evaluate,
    )  # fmt: skip
    return _in_8_bits(prog, t, calibration, options, ranges, progress, sensitivity)


@interrupts.held
def quantize_int4_weights(
    prog: program,
    *,
    group_size: int = 32,
    ins_names: Sequence[str] = _OPS,
    calibration: Any = None,
    t: target | None = None,
    samples: int | None = None,
    progress: Progress | None = None,
) -> FourBits:
    """Round constant weights of dots and convolutions to 4 bits, two to a byte.

    group_size: weights along the summed axis of a dot that share a scale and a zero point; 0: all
    of a tensor, as MIGraphX does. Where it does not divide the extent, a smaller multiple of 8 that
    is at least half of it is used, else all share one.
    calibration: samples, in the forms of quantize_int8, for GPTQ: rounding errors of a group's
    weights compensate each other. Without samples each weight is rounded to nearest. t: the target
    that samples run on (cpu); samples: how many are read; progress: called
    with the number of samples that are done. Returns what the samples showed. References to
    instructions are stale afterwards. Errors: UsageError, FileError. MIGraphX
    quantize_int4_weights, which has `prog` alone.
    """
    names = _names(ins_names)
    size = int(group_size)
    listed = ",".join(names)
    int4 = f"mgx-quantize-int4{{ops={listed} group-size={size}}}"
    # the float weights are freed, their codes stay
    rest = [int4, "propagate_constant", "dead_code_elimination"]
    if calibration is None:
        _run(prog, ["normalize_ops", OPTIMIZE, *rest])
        return FourBits()
    QuantizeInt4(names, size)  # raises for wrong options before samples are read
    base = prepared(_check(prog).program_ir)
    found = FourBits()
    if "dot" in names:
        base, found = with_compensated_weights(
            base, calibration, size, target=runs_on("cpu" if t is None else t.name()),
            progress=progress, most=samples,
        )  # fmt: skip
    _run(prog, rest, base)
    return found


def _fp8() -> DType:
    return dtypes.FP8E4M3FN


def _kept_dtype(name: str | None) -> DType | None:
    known = {"fp16": dtypes.HALF, "bf16": dtypes.BF16}
    if name is not None and name not in known:
        raise UsageError(f"kept_type expected {' or '.join(known)}, got {name!r}")
    return None if name is None else known[name]


def _names(ins_names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(ins_names, str):
        raise UsageError(f"ins_names expected a list of names, got '{ins_names}'")
    return tuple(ins_names)


def _in_8_bits(
    prog: program,
    t: target,
    calibration: Any,
    options: Options,
    ranges: KnownRanges | None,
    progress: Progress | None,
    sensitivity: bool,
) -> Quantised:
    _check(prog)
    if not isinstance(t, target):
        raise UsageError(f"expected a target, got {type(t).__name__}")
    data = calibration
    if isinstance(calibration, list | tuple) and not calibration:
        data = None  # MIGraphX's default
    made = quantised(
        prog.program_ir, data, options, target=t.name(), ranges=ranges, progress=progress,
        with_sensitivity=sensitivity,
    )  # fmt: skip
    if flag("MIGRAPHX_TRACE_QUANTIZATION"):
        print(f"Quantized:\n{program_text(made.program)}", file=sys.stderr)
    prog.become(made.program.clone())
    return made


@interrupts.held
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
    wide = " wide-sums=true" if float_type == "bf16" else ""  # f16 has three more bits
    truncate = f"mgx-truncate-float{{ops={','.join(ins_names)} float-type={float_type}{wide}}}"
    _run(prog, ["normalize_ops", OPTIMIZE, truncate, OPTIMIZE])


def _run(prog: object, steps: PipelineLike, base: ProgramIR | None = None) -> None:
    """Run passes on a copy, or on `base`, which replaces the program.

    An error leaves it as it was.
    """
    prog = _check(prog)
    copy = prog.program_ir.clone() if base is None else base
    run_pipeline(copy.module, steps, store=copy.store)
    if flag("MIGRAPHX_TRACE_QUANTIZATION"):
        print(f"Quantized:\n{program_text(copy)}", file=sys.stderr)
    copy.prune_store()
    prog.become(copy)


def _check(prog: object) -> program:
    if not isinstance(prog, program):
        raise UsageError(f"expected a program, got {type(prog).__name__}")
    if prog.is_compiled():
        raise UsageError(
            "the program is compiled and cannot be changed",
            notes=["quantize before compiling"],
        )
    return prog
