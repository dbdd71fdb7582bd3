"""One run of mgx-opt: the context and weights, and what happens to each input in it."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import mgx_mlir.dialects  # noqa: F401  (the op classes that a context is made with)
from mgx_mlir.core.context import new_context
from mgx_mlir.core.errors import FileError, MgxError, UsageError
from mgx_mlir.core.files import atomic
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.passes import (
    Instrumentation,
    Pass,
    Timing,
    pass_name,
    print_timings,
    resolve,
    run_pipeline,
    shown_name,
)
from mgx_mlir.core.pattern import disabled
from mgx_mlir.core.segments import asm, parse_module
from mgx_mlir.optlib.arguments import Arguments
from mgx_mlir.optlib.diagnostics import (
    Diagnostic,
    collecting,
    compare,
    of_error,
    read_expectations,
)

MAX_NOTE = 400  # characters of an op with its regions


class Session:
    """What the inputs of one command line share: context, weights, resolved pipeline."""

    def __init__(self, arguments: Arguments, pipeline: str, name: str) -> None:
        self.arguments, self.name = arguments, name
        self.context = new_context()
        self.context.allow_unregistered_dialects = arguments.flag("allow-unregistered-dialect")
        self.store = _read_weights(arguments.values.get("weights"))
        self.disabled = arguments.patterns("disable-pattern")
        self.steps = resolve(pipeline, self.context)
        self.timings: list[Timing] = []
        self.keys: set[str] = set()
        self.strict = _diagnostics_mode(arguments) != "only-expected"

    def run(self, source: str) -> tuple[str | None, int]:
        """Process one input: the printed module (None: there is none) and the exit status."""
        lines = source.split("\n")
        printed, status = None, 0
        with self.context, self.store.active(), collecting(self.context) as seen:
            try:
                module = parse_module(source, self.context)
                self._passes(module.operation)
                printed = self._print(module.operation)
                if self.arguments.flag("verify-roundtrip"):
                    self._roundtrip(module.operation)
                self._note_weights(module.operation)
            except ir.MLIRError:
                status = 2
            except MgxError as e:
                seen.extend(of_error(e))
                status = e.exit_code
        if status and not any(d.severity == "error" for d in seen):
            seen.append(Diagnostic("error", "the input cannot be processed"))
        if "verify-diagnostics" in self.arguments:
            return printed, self._compare(lines, seen)
        for d in seen:
            if d.message.startswith("see current operation:") and len(d.message) > MAX_NOTE:
                d.message = d.message[:MAX_NOTE] + " ..."
            print(d.render(self.name, lines), file=sys.stderr)
        return printed, status

    def finish(self) -> None:
        """What is written once, after the last input."""
        if self.arguments.flag("mlir-timing"):
            print_timings(self.timings, sys.stderr)
        if self.arguments.flag("mlir-pass-statistics"):
            _print_statistics(self.timings)
        path = self.arguments.values.get("save-weights")
        if path is not None:
            write_weights(path, {k: self.store.get(k) for k in sorted(self.keys)})

    def _passes(self, module: ir.Operation) -> None:
        how = Instrumentation(
            verify=self.arguments.flag("verify-each", True),
            verify_each=self.arguments.flag("verify-each", True),
            disable=self.arguments.names("mgx-disable-passes"),
            reproducer=self._reproducer,
        )
        before = self.arguments.names("mlir-print-ir-before")
        after = self.arguments.names("mlir-print-ir-after")
        before_all = self.arguments.flag("mlir-print-ir-before-all")
        after_all = self.arguments.flag("mlir-print-ir-after-all")
        failure = self.arguments.flag("mlir-print-ir-after-failure")
        how.print_before = bool(before) or before_all
        how.after_change = self.arguments.flag("mlir-print-ir-after-change")
        how.print_after = bool(after) or after_all or how.after_change

        def print_ir(when: str, step: Pass, module: ir.Operation) -> None:
            wanted = {"before": before_all, "after": after_all or how.after_change}.get(when)
            named = pass_name(shown_name(step)) in {"before": before, "after": after}.get(when, ())
            if not (wanted or named or (when == "failure" and failure)):
                return
            title = "After (failed)" if when == "failure" else when.capitalize()
            print(f"// -----// IR Dump {title} {shown_name(step)} //----- //", file=sys.stderr)
            sys.stderr.write(self._print(module, valid=when != "failure"))

        how.print_ir = print_ir
        try:
            with disabled(self.disabled):
                run_pipeline(module, self.steps, instrumentation=how)
        finally:
            self.timings += how.timings

    def _print(self, module: ir.Operation, valid: bool = True) -> str:
        debug_info = self.arguments.flag("mlir-print-debuginfo")
        text = asm(
            module,
            large_elements_limit=self.arguments.number("mlir-elide-elementsattrs-if-larger"),
            large_resource_limit=self.arguments.number("mlir-elide-resource-strings-if-larger"),
            enable_debug_info=debug_info,
            print_generic_op_form=self.arguments.flag("mlir-print-op-generic") or not valid,
            use_local_scope=self.arguments.flag("mlir-print-local-scope"),
            assume_verified=valid,
        )
        if debug_info:
            # what was parsed from memory is located in "-": say the file
            text = text.replace('loc("-":', f'loc("{self.name}":')
        return text if text.endswith("\n") else text + "\n"

    def _roundtrip(self, module: ir.Operation) -> None:
        text = asm(module, print_generic_op_form=True)
        again = asm(parse_module(text, self.context).operation, print_generic_op_form=True)
        if text != again:
            pairs = zip(text.splitlines(), again.splitlines(), strict=False)
            a, b = next(((a, b) for a, b in pairs if a != b), (text[-80:], again[-80:]))
            raise MgxError("the IR differs after a round trip", notes=[f"printed {a}", f"read {b}"])

    def _note_weights(self, module: ir.Operation) -> None:
        if "save-weights" in self.arguments:
            self.keys |= used_keys(module)

    def _compare(self, lines: Sequence[str], seen: list[Diagnostic]) -> int:
        # MLIR appends the op to its errors as a note; mlir-opt too leaves that out here
        said = [d for d in seen if not d.message.startswith("see current operation:")]
        problems = compare(read_expectations(lines), said, self.strict)
        for problem in problems:
            print(f"{self.name}:{problem}", file=sys.stderr)
        return 1 if problems else 0

    def _reproducer(self, step: Pass, before: ir.Operation) -> str | None:
        """Write the IR a failed pass was given; the command that runs just that pass on it."""
        folder = Path(tempfile.mkdtemp(prefix="mgx-opt-"))
        file = folder / "reproducer.mlir"
        file.write_text(asm(before, enable_debug_info=True), encoding="utf-8")
        command = f"mgx-opt --pass-pipeline='builtin.module({step})' {file}"
        keys = used_keys(before)
        if keys and all(k in self.store for k in keys):
            write_weights(str(folder / "weights.npz"), {k: self.store.get(k) for k in keys})
            command += f" --weights {folder / 'weights.npz'}"
        if self.context.allow_unregistered_dialects:
            command += " --allow-unregistered-dialect"
        return command


def used_keys(module: ir.Operation) -> set[str]:
    """The keys of stored weights that literals of a module refer to."""
    keys: set[str] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "migraphx.literal" and "key" in op.attributes:
            keys.add(ir.StringAttr(op.attributes["key"]).value)
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    return keys


def _diagnostics_mode(arguments: Arguments) -> str:
    mode = arguments.values.get("verify-diagnostics", "")
    if mode not in ("", "all", "only-expected"):
        raise UsageError(
            f"option '--verify-diagnostics' expected 'all' or 'only-expected', got '{mode}'"
        )
    return mode


def _read_weights(path: str | None) -> WeightStore:
    """The arrays of an .npz by key; types that numpy lacks are stored as `key:dtype` bytes."""
    if path is None:
        return WeightStore()
    from mgx_mlir.core import dtypes

    try:
        with np.load(path, allow_pickle=False) as data:
            arrays: dict[str, np.ndarray] = {}
            for name in data.files:
                key, colon, kind = name.partition(":")
                array = data[name]
                arrays[key] = array.view(dtypes.from_name(kind).np) if colon else array
    except OSError as e:
        raise FileError(f"cannot open '{path}': {e.strerror or e}") from None
    except Exception as e:  # zipfile and numpy raise of many kinds on a damaged file
        raise FileError(f"'{path}' is not an .npz of weights: {e}") from None
    for array in arrays.values():
        array.flags.writeable = False
    return WeightStore(arrays)


def write_weights(path: str, arrays: dict[str, np.ndarray]) -> None:
    """Write what --weights reads."""
    from mgx_mlir.core import dtypes

    stored: dict[str, Any] = {}
    for key, array in arrays.items():
        plain = array.dtype.kind in "biuf"
        name = key if plain else f"{key}:{dtypes.from_numpy(array.dtype).name}"
        stored[name] = array if plain else array.view(f"u{array.dtype.itemsize}")
    try:
        with atomic(path) as f:
            np.savez(f, **stored)
    except OSError as e:
        raise FileError(f"cannot write '{path}': {e.strerror}") from None


def _print_statistics(timings: Sequence[Timing]) -> None:
    totals: dict[str, Counter[str]] = {}
    for t in timings:
        totals.setdefault(t.name, Counter()).update(t.counts)
    for name, counts in totals.items():
        shown = ", ".join(f"{pattern} {n}" for pattern, n in sorted(counts.items()))
        tail = f": {shown}" if shown else ""
        print(f"{name}: {sum(counts.values())} applied{tail}", file=sys.stderr)
