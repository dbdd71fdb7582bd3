"""Definition of a pass: the base classes, the options, and the table of passes by name.

A pass is a frozen dataclass: `name` is MIGraphX's, the fields are its options, `run` changes the
module in place and says whether it did. `mgx-simplify-algebra` is `simplify_algebra` in a
pipeline.
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from mgx_mlir.core import defined_again, plugins
from mgx_mlir.core.errors import PipelineError
from mgx_mlir.core.ir import ir
from mgx_mlir.rewrite.names import pass_name, pipeline_name
from mgx_mlir.rewrite.pattern import PATTERNS, RULES, Pattern, PatternSet, Rule
from mgx_mlir.rewrite.pipeline import PassSpec, did_you_mean


def option(default: Any, doc: str) -> Any:
    """Declare a pass option: a dataclass field with a default and one line of documentation."""
    return dataclasses.field(default=default, metadata={"doc": doc})


@dataclass(frozen=True)
class Pass:
    """A transformation of a module; valid IR in, valid IR out.

    `run` returns whether anything changed (None: not known). It raises PassError if it cannot
    continue; the manager adds the pass, the IR and the command that reproduces it.
    """

    name: ClassVar[str] = ""
    rules: ClassVar[tuple[Rule, ...]] = ()  # named rewrites of a pass that is no pattern set

    def run(self, module: ir.Operation) -> bool | None:
        """Change the module in place; return whether it changed, None if unknown."""
        raise NotImplementedError

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return (type(self).__doc__ or "").strip().split("\n", 1)[0]

    @property
    def argument(self) -> str:
        """The name in a pipeline: `mgx-x`."""
        return pipeline_name(self.name)

    @property
    def title(self) -> str:
        """The name in reports: the class's."""
        return type(self).__name__

    def spelled(self, every_option: bool = False) -> str:
        """Return the pass as a pipeline element; `every_option` includes defaults."""
        options: list[tuple[str, str]] = []
        for f in dataclasses.fields(self):
            value = getattr(self, f.name)
            if every_option or value != f.default:
                options.append((f.name.replace("_", "-"), _option_text(value)))
        return str(PassSpec(self.argument, tuple(options)))

    def __str__(self) -> str:
        return self.spelled()


@dataclass(frozen=True)
class PatternPass(Pass):
    """A pass that is a set of patterns, applied until nothing changes."""

    patterns: ClassVar[tuple[Pattern, ...]] = ()
    max_iterations: int = option(-1, "sweeps over the module; -1: until nothing changes")

    def run(self, module: ir.Operation) -> bool:
        return PatternSet(self.patterns).apply(module, self, self.max_iterations) > 0


# ---- registry -----------------------------------------------------------------------------------


class PassTable(Mapping[str, type[Pass]]):
    """Passes by MIGraphX's name; a class is imported on first use."""

    def __init__(self) -> None:
        self._modules: dict[str, str] = {}
        self._classes: dict[str, type[Pass]] = {}

    def declare(self, package: str, names: Iterable[str]) -> None:
        """Declare that pass `x` is the class named in `package.x`."""
        for name in names:
            if defined_again.again("pass", name, package):
                self._modules.pop(name, None)
            if name in self._modules:
                raise TypeError(f"pass '{name}' is declared twice")
            self._modules[name] = f"{package}.{name}"

    def register(self, cls: type[Pass]) -> type[Pass]:
        """Add a pass by its class; also a decorator. TypeError if its name exists."""
        if defined_again.again("pass", cls.name, cls.__module__):
            self._modules.pop(cls.name, None)
        if cls.name in self._modules:
            raise TypeError(f"pass '{cls.name}' is declared twice")
        self._modules[cls.name] = cls.__module__
        self._classes[cls.name] = cls
        return cls

    def __getitem__(self, name: str) -> type[Pass]:
        if name not in self._modules:
            plugins.load()
        if name in self._classes:
            return self._classes[name]
        module = plugins.import_module(self._modules[name])
        found = getattr(module, "".join(part.capitalize() for part in name.split("_")))
        if found.name != name:
            raise TypeError(f"{module.__name__}: expected a pass named '{name}', got {found.name}")
        return found

    def __iter__(self) -> Iterator[str]:
        plugins.load()
        return iter(self._modules)

    def __len__(self) -> int:
        plugins.load()
        return len(self._modules)


PASSES = PassTable()


def rewrites_of(cls: type[Pass]) -> tuple[Pattern | Rule, ...]:
    """Return the patterns and rules of a pass, in the order it states them."""
    return (*getattr(cls, "patterns", ()), *cls.rules)


def known_rewrites() -> dict[str, Pattern | Rule]:
    """Return every pattern and rule by name (this imports every pass)."""
    for name in PASSES:
        _ = PASSES[name]  # imported on access
    return {**PATTERNS, **RULES}


def check_rewrites(names: Iterable[str]) -> frozenset[str]:
    """Return `names`; raise PipelineError for one that is neither a pattern nor a rule."""
    names = frozenset(names)
    known = known_rewrites() if names else {}
    for name in sorted(names):
        if name not in known:
            raise PipelineError(f"unknown pattern '{name}'", notes=did_you_mean(name, known))
    return names


# Upstream passes in suggestions and lists, with their classes; any registered C++ pass can run.
UPSTREAM = {
    "canonicalize": "CanonicalizerPass",
    "cse": "CSEPass",
    "inline": "InlinerPass",
    "linalg-fold-unit-extent-dims": "LinalgFoldUnitExtentDimsPass",
    "linalg-fuse-elementwise-ops": "LinalgElementwiseOpFusionPass",
    "linalg-generalize-named-ops": "LinalgGeneralizeNamedOpsPass",
    "loop-invariant-code-motion": "LoopInvariantCodeMotionPass",
    "print-ir": "PrintIRPass",
    "print-op-stats": "PrintOpStatsPass",
    "remove-dead-values": "RemoveDeadValuesPass",
    "sccp": "SCCPPass",
    "snapshot-op-locations": "LocationSnapshot",
    "strip-debuginfo": "StripDebugInfoPass",
    "symbol-dce": "SymbolDCEPass",
    "symbol-privatize": "SymbolPrivatizePass",
    "topological-sort": "TopologicalSortPass",
}


def option_docs(cls: type[Pass]) -> list[tuple[str, str, str, str]]:
    """Return (name, type, default, doc) of each option of a pass."""
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


@functools.cache
def _hints(cls: type[Pass]) -> dict[str, Any]:
    """Return the types of a pass's options, cached.

    For small programs most of the time is spent on making passes.
    """
    return typing.get_type_hints(cls)


def make_pass(name: str, options: Iterable[tuple[str, str | None]] = ()) -> Pass:
    """Make the pass `name` (MIGraphX's or pipeline spelling) with options as text."""
    key = pass_name(name)
    if key not in PASSES:
        known = [pipeline_name(n) for n in PASSES]
        notes = did_you_mean(name, known, listed_by="mgx-opt --list-passes")
        raise PipelineError(f"unknown pass '{name}'", notes=notes)
    cls = PASSES[key]
    hints = _hints(cls)
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
    """Read text as bool, int, float, str or a tuple of one of these; raise ValueError otherwise."""
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


def _option_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(_option_text, cast(tuple[object, ...], value)))
    return str(value)


def _type_text(kind: object) -> str:
    if typing.get_origin(kind) is tuple:
        return f"list of {_type_text(typing.get_args(kind)[0])}"
    return getattr(kind, "__name__", str(kind))
