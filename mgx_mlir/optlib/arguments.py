"""The command line of mgx-opt: a table of options, and one flag for every pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mgx_mlir.core.errors import UsageError
from mgx_mlir.core.passes import (
    PASSES,
    UPSTREAM,
    check_rewrites,
    option_docs,
    pass_name,
    pipeline_name,
)
from mgx_mlir.core.pipeline import did_you_mean

# name, what follows '=' (None: nothing, "[x]": optional), one line of help
OPTIONS: tuple[tuple[str, str | None, str], ...] = (
    ("allow-unregistered-dialect", None, "accept ops of dialects that are not registered"),
    ("disable-pattern", "names", "comma-separated patterns to leave out of every pass"),
    ("help", None, "print this text"),
    ("list-passes", None, "print every pass with its options"),
    ("mgx-disable-passes", "names", "comma-separated passes to leave out of the pipeline"),
    ("mlir-elide-elementsattrs-if-larger", "n", "print constants of more elements as '...'"),
    ("mlir-elide-resource-strings-if-larger", "n", "print longer resources as '...'"),
    ("mlir-pass-statistics", None, "print how often each pattern applied, to stderr"),
    ("mlir-print-debuginfo", None, "print locations"),
    ("mlir-print-ir-after", "passes", "print the IR after these passes, to stderr"),
    ("mlir-print-ir-after-all", None, "print the IR after every pass, to stderr"),
    ("mlir-print-ir-after-change", None, "with after-all: only where a pass changed something"),
    ("mlir-print-ir-after-failure", None, "print the IR of a failed pass, to stderr"),
    ("mlir-print-ir-before", "passes", "print the IR before these passes, to stderr"),
    ("mlir-print-ir-before-all", None, "print the IR before every pass, to stderr"),
    ("mlir-print-local-scope", None, "print without attribute aliases"),
    ("mlir-print-op-generic", None, "print the generic form"),
    ("mlir-timing", None, "print the time of every pass, to stderr"),
    ("o", "file", "write to this file instead of stdout"),
    ("pass-pipeline", "pipeline", "builtin.module(mgx-simplify-algebra,cse,...)"),
    ("save-weights", "f.npz", "write the weights that the result refers to"),
    ("show-dialects", None, "print the dialects that can be read"),
    ("split-input-file", None, "take '// -----' as the border of independent inputs"),
    ("verify-diagnostics", "[only-expected]", "compare diagnostics with expected-* comments"),
    ("verify-each", "[bool]", "verify after every pass (default true)"),
    ("verify-roundtrip", None, "print and parse again, and expect the same IR"),
    ("version", None, "print versions"),
    ("weights", "f.npz", "the weights that `key` attributes of literals refer to"),
)
_VALUES = {name: value for name, value, _ in OPTIONS}


@dataclass
class Arguments:
    """A parsed command line: plain options by name, and the passes in the order given."""

    input: str = "-"
    values: dict[str, str] = field(default_factory=dict)
    passes: list[str] = field(default_factory=list)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def flag(self, name: str, default: bool = False) -> bool:
        """A boolean option: given bare, or with true/false."""
        if name not in self.values:
            return default
        text = self.values[name]
        if text in ("", "true", "1"):
            return True
        if text in ("false", "0"):
            return False
        raise UsageError(f"option '--{name}' expected true or false, got '{text}'")

    def number(self, name: str) -> int | None:
        """A non-negative integer option, None when not given."""
        if name not in self.values:
            return None
        text = self.values[name]
        if not text.isdecimal():
            raise UsageError(f"option '--{name}' expected a number, got '{text}'")
        return int(text)

    def names(self, name: str) -> frozenset[str]:
        """A comma-separated list of passes, in MIGraphX's spelling."""
        text = self.values.get(name, "")
        return frozenset(pass_name(part.strip()) for part in text.split(",") if part.strip())

    def patterns(self, name: str) -> frozenset[str]:
        """A comma-separated list of patterns. PipelineError for an unknown one."""
        text = self.values.get(name, "")
        return check_rewrites(part.strip() for part in text.split(",") if part.strip())

    def pipeline(self) -> str:
        """The pipeline text of --pass-pipeline, or of the pass flags."""
        if "pass-pipeline" in self.values:
            if self.passes:
                raise UsageError("expected either --pass-pipeline or pass flags, got both")
            return self.values["pass-pipeline"]
        return f"builtin.module({','.join(self.passes)})"


