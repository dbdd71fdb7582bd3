"""Costs of a compile by its phases, as a summary, a table and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

# phases in their order: field of the seconds, and name in reports
PHASES = {
    "import_s": "import", "passes_s": "passes", "lowering_s": "lowering", "iree_s": "iree",
}  # fmt: skip
_MEMORY = {"peak_rss": "of this process", "iree_peak_memory": "of IREE"}


@dataclass
class CompileStats:
    """Costs of a compile: seconds of each stage, peak memory; None for stages that did not run."""

    cached: bool = False  # program came from the cache
    import_s: float | None = None
    passes_s: float | None = None
    lowering_s: float | None = None
    iree_s: float | None = None
    total_s: float | None = None
    first_s: float | None = None  # total_s of the compile that made the cache entry
    load_s: float | None = None
    kernels: int | None = None  # kernels that were compiled as modules of their own
    kernels_found: int | None = None  # kernels among them that the cache had
    iree_peak_memory: int | None = None  # peak resident bytes of IREE
    iree_crashes: int = 0  # IREE compiles that failed and were repeated on one thread
    peak_rss: int | None = None  # peak resident bytes of this process
    tuning: tuple[str, ...] = ()  # lines of the report on tuning
    # reason why the passes ran again without names of dynamic dims
    unnamed_dynamic_dims: str | None = None

    def known(self) -> dict[str, Any]:
        """Return what is known, by name."""
        return {k: v for k, v in asdict(self).items() if v is not None}


def summary(stats: CompileStats) -> str:
    """Return one line: the seconds of each phase, kernels, peak memory."""
    known = stats.known()
    if stats.cached:
        first = "" if stats.first_s is None else f" (its compile took {stats.first_s:.2f} s)"
        return f"Compiled: loaded from the cache in {known['total_s']:.2f} s{first}"
    parts = [f"{name} {known[key]:.2f} s" for key, name in PHASES.items() if key in known]
    line = f"Compiled in {known['total_s']:.2f} s: {', '.join(parts)}"
    if stats.kernels:
        line += f"; {stats.kernels} distinct kernels, {stats.kernels_found} from the cache"
    memory = [f"{name} {known[k] / 1e6:.0f} MB" for k, name in _MEMORY.items() if known.get(k)]
    return line + (f"; peak memory {', '.join(memory)}" if memory else "")


def time_table(stats: CompileStats) -> str:
    """Return a table of the phases: seconds, and percent of the whole compile."""
    rows = list(_rows(stats))
    width = max(len(name) for name, *_ in rows)
    lines = [f"{name:<{width}} {seconds:9.3f} s {share}" for name, seconds, share in rows]
    return "\n".join(line.rstrip() for line in lines)


def _rows(stats: CompileStats) -> Iterator[tuple[str, float, str]]:
    known, total = stats.known(), stats.total_s or 0.0
    phases = [(name, known[key]) for key, name in PHASES.items() if known.get(key)]
    rest = total - sum(seconds for _, seconds in phases)
    for name, seconds in (*phases, ("cache and rest", max(rest, 0.0)), ("compile", total)):
        yield name, seconds, f"{seconds / total:6.1%}" if total else ""
    if stats.load_s is not None:
        yield "load", stats.load_s, ""


def time_json(stats: CompileStats, target: str) -> str:
    """Return all that is known of a compile as one line of JSON; seconds end in _s."""
    return json.dumps({"target": target, **stats.known()})
