"""Pointwise kernels and transposes as vector loops over the dims of their result.

Dims that are adjacent in every operand are joined. Vectors lie along the last dim. Kernels with an
operand that is contiguous along another dim are left to LLVM, which transposes tiles in registers.
An operand of 8-bit integers is transposed before the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import BroadcastOp, Pointwise, is_a, op_class
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.control import Yield
from mgx_mlir.dialects.migraphx.fused import Group, PointwiseKernel
from mgx_mlir.dialects.migraphx.literal import Literal
from mgx_mlir.dialects.migraphx.views import NopView, ReshapeOp, Transpose
from mgx_mlir.passes.lowering import views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.axis_view import GROUP_ELEMENTS, UNKNOWN
from mgx_mlir.passes.lowering.cpu.frame.epilogue import STORED, Reads, computed_vectors
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.sites import ExprSite, KernelSite
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index
from mgx_mlir.passes.lowering.cpu.nest import transposition
from mgx_mlir.passes.lowering.cpu.nest.nest import Line, Nest, Tile
from mgx_mlir.passes.lowering.expr import (
    Compute,
    DimMap,
    Expr,
    Extent,
    Leaf,
    View,
    behind_views,
)
from mgx_mlir.passes.lowering.select import KernelRule, Refusal

_GRID_DIMS = 3
_BYTES = (dtypes.INT8, dtypes.UINT8)
_BYTE_REGISTERS = 4  # f32 registers of one vector, whose bytes fill a register


@dataclass(frozen=True)
class Read:
    """An operand: for each of its dims, the result's dim that indexes it."""

    value: ir.Value
    extents: tuple[Extent, ...]
    at: tuple[int | None, ...]

    def is_along(self, last: int) -> bool:
        """Return whether the operand is contiguous along a dim of the result."""
        return bool(self.at) and self.at[-1] == last

    def index(self, where: Sequence[Index]) -> list[Index]:
        """Return the operand's index for an index of the result."""
        return [0 if i is None else where[i] for i in self.at]

    def is_turned(self, last: int) -> bool:
        """Return whether the operand is indexed by the dim, but not contiguous along it."""
        return last in self.at[:-1]


def refusal(body: ir.Block) -> str | None:
    """Return why no vector kernel takes the ops of a body, None if one does."""
    for o in (view.operation for view in body.operations):
        cls = op_class(o)
        if is_a(o, (Literal, Yield, BroadcastOp, NopView, Transpose)):
            continue
        if is_a(o, ReshapeOp) and len(o.operands) == 1:
            if isinstance(o.operands[0].owner, ir.Block):
                continue
            return f"'{o.name}' has a computed operand"
        if cls is None or not issubclass(cls, Pointwise) or cls.raw:
            return f"'{o.name}' is not computed on vectors"
    return None


def _results(e: LoweringContext, site: KernelSite) -> list[Expr] | Refusal:
    """Return the results of a kernel of pointwise ops and views as expressions of its operands."""
    if not is_a(site.op, (PointwiseKernel, Group)):
        return Refusal("it is no kernel of pointwise ops")
    reason = refusal(site.body)
    if reason is not None:
        return Refusal(reason)
    with e.kernel():  # pointwise ops are lowered lazily
        for o in site.members[:-1]:
            e.operation(o)
        return [e.expr(v) for v in site.members[-1].operands]


def match(e: LoweringContext, site: KernelSite) -> _Form | Refusal:
    """Take a kernel of pointwise ops and transposes whose operands are read along the lanes."""
    results = _results(e, site)
    return results if isinstance(results, Refusal) else _Form.of(e, results, site.isa)


def match_transpose(e: LoweringContext, site: KernelSite) -> transposition.Plan | Refusal:
    """Take a kernel that is one transpose."""
    results = _results(e, site)
    if isinstance(results, Refusal):
        return results
    if len(results) != 1:
        return Refusal(f"it has {len(results)} results")
    (x,) = results
    is_half = transposition.square(x.type.dtype) < site.isa.lanes_of(x.type.dtype)
    if is_half and not isinstance(_short_last(e, x, site.isa), Refusal):
        return Refusal("two steps fill whole registers")
    return transposition.match(e, x, site.isa)


