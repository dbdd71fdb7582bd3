"""The kernel rule of matmuls on CPUs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.filling import Packing
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Kernel, is_a
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.blocked_dot import BlockedDot
from mgx_mlir.dialects.migraphx.broadcasts import Broadcast, Multibroadcast
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.dialects.migraphx.quant import QuantDot
from mgx_mlir.dialects.migraphx.views import Transpose
from mgx_mlir.passes.lowering import views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.epilogue import Epilogue, epilogue_of
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.sites import KernelSite, literal_of
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import SCRATCH_BYTES
from mgx_mlir.passes.lowering.cpu.matmul import dot as loops
from mgx_mlir.passes.lowering.cpu.matmul import split, tiled_dot
from mgx_mlir.passes.lowering.cpu.matmul.digits import (
    LEAST_ROWS,
    MANY,
    MANY_WORK,
    WORK,
    takes_fours,
    takes_many,
)
from mgx_mlir.passes.lowering.cpu.matmul.few_bits import (
    FEW_ROWS,
    FOUR,
    UNIT,
    FewBits,
    fours,
    words,
)
from mgx_mlir.passes.lowering.cpu.matmul.instructions import PAIR
from mgx_mlir.passes.lowering.cpu.matmul.panel import Panels, pack
from mgx_mlir.passes.lowering.cpu.matmul.tile_registers import TilePanels
from mgx_mlir.passes.lowering.cpu.rows.computed_rows import ComputedRows, as_tensor
from mgx_mlir.passes.lowering.cpu.rows.row_form import Refused, RowForm, form_of
from mgx_mlir.passes.lowering.cpu.rows.windows import windows_of
from mgx_mlir.passes.lowering.expr import Extent, Opaque
from mgx_mlir.passes.lowering.select import KernelRule, Refusal

Matmul = Dot | QuantDot | BlockedDot


def refusal(dot: Matmul, isa: Isa) -> str | None:
    """Return why no vector kernel computes a matmul, None if one does."""
    if isinstance(dot, BlockedDot):
        return _refusal_of_few_bits(dot)
    a, b, out = (TensorType.of(v) for v in (dot.a, dot.b, dot.out))
    if 0 in a.dims or 0 in b.dims or 0 in out.dims:
        return "it has no elements"
    first, second = _Operand.of(dot.a), _Operand.of(dot.b)
    if first is None:
        return "its first operand is computed in the kernel"
    weights = constant_matrix(dot) is not None and DYN not in b.dims[-2:]
    if a.dtype is dtypes.BF16:
        return _refusal_of_pairs(a, first, weights, isa)
    if isinstance(dot, QuantDot):
        return _refusal_of_bytes(dot, first, weights, second, isa)
    if a.dtype is not dtypes.FLOAT:
        return f"it computes {a.dtype}"
    if weights:
        return None
    if second is None:
        return "its second operand is computed in the kernel"
    if second.order[-1] < b.rank - 2:
        return "neither rows nor columns of its second operand are contiguous"
    return None


def _refusal_of_pairs(a: TensorType, first: _Operand, weights: bool, isa: Isa) -> str | None:
    """Return why the bf16 pair instruction does not compute a matmul, None if it does."""
    if not isa.bf16_dot:
        return "the CPU has no bf16 dot product instruction"
    if not weights:
        return "its second operand is no constant matrix"
    if a.dims[-1] % PAIR:
        return "its depth is odd"
    return "its first operand is transposed" if first.is_transposed else None


def _refusal_of_bytes(
    dot: QuantDot, first: _Operand, weights: bool, second: _Operand | None, isa: Isa
) -> str | None:  # fmt: skip
    """Return why no vector kernel multiplies 8-bit integers, None if one does."""
    a, b = TensorType.of(dot.a), TensorType.of(dot.b)
    if not a.dtype.is_integer or b.dtype is not dtypes.INT8:
        return f"it multiplies {a.dtype} by {b.dtype}"
    if weights:
        return "its first operand is transposed" if first.is_transposed else None
    if not isa.byte_dot:
        return "its second operand is no constant matrix"
    if second is None or second.order[-1] != b.rank - 1:
        return "columns of its second operand are not contiguous"
    return None if first.order[-1] == a.rank - 1 else "its first operand is transposed"


def _refusal_of_few_bits(dot: BlockedDot) -> str | None:
    """Return why no vector kernel widens the weights of a matmul, None if one does."""
    if any(literal_of(v) is None for v in _weights(dot)):
        return "its weights are computed"
    x, out = TensorType.of(dot.input), TensorType.of(dot.out)
    if 0 in x.dims or 0 in out.dims:
        return "it has no elements"
    if x.dims[-1] % UNIT or dot.block_size % UNIT:
        return f"depth and blocks are no multiples of {UNIT}"
    return None


def refusal_of_rows(dot: BlockedDot) -> str | None:
    """Return why rows are not computed where they are split into digits, None if they are."""
    reason = _refusal_of_few_bits(dot)
    if reason is not None:
        return reason
    x, columns = TensorType.of(dot.input), TensorType.of(dot.out).dims[-1]
    *lead, depth = x.dims
    form = _few_bits(dot)
    assert form is not None
    if x.dtype is not dtypes.FLOAT:
        return f"its rows are {x.dtype}"
    if depth * x.dtype.size > SCRATCH_BYTES // 2:
        return f"a row of {depth} elements has no room on the stack"
    if dot.bits == 16 or (dot.bits == 8 and not _takes_fours(dot, form)):
        return f"rows are not split for {dot.bits} bits"
    rows = math.prod(lead) if x.is_known else LEAST_ROWS
    if depth * columns < (WORK if rows < LEAST_ROWS else MANY_WORK):
        return "it has few weights"
    if FEW_ROWS < rows < LEAST_ROWS:
        return f"{rows} rows are multiplied as floats"
    return None


def _takes_fours(dot: BlockedDot, form: FewBits) -> bool:
    return form.zeros is None and TensorType.of(dot.codes).dtype is dtypes.INT8


@dataclass(frozen=True)
class _Operand:
    """A kernel's operand that a matmul reads through transposes."""

    source: ir.Value  # block argument of the kernel
    order: tuple[int, ...]  # dim of the matmul's operand that each dim of the source is
    transposes: list[ir.Operation]

    @staticmethod
    def of(v: ir.Value) -> _Operand | None:
        """Return the kernel operand behind a matmul's operand `v`, None where the kernel
        computes it.
        """
        order, transposes = tuple(range(TensorType.of(v).rank)), list[ir.Operation]()
        while not isinstance(v.owner, ir.Block):
            if not is_a(v.owner, Transpose):
                return None
            permutation = list(v.owner.opview.permutation)
            order = tuple(order[permutation.index(i)] for i in range(len(order)))
            transposes.append(v.owner.operation)
            v = v.owner.operands[0]
        return _Operand(v, order, transposes)

    @property
    def is_transposed(self) -> bool:
        """Return whether the transposes change the order of dims."""
        return self.order != tuple(range(len(self.order)))

    def extents_of(self, e: LoweringContext) -> list[Extent]:
        """Return the extents of the matmul's operand."""
        own = e.expr_extents(e.expr(self.source))
        return [own[self.order.index(i)] for i in range(len(own))]


