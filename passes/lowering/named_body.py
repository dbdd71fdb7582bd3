"""Names of the dynamic dims in a kernel's body during lowering, and their run-time values.

Fusion passes see names of dynamic dims; a program that is lowered has none. Here a copy of the body
gets names again, from the operands' dims in the kernel's `extents`. So a family can compare dims by
name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mgx_mlir.core import dtypes
from mgx_mlir.core.dynamic_dims import UndecidedError
from mgx_mlir.core.ir import func, ir
from mgx_mlir.core.op import OPS, is_a, is_terminator, op_class
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.movement import Slice
from mgx_mlir.passes.analysis.kernel_ops import copy_op
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Opaque
from mgx_mlir.passes.lowering.index_builder import Index, IndexBuilder
from mgx_mlir.passes.name_dynamic_dims import Names
from mgx_mlir.programs.dim_probe import DimProbe
from mgx_mlir.symbolic.expressions import Atom, Expr, Int
from mgx_mlir.symbolic.named_extents import NamedExtent
from mgx_mlir.symbolic.polynomials import read_polynomials


def operand_tensors(
    e: LoweringContext, op: ir.Operation, body: ir.Block
) -> dict[ir.Value, ir.Value]:
    """Return the lowered tensor of each block argument of a kernel; bools as bytes."""
    out: dict[ir.Value, ir.Value] = {}
    for arg, v in zip(body.arguments, op.operands, strict=True):
        value = e.tensor(v)
        if TensorType.of(v).dtype.is_bool:
            value = e.cast_tensor(value, dtypes.BOOL, dtypes.INT8)
        out[arg] = value
    return out


class NamedBody:
    """A copy of the body of a kernel, with names for the dynamic dims that its operands determine.

    block: the copy. tensors: the lowered operand of each of its arguments. sizes: index values of
    the names' symbols, outside of the kernel.
    """

    def __init__(
        self, e: LoweringContext, op: ir.Operation, body: ir.Block,
        operands: Mapping[ir.Value, ir.Value],
    ) -> None:  # fmt: skip
        self.e, self._body = e, body
        self._module = ir.Module.create()
        with ir.InsertionPoint(self._module.body):
            f = func.FuncOp("body", ([a.type for a in body.arguments], []))
        self.block = f.add_entry_block()
        self._copies: dict[ir.Value, ir.Value] = dict(
            zip(body.arguments, self.block.arguments, strict=True)
        )
        self.tensors = {self._copies[v]: t for v, t in operands.items()}
        self._probe = DimProbe()
        self._probe.active = True
        self.sizes: dict[str, ir.Value] = {}
        given = getattr(op.opview, "extents", None)
        if given:
            rows = read_polynomials(given, self._probe.prover.space)
            for argument, dims in zip(self.block.arguments, rows, strict=True):
                self._probe.extents(argument, dims)
        with ir.InsertionPoint(self.block):
            for view in body.operations:
                copy_op(view.operation, self._copies)
        self._dims = {v: self._probe.dims(copy) for v, copy in self._copies.items()}
        self._names = Names(self.block, self._probe)
        self._names.state()
        for view in list(self.block.operations):
            if is_a(view, Slice) and len(view.operation.operands) > 1:
                self._state_slice(view.operation)
        # operand dims that are a size, for relations
        told: list[tuple[int, str, ir.Value, int]] = []
        for argument, tensor in self.tensors.items():
            for i, d in enumerate(self._probe.dims(argument)):
                found = None if isinstance(d, int) else d.multiple()
                if found is not None:
                    told.append((found[1], str(found[0]), tensor, i))
        for times, name, tensor, i in sorted(told, key=lambda row: row[0]):
            if name not in self.sizes:
                self.sizes[name] = e.index(e.div(e.extent(tensor, i), times))

    def forget(self) -> None:
        """Release the names, after the kernel has been built."""
        self._names.naming.forget()

    def _state_slice(self, op: ir.Operation) -> None:
        """Replace a slice whose bounds are computed by one that states them."""
        view = op.opview
        bounds: dict[str, list[int]] = {}
        for group, name in (("input_starts", "starts"), ("input_ends", "ends")):
            value = getattr(view, group)
            given = None if value is None else self._probe.elements(value)
            if value is not None and given is None:
                return
            bounds[name] = (
                list(map(self._names.naming.of, given)) if given else list(getattr(view, name))
            )
        if view.input_axes is not None:
            return
        with ir.InsertionPoint(op), op.location:
            new = OPS["slice"](view.input, axes=list(view.axes), **bounds)
        new.result.set_type(op.results[0].type)
        op.results[0].replace_all_uses_with(new.result)
        op.erase()

    # ---- extents -----------------------------------------------------------------------------

    def index(
        self, b: IndexBuilder, d: int, inner: Callable[[Index], Index] | None = None
    ) -> Index:
        """Return an extent as a number or an index value; inner: maps a size to its value in
        the kernel.
        """
        return self._value(b, d.expr, inner or (lambda x: x)) if isinstance(d, NamedExtent) else d

    def _value(self, b: IndexBuilder, x: Int, inner: Callable[[Index], Index]) -> Index:
        if isinstance(x, int):
            return x
        total: Index = 0
        for term, n in x.terms.items():
            parts = [self._of_atom(b, atom, inner) for atom in term]
            total = b.add(total, b.product([n, *parts]))
        return total

    def _of_atom(self, b: IndexBuilder, atom: Atom, inner: Callable[[Index], Index]) -> Index:
        if atom.kind == "size":
            if str(atom) not in self.sizes:
                raise UndecidedError(f"a value for {atom}")
            return inner(self.sizes[str(atom)])
        parts = [self._value(b, x, inner) for x in atom.arguments if isinstance(x, Expr | int)]
        if atom.kind == "floordiv":
            return b.div(parts[0], parts[1])
        if atom.kind == "pos":
            return b.max(parts[0], 0)
        raise UndecidedError(f"a value for {atom}")

    def check_sizes(self) -> None:
        """Check the size assumptions of the body's ops."""
        e = self.e
        for argument, tensor in self.tensors.items():
            for i, d in enumerate(self._probe.dims(argument)):
                e.sizes.equal(e.extent(tensor, i), self._value(e, d, lambda x: x))
        with e.inner_scope():
            for view in self._body.operations:
                op = view.operation
                cls = op_class(op)
                if cls is None or is_terminator(op):
                    continue
                for r in op.results:
                    extents = [self._value(e, d, lambda x: x) for d in self._dims[r]]
                    e.bind(r, Opaque(TensorType.of(r), extents))
                e.sizes.relations_of(op, cls)
