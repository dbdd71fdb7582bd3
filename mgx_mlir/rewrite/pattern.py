"""Rewrite patterns: plain functions over one root op, applied by MLIR's greedy driver.

    @pattern(Transpose)
    def find_transpose(op: Transpose, rw: Rewriter) -> Replacement:
        \"\"\"transpose(transpose(x, p), q) -> transpose(x, p[q])\"\"\"
        inner = rw.defining(op.input, Transpose)
        if inner is None:
            return no_match("input is not a transpose")
        permutation = [inner.permutation[i] for i in op.permutation]
        return rw.op("transpose", inner.input, permutation=permutation)

A root is an op's class, a base class (for all its subclasses), or a name. New ops are inserted
before the root, with the root's location (fused with those of `rw.defining`). The bindings'
requirements on a callback (inverted result, no op kept, nothing replaced by itself) are met here.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar, overload

from mgx_mlir.core import defined_again, interrupts
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.dynamic_dims import UndecidedError, is_named
from mgx_mlir.core.errors import MgxError, PassError
from mgx_mlir.core.ir import ir, rewrite
from mgx_mlir.core.op import PREFIX, Kernel, Op, as_value, is_a, names_of
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.core.type_cache import remembering
from mgx_mlir.programs.build import Builder
from mgx_mlir.programs.dim_probe import DimProbe
from mgx_mlir.programs.interpreter import Folder
from mgx_mlir.rewrite.rewrite_trace import (
    APPLIED,
    RULES,
    MatchTrace,
    Observation,
    Rule,
    count,
    disabled,
    disabled_names,
    is_enabled,
    location_text,
    note_tried,
    observers,
    observing,
    op_text,
    tally,
    traces,
)

Root = type[Op] | str
OpT = TypeVar("OpT", bound=Op)

PATTERNS: dict[str, Pattern] = {}


class NoMatch:
    """Reason why a pattern does not apply: falsy, and formatted on demand."""

    __slots__ = ("arguments", "reason")

    def __init__(self, reason: str, *arguments: object) -> None:
        self.reason, self.arguments = reason, arguments

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return self.reason.format(*self.arguments) if self.arguments else self.reason


def no_match(reason: str, *arguments: object) -> NoMatch:
    """Return why a pattern does not apply: `return no_match("rank {} is not {}", a, b)`."""
    return NoMatch(reason, *arguments)


class _Updated:
    """The root was changed in place and stays."""


UPDATED = _Updated()


class HasOperation(Protocol):
    """A module, an op view or an operation."""

    @property
    def operation(self) -> ir.Operation:
        """The operation itself."""
        ...


# result of a pattern: values for the root's results, `rw.updated()`, or the reason of no match
Replacement: TypeAlias = "ir.Value | Op | Sequence[ir.Value] | _Updated | NoMatch | None"
PatternFunction = Callable[[Any, "Rewriter"], Replacement]


@dataclass(frozen=True)
class Pattern:
    """A registered rewrite: its name, the names of its root ops, its benefit, its function."""

    name: str
    roots: tuple[Root, ...]
    benefit: int
    function: PatternFunction

    @property
    def summary(self) -> str:
        """`before -> after`, the first line of the docstring."""
        return (self.function.__doc__ or "").strip().split("\n", 1)[0]

    def root_names(self) -> list[str]:
        """Return the names of the root ops; a base class stands for every class below it."""
        return [name for root in self.roots for name in root_names(root)]


def rule(name: str, summary: str) -> Rule:
    """Register a rewrite made by plain code, under a unique name."""
    if "->" not in summary:
        raise TypeError(f"rule '{name}' needs a summary `before -> after`")
    caller = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    if defined_again.again("rewrite", name, caller.f_globals["__name__"]):
        RULES.pop(name, None)
    if name in RULES or name in PATTERNS:
        raise TypeError(f"rewrite '{name}' is defined twice")
    RULES[name] = Rule(name, summary)
    return RULES[name]


def pattern(*roots: Root, benefit: int = 1) -> Callable[[PatternFunction], Pattern]:
    """Register a rewrite of `roots` under the function's name.

    The function takes `(op, rw)` and returns the replacement of the root's results (a value, an
    op, or a list of them), `rw.updated()` after a change in place, or `no_match("reason")`.
    Among the patterns of one root the higher benefit is tried first, then the earlier in the set.
    """

    def register(function: PatternFunction) -> Pattern:
        name = function.__name__
        # python -OO removes docstrings: there is nothing to check or show then
        if sys.flags.optimize < 2 and "->" not in (function.__doc__ or "").split("\n", 1)[0]:
            raise TypeError(f"pattern '{name}' needs a docstring `before -> after`")
        if defined_again.again("rewrite", name, function.__module__):
            PATTERNS.pop(name, None)
        if name in PATTERNS or name in RULES:
            first = PATTERNS[name].function.__module__ if name in PATTERNS else "a rule"
            raise TypeError(
                f"pattern '{name}' is defined twice: in {function.__module__} and in {first}"
            )
        if not roots:
            raise TypeError(f"pattern '{name}' needs a root op")
        PATTERNS[name] = Pattern(name, roots, benefit, function)
        return PATTERNS[name]

    return register


class Rewriter(Builder):
    """Rewriter of a pattern: the Builder at the root, plus matching helpers.

    `options` is the pass that runs the pattern.
    """

    def __init__(self, options: Any = None) -> None:
        self.options = options
        self._entered: list[ir.Location] = []
        self._built: list[ir.Value] = []

    # values are not cached: they would outlive the ops that the driver erases
    @property
    def folder(self) -> Folder:
        return Folder()

    @property
    def probe(self) -> DimProbe:
        return DimProbe()

    def op(self, name: str, *operands: Any, **attributes: Any) -> Any:
        found: ir.Value | tuple[ir.Value, ...] = super().op(name, *operands, **attributes)
        self._built.append(found[0] if isinstance(found, tuple) else found)
        return found

    def literal(
        self, array: Any, dtype: DType | None = None, *, digest: bytes | None = None
    ) -> ir.Value:
        found = super().literal(array, dtype, digest=digest)
        self._built.append(found)
        return found

    def take_back(self) -> None:
        """Erase the ops that a pattern built before it decided not to match.

        Otherwise they would count as a change, and the driver would iterate endlessly.
        """
        for value in reversed(self._built):
            if has_no_use(value):
                value.owner.erase()
        self._built.clear()

    def keep(self) -> None:
        """Keep the ops built by the pattern that matched."""
        self._built.clear()

    @overload
    def defining(self, value: ir.Value) -> Any: ...
    @overload
    def defining(self, value: ir.Value, *ops: type[OpT]) -> OpT | None: ...
    @overload
    def defining(self, value: ir.Value, *ops: Root) -> Any: ...
    def defining(self, value: ir.Value, *ops: Root) -> Any:
        """Return the op that defines `value` if it is one of `ops`, else None.

        A returned op counts as replaced too: its location is fused into ops that are built next.
        """
        found = defined_by(value, *ops)
        if found is not None:
            self.merge_location(found)
        return found

    def merge_location(self, *ops: ir.Operation | Op) -> None:
        """Add the locations of `ops` to ops that are built from now on."""
        current = ir.Location.current
        others = [o.location for o in ops if o.location != current]
        if others:
            fused = ir.Location.fused([current, *others])
            fused.__enter__()
            self._entered.append(fused)

    def updated(self) -> _Updated:
        """Return the result for a root that was changed in place and stays."""
        return UPDATED

    def leave(self) -> None:
        """Undo merge_location."""
        while self._entered:
            self._entered.pop().__exit__(None, None, None)


# ---- questions that many patterns ask ----------------------------------------------------------


@functools.cache
def _full_names(ops: tuple[type[Op] | str, ...]) -> frozenset[str]:
    return frozenset(name for op in ops for name in root_names(op))


def root_names(op: Root) -> list[str]:
    """Return MLIR's names for `transpose`, `arith.addf`, or a class of ops."""
    if not isinstance(op, str):
        return names_of(op)
    return [op if "." in op else PREFIX + op]