def constant_matrix(dot: Dot | QuantDot) -> ir.Value | None:
    """Return the literal that a matmul's second operand broadcasts over its leading dims, if
    any.
    """
    v, t = dot.b, TensorType.of(dot.b)
    while not literals.is_literal(v):
        owner = v.owner
        if isinstance(owner, ir.Block):
            operation = owner.owner.operation
            if not is_a(operation, Kernel):
                return None
            v = operation.operands[ir.BlockArgument(v).arg_number]
            continue
        if not is_a(owner, (Multibroadcast, Broadcast)):
            return None
        v = owner.operands[0]
        if is_a(owner, Broadcast) and owner.opview.axis + TensorType.of(v).rank != t.rank:
            return None
    own = TensorType.of(v).dims
    repeated = len(own) >= 2 and own[-2:] == t.dims[-2:] and all(d == 1 for d in own[:-2])
    return v if repeated else None


@dataclass(frozen=True)
class _Plan:
    """A matmul and the pointwise ops behind it, on the sums."""

    dot: Matmul
    a: _Operand | RowForm  # a form: rows that the kernel computes
    b: _Operand | None  # None: constant weights
    lead: Sequence[Extent]  # the batch dims
    rows: Extent
    depth: Extent
    columns: Extent
    epilogue: Epilogue


