"""The kernel rule of matmuls on CPUs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import BroadcastOp, Kernel, Pointwise, is_a, op_class
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.broadcasts import Broadcast, Multibroadcast
from mgx_mlir.dialects.migraphx.control import Yield
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.dialects.migraphx.literal import Literal
from mgx_mlir.dialects.migraphx.quant import QuantDot
from mgx_mlir.dialects.migraphx.views import Squeeze, Transpose, Unsqueeze
from mgx_mlir.passes.lowering import views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.epilogue import Epilogue
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.sites import KernelSite
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.matmul import dot as loops
from mgx_mlir.passes.lowering.cpu.matmul import dot_instructions as instructions
from mgx_mlir.passes.lowering.expr import Extent, Opaque
from mgx_mlir.passes.lowering.select import KernelRule, Refusal


def refusal(dot: Dot | QuantDot, isa: Isa) -> str | None:
    """Return why no vector kernel computes a product, None if one does."""
    a, b, out = (TensorType.of(v) for v in (dot.a, dot.b, dot.out))
    if 0 in a.dims or 0 in b.dims or 0 in out.dims:
        return "it has no elements"
    first, second = _behind_transposes(dot.a), _behind_transposes(dot.b)
    if first is None:
        return "its first operand is computed in the kernel"
    weights = constant_matrix(dot) is not None and DYN not in b.dims[-2:]
    if a.dtype is dtypes.BF16:
        return _refusal_of_pairs(a, first[1], weights, isa)
    if isinstance(dot, QuantDot):
        return _refusal_of_bytes(dot, first[1], weights, second, isa)
    if a.dtype is not dtypes.FLOAT:
        return f"it computes {a.dtype}"
    if weights:
        return None
    if second is None:
        return "its second operand is computed in the kernel"
    if second[1][-1] < b.rank - 2:
        return "neither rows nor columns of its second operand are next to each other"
    return None


def _refusal_of_pairs(a: TensorType, order: tuple[int, ...], weights: bool, isa: Isa) -> str | None:
    """Return why no instruction for pairs of bf16 computes a product, None if one does."""
    if not isa.bf16_dot:
        return "the processor has no product of bf16"
    if not weights:
        return "its second operand is no constant matrix"
    if a.dims[-1] % instructions.PAIR:
        return "its depth is odd"
    return None if order == tuple(range(a.rank)) else "its first operand is transposed"


def _refusal_of_bytes(
    dot: QuantDot, order: tuple[int, ...], weights: bool,
    second: tuple[ir.Value, tuple[int, ...]] | None, isa: Isa,
) -> str | None:  # fmt: skip
    """Return why no vector kernel computes a product of 8-bit integers, None if one does."""
    a, b = TensorType.of(dot.a), TensorType.of(dot.b)
    if not a.dtype.is_integer or b.dtype is not dtypes.INT8:
        return f"it multiplies {a.dtype} by {b.dtype}"
    if weights:
        return None if order == tuple(range(a.rank)) else "its first operand is transposed"
    if not isa.byte_dot:
        return "its second operand is no constant matrix"
    if second is None or second[1][-1] != b.rank - 1:
        return "columns of its second operand are not next to each other"
    return None if order[-1] == a.rank - 1 else "its first operand is transposed"


def _behind_transposes(v: ir.Value) -> tuple[ir.Value, tuple[int, ...]] | None:
    """Return the kernel's operand that a value is a transpose of, and which of the value's dims
    each of its own is; None where it is something else."""
    order = tuple(range(TensorType.of(v).rank))
    while not isinstance(v.owner, ir.Block):
        if not is_a(v.owner, Transpose):
            return None
        permutation = list(v.owner.opview.permutation)
        order = tuple(order[permutation.index(i)] for i in range(len(order)))
        v = v.owner.operands[0]
    return v, order


def constant_matrix(dot: Dot | QuantDot) -> ir.Value | None:
    """Return the literal that a product's second operand repeats over its leading dims, if any."""
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

    dot: Dot | QuantDot
    matrix: ir.Value | None  # the second operand, where it is a constant
    lead: Sequence[Extent]  # the batch dims
    rows: Extent
    depth: Extent
    columns: Extent
    epilogue: Epilogue


def match(e: LoweringContext, site: KernelSite) -> _Plan | Refusal:
    """Take a kernel of one matmul whose other ops are computed on its sums."""
    members = site.members
    dots = [o for o in site.body.operations if isinstance(o, Dot | QuantDot)]
    if len(dots) != 1:
        return Refusal(f"it has {len(dots)} matmuls")
    (dot,) = dots
    reason = refusal(dot, site.isa)
    if reason is not None:
        return Refusal(reason)
    ahead = [dot.operation, *_transposes(dot.a), *_transposes(dot.b)]
    left = outside_epilogue(members, ahead)
    if left is not None:
        return left
    matrix = constant_matrix(dot)
    *lead, rows, depth = _extents(e, dot.a)
    columns: Extent = TensorType.of(dot.b).dims[-1]
    if matrix is None:
        columns = _extents(e, dot.b)[-1]
    # stands for the sums, and has their extents
    sums = dtypes.INT32 if isinstance(dot, QuantDot) else dtypes.FLOAT
    total = Opaque(TensorType.of(dot.out).with_dtype(sums), [*lead, rows, columns])
    with e.kernel():  # views and pointwise ops wait to be asked for
        for o in members[: members.index(dot.operation)]:
            if not is_a(o, Literal):
                e.operation(o)
        e.sizes.relations_of(dot.operation, type(dot))
        e.bind(dot.out, total)
        for o in members[members.index(dot.operation) :]:
            if o not in ahead and not is_a(o, (Literal, Yield)):
                e.operation(o)
        results = [e.expr(v) for v in members[-1].operands]
    epilogue = Epilogue(results, total, site.stored)
    if epilogue.refusal:
        return Refusal(epilogue.refusal)
    return _Plan(dot, matrix, lead, rows, depth, columns, epilogue)


