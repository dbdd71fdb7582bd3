"""MIGraphX's environment variables that trace or change passes, honoured wherever one runs.

MIGRAPHX_TRACE_COMPILE=1      the program before the first pass and after each pass
MIGRAPHX_TRACE_PASSES=1       the name of each pass as it starts
MIGRAPHX_TIME_PASSES=1        the milliseconds of each pass
MIGRAPHX_DISABLE_PASSES=a,b   passes to leave out
MIGRAPHX_TRACE_MATCHES=1|2    1: each rewrite that is applied; 2: also why the others are not
MIGRAPHX_TRACE_MATCHES_FOR=x  of rewrites with x in their name alone (sets TRACE_MATCHES to 1)

Everything is printed to stderr.
"""

from __future__ import annotations

import functools
import logging
import os
import sys

from mgx_mlir.core.errors import UsageError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.rewrite.names import pass_name
from mgx_mlir.rewrite.rewrite_trace import APPLIED, MatchTrace, described

log = logging.getLogger(__name__)

_TRUE = frozenset(("1", "true", "on", "yes", "y", "enable", "enabled"))
_MAX_ELEMENTS = 16  # larger constants are printed as '...'


@dataclass(frozen=True)
class Switches:
    """Settings of the environment."""

    trace_compile: bool = False
    trace_passes: bool = False
    time_passes: bool = False
    disable: frozenset[str] = frozenset()
    trace_matches: int = 0
    matches_for: str = ""

    @property
    def traces(self) -> bool:
        """Return whether running the passes prints something."""
        return bool(
            self.trace_compile or self.trace_passes or self.time_passes or self.trace_matches
        )

    def match_trace(self) -> MatchTrace | None:
        """Return the trace that prints matches at once, None if none is requested."""
        if not self.trace_matches:
            return None
        return _PrintedMatches(None, refusals=self.trace_matches > 1, text=self.matches_for)

    def before(self, name: str, depth: int) -> None:
        """Print or time, as the environment asks, when a pass starts."""
        if self.trace_passes or self.trace_compile:
            print(f"{'  ' * depth}Pass: {name}", file=sys.stderr)

    def after(self, name: str, depth: int, ms: float, module: ir.Operation) -> None:
        """Print or time, as the environment asks, when a pass is done."""
        if self.time_passes:
            print(f"{'  ' * depth}{name}: {ms:.3f}ms", file=sys.stderr)
        if self.trace_compile and depth == 0:
            self.program(module)

    def program(self, module: ir.Operation) -> None:
        """Print a program in the form that mgx-opt reads."""
        if self.trace_compile:
            # not imported at start-up: only printing needs the bindings
            from mgx_mlir.core.operand_segments import asm

            print(asm(module, large_elements_limit=_MAX_ELEMENTS), file=sys.stderr)


@dataclass
class _PrintedMatches(MatchTrace):
    """Attempts of the rewrites with `text` in their name, printed and not stored."""

    text: str = ""

    def wants(self, name: str) -> bool:
        return self.text in name

    def add(
        self,
        name: str,
        op: ir.Operation | str | None,
        outcome: str,
        location: ir.Location | None = None,
    ) -> None:
        if outcome != APPLIED and not self.refusals:
            return
        shown, place = described(op, location)
        where = f"{place}: " if place else ""
        said = f"matched by {name}" if outcome == APPLIED else f"no match by {name}: {outcome}"
        print(f"{where}{said}: {shown}" if shown else f"{where}{said}", file=sys.stderr)


_NOTHING = Switches()


def switches() -> Switches:
    """Return the settings of the environment. Fast if it sets nothing."""
    get = os.environ.get
    disable, level = get("MIGRAPHX_DISABLE_PASSES", ""), get("MIGRAPHX_TRACE_MATCHES", "")
    wanted = get("MIGRAPHX_TRACE_MATCHES_FOR", "")
    found = Switches(
        trace_compile=flag("MIGRAPHX_TRACE_COMPILE"),
        trace_passes=flag("MIGRAPHX_TRACE_PASSES"),
        time_passes=flag("MIGRAPHX_TIME_PASSES"),
        disable=_passes(disable) if disable else frozenset(),
        trace_matches=_level(level) or int(bool(wanted)),
        matches_for=wanted,
    )
    return _NOTHING if found == _NOTHING else found


def flag(name: str) -> bool:
    """Return whether an environment variable is true."""
    text = os.environ.get(name, "")
    return bool(text) and text.lower() in _TRUE


def integer(name: str, default: int) -> int:
    """Return the number in an environment variable; UsageError if it is no number."""
    text = os.environ.get(name, "").strip()
    try:
        return int(text) if text else default
    except ValueError:
        raise UsageError(f"{name} expected an integer, got '{text}'") from None


def _level(text: str) -> int:
    """Read a number, or whether the text means true."""
    return int(text) if text.isdecimal() else int(text.lower() in _TRUE)


@functools.lru_cache(maxsize=8)  # unknown names are logged once
def _passes(text: str) -> frozenset[str]:
    """Return the passes of a comma-separated list, in MIGraphX's spelling; log unknown ones."""
    # not imported at start-up: only for the message
    from mgx_mlir.rewrite.pipeline import did_you_mean
    from mgx_mlir.rewrite.registry import PASSES, UPSTREAM

    names = frozenset(pass_name(part.strip()) for part in text.split(",") if part.strip())
    known = {*PASSES, *map(pass_name, UPSTREAM)}
    for name in sorted(names - known):
        hint = "".join(f", {note}" for note in did_you_mean(name, known))
        log.warning("MIGRAPHX_DISABLE_PASSES: there is no pass '%s'%s", name, hint)
    return names
