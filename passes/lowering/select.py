"""Ordered lists of kernel rules: the first rule that matches builds the kernel.

`cpu/rules.py` and `gpu/rules.py` have the lists. A rule's `match` inspects the program, and returns
a `Refusal` or a plan for its `build`. Ops that no rule takes are lowered one by one to linalg, and
IREE generates the loops. docs/design/31-kernel-rules.md says what a rule may rely on.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mgx_mlir.core.errors import UsageError
from mgx_mlir.core.ir import ir
from mgx_mlir.programs.lowered import KernelChoice

if TYPE_CHECKING:
    from mgx_mlir.passes.lowering.context import LoweringContext

LINALG = "linalg"  # name of the fallback, for ops that no rule takes
_LISTS = {"cpu": "mgx_mlir.passes.lowering.cpu.rules", "gpu": "mgx_mlir.passes.lowering.gpu.rules"}
_OFF: ContextVar[frozenset[str]] = ContextVar("switched_off", default=frozenset())
_WATCH: ContextVar[list[KernelChoice] | None] = ContextVar("watched_choices", default=None)
_NAMES = ("KERNELS", "OPS", "VIEWS", "EXPRESSIONS", "ATTENTION", "MATMULS")


@dataclass(frozen=True)
class Refusal:
    """The reason why a rule does not take an op."""

    reason: str  # clause that completes the sentence "the rule does not apply"


@dataclass(frozen=True)
class KernelRule:
    """One way to lower a kernel, an op, or a view."""

    # name, unique in its target; --explain-kernels prints it, --disable-kernel-rule takes it
    name: str
    roots: tuple[type, ...]  # op classes that the rule is tried for; empty: all classes
    # function that returns a plan for `build` or a Refusal; it builds no tensor and no dispatch
    match: Callable[[LoweringContext, Any], Any]
    # function that builds the results, in the order of the op's; for a part of a kernel, it builds
    # the attribute that configures IREE
    build: Callable[[LoweringContext, Any, Any], Sequence[Any]]
    # function that returns the reason to refuse an op, judged by the op alone, or None
    asks: Callable[..., str | None] | None = None

    def tries(self, root: object) -> bool:
        """Return whether the rule is for ops of this class."""
        return not self.roots or isinstance(root, self.roots)


def refused(reason: str | None) -> Refusal | None:
    """Return a reason as a Refusal, None for none."""
    return None if reason is None else Refusal(reason)


def lower(
    e: LoweringContext,
    rules: Sequence[KernelRule],
    site: Any,
    root: ir.OpView | None,
    *,
    part: str = "",
) -> Sequence[Any] | None:
    """Return the results of the first rule that matches; None where none does.

    site: argument of the rules' functions. root: the op that rules are tried for. part: the part of
    the kernel that the rules are for; empty for all of it.
    """
    choice, off = KernelChoice(part=part), _OFF.get()
    for rule in rules:
        if not rule.tries(root):
            continue
        if rule.name in off:
            choice.refusals.append((rule.name, "it is switched off"))
            continue
        plan = rule.match(e, site)
        if isinstance(plan, Refusal):
            choice.refusals.append((rule.name, plan.reason))
            continue
        choice.rule = rule.name
        e.chose(choice)
        return rule.build(e, site, plan)
    e.chose(choice)
    return None


def rules_of(target: str) -> list[KernelRule]:
    """Return every rule of a target, each once, in the order in which they are tried."""
    if target not in _LISTS:
        return []
    # start-up: the lowering is loaded where a kernel is judged
    module = importlib.import_module(_LISTS[target])
    found: dict[str, KernelRule] = {}
    for name in _NAMES:
        for rule in getattr(module, name, ()):
            if found.setdefault(rule.name, rule) is not rule:
                raise TypeError(f"two kernel rules of {target} are named '{rule.name}'")
    return list(found.values())


@contextmanager
def without(names: frozenset[str]) -> Generator[None]:
    """Switch kernel rules off for the programs that are lowered inside."""
    before = _OFF.set(_OFF.get() | names)
    try:
        yield
    finally:
        _OFF.reset(before)


@contextmanager
def watching() -> Generator[list[KernelChoice]]:
    """Collect which rule took each kernel of the programs that are lowered inside."""
    found: list[KernelChoice] = []
    before = _WATCH.set(found)
    try:
        yield found
    finally:
        _WATCH.reset(before)


def noted(choices: Sequence[KernelChoice]) -> None:
    """Report a lowered program's choices to `watching`, if active."""
    found = _WATCH.get()
    if found is not None:
        found.extend(choices)


def switched_off() -> frozenset[str]:
    """Return the names of the rules that are switched off here."""
    return _OFF.get()


def check_names(names: Sequence[str]) -> frozenset[str]:
    """Return names of rules to switch off; UsageError for one that no target has."""
    if not names:
        return frozenset()
    known = {rule.name for target in _LISTS for rule in rules_of(target)}
    unknown = [name for name in names if name not in known]
    if unknown:
        listed = ", ".join(sorted(known))
        raise UsageError(
            f"unknown kernel rules: {', '.join(unknown)}", notes=[f"there are {listed}"]
        )
    return frozenset(names)


def refusal(target: str, name: str, op: ir.OpView, **given: Any) -> str | None:
    """Return why a rule refuses an op of this form, None if it may take it; for passes, before a
    rewrite.

    name: the rule. given: the pass's changes to the op, as arguments of the rule's `asks`.
    """
    questions = {r.name: r.asks for r in rules_of(target) if r.asks is not None}
    # start-up: the lowering is loaded where a kernel is judged
    questions |= getattr(importlib.import_module(_LISTS[target]), "QUESTIONS", {})
    return questions[name](op, **given)
