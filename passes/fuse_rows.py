"""fuse_rows: a matmul of packed weights computes the rows that it splits into digits."""

from __future__ import annotations

from typing import ClassVar

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import BroadcastOp, Pointwise, attributes_of, is_a
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.axes import normalize_axes
from mgx_mlir.dialects.migraphx.blocked_dot import BlockedDot
from mgx_mlir.dialects.migraphx.control import Yield
from mgx_mlir.dialects.migraphx.fused import FusedReduce, Group, PointwiseKernel
from mgx_mlir.dialects.migraphx.literal import Literal
from mgx_mlir.dialects.migraphx.reduce import NumberReduction
from mgx_mlir.dialects.migraphx.views import Squeeze, Unsqueeze
from mgx_mlir.passes.analysis.kernel_ops import Known, copy_body, copy_ops, make_kernel
from mgx_mlir.passes.lowering import select
from mgx_mlir.rewrite.passes import PatternPass
from mgx_mlir.rewrite.pattern import (
    Pattern,
    Replacement,
    Rewriter,
    has_one_use,
    no_match,
    pattern,
)

_RULE = "few_bits_matmul"


@pattern(Group)
def find_computed_rows(op: Group, rw: Rewriter) -> Replacement:
    """group(fused_reduce(x), w){blocked_dot} -> group(x, w){the reduction's ops, blocked_dot}

    Also for a pointwise kernel. A dispatch splits the rows of the matmul's input into digits. It
    computes each row first, which needs no tensor and no launch. For kernels with one result,
    along the last dim, and without other readers.
    """
    kernel = op.operation
    body = kernel.regions[0].blocks[0]
    dots = [o for o in body.operations if isinstance(o, BlockedDot)]
    if len(dots) != 1:
        return no_match("it is not the kernel of a matmul of packed weights")
    argument = dots[0].input
    if not isinstance(argument.owner, ir.Block) or not has_one_use(argument):
        return no_match("its rows are computed already, or are read by its other ops")
    place = ir.BlockArgument(argument).arg_number
    rows = kernel.operands[place]
    inner = rows.owner
    if isinstance(inner, ir.Block) or not is_a(inner, (FusedReduce, PointwiseKernel)):
        return no_match("its rows are no result of a kernel of rows")
    if len(inner.results) != 1 or not has_one_use(rows):
        return no_match("their kernel has other results or readers")
    reason = _refusal(inner.operation) or select.refusal("cpu", _RULE, dots[0])
    if reason is not None:
        return no_match("{}", reason)
    rw.merge_location(inner.operation)
    given = list(inner.operands)
    kept = [v for i, v in enumerate(kernel.operands) if i != place]
    members = [o.operation for o in body.operations]

    def build(arguments: list[ir.Value]) -> list[ir.Value]:
        (computed,) = copy_body(inner.operation, arguments[: len(given)])
        own = [*arguments[len(given) :]]
        own.insert(place, computed)
        known: Known = dict(zip(body.arguments, own, strict=True))
        copy_ops(members[:-1], known)
        return [known[v] for v in members[-1].operands]

    types = [r.type for r in kernel.results]
    return list(make_kernel("group", [*given, *kept], types, build, **attributes_of(op)).results)


def _refusal(kernel: ir.Operation) -> str | None:
    """Return why a kernel's result is not computed row by row, None if it is."""
    out = TensorType.of(kernel.results[0])
    if is_a(kernel, FusedReduce) and list(normalize_axes(kernel.opview.axes, out.rank)) != [
        out.rank - 1
    ]:
        return "they are not reduced along the last dim alone"
    whole, row = out.dims, (*out.dims[:-1], 1)
    for v in kernel.operands:
        # all leading dims are one: an operand has each of them, or none
        dims = TensorType.of(v).dims
        if dims not in (whole, row) and any(d != 1 for d in dims[:-1]):
            return f"an operand of {TensorType.of(v)} has some of the dims of {out}"
    for o in (view.operation for view in kernel.regions[0].blocks[0].operations):
        kinds = [TensorType.of(v).dtype for v in (*o.operands, *o.results)]
        if any(k is not dtypes.FLOAT for k in kinds):
            return "they are computed of other types than f32"
        known = (Literal, Yield, BroadcastOp, Squeeze, Unsqueeze, NumberReduction, Pointwise)
        if not is_a(o, known):
            return f"'{o.name}' is not computed on vectors"
    return None


@dataclass(frozen=True)
class FuseRows(PatternPass):
    """Norms and gates ahead of a matmul of packed weights become a part of its kernel on CPUs."""

    name: ClassVar[str] = "fuse_rows"
    patterns: ClassVar[tuple[Pattern, ...]] = (find_computed_rows,)
