"""The operands of a dispatch: the tensors that it captures, and their dynamic extents."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, tensor
from mgx_mlir.core.shapes import DYN
from mgx_mlir.passes.lowering.index_builder import Index


class DispatchOperands:
    """Operands of a dispatch: its distinct dynamic extents, and those of its tensors."""

    def __init__(
        self,
        inputs: Sequence[ir.Value],
        results: Sequence[tuple[Sequence[Index], DType]],
        others: Sequence[Index],
    ) -> None:
        self._inputs, self._others = list(inputs), list(others)
        self._dims = {v: _extents(v) for v in inputs}
        self.input_dims = [d for v in inputs for d in self._dims[v] if isinstance(d, ir.Value)]
        self.result_dims = [d for dims, _ in results for d in dims if isinstance(d, ir.Value)]
        wanted = [*self.input_dims, *self.result_dims, *others]
        self.values = list(dict.fromkeys(d for d in wanted if isinstance(d, ir.Value)))

    def dims_of(self, value: ir.Value) -> list[Index]:
        """Return the extents of an input."""
        return self._dims[value]

    def described(
        self,
        results: Sequence[tuple[Sequence[Index], DType]],
        grid: Sequence[tuple[Index, int]],
        types: Sequence[ir.Type],
    ) -> Hashable:
        """Return a description of all operands of the code, with numbered dynamic extents."""
        numbers = {v: ("at", i) for i, v in enumerate(self.values)}
        inputs = list(self._dims)

        def seen(d: Index) -> Hashable:
            return d if isinstance(d, int) else numbers[d]

        return (
            tuple((v.type, inputs.index(v), *map(seen, self._dims[v])) for v in self._inputs),
            tuple((t, *map(seen, dims)) for t, (dims, _) in zip(types, results, strict=True)),
            tuple((seen(extent), step) for extent, step in grid),
            tuple(map(seen, self._others)),
        )


def _extents(value: ir.Value) -> list[Index]:
    """Return the dims of a tensor outside of the dispatch."""
    shape = ir.RankedTensorType(value.type).shape
    return [
        d if d != DYN else tensor.DimOp(value, index_constant(i)).result
        for i, d in enumerate(shape)
    ]


def index_constant(n: int) -> ir.Value:
    """Return a constant of type index."""
    return arith.ConstantOp(ir.IndexType.get(), n).result
