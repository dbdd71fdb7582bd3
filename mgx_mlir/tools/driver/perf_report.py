"""Output of perf: MIGraphX's lines, a table of kernels, memory, JSON, and a comparison."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mgx_mlir import __version__
from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import read_bytes
from mgx_mlir.core.names import safe_name
from mgx_mlir.debug.peaks import Peaks
from mgx_mlir.tools.driver.beside_onnxruntime import BesideOnnxruntime
from mgx_mlir.tools.driver.call_times import Calls, Together
from mgx_mlir.tools.driver.timing import Kernels, Line

REPORT = "mgx-driver perf 1"
_LARGEST = 1 << 28  # bytes of a report that is read
PERCENTILES = (0.9, 0.95, 0.99)
NODES = 4  # nodes of the model that a row of the table names


@dataclass
class Memory:
    """Bytes. `peak` is what the process held at most while it ran, None where that is unknown.

    `planned` is IREE's: "transient" is what calls and loading allocate in between.
    """

    weights: int = 0
    planned: dict[str, int] = field(default_factory=dict)
    peak: int | None = None


@dataclass
class Performance:
    """All that a run of perf has measured."""

    model: str
    target: str
    threads: int | None
    batch: int
    calls: Calls
    kernels: Kernels | None = None
    peaks: Peaks | None = None
    memory: Memory = field(default_factory=Memory)
    load_s: float | None = None
    dry_ms: float | None = None
    together: Together | None = None
    beside: BesideOnnxruntime | None = None


def report_lines(
    calls: Calls,
    kernels: Kernels | None,
    batch: int,
    version: str = "seed",
    *,
    detailed: bool = False,
    dry_ms: float | None = None,
) -> list[str]:
    """Write MIGraphX's report: kernels, summary, rate, total, percentiles, overhead.

    `version` "2.16" has the counts and the wording of MIGraphX's newer form. `dry_ms`: the time of
    a call without kernels. Values that were not measured have no line.
    """
    out: list[str] = []
    if kernels is not None:
        total = kernels.total
        for line in kernels.lines:
            taken = "" if line.ms is None else f": {line.ms:g}ms, {_share(line.ms, total)}%"
            out.append(line.text + taken)
        out += ["", "Summary:"]
        ordered = sorted(kernels.groups(detailed=detailed).items(), key=lambda g: -g[1][0])
        for name, (taken, n) in ordered:
            middle = f" / {n:g} = {taken / n:g}ms" if version == "2.16" and n else ""
            out.append(f"{name}: {taken:g}ms{middle}, {_share(taken, total)}%")
        out.append("")
    times = calls.times
    rate = batch * 1e3 / calls.total
    if version == "2.16" or batch != 1:
        out.append(f"Batch size: {batch}")
    out += [
        f"Rate: {rate:g}{' inferences' if version == '2.16' else ''}/sec",
        f"Total time: {calls.total:g}ms (Min: {times[0]:g}ms, Max: {times[-1]:g}ms, "
        f"Mean: {float(np.mean(times)):g}ms, Median: {float(np.median(times)):g}ms)",
        "Percentiles (90%, 95%, 99%): ("
        + ", ".join(f"{calls.percentile(p):g}ms" for p in PERCENTILES)
        + ")",
    ]
    if kernels is not None:
        out.append(f"Total instructions time: {kernels.total:g}ms")
        over = [*([] if dry_ms is None else [dry_ms]), calls.total - kernels.total]
        out.append(f"Overhead time: {', '.join(f'{o:g}ms' for o in over)}")
        out.append(f"Overhead: {', '.join(f'{o / calls.total * 100:.0f}%' for o in over)}")
        if dry_ms is not None:
            out.append("(first: a call without kernels; second: total time minus kernels)")
    return out


def _share(part: float, whole: float) -> int:
    """Return percents as MIGraphX's summary has them, rounded up."""
    return math.ceil(part / whole * 100) if whole else 0


def _rounded_share(part: float, whole: float) -> str:
    """Write percents; "<1%" below half a percent, so that small kernels do not look larger."""
    percent = part / whole * 100 if whole else 0.0
    return "<1%" if 0 < percent < 0.5 else f"{percent:.0f}%"


# ---- the table of kernels ------------------------------------------------------------------------


@dataclass(frozen=True)
class Rates:
    """Rates that a kernel reaches: 10**9 bytes and operations a second; None: unknown."""

    gb_s: float | None = None
    gflop_s: float | None = None


