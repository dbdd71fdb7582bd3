"""Observing and disabling rewrites by name: counts, traces of attempts, switches.

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
from dataclasses import field
from typing import NamedTuple

from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass

_MAX_ATTRIBUTE = 60  # longest attribute shown, in characters

RULES: dict[str, Rule] = {}


@dataclass(frozen=True)
class Rule:
    """A named rewrite of a pass that is no set of patterns; `summary` is `before -> after`."""

    name: str
    summary: str

    @property
    def enabled(self) -> bool:
        """Return whether it may be applied; called once per run of the pass, before anything
        else.
        """
        note_tried({self.name: self.summary})
        return is_enabled(self.name)

    def applied(self, op: ir.Operation | None = None, times: int = 1) -> None:
        """Record its application, at `op` if given (before it is erased)."""
        count(self.name, op, times)

    def refused(self, op: ir.Operation, reason: str, *arguments: object) -> None:
        """Record why it does not apply at `op`; formatted on demand."""
        for trace in traces():
            if trace.wants(self.name):
                text = reason.format(*arguments) if arguments else reason
                trace.add(self.name, op, text)


# ---- disabled ------------------------------------------------------------------------------------

_OFF: ContextVar[frozenset[str]] = ContextVar("mgx_disabled_rewrites", default=frozenset())


@contextmanager
def disabled(names: Iterable[str]) -> Generator[None]:
    """Disable the patterns and rules of these names inside the block."""
    token = _OFF.set(_OFF.get() | frozenset(names))
    try:
        yield
    finally:
        _OFF.reset(token)


def disabled_names() -> frozenset[str]:
    """Return the disabled patterns and rules."""
    return _OFF.get()


def is_enabled(name: str) -> bool:
    """Return whether the pattern or rule may be applied."""
    return name not in _OFF.get()


# ---- observed ------------------------------------------------------------------------------------


class Attempt(NamedTuple):
    """One attempt of a rewrite: its name, location, outcome, and the root as text."""

    name: str
    location: str
    outcome: str
    op: str = ""


APPLIED = "applied"


def described(op: ir.Operation | str | None, location: ir.Location | None) -> tuple[str, str]:
    """Return the text and location of the root; empty if unknown."""
    if location is None and op is not None and not isinstance(op, str):
        location = op.location
    shown = op if isinstance(op, str) else "" if op is None else op_text(op)
    return shown, "" if location is None else location_text(location)


@dataclass
class MatchTrace:
    """Attempts of the rewrites in `names` (None: all): location and outcome of each.

    `refusals` False keeps only applied ones.
    """

    names: frozenset[str] | None
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    refusals: bool = True

    def wants(self, name: str) -> bool:
        """Return whether attempts of a rewrite are collected."""
        return self.names is None or name in self.names

    def add(
        self,
        name: str,
        op: ir.Operation | str | None,
        outcome: str,
        location: ir.Location | None = None,
    ) -> None:
        """Record an attempt at `op` (an op, its text, or None)."""
        if outcome != APPLIED and not self.refusals:
            return
        shown, where = described(op, location)
        self.attempts.append(Attempt(name, where, outcome, shown))


@dataclass
class Observation:
    """Applications counted per rewrite while `observing`, and the trace, if one was asked for.

    `own` excludes those of nested blocks; `tried` has the summary of each rewrite that could have
    been applied, even if it never was.
    """

    counts: Counter[str] = field(default_factory=Counter[str])
    trace: MatchTrace | None = None
    own: Counter[str] = field(default_factory=Counter[str])
    tried: dict[str, str] = field(default_factory=dict[str, str])


_OBSERVERS: ContextVar[tuple[Observation, ...]] = ContextVar("mgx_observers", default=())


@contextmanager
def observing(trace: MatchTrace | None = None) -> Generator[Observation]:
    """Collect applications and attempts of rewrites inside the block."""
    seen = Observation(trace=trace)
    token = _OBSERVERS.set((*_OBSERVERS.get(), seen))
    try:
        yield seen
    finally:
        _OBSERVERS.reset(token)


def observers() -> tuple[Observation, ...]:
    """Return the active observations, outermost first."""
    return _OBSERVERS.get()


def traces() -> list[MatchTrace]:
    """Return the active traces; one that nested blocks share is listed once."""
    found = {id(o.trace): o.trace for o in _OBSERVERS.get() if o.trace is not None}
    return list(found.values())


def count(name: str, op: ir.Operation | None = None, times: int = 1) -> None:
    """Count a rewrite as applied, at `op` if given."""
    tally(_OBSERVERS.get(), name, times)
    for trace in traces():
        if trace.wants(name):
            trace.add(name, op, APPLIED)


def tally(seen: Sequence[Observation], name: str, times: int = 1) -> None:
    """Add to the counts of blocks from `observers`."""
    for observer in seen:
        observer.counts[name] += times
    if seen:
        seen[-1].own[name] += times


def note_tried(summaries: Mapping[str, str]) -> None:
    """Record which rewrites may be applied now, with their summaries."""
    for observer in _OBSERVERS.get()[-1:]:
        observer.tried.update(summaries)


def location_text(location: ir.Location) -> str:
    """Return a location as `file:line:col`, or as MLIR prints it without the `loc(...)`."""
    text = str(location)
    return text[4:-1].replace('"', "") if text.startswith("loc(") else text


def op_text(op: ir.Operation) -> str:
    """Return an op in one line, `name {attributes} : (operands) -> results`.

    The cost does not grow with the module, unlike MLIR's printer, which numbers a whole function to
    print one op.
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
