"""Pointwise kernels and transposes as vector loops over the dims of their result.

Dims that every operand has next to each other are one. A vector is along the last of them. Kernels
with an operand whose lanes are rows of the result are left to the compiler, which turns tiles of
them in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import BroadcastOp, Pointwise, is_a, op_class
from mgx_mlir.dialects.migraphx.control import Yield
from mgx_mlir.dialects.migraphx.fused import Group, PointwiseKernel
from mgx_mlir.dialects.migraphx.literal import Literal
from mgx_mlir.dialects.migraphx.views import NopView, ReshapeOp, Transpose
from mgx_mlir.passes.lowering import views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.copies import transposition, turned
from mgx_mlir.passes.lowering.cpu.frame.axis_view import GROUP_ELEMENTS, UNKNOWN, tile_size
from mgx_mlir.passes.lowering.cpu.frame.epilogue import COMPUTED, STORED, computed_vectors
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.sites import KernelSite
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.expr import (
    Compute,
    DimMap,
    Expr,
    Extent,
    Leaf,
    Splat,
    View,
    behind_views,
    compose,
    identity,
)
from mgx_mlir.passes.lowering.select import KernelRule, Refusal

_GRID_DIMS = 3


@dataclass(frozen=True)
class Read:
    """A tensor as the kernel reads it: the result's dim that indexes each of its own."""

    value: ir.Value
    extents: tuple[Extent, ...]
    at: tuple[int | None, ...]

    def is_along(self, last: int) -> bool:
        """Return whether neighbours along a dim of the result are neighbours here."""
        return bool(self.at) and self.at[-1] == last

    def index(self, where: Sequence[Index]) -> list[Index]:
        """Return where it is read for an index of the result."""
        return [0 if i is None else where[i] for i in self.at]

    def is_turned(self, last: int) -> bool:
        """Return whether they are rows here."""
        return last in self.at[:-1]


def refusal(body: ir.Block) -> str | None:
    """Return why no vector kernel takes the ops of a body, None if one does."""
    for o in (view.operation for view in body.operations):
        cls = op_class(o)
        if is_a(o, Yield) and any(len(list(v.uses)) > 1 for v in o.operands):
            return "a result is read in the kernel as well"
        if is_a(o, (Literal, Yield, BroadcastOp, NopView, Transpose)):
            continue
        if is_a(o, ReshapeOp) and len(o.operands) == 1:
            if isinstance(o.operands[0].owner, ir.Block):
                continue
            return f"'{o.name}' is of what the kernel computes"
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
    with e.kernel():  # pointwise ops wait to be asked for
        for o in site.members[:-1]:
            e.operation(o)
        return [e.expr(v) for v in site.members[-1].operands]


def match(e: LoweringContext, site: KernelSite) -> _Form | Refusal:
    """Take a kernel of pointwise ops and transposes whose operands are read along the lanes."""
    results = _results(e, site)
    return results if isinstance(results, Refusal) else _Form.of(e, results, site.isa)


def match_transpose(
    e: LoweringContext, site: KernelSite
) -> transposition.Plan | turned.Plan | Refusal:
    """Take a kernel that is one transpose."""
    results = _results(e, site)
    if isinstance(results, Refusal):
        return results
    if len(results) != 1:
        return Refusal(f"it has {len(results)} results")
    return transposition.match(e, results[0], site.isa)


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
    leaf, reads = behind_views(x)
    extents, at = e.expr_extents(x), [i for i in reads if i is not None]
    if not isinstance(leaf, Leaf) or len(at) < 3 or not len(at) == len(reads) == len(extents):
        return Refusal("it is no transpose of three dims or more")
    short = extents[-1]
    if not isinstance(short, int) or short >= site.isa.lanes or leaf.type.dtype not in STORED:
        return Refusal("its last dim is not shorter than a vector")
    kept = [i for i in range(len(at)) if i != at[-1]]  # the result's dims but the source's last
    order = [*kept, at[-1]]
    if at[-1] == len(at) - 1 or at[:-1] == kept:
        return Refusal("only its last two dims change")
    dims = [extents[i] for i in order]
    entries = tuple(order.index(i) for i in at)
    first = View(x.type.with_dims(x.type.dims[i] for i in order), leaf, entries, dims)
    form = _Form.of(e, [first], site.isa)
    return form if isinstance(form, Refusal) else _TwoSteps(x, form, tuple(order))


