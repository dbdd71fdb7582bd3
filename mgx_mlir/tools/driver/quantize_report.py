"""Report of `quantize --report`: layers, outputs, size, time and accuracy, as text and as data."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgx_mlir import __version__
from mgx_mlir.compiler.compile import compile as compile_program
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import UsageError
from mgx_mlir.debug.draws import draws
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.quantization.four_bits import FourBits
from mgx_mlir.quantization.quantize import Quantised, prepared
from mgx_mlir.quantization.samples import Sample, samples
from mgx_mlir.quantization.sensitivity import Sensitivity, sensitivities
from mgx_mlir.quantization.sites import LeftOut, left_out, sites
from mgx_mlir.quantization.twins import in_floats, in_int4, left_out_of_int4
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.call_times import middle_mean
from mgx_mlir.tools.driver.input_data import allocate
from mgx_mlir.tools.driver.metric_script import MetricScript
from mgx_mlir.tools.driver.model import Model
from mgx_mlir.tools.driver.perf_report import bytes_text
from mgx_mlir.tools.driver.progress import working
from mgx_mlir.tools.driver.target_choice import TargetChoice

_FLOATS = {"half": dtypes.HALF, "bf16": dtypes.BF16}
_GROUP = 32  # group of --int4-weights
Outputs = list[list[np.ndarray]]


@dataclass
class Before:
    """The original model: compiled, with the samples to compare on, and their source."""

    compiled: CompiledProgram
    samples: list[Sample]
    source: str

    @staticmethod
    def of(args: Arguments, model: Model, choice: TargetChoice, data: Any) -> Before:
        """Compile the model, and read the samples; without data, draw inputs."""
        with working(f"Compiling {model.name}"):
            compiled = compile_program(model.loaded, choice.target, **choice.options())
        if data is None:
            drawn = allocate(args, model, compiled.signature, draws(model.loaded))
            return Before(compiled, [drawn], "inputs drawn from their names: "
                          "--evaluate or --calibrate give real ones")  # fmt: skip
        given = list(samples(data, compiled.signature.inputs))
        if not given:
            raise UsageError("the evaluation data has no sample")
        where = data if isinstance(data, str) else "the script of --metric"
        return Before(compiled, given, f"{len(given)} sample{'s' * (len(given) != 1)} of {where}")


def collect(
    args: Arguments,
    model: Model,
    choice: TargetChoice,
    kind: str,
    before: Before,
    made: ProgramIR,
    found: Quantised | FourBits | None,
    script: MetricScript | None,
) -> dict[str, Any]:
    """Measure both programs, and collect what the report shows, as JSON values."""
    rows = _layers(args, model, kind, before, found)
    compiled = compile_program(made, choice.target, **choice.options())
    was, now = (
        [list(map(np.asarray, c.run(dict(s)))) for s in before.samples]
        for c in (before.compiled, compiled)
    )
    names = list(before.compiled.output_names)
    outputs = [_output(n, [o[i] for o in was], [o[i] for o in now]) for i, n in enumerate(names)]
    metrics = None if script is None else (script.metric(was), script.metric(now))
    inputs = before.compiled.signature.check_inputs(before.samples[0])
    times = _times(before.compiled, compiled, inputs, args.get("--iterations", 100))
    weights = model.loaded.store.nbytes, made.store.nbytes
    quantised_rows = [r for r in rows if not r["why"]]
    figures = [
        ["weights of the program", *map(bytes_text, weights), _ratio(*weights)],
        ["weights as compiled", *map(bytes_text, w := (_held(before.compiled), _held(compiled))),
         _ratio(*w)],
        ["a call", *(f"{t:.4g} ms" for t in times), _ratio(*times)],
    ]  # fmt: skip
    cards = [
        [f"dots and convolutions in {kind}", f"{len(quantised_rows)} of {len(rows)}", ""],
        ["weights", f"{figures[0][3]}", ""],
        ["a call", f"{figures[2][3]}", ""],
    ]
    reached = True
    if metrics is not None:
        figures.append(
            ["metric", *(f"{m:.6g}" for m in metrics), f"{metrics[1] - metrics[0]:+.3g}"]
        )
        reached = metrics[1] >= args.get("--least", -math.inf)
        tone = "" if "--least" not in args else "good" if reached else "bad"
        cards.append(["metric", f"{metrics[1]:.6g}", tone])
    # an output that is not finite is worst, an exact one is best
    worst = min(outputs, key=lambda o: {"exact": math.inf}.get(o["db"], o["sqnr"] or -math.inf))
    cards.append(["worst output", worst["db"] + " dB" * (worst["sqnr"] is not None), ""])
    target = choice.target
    return {
        "title": os.path.basename(os.path.normpath(model.name)),
        "subtitle": f"in {kind}, on {target}; measured on {before.source}",
        "kind": kind,
        "cards": cards,
        "layers": rows,
        "layers_note": (
            "Each matmul or convolution alone, on its operands in the original model:"
            " the power of its result over that of the error, and the cosine of both."
            " Grey: not quantised."
        ),
        "outputs": outputs,
        "outputs_note": f"The whole program against the original model, on {before.source}.",
        "figures": figures,
        "reached": reached,
        "versions": [*_options(args), ["mgx_mlir", __version__]],
    }


# ---- layers --------------------------------------------------------------------------------------


def _layers(
    args: Arguments, model: Model, kind: str, before: Before, found: Quantised | FourBits | None
) -> list[dict[str, Any]]:
    """List all matmuls and convolutions in order: type, error, and why some are not quantised."""
    base = prepared(model.loaded)
    every = sites(base, computed_operands=True)
    bodies = left_out(base, computed_operands=True)
    ranked: list[Sensitivity]
    if isinstance(found, Quantised):
        ranked, others = found.sensitivities, found.left_out
        kept = dict.fromkeys(args.get("--keep", []), "kept: --keep names it")
        limit = "--max-error" if "--max-error" in args else "--least"
        kept |= dict.fromkeys(found.kept, f"kept: {limit} {args.get(limit)} needs it")
    else:
        kept, here = {}, "ref" if "--ref" in args else "cpu"
        size = args.get("--group-size", _GROUP)
        others: list[LeftOut] = [*bodies, *left_out_of_int4(every)] if kind == "int4" else []
        skipped = {o.name for o in others}
        wanted = [s for s in every if s.name not in skipped]
        narrow = in_int4(size, found) if kind == "int4" else in_floats(_FLOATS[kind])
        ranked = sensitivities(base, wanted, narrow, before.samples, here)
    why = {o.name: f"stays: {o.why}" for o in others} | kept
    measured = {s.name: s for s in ranked}
    rows = []
    # ops in bodies of If and Loop come last
    for name, op in [(s.name, s.kind) for s in (*every, *bodies)]:
        row = measured.get(name)
        rows.append({
            "name": name, "kind": op, "type": "as it was" if name in why else kind,
            **_loss(row.sqnr if row else None, row.cosine if row else None),
            "why": why.get(name, ""),
        })  # fmt: skip
    return rows


def _loss(sqnr: float | None, cosine: float | None) -> dict[str, Any]:
    """Return decibels as a number, where they are one, and as text."""
    if sqnr is None:
        return {"sqnr": None, "db": "", "cosine": None}
    if math.isfinite(sqnr):
        return {"sqnr": sqnr, "db": f"{sqnr:.1f}", "cosine": cosine}
    return {"sqnr": None, "db": "exact" if sqnr > 0 else "not finite", "cosine": cosine}


# ---- outputs, time, size -------------------------------------------------------------------------


def _output(name: str, was: Sequence[np.ndarray], now: Sequence[np.ndarray]) -> dict[str, Any]:
    """Compare an output over all samples; NaN and infinities that both have are left out."""
    power = noise = product = other = worst = 0.0
    for first, second in zip(was, now, strict=True):
        a, b = (np.asarray(v).astype(np.float64).reshape(-1) for v in (first, second))
        both = np.isfinite(a) | np.isfinite(b)
        a, b = a[both], b[both]
        if not np.isfinite(a).all() or not np.isfinite(b).all():
            return {"name": name, **_loss(-math.inf, None), "max_abs": None}
        power, other = power + float(a @ a), other + float(b @ b)
        product += float(a @ b)
        noise += float((a - b) @ (a - b))
        worst = max(worst, float(np.abs(a - b).max(initial=0.0)))
    sqnr = math.inf if not noise else 10 * math.log10(max(power, 1e-30) / noise)
    scale = math.sqrt(power * other)
    cosine = min(product / scale, 1.0) if scale else None
    return {"name": name, **_loss(sqnr, cosine), "max_abs": worst}


def _times(
    first: CompiledProgram, second: CompiledProgram, arrays: Sequence[np.ndarray], count: int
) -> tuple[float, float]:
    """Return the milliseconds of a call of each, interleaved."""
    spent: tuple[list[float], list[float]] = ([], [])
    for program in (first, second):
        program.execute(arrays)
    for _ in range(count):
        for program, each in zip((first, second), spent, strict=True):
            start = time.perf_counter()
            program.execute(arrays)
            each.append((time.perf_counter() - start) * 1e3)
    return middle_mean(sorted(spent[0])), middle_mean(sorted(spent[1]))


def _held(compiled: CompiledProgram) -> int:
    return sum(a.nbytes for a in getattr(compiled, "params", {}).values())


def _ratio(before: float, after: float) -> str:
    return f"{after / before:.3g} x" if before else ""


def _options(args: Arguments) -> list[list[str]]:
    rows: list[list[str]] = []
    for flag, value in args.values.items():
        shown = " ".join(map(str, value)) if isinstance(value, list) else str(value)
        rows.append([flag, "" if value is True else shown])
    return rows


# ---- text ----------------------------------------------------------------------------------------


def text_lines(data: dict[str, Any]) -> list[str]:
    """Write the report as tables of text."""
    layers = [["layer", "op", "type", "SQNR dB", "cosine", "remarks"]]
    layers += [[r["name"], r["kind"], r["type"], *_losses(r), r["why"]] for r in data["layers"]]
    outputs = [["output", "SQNR dB", "cosine", "max abs diff"]]
    for o in data["outputs"]:
        worst = "inf" if o["max_abs"] is None else f"{o['max_abs']:.3g}"
        outputs.append([o["name"], *_losses(o), worst])
    return [
        f"{data['title']} {data['subtitle']}", "",
        *_table(layers, "lllrrl"), "",
        *_table(outputs, "lrrr"), "",
        *_table([["", "before", "after", "change"], *data["figures"]], "lrrr"),
    ]  # fmt: skip


def _losses(row: dict[str, Any]) -> tuple[str, str]:
    return row["db"] or "-", "-" if row["cosine"] is None else f"{row['cosine']:.6f}"


def _table(rows: Sequence[Sequence[str]], sides: str) -> list[str]:
    widths = [max(len(r[i]) for r in rows) for i in range(len(sides))]
    lines = []
    for row in rows:
        cells = [
            f"{c:<{w}}" if s == "l" else f"{c:>{w}}"
            for c, w, s in zip(row, widths, sides, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines
