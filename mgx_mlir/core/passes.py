"""Passes: the base class, the registry, and the manager that runs a pipeline.

A pass is a frozen dataclass: `name` is MIGraphX's, the fields are its options, `run` changes the
module in place and says whether it did. `mgx-simplify-algebra` is `simplify_algebra` in a
pipeline. Upstream C++ passes mix freely; MLIR's pass manager runs those.
"""

from __future__ import annotations

import dataclasses
import importlib
import time
import typing
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, TextIO

from mgx_mlir.core.errors import MgxError, PassError, PipelineError
from mgx_mlir.core.ir import ir, passmanager
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.pattern import (
    PATTERNS,
    RULES,
    MatchTrace,
    Pattern,
    PatternSet,
    Rule,
    observing,
)
from mgx_mlir.core.pipeline import (
    MODULE,
    Nested,
    PassSpec,
    did_you_mean,
    parse_pipeline,
    pipeline_error,
)

PREFIX = "mgx-"


def pipeline_name(name: str) -> str:
    """`simplify_algebra` -> `mgx-simplify-algebra`."""
    return PREFIX + name.replace("_", "-")


def pass_name(text: str) -> str:
    """`mgx-simplify-algebra` (or MIGraphX's own name) -> `simplify_algebra`."""
    return text.removeprefix(PREFIX).replace("-", "_")


def option(default: Any, doc: str) -> Any:
    """A pass option: a dataclass field with a default and one line of documentation."""
    return dataclasses.field(default=default, metadata={"doc": doc})


@dataclass(frozen=True)
class Pass:
    """A transformation of a module; valid IR in, valid IR out.

    `run` returns whether anything changed (None: not known). It raises PassError where it cannot
    go on; the manager adds the pass, the IR and the command that reproduces it.
    """

    name: ClassVar[str] = ""

    def run(self, module: ir.Operation) -> bool | None:
        raise NotImplementedError

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return (type(self).__doc__ or "").strip().split("\n", 1)[0]

    def __str__(self) -> str:
        """The pass as a pipeline element; options at their default are left out."""
        options = []
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if value != f.default:
                options.append((f.name.replace("_", "-"), _option_text(value)))
        return str(PassSpec(pipeline_name(self.name), tuple(options)))


@dataclass(frozen=True)
class PatternPass(Pass):
    """A pass that is a set of patterns, applied until nothing changes."""

    patterns: ClassVar[tuple[Pattern, ...]] = ()
    max_iterations: int = option(-1, "sweeps over the module; -1: until nothing changes")

    def run(self, module: ir.Operation) -> bool:
        return PatternSet(self.patterns).apply(module, self, self.max_iterations) > 0


# ---- registry -----------------------------------------------------------------------------------


class PassTable(Mapping[str, type[Pass]]):
    """The passes by MIGraphX's name; a class is imported when it is asked for."""

    def __init__(self) -> None:
        self._modules: dict[str, str] = {}

    def declare(self, package: str, names: Iterable[str]) -> None:
        """Say that pass `x` is the class named in `package.x`."""
        for name in names:
            if name in self._modules:
                raise TypeError(f"pass '{name}' is declared twice")
            self._modules[name] = f"{package}.{name}"

    def __getitem__(self, name: str) -> type[Pass]:
        module = importlib.import_module(self._modules[name])
        found = getattr(module, "".join(part.capitalize() for part in name.split("_")))
        if found.name != name:
            raise TypeError(f"{module.__name__}: expected a pass named '{name}', got {found.name}")
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


PASSES = PassTable()


def known_rewrites() -> dict[str, Pattern | Rule]:
    """Every pattern and rule by name (this imports every pass)."""
    for name in PASSES:
        _ = PASSES[name]  # imported when asked for
    return {**PATTERNS, **RULES}


def check_rewrites(names: Iterable[str]) -> frozenset[str]:
    """`names`; PipelineError for one that is neither a pattern nor a rule."""
    names = frozenset(names)
    known = known_rewrites() if names else {}
    for name in sorted(names):
        if name not in known:
            raise PipelineError(f"unknown pattern '{name}'", notes=did_you_mean(name, known))
    return names


# Upstream passes named in suggestions and lists; any registered C++ pass can be run.
UPSTREAM = (
    "canonicalize",
    "cse",
    "inline",
    "linalg-fold-unit-extent-dims",
    "linalg-fuse-elementwise-ops",
    "linalg-generalize-named-ops",
    "loop-invariant-code-motion",
    "print-ir",
    "print-op-stats",
    "remove-dead-values",
    "sccp",
    "snapshot-op-locations",
    "strip-debuginfo",
    "symbol-dce",
    "symbol-privatize",
    "topological-sort",
)


def option_docs(cls: type[Pass]) -> list[tuple[str, str, str, str]]:
    """(name, type, default, doc) of each option of a pass."""
    hints = typing.get_type_hints(cls)
    return [
        (
            f.name.replace("_", "-"),
            _type_text(hints[f.name]),
            _option_text(f.default),
            f.metadata.get("doc", ""),
        )
        for f in dataclasses.fields(cls)
    ]


def make_pass(name: str, options: Iterable[tuple[str, str | None]] = ()) -> Pass:
    """The pass `name` (MIGraphX's or pipeline spelling) with options given as text."""
    key = pass_name(name)
    if key not in PASSES:
        known = [pipeline_name(n) for n in PASSES]
        raise PipelineError(f"unknown pass '{name}'", notes=did_you_mean(name, known))
    cls = PASSES[key]
    hints = typing.get_type_hints(cls)
    fields = [f.name for f in dataclasses.fields(cls)]
    values: dict[str, Any] = {}
    for option_name, text in options:
        field = option_name.replace("-", "_")
        if field not in fields:
            known = [f.replace("_", "-") for f in fields]
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise PipelineError(
                f"pass '{pipeline_name(key)}' has no option '{option_name}', {has}",
                notes=did_you_mean(option_name, known),
            )
        try:
            values[field] = _option_value(hints[field], text)
        except ValueError:
            raise PipelineError(
                f"option '{option_name}' of pass '{pipeline_name(key)}' expected "
                f"{_type_text(hints[field])}, got '{text or ''}'"
            ) from None
    try:
        return cls(**values)
    except ValueError as e:
        raise PipelineError(f"pass '{pipeline_name(key)}': {e}") from None


def _option_value(kind: Any, text: str | None) -> Any:
    """Text as bool, int, float, str or a tuple of one of these; ValueError otherwise."""
    if kind is bool:
        if text is None or text in ("true", "1"):
            return True
        if text in ("false", "0"):
            return False
        raise ValueError(text)
    if text is None:
        raise ValueError("")
    if kind in (int, float, str):
        return kind(text)
    if typing.get_origin(kind) is tuple:
        of = typing.get_args(kind)[0]
        return tuple(_option_value(of, part.strip()) for part in text.split(",") if part.strip())
    raise TypeError(f"a pass option cannot be a {kind}")


def _option_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(_option_text, value))
    return str(value)


def _type_text(kind: Any) -> str:
    if typing.get_origin(kind) is tuple:
        return f"list of {_type_text(typing.get_args(kind)[0])}"
    return getattr(kind, "__name__", str(kind))


# ---- resolving a pipeline -----------------------------------------------------------------------


@dataclass(frozen=True)
class UpstreamPass(Pass):
    """One C++ pass element, with the ops it is nested in."""

    text: str = ""

    def run(self, module: ir.Operation) -> None:
        with module.context:
            passmanager.PassManager.parse(self.text).run(module)

    def __str__(self) -> str:
        return self.text.removeprefix(f"{MODULE}(").removesuffix(")")


Step = str | Pass
PipelineLike = str | Nested | Sequence[Step]


def resolve(pipeline: PipelineLike, context: ir.Context) -> list[Pass]:
    """The passes of a pipeline, all names and options checked before anything runs.

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


def _upstream(text: str, element: PassSpec | Nested, context: ir.Context) -> UpstreamPass:
    wrapped = f"{MODULE}({element})"
    with context, _quiet(context):
        try:
            passmanager.PassManager.parse(wrapped)
        except (ValueError, ir.MLIRError) as e:
            raise _upstream_error(text, element, str(e)) from None
    return UpstreamPass(wrapped)


def _upstream_error(text: str, element: PassSpec | Nested, said: str) -> PipelineError:
    """MLIR's complaint about an element as ours, at the column of the pass it names."""
    specs = list(element.passes()) if isinstance(element, Nested) else [element]
    if "does not refer to a registered pass" in said:
        for spec in specs:
            if f"'{spec.name}'" in said or len(specs) == 1:
                known = [*map(pipeline_name, PASSES), *UPSTREAM]
                notes = did_you_mean(spec.name, known)
                return pipeline_error(text, spec.column, f"unknown pass '{spec.name}'", notes)
    lines = [line for line in said.splitlines() if line.strip()]
    detail = lines[-1].strip() if lines else "MLIR does not take it"
    return pipeline_error(text, element.column, f"'{element}': {detail}")


@contextmanager
def _quiet(context: ir.Context) -> Iterator[None]:
    """Swallow diagnostics inside the block: they are reported as an exception."""
    handler = context.attach_diagnostic_handler(lambda d: True)
    try:
        yield
    finally:
        handler.detach()


# ---- running ------------------------------------------------------------------------------------


