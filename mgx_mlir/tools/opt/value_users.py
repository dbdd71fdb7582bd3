"""--mlir-print-value-users: who uses each value, as comments behind the ops of the printed text."""

from __future__ import annotations

import re
from collections.abc import Callable

from mgx_mlir.core.ir import ir

_MARK = "mgx-users-"
_MARKED = re.compile(rf' loc\("{_MARK}(\d+)"\)')
_OTHER = re.compile(r' ?loc\((?:unknown|"(?:[^"\\]|\\.)*"(?::\d+:\d+)?)\)')


def with_users(root: ir.Operation, printed: Callable[[ir.Operation], str]) -> str:
    """Print an op with a comment for each op under it: `// user: %1`, `// users: %1, func.return`,
    `// unused`.

    `printed`: prints an op with its locations, in their local form. Where an op has regions the
    comment follows its last line, as in mlir-opt; a user without results is named by its op.
    """
    with root.context, ir.Location.unknown():
        copy = root.clone()
        ops: list[ir.Operation] = []

        def visit(op: ir.Operation) -> ir.WalkResult:
            op.location = ir.Location.name(f"{_MARK}{len(ops)}")
            ops.append(op)
            return ir.WalkResult.ADVANCE

        copy.walk(visit)
        state = ir.AsmState(copy)
        comments = [_comment(op, state) for op in ops]
        text = _MARKED.sub(lambda m: comments[int(m[1])], printed(copy))
    return _OTHER.sub("", text)


def _comment(op: ir.Operation, state: ir.AsmState) -> str:
    if not len(op.results):
        return ""
    if all(not _users(r) for r in op.results):
        return "  // unused"
    parts = [_names(r, state) for r in op.results]
    several = len(parts) > 1 or ", " in parts[0]
    shown = ", ".join(f"({p})" for p in parts) if len(parts) > 1 else parts[0]
    return f"  // {'users' if several else 'user'}: {shown}"


def _users(value: ir.Value) -> list[ir.Operation]:
    """Return the ops that use a value, each once, in the order of the text."""
    found: list[ir.Operation] = []
    for use in value.uses:
        owner = use.owner.operation
        if owner not in found:
            found.append(owner)
    return found[::-1]  # MLIR keeps the last use first


def _names(value: ir.Value, state: ir.AsmState) -> str:
    found = _users(value)
    if not found:
        return "unused"
    return ", ".join(
        ", ".join(r.get_name(state) for r in op.results) if len(op.results) else op.name
        for op in found
    )
