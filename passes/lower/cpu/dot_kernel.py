"""Which kernels of a matrix product become vector loops, and their lowering."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import BroadcastOp, Kernel, Pointwise, is_a, op_class
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.broadcasts import Broadcast, Multibroadcast
from mgx_mlir.dialects.migraphx.control import Yield
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.dialects.migraphx.literal import Literal
from mgx_mlir.passes.lower import views
from mgx_mlir.passes.lower.context import LoweringContext
from mgx_mlir.passes.lower.cpu import dot as loops
from mgx_mlir.passes.lower.cpu.epilogue import Epilogue
from mgx_mlir.passes.lower.cpu.isa import isa_of
from mgx_mlir.passes.lower.cpu.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lower.expr import Extent, Leaf


def refusal(dot: Dot) -> str | None:
    """Return why no vector kernel computes a product, None if one does."""
    a, out = TensorType.of(dot.a), TensorType.of(dot.out)
    if a.dtype is not dtypes.FLOAT:
        return f"it computes {a.dtype}"
    if constant_matrix(dot) is None:
        return "its second operand is no constant matrix"
    if DYN in (a.dims[-1], out.dims[-1]):
        return "its depth or its columns are run-time dims"
    if 0 in a.dims or 0 in out.dims:
        return "it has no elements"
    if not isinstance(dot.a.owner, ir.Block):
        return "its first operand is computed in the kernel"
    return None


def constant_matrix(dot: Dot) -> ir.Value | None:
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


def lower(e: LoweringContext, _: ir.Operation, body: ir.Block) -> list[ir.Value] | None:
    """Lower a kernel around one product as vector loops; None: it is lowered in another way."""
    isa = isa_of(e.options.arch)
    members = [o.operation for o in body.operations]
    dots = [o for o in body.operations if isinstance(o, Dot)]
    if isa is None or len(dots) != 1 or refusal(dots[0]) is not None:
        return None
    dot = dots[0]
    if any(o != dot.operation and not is_epilogue(o) for o in members):
        return None
    weights = constant_matrix(dot)
    assert weights is not None
    array = literals.array_of(weights)
    depth, columns = array.shape[-2:]
    x = e.tensor(dot.a)
    lead = e.extents(x)[:-1]
    # stands for the sums, and has their extents
    total = Leaf(TensorType.of(dot.out), e.empty([*lead, columns], dtypes.FLOAT))
    e.bind(dot.out, total)
    with e.kernel():  # pointwise ops wait to be asked for
        for o in members:
            if o != dot.operation and not is_a(o, (Literal, Yield)):
                e.operation(o)
        results = [e.expr(v) for v in members[-1].operands]
    epilogue = Epilogue(results, total)
    if epilogue.refusal:
        return None
    rows = e.product(lead)
    cut = loops.plan(rows, depth, columns, isa)
    packed = e.parameter(
        e.repacked(
            array, ("dot", cut.width), lambda: loops.pack(array.reshape(depth, columns), cut.width)
        )
    )
    emit = Rows(epilogue, lead)
    made = loops.product(
        cut, isa, _reshaped(e, x, [rows, depth]), packed, (rows, columns), epilogue.inputs,
        [r.type.dtype for r in results], emit, lead,
    )  # fmt: skip
    return [_reshaped(e, v, [*lead, columns]) for v in made]


class Rows:
    """What follows a product, where the loops count the rows of all leading dims as one."""

    def __init__(self, epilogue: Epilogue, lead: Sequence[Extent]) -> None:
        self.epilogue, self.lead = epilogue, lead

    def __call__(
        self, k: WorkgroupBuilder, tensors: Sequence[ir.Value], sums: ir.Value,
        at: Sequence[Index], reads: dict[Hashable, ir.Value], *, masked: bool,
    ) -> list[ir.Value]:  # fmt: skip
        flat, column = at
        where = self.coordinates(k, flat) if len(self.lead) > 1 else [flat]
        return self.epilogue.emit(k, tensors, sums, [*where, column], reads, masked=masked)

    def coordinates(self, k: WorkgroupBuilder, flat: Index) -> list[Index]:
        """Return the index along each leading dim of a row."""
        out: list[Index] = []
        for extent in reversed(self.lead[1:]):
            inner = k.inner(extent)
            out.append(k.rem(flat, inner))
            flat = k.div(flat, inner)
        return [flat, *reversed(out)]


def _reshaped(e: LoweringContext, value: ir.Value, extents: Sequence[Extent]) -> ir.Value:
    """Return a tensor with other dims, outside of the kernel."""
    t = TensorType(
        dtypes.from_mlir(ir.RankedTensorType(value.type).element_type),
        tuple(e.static_dims(extents)),
    )
    return views.reshape_tensor(e, value, t, extents)


def is_epilogue(o: ir.Operation) -> bool:
    """Return whether an op may follow a kernel's sums on vectors."""
    if is_a(o, (Literal, Yield, BroadcastOp)):
        return True
    cls = op_class(o)
    return cls is not None and issubclass(cls, Pointwise) and not cls.raw