def rates_of(line: Line) -> Rates:
    """Return the rates of a kernel, of all threads together."""
    seconds = (line.ms or 0.0) / 1e3
    if seconds <= 0:
        return Rates()
    moved, done = line.work.bytes, line.work.operations
    return Rates(
        None if moved is None else moved / seconds / 1e9,
        None if done is None else done / seconds / 1e9,
    )


def table_lines(kernels: Kernels, peaks: Peaks | None) -> list[str]:
    """Write a row for each kernel: time, share, bytes, operations, rates, shares of the peaks."""
    head = ["ms", "share", "MB", "MFLOP", "GB/s", "peak", "GFLOP/s", "peak"]
    rows = []
    ordered = sorted(kernels.timed, key=lambda line: -(line.ms or 0.0))
    for line in ordered:
        rates = rates_of(line)
        assert line.ms is not None
        rows.append(
            [
                f"{line.ms:.4g}",
                _rounded_share(line.ms, kernels.total),
                _number(line.work.bytes, 1e6),
                _number(line.work.operations, 1e6),
                _number(rates.gb_s),
                _of_peak(rates.gb_s, peaks and peaks.gb_s, beyond="cache"),
                _number(rates.gflop_s),
                _of_peak(rates.gflop_s, peaks and peaks.gflop_s),
            ]
        )
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    out = [_row(head, widths, "kernel")]
    out += [_row(r, widths, _named(line)) for r, line in zip(rows, ordered, strict=True)]
    if peaks is not None:
        threads = "1 thread" if peaks.threads == 1 else f"{peaks.threads} threads"
        out.append(
            f"Peaks of this machine, measured on {threads}: {peaks.gb_s:.3g} GB/s from memory, "
            f"{peaks.gflop_s:.3g} GFLOP/s in f32"
        )
    return out


def _named(line: Line) -> str:
    """Write a kernel and the nodes of the model that it computes."""
    more = len(line.nodes) - NODES
    shown = [*map(safe_name, line.nodes[:NODES]), *([f"and {more} more"] if more > 0 else [])]
    return f"{line.label}  {', '.join(shown)}" if shown else line.label


def _row(cells: Sequence[str], widths: Sequence[int], last: str) -> str:
    return "  ".join([*(f"{c:>{w}}" for c, w in zip(cells, widths, strict=True)), last])


def _number(value: float | None, unit: float = 1.0) -> str:
    return "-" if value is None else f"{value / unit:.3g}"


def _of_peak(value: float | None, peak: float | None, beyond: str = "") -> str:
    """Write the share of a peak; `beyond` in place of one that is above it."""
    if value is None or not peak:
        return "-"
    return beyond if beyond and value > peak else f"{value / peak * 100:.0f}%"


def memory_line(m: Memory) -> str:
    """Write what was held in memory."""
    parts = [f"weights {bytes_text(m.weights)}"]
    if "transient" in m.planned:
        parts.append(f"{bytes_text(m.planned['transient'])} planned by IREE for loading and calls")
    if m.peak is not None:
        parts.append(f"peak of the process {bytes_text(m.peak)}")
    return f"Memory: {', '.join(parts)}"


