"""quantize: a model in smaller types, and a report of each layer's error."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mgx_mlir.core.errors import UsageError
from mgx_mlir.tools.driver.arguments import Arguments, Option, number, tolerance
from mgx_mlir.tools.driver.emit import emit, form_of
from mgx_mlir.tools.driver.metric_script import MetricScript, read_metric
from mgx_mlir.tools.driver.model import Model
from mgx_mlir.tools.driver.options import DATA, EMIT, HELP, ITERATIONS, LOADER, QUANTIZE, TARGET
from mgx_mlir.tools.driver.precision import PRECISIONS, in_precision_with
from mgx_mlir.tools.driver.program_texts import write_file
from mgx_mlir.tools.driver.progress import say, working
from mgx_mlir.tools.driver.read_model import read

if TYPE_CHECKING:
    from mgx_mlir.quantization.four_bits import FourBits
    from mgx_mlir.quantization.quantize import Quantised
    from mgx_mlir.quantization.scales import KnownRanges

USAGE = "TYPE [OPTION...] FILE [--report [FILE.html]]"
DESCRIPTION = """
TYPE is --fp16, --bf16, --int8, --fp8 or --int4-weights. Writes the program in smaller types, as
MIGraphX's .mxr for example, which the other commands take as a model. With --report stdout has a
table instead: the error of each dot and convolution alone (signal-to-noise ratio in decibels, and
cosine), the ones that are not quantised and why, the outputs, size and time before and after, and
the figure of --metric. The same goes to an HTML page that needs no other file.

