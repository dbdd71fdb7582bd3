"""The command line of mgx-opt: a table of options, and one flag for every pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mgx_mlir.core.errors import UsageError
from mgx_mlir.rewrite.passes import (
    PASSES,
    UPSTREAM,
    check_rewrites,
    is_upstream,
    option_docs,
    pass_name,
    pipeline_name,
    rewrites_of,
)
from mgx_mlir.rewrite.pipeline import did_you_mean

# name, what follows '=' (None: nothing, "[x]": optional), one line of help
OPTIONS: tuple[tuple[str, str | None, str], ...] = (
    ("allow-unregistered-dialect", None, "accept ops of dialects that are not registered"),
    ("disable-kernel-rule", "rules", "kernel rules of the lowering to leave out"),
    ("disable-pattern", "patterns", "patterns (and rules of fusion) to leave out of every pass"),
    ("dump-pass-pipeline", None, "print the pipeline that will be run, to stderr"),
    ("emit-bytecode", None, "write MLIR bytecode, with all segment sizes, in place of text"),
    (
        "explain",
        "patterns",
        ("print where these patterns were applied, and why not elsewhere, to stderr"),
    ),
    ("explain-kernels", None, "print which rule lowers each kernel, and why not others, to stderr"),
    ("help", None, "print this text"),
    ("irdl-file", "f.mlir", "write the dialect as IRDL, which other tools take under this option"),
    ("list-passes", None, "print every pass with its options and patterns"),
    ("load-pass-plugin", "plugins", "load a plugin: a Python file or a module"),
    ("load-dialect-plugin", "plugins", "the same, by MLIR's other name"),
    ("mgx-disable-passes", "passes", "passes to leave out of the pipeline"),
    ("mlir-disable-threading", None, "accepted without effect: there is one thread"),
    ("mlir-elide-elementsattrs-if-larger", "n", "print constants of more elements as '...'"),
    ("mlir-elide-resource-strings-if-larger", "n", "print longer resources as '...'"),
    ("mlir-generate-reproducer", "f.mlir", "always write a reproducer"),
    ("mlir-pass-pipeline-crash-reproducer", "f.mlir", "write a reproducer if a pass fails or dies"),
    ("mlir-pass-pipeline-local-reproducer", None, "with the above: of the failed pass alone"),
    ("mlir-pass-statistics", None, "print how often each pattern was applied, to stderr"),
    ("mlir-pass-statistics-display", "list|pipeline", "merged by pass, or as the passes nest"),
    ("mlir-pretty-debuginfo", None, "print locations in a readable form"),
    ("mlir-print-debuginfo", None, "print locations"),
    ("mlir-print-ir-after", "passes", "print the IR after these passes, to stderr"),
    ("mlir-print-ir-after-all", None, "print the IR after every pass, to stderr"),
    ("mlir-print-ir-after-change", None, "print the IR after passes that changed something"),
    ("mlir-print-ir-after-failure", None, "print the IR after a failed pass only"),
    ("mlir-print-ir-before", "passes", "print the IR before these passes, to stderr"),
    ("mlir-print-ir-before-all", None, "print the IR before every pass, to stderr"),
    ("mlir-print-ir-module-scope", None, "print the whole module around passes on functions"),
    ("mlir-print-ir-tree-dir", "dir", "print the IR to files, a numbered one for each pass"),
    ("mlir-print-local-scope", None, "print without attribute aliases"),
    ("mlir-print-op-generic", None, "print the generic form"),
    ("mlir-print-skip-regions", None, "print ops without their regions"),
    ("mlir-print-value-users", None, "print the users of each value, as comments"),
    ("mlir-timing", None, "print the time of every pass, to stderr"),
    ("mlir-timing-display", "list|tree", "sorted by time, or as the passes nest"),
    ("mlir-use-nameloc-as-prefix", None, "name values after their locations"),
    ("no-implicit-module", None, "do not wrap the input's only op in a module"),
    ("o", "file", "write to this file instead of stdout"),
    ("output-split-marker", "text", "what to print between the results of a split input"),
    ("pass-pipeline", "pipeline", "builtin.module(mgx-simplify-algebra,cse,...)"),
    ("run-reproducer", None, "run the pipeline that the input, a reproducer, holds"),
    (
        "save-weights",
        "f.npz",
        "where weights of the result go (default: beside -o FILE, in FILE.npz)",
    ),
    ("show-dialects", None, "print the dialects that can be read"),
    ("split-input-file", "[marker]", "take '// -----' as the border of independent inputs"),
    ("verify-diagnostics", "[only-expected]", "compare diagnostics with expected-* comments"),
    ("verify-each", "[bool]", "verify after every pass (default true)"),
    ("verify-roundtrip", None, "print and parse input and result again, and expect the same IR"),
    ("version", None, "print versions"),
    (
        "weights",
        "f.npz",
        "weights that `key` attributes refer to (default: FILE.npz, if it is there)",
    ),
)
_LISTS = ("passes", "patterns", "plugins", "rules")  # may be given several times
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
        """Return a boolean option: given bare, or with true/false."""
        if name not in self.values:
            return default
        text = self.values[name]
        if text in ("", "true", "1"):
            return True
        if text in ("false", "0"):
            return False
        raise UsageError(f"option '--{name}' expected true or false, got '{text}'")

    def number(self, name: str) -> int | None:
        """Return a non-negative integer option, None when not given."""
        if name not in self.values:
            return None
        text = self.values[name]
        if not text.isdecimal():
            raise UsageError(f"option '--{name}' expected a number, got '{text}'")
        return int(text)

    def choice(self, name: str) -> str | None:
        """Return an option whose values are in the table, None when not given."""
        found, allowed = self.values.get(name), (_VALUES[name] or "").split("|")
        if found is not None and found not in allowed:
            raise UsageError(f"option '--{name}' expected {' or '.join(allowed)}, got '{found}'")
        return found

    def listed(self, name: str) -> list[str]:
        """Return a comma-separated list."""
        return [part.strip() for part in self.values.get(name, "").split(",") if part.strip()]

    def passes_named(self, name: str) -> frozenset[str]:
        """Return a list of passes, in MIGraphX's spelling. UsageError for an unknown one."""
        found = self.listed(name)
        for text in found:
            if pass_name(text) not in PASSES and not is_upstream(text):
                known = [*map(pipeline_name, PASSES), *UPSTREAM]
                notes = did_you_mean(text, known, listed_by="mgx-opt --list-passes")
                raise UsageError(f"option '--{name}': unknown pass '{text}'", notes=notes)
        return frozenset(map(pass_name, found))

    def patterns(self, name: str) -> frozenset[str]:
        """Return a list of patterns. Errors: PipelineError for an unknown one."""
        return check_rewrites(self.listed(name))

    def pipeline(self) -> str:
        """Return the pipeline text of --pass-pipeline, or of the pass flags."""
        if "run-reproducer" in self.values and (self.passes or "pass-pipeline" in self.values):
            raise UsageError("expected either --run-reproducer or a pipeline, got both")
        if "pass-pipeline" in self.values:
            if self.passes:
                raise UsageError("expected either --pass-pipeline or pass flags, got both")
            return self.values["pass-pipeline"]
        return f"builtin.module({','.join(self.passes)})"