@overload
def defined_by(value: ir.Value) -> Any: ...
@overload
def defined_by(value: ir.Value, *ops: type[OpT]) -> OpT | None: ...
@overload
def defined_by(value: ir.Value, *ops: Root) -> Any: ...
def defined_by(value: ir.Value, *ops: Root) -> Any:
    """Return the op that defines `value` if it is one of `ops` (any when none given), else None."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    if ops and owner.name not in _full_names(ops):
        return None
    return owner.opview


def users(value: ir.Value) -> list[ir.Operation]:
    """Return the ops that use `value`, once for each use."""
    return [use.owner for use in value.uses]


def has_one_use(value: ir.Value) -> bool:
    """Return whether exactly one operand in the module is `value`."""
    uses = iter(value.uses)
    return next(uses, None) is not None and next(uses, None) is None


def has_no_use(value: ir.Value) -> bool:
    """Return whether `value` has no uses."""
    return next(iter(value.uses), None) is None


# ---- applying ----------------------------------------------------------------------------------


def op_names(root: HasOperation) -> list[str]:
    """Return the name of every op in `root`, itself included: a cheap walk (0.6 us per op)."""
    names: list[str] = []
    add, advance = names.append, ir.WalkResult.ADVANCE

    def visit(op: ir.Operation) -> ir.WalkResult:
        add(op.name)
        return advance

    root.operation.walk(visit)
    return names


class PatternSet:
    """Patterns compiled into one MLIR callback per root op name."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self.patterns = tuple(patterns)
        self._by_root: dict[str, list[Pattern]] | None = None
        self._summaries: dict[str, str] = {}

    @property
    def by_root(self) -> dict[str, list[Pattern]]:
        """Patterns to try on each op name, in order (the dialect must be imported)."""
        if self._by_root is None:
            found: dict[str, list[Pattern]] = {}
            for p in self.patterns:
                for name in p.root_names():
                    found.setdefault(name, []).append(p)
            for tried in found.values():
                tried.sort(key=lambda p: -p.benefit)
            self._by_root = found
        return self._by_root

    def enabled_by_root(self) -> dict[str, list[Pattern]]:
        """Return `by_root` without the patterns that are off."""
        off = disabled_names()
        if off.isdisjoint(p.name for p in self.patterns):
            return self.by_root
        kept = {root: [p for p in ps if p.name not in off] for root, ps in self.by_root.items()}
        return {root: ps for root, ps in kept.items() if ps}

    def apply(self, root: HasOperation, options: object = None, max_iterations: int = -1) -> int:
        """Apply until nothing changes (or `max_iterations` sweeps).

        Return how many rewrites were made.

        Raises PassError if a pattern fails, changes a type, or never terminates.
        """
        operation = root.operation
        by_root = self.enabled_by_root()
        if observers():
            self._summaries = self._summaries or {p.name: p.summary for p in self.patterns}
            note_tried(self._summaries)
        names = op_names(operation)
        present = set(names)
        if present.isdisjoint(by_root):
            return 0
        limit = 1000 + 16 * len(names)
        run = _Application(self, options, limit, not present.isdisjoint(names_of(Kernel)))
        config = rewrite.GreedyRewriteConfig()
        config.max_iterations = max_iterations
        config.use_top_down_traversal = True
        config.enable_folding = False
        config.enable_constant_cse = False
        config.region_simplification_level = rewrite.GreedySimplifyRegionLevel.DISABLED
        with operation.context, remembering():
            patterns = rewrite.RewritePatternSet()
            for name, tried in by_root.items():
                patterns.add(name, run.callback(tried))
            try:
                rewrite.apply_patterns_and_fold_greedily(operation, patterns.freeze(), config)
            except RuntimeError as e:
                # the limit of sweeps was reached: max_iterations asked for it, and the IR is valid
                if max_iterations < 0 or "converge" not in str(e):
                    raise
        return run.rewrites