def match(e: LoweringContext, site: KernelSite, *kinds: type[Matmul]) -> _Plan | Refusal:
    """Take a kernel of one matmul of some op classes whose other ops are computed on its sums."""
    dots = [o for o in site.body.operations if isinstance(o, kinds)]
    if len(dots) != 1:
        return Refusal(f"it has {len(dots)} {kinds[0].mnemonic}s")
    (dot,) = dots
    reason = refusal(dot, site.isa)
    if reason is not None:
        return Refusal(reason)
    a, b = _rows_of(e, site, dot), None
    if isinstance(a, Refusal):
        return a
    if not isinstance(dot, BlockedDot) and constant_matrix(dot) is None:
        b = _Operand.of(dot.b)
    *lead, rows, depth = a.extents if isinstance(a, RowForm) else a.extents_of(e)
    if b is None and not isinstance(dot, BlockedDot):
        # weights have static dims, also where the first operand's depth is a dynamic dim
        depth = TensorType.of(dot.b).dims[-2]
    columns: Extent = TensorType.of(dot.out).dims[-1] if b is None else b.extents_of(e)[-1]
    # a stand-in for the sums, with their extents
    sums = dtypes.INT32 if isinstance(dot, QuantDot) else dtypes.FLOAT
    total = Opaque(TensorType.of(dot.out).with_dtype(sums), [*lead, rows, columns])
    read_through = [t for o in (a, b) if isinstance(o, _Operand) for t in o.transposes]
    before = _before(site, dot) if isinstance(a, RowForm) else []
    epilogue = epilogue_of(e, site, dot, total, read_through, apart=before)
    if isinstance(epilogue, Refusal):
        return epilogue
    return _Plan(dot, a, b, lead, rows, depth, columns, epilogue)


def _rows_of(e: LoweringContext, site: KernelSite, dot: Matmul) -> _Operand | RowForm | Refusal:
    """Return the first operand of a matmul, or the form of rows that the kernel computes."""
    found = _Operand.of(_first(dot))
    if found is not None:
        return found
    assert isinstance(dot, BlockedDot)
    if TensorType.of(dot.input).dtype is not dtypes.FLOAT:
        return Refusal("its computed rows are no f32")
    before = _before(site, dot)
    try:
        form = form_of(e, before, [dot.input], [-1])
    except Refused as refused:
        return Refusal(str(refused))
    form.windows.update(windows_of(e, site))
    return form


def _before(site: KernelSite, dot: Matmul) -> list[ir.Operation]:
    """Return the ops of a kernel that its matmul's first operand is computed by, in order."""
    found: set[ir.Operation] = set()
    todo = [_first(dot)]
    while todo:
        owner = todo.pop().owner
        if not isinstance(owner, ir.Block) and owner.operation not in found:
            found.add(owner.operation)
            todo += owner.operands
    return [o for o in site.members if o in found and not literals.is_literal(o)]


def build(e: LoweringContext, site: KernelSite, plan: _Plan) -> list[ir.Value]:
    """Build the loops over the tiles of the result; with weights, all leading dims are rows."""
    isa, dot, epilogue, lead, rows = site.isa, plan.dot, plan.epilogue, plan.lead, plan.rows
    a, b = plan.a, plan.b
    order = (0, 1) if isinstance(a, RowForm) else a.order
    x = None if isinstance(a, RowForm) else e.tensor(a.source)
    flattened: list[Extent] = []
    if b is None and lead and (isinstance(a, RowForm) or not a.is_transposed):
        flattened, order = [*lead, rows], (0, 1)
        if x is None:
            rows = e.product(flattened)
        else:
            x = views.reshaped(e, x, [e.product(flattened), plan.depth])
            rows = e.extent(x, 0)
        lead = ()
        epilogue = epilogue.through(lambda k, at: [*k.coordinates(at[0], flattened), at[1]])
    shape = _shape(e, dot, isa, (rows, plan.depth, plan.columns), tuple(lead), order, b)
    computed = None
    if isinstance(a, RowForm):
        computed = ComputedRows.of(e, a, isa) if loops.reads_digits_alone(shape, isa) else None
        if computed is None:
            (x,) = as_tensor(e, a, isa)
            x = views.reshaped(e, x, [rows, plan.depth])
    if (
        x is not None
        and b is None
        and not lead
        and tiled_dot.takes(rows, plan.depth, shape.dtype, isa)
    ):
        made = _tiled(e, site, shape, x, dot, epilogue, flattened)
        return [views.reshaped(e, v, [*plan.lead, plan.rows, plan.columns]) for v in made]
    cut = loops.plan(shape, isa)
    if b is not None:
        assert x is not None
        made = of_computed(e, shape, isa, (x, e.tensor(b.source)), e.product(lead), epilogue)
        return [views.reshaped(e, v, [*plan.lead, plan.rows, plan.columns]) for v in made]
    second = [e.parameter(w.packed(e)) for w in _stored(dot, shape, cut.width, isa)]
    operands = second if x is None else [x, *second]
    made = loops.matmul(
        shape, cut, isa, operands, e.product(lead), epilogue, flattened, computed
    )  # fmt: skip
    return [views.reshaped(e, v, [*plan.lead, plan.rows, plan.columns]) for v in made]