def build(e: LoweringContext, site: KernelSite, plan: _Plan) -> list[ir.Value]:
    """Build the loops over the tiles of the result."""
    isa, dot, lead, epilogue = site.isa, plan.dot, plan.lead, plan.epilogue
    a = _operand(e, dot.a)
    dtype = TensorType.of(dot.a).dtype
    if plan.matrix is None:
        b = _operand(e, dot.b)
        shape = loops.DotShape(plan.rows, plan.depth, plan.columns, tuple(lead), a[1], b[1], dtype)
        made = loops.product(
            shape, loops.plan(shape, isa), isa, (a[0], b[0]), e.product(lead), epilogue.inputs,
            epilogue.stored, epilogue.emit,
        )  # fmt: skip
    else:
        made = _with_weights(e, isa, a, (plan.matrix, dtype), epilogue, epilogue.stored)
    return [views.reshaped(e, v, [*lead, plan.rows, plan.columns]) for v in made]


RULE = KernelRule("matmul", (), match, build, asks=refusal)


def _with_weights(
    e: LoweringContext, isa: Isa, a: tuple[ir.Value, tuple[int, ...]],
    matrix: tuple[ir.Value, DType], epilogue: Epilogue, stored: Sequence[DType],
) -> list[ir.Value]:  # fmt: skip
    """Return the results of a product with one constant matrix, whose leading dims are rows.

    matrix: with the type of the first operand.
    """
    literal, dtype = matrix
    array = literals.array_of(literal)
    depth, columns = array.shape[-2:]
    x, order = a
    own = e.extents(x)
    *lead, _ = [own[order.index(i)] for i in range(len(own))]
    if len(lead) > 1:  # rows of all leading dims as one
        x, order = views.reshaped(e, x, [e.product(lead), depth]), (0, 1)
    rows = e.extent(x, order.index(0))
    shape = loops.DotShape(rows, depth, columns, a=order, dtype=dtype)
    cut = loops.plan(shape, isa)
    flat = array.reshape(depth, columns)
    if dtype.is_integer:
        panels = loops.byte_panels(depth, cut.width, isa, signed=dtype.is_signed)
        unit = instructions.byte_unit(isa)
        packed = e.repacked(
            array,
            ("bytes of dot", panels.key),
            lambda: panels.finished(loops.pack(flat, cut.width, unit), flat),
        )
    else:
        unit = instructions.PAIR if dtype is dtypes.BF16 else 1
        packed = e.repacked(
            array, ("dot", cut.width, unit), lambda: loops.pack(flat, cut.width, unit)
        )
    return loops.product(
        shape, cut, isa, (x, e.parameter(packed)), 1, epilogue.inputs, stored,
        Rows(epilogue, lead), lead,
    )  # fmt: skip


def _operand(e: LoweringContext, v: ir.Value) -> tuple[ir.Value, tuple[int, ...]]:
    """Return an operand's tensor as it is stored, and its order."""
    found = _behind_transposes(v)
    assert found is not None
    return e.tensor(found[0]), found[1]


def _extents(e: LoweringContext, v: ir.Value) -> list[Extent]:
    """Return the extents of an operand, read through its transposes."""
    found = _behind_transposes(v)
    assert found is not None
    source, order = found
    own = e.expr_extents(e.expr(source))
    return [own[order.index(i)] for i in range(len(own))]


def _transposes(v: ir.Value) -> list[ir.Operation]:
    """Return the transposes that a product reads an operand of its kernel through."""
    out: list[ir.Operation] = []
    while not isinstance(v.owner, ir.Block) and is_a(v.owner, Transpose):
        out.append(v.owner.operation)
        v = v.owner.operands[0]
    return out


class Rows:
    """What follows a product, where the loops count the rows of all leading dims as one."""

    def __init__(self, epilogue: Epilogue, lead: Sequence[Extent]) -> None:
        self.epilogue, self.lead = epilogue, lead

    def __call__(
        self, k: WorkgroupBuilder, tensors: Sequence[ir.Value], sums: ir.Value,
        at: Sequence[Index], reads: dict[Hashable, ir.Value], *, masked: bool,
    ) -> list[ir.Value]:  # fmt: skip
        flat, column = at
        where = k.coordinates(flat, self.lead)
        return self.epilogue.emit(k, tensors, sums, [*where, column], reads, masked=masked)


def outside_epilogue(
    members: Sequence[ir.Operation], read: Sequence[ir.Operation]
) -> Refusal | None:
    """Return the refusal of a kernel by an op besides `read` that its sums cannot compute."""
    left = next((o for o in members if o not in read and not is_epilogue(o)), None)
    if left is None:
        return None
    return Refusal(f"'{left.name}' is not computed on the vectors of a sum")


def is_epilogue(o: ir.Operation) -> bool:
    """Return whether an op may follow a kernel's sums on vectors."""
    if is_a(o, (Literal, Yield, BroadcastOp, Squeeze, Unsqueeze)):
        return True  # a view of the sums themselves is refused by the epilogue
    cls = op_class(o)
    return cls is not None and issubclass(cls, Pointwise) and not cls.raw
