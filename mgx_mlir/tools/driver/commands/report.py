"""report: one page about a model: its graph, kernels, times, memory and correctness."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.compiler.compile import compile as compile_program
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.compiler.options import CompileOptions
from mgx_mlir.core.errors import UsageError
from mgx_mlir.debug.compare import compare_all
from mgx_mlir.passes.lowering.select import watching
from mgx_mlir.printers.listing import list_program
from mgx_mlir.printers.text import program_text
from mgx_mlir.programs.lowered import KernelChoice
from mgx_mlir.tools.driver.arguments import Arguments, Option
from mgx_mlir.tools.driver.commands.env import facts
from mgx_mlir.tools.driver.commands.perf import measure
from mgx_mlir.tools.driver.compile_model import compile_model
from mgx_mlir.tools.driver.input_data import allocate
from mgx_mlir.tools.driver.limits import limits_of
from mgx_mlir.tools.driver.model import Model
from mgx_mlir.tools.driver.options import DATA, HELP, ITERATIONS, LOADER, QUANTIZE, TARGET, VERIFY
from mgx_mlir.tools.driver.page import page
from mgx_mlir.tools.driver.page.against import compared, lines, read_page
from mgx_mlir.tools.driver.page.graph import graph
from mgx_mlir.tools.driver.page.kernels import kernel_rows, lowered_choices
from mgx_mlir.tools.driver.perf_report import Performance, bytes_text, performance_json
from mgx_mlir.tools.driver.precision import tolerances_in
from mgx_mlir.tools.driver.program_texts import write_file
from mgx_mlir.tools.driver.progress import say, step, working
from mgx_mlir.tools.driver.read_model import read
from mgx_mlir.tools.driver.shown import input_uses
from mgx_mlir.tools.driver.static_report import is_static, static_report
from mgx_mlir.tools.driver.target_choice import TargetChoice, choose_target
from mgx_mlir.tools.driver.verify_report import output_json

USAGE = "[OPTION...] FILE [-o FILE.html]"
DESCRIPTION = """
Writes one HTML file that needs no network and no other file: the compiled program as a graph
to zoom, move and open (parts of large ones are shown as one), each kernel with its source nodes,
the rule that took it and the rules that refused it (as compile --explain-kernels prints them), its
time, bytes, operations and share of the machine's peak, the times of calls, memory, what verify
says, and all options and versions. Numbers are those of perf and verify; the reference is ref, on
the same inputs. --against OLD.html compares with a page of another run, and prints the changes.