def of_computed(
    e: LoweringContext, shape: loops.DotShape, isa: Isa, operands: tuple[ir.Value, ir.Value],
    batch: Extent, epilogue: Epilogue,
) -> list[ir.Value]:  # fmt: skip
    """Build the loops of two operands that are tensors, and pack the second one ahead where that
    pays.
    """
    (a, b), cut = operands, loops.plan(shape, isa)
    if loops.packs_ahead(shape, cut):
        assert isinstance(shape.depth, int)
        assert isinstance(shape.columns, int)
        apart = [shape.depth, shape.columns // cut.width, cut.width]
        source = views.reshaped(e, b, apart)
        b = loops.packed_ahead(source, shape.depth, shape.columns, cut.width, isa)
        shape = replace(shape, b=None)
        cut = loops.plan(shape, isa)
    return loops.matmul(shape, cut, isa, (a, b), batch, epilogue)


RULE = KernelRule("matmul", (), lambda e, s: match(e, s, Dot, QuantDot), build, asks=refusal)
FEW_BITS = KernelRule(
    "few_bits_matmul", (), lambda e, s: match(e, s, BlockedDot), build, asks=refusal_of_rows
)


def _shape(
    e: LoweringContext, dot: Matmul, isa: Isa, extents: tuple[Extent, Extent, Extent],
    lead: tuple[Extent, ...], order: tuple[int, ...], b: _Operand | None,
) -> loops.DotShape:  # fmt: skip
    """Return the shape of a matmul of extents (rows, depth, columns), and how it is multiplied."""
    rows, depth, columns = extents
    bits = _few_bits(dot)
    # 16-bit elements are widened when read, as codes are
    dtype = dtypes.FLOAT if bits is not None else TensorType.of(_first(dot)).dtype
    shape = loops.DotShape(rows, depth, columns, lead, order, b and b.order, dtype, bits)
    if bits is None or not e.options.fast_math:
        return shape
    if split.takes(rows, order, depth, columns, isa):
        return replace(shape, split=True)
    return _in_digits(e, shape, dot, isa) if tuple(order) == (0, 1) else shape


def _tiled(
    e: LoweringContext, site: KernelSite, shape: loops.DotShape, x: ir.Value, dot: Matmul,
    epilogue: Epilogue, captured: Sequence[Extent],
) -> list[ir.Value]:  # fmt: skip
    """Build the loops over tile registers, where all leading dims are rows."""
    assert not isinstance(dot, BlockedDot)
    rows, depth, columns = shape.rows, shape.depth, shape.columns
    assert isinstance(depth, int)
    assert isinstance(columns, int)
    cut = tiled_dot.matmul_plan(shape.dtype, rows, depth, columns)
    operands = x, _panels(e, dot, cut.layout)
    return tiled_dot.matmul(rows, depth, columns, cut, site.isa, operands, epilogue, captured)


def _panels(e: LoweringContext, dot: Dot | QuantDot, layout: Panels | TilePanels) -> ir.Value:
    """Return the constant matrix of a matmul as panels."""
    matrix = constant_matrix(dot)
    assert matrix is not None
    array = literals.seen_of(matrix)
    flat = array.reshape(array.shape[-2:])
    make = partial(layout.packing, flat.shape, flat.dtype, lambda: flat)
    return e.parameter(e.repacked(array, layout.key, make))


def _in_digits(e: LoweringContext, shape: loops.DotShape, dot: Matmul, isa: Isa) -> loops.DotShape:
    """Return the shape of a matmul of codes whose many rows may be multiplied as digits."""
    form, at = shape.bits, (shape.rows, shape.depth, shape.columns)
    assert form is not None
    whole = isinstance(dot, BlockedDot) and TensorType.of(dot.codes).dtype is dtypes.INT8
    if whole and takes_fours(isa, form, *at):
        form = replace(form, fours=True)
    digits = MANY[e.options.row_bits] if takes_many(isa, form, *at) else 0
    return replace(shape, bits=form, many_digits=digits)


def _few_bits(dot: Matmul) -> FewBits | None:
    if not isinstance(dot, BlockedDot):
        return None
    zeros = None if dot.zero_points is None else TensorType.of(dot.zero_points).dtype
    return FewBits(dot.bits, dot.block_size, zeros, minima=dot.minima)


@dataclass(frozen=True)
class Stored:
    """Constant weights [depth, columns], and the panels in which a matmul reads them."""

    weights: np.ndarray
    layout: tuple[object, ...]  # facts that the panels follow from
    make: Callable[[], np.ndarray | Packing]
    width: int  # columns of a panel
    unit: int | None  # neighbours of a column along the depth; None: panels have another order

    def packed(self, e: LoweringContext) -> np.ndarray:
        """Return the panels, which all kernels of this layout share."""
        return e.repacked(self.weights, self.layout, self.make)


def stored_weights(e: LoweringContext, dot: Matmul, isa: Isa) -> list[Stored]:
    """Return the weights of a matmul as `build` packs them; none where no kernel here takes it."""
    if refusal(dot, isa) or (not isinstance(dot, BlockedDot) and constant_matrix(dot) is None):
        return []
    operand = _Operand.of(_first(dot))  # None: rows that the kernel computes
    *ahead, depth = TensorType.of(_first(dot)).dims
    *lead, rows = (dot.out if d == DYN else d for d in ahead)  # a value stands for any extent
    order = (0, 1) if operand is None else operand.order
    if lead and (operand is None or not operand.is_transposed):
        known = [d for d in ahead if d != DYN]
        rows, lead, order = math.prod(known) if len(known) == len(ahead) else dot.out, [], (0, 1)
    columns = TensorType.of(dot.out).dims[-1]
    if not isinstance(dot, BlockedDot):
        depth = TensorType.of(dot.b).dims[-2]
    shape = _shape(e, dot, isa, (rows, depth, columns), tuple(lead), order, None)
    if not lead and tiled_dot.takes(rows, depth, shape.dtype, isa):
        return []
    return _stored(dot, shape, loops.plan(shape, isa).width, isa)


def _stored(dot: Matmul, shape: loops.DotShape, width: int, isa: Isa) -> list[Stored]:
    """Return weights in the order in which they are read: of few bits codes, scales and zero
    points.
    """
    if not isinstance(dot, BlockedDot):
        matrix = constant_matrix(dot)
        assert matrix is not None
        layout = loops.panels_of(isa, shape.dtype, width, TensorType.of(dot.b).dims[-2])
        array = literals.seen_of(matrix)
        flat = array.reshape(array.shape[-2:])
        make = partial(layout.packing, flat.shape, flat.dtype, lambda: flat)
        # numbers stand behind panels of bytes
        unit = None if shape.dtype.is_integer else layout.unit
        return [Stored(flat, layout.key, make, width, unit)]
    out: list[Stored] = []
    for i, v in enumerate(_weights(dot)):
        literal = literal_of(v)
        assert literal is not None
        array = literals.array_of(literal)
        layout, unit = pack, 1
        if i == 0 and dot.bits == 4:
            layout, unit = words, None
        elif i == 0 and shape.bits is not None and shape.bits.fours:
            layout, unit = fours, FOUR
        make = partial(layout, array, width)
        out.append(Stored(array, (layout.__name__, width), make, width, unit))
    return out


def _weights(dot: BlockedDot) -> list[ir.Value]:
    return [dot.codes, dot.scales] + ([] if dot.zero_points is None else [dot.zero_points])


def _first(dot: Matmul) -> ir.Value:
    return dot.input if isinstance(dot, BlockedDot) else dot.a