class _Application:
    """One run of a PatternSet: the rewriter, the limit of rewrites, the counts."""

    def __init__(self, patterns: PatternSet, options: object, limit: int, guarded: bool) -> None:
        self.rewriter, self.limit, self.guarded = Rewriter(options), limit, guarded
        self.rewrites = 0
        self.recent: Counter[str] = Counter()
        self.observers = observers()
        self.traces = traces()

    def callback(
        self, tried: Sequence[Pattern]
    ) -> Callable[[Op, rewrite.PatternRewriter], bool | None]:
        """Return MLIR's callback for one root name; it returns True when nothing matched."""

        def rewrite_op(op: Op, driver: rewrite.PatternRewriter) -> bool | None:
            interrupts.check()
            if self.guarded and is_a(op.operation.parent, Kernel):
                return True
            rw, location = self.rewriter, op.location
            with driver.ip, location:
                for p in tried:
                    # text before the pattern changes it
                    shown = self.shown(p, op) if self.traces else ""
                    try:
                        found = p.function(op, rw)
                    except PassError:
                        raise
                    except UndecidedError as e:
                        found = no_match("it depends on dynamic sizes: {}", e)
                    except Exception as e:
                        raise _failed(p, location, e) from e
                    finally:
                        rw.leave()
                    if self.traces:
                        self.record(p, location, found, shown)
                    if found is None or isinstance(found, NoMatch):
                        rw.take_back()
                        continue
                    rw.keep()
                    self.count(p, location)
                    if found is not UPDATED:
                        driver.replace_op(op, _checked(p, op, found, location))
                    return None
            return True

        return rewrite_op

    def count(self, p: Pattern, location: ir.Location) -> None:
        self.rewrites += 1
        tally(self.observers, p.name)
        if self.rewrites >= self.limit - 99:
            self.recent[p.name] += 1
        if self.rewrites >= self.limit:
            busy = ", ".join(f"{name} ({n})" for name, n in self.recent.most_common(4))
            raise PassError(
                f"patterns do not end: stopped after {self.limit} rewrites",
                location=location_text(location),
                notes=[f"the last 100 were made by {busy}"],
            )

    def shown(self, p: Pattern, op: Op) -> str:
        return op_text(op) if any(t.wants(p.name) for t in self.traces) else ""

    def record(self, p: Pattern, location: ir.Location, found: Replacement, shown: str) -> None:
        for trace in self.traces:
            if trace.wants(p.name):
                refused = found is None or isinstance(found, NoMatch)
                if refused and not trace.refusals:
                    continue
                outcome = APPLIED if not refused else "no match" if found is None else str(found)
                trace.add(p.name, shown, outcome, location)


