"""fuse_concat: a concatenation and the pointwise ops around it become one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.op import Pointwise, is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.fused import Group
from mgx_mlir.dialects.migraphx.linear import Convolution, Dot
from mgx_mlir.dialects.migraphx.movement import Concat
from mgx_mlir.dialects.migraphx.pooling import Pooling
from mgx_mlir.passes.analysis.access_maps import Unreadable, reader
from mgx_mlir.passes.analysis.kernel_ops import Known, copy_ops, is_uniform, make_kernel
from mgx_mlir.passes.analysis.view_chains import VIEWS_AND_SLICE
from mgx_mlir.programs.program_ir import functions
from mgx_mlir.rewrite.passes import Pass, option
from mgx_mlir.rewrite.pattern import Rule, has_no_use, has_one_use, rule, users

AFTER = rule(
    "find_concat_pointwise",
    "pointwise(concat(x, y)) -> fused_concat of them",
)
AROUND = rule(
    "find_pointwise_concat_pointwise",
    "pointwise(concat(pointwise(x), y)) -> fused_concat of them, the outer ops or none",
)
# anchors that fuse the pointwise ops after them
_ANCHORS = (Dot, Convolution, Pooling, Group)
RUNS = (16, 8)  # elements of a run; the parts' extents are multiples of one of these


@dataclass(frozen=True)
class FuseConcat(Pass):
    """Fuse a concat with the pointwise ops and views before and after it to `fused_concat`.

    Only where its elements can be read in runs: extents of parts along the last axis are multiples
    of 8. A pointwise op directly after a dot, a convolution or a pooling stays there.
    """

    name: ClassVar[str] = "fuse_concat"
    rules: ClassVar[tuple[Rule, ...]] = (AFTER, AROUND)
    max_inputs: int = option(24, "operands that a kernel may have")
    dynamic: bool = option(
        False, "kernels of dynamic dims, which are concatenated along fixed ones"
    )

    def run(self, module: ir.Operation) -> bool:
        enabled = {r.name for r in self.rules if r.enabled}
        changed = False
        for function in list(functions(module)):
            for block in function.regions[0].blocks:
                found = [o.operation for o in block.operations if is_a(o, Concat)]
                # the last one first: a concat may lead to another
                for op in reversed(found):
                    changed |= self.fuse(op, enabled)
        return changed

    def fuse(self, op: ir.Operation, enabled: set[str]) -> bool:
        """Form the kernel of one concat, where a rule in `enabled` allows it; return whether it
        did.
        """
        t = TensorType.of(op.results[0])
        before = AROUND.name in enabled
        leading = before and any(is_a(o, Pointwise) for o in _tree(op.results[0], op, before=True))
        which = AROUND if leading else AFTER
        if which.name not in enabled or has_no_use(op.results[0]):
            return False
        known = t.is_static if self.dynamic else t.is_known
        if not known or 0 in t.dims or t.dtype.size == 8:
            which.refused(op, "{} has dynamic or no extents, or elements of 64 bits", t)
            return False
        last = _last(op)
        inside = _tree(last.results[0], op, before=before)
        computed = [o for o in inside if is_a(o, Pointwise)]
        if not computed:
            which.refused(op, "no pointwise op around it is free to be fused")
            return False
        own = {r for o in inside for r in o.results}
        inputs = list(dict.fromkeys(x for o in inside for x in o.operands if x not in own))
        if len(inputs) > self.max_inputs:
            which.refused(op, "it would have {} operands", len(inputs))
            return False
        if readable(last.results[0], inputs) is None:
            which.refused(op, "its elements cannot be read in runs")
            return False
        which.applied(op)
        _replace(last, inside, inputs, op)
        return True


def readable(value: ir.Value, leaves: Sequence[ir.Value]) -> int | None:
    """Return the run length along the last dim in which a value can be read; None if not in
    runs.
    """
    t = TensorType.of(value)
    for run in RUNS:
        try:
            reader(value, t.rank - 1, leaves, run=run)
            return run
        except Unreadable:
            continue
    return None


def _last(op: ir.Operation) -> ir.Operation:
    """Return the last pointwise op of the single-use chain after a concat."""
    dims = TensorType.of(op.results[0]).dims
    while has_one_use(op.results[0]):
        user = users(op.results[0])[0].operation
        if not is_a(user, Pointwise) or TensorType.of(user.results[0]).dims != dims:
            break
        if any(_is_anchored(x) for x in user.operands):
            break
        op = user
    return op


def _is_anchored(value: ir.Value) -> bool:
    """Return whether a value is the result of an anchor that fuses its epilogue."""
    return is_a(value.owner, _ANCHORS)


def _tree(value: ir.Value, concat: ir.Operation, *, before: bool) -> list[ir.Operation]:
    """Return the ops of the kernel, in order: pointwise ops that nothing else reads, and views.

    With `before`, including those before the concat.
    """
    outside: set[ir.Operation] = set()
    while True:
        found = _tree_without(outside, value, concat, before=before)
        inside = set(found)
        read = {
            o for o in found
            if is_a(o, Pointwise) and o.results[0] != value and _escapes(o.results[0], inside)
        }  # fmt: skip
        if not read:
            return found
        outside |= read


def _escapes(value: ir.Value, inside: set[ir.Operation]) -> bool:
    """Return whether an op outside reads a value, directly or through a view."""
    for op in (u.operation for u in users(value)):
        if op not in inside or (is_a(op, VIEWS_AND_SLICE) and _escapes(op.results[0], inside)):
            return True
    return False


def _tree_without(
    outside: set[ir.Operation], value: ir.Value, concat: ir.Operation, *, before: bool
) -> list[ir.Operation]:
    """Return the ops of the kernel, in order, of which none is `outside`."""
    found: list[ir.Operation] = []
    seen: set[ir.Value] = set()

    def visit(v: ir.Value, behind: bool) -> None:
        owner = v.owner
        if v in seen or isinstance(owner, ir.Block):
            return
        op = owner.operation
        inner = op == concat
        view = is_a(op, VIEWS_AND_SLICE) and len(op.operands) == 1
        pointwise = is_a(op, Pointwise) and not any(_is_anchored(x) for x in op.operands)
        pointwise = pointwise and op not in outside and (before or not behind)
        literal = is_literal(op) and is_uniform(op)
        if not (inner or view or literal or pointwise):
            return
        seen.add(v)
        for x in op.operands:
            visit(x, behind or inner)
        found.append(op)

    visit(value, False)
    return found


def _replace(
    last: ir.Operation, inside: list[ir.Operation], inputs: list[ir.Value], concat: ir.Operation
) -> None:
    """Replace the last op by the kernel; erase fused ops that have no other use."""
    locations = list(dict.fromkeys(o.location for o in inside))

    def build(arguments: list[ir.Value]) -> Sequence[ir.Value]:
        known: Known = dict(zip(inputs, arguments, strict=True))
        copy_ops(inside, known)
        return [known[last.results[0]]]

    axis = concat.opview.axis
    with ir.InsertionPoint(last), ir.Location.fused(locations):
        new = make_kernel("fused_concat", inputs, [last.results[0].type], build, axis=axis)
    last.results[0].replace_all_uses_with(new.results[0])
    for op in reversed(inside):
        if all(has_no_use(r) for r in op.results):
            op.erase()
