"""The form of a kernel of reductions and pointwise ops, by rows: the input of row_kernel.py.

A row is the elements that one result of the reductions is computed from. Adjacent dims that are all
reduced or all kept, and that each operand has all or none of, form one `AxisGroup`. Extents
of 1 are left out. Vectors lie along the last group, whether it is reduced (a softmax over the last
axis) or kept (a softmax over another axis).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.op import BroadcastOp, Pointwise, attributes_of, is_a, mnemonic, op_class
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.normalize import LogSoftmax, Softmax
from mgx_mlir.dialects.migraphx.pointwise_binary import Sub
from mgx_mlir.dialects.migraphx.pointwise_unary import Exp
from mgx_mlir.dialects.migraphx.reduce import (
    NumberReduction,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
from mgx_mlir.dialects.migraphx.views import Squeeze, Unsqueeze
from mgx_mlir.passes.lowering import views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.exponential import exp
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import WorkgroupBuilder
from mgx_mlir.passes.lowering.expr import (
    Compute,
    DimMap,
    Expr,
    Extent,
    Leaf,
    Opaque,
    Splat,
    View,
    compose,
)
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, computed

HOW = {
    ReduceSum: "add", ReduceMean: "mean", ReduceMax: "max", ReduceMin: "min", ReduceProd: "mul",
}  # fmt: skip
# computed on vectors; others are refused
TYPES = frozenset(
    (
        dtypes.FLOAT,
        dtypes.HALF,
        dtypes.BF16,
        dtypes.INT8,
        dtypes.UINT8,
        dtypes.INT32,
        dtypes.BOOL,
    )
)
# dozens of instructions: reading the value back is faster than computing it twice
COSTLY = frozenset(("exp", "log", "log2", "erf", "tanh", "pow", "sigmoid", "sin", "cos"))
Emit = Callable[[WorkgroupBuilder, ArithScalars, Sequence[TypedScalar], int], TypedScalar]


class Refused(Exception):
    """The reason why no vector kernel takes a row computation."""


@dataclass(eq=False)
class Total(Opaque):
    """A reduction of `source` over the axes of its form."""

    how: str  # add, mean, mul, max, min, or peak: a max that need not keep a NaN
    source: Expr


@dataclass(eq=False)
class ArgExtreme(Total):
    """The i64 index of the largest (`how` is max) or smallest (min) element."""

    last: bool = False  # last of equal elements is taken, not the first


@dataclass(eq=False)
class Step(Opaque):
    """A computation that is not an op of the dialect."""

    args: Sequence[Expr]
    emit: Emit
    costly: bool = False  # reading the value back is faster than computing it twice


@dataclass(frozen=True)
class AxisGroup:
    """Adjacent dims that the kernel treats as one."""

    dims: tuple[int, ...]
    reduced: bool
    extent: Extent


@dataclass(frozen=True, eq=False)
class Operand:
    """A tensor that the kernel reads."""

    leaf: Leaf
    map: DimMap  # dims of the form that index the tensor


@dataclass(frozen=True, eq=False)
class Window:
    """Columns of a program's value {.., width}, from `first` on, that an operand is."""

    source: ir.Value
    width: int
    first: int


@dataclass(eq=False)
class RowForm:
    """A row computation: its reductions, and its results for each element or each row."""

    extents: list[Extent]
    axes: frozenset[int]  # reduced dims
    # (expression, type, full): a full result has a value for each element, others for each row
    results: list[tuple[Expr, TensorType, bool]] = field(
        default_factory=list[tuple[Expr, TensorType, bool]]
    )
    # reductions in passes: each pass reads results of the passes before it
    levels: list[list[Total]] = field(default_factory=list[list[Total]])
    operands: dict[tuple[ir.Value, DimMap], Operand] = field(
        default_factory=dict[tuple[ir.Value, DimMap], Operand]
    )
    groups: list[AxisGroup] = field(default_factory=list[AxisGroup])
    # operands that are read as columns of a tensor, by their own tensors
    windows: dict[ir.Value, Window] = field(default_factory=dict[ir.Value, Window])

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def lane(self) -> AxisGroup:
        """The group that vectors lie along."""
        return self.groups[-1]

    def root(self, *, full: bool) -> DimMap:
        """Return the map of a value for each element, or for each row."""
        return self.normal(
            tuple(i if full or i not in self.axes else None for i in range(self.rank))
        )

    def normal(self, m: DimMap) -> DimMap:
        """Return a map that leaves extents of 1 out."""
        return tuple(None if i is None or _is_one(self.extents[i]) else i for i in m)

    def is_row(self, m: DimMap) -> bool:
        """Return whether a value read through a map is constant along a row."""
        return not any(i in self.axes for i in m)

    def level(self, x: Expr, memo: dict[int, int] | None = None) -> int:
        """Return the depth of dependent reductions that `x` needs."""
        memo = {} if memo is None else memo
        if id(x) not in memo:
            found = max((self.level(a, memo) for a in parts(x)), default=0)
            memo[id(x)] = found + isinstance(x, Total)
        return memo[id(x)]