With --gpu and no .html to write it prints a table instead, which needs no device: each kernel's
registers, LDS, spills, scratch, waves that a SIMD can hold, shares of matrix instructions, of wide
accesses to memory and to the LDS, bytes, operations, and the bound at the chip's peaks. With
--emulate it also runs one call on the emulator, and adds what each kernel executed: time of the
matrix, vector and LDS units, the share of compute units with work, and the bound from these."""
_LIMITS = ("--rms-tol", "--atol", "--rtol", "--ref-use-double")
_OFFLOAD = "--enable-offload-copy"
OPTIONS = (
    *LOADER,
    *(o for o in TARGET if o.key != _OFFLOAD),
    *QUANTIZE,
    *DATA,
    ITERATIONS,
    *(o for o in VERIFY if o.key in _LIMITS),
    Option(("--no-verify",), "leave out the comparison with ref", group="Verification"),
    Option(("--against",), "compare with the page of another run", "OLD.html", group="Output"),
    Option(("--json",), "print the table of --gpu as JSON", group="Output"),
    Option(("-o", "--output"), "the page to write (default: the model's name .html); with --gpu "
           "also a .json", "FILE", group="Output"),
    HELP,
)  # fmt: skip
SHOWN_TEXT = 1 << 20  # characters of the program's text in the page


def run(args: Arguments) -> int:
    """Write a page about the model, or print the table of its GPU kernels."""
    model = Model(args)
    if is_static(args):
        return static_report(args, model)
    if "--json" in args:
        raise UsageError("--json is for the table of --gpu: expected no page with it")
    old = read_page(args.get("--against")) if "--against" in args else None
    path = args.get("--output") or f"{os.path.splitext(os.path.basename(model.name))[0]}.html"
    if "--no-verify" in args:
        for flag in _LIMITS:
            if flag in args:
                raise UsageError(f"expected one of --no-verify and {flag}, got both")
    choice = choose_target(args, runs=True, model=model)
    with watching() as choices:
        compiled = compile_model(args, model, choice)
    if not choices and isinstance(compiled, IreeProgram):  # from the cache, or from a file
        with step("Finding the rule of each kernel ..."):
            choices = lowered_choices(model.program, _compile_options(choice))
    found = measure(args, model, choice, compiled)
    verified = _verified(args, model, choice, compiled)
    data = collect(args, model, choice, compiled, found, verified, choices)
    if old is not None:
        data["against"] = compared(data, old, os.path.basename(args.get("--against")))
        print(*lines(data["against"]), sep="\n")
    write_file(path, page(data).encode(errors="replace"))
    say(f"Writing: {path}")
    return 0 if all(o["passed"] for o in verified["outputs"]) else 1


def _compile_options(choice: TargetChoice) -> CompileOptions:
    given = {k: v for k, v in choice.options().items() if k != "exhaustive_tune"}
    return CompileOptions.of(choice.target, None, given)


def _verified(
    args: Arguments, model: Model, choice: TargetChoice, compiled: CompiledProgram
) -> dict[str, Any]:
    """Compare with the reference; without one, no outputs and a note."""
    if "--no-verify" in args or choice.target == "ref":
        why = "not compared: " + ("--no-verify" if "--no-verify" in args else "the target is ref")
        return {"note": why, "outputs": []}
    # the reference is the model in its file
    plain = Model(args, plain=True) if model.passes or model.precisions else model
    program = read(plain)
    reference = compile_program(program, "ref", ref_double="--ref-use-double" in args)
    inputs = allocate(args, model, compiled.signature, input_uses(args, compiled))
    with step("Running ref ..."):
        wanted = reference.run(inputs)
    got = compiled.run(inputs)
    limits = [limits_of(args)(t) for t in tolerances_in(program, model.precisions)]
    if len(limits) != len(got):
        limits = [max(limits, key=lambda t: t.rms)] * len(got)
    names = (compiled.output_names, reference.output_names)
    with working("Comparing"):
        rows = compare_all(names[0], got, names[1], wanted, limits, (choice.target, "ref"))
    shown = " or ".join(dict.fromkeys(map(str, limits)))
    return {
        "note": f"{choice.target} against ref on the same inputs; limits: {shown}",
        "outputs": [output_json(c) for c in rows],
    }


def collect(
    args: Arguments,
    model: Model,
    choice: TargetChoice,
    compiled: CompiledProgram,
    found: Performance,
    verified: dict[str, Any],
    choices: Sequence[KernelChoice],
) -> dict[str, Any]:
    """Collect what the page shows, as JSON values."""
    perf = performance_json(found)
    program = compiled.program
    total = perf.get("kernels_ms") or 0.0
    rows = perf["kernels"] or []
    for row in rows:
        row["share"] = row["ms"] / total if total else 0.0
    times = {
        r["line"].partition(" = ")[0]: (r["ms"], r["share"]) for r in rows if " = " in r["line"]
    }
    listing = list_program(program, kernel_prefix=choice.target)
    with program.ctx, program.store.active():
        # a variant, where that is what was timed
        called = (m for m in listing.modules if any(i.lhs in times for i in m.visible()))
        listed = list(next(called, listing.main).visible())
        drawn = graph(listed, times)
    ids = {n["text"].partition(" = ")[0]: n["id"] for n in drawn["nodes"]}
    text = program_text(program, kernel_prefix=choice.target)
    if len(text) > SHOWN_TEXT:
        text = text[:SHOWN_TEXT] + "\n... and so on"
    kernels = kernel_rows(compiled, listed, rows, choices)
    for kernel, r in zip(kernels, rows, strict=True):
        kernel["id"] = ids.get(r["line"].partition(" = ")[0])
    passed = all(o["passed"] for o in verified["outputs"])
    verdict = ("pass" if passed else "FAIL") if verified["outputs"] else "not done"
    tone = {"pass": "good", "FAIL": "bad"}.get(verdict, "")
    name = os.path.basename(os.path.normpath(model.name))
    return {
        "title": name,
        "subtitle": _subtitle(choice, compiled),
        "cards": [
            ["a call", _time(perf["total_ms"]), ""],
            ["rate", f"{_grouped(perf['rate_per_s'])} /s", ""],
            ["verification", verdict, tone],
            ["kernels", str(_kernel_count(compiled, rows)), ""],
            ["weights", bytes_text(perf["memory"]["weights"] or program.store.nbytes), ""],
            ["compiled in", _compile_time(compiled), ""],
        ],
        **drawn,
        "kernels": kernels,
        "kernels_note": _kernels_note(perf),
        "calls": list(map(float, np.sort(np.asarray(found.calls.times)))),
        "times": _call_rows(perf),
        "memory": [[k.replace("_", " "), v] for k, v in _memory(perf, compiled) if v is not None],
        "verify": {"note": verified["note"], "outputs": list(map(_output, verified["outputs"]))},
        "compilation": _compilation(compiled),
        "versions": [*_options(args), *_versions()],
        "text": text,
    }


def _time(ms: float) -> str:
    return f"{ms:.4g} ms" if ms >= 0.1 else f"{ms * 1e3:.4g} µs"


def _grouped(number: float) -> str:
    """Return four digits of a number, thousands apart: a card of the page is narrow."""
    shown = f"{number:.4g}"
    return f"{float(shown):,.0f}" if number >= 1000 else shown


def _compile_time(compiled: CompiledProgram) -> str:
    if compiled.stats.total_s is None:
        return "the file's code"
    seconds = compiled.stats.first_s if compiled.stats.cached else compiled.stats.total_s
    return "cached" if seconds is None else f"{seconds:.3g} s"


def _subtitle(choice: TargetChoice, compiled: CompiledProgram) -> str:
    parts = [choice.target]
    if isinstance(compiled, IreeProgram) and choice.target == "cpu":
        threads = compiled.thread_count
        parts.append("1 thread" if threads == 1 else f"{threads} threads")
    parts += [a for a in choice.archs if a is not None]
    if choice.emulate:
        parts.append("emulated, with the times of this machine's CPU")
    shapes = ", ".join(f"{p.name}: {p}" for p in compiled.signature.given_inputs[:4])
    more = " ..." if len(compiled.signature.given_inputs) > 4 else ""
    return f"{', '.join(parts)} · {shapes}{more}"


def _kernel_count(compiled: CompiledProgram, rows: list[Any]) -> int:
    """Return the kernels of the program, as it is listed; one may take several launches."""
    return len(compiled.kernels) if isinstance(compiled, IreeProgram) else len(rows)


def _kernels_note(perf: dict[str, Any]) -> str:
    parts = [perf.get("note") or "Kernels are not timed on this target"]
    peaks = perf["peaks"]
    if peaks is not None:
        parts.append(
            f"this machine's peaks: {peaks['gb_s']:.3g} GB/s from memory, "
            f"{peaks['gflop_s']:.3g} GFLOP/s in f32"
        )
    return "; ".join(parts)


def _call_rows(perf: dict[str, Any]) -> list[list[str]]:
    rows = [["total (middle half)", _time(perf["total_ms"])]]
    rows += [[k.removesuffix("_ms"), _time(v)] for k, v in perf["calls"].items()]
    if perf["load_s"] is not None:
        rows.append(["load", f"{perf['load_s']:.3g} s"])
    return rows


def _memory(perf: dict[str, Any], compiled: CompiledProgram) -> list[tuple[str, int | None]]:
    rows: list[tuple[str, int | None]] = list(perf["memory"].items())
    executable = getattr(compiled, "executable", None)
    if executable is not None:
        rows.append(("code", len(bytes(executable.vmfb))))
        rows.append(("peak_of_iree", executable.peak_memory))
    return rows


def _output(o: dict[str, Any]) -> dict[str, Any]:
    def number(value: Any) -> str:
        return f"{value:.3g}" if isinstance(value, float | int) else str(value)

    shown = {k: number(o[k]) for k in ("max_abs", "max_rel", "rms")}
    remarks = [*o["problems"], *(f"warning: {w}" for w in o["warnings"])]
    return {"name": o["name"], "passed": o["passed"], "remarks": remarks, **shown}


def _compilation(compiled: CompiledProgram) -> list[list[str]]:
    names = {"import_s": "import", "passes_s": "passes", "lowering_s": "lowering",
             "iree_s": "IREE", "total_s": "in all", "first_s": "before it was cached"}  # fmt: skip
    stats = compiled.stats.known()
    rows = [[text, f"{stats[key]:.3g} s"] for key, text in names.items() if key in stats]
    if compiled.stats.cached:
        rows.append(["taken from the cache", "yes"])
    executable = getattr(compiled, "executable", None)
    if executable is not None:
        rows.append(["launches of a call", str(len(executable.kernels))])
        rows.append(["flag set", executable.flag_set])
        rows += [["run again on one thread", text] for text in executable.crashes]
        rows += [["given up", text] for text in executable.fallbacks]
    rows += [["tuning", line.removeprefix("Tuning: ").strip()] for line in compiled.stats.tuning]
    rows += [["variant", v.function] for v in compiled.signature.variants]
    return rows


def _options(args: Arguments) -> list[list[str]]:
    rows = []
    for flag, value in args.values.items():
        text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
        rows.append([flag, "" if value is True else text])
    return rows or [["options", "none"]]


def _versions() -> list[list[str]]:
    found = facts()
    rows = [[k, str(v)] for k, v in found["versions"].items() if v != "not installed"]
    processor = found["processor"]
    rows.append(["processor", f"{processor['name']}, {processor['threads']} threads"])
    rows.append(["features", ", ".join(processor["features"])])
    return [*rows, *([k, v] for k, v in found["environment"].items())]
