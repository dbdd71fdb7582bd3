"""Small integer tensors computed from dims, kept as host scalars, so that no kernel computes
shapes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, linalg, tensor
from mgx_mlir.core.op import Op, Pointwise, attributes_of
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.iree import iree_ops
from mgx_mlir.passes.lowering.ops.require import require_elements
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, constant, signless

LIMIT = 64  # most elements of a tensor that is kept as host scalars

# An element is a Python number (known) or a TypedScalar (an SSA value).
ElementArray = np.ndarray
_Attributes = dict[str, Any]  # each of its own type


def constant_elements(array: np.ndarray) -> ElementArray:
    """Return the elements of a constant as Python numbers."""
    out = np.empty(array.shape, object)
    for i in np.ndindex(array.shape):
        out[i] = array[i].item()
    return out


def lower_on_host(e: LoweringContext, op: ir.Operation, cls: type[Op]) -> bool:
    """Lower `op` to scalars if it works on dims only; False where it does not."""
    name = cls.mnemonic
    if name == "dimensions_of":
        e.bind(op.results[0], _dimensions(e, op))
        return True
    if len(op.results) != 1 or not len(op.operands) or len(op.regions):
        return False
    out = TensorType.of(op.results[0])
    if not out.is_static or out.elements > LIMIT:
        return False
    found = [e.elements(v) for v in op.operands]
    operands = [x for x in found if x is not None]
    if len(operands) < len(found):
        return False
    if name == "require":
        elements = require_elements(e, op, *operands)
    elif issubclass(cls, Pointwise) and getattr(cls, "scalar", None) is not None:
        # IREE's host has no trunc
        if name == "trunc" or not all(_host_converts(x, out.dtype) for x in _dtypes(op)):
            return False
        elements = _pointwise(op, cls, operands, out)
    elif name in _STRUCTURAL:
        elements = _STRUCTURAL[name](attributes_of(op), operands, out)
    elif name in _REDUCTIONS:
        elements = _reduce(op, name, operands[0], out)
    else:
        return False
    if elements is None:
        return False
    e.bind(op.results[0], elements)
    return True


class HostScalars(ArithScalars):
    """Scalars on the host, where IREE converts only f32 and 64-bit integers to f64."""

    def _cast(self, x: TypedScalar, dtype: DType) -> TypedScalar:
        if dtype is dtypes.DOUBLE and not x.dtype.is_float and x.dtype.bits < 32:
            x = super()._cast(x, dtypes.FLOAT)  # exact; IREE would fold two casts through i64
        return super()._cast(x, dtype)


def _dtypes(op: ir.Operation) -> list[DType]:
    return [TensorType.of(v).dtype for v in op.operands]


def _host_converts(source: DType, to: DType) -> bool:
    """Return whether IREE's host has both types, and the conversion where there is one.

    It lacks floats of 16 or 8 bits, and conversions from 32-bit integers to f64, from f64 to
    integers, and from f32 to small unsigned ones.
    """
    if source.is_low_precision or to.is_low_precision:
        return False
    if to is dtypes.DOUBLE and not source.is_float:
        return source.bits != 32
    if not source.is_float or to.is_float or to.is_bool:
        return True
    return source is dtypes.FLOAT and (to.is_signed or to.bits == 64)


def _dimensions(e: LoweringContext, op: ir.Operation) -> ElementArray:
    attributes = attributes_of(op)
    extents = e.expr_extents(e.expr(op.operands[0]))
    part = extents[attributes["start"] : attributes["end"] or len(extents)]
    out = np.empty(len(part), object)
    for i, x in enumerate(part):
        out[i] = x if isinstance(x, int) else _from_index(x)
    return out


def _from_index(x: ir.Value) -> TypedScalar:
    i64 = ir.IntegerType.get_signless(64)
    return TypedScalar(arith.IndexCastOp(i64, x).result, dtypes.INT64)


def _pointwise(
    op: ir.Operation, cls: type[Op], operands: Sequence[ElementArray], out: TensorType
) -> ElementArray:
    kinds = _dtypes(op)
    attributes = attributes_of(op)
    result = np.empty(out.dims, object)
    known = all(not isinstance(x, TypedScalar) for a in operands for x in a.flat)
    if known:
        arrays = [a.astype(k.np) for a, k in zip(operands, kinds, strict=True)]
        with np.errstate(all="ignore"):
            array = np.asarray(cls.reference(*arrays, **attributes)).astype(out.dtype.np)
        return constant_elements(array)
    b = HostScalars(kinds[0], out.dtype)
    for i in np.ndindex(out.dims):
        xs = [
            x if isinstance(x := a.item(i), TypedScalar) else constant(x, k)
            for a, k in zip(operands, kinds, strict=True)
        ]
        result[i] = cls.scalar(b, *xs, **attributes)  # type: ignore[attr-defined]
    return result


def _reshape(_: _Attributes, operands: Sequence[ElementArray], out: TensorType) -> ElementArray:
    return operands[0].reshape(out.dims)


def _slice(
    a: _Attributes, operands: Sequence[ElementArray], out: TensorType
) -> ElementArray | None:
    x = operands[0]
    if len(operands) > 1 or not len(a["starts"]) or not len(a["ends"]):
        return None
    index = [slice(None)] * x.ndim
    for axis, start, end in zip(a["axes"] or range(x.ndim), a["starts"], a["ends"], strict=True):
        index[axis] = slice(start, end)
    return x[tuple(index)]


def _gather(
    a: _Attributes, operands: Sequence[ElementArray], out: TensorType
) -> ElementArray | None:
    x, indices = operands
    if any(isinstance(i, TypedScalar) for i in indices.flat):
        return None
    axis = a["axis"]
    extent = x.shape[axis]
    numbers = indices.astype(np.int64)
    if not extent:
        return None
    wrapped = np.clip(np.where(numbers < 0, numbers + extent, numbers), 0, extent - 1)
    # a list of indices, never a rank-0 one: numpy would answer with the element, not an array
    return np.take(x, wrapped.reshape(-1), axis=axis).reshape(out.dims)


def _broadcast(a: _Attributes, operands: Sequence[ElementArray], out: TensorType) -> ElementArray:
    x = operands[0]
    after = out.rank - a["axis"] - x.ndim
    return np.broadcast_to(x.reshape(x.shape + (1,) * max(after, 0)), out.dims)


def _step(a: _Attributes, operands: Sequence[ElementArray], out: TensorType) -> ElementArray:
    index = [slice(None)] * operands[0].ndim
    for axis, step in zip(a["axes"], a["steps"], strict=True):
        index[axis] = slice(None, None, step)
    return operands[0][tuple(index)]


_Structural = Callable[[_Attributes, Sequence[ElementArray], TensorType], ElementArray | None]
_STRUCTURAL: dict[str, _Structural] = {
    **dict.fromkeys(
        ("squeeze", "unsqueeze", "flatten", "identity", "contiguous", "reshape_lazy"), _reshape
    ),
    "reshape": _reshape,
    "transpose": lambda a, xs, out: np.transpose(xs[0], a["permutation"]),
    "concat": lambda a, xs, out: np.concatenate(xs, axis=a["axis"]),
    "multibroadcast": lambda a, xs, out: np.broadcast_to(xs[0], out.dims),
    "scalar": lambda a, xs, out: np.broadcast_to(xs[0].reshape(()), out.dims),
    "broadcast": _broadcast,
    "slice": _slice,
    "step": _step,
    "gather": _gather,
    "reverse": lambda a, xs, out: np.flip(xs[0], a["axes"]),
}
_REDUCTIONS = {"reduce_prod": "mul", "reduce_sum": "add", "reduce_max": "max", "reduce_min": "min"}


def _reduce(op: ir.Operation, name: str, x: ElementArray, out: TensorType) -> ElementArray | None:
    axes = attributes_of(op)["axes"]
    if not axes or len(op.operands) > 1 or 0 in x.shape:
        return None
    b = ArithScalars(out.dtype, out.dtype)
    combine = getattr(b, _REDUCTIONS[name])
    result = np.empty(out.dims, object)
    for i in np.ndindex(out.dims):
        ranges = [range(d) if n in axes else [i[n]] for n, d in enumerate(x.shape)]
        parts = [x[j] for j in itertools.product(*ranges)]
        total = parts[0]
        for part in parts[1:]:
            if not isinstance(total, TypedScalar) and not isinstance(part, TypedScalar):
                total = {"mul": total * part, "add": total + part, "max": max(total, part),
                         "min": min(total, part)}[_REDUCTIONS[name]]  # fmt: skip
            else:
                total = combine(total, part)
        result[i] = total
    return result


def read_elements(e: LoweringContext, v: ir.Value) -> ElementArray:
    """Return the elements of a tensor of known dims, read from it."""
    source, t = e.tensor(v), TensorType.of(v)
    out = np.empty(t.dims, object)
    for i in np.ndindex(t.dims):
        element = tensor.ExtractOp(source, [e.index(n) for n in i]).result
        out[i] = TypedScalar(element, t.dtype)
    return out


def tensor_of(e: LoweringContext, v: ir.Value, elements: ElementArray) -> ir.Value:
    """Return a tensor of host elements: a vector that is reshaped, or a fill for a bool.

    IREE stores elements of more axes at wrong indices, and refuses one bool
    (docs/iree-hazards.md, hazard 28).
    """
    t = TensorType.of(v).with_dims(elements.shape)
    if not any(isinstance(x, TypedScalar) for x in elements.flat):
        return e.constant(elements.astype(t.dtype.np))
    values = [
        x.value if isinstance(x, TypedScalar) else constant(x, t.dtype).value for x in elements.flat
    ]
    kind = ir.RankedTensorType.get(elements.shape, signless(t.dtype))
    if len(values) == 1 and t.dtype is dtypes.BOOL:
        return linalg.fill(values[0], outs=[e.empty(elements.shape, t.dtype)])
    if len(values) == 1 and elements.ndim < 2:
        return tensor.FromElementsOp(kind, values).result
    vector = ir.RankedTensorType.get([len(values)], kind.element_type)
    made = tensor.FromElementsOp(vector, values).result
    if not e.in_region:  # a reshape that comes later is folded into it, too
        made = e.barrier(made, [len(values)])
    if elements.ndim == 1:
        return made
    # tensor.expand_shape would be folded into its operand
    return iree_ops.reshaped(made, kind, [], [])


def extents_of(e: LoweringContext, v: ir.Value) -> list[Extent]:
    """Return a 1-D integer operand of known length as extents.

    Ints where known, else index values.
    """
    followed = e.elements(v)
    if followed is not None:
        return [x if not isinstance(x, TypedScalar) else as_index(x.value) for x in followed.flat]
    t = TensorType.of(v)
    assert t.rank <= 1, "the caller checks the length"
    source = e.tensor(v)
    out: list[Extent] = []
    for i in range(t.elements if t.rank else 1):
        at = [e.index(i)] if t.rank else []
        out.append(as_index(tensor.ExtractOp(source, at).result))
    return out


def as_index(x: ir.Value) -> ir.Value:
    """Convert an integer to type index."""
    return arith.IndexCastOp(ir.IndexType.get(), x).result