def parts(x: Expr) -> Sequence[Expr]:
    """Return the operands of an expression."""
    if isinstance(x, View | Total):
        return [x.source]
    return x.args if isinstance(x, Compute | Step) else []


def is_costly(x: Expr) -> bool:
    return (isinstance(x, Step) and x.costly) or (
        isinstance(x, Compute) and x.cls.mnemonic in COSTLY
    )


def _is_one(extent: Extent) -> bool:
    return isinstance(extent, int) and extent == 1


# ---- from a kernel's body ------------------------------------------------------------------------


def row_form(e: LoweringContext, body: ir.Block, axes: Sequence[int]) -> RowForm:
    """Return the form of a kernel's body, whose values are bound in `e`. Raises Refused."""
    inner = [o.operation for o in body.operations]
    if not any(map(_is_reduction, inner)):
        raise Refused("it has no reduction")
    return form_of(e, inner[:-1], list(inner[-1].operands), axes)


def form_of(
    e: LoweringContext, ops: Sequence[ir.Operation], values: Sequence[ir.Value],
    axes: Sequence[int],
) -> RowForm:  # fmt: skip
    """Return the form of ops that compute some values by rows along `axes`. Raises Refused."""
    space = next((o for o in ops if _is_reduction(o)), None)
    t = TensorType.of(values[0] if space is None else space.operands[0])
    reduced = frozenset(a % t.rank for a in axes)
    for o in ops:
        if not is_literal(o):
            e.bind(o.results[0], _expression(e, o, reduced))
    found = [e.expr(v) for v in values]
    # the extents of the reduced operand are those of the loops
    sources: list[Expr] = []
    _reduced_in(found, sources, set())
    own = e.expr_extents(sources[0] if sources else found[0])
    form = RowForm([x if d == DYN else d for d, x in zip(t.dims, own, strict=True)], reduced)
    row = tuple(1 if i in reduced else d for i, d in enumerate(t.dims))
    for v, x in zip(values, found, strict=True):
        out = TensorType.of(v)
        if out.dims not in (t.dims, row):
            raise Refused(f"a result of {out} has other dims than the kernel")
        if out.dtype.is_bool:
            raise Refused("a result is of bools")
        form.results.append((x, out, out.dims == t.dims))
    gather(e, form)
    return form


def _is_reduction(o: ir.Operation) -> bool:
    return is_a(o, (NumberReduction, Softmax, LogSoftmax))


def _expression(e: LoweringContext, o: ir.Operation, axes: frozenset[int]) -> Expr:
    out, cls = TensorType.of(o.results[0]), op_class(o)
    for v in (*o.operands, *o.results):
        if TensorType.of(v).dtype not in TYPES:
            raise Refused(f"{TensorType.of(v).dtype} is not computed on vectors")
    if cls is None:
        raise Refused(f"'{o.name}' is no op of the dialect")
    e.sizes.relations_of(o, cls)
    if is_a(o, (BroadcastOp, Squeeze, Unsqueeze)):
        return views.VIEWS[mnemonic(o)](e, o.opview)
    if is_a(o, NumberReduction):
        if len(o.operands) > 1 or _axes(o, out.rank) != axes:
            raise Refused("its axes are not the kernel's, or are computed")
        how = next(name for cls, name in HOW.items() if is_a(o, cls))
        if out.dtype.is_bool or (how == "mean" and not out.dtype.is_float):
            raise Refused(f"a {how} of {out.dtype}")
        x = e.expr(o.operands[0])
        return Total(out, row_extents(e.expr_extents(x), axes), how, x)
    if is_a(o, (Softmax, LogSoftmax)):
        if frozenset((o.opview.axis % out.rank,)) != axes:
            raise Refused("its axis is not the kernel's")
        return _softmax(e, e.expr(o.operands[0]), out, axes, logarithm=is_a(o, LogSoftmax))
    scalar = getattr(cls, "scalar", None)
    if not is_a(o, Pointwise) or cls.raw or scalar is None:
        raise Refused(f"'{o.name}' is not computed on vectors")
    args = [e.expr(v) for v in o.operands]
    if is_a(o, Exp) and out.dtype is dtypes.FLOAT and _is_below_peak(args[0]):
        return Step(out, e.expr_extents(args[0]), args, _exp, costly=True)
    return Compute(out, cls, attributes_of(o), args)


def _axes(o: ir.Operation, rank: int) -> frozenset[int]:
    return frozenset(a % rank for a in o.opview.axes) or frozenset(range(rank))


def _is_below_peak(x: Expr) -> bool:
    """Return whether `x` is y - max(y), which is never positive."""
    if not (isinstance(x, Compute) and x.cls is Sub and isinstance(x.args[1], View)):
        return False
    largest = x.args[1].source
    return isinstance(largest, Total) and largest.how == "max" and largest.source is x.args[0]


