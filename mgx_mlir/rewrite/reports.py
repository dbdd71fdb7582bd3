"""Reports of a run of passes, as MLIR prints them: execution times, pass statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from mgx_mlir.rewrite.passes import Timing

_WIDTH = 80
_RULE = f"==={'-' * 73}==="


@dataclass
class _Entry:
    """One pass of the report: the sum of its runs below one parent."""

    title: str
    seconds: float = 0.0
    own: Counter[str] = field(default_factory=Counter[str])
    tried: dict[str, str] = field(default_factory=dict[str, str])
    inner: dict[object, _Entry] = field(default_factory=lambda: {})

    def add(self, t: Timing) -> None:
        self.seconds += t.ms / 1e3
        self.own.update(t.own)
        self.tried.update(t.tried)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, _Entry]]:
        for entry in self.inner.values():
            yield depth, entry
            yield from entry.walk(depth + 1)


def _tree(timings: Sequence[Timing]) -> _Entry:
    """Return the passes below a root; several runs of one pass below its parent are merged."""
    root = _Entry("root")
    path = [root]
    for t in timings:
        del path[t.depth + 1 :]
        # passes that contain passes make new ones for each run
        key = id(t.step) if t.depth == 0 else str(t.step)
        entry = path[-1].inner.setdefault(key, _Entry(t.step.title))
        entry.add(t)
        path.append(entry)
    return root


def _header(banner: str, to: TextIO) -> None:
    print(_RULE, file=to)
    print(f"{' ' * ((_WIDTH - len(banner)) // 2)}{banner}", file=to)
    print(_RULE, file=to)


def print_timing(
    timings: Sequence[Timing],
    to: TextIO,
    *,
    display: str = "tree",
    before: Sequence[tuple[str, float]] = (),
    after: Sequence[tuple[str, float]] = (),
    total: float | None = None,
) -> None:
    """Print the execution time report: `display` "tree" nests the passes, "list" sorts by time.

    `before` and `after` are (name, seconds) of other work; `total` is the wall time.
    """
    root = _tree(timings)
    passes = [(d, e.title, e.seconds) for d, e in root.walk()]
    first, last = ([(0, name, s) for name, s in part] for part in (before, after))
    spent = sum(s for d, _, s in (*first, *passes, *last) if d == 0)
    total = max(spent, total or 0.0)
    rows = [*first, *passes, *last]
    if display == "list":
        merged: Counter[str] = Counter()
        for _, name, seconds in rows:
            merged[name] += seconds  # type: ignore[assignment]
        rows = [(0, name, seconds) for name, seconds in merged.most_common()]
    _header("... Execution time report ...", to)
    print(f"  Total Execution Time: {total:.4f} seconds\n", file=to)
    print("  ----Wall Time----  ----Name----", file=to)
    for depth, name, seconds in [*rows, (0, "Rest", total - spent), (0, "Total", total)]:
        share = 100 * seconds / total if total else 0.0
        print(f"  {seconds:8.4f} ({share:5.1f}%)  {'  ' * depth}{name}", file=to)
    to.flush()


def print_statistics(timings: Sequence[Timing], to: TextIO, *, display: str = "pipeline") -> None:
    """Print the pass statistics report: the number of applications of each rewrite, zeros included.

    `display` "pipeline" nests the passes in the order they ran, "list" merges those of one name.
    """
    entries = list(_tree(timings).walk())
    if display == "list":
        merged: dict[str, _Entry] = {}
        for _, entry in entries:
            into = merged.setdefault(entry.title, _Entry(entry.title))
            into.own.update(entry.own)
            into.tried.update(entry.tried)
        entries = [(0, merged[title]) for title in sorted(merged)]
        entries = [(depth, e) for depth, e in entries if e.own or e.tried]
    _header("... Pass statistics report ...", to)
    for depth, entry in entries:
        indent = "  " * depth
        print(f"{indent}{entry.title}", file=to)
        names = sorted({*entry.tried, *entry.own})
        if not names:
            continue
        digits = max(len(str(entry.own[name])) for name in names)
        longest = max(map(len, names))
        for name in names:
            count, summary = entry.own[name], entry.tried.get(name, "")
            line = f"{indent}  (S) {count:{digits}} {name:{longest}} - {summary}"
            print(line.rstrip(" -") if not summary else line, file=to)
    print(file=to)
    to.flush()
