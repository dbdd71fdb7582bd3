"""The IR around passes, as MLIR's --mlir-print-ir-* options print it: to stderr, or to files."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.core.files import atomic
from mgx_mlir.core.ir import ir
from mgx_mlir.rewrite.passes import Instrumentation, NestedPass, Pass, UpstreamPass, pass_name
from mgx_mlir.tools.opt.arguments import Arguments

_UNSAFE = re.compile(r"[^\w\-]+")


class Dumps:
    """Dumps that a command line asks for, and their files.

    `text` prints an op; the last argument says whether it is known to be valid.
    """

    def __init__(self, arguments: Arguments, text: Callable[[Any, bool], str]) -> None:
        self.text = text
        self.before = arguments.passes_named("mlir-print-ir-before")
        self.after = arguments.passes_named("mlir-print-ir-after")
        self.before_all = arguments.flag("mlir-print-ir-before-all")
        self.after_all = arguments.flag("mlir-print-ir-after-all")
        self.change = arguments.flag("mlir-print-ir-after-change")
        self.failure = arguments.flag("mlir-print-ir-after-failure")
        self.module_scope = arguments.flag("mlir-print-ir-module-scope")
        if self.change and not self.after:
            self.after_all = True
        tree = arguments.values.get("mlir-print-ir-tree-dir")
        self.tree = None if tree is None else Path(tree)
        if self.tree is not None and not (
            self.before or self.after or self.before_all or self.after_all or self.failure
        ):
            self.after_all = True
        if self.module_scope and self.tree is not None:
            raise UsageError("expected --mlir-print-ir-module-scope or --mlir-print-ir-tree-dir")
        self.counters: dict[str, int] = {}

    def install(self, how: Instrumentation) -> None:
        """Have a run of passes print."""
        how.print_before = bool(self.before) or self.before_all
        how.print_after = bool(self.after) or self.after_all
        how.after_change = self.change
        how.print_ir = self.print_ir

    def print_ir(self, when: str, step: Pass, op: ir.Operation) -> None:
        """Print the IR around a pass; a pipeline of nested passes does not count as one."""
        if isinstance(step, NestedPass):
            return
        name = pass_name(step.argument)
        wanted = {
            "before": self.before_all or name in self.before,
            "after": not self.failure and (self.after_all or name in self.after),
            "failure": self.failure,
        }
        if not wanted[when]:
            return
        spelled = step.spelled(every_option=isinstance(step, UpstreamPass))
        title = f"{when.capitalize()} {step.title}" if when != "failure" else (
            f"After {step.title} Failed"
        )  # fmt: skip
        shown, scope = op, ""
        if self.module_scope:
            scope = f" ('{op.name}' operation{_symbol(op, ': @')})"
            while shown.parent is not None:
                shown = shown.parent.operation
        body = self.text(shown, when != "failure")
        head = f"// -----// IR Dump {title}: {spelled}{scope} //----- //"
        text = f"{head}\n{body}\n" + ("\n" if shown.parent is None else "")
        if self.tree is None:
            sys.stderr.write(text)
        else:
            self._file(step, op, text)

    def _file(self, step: Pass, op: ir.Operation, text: str) -> None:
        """Write to DIR/builtin_module_NAME/func_func_NAME/1_0_cse.mlir.

        Passes are counted in each op; the file's name begins with the counts of the ops around it.
        """
        assert self.tree is not None
        path = _path(op)
        place = "/".join(path)
        self.counters[place] = self.counters.get(place, -1) + 1
        around = ["/".join(path[: i + 1]) for i in range(len(path))]
        numbers = "_".join(str(self.counters.setdefault(p, 0)) for p in around)
        file = self.tree.joinpath(*path, f"{numbers}_{_UNSAFE.sub('_', step.argument)}.mlir")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with atomic(file) as f:
                f.write(text.encode())
        except OSError as e:
            raise FileError(f"cannot write '{file}': {(e.strerror or str(e)).lower()}") from None


def _path(op: ir.Operation) -> list[str]:
    """Return the folders of an op, outermost first."""
    found: list[str] = []
    while op is not None:
        op = op.operation
        found.append(_UNSAFE.sub("_", f"{op.name}{_symbol(op, '_') or '_no-symbol-name'}"))
        op = op.parent
    return found[::-1]


def _symbol(op: ir.Operation, lead: str) -> str:
    if "sym_name" not in op.attributes:
        return ""
    return lead + ir.StringAttr(op.attributes["sym_name"]).value
