"""One run of mgx-opt: context, weights, and the processing of each input."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import mgx_mlir.dialects  # noqa: F401  (the op classes that a context is made with)
from mgx_mlir.core.context import new_context
from mgx_mlir.core.errors import MgxError, PassError, UsageError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.operand_segments import asm, parse_module
from mgx_mlir.core.parse_errors import find_fault, foreign_diagnostics
from mgx_mlir.core.weight_files import read_weights, used_keys, weights_beside, write_weights
from mgx_mlir.passes.lowering.select import check_names, watching, without
from mgx_mlir.printers.kernel_choices import explanation
from mgx_mlir.rewrite.passes import (
    Instrumentation,
    NestedPass,
    Pass,
    Timing,
    resolve,
    run_pipeline,
)
from mgx_mlir.rewrite.pattern import MatchTrace, disabled
from mgx_mlir.rewrite.reports import print_statistics, print_timing
from mgx_mlir.rewrite.reproducer import Failing, Reproducer, read_reproducer
from mgx_mlir.tools.opt import crash
from mgx_mlir.tools.opt.arguments import Arguments
from mgx_mlir.tools.opt.diagnostics import (
    Diagnostic,
    collecting,
    compare,
    of_error,
    of_fault,
    read_expectations,
)
from mgx_mlir.tools.opt.dumps import Dumps
from mgx_mlir.tools.opt.explain import print_explanation
from mgx_mlir.tools.opt.value_users import with_users

MAX_NOTE = 400  # characters of an op with its regions


class Session:
    """Shared state of the inputs of one command line: context, weights, resolved pipeline."""

    def __init__(self, arguments: Arguments, pipeline: str, name: str) -> None:
        self.arguments, self.name = arguments, name
        self.started = time.perf_counter()
        self.context = new_context()
        self.context.allow_unregistered_dialects = arguments.flag("allow-unregistered-dialect")
        weights = arguments.values.get("weights")
        beside = weights_beside(arguments.input)
        if weights is None and arguments.input != "-" and os.path.lexists(beside):
            weights = beside
        self.store = WeightStore() if weights is None else read_weights(weights)
        self.disabled = arguments.patterns("disable-pattern")
        self.disabled_passes = arguments.passes_named("mgx-disable-passes")
        self.disabled_rules = check_names(arguments.listed("disable-kernel-rule"))
        self.verify_each = arguments.flag("verify-each", True)
        explained = arguments.patterns("explain")
        self.trace = MatchTrace(explained) if explained else None
        self.steps = resolve(pipeline, self.context)
        self.dumps = Dumps(arguments, self._print)
        self.displays = (
            arguments.choice("mlir-timing-display") or "tree",
            arguments.choice("mlir-pass-statistics-display") or "pipeline",
        )
        self.timings: list[Timing] = []
        self.spent = {"Parser": 0.0, "Output": 0.0}
        self.keys: set[str] = set()
        self.strict = _diagnostics_mode(arguments) != "only-expected"
        if arguments.flag("dump-pass-pipeline") and "run-reproducer" not in arguments:
            _dump_pipeline(self.steps)

    def run(self, source: str) -> tuple[str | bytes | None, int]:
        """Process one input; return the printed module (None: none) and the exit status."""
        lines = source.split("\n")
        printed: str | bytes | None = None
        status = 0
        with self.context, collecting(self.context) as seen:
            try:
                if self.arguments.flag("run-reproducer"):
                    source = self._take_reproducer(source)
                with self.store.active():
                    start = time.perf_counter()
                    bare = self._is_bare(source)
                    module = parse_module(source, self.context)
                    self.spent["Parser"] += time.perf_counter() - start
                    if self.arguments.flag("verify-roundtrip"):
                        self._roundtrip(module.operation)
                    self._passes(module.operation)
                    start = time.perf_counter()
                    printed = self._result(module.operation, bare)
                    self.spent["Output"] += time.perf_counter() - start
                    if self.arguments.flag("verify-roundtrip"):
                        self._roundtrip(module.operation)
                    self._note_weights(module.operation)
            except ir.MLIRError:
                status = 2
            except MgxError as e:
                seen.extend(of_error(e))
                status = e.exit_code
        if status and not any(d.severity == "error" for d in seen):
            seen.extend(of_fault(find_fault(source)))
        if "verify-diagnostics" in self.arguments:
            return printed, self._compare(lines, seen)
        for d in seen:
            if d.message.startswith("see current operation:") and len(d.message) > MAX_NOTE:
                d.message = d.message[:MAX_NOTE] + " ..."
            print(d.render(self.name, lines), file=sys.stderr)
        return printed, status

    def finish(self) -> None:
        """Write what comes once, after the last input."""
        if self.trace is not None and self.trace.names is not None:
            ran = {t.name for t in self.timings}
            print_explanation(self.trace, self.trace.names, ran, self._located, sys.stderr)
        timing, statistics = self.displays
        if self.arguments.flag("mlir-pass-statistics"):
            print_statistics(self.timings, sys.stderr, display=statistics)
        if self.arguments.flag("mlir-timing"):
            print_timing(
                self.timings,
                sys.stderr,
                display=timing,
                before=[("Parser", self.spent["Parser"])],
                after=[("Output", self.spent["Output"])],
                total=time.perf_counter() - self.started,
            )
        path = self.arguments.values.get("save-weights")
        if path is not None:
            write_weights(path, {k: self.store.get(k) for k in sorted(self.keys)})
            return
        made = self.arguments.values.get("o", "-")
        found = {k: self.store.get(k) for k in sorted(self.keys) if k in self.store}
        if found and made != "-":
            write_weights(weights_beside(made), found)

    def _located(self, location: str) -> str:
        """Write a location as it is shown: what was parsed from memory is in "-"."""
        return f"{self.name}{location[1:]}" if location.startswith("-:") else location

    def _take_reproducer(self, source: str) -> str:
        """Do as the reproducer in the input says; its weights lie beside it. Its module."""
        found, module = read_reproducer(source)
        if "verify-each" not in self.arguments:
            self.verify_each = found.verify_each
        if found.weights and "weights" not in self.arguments:
            self.store = read_weights(str(Path(self.arguments.input).parent / found.weights))
        given = Arguments(values={"p": found.disabled_passes, "r": found.disabled_patterns})
        self.disabled = given.patterns("r")
        self.disabled_passes = given.passes_named("p")
        self.steps = resolve(found.pipeline, self.context)
        if self.arguments.flag("dump-pass-pipeline"):
            _dump_pipeline(self.steps)
        return module

    def _passes(self, module: ir.Operation) -> None:
        how = Instrumentation(
            verify=self.verify_each,
            verify_each=self.verify_each,
            disable=self.disabled_passes,
            trace=self.trace,
            reproducer=self._reproducer,
        )
        self.dumps.install(how)
        wanted = self.arguments.values.get("mlir-generate-reproducer")
        if wanted is not None:
            self._failing(module, self.steps).write(wanted)
        path = self.arguments.values.get("mlir-pass-pipeline-crash-reproducer")
        whole = None if path is None else self._failing(module, self.steps)
        if path is not None and whole is not None and (pending := crash.pending()) is not None:
            whole.write(path, at=pending)
        try:
            with disabled(self.disabled), without(self.disabled_rules), watching() as choices:
                run_pipeline(module, self.steps, instrumentation=how)
            if self.arguments.flag("explain-kernels"):
                print(*explanation(choices, self._located), sep="\n", file=sys.stderr, flush=True)
        except PassError as e:
            local = self.arguments.flag("mlir-pass-pipeline-local-reproducer")
            if path is None or whole is None or local:
                raise
            whole.write(path)
            at = [t.step.title for t in how.timings if t.depth == 0][-1]
            note = (
                f"pipeline failed while executing [`{at}` on 'builtin.module' operation]: "
                f"reproducer generated at `{path}`"
            )
            raise PassError(e.message, location=e.location, notes=[*e.notes, note]) from None
        finally:
            self.timings += how.timings

    def _failing(self, module: ir.Operation, steps: Sequence[Pass]) -> Failing:
        """Record a module, and what is to be run on it, before that changes it."""
        keys = used_keys(module)
        text = asm(module, enable_debug_info=True, assume_verified=True)
        return Failing(
            text.replace('loc("-":', f'loc("{self.name}":'),
            Reproducer(
                f"builtin.module({','.join(map(str, steps))})",
                self.verify_each,
                disabled_passes=",".join(sorted(self.disabled_passes)),
                disabled_patterns=",".join(sorted(self.disabled)),
            ),
            {k: self.store.get(k) for k in sorted(keys) if k in self.store},
        )

    def _is_bare(self, source: str) -> bool:
        """Return whether --no-implicit-module asks for the input's op without the parser's module.

        Errors: MgxError where passes would need the module; MLIRError for several ops.
        """
        if not self.arguments.flag("no-implicit-module"):
            return False
        names: list[str] = []
        seen = foreign_diagnostics(
            lambda text: names.append(ir.Operation.parse(text).operation.name), source
        )
        if any("single top-level" in message for message, _ in seen):
            raise MgxError(
                "expected one op at the top, got several or none",
                notes=["without --no-implicit-module a module is put around them"],
            )
        if not names:
            return False  # the parse that follows says what is wrong
        [name] = names
        if name == "builtin.module":
            return False
        if self.steps:
            raise MgxError(
                f"expected a 'builtin.module' for the pass pipeline, got '{name}'",
                notes=["without --no-implicit-module one is put around it"],
            )
        return True

    def _result(self, module: ir.Operation, bare: bool) -> str | bytes:
        """Return what is written of a processed input."""
        top = module.regions[0].blocks[0].operations[0].operation if bare else module
        if self.arguments.flag("emit-bytecode"):
            stream = io.BytesIO()
            top.write_bytecode(stream)
            return stream.getvalue()
        return self._print(top)

    def _print(self, module: ir.Operation, valid: bool = True) -> str:
        pretty = self.arguments.flag("mlir-pretty-debuginfo")
        debug_info = self.arguments.flag("mlir-print-debuginfo") or pretty
        if self.arguments.flag("mlir-print-value-users"):
            text = with_users(module, lambda op: self._text(op, valid, users=True))
        else:
            text = self._text(module, valid, debug_info=debug_info, pretty=pretty)
        if debug_info:
            # locations of text from memory are in "-": say the file
            text = text.replace('loc("-":', f'loc("{self.name}":')
        return text if text.endswith("\n") else text + "\n"

    def _text(
        self,
        module: ir.Operation,
        valid: bool,
        *,
        debug_info: bool = False,
        pretty: bool = False,
        users: bool = False,
    ) -> str:
        return asm(
            module,
            large_elements_limit=self.arguments.number("mlir-elide-elementsattrs-if-larger"),
            large_resource_limit=self.arguments.number("mlir-elide-resource-strings-if-larger"),
            enable_debug_info=debug_info or users,
            pretty_debug_info=pretty,
            skip_regions=self.arguments.flag("mlir-print-skip-regions"),
            use_name_loc_as_prefix=self.arguments.flag("mlir-use-nameloc-as-prefix"),
            print_generic_op_form=self.arguments.flag("mlir-print-op-generic") or not valid,
            use_local_scope=self.arguments.flag("mlir-print-local-scope")
            or users
            or module.parent is not None,
            assume_verified=valid,
        )

    def _roundtrip(self, module: ir.Operation) -> None:
        text = asm(module, print_generic_op_form=True)
        again = asm(parse_module(text, self.context).operation, print_generic_op_form=True)
        if text != again:
            pairs = zip(text.splitlines(), again.splitlines(), strict=False)
            a, b = next(((a, b) for a, b in pairs if a != b), (text[-80:], again[-80:]))
            raise MgxError("the IR differs after a round trip", notes=[f"printed {a}", f"read {b}"])

    def _note_weights(self, module: ir.Operation) -> None:
        if "save-weights" in self.arguments or "o" in self.arguments:
            self.keys |= used_keys(module)

    def _compare(self, lines: Sequence[str], seen: list[Diagnostic]) -> int:
        # MLIR appends the op to its errors as a note; mlir-opt too leaves that out here
        said = [d for d in seen if not d.message.startswith("see current operation:")]
        problems = compare(read_expectations(lines), said, self.strict)
        for problem in problems:
            print(f"{self.name}:{problem}", file=sys.stderr)
        return 1 if problems else 0

    def _reproducer(self, step: Pass, before: ir.Operation) -> str | None:
        """Write the IR a failed pass was given, where a file is named for it; the command that
        runs just that pass on it."""
        path = self.arguments.values.get("mlir-pass-pipeline-crash-reproducer")
        if path is None or not self.arguments.flag("mlir-pass-pipeline-local-reproducer"):
            return None  # none is asked for, or one of the whole pipeline is written
        self._failing(before, [step]).write(path)
        command = f"mgx-opt --run-reproducer {path}"
        if self.context.allow_unregistered_dialects:
            command += " --allow-unregistered-dialect"
        return command


def _dump_pipeline(steps: Sequence[Pass]) -> None:
    """Write the pipeline as --dump-pass-pipeline shows it, every option with its value."""

    def lines(found: Sequence[Pass], indent: str) -> str:
        texts = []
        for step in found:
            if isinstance(step, NestedPass):
                inner = lines(step.steps, indent + "  ")
                texts.append(f"{indent}{step.anchor}(\n{inner}\n{indent})")
            else:
                texts.append(indent + step.spelled(every_option=True))
        return ",\n".join(texts)

    print(f"Pass Manager with {len(steps)} passes:", file=sys.stderr)
    body = f"\n{lines(steps, '  ')}\n" if steps else ""
    print(f"builtin.module({body})\n", file=sys.stderr)


def _diagnostics_mode(arguments: Arguments) -> str:
    mode = arguments.values.get("verify-diagnostics", "")
    if mode not in ("", "all", "only-expected"):
        raise UsageError(
            f"option '--verify-diagnostics' expected 'all' or 'only-expected', got '{mode}'"
        )
    return mode
