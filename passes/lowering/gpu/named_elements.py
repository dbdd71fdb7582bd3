"""Elements of a kernel's operands in a loop, at indices that may depend on dynamic dims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mgx_mlir.core.dynamic_dims import is_named
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.passes.lowering import index, views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent, Leaf
from mgx_mlir.passes.lowering.named_body import NamedBody
from mgx_mlir.passes.lowering.ops.fused_concat import LoopElements
from mgx_mlir.passes.lowering.scalar import TypedScalar, widen


class NamedElements(LoopElements):
    """Elements of tensors, by block argument.

    named: the names of dynamic dims, None where all are static. whole: tensors keep their extents
    of 1. Without these, a loop that reads at a constant index is vectorized.
    """

    def __init__(
        self,
        e: LoweringContext,
        tensors: Mapping[ir.Value, ir.Value],
        named: NamedBody | None,
        *,
        whole: bool,
    ) -> None:
        if named is not None:
            tensors = {v: _tied(e, named, v) for v in tensors}
        super().__init__(e, tensors)
        self._kept: dict[ir.Value, list[int]] = {}
        if not whole:
            for v, x in tensors.items():
                self._kept[v], self.operands[v] = _narrow(e, x)
        if named is None:
            return

        def resolved(f: Callable[..., Extent]) -> Callable[..., Extent]:
            return lambda *xs: f(*(named.index(e, x) if isinstance(x, int) else x for x in xs))

        self.add, self.mul = resolved(e.add), resolved(e.mul)
        self.div, self.rem = resolved(e.div), resolved(e.rem)

    def leaf(self, value: ir.Value, at: Sequence[Extent], lanes: int, along: bool) -> TypedScalar:
        kept = self._kept.get(value)
        if kept is None:
            return super().leaf(value, at, lanes, along)
        source = self.operands[value]
        assert isinstance(source, Leaf)
        found = index.read(source.value, [self.e.index(at[i]) for i in kept])
        return widen(TypedScalar(found, TensorType.of(value).dtype))


def _tied(e: LoweringContext, named: NamedBody, v: ir.Value) -> ir.Value:
    """Return an operand with one SSA value for equal extents, as each takes scalar registers."""
    dims, found = TensorType.of(v).dims, named.tensors[v]
    if DYN in dims or not any(map(is_named, dims)):
        return found
    sizes = [e.index(named.index(e, d)) for d in dims if is_named(d)]
    return ir.Operation.create(
        "flow.tensor.tie_shape", results=[found.type], operands=[found, *sizes]
    ).results[0]


def _narrow(e: LoweringContext, x: ir.Value) -> tuple[list[int], Leaf]:
    """Return which axes of a tensor are longer than 1, and the tensor of those."""
    extents = e.extents(x)
    kept = [i for i, n in enumerate(extents) if n != 1]
    sizes = [extents[i] for i in kept]
    t = TensorType.of(x).with_dims(e.static_dims(sizes))
    return kept, Leaf(t, views.reshape_tensor(e, x, t, sizes))


__all__ = ["NamedElements"]