def bytes_text(n: float) -> str:
    """Write a number of bytes in the unit that makes it short."""
    for unit in ("B", "kB", "MB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n /= 1000
    return f"{n:.3g} GB"


# ---- JSON ----------------------------------------------------------------------------------------


def performance_json(p: Performance) -> dict[str, Any]:
    """Return the report as a JSON object; docs/perf.md lists the keys."""
    times = p.calls.times
    found: dict[str, Any] = {
        "report": REPORT,
        "version": __version__,
        "model": p.model,
        "target": p.target,
        "threads": p.threads,
        "batch": p.batch,
        "iterations": len(times),
        "total_ms": p.calls.total,
        "rate_per_s": p.batch * 1e3 / p.calls.total,
        "calls": {
            "min_ms": times[0],
            "max_ms": times[-1],
            "mean_ms": float(np.mean(times)),
            "median_ms": float(np.median(times)),
            **{f"p{round(q * 100)}_ms": p.calls.percentile(q) for q in PERCENTILES},
        },
        "load_s": p.load_s,
        "dry_run_ms": p.dry_ms,
        "memory": {"weights": p.memory.weights, **p.memory.planned, "peak": p.memory.peak},
        "peaks": None,
        "kernels": None,
    }
    if p.together is not None:
        found["concurrency"] = {
            "callers": p.together.callers,
            "rate_per_s": p.together.rate * p.batch,
            "median_ms": p.together.median,
        }
    if p.beside is not None:
        found["onnxruntime"] = p.beside.json()
    if p.peaks is not None:
        found["peaks"] = {
            "threads": p.peaks.threads, "gb_s": p.peaks.gb_s, "gflop_s": p.peaks.gflop_s,
        }  # fmt: skip
    if p.kernels is not None:
        found["kernels_ms"] = p.kernels.total
        found["note"] = p.kernels.note
        found["kernels"] = [_kernel_json(line, p.peaks) for line in p.kernels.timed]
    return found


def _kernel_json(line: Line, peaks: Peaks | None) -> dict[str, Any]:
    rates = rates_of(line)

    def share(value: float | None, peak: float | None) -> float | None:
        return None if value is None or not peak else value / peak

    return {
        "name": line.label,
        "group": line.group,
        "nodes": list(line.nodes),
        "line": line.text,
        "ms": line.ms,
        "busy_ms": line.busy_ms,
        "launches": line.launches,
        "bytes": line.work.bytes,
        "operations": line.work.operations,
        "gb_s": rates.gb_s,
        "gflop_s": rates.gflop_s,
        "bandwidth_share": share(rates.gb_s, peaks and peaks.gb_s),
        "operations_share": share(rates.gflop_s, peaks and peaks.gflop_s),
    }


# ---- comparing with another run ------------------------------------------------------------------


@dataclass(frozen=True)
class OtherRun:
    """Baseline of a comparison: the total and the kernels' milliseconds by name, in order."""

    total_ms: float
    kernels: tuple[tuple[str, float], ...]


def read_report(path: str) -> OtherRun:
    """Read the report of another run, as --json writes it. FileError for anything else."""
    data = read_bytes(path)
    if len(data) > _LARGEST:
        raise FileError(f"a report of {len(data)} bytes is too large", location=path)
    try:
        found = json.loads(bytes(data))
    except (ValueError, RecursionError):
        raise FileError(
            "expected a report of perf --json, the file is not JSON", location=path
        ) from None
    if not isinstance(found, Mapping) or found.get("report") != REPORT:
        raise FileError(f"expected a report of perf --json, '{REPORT}'", location=path)
    kernels = found.get("kernels") or []
    try:
        total = _time(found["total_ms"])
        rows = tuple((str(k["name"]), _time(k["ms"])) for k in kernels)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise FileError("the report of perf --json is damaged", location=path) from None
    if total == 0:
        raise FileError("the report of perf --json is damaged: its total is 0", location=path)
    return OtherRun(total, rows)


def _time(value: Any) -> float:
    found = float(value)
    if not (math.isfinite(found) and found >= 0):
        raise ValueError("not a time")
    return found


@dataclass(frozen=True)
class Compared:
    """Comparison of a run: the ratio of totals, and (name, ms, other's ms) of each kernel."""

    ratio: float
    kernels: tuple[tuple[str, float | None, float | None], ...]


def compare_runs(this: Performance, other: OtherRun) -> Compared:
    """Match the kernels of two runs by name; several of one name by their order."""
    rest: dict[str, list[float]] = {}
    for name, ms in other.kernels:
        rest.setdefault(name, []).append(ms)
    rows: list[tuple[str, float | None, float | None]] = []
    for line in this.kernels.timed if this.kernels is not None else []:
        known = rest.get(line.label)
        rows.append((line.label, line.ms, known.pop(0) if known else None))
    rows += [(name, None, ms) for name, left in rest.items() for ms in left]
    return Compared(this.calls.total / other.total_ms, tuple(rows))


def comparison_lines(found: Compared, this: Performance, other: OtherRun, where: str) -> list[str]:
    """Write a row for each kernel, and the total."""
    rows = [
        [_ms(a), _ms(b), "-" if not a or not b else f"{a / b:.2f}x", name]
        for name, a, b in found.kernels
    ]
    head = ["ms", "other ms", "ratio"]
    widths = [max(map(len, c)) for c in zip(head, *(r[:3] for r in rows), strict=True)]
    out = [f"Compared with {where}:", _row(head, widths, "kernel")]
    out += [_row(r[:3], widths, r[3]) for r in rows]
    out.append(f"Total: {this.calls.total:g}ms, {other.total_ms:g}ms there: {found.ratio:.3f}x")
    return out


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