@dataclass(frozen=True)
class _TwoSteps:
    """A transpose to a short last dim: first a copy of rows, then a view of that copy."""

    x: Expr
    first: _Form
    order: tuple[int, ...]


def match_two_steps(e: LoweringContext, site: KernelSite) -> _TwoSteps | Refusal:
    """Take a transpose to a last dim shorter than a vector.

    All dims but the last one are exchanged first, which copies rows. LLVM then transposes rows of
    all last dims together.
    """
    results = _results(e, site)
    if isinstance(results, Refusal):
        return results
    if len(results) != 1:
        return Refusal(f"it has {len(results)} results")
    (x,) = results
    found = _short_last(e, x, site.isa)
    if isinstance(found, Refusal):
        return found
    (leaf, at), extents = found, e.expr_extents(x)
    order = [*(i for i in range(len(at)) if i != at[-1]), at[-1]]
    dims = [extents[i] for i in order]
    entries = tuple(order.index(i) for i in at)
    first = View(x.type.with_dims(x.type.dims[i] for i in order), leaf, entries, dims)
    form = _Form.of(e, [first], site.isa)
    return form if isinstance(form, Refusal) else _TwoSteps(x, form, tuple(order))


def _short_last(e: LoweringContext, x: Expr, isa: Isa) -> tuple[Leaf, list[int]] | Refusal:
    """Return the source of a transpose in two steps, and the result's dim of each of its dims."""
    leaf, reads = behind_views(x)
    extents, at = e.expr_extents(x), [i for i in reads if i is not None]
    if not isinstance(leaf, Leaf) or len(at) < 3 or not len(at) == len(reads) == len(extents):
        return Refusal("it is no transpose of three dims or more")
    short = extents[-1]
    if not isinstance(short, int) or short >= isa.lanes or leaf.type.dtype not in STORED:
        return Refusal("its last dim is not shorter than a vector")
    kept = [i for i in range(len(at)) if i != at[-1]]  # the result's dims but the source's last
    if at[-1] == len(at) - 1 or at[:-1] == kept:
        return Refusal("only its last two dims change")
    return leaf, at


def build_two_steps(e: LoweringContext, site: KernelSite, plan: _TwoSteps) -> list[ir.Value]:
    """Build the copy, then its transpose: in registers, or else by LLVM."""
    made = Leaf(plan.first.results[0].type, plan.first.emit(e)[0])
    turned = View(plan.x.type, made, plan.order, e.expr_extents(plan.x))
    second = transposition.match(e, turned, site.isa)
    return [e.tensor(turned) if isinstance(second, Refusal) else transposition.build(e, second)]