def _softmax(
    e: LoweringContext, x: Expr, t: TensorType, axes: frozenset[int], *, logarithm: bool
) -> Expr:
    """exp(x - max) / sum, or its logarithm: x - max - log(sum)."""
    wide, own = t.with_dtype(computed(t.dtype)), e.expr_extents(x)
    row, few = (
        wide.with_dims(1 if i in axes else d for i, d in enumerate(t.dims)),
        row_extents(own, axes),
    )
    along = tuple(None if i in axes else i for i in range(t.rank))

    def beside(y: Expr, row_value: Expr, emit: Emit, out: TensorType = wide) -> Step:
        return Step(out, own, [y, View(wide, row_value, along, own)], emit)

    shifted = beside(x, Total(row, few, "peak", x), _sub)
    power = Step(wide, own, [shifted], _exp, costly=True)
    total = Total(row, few, "add", power)
    if logarithm:
        return beside(shifted, Step(row, few, [total], _log), _sub, t)
    return beside(power, Step(row, few, [total], _reciprocal), _mul, t)


def row_extents(extents: Sequence[Extent], axes: frozenset[int]) -> list[Extent]:
    return [1 if i in axes else d for i, d in enumerate(extents)]


def _sub(k: WorkgroupBuilder, b: ArithScalars, args: Sequence[Any], lanes: int) -> TypedScalar:
    return b.sub(*args)


def _mul(k: WorkgroupBuilder, b: ArithScalars, args: Sequence[Any], lanes: int) -> TypedScalar:
    return b.mul(*args)


def _log(k: WorkgroupBuilder, b: ArithScalars, args: Sequence[Any], lanes: int) -> TypedScalar:
    return b.log(*args)


def _reciprocal(
    k: WorkgroupBuilder, b: ArithScalars, args: Sequence[Any], lanes: int
) -> TypedScalar:
    return b.div(1, *args)


def _exp(k: WorkgroupBuilder, b: ArithScalars, args: Sequence[Any], lanes: int) -> TypedScalar:
    if not lanes:
        return b.exp(*args)
    return TypedScalar(exp(k, args[0].value), dtypes.FLOAT)


# ---- what the parts read -------------------------------------------------------------------------


def _reduced_in(xs: Sequence[Expr], into: list[Expr], seen: set[int]) -> None:
    """Add all reductions in `xs`, in dependency order."""
    for x in xs:
        if id(x) in seen:
            continue
        seen.add(id(x))
        _reduced_in(parts(x), into, seen)
        if isinstance(x, Total):
            into.append(x.source)


def gather(e: LoweringContext, form: RowForm) -> None:
    """Fill in the levels, the operands and the groups."""
    totals: dict[int, Total] = {}
    seen: set[tuple[int, DimMap]] = set()

    def visit(x: Expr, m: DimMap) -> None:
        m = form.normal(m)
        if (id(x), m) in seen:
            return
        seen.add((id(x), m))
        if x.type.dtype not in TYPES and not isinstance(x, ArgExtreme):
            raise Refused(f"{x.type.dtype} is not computed on vectors")
        if isinstance(x, Leaf):
            used = [i for i in m if i is not None]
            if used != sorted(set(used)):
                raise Refused("an operand's dims are in another order")
            form.operands.setdefault((x.value, m), Operand(x, m))
        elif isinstance(x, Total):
            if m != form.root(full=False):
                raise Refused("a reduction's result is read at different indices")
            totals.setdefault(id(x), x)
            visit(x.source, form.root(full=True))
        elif isinstance(x, View):
            visit(x.source, compose(m, x.map))
        elif not isinstance(x, Splat):
            for a in parts(x):
                visit(a, m)

    for x, _, full in form.results:
        visit(x, form.root(full=full))
    memo: dict[int, int] = {}
    by_level: dict[int, list[Total]] = {}
    for x in totals.values():
        by_level.setdefault(form.level(x, memo), []).append(x)
    form.levels = [by_level[i] for i in sorted(by_level)]
    form.groups = _groups(e, form)


def _groups(e: LoweringContext, form: RowForm) -> list[AxisGroup]:
    kept = [i for i, d in enumerate(form.extents) if not _is_one(d)] or [form.rank - 1]
    maps = [set(o.map) for o in form.operands.values()]
    made: list[list[int]] = []
    for i in kept:
        is_same = bool(made) and (made[-1][-1] in form.axes) == (i in form.axes)
        if is_same and all((i in m) == (made[-1][-1] in m) for m in maps):
            made[-1].append(i)
        else:
            made.append([i])
    return [AxisGroup(tuple(g), g[0] in form.axes, extent_of(e, form, g)) for g in made]


def extent_of(e: LoweringContext, form: RowForm, dims: Sequence[int]) -> Extent:
    """Return the product of extents of the form."""
    return e.product([form.extents[i] for i in dims])