A report is measured on the samples of --evaluate, else on those that the script of --metric
gives, else on those of --calibrate, else on inputs that are drawn. Exit status 1: --least is not
reached."""
_NOT_HERE = ("--enable-offload-copy", "--exhaustive-tune")
_NEED_REPORT = ("--iterations", "--gpu", "--threads", "--arch", "--disable-fast-math",
                "--remove-qdq-pairs", "--kernel-boundaries", "--emulate", "--graph",
                "--no-cache", "--timeout")  # fmt: skip
_IN_8_BITS = (
    *("--keep", "--max-error", "--kept-type", "--ranges", "--save-ranges", "--save-table"),
    "--computed-operands",
)
_IN_INT8 = (
    *("--percentile", "--per-tensor", "--asymmetric", "--bias-correction", "--smooth"),
    "--equalize",
)


def _page(text: str) -> str:
    if not text.endswith((".html", ".htm")):
        raise ValueError("a file whose name ends in .html")
    return text


def _share(text: str) -> float:
    found = tolerance(text)
    if found > 1:
        raise ValueError("a number from 0 to 1")
    return found


def _float_type(text: str) -> str:
    if text not in ("fp16", "bf16"):
        raise ValueError("fp16 or bf16")
    return text


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("a number") from None


CHOICES = tuple(
    Option(flags, text, value, many, parse, "Quantization")  # type: ignore[arg-type]
    for flags, text, value, many, parse in (
        (("--percentile",), "with --int8 and the method percentile: the share of elements that a "
         "range holds, in percent (default 99.99)", "PERCENT", "", tolerance),
        (("--samples",), "read at most this number of samples of --calibrate", "N", "", number(1)),
        (("--per-tensor",), "with --int8: one scale for a weight, in place of one for each output "
         "channel", None, "", str),
        (("--asymmetric",), "with --int8: activations have a zero point", None, "", str),
        (("--bias-correction",), "with --int8: subtract the mean that rounding the weights adds to "
         "each output channel", None, "", str),
        (("--smooth",), ("with --int8: the share, 0 to 1, of an activation channel's range that "
                        "is moved into the weights (SmoothQuant)"),
         "PART", "", _share),
        (("--equalize",), ("with --int8: scale channels between consecutive "
                          "layers, so that their weights have equal ranges"), None, "", str),
        (("--computed-operands",), "with --int8 and --fp8: also matmuls of two computed operands",
         None, "", str),
        (("--keep",), "with --int8 and --fp8: source nodes that are not quantised", "NAME...",
         "greedy", str),
        (("--max-error",),
        ("with --int8 and --fp8: do not quantise the most sensitive matmuls, until "
         "the outputs change by at most this part of their root mean square"), "PART",
         "", tolerance),
        (("--kept-type",),
        ("with --max-error and --least: fp16 or bf16, the type of unquantised "
         "matmuls where it suffices"), "TYPE", "", _float_type),
        (("--group-size",), "with --int4-weights: weights of a dot's column that share a scale "
         "(default 32; 0: all of a tensor)", "N", "", number(0)),
        (("--ranges",), "with --int8 and --fp8: ranges of activations that --save-ranges wrote, or "
         "onnxruntime's calibration table, in place of --calibrate", "FILE", "", str),
        (("--save-ranges",), "write the ranges that --calibrate found as JSON", "FILE", "", str),
        (("--save-table",), "write the ranges that --calibrate found as onnxruntime's calibration "
         "table, JSON, or text where the name ends in .cache", "FILE", "", str),
    )
)  # fmt: skip
JUDGES = tuple(
    Option(flags, text, value, many, parse, "Report")  # type: ignore[arg-type]
    for flags, text, value, many, parse in (
        (("--report",), "print a table in place of the program, and write a page (default: the "
         "model's name .quantized.html)", "[FILE]", "optional", _page),
        (("--evaluate",), ("the samples for the report, --max-error and "
                          "--metric, in the forms of --calibrate"), "PATH", "", str),
        (("--metric",), "a Python script (or SCRIPT.py:FUNCTION) with `def metric(outputs)`, a "
         "number that is better the larger it is, of the list of results of each sample; its "
         "`data()` gives the samples where there is no --evaluate", "SCRIPT", "", str),
        (("--least",),
        ("the least metric: with --int8 and --fp8 the most sensitive matmuls are not"
         " quantised until it is reached"), "NUMBER", "", _number),
    )
)  # fmt: skip
OPTIONS = (
    *LOADER,
    *EMIT,
    *QUANTIZE,
    *CHOICES,
    *JUDGES,
    *(o for o in TARGET if o.key not in _NOT_HERE),
    *DATA,
    ITERATIONS,
    HELP,
)


def run(args: Arguments) -> int:
    """Quantise the model, write it, and report."""
    kind = _checked(args)
    model = Model(args)
    form_of(args)
    script = read_metric(args.get("--metric")) if "--metric" in args else None
    before = read(model)
    if "--report" in args:
        return _reported(args, model, kind, script)
    made, found = quantised(args, model, kind, script, _evaluated(args, script))
    del before
    _save_ranges(args, model, found)
    emit(args, made.program_ir)
    return 0


def _reported(args: Arguments, model: Model, kind: str, script: MetricScript | None) -> int:
    # start-up: only what the command asks for is loaded
    from mgx_mlir.tools.driver.page import page
    from mgx_mlir.tools.driver.quantize_report import Before, collect, text_lines
    from mgx_mlir.tools.driver.target_choice import choose_target

    choice = choose_target(args, runs=True, model=model)
    first = Before.of(args, model, choice, _evaluated(args, script) or args.get("--calibrate"))
    made, found = quantised(args, model, kind, script, first.samples)
    _save_ranges(args, model, found)
    with working("Measuring"):
        data = collect(args, model, choice, kind, first, made.program_ir, found, script)
    print("\n".join(text_lines(data)))
    if "--output" in args:
        emit(args, made.program_ir)
        say(f"Writing: {args.get('--output')}")
    path = args.get("--report")
    if path is True:
        path = f"{os.path.splitext(os.path.basename(model.name))[0]}.quantized.html"
    write_file(path, page(data, "quantize").encode(errors="replace"))
    say(f"Writing: {path}")
    return 0 if data["reached"] else 1


def quantised(
    args: Arguments, model: Model, kind: str, script: MetricScript | None, evaluate: Any
) -> tuple[Any, Quantised | FourBits | None]:
    """Return the model in smaller types, as the options say, and what quantising found.

    evaluate: samples that are compared on; None: those of --calibrate.
    """
    # start-up: only what the command asks for is loaded
    from mgx_mlir.api.program import program as api_program

    more: dict[str, Any] = {}
    if kind in ("int8", "fp8"):
        more = {
            "keep": args.get("--keep", []),
            "samples": args.get("--samples"),
            "computed_operands": "--computed-operands" in args,
            "max_error": args.get("--max-error"),
            "kept_type": args.get("--kept-type"),
            "sensitivity": "--report" in args,
            "evaluate": evaluate,
        }
        if "--ranges" in args:
            more["ranges"] = _ranges(args.get("--ranges"), model)
        if script is not None and "--least" in args:
            more |= {"metric": script.metric, "least": args.get("--least")}
    if kind == "int8":
        more |= {
            "per_channel": "--per-tensor" not in args,
            "asymmetric": "--asymmetric" in args,
            "bias_correction": "--bias-correction" in args,
            "smooth": args.get("--smooth"),
            "equalize": "--equalize" in args,
            "percentile": args.get("--percentile", 99.99),
        }
    if kind == "int4":
        more = {"group_size": args.get("--group-size", 32), "samples": args.get("--samples")}
    made = api_program.of(model.loaded.clone())
    return made, in_precision_with(made, kind, args, more)


def _evaluated(args: Arguments, script: MetricScript | None) -> Any:
    """Return the samples that were given to compare on, None where there are none."""
    if "--evaluate" in args:
        return args.get("--evaluate")
    return script.samples() if script is not None and script.samples is not None else None


def _ranges(path: str, model: Model) -> KnownRanges:
    """Read ranges of either form: ours, or a table by the names of an ONNX file's tensors."""
    # start-up: only what the command asks for is loaded
    from mgx_mlir.quantization.scales import KnownRanges, is_ranges
    from mgx_mlir.quantization.tables import CalibrationTable

    if is_ranges(path):
        return KnownRanges.load(path)
    return CalibrationTable.load(path).for_model(_onnx_file(model))