def _checked(p: Pattern, op: Op, found: Replacement, location: ir.Location) -> list[ir.Value]:
    """Return the replacement as values.

    Raises PassError if number and types differ from the root's results: MLIR accepts such values
    silently and breaks the users.
    """
    values = [as_value(v) for v in (found if isinstance(found, list | tuple) else [found])]
    want, have = [r.type for r in op.results], [v.type for v in values]
    if want != have and not _restated(op.results, values):
        text = " -> ".join(", ".join(map(str, types)) for types in (want, have))
        raise PassError(
            f"pattern '{p.name}' changes the type of '{op.operation.name}': {text}",
            location=location_text(location),
        )
    for v in values:
        owner = v.owner
        if not isinstance(owner, ir.Block) and owner.operation == op.operation:
            raise PassError(
                f"pattern '{p.name}' replaces '{op.operation.name}' by itself",
                location=location_text(location),
            )
    return values


def _restated(wanted: Sequence[ir.Value], values: Sequence[ir.Value]) -> bool:
    """Refine the types of new values by the dims of the replaced values.

    Return whether all types are then equal.
    """
    for old, new in zip(wanted, values, strict=False):
        if old.type != new.type:
            if not all(isinstance(v.type, ir.RankedTensorType) for v in (old, new)):
                return False
            a, b = TensorType.of(old), TensorType.of(new)
            known = a.dtype is b.dtype and a.rank == b.rank and not isinstance(new.owner, ir.Block)
            pairs = zip(a.dims, b.dims, strict=True) if known else ()
            if not known or any(x != y and y != DYN and not is_named(y) for x, y in pairs):
                return False
            new.set_type(old.type)
    return len(wanted) == len(values)


def _failed(p: Pattern, location: ir.Location, e: Exception) -> PassError:
    what = e.message if isinstance(e, MgxError) else f"{type(e).__name__}: {e}"
    return PassError(f"pattern '{p.name}' failed: {what}", location=location_text(location))


__all__ = [
    "PATTERNS",
    "RULES",
    "UPDATED",
    "MatchTrace",
    "NoMatch",
    "Observation",
    "Pattern",
    "PatternSet",
    "Replacement",
    "Rewriter",
    "Rule",
    "count",
    "defined_by",
    "disabled",
    "has_no_use",
    "has_one_use",
    "is_enabled",
    "location_text",
    "no_match",
    "observing",
    "op_names",
    "pattern",
    "rule",
    "users",
]
