"""A trace of a run in Chrome's format, which ui.perfetto.dev and chrome://tracing show."""

from __future__ import annotations

import json
from typing import Any

from mgx_mlir.tools.driver.perf_report import Performance, rates_of

_PROCESS = 1
_CALLS, _KERNELS = 1, 2  # tracks


def trace_json(p: Performance) -> dict[str, Any]:
    """Return the trace: every timed call as it was, and one call's kernels with their mean times.

    Kernels are measured in a run of their own; they are laid one after another from the start of a
    call, so that only their lengths and order mean something. Times are in microseconds.
    """
    events: list[dict[str, Any]] = [
        _named("process_name", f"{p.model} on {p.target}"),
        _named("thread_name", "calls", _CALLS),
    ]
    for i, (start, duration) in enumerate(p.calls.spans):
        events.append(_event(f"call {i}", "call", start, duration, _CALLS, {}))
    if p.kernels is not None:
        events.append(_named("thread_name", "kernels of one call, means", _KERNELS))
        events += _kernels(p)
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _kernels(p: Performance) -> list[dict[str, Any]]:
    kernels = p.kernels
    assert kernels is not None
    args = {"note": kernels.note, "mean call ms": p.calls.total}
    events = [_event("kernels", "kernels", 0.0, kernels.total, _KERNELS, args)]
    at = 0.0
    for line in kernels.timed:
        assert line.ms is not None
        rates = rates_of(line)
        held = {
            "line": line.text, "launches": line.launches, "bytes": line.work.bytes,
            "operations": line.work.operations, "GB/s": rates.gb_s, "GFLOP/s": rates.gflop_s,
        }  # fmt: skip
        known = {k: v for k, v in held.items() if v is not None}
        events.append(_event(line.label, "kernel", at, line.ms, _KERNELS, known))
        at += line.ms
    return events


def _event(
    name: str, category: str, start: float, duration: float, track: int, args: dict[str, Any]
) -> dict[str, Any]:
    """Make a complete event; milliseconds in, microseconds out."""
    return {
        "name": name, "cat": category, "ph": "X", "ts": start * 1e3, "dur": duration * 1e3,
        "pid": _PROCESS, "tid": track, "args": args,
    }  # fmt: skip


def _named(what: str, name: str, track: int = 0) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": _PROCESS, "tid": track, "args": {"name": name}}


def trace_bytes(p: Performance) -> bytes:
    """Encode the trace as a file holds it."""
    return json.dumps(trace_json(p)).encode(errors="surrogatepass")
