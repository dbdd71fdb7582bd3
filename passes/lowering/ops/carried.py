"""Values that enter and leave branches and loops: tensors, and small integers as scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.views import NopView, ReshapeOp
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.iree import buffer_views, iree_ops
from mgx_mlir.passes.lowering.scalar import TypedScalar, constant

# a value that leaves a region: a tensor, or its elements as host scalars
Carried: TypeAlias = ir.Value | np.ndarray


def flag(e: LoweringContext, v: ir.Value) -> bool | ir.Value:
    """Return a condition: known, or an i1."""
    held = e.elements(v)
    if held is not None:
        x = held.reshape(-1)[0]
        return x.value if isinstance(x, TypedScalar) else bool(x)
    return index.read_only_element(e, e.tensor(v))


def i1(x: bool | ir.Value) -> ir.Value:
    return constant(x, dtypes.BOOL).value if isinstance(x, bool) else x


def flatten(
    e: LoweringContext,
    values: Sequence[Carried],
    types: Sequence[TensorType],
    shared: Sequence[bool],
    *,
    static: bool,
) -> list[ir.Value]:
    """Carried values as SSA values: a tensor, as a view unless all is static, or each element.

    shared: which values' memory something else may read.
    """
    out: list[ir.Value] = []
    for value, t, is_shared in zip(values, types, shared, strict=True):
        if isinstance(value, ir.Value):
            out.append(value if static else buffer_views.leave(e, value, shared=is_shared))
        else:
            out += [
                x.value if isinstance(x, TypedScalar) else constant(x, t.dtype).value
                for x in value.flat
            ]
    return out


def shared_with_others(values: Sequence[ir.Value], block: ir.Block) -> list[bool]:
    """Return which values that a block yields share memory with others: made outside, yielded
    twice, or views of such.


    """
    roots = [_root(v) for v in values]
    return [_home(r) != block or roots.count(r) > 1 for r in roots]


def _root(v: ir.Value) -> ir.Value:
    """Return the value whose elements `v` has in the same order."""
    while is_a(v.owner, (ReshapeOp, NopView)):
        v = v.owner.operands[0]
    return v


def _home(v: ir.Value) -> ir.Block:
    owner = v.owner
    return owner if isinstance(owner, ir.Block) else owner.operation.block


def unflatten(
    e: LoweringContext,
    values: Sequence[ir.Value],
    types: Sequence[TensorType],
    scalars: Sequence[bool],
    kinds: Sequence[ir.Type | None],
    *,
    static: bool,
) -> list[Carried]:
    """Undo flatten; `kinds` are the tensors' types."""
    out: list[Carried] = []
    rest = list(values)
    for t, is_host, kind in zip(types, scalars, kinds, strict=True):
        if not is_host:
            assert kind is not None
            value = rest.pop(0)
            out.append(value if static else buffer_views.enter(e, value, kind))
            continue
        held = np.empty(t.dims, object)
        for i in np.ndindex(t.dims):
            held[i] = TypedScalar(rest.pop(0), t.dtype)
        out.append(held)
    return out


def elements_of(e: LoweringContext, v: ir.Value) -> np.ndarray:
    """Return the elements of a small integer value, followed or read back."""
    held = e.elements(v)
    if held is not None:
        return held
    t, source = TensorType.of(v), e.tensor(v)
    held = np.empty(t.dims, object)
    for i in np.ndindex(t.dims):
        held[i] = TypedScalar(index.read(source, [e.index(n) for n in i]), t.dtype)
    return held


def opaque(x: Any) -> Any:
    """Return a scalar that is opaque to IREE; tensors, views and known extents stay.

    If a loop or branch changes a scalar, IREE 3.13 may assume its first value, and allocate too
    little memory for tensors with that extent.
    """
    if isinstance(x, int) or not isinstance(x.type, ir.IntegerType | ir.IndexType):
        return x
    return iree_ops.barrier(x)
