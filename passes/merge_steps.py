"""merge_steps: merge a layer that is unrolled over the steps of a sequence."""

from __future__ import annotations

from typing import ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.op import Op, Pointwise, attributes_of, is_a, mnemonic
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.broadcasts import BroadcastOp
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.dialects.migraphx.movement import Concat, Slice
from mgx_mlir.dialects.migraphx.views import Squeeze, Unsqueeze
from mgx_mlir.rewrite.passes import PatternPass
from mgx_mlir.rewrite.pattern import Pattern, Replacement, Rewriter, no_match, pattern

_MOST = 16  # most ops of a step


@dataclass(frozen=True)
class _Steps:
    """The source of unrolled steps: `source` is sliced along `axis`, one index per step."""

    source: ir.Value
    axis: int
    count: int


@pattern(Concat)
def find_unrolled(op: Concat, rw: Rewriter) -> Replacement:
    """concat(unsqueeze(f(squeeze(x[0:1]))), unsqueeze(f(squeeze(x[1:2]))), ..) -> f(x)

    f is dots with one constant matrix, at least one, and pointwise ops with constants. The steps
    cover x in order. Keras exports `TimeDistributed` in this form.
    """
    values = list(op.operands)
    stacked = [v.owner if is_a(v.owner, Unsqueeze) else None for v in values]
    axis = op.axis
    if len(values) < 2 or axis not in (0, 1):
        return no_match("expected several steps along one of two leading axes")
    inner: list[ir.Value] = []
    for owner in stacked:
        if owner is None or TensorType.of(owner.operands[0]).rank != 2:
            return no_match("an operand is not a row with an added axis")
        if tuple(owner.opview.axes) != (axis,):
            return no_match("the new axes of the steps differ")
        inner.append(owner.operands[0])
    steps = _steps(inner[0], len(inner))
    if steps is None:
        return no_match("the first step is not dots and pointwise ops on a slice")
    for number, value in enumerate(inner):
        if not _is_step(inner[0], value, steps, number):
            return no_match("step {} is another function, or reads another slice", number)
    width = TensorType.of(steps.source).dims[-1]
    rw.merge_location(*[o for o in stacked if o is not None])
    found = _whole(inner[0], rw.reshape(steps.source, dims=[-1, width]), rw)
    dims = [steps.count, -1] if steps.axis == 0 else [-1, steps.count]
    found = rw.reshape(found, dims=[*dims, TensorType.of(inner[0]).dims[-1]])
    return found if steps.axis == axis else rw.transpose(found, permutation=[1, 0, 2])


def _main(operation: ir.Operation) -> int | None:
    """Return the number of an op's only operand that is not constant."""
    if is_a(operation, Dot):
        return 0 if is_literal(operation.operands[1]) else None
    if not is_a(operation, Pointwise) or len(operation.results) != 1:
        return None
    found = [i for i, v in enumerate(operation.operands) if _constant_row(v) is None]
    return found[0] if len(found) == 1 else None


def _constant_row(v: ir.Value) -> ir.Value | None:
    """Return the literal that a constant operand broadcasts to all rows, else None."""
    own = TensorType.of(v).dims
    if is_a(v.owner, BroadcastOp):
        v, axis = v.owner.operands[0], attributes_of(v.owner.operation).get("axis")
        dims = TensorType.of(v).dims
        if axis is not None and len(dims) == 1 and dims != (1,) and axis != len(own) - 1:
            return None
    dims = TensorType.of(v).dims
    return v if is_literal(v) and all(d == 1 for d in dims[:-1]) else None


def _steps(value: ir.Value, count: int) -> _Steps | None:
    """Return the source of a step; None if it is not a chain of dots and pointwise ops on a
    slice.
    """
    dots = 0
    for _ in range(_MOST):
        if isinstance(value.owner, ir.Block):
            return None
        operation = value.owner.operation
        part = _part(value)
        if part is not None:
            source, axis, _ = part
            dims = TensorType.of(source).dims
            fits = dots and len(dims) == 3 and axis in (0, 1) and dims[axis] == count
            return _Steps(source, axis, count) if fits and dims[-1] > 0 else None
        main = _main(operation)
        if main is None or TensorType.of(value).rank != 2:
            return None
        dots += is_a(operation, Dot)
        value = operation.operands[main]
    return None


def _part(value: ir.Value) -> tuple[ir.Value, int, int] | None:
    """Return source, axis and index of squeeze(slice(x)) of extent 1; None for others."""
    if isinstance(value.owner, ir.Block) or not is_a(value.owner, Squeeze):
        return None
    squeeze: Op = value.owner.opview
    cut = squeeze.operands[0].owner
    if isinstance(cut, ir.Block) or not is_a(cut, Slice) or len(cut.operands) != 1:
        return None
    axes, starts, ends = (tuple(v) for v in (cut.opview.axes, cut.opview.starts, cut.opview.ends))
    if len(axes) != 1 or tuple(squeeze.axes) != axes or ends[0] - starts[0] != 1:
        return None
    return cut.operands[0], axes[0], starts[0]


def _is_step(first: ir.Value, other: ir.Value, steps: _Steps, number: int) -> bool:
    """Return whether a value is the same function of slice `number` as `first` is of the first."""
    while _part(first) is None:
        if isinstance(other.owner, ir.Block):
            return False
        a, b = first.owner.operation, other.owner.operation
        if a.name != b.name or attributes_of(a) != attributes_of(b):
            return False
        main = _main(a)
        if main is None or main != _main(b) or len(a.operands) != len(b.operands):
            return False
        for i, (x, y) in enumerate(zip(a.operands, b.operands, strict=True)):
            if i != main and not _same_constant(x, y):
                return False
        first, other = a.operands[main], b.operands[main]
    return _part(other) == (steps.source, steps.axis, number)


def _same_constant(x: ir.Value, y: ir.Value) -> bool:
    a, b = (v if is_literal(v) else _constant_row(v) for v in (x, y))
    if a is None or b is None:
        return False
    return a == b or (a.type == b.type and attributes_of(a.owner) == attributes_of(b.owner))


def _whole(value: ir.Value, source: ir.Value, rw: Rewriter) -> ir.Value:
    """Build a step's function on all steps as rows."""
    if _part(value) is not None:
        return source
    operation = value.owner.operation
    main = _main(operation)
    assert main is not None
    made = _whole(operation.operands[main], source, rw)
    if is_a(operation, Dot):
        return rw.dot(made, operation.operands[1])
    others = [_constant_row(v) for v in operation.operands]
    operands = [made if i == main else v for i, v in enumerate(others)]
    return getattr(rw, mnemonic(operation))(*operands, **attributes_of(operation))


@dataclass(frozen=True)
class MergeSteps(PatternPass):
    """Merge the layers of all steps of a sequence.

    It runs before slices and reshapes are moved, which would hide the pattern.
    """

    name: ClassVar[str] = "merge_steps"
    patterns: ClassVar[tuple[Pattern, ...]] = (find_unrolled,)
