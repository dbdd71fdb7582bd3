"""Shapes of a program's values: strides and ranges, derived from its instructions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from mgx_mlir.core.errors import MgxError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.op import Op, Pointwise, op_class
from mgx_mlir.core.shapes import DYN, TensorType, standard_strides
from mgx_mlir.programs.dim_probe import DimProbe
from mgx_mlir.programs.layout import AnyShape, Dim, Shape, Strides, TupleShape, read_dims
from mgx_mlir.programs.program_ir import STRIDES, argument_attributes, functions
from mgx_mlir.programs.signature import DimRange


class ModuleShapes:
    """Shape of every value of a module.

    Strides of an operator's result come from its class (`strides`), from its operands for a
    pointwise operator (the memory order of packed operands is kept, as in MIGraphX), and are
    row-major otherwise. Ranges of dynamic dims come from the arguments' `migraphx.dims`.
    """

    def __init__(self, module: ir.Operation, store: WeightStore | None = None) -> None:
        """Take the module's weights from `store`; None: from the store that is active."""
        self._store = store
        self._strides: dict[ir.Value, Strides] = {}
        self._dims: dict[ir.Value, tuple[Dim, ...]] = {}
        self._ranges = _RangeProbe()
        for function in functions(module):
            blocks = list(function.regions[0].blocks)
            if blocks:
                self._state(function, blocks[0])

    def _state(self, function: ir.OpView, block: ir.Block) -> None:
        for value, attributes in zip(block.arguments, argument_attributes(function), strict=True):
            self.state(value, attributes)

    def state(self, value: ir.Value, attributes: dict[str, ir.Attribute]) -> None:
        """Record the shape that a function argument's attributes state."""
        t = TensorType.of(value)
        if STRIDES in attributes:
            strides = tuple(ir.DenseI64ArrayAttr(attributes[STRIDES]))
            if len(strides) == t.rank:
                self._strides[value] = strides
        dims = read_dims(attributes, t)
        self._dims[value] = dims
        if not t.is_static:
            self._ranges.bound(value, dims)

    def shape(self, value: ir.Value) -> Shape:
        """Return the shape of a value."""
        t = TensorType.of(value)
        if not t.is_static:
            return Shape(t.dtype, self.dims(value), ())
        return Shape(t.dtype, t.dims, self.strides(value))

    def result_shape(self, op: ir.Operation, *, is_tuple: bool) -> AnyShape:
        """Return the shape of an operation's result; a tuple if MIGraphX returns one."""
        parts = tuple(self.shape(r) for r in op.results)
        return TupleShape(parts) if is_tuple else parts[0]

    def dims(self, value: ir.Value) -> tuple[Dim, ...]:
        """Return the dims of a value, with ranges for dynamic ones."""
        found = self._dims.get(value)
        if found is None:
            t = TensorType.of(value)
            with nullcontext() if self._store is None else self._store.active():
                found = t.dims if t.is_static else self._ranges.ranges(value)
            self._dims[value] = found
        return found

    def strides(self, value: ir.Value) -> Strides:
        """Return the strides of a value; strides that depend on unknown extents are DYN."""
        stack = [value]
        while stack:
            v = stack[-1]
            if v in self._strides:
                stack.pop()
                continue
            missing = [x for x in _sources(v) if x not in self._strides]
            if missing:
                stack += missing
                continue
            self._strides[v] = self._derive(v)
            stack.pop()
        return self._strides[value]

    def _derive(self, v: ir.Value) -> Strides:
        t = TensorType.of(v)
        op, cls = _operator(v)
        if op is None or cls is None:
            return standard_strides(t.dims)
        if cls.mnemonic == "literal" and STRIDES in op.attributes:
            return tuple(ir.DenseI64ArrayAttr(op.attributes[STRIDES]))
        ins = [self._strides[x] for x in op.operands] if _keeps(cls) else []
        if cls.strides is not Op.strides:
            try:
                groups = cls.split_operands(op)
                o = cls.view(groups, op.attributes, list(op.regions))
                o.results = [TensorType.of(r) for r in op.results]
                found = tuple(cls.strides(o, ins))
            except MgxError:
                # a view that needs a copy (reshape_lazy) has the copy's strides
                return standard_strides(t.dims)
            return found if len(found) == t.rank else standard_strides(t.dims)
        if cls.mnemonic == "convert":
            return ins[0]
        if issubclass(cls, Pointwise) and t.is_static:
            first = 1 if cls.mnemonic == "where" else 0
            shapes = [
                Shape(TensorType.of(x).dtype, TensorType.of(x).dims, s)
                for x, s in zip(list(op.operands)[first:], ins[first:], strict=True)
            ]
            if shapes and all(s.dims == t.dims for s in shapes):
                return _pointwise_strides(shapes)
        return standard_strides(t.dims)


def _operator(v: ir.Value) -> tuple[ir.Operation | None, type[Op] | None]:
    op = v.owner
    if isinstance(op, ir.Block) or not op.name.startswith("migraphx."):
        return None, None
    return op, op_class(op)


def _keeps(cls: type[Op]) -> bool:
    """Return whether a result's strides depend on the operands' strides."""
    return cls.strides is not Op.strides or (issubclass(cls, Pointwise))


def _sources(v: ir.Value) -> list[ir.Value]:
    op, cls = _operator(v)
    return list(op.operands) if op is not None and cls is not None and _keeps(cls) else []


def _pointwise_strides(shapes: Sequence[Shape]) -> Strides:
    """Apply MIGraphX's rule: keep the memory order of packed operands, else row-major."""
    first = shapes[0]
    if len(shapes) == 1:
        keeps = first.is_packed or first.is_scalar
        return first.strides if keeps else standard_strides(first.lens)[: len(first.dims)]
    found = first
    for other in shapes[1:]:
        if found.strides == other.strides and found.is_packed:
            continue
        if found.is_packed != other.is_packed:
            found = found if found.is_packed else other
        elif found.is_broadcasted != other.is_broadcasted:
            found = _packed_like(other if found.is_broadcasted else found)
        else:
            found = Shape.standard(found.dtype, found.dims)
    return found.strides


def _packed_like(s: Shape) -> Shape:
    """Return the packed shape of the same memory order."""
    order = sorted(range(len(s.dims)), key=lambda i: (-s.strides[i], i))
    strides, step = [0] * len(s.dims), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= s.lens[axis]
    return Shape(s.dtype, s.dims, tuple(strides))


class _RangeProbe(DimProbe):
    """Range of every dynamic dim, from the ranges of the arguments' dims."""

    LIMIT = 1 << 31  # sizes above it count as unbounded

    def bound(self, value: ir.Value, dims: Sequence[Dim]) -> None:
        """Set the ranges of an argument's dims."""
        ends = [(d, d) if isinstance(d, int) else (d.min, d.max) for d in dims]
        self.argument(value, [None if isinstance(d, int) else d.symbol for d in dims], ends)

    def ranges(self, value: ir.Value) -> tuple[Dim, ...]:
        """Return the dims of a value as ranges."""
        out: list[Dim] = []
        for d, e in zip(TensorType.of(value).dims, self.dims(value), strict=True):
            if d != DYN:
                out.append(d)
                continue
            low, high = self.prover.range_of(e)
            bounded = high is not None and high < self.LIMIT
            out.append(DimRange(max(low or 0, 0), high if bounded else None))
        return tuple(out)


__all__ = ["ModuleShapes"]