def build_two_steps(e: LoweringContext, site: KernelSite, plan: _TwoSteps) -> list[ir.Value]:
    """Build the copy, and the view of it as a tensor."""
    made = Leaf(plan.first.results[0].type, plan.first.emit(e)[0])
    return [e.tensor(View(plan.x.type, made, plan.order, e.expr_extents(plan.x)))]


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
        rank = len(form.extents)
        if any(d == 0 for d in form.extents if isinstance(d, int)):
            return Refusal("it has no elements")
        for x in results:
            if x.type.dims != results[0].type.dims or x.type.dtype not in STORED:
                return Refusal("its results differ in their dims, or vectors do not store them")
            if not form.visit(x, identity(rank), set()):
                return Refusal("an op or a type of it is not computed on vectors")
        if not form.leaves:
            return Refusal("it reads no tensor")
        form.join(e)
        if any(r.is_turned(form.last) for r in form.reads.values()):
            return Refusal("an operand's lanes are rows of the result")
        return form

    def visit(self, x: Expr, m: DimMap, seen: set[tuple[int, DimMap]]) -> bool:
        """Find the tensors that an expression reads; False: it is not computed on vectors."""
        if (id(x), m) in seen:
            return True
        seen.add((id(x), m))
        if x.type.dtype not in COMPUTED:
            return False
        if isinstance(x, Leaf):
            self.leaves[x.value, m] = x
            used = [i for i in m if i is not None]
            return x.type.dtype in STORED and len(used) == len(set(used))
        if isinstance(x, View):
            return self.visit(x.source, compose(m, x.map), seen)
        if isinstance(x, Compute):
            if x.cls.raw or getattr(x.cls, "scalar", None) is None:
                return False
            if x.type.dtype.is_low_precision and any(a.type.dtype is dtypes.DOUBLE for a in x.args):
                return False  # vectors round f32 alone to 16 bits
            return all(self.visit(a, m, seen) for a in x.args)
        return isinstance(x, Splat)

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

    # ---- loops -------------------------------------------------------------------------------

    def grid(self) -> list[tuple[Extent, int]]:
        """Return the grid: the first dims, in steps that give a group enough to do."""
        room, steps = GROUP_ELEMENTS, [1] * len(self.dims)
        for i in reversed(range(len(self.dims))):
            d = self.dims[i]
            # the last dim alone may be long
            known = d if isinstance(d, int) else room if i == self.last else UNKNOWN
            steps[i] = max(1, min(room, known))
            room //= min(max(1, d if isinstance(d, int) else UNKNOWN), room)
        return list(zip(self.dims, steps, strict=True))[:_GRID_DIMS]

    def emit(self, e: LoweringContext) -> list[ir.Value]:
        """Build the dispatch."""
        self.tensors = {r: views.reshaped(e, r.value, list(r.extents)) for r in self.reads.values()}
        tensors = list(dict.fromkeys(self.tensors.values()))
        grid = self.grid()
        types = [x.type.dtype for x in self.results]

        def body(k: WorkgroupBuilder) -> list[ResultTile]:
            inside = dict(zip(tensors, k.inputs, strict=True))
            starts = [*k.at, *[0] * (len(self.dims) - len(grid))]
            sizes: list[Index] = [
                tile_size(k, at, step, d) for at, (d, step) in zip(k.at, grid, strict=True)
            ]
            sizes += [k.inner(d) for d in self.dims[len(grid) :]]
            made = [k.empty(sizes, dtype) for dtype in types]
            loops = _Loops(k, self, inside, starts, sizes)
            made = loops.over([], made)
            return [ResultTile(v, starts, sizes) for v in made]

        made = dispatch(tensors, [(self.dims, t) for t in types], grid, body, self.dims)
        found = [views.reshaped(e, v, self.extents) for v in made]
        return [e.refine(v, x.type) for v, x in zip(found, self.results, strict=True)]