def _onnx_file(model: Model) -> str:
    """Return the model's path. Errors: UsageError where it is no ONNX file."""
    if not model.name.endswith(".onnx"):
        raise UsageError(
            "a calibration table names tensors of an ONNX file, which the model is not",
            notes=["--ranges and --save-ranges work for any model"],
        )
    return model.name


def _save_ranges(args: Arguments, model: Model, found: Quantised | FourBits | None) -> None:
    # start-up: only what the command asks for is loaded
    from mgx_mlir.quantization.quantize import Quantised
    from mgx_mlir.quantization.tables import CalibrationTable

    if not isinstance(found, Quantised):
        return
    if "--save-ranges" in args:
        found.ranges.save(args.get("--save-ranges"))
        say(f"Writing: {args.get('--save-ranges')}")
    if "--save-table" in args:
        CalibrationTable.of(found.ranges, _onnx_file(model)).save(args.get("--save-table"))
        say(f"Writing: {args.get('--save-table')}")


def _checked(args: Arguments) -> str:
    """Return the precision. Errors: UsageError, also for options that need another one."""
    flag = args.only_one(*PRECISIONS)
    if flag is None:
        raise UsageError(f"expected one of {', '.join(PRECISIONS)}")
    kind = PRECISIONS[flag]
    wants = {
        **dict.fromkeys(_IN_8_BITS, (("int8", "fp8"), "--int8 or --fp8")),
        **dict.fromkeys(_IN_INT8, (("int8",), "--int8")),
        "--group-size": (("int4",), "--int4-weights"),
        "--samples": (("int8", "fp8", "int4"), "--int8, --fp8 or --int4-weights"),
    }
    for option, (kinds, named) in wants.items():
        if option in args and kind not in kinds:
            raise UsageError(f"option '{option}' needs {named}")
    for option, other in (
        ("--save-ranges", "--calibrate"),
        ("--save-table", "--calibrate"),
        ("--samples", "--calibrate"),
        ("--least", "--metric"),
    ):
        if option in args and other not in args:
            raise UsageError(f"option '{option}' needs {other}")
    if "--percentile" in args and args.get("--calibration-method") != "percentile":
        raise UsageError("option '--percentile' needs --calibration-method percentile")
    if "--ranges" in args and "--calibrate" in args:
        raise UsageError("options '--ranges' and '--calibrate' exclude each other")
    if "--max-error" in args and "--least" in args:
        raise UsageError("options '--max-error' and '--least' exclude each other")
    _check_report(args, kind)
    return kind


def _check_report(args: Arguments, kind: str) -> None:
    """Raise UsageError for what has an effect in a report alone, and for forms beside one."""
    searches = kind in ("int8", "fp8") and ("--max-error" in args or "--least" in args)
    if "--report" in args:
        forms = [o.key for o in EMIT if o.key in args and o.key != "--output"]
        if forms and "--output" not in args:
            raise UsageError(f"option '{forms[0]}' needs --output: stdout has the report")
        return
    for option in (*_NEED_REPORT, *(o.key for o in DATA)):
        if option in args:
            raise UsageError(f"option '{option}' needs --report")
    if not searches:
        for option in ("--evaluate", "--metric"):
            if option in args:
                raise UsageError(f"option '{option}' needs --report, --max-error or --least")