class _Form:
    """Results of the same dims and what they read, with dims joined where all have them joined."""

    def __init__(self, e: LoweringContext, results: Sequence[Expr], isa: Isa) -> None:
        self.results, self.lanes = list(results), isa.lanes
        self.registers = isa.pointwise_registers
        self.extents = e.expr_extents(results[0])
        self.leaves: dict[tuple[ir.Value, DimMap], Leaf] = {}

    @staticmethod
    def of(e: LoweringContext, results: Sequence[Expr], isa: Isa) -> _Form | Refusal:
        """Read the form of a kernel's results."""
        form = _Form(e, results, isa)
        reason = form.refusal()
        if reason is not None:
            return Refusal(reason)
        form.join(e)
        if any(r.is_turned(form.last) for r in form.reads.values()):
            return Refusal("an operand is not contiguous along the result's last dim")
        return form

    def refusal(self) -> str | None:
        """Find the tensors that the results read; return why vectors do not compute them."""
        if any(d == 0 for d in self.extents if isinstance(d, int)):
            return "it has no elements"
        # IREE makes vectors of fixed dims, and casts of bools to bytes would be kernels beside
        is_dynamic = not all(isinstance(d, int) for d in self.extents)
        for x in self.results:
            stored = x.type.dtype in STORED or (is_dynamic and x.type.dtype.is_bool)
            if x.type.dims != self.results[0].type.dims or not stored:
                return "its results differ in their dims, or vectors do not store them"
        reads = Reads(self.results, bools=is_dynamic)
        self.leaves = reads.leaves
        for _, m in self.leaves:
            used = [i for i in m if i is not None]
            if len(used) != len(set(used)):
                return "two dims of an operand are indexed by one"
        return reads.refusal or (None if self.leaves else "it reads no tensor")

    def join(self, e: LoweringContext) -> None:
        """Join dims."""
        kept = [i for i, d in enumerate(self.extents) if not isinstance(d, int) or d != 1]
        maps = [tuple(i for i in m if i is None or i in kept) for _, m in self.leaves]
        groups: list[list[int]] = []
        for i in kept:
            if groups and all(_follows(m, groups[-1][-1], i) for m in maps):
                groups[-1].append(i)
            else:
                groups.append([i])
        groups = groups or [[]]
        self.dims: list[Extent] = [e.product([self.extents[i] for i in g]) for g in groups]
        self.last = len(groups) - 1
        of = {i: n for n, g in enumerate(groups) for i in g}
        self.reads: dict[tuple[ir.Value, DimMap], Read] = {}
        for value, m in self.leaves:
            at: list[int | None] = []
            extents: list[Extent] = []
            for d, i in zip(e.extents(value), m, strict=True):
                if isinstance(d, int) and d == 1:
                    continue
                n = None if i is None else of.get(i)
                if at and n is not None and at[-1] == n:
                    continue
                at.append(n)
                extents.append(d if n is None else self.dims[n])
            self.reads[value, m] = Read(value, tuple(extents), tuple(at))

    def steps(self) -> list[int]:
        """Return a tile's elements along the first dims: enough to be worth starting."""
        room, steps = GROUP_ELEMENTS, [1] * len(self.dims)
        for i in reversed(range(len(self.dims))):
            d = self.dims[i]
            # the last dim alone may be long
            known = d if isinstance(d, int) else room if i == self.last else UNKNOWN
            steps[i] = max(1, min(room, known))
            room //= min(max(1, d if isinstance(d, int) else UNKNOWN), room)
        return steps[:_GRID_DIMS]

    def emit(self, e: LoweringContext) -> list[ir.Value]:
        """Build the dispatch."""
        tensors: dict[Read, ir.Value] = {}
        bytes_of: dict[ir.Value, ir.Value] = {}
        for key, r in self.reads.items():
            held = r.value
            if self.leaves[key].type.dtype.is_bool:
                if held not in bytes_of:
                    bytes_of[held] = e.cast_tensor(held, dtypes.BOOL, dtypes.INT8)
                held = bytes_of[held]
            tensors[r] = views.reshaped(e, held, list(r.extents))
        inputs = list(dict.fromkeys(tensors.values()))
        kinds = [x.type.dtype for x in self.results]
        types = [dtypes.INT8 if t.is_bool else t for t in kinds]

        def body(tile: Tile) -> list[ir.Value]:
            k, start = tile.k, tile.start[-1]
            inside = {r: k.inputs[inputs.index(v)] for r, v in tensors.items()}

            def line(row: Line) -> list[ir.Value]:
                # the same in all vectors, which LLVM does not find out
                elements = {
                    r: k.element(inside[r], r.index([*row.at, start]))
                    for r in self.reads.values()
                    if not r.is_along(self.last)
                }

                def part(j: Index, lanes: int, masked: bool) -> list[ir.Value]:
                    have = {r: k.broadcast(v, lanes) for r, v in elements.items()}
                    where = [*row.at, k.add(start, j)]

                    def read(x: Leaf, m: DimMap) -> ir.Value:
                        r = self.reads[x.value, m]
                        if r not in have:
                            have[r] = k.read(inside[r], r.index(where), lanes, masked=masked)
                        return have[r]

                    rank = len(self.extents)
                    return computed_vectors(k, lanes, self.results, types, read, {}, rank)

                return row.vectors(part, registers=self.registers)

            return tile.lines(line)

        nest = Nest(inputs, self.dims, types, self.steps(), self.lanes)
        found = [
            e.cast_tensor(v, dtypes.INT8, dtypes.BOOL) if t.is_bool else v
            for v, t in zip(nest.run(body), kinds, strict=True)
        ]
        found = [views.reshaped(e, v, self.extents) for v in found]
        return [e.refine(v, x.type) for v, x in zip(found, self.results, strict=True)]


