"""--explain: where patterns were applied, and why not where they were tried and refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import TextIO

from mgx_mlir.rewrite.passes import PASSES, known_rewrites, pipeline_name, rewrites_of
from mgx_mlir.rewrite.pattern import Pattern
from mgx_mlir.rewrite.rewrite_trace import APPLIED, MatchTrace


def print_explanation(
    trace: MatchTrace,
    names: Iterable[str],
    ran: Collection[str],
    located: Callable[[str], str],
    to: TextIO,
) -> None:
    """Print a remark for each op on which a pattern in `names` was tried, then its totals.

    `ran` holds the passes that ran, in pipeline spelling; `located` gives the location to show.
    What was found again in a later sweep is shown once.
    """
    known = known_rewrites()
    for name in sorted(names):
        attempts = [a for a in trace.attempts if a.name == name]
        times: Counter[tuple[str, str, str]] = Counter()
        for a in attempts:
            times[located(a.location), a.outcome, a.op] += 1
        for (where, outcome, op), n in times.items():
            applied = outcome == APPLIED
            said = "applied" if applied else f"not applied: {outcome}"
            # a refusal is repeated whenever the driver comes by again; an application is not
            tail = f" ({n} times)" if applied and n > 1 else ""
            at = f"{where}: " if where else ""
            print(f"{at}remark: [{name}] {said}{tail}", file=to)
            if op:
                print(f"    {op}", file=to)
        hits = sum(n for (_, outcome, _), n in times.items() if outcome == APPLIED)
        misses = sum(1 for _, outcome, _ in times if outcome != APPLIED)
        print(f"{name}: applied {hits}, refused {misses}: {known[name].summary}", file=to)
        if not attempts:
            print(f"note: {_why_untried(name, ran)}", file=to)
    to.flush()


def _why_untried(name: str, ran: Collection[str]) -> str:
    holders = [
        pipeline_name(p) for p in PASSES if any(r.name == name for r in rewrites_of(PASSES[p]))
    ]
    if holders and not set(holders) & set(ran):
        do = "does" if len(holders) == 1 else "do"
        return f"no pass that ran holds it, {' and '.join(holders)} {do}"
    found = known_rewrites()[name]
    if not isinstance(found, Pattern):
        return "no op was tried"
    roots = found.root_names()
    shown = ", ".join(roots[:8]) + (", ..." if len(roots) > 8 else "")
    return f"no op was tried: it looks at {shown}, and the patterns of higher benefit go first"
