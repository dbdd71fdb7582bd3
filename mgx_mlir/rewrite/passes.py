"""The manager of passes: it resolves a pipeline to passes, runs them, and instruments the run.

Upstream C++ passes mix freely with ours; MLIR's pass manager runs them. Names of
rewrite/registry.py that users of passes need are also exported here.
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import MgxError, PassError, PipelineError
from mgx_mlir.core.ir import ir, passmanager
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.type_cache import remembering
from mgx_mlir.rewrite.names import PREFIX, pass_name, pipeline_name
from mgx_mlir.rewrite.pattern import HasOperation, MatchTrace, observing
from mgx_mlir.rewrite.pipeline import (
    MODULE,
    Nested,
    PassSpec,
    did_you_mean,
    parse_pipeline,
    pipeline_error,
)
from mgx_mlir.rewrite.registry import (
    PASSES,
    UPSTREAM,
    Pass,
    PassTable,
    PatternPass,
    check_rewrites,
    known_rewrites,
    make_pass,
    option,
    option_docs,
    rewrites_of,
)
from mgx_mlir.rewrite.switches import Switches, switches

# ---- resolving a pipeline -----------------------------------------------------------------------


@dataclass(frozen=True)
class UpstreamPass(Pass):
    """One C++ pass with its options."""

    text: str = ""

    def run(self, module: ir.Operation) -> None:
        with module.context:
            passmanager.PassManager.parse(f"{module.name}({self.text})").run(module)

    @property
    def argument(self) -> str:
        return self.text.partition("{")[0]

    @property
    def title(self) -> str:
        words = self.argument.replace("(", "-").replace(")", "").replace("_", "-").split("-")
        return UPSTREAM.get(self.argument) or "".join(map(str.capitalize, words)) + "Pass"

    def spelled(self, every_option: bool = False) -> str:
        if not every_option:
            return self.text
        with ir.Context():
            return inside(str(passmanager.PassManager.parse(f"any({self.text})")))


@dataclass(frozen=True)
class NestedPass(Pass):
    """Passes that run on each op named `anchor` directly below the given op."""

    anchor: str = ""
    steps: tuple[Pass, ...] = ()

    def run(self, module: ir.Operation) -> None:
        found = [
            op.operation
            for region in module.regions
            for block in region.blocks
            for op in block.operations
            if op.operation.name == self.anchor
        ]
        for op in found:
            for step in self.steps:
                run_pass(step, op)

    @property
    def argument(self) -> str:
        return str(self)

    @property
    def title(self) -> str:
        return f"'{self.anchor}' Pipeline"

    def spelled(self, every_option: bool = False) -> str:
        return f"{self.anchor}({','.join(s.spelled(every_option) for s in self.steps)})"


def inside(pipeline: str) -> str:
    """Return the content of an anchor: `op(a,b)` -> `a,b`."""
    return pipeline[pipeline.index("(") + 1 : pipeline.rindex(")")]


Step = str | Pass
PipelineLike = str | Nested | Sequence[Step]


def resolve(pipeline: PipelineLike, context: ir.Context) -> list[Pass]:
    """Return the passes of a pipeline, all names and options checked before anything runs.

    A sequence holds passes, and names in MIGraphX's or pipeline spelling (or pipeline text).
    """
    if isinstance(pipeline, Nested):
        return _resolve_nested(str(pipeline), pipeline, context)
    if isinstance(pipeline, str):
        return _resolve_nested(pipeline, parse_pipeline(pipeline), context)
    out: list[Pass] = []
    for step in pipeline:
        if isinstance(step, Pass):
            out.append(step)
        elif step in PASSES:
            out.append(make_pass(step))
        else:
            out += resolve(step, context)
    return out


def _resolve_nested(text: str, nested: Nested, context: ir.Context) -> list[Pass]:
    if nested.anchor != MODULE:
        raise pipeline_error(
            text, nested.column, f"expected a pipeline on {MODULE}, got one on {nested.anchor}"
        )
    out: list[Pass] = []
    for element in nested.elements:
        ours = [
            p
            for p in (element.passes() if isinstance(element, Nested) else [element])
            if p.name.startswith(PREFIX) or pass_name(p.name) in PASSES
        ]
        if isinstance(element, Nested) and ours:
            raise pipeline_error(
                text,
                ours[0].column,
                f"pass '{ours[0].name}' runs on {MODULE}, not inside {element.anchor}",
            )
        if isinstance(element, PassSpec) and ours:
            try:
                out.append(make_pass(element.name, element.options))
            except PipelineError as e:
                raise pipeline_error(text, element.column, e.message, e.notes) from None
        else:
            out.append(_upstream(text, element, context))
    return out


def _upstream(text: str, element: PassSpec | Nested, context: ir.Context) -> Pass:
    with context, _quiet(context):
        try:
            passmanager.PassManager.parse(f"{MODULE}({element})")
        except (ValueError, ir.MLIRError) as e:
            raise _upstream_error(text, element, str(e)) from None
    return _upstream_pass(element)


def is_upstream(name: str) -> bool:
    """Return whether MLIR has a pass of this name."""
    if name in UPSTREAM:
        return True
    context = ir.Context()
    with context, _quiet(context):
        try:
            passmanager.PassManager.parse(f"any({name})")
        except (ValueError, ir.MLIRError):
            return False
    return "(" not in name and "," not in name


def _upstream_pass(element: PassSpec | Nested) -> Pass:
    if isinstance(element, Nested) and element.anchor != "any":
        return NestedPass(element.anchor, tuple(map(_upstream_pass, element.elements)))
    return UpstreamPass(str(element))


def _upstream_error(text: str, element: PassSpec | Nested, said: str) -> PipelineError:
    """Convert an error of MLIR to a PipelineError at the column of the named pass."""
    specs = list(element.passes()) if isinstance(element, Nested) else [element]
    if "does not refer to a registered pass" in said:
        for spec in specs:
            if f"'{spec.name}'" in said or len(specs) == 1:
                known = [*map(pipeline_name, PASSES), *UPSTREAM]
                notes = did_you_mean(spec.name, known, listed_by="mgx-opt --list-passes")
                return pipeline_error(text, spec.column, f"unknown pass '{spec.name}'", notes)
    lines = [line for line in said.splitlines() if line.strip()]
    detail = lines[-1].strip() if lines else "MLIR rejects it"
    return pipeline_error(text, element.column, f"'{element}': {detail}")


@contextmanager
def _quiet(context: ir.Context) -> Generator[None]:
    """Swallow diagnostics inside the block: they are reported as an exception."""
    handler = context.attach_diagnostic_handler(lambda d: True)
    try:
        yield
    finally:
        handler.detach()


# ---- running ------------------------------------------------------------------------------------


@dataclass
class Timing:
    """One pass of a run: milliseconds, nesting depth, applications per rewrite.

    `own` excludes rewrites of inner passes; `tried` has the summary of each enabled rewrite.
    """

    name: str
    depth: int
    step: Pass
    ms: float = 0.0
    changed: bool | None = None
    counts: Counter[str] = dataclasses.field(default_factory=Counter[str])
    own: Counter[str] = dataclasses.field(default_factory=Counter[str])
    tried: dict[str, str] = dataclasses.field(default_factory=dict[str, str])


@dataclass
class Instrumentation:
    """Actions around each pass.

    `verify` checks the module after the last pass, `verify_each` after every pass that changed it
    (a verifier in Python takes as long as several passes). `print_ir` is called with (when, pass,
    module), `when` one of "before", "after", "failure"; `after_change` limits "after" to passes
    that changed something. `trace` collects match reasons.
    """

    verify: bool = True
    verify_each: bool = False
    print_before: bool = False
    print_after: bool = False
    after_change: bool = False
    print_ir: Callable[[str, Pass, ir.Operation], None] | None = None
    disable: frozenset[str] = frozenset()
    trace: MatchTrace | None = None
    reproducer: Callable[[Pass, ir.Operation], str | None] | None = None
    switches: Switches = dataclasses.field(default_factory=Switches)
    timings: list[Timing] = dataclasses.field(default_factory=list[Timing])
    depth: int = 0


_ACTIVE: ContextVar[Instrumentation | None] = ContextVar("mgx_instrumentation", default=None)


@interrupts.held
def run_pipeline(
    module: HasOperation,
    pipeline: PipelineLike,
    *,
    store: WeightStore | None = None,
    instrumentation: Instrumentation | None = None,
    verify: bool = True,
    disable: Iterable[str] = (),
    trace: MatchTrace | None = None,
) -> Instrumentation:
    """Run a pipeline on a module in place; return the timing of each pass.

    `module` is a Module or its operation; weights are in `store`, or in the active one. `disable`
    names passes to skip (MIGraphX's or pipeline spelling). `instrumentation`, if given, replaces
    the options after it; environment variables (rewrite/switches.py) add to it. Raises
    PipelineError before anything runs, PassError if a pass fails or leaves invalid IR.
    """
    operation = module.operation
    if instrumentation is None:
        off = frozenset(map(pass_name, disable))
        instrumentation = Instrumentation(verify=verify, disable=off, trace=trace)
    steps = resolve(pipeline, operation.context)
    asked = instrumentation.switches = switches()
    instrumentation.disable |= asked.disable
    token = _ACTIVE.set(instrumentation)
    try:
        weights = store.active() if store is not None else nullcontext()
        location = ir.Location.unknown(operation.context)
        with operation.context, location, weights, _tracing(asked), remembering():
            asked.program(operation)
            for step in steps:
                run_pass(step, operation)
            if instrumentation.verify and not instrumentation.verify_each and steps:
                _verify_end(operation, steps)
    finally:
        _ACTIVE.reset(token)
    return instrumentation


def _tracing(asked: Switches) -> AbstractContextManager[Any]:
    trace = asked.match_trace()
    return observing(trace) if trace is not None else nullcontext()


def run_pass(step: Pass, module: ir.Operation) -> bool | None:
    """Run one pass under the active instrumentation (passes made of passes call this)."""
    interrupts.check()
    how = _ACTIVE.get() or Instrumentation()
    if pass_name(step.argument) in how.disable:
        return False
    timing = Timing(step.argument, how.depth, step)
    how.timings.append(timing)
    before = module.clone() if how.reproducer and how.depth == 0 else None
    mark = None
    how.switches.before(_migraphx_name(step), how.depth)
    if how.print_before:
        _print_ir(how, "before", step, module)
    if how.print_after and how.after_change:
        mark = _fingerprint(module)
    how.depth += 1
    start = time.perf_counter()
    try:
        with observing(how.trace) as seen:
            timing.counts, timing.own, timing.tried = seen.counts, seen.own, seen.tried
            timing.changed = step.run(module)
        if how.verify_each and how.depth == 1 and timing.changed is not False:
            verify_module(module)
    except Exception as e:
        _print_ir(how, "failure", step, module)
        if how.depth > 1:
            raise  # the outermost pass adds the pipeline element
        raise _failure(how, step, before, e) from e
    finally:
        how.depth -= 1
        timing.ms = (time.perf_counter() - start) * 1e3
    how.switches.after(_migraphx_name(step), how.depth, timing.ms, module)
    if how.print_after and (mark is None or mark != _fingerprint(module)):
        _print_ir(how, "after", step, module)
    return timing.changed


def verify_module(module: ir.Operation) -> None:
    """Raise PassError with every diagnostic when the IR is invalid."""
    try:
        ok = module.verify()
    except ir.MLIRError as e:
        raise PassError(f"the IR is invalid: {diagnostics_text(e)}") from None
    if not ok:
        raise PassError("the IR is invalid")


def diagnostics_text(e: ir.MLIRError) -> str:
    """Return an MLIRError's diagnostics, one per line, as `location: message`."""
    lines: list[str] = []
    for d in e.error_diagnostics:
        lines.append(f"{str(d.location)[4:-1].replace(chr(34), '')}: {d.message}")
        lines += [f"  note: {n.message}" for n in d.notes]
    return "\n".join(lines) or e.message


def _verify_end(module: ir.Operation, steps: Sequence[Pass]) -> None:
    try:
        verify_module(module)
    except PassError as e:
        ran = ",".join(map(str, steps))
        notes = [
            f"after the pipeline builtin.module({ran})",
            "mgx-opt verifies after each pass and names the faulty one",
        ]
        raise PassError(e.message, location=e.location, notes=[*e.notes, *notes]) from None


def _failure(
    how: Instrumentation, step: Pass, before: ir.Operation | None, e: Exception
) -> PassError:
    shown = str(step) if isinstance(step, UpstreamPass | NestedPass) else step.argument
    notes: list[str] = []
    location = None
    if isinstance(e, MgxError):
        what, location = e.message, e.location
        notes += e.notes
    elif isinstance(e, ir.MLIRError):
        what = diagnostics_text(e)
    else:
        what = f"{type(e).__name__}: {e}"
    if how.reproducer is not None and before is not None:
        command = how.reproducer(step, before)
        if command:
            notes.append(f"reproduce with: {command}")
    return PassError(f"pass '{shown}' failed: {what}", location=location, notes=notes)


def _migraphx_name(step: Pass) -> str:
    return step.name or step.argument


def _print_ir(how: Instrumentation, when: str, step: Pass, module: ir.Operation) -> None:
    if how.print_ir is not None:
        how.print_ir(when, step, module)


def _fingerprint(module: ir.Operation) -> int:
    return hash(module.get_asm(print_generic_op_form=True, assume_verified=True))


__all__ = [
    "PASSES",
    "PREFIX",
    "UPSTREAM",
    "Instrumentation",
    "NestedPass",
    "Pass",
    "PassTable",
    "PatternPass",
    "PipelineLike",
    "Step",
    "Timing",
    "UpstreamPass",
    "check_rewrites",
    "diagnostics_text",
    "inside",
    "is_upstream",
    "known_rewrites",
    "make_pass",
    "option",
    "option_docs",
    "pass_name",
    "pipeline_name",
    "resolve",
    "rewrites_of",
    "run_pass",
    "run_pipeline",
    "verify_module",
]