def _follows(m: DimMap, i: int, j: int) -> bool:
    """Return whether a map has dim j right behind i, or neither."""
    if i not in m and j not in m:
        return True
    return i in m and j in m and m.index(j) == m.index(i) + 1


# ---- 8-bit integers: quantizing and dequantizing ---------------------------------------------


def match_bytes(e: LoweringContext, site: KernelSite) -> list[Expr] | Refusal:
    """Take a kernel of pointwise ops that reads or makes 8-bit integers."""
    if not is_a(site.op, PointwiseKernel):
        return Refusal("it is no kernel of pointwise ops")
    members = site.members
    if not any(_is_bytes(v) for o in members for v in (*o.operands, *o.results)):
        return Refusal("it has no 8-bit integers")
    with e.kernel():
        for o in members:
            if not is_a(o, (Literal, Yield)):
                e.operation(o)
        results = [e.expr(v) for v in members[-1].operands]
    return _of_bytes(e, results, site.isa)


def match_byte_op(e: LoweringContext, site: ExprSite) -> list[Expr] | Refusal:
    """Take a pointwise op outside of kernels that reads or makes 8-bit integers."""
    x = site.x
    assert isinstance(x, Compute)
    if not any(t.dtype in _BYTES for t in (x.type, *(a.type for a in x.args))):
        return Refusal("it has no 8-bit integers")
    return _of_bytes(e, [x], site.isa)


def _of_bytes(e: LoweringContext, results: list[Expr], isa: Isa) -> list[Expr] | Refusal:
    if not results[0].type.rank:
        return Refusal("it is a scalar")
    # a stand-in of the same type, as a match builds no transpose
    seen = [_along_lanes(x, lambda x, source: Leaf(x.type, source.value)) for x in results]
    reason = _Form(e, seen, isa).refusal()
    return results if reason is None else Refusal(reason)


def _is_bytes(v: ir.Value) -> bool:
    return isinstance(v.type, ir.RankedTensorType) and TensorType.of(v).dtype in _BYTES


def _along_lanes(x: Expr, transposed: Callable[[Expr, Leaf], Leaf]) -> Expr:
    """Return an expression whose tensors are contiguous along the lanes; others are
    `transposed` first.
    """
    if isinstance(x, Compute):
        args = [_along_lanes(a, transposed) for a in x.args]
        return Compute(x.type, x.cls, x.attributes, args)
    source, m = behind_views(x)
    if isinstance(source, Leaf) and x.type.rank - 1 in m[:-1]:
        return transposed(x, source)
    return x


def build_bytes(
    e: LoweringContext, site: KernelSite | ExprSite, results: list[Expr]
) -> list[ir.Value]:
    """Build the results in one dispatch."""
    form = _Form(
        e, [_along_lanes(x, lambda x, _: Leaf(x.type, e.tensor(x))) for x in results], site.isa
    )
    form.lanes, form.registers = _BYTE_REGISTERS * site.isa.lanes, 1
    assert form.refusal() is None
    form.join(e)
    return form.emit(e)


BYTE_ELEMENTWISE = KernelRule("byte_elementwise", (), match_bytes, build_bytes)
BYTE_OP = KernelRule("byte_op", (), match_byte_op, build_bytes)
ELEMENTWISE = KernelRule("elementwise", (), match, lambda e, _, form: form.emit(e))
TRANSPOSE = KernelRule(
    "transpose", (), match_transpose, lambda e, _, p: [transposition.build(e, p)]
)
TWO_STEPS = KernelRule("transpose_in_two_steps", (), match_two_steps, build_two_steps)