def parse_arguments(argv: Sequence[str]) -> Arguments:
    """Read a command line. An unknown flag is taken for an upstream pass and checked later."""
    out = Arguments()
    inputs: list[str] = []
    at = 0
    while at < len(argv):
        text = argv[at]
        at += 1
        if text == "-" or not text.startswith("-"):
            inputs.append(text)
            continue
        name, equals, value = text.lstrip("-").partition("=")
        if name == "h":
            name = "help"
        if name not in _VALUES:
            out.passes.append(_pass_flag(name, value))
            continue
        takes = _VALUES[name]
        if takes is None and equals:
            value = value if value in ("true", "false", "1", "0") else _unexpected(name, value)
        elif takes is not None and not equals and not takes.startswith("["):
            if at == len(argv):
                raise UsageError(f"option '--{name}' expected a value: --{name}=<{takes}>")
            value = argv[at]
            at += 1
        out.values[name] = value
    if len(inputs) > 1:
        raise UsageError(f"expected one input file, got {len(inputs)}: {', '.join(inputs)}")
    if inputs:
        out.input = inputs[0]
    return out


def _unexpected(name: str, value: str) -> str:
    raise UsageError(f"option '--{name}' takes no value, got '{value}'")


def _pass_flag(name: str, options: str) -> str:
    """`mgx-x` or `mgx-x="a=1 b"` as a pipeline element."""
    known = pass_name(name) in PASSES
    looks_like_option = name.startswith(("mlir-print", "mlir-elide", "mlir-timing", "verify-"))
    if not known and (looks_like_option or not name or name.startswith("mgx-")):
        choices = [*_VALUES, *map(pipeline_name, PASSES), *UPSTREAM]
        raise UsageError(
            f"unknown option '--{name}'",
            notes=[*did_you_mean(name, choices), "mgx-opt --help lists the options"],
        )
    return f"{name}{{{options}}}" if options else name


def help_text() -> str:
    """What --help prints."""
    lines = [
        "usage: mgx-opt [options] [passes] [input.mlir]",
        "",
        "Reads MLIR from a file or stdin, runs passes in the order given, prints the result.",
        "Exit status: 0 done, 1 --verify-diagnostics found a difference, 2 could not be done.",
        "",
        "options:",
    ]
    for name, value, doc in OPTIONS:
        dashes = "-" if len(name) == 1 else "--"
        shown = f"{dashes}{name}"
        if value is not None:
            shown += f"[={value[1:-1]}]" if value.startswith("[") else f"=<{value}>"
        lines.append(f"  {shown:<45} {doc}")
    lines += ["", 'passes (--mgx-simplify-algebra, or with options: --mgx-x="max-iterations=8"):']
    lines += [f"  --{pipeline_name(name):<43} {PASSES[name]().summary}" for name in PASSES]
    lines += ["", f"and every registered upstream pass: {', '.join(UPSTREAM)}, ..."]
    return "\n".join(lines)


def passes_text() -> str:
    """What --list-passes prints."""
    lines = []
    for name in PASSES:
        cls = PASSES[name]
        lines.append(f"{pipeline_name(name)}: {cls().summary}")
        for option, kind, default, doc in option_docs(cls):
            lines.append(f"    {option}=<{kind}> (default {default or 'empty'}): {doc}")
    lines.append(f"upstream: {', '.join(UPSTREAM)}, ...")
    return "\n".join(lines)