ELEMENTWISE = KernelRule("elementwise", (), match, lambda e, _, form: form.emit(e))
TRANSPOSE = KernelRule(
    "transpose", (), match_transpose, lambda e, _, p: [transposition.build(e, p)]
)
TWO_STEPS = KernelRule("transpose_in_two_steps", (), match_two_steps, build_two_steps)


class _Loops:
    """Builds the loops of a work-group: over `sizes` from `starts` on."""

    def __init__(
        self, k: WorkgroupBuilder, form: _Form, inside: dict[ir.Value, ir.Value],
        starts: Sequence[Index], sizes: Sequence[Index],
    ) -> None:  # fmt: skip
        self.k, self.form, self.inside = k, form, inside
        self.starts, self.sizes = starts, sizes

    def over(self, at: list[Index], made: list[ir.Value]) -> list[ir.Value]:
        """Loop over the dims that vectors are not made of, then along these."""
        i = len(at)
        if i == self.form.last:
            return self.along(at, made)
        if self.sizes[i] == 1:
            return self.over([*at, 0], made)
        return self.k.loop(0, self.sizes[i], 1, made, lambda n, c: self.over([*at, n], c))

    def along(self, at: list[Index], made: list[ir.Value]) -> list[ir.Value]:
        """Loop along the vectors, first some registers at a time, then one."""
        k, form, count = self.k, self.form, self.sizes[-1]
        where = [k.add(s, i) for s, i in zip(self.starts, [*at, 0], strict=True)]
        # they are the same in all vectors, which the compiler does not see
        elements = {
            source: k.element(self.inside[form.tensors[source]], source.index(where))
            for source in form.reads.values()
            if not source.is_along(form.last)
        }
        wide = form.lanes * form.registers
        most: Index = 0
        if form.registers > 1:
            most = k.sub(count, k.rem(count, wide))
        if most != 0:
            made = k.loop(
                0, most, wide, made,
                lambda n, c: self.vector([*at, n], c, elements, wide, masked=False),
            )  # fmt: skip
        return k.along(
            k.sub(count, most), form.lanes, made,
            lambda n, masked, c: self.vector(
                [*at, k.add(most, n)], c, elements, form.lanes, masked=masked
            ),
        )  # fmt: skip

    def vector(
        self,
        at: Sequence[Index],
        made: list[ir.Value],
        elements: dict[Read, ir.Value],
        lanes: int,
        *,
        masked: bool,
    ) -> list[ir.Value]:
        """Compute and store the vector at an index of the tile; elements: what is in each lane."""
        k, form = self.k, self.form
        where = [k.add(s, i) for s, i in zip(self.starts, at, strict=True)]
        have = {source: k.broadcast(v, lanes) for source, v in elements.items()}

        def read(x: Leaf, m: DimMap) -> ir.Value:
            source = form.reads[x.value, m]
            if source not in have:
                fill = 0.0 if masked else None
                have[source] = k.read(
                    self.inside[form.tensors[source]], source.index(where), lanes, masked=fill
                )
            return have[source]

        stored = [x.type.dtype for x in form.results]
        found = computed_vectors(k, lanes, form.results, stored, read, {}, len(form.extents))
        return [k.write(v, into, at, masked=masked) for v, into in zip(found, made, strict=True)]


def _follows(m: DimMap, i: int, j: int) -> bool:
    """Return whether a map has dim j right behind i, or neither."""
    if i not in m and j not in m:
        return True
    return i in m and j in m and m.index(j) == m.index(i) + 1