@dataclass
class Timing:
    """One pass of a run: milliseconds, nesting depth, applications per pattern."""

    name: str
    depth: int
    ms: float = 0.0
    changed: bool | None = None
    counts: Counter[str] = dataclasses.field(default_factory=Counter)


@dataclass
class Instrumentation:
    """What to do around each pass.

    `verify` looks at the module after the last pass, `verify_each` after every pass that changed
    it (a verifier in Python takes as long as several passes). `print_ir` is called with (when,
    pass, module), `when` one of "before", "after", "failure"; `after_change` limits "after" to
    passes that changed something. `trace` collects match reasons.
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
    timings: list[Timing] = dataclasses.field(default_factory=list)
    depth: int = 0


_ACTIVE: list[Instrumentation] = []


def run_pipeline(
    module: Any,
    pipeline: PipelineLike,
    *,
    store: WeightStore | None = None,
    instrumentation: Instrumentation | None = None,
    verify: bool = True,
    disable: Iterable[str] = (),
    trace: MatchTrace | None = None,
) -> Instrumentation:
    """Run a pipeline on a module in place; how it went, pass by pass, is returned.

    `module` is a Module or its operation; weights are in `store`, or in the active one. `disable`
    names passes to leave out (MIGraphX's or pipeline spelling). `instrumentation`, when given,
    replaces the options after it. Raises PipelineError before anything runs, PassError when a
    pass fails or leaves invalid IR behind.
    """
    operation = module.operation
    if instrumentation is None:
        off = frozenset(map(pass_name, disable))
        instrumentation = Instrumentation(verify=verify, disable=off, trace=trace)
    steps = resolve(pipeline, operation.context)
    _ACTIVE.append(instrumentation)
    try:
        weights = store.active() if store is not None else nullcontext()
        with operation.context, ir.Location.unknown(operation.context), weights:
            for step in steps:
                run_pass(step, operation)
            if instrumentation.verify and not instrumentation.verify_each and steps:
                _verify_end(operation, steps)
    finally:
        _ACTIVE.pop()
    return instrumentation


def run_pass(step: Pass, module: ir.Operation) -> bool | None:
    """Run one pass under the active instrumentation (passes made of passes call this)."""
    how = _ACTIVE[-1] if _ACTIVE else Instrumentation()
    if pass_name(shown_name(step)) in how.disable:
        return False
    timing = Timing(shown_name(step), how.depth)
    how.timings.append(timing)
    before = module.clone() if how.reproducer and how.depth == 0 else None
    mark = None
    if how.print_before:
        _print_ir(how, "before", step, module)
    if how.print_after and how.after_change:
        mark = _fingerprint(module)
    how.depth += 1
    start = time.perf_counter()
    try:
        with observing(how.trace) as seen:
            timing.changed = step.run(module)
        timing.counts = seen.counts
        if how.verify_each and how.depth == 1 and timing.changed is not False:
            verify_module(module)
    except Exception as e:
        _print_ir(how, "failure", step, module)
        if how.depth > 1:
            raise  # the outermost pass says which pipeline element it was
        raise _failure(how, step, before, e) from e
    finally:
        how.depth -= 1
        timing.ms = (time.perf_counter() - start) * 1e3
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
    """An MLIRError's diagnostics, one per line, as `location: message`."""
    lines = []
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
            "mgx-opt verifies after each pass and names the one to blame",
        ]
        raise PassError(e.message, location=e.location, notes=[*e.notes, *notes]) from None


def _failure(
    how: Instrumentation, step: Pass, before: ir.Operation | None, e: Exception
) -> PassError:
    shown = shown_name(step)
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


def shown_name(step: Pass) -> str:
    """The name that listings show: `mgx-x`, or the element of an upstream pass."""
    return str(step) if isinstance(step, UpstreamPass) else pipeline_name(step.name)


def _print_ir(how: Instrumentation, when: str, step: Pass, module: ir.Operation) -> None:
    if how.print_ir is not None:
        how.print_ir(when, step, module)


def _fingerprint(module: ir.Operation) -> int:
    return hash(module.get_asm(print_generic_op_form=True, assume_verified=True))


def print_timings(timings: Sequence[Timing], to: TextIO) -> None:
    """A table of passes by the order they ran in: time, share, applications of patterns."""
    total = sum(t.ms for t in timings if t.depth == 0)
    print("// -----// Pass execution timing //----- //", file=to)
    print(f"//   Total: {total:.1f} ms", file=to)
    for t in timings:
        share = 100 * t.ms / total if total else 0.0
        applied = ", ".join(f"{name} {n}" for name, n in t.counts.most_common())
        tail = f"  ({applied})" if applied else ""
        print(f"//   {t.ms:9.1f} ms ({share:5.1f}%)  {'  ' * t.depth}{t.name}{tail}", file=to)
