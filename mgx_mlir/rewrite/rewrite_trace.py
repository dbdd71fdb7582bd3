"""Watching and switching rewrites by name: counts, traces of attempts, rewrites that are off.

A rewrite is a pattern, or a `Rule` of a pass that is no set of patterns:

    ROWS = rule("find_rows", "dot(reshape(x), w) -> reshape(dot(x, w))")
    if ROWS.enabled and fits(op):
        ...
        ROWS.applied(op)
    else:
        ROWS.refused(op, "rank {} is not 3", rank)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple

from mgx_mlir.core.ir import ir

_MAX_ATTRIBUTE = 60  # characters of an attribute shown

RULES: dict[str, Rule] = {}


@dataclass(frozen=True)
class Rule:
    """A named rewrite of a pass that is no set of patterns; `summary` is `before -> after`."""

    name: str
    summary: str

    @property
    def enabled(self) -> bool:
        """Return whether it may be applied; ask once in a run of the pass, before anything else."""
        note_tried({self.name: self.summary})
        return is_enabled(self.name)

    def applied(self, op: ir.Operation | None = None, times: int = 1) -> None:
        """Say that it was applied, at `op` where one is given (before it is erased)."""
        count(self.name, op, times)

    def refused(self, op: ir.Operation, reason: str, *arguments: object) -> None:
        """Record why it does not apply at `op`; formatted on demand."""
        for trace in traces():
            if trace.wants(self.name):
                text = reason.format(*arguments) if arguments else reason
                trace.add(self.name, op, text)


# ---- off -----------------------------------------------------------------------------------------

_OFF: ContextVar[frozenset[str]] = ContextVar("mgx_disabled_rewrites", default=frozenset())


@contextmanager
def disabled(names: Iterable[str]) -> Generator[None]:
    """Switch off the patterns and rules of these names inside the block."""
    token = _OFF.set(_OFF.get() | frozenset(names))
    try:
        yield
    finally:
        _OFF.reset(token)


def disabled_names() -> frozenset[str]:
    """Return the patterns and rules that are off."""
    return _OFF.get()


def is_enabled(name: str) -> bool:
    """Say whether the pattern or rule may be applied."""
    return name not in _OFF.get()


# ---- seen ----------------------------------------------------------------------------------------


class Attempt(NamedTuple):
    """One attempt of a rewrite: its name, where, what came of it, and the root as text."""

    name: str
    location: str
    outcome: str
    op: str = ""


APPLIED = "applied"


def described(op: ir.Operation | str | None, location: ir.Location | None) -> tuple[str, str]:
    """Return the text and the location of what was tried; empty where it is not known."""
    if location is None and op is not None and not isinstance(op, str):
        location = op.location
    shown = op if isinstance(op, str) else "" if op is None else op_text(op)
    return shown, "" if location is None else location_text(location)


@dataclass
class MatchTrace:
    """Attempts of the rewrites in `names` (None: of all): where, and what came of each.

    `refusals` False keeps what was applied only.
    """

    names: frozenset[str] | None
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    refusals: bool = True

    def wants(self, name: str) -> bool:
        """Say whether the attempts of a rewrite are collected."""
        return self.names is None or name in self.names

    def add(
        self,
        name: str,
        op: ir.Operation | str | None,
        outcome: str,
        location: ir.Location | None = None,
    ) -> None:
        """Note an attempt at `op` (an op, its text, or None)."""
        if outcome != APPLIED and not self.refusals:
            return
        shown, where = described(op, location)
        self.attempts.append(Attempt(name, where, outcome, shown))


@dataclass
class Observation:
    """Applications counted per rewrite while `observing`, and the trace, if one was asked for.

    `own` are those that no block inside this one has seen; `tried` holds the summary of each
    rewrite that could have been applied, zero times or more.
    """

    counts: Counter[str] = field(default_factory=Counter[str])
    trace: MatchTrace | None = None
    own: Counter[str] = field(default_factory=Counter[str])
    tried: dict[str, str] = field(default_factory=dict[str, str])


_OBSERVERS: ContextVar[tuple[Observation, ...]] = ContextVar("mgx_observers", default=())


@contextmanager
def observing(trace: MatchTrace | None = None) -> Generator[Observation]:
    """Collect what rewrites do inside the block."""
    seen = Observation(trace=trace)
    token = _OBSERVERS.set((*_OBSERVERS.get(), seen))
    try:
        yield seen
    finally:
        _OBSERVERS.reset(token)


def observers() -> tuple[Observation, ...]:
    """Return who collects now, outermost first."""
    return _OBSERVERS.get()


def traces() -> list[MatchTrace]:
    """Return the traces being collected; one that nested blocks share is there once."""
    found = {id(o.trace): o.trace for o in _OBSERVERS.get() if o.trace is not None}
    return list(found.values())


def count(name: str, op: ir.Operation | None = None, times: int = 1) -> None:
    """Count a rewrite as applied, at `op` where one is given."""
    tally(_OBSERVERS.get(), name, times)
    for trace in traces():
        if trace.wants(name):
            trace.add(name, op, APPLIED)


def tally(seen: Sequence[Observation], name: str, times: int = 1) -> None:
    """Add to the counts of the blocks that `observers` gave."""
    for observer in seen:
        observer.counts[name] += times
    if seen:
        seen[-1].own[name] += times


def note_tried(summaries: Mapping[str, str]) -> None:
    """Say which rewrites may be applied now, by their summaries."""
    for observer in _OBSERVERS.get()[-1:]:
        observer.tried.update(summaries)


def location_text(location: ir.Location) -> str:
    """Return a location as `file:line:col`, or as MLIR prints it without the `loc(...)`."""
    text = str(location)
    return text[4:-1].replace('"', "") if text.startswith("loc(") else text


def op_text(op: ir.Operation) -> str:
    """Return an op in one line, `name {attributes} : (operands) -> results`.

    The cost does not grow with the module: MLIR numbers a whole function to print one op.
    """
    op = op.operation
    shown: list[str] = []
    for name, attribute in op.attributes.items():
        if name.endswith("SegmentSizes"):
            continue
        text = str(attribute)
        shown.append(f"{name} = {text if len(text) <= _MAX_ATTRIBUTE else '...'}")
    attributes = f" {{{', '.join(shown)}}}" if shown else ""
    operands, results = (", ".join(str(v.type) for v in vs) for vs in (op.operands, op.results))
    return f"{op.name}{attributes} : ({operands}) -> ({results})"