def parse_arguments(argv: Sequence[str]) -> Arguments:
    """Read a command line. A flag that is no option names a pass."""
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
        if takes in _LISTS and name in out.values:
            value = f"{out.values[name]},{value}"
        out.values[name] = value
    if len(inputs) > 1:
        raise UsageError(f"expected one input file, got {len(inputs)}: {', '.join(inputs)}")
    if inputs:
        out.input = inputs[0]
    return out


def plugin_sources(argv: Sequence[str]) -> list[str]:
    """Return what --load-pass-plugin and --load-dialect-plugin name: the passes are options too,
    so a plugin is loaded before the rest is parsed."""
    found: list[str] = []
    for at, text in enumerate(argv):
        name, equals, value = text.lstrip("-").partition("=")
        if text.startswith("-") and name in ("load-pass-plugin", "load-dialect-plugin"):
            value = value if equals else "".join(argv[at + 1 : at + 2])
            found += [part.strip() for part in value.split(",") if part.strip()]
    return found


def _unexpected(name: str, value: str) -> str:
    raise UsageError(f"option '--{name}' takes no value, got '{value}'")


def _pass_flag(name: str, options: str) -> str:
    """Convert `mgx-x` or `mgx-x="a=1 b"` to a pipeline element."""
    if pass_name(name) not in PASSES and (not name or not is_upstream(name)):
        choices = [*_VALUES, *map(pipeline_name, PASSES), *UPSTREAM]
        close = did_you_mean(name, choices)
        raise UsageError(
            f"unknown option '--{name}'",
            notes=[*(c.replace("'", "'--", 1) for c in close), "mgx-opt --help lists the options"],
        )
    return f"{name}{{{options}}}" if options else name


def help_text() -> str:
    """Return what --help prints."""
    lines = [
        "usage: mgx-opt [options] [passes] [input.mlir]",
        "",
        "Reads MLIR from a file or stdin, runs passes in the order given, prints the result.",
        "Exit status: 0 success, 1 --verify-diagnostics found a difference, 2 failure.",
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
    """Return what --list-passes prints."""
    lines = []
    for name in PASSES:
        cls = PASSES[name]
        lines.append(f"{pipeline_name(name)}: {cls().summary}")
        for option, kind, default, doc in option_docs(cls):
            lines.append(f"    {option}=<{kind}> (default {default or 'empty'}): {doc}")
        lines += [f"    {r.name}: {r.summary}" for r in rewrites_of(cls)]
    lines.append(f"upstream: {', '.join(UPSTREAM)}, ...")
    return "\n".join(lines)
