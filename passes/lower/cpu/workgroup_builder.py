"""The frame of a vector kernel: one dispatch of work-groups, and what their bodies are built with.

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        (row,), (x,) = k.at, k.inputs
        def one(i, carried):
            v = k.read(x, [k.add(row, i), 0], 32)
            return [k.write(k.fma(v, v, v), carried[0], [i, 0])]
        made = k.loop(0, 64, 1, [k.empty((64, 32))], one)
        return [ResultTile(made[0], (row, 0), (64, 32))]

    out, = dispatch([x], [((1536, 32), dtypes.FLOAT)], [(1536, 64)], body)

A read or write that is not said to be `masked` promises that it stays inside of its tensor. What a
kernel reads must come in as an input: the body sees nothing else of the module. A scratch tensor
lives on the stack of a worker thread: keep a kernel's under SCRATCH_BYTES.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, math, scf, tensor, vector
from mgx_mlir.core.shapes import DYN
from mgx_mlir.passes.lower.scalar import Number, constant, constant_of, element_attr, signless

Index = int | ir.Value
SCRATCH_BYTES = 48 << 10


@dataclass(frozen=True)
class ResultTile:
    """The part of a result that a work-group has computed."""

    value: ir.Value
    offsets: Sequence[Index]
    sizes: Sequence[Index]


class WorkgroupBuilder:
    """Builds the body of one work-group at the current insertion point.

    at: where the group starts along each grid dim. inputs: the kernel's inputs, as tensors.
    An index may be a number wherever one is taken; numbers fold.
    """

    def __init__(self, block: ir.Block) -> None:
        self.at: list[Index] = []
        self.inputs: list[ir.Value] = []
        self._block = block
        self._constants: dict[Hashable, ir.Value] = {}

    # ---- constants ---------------------------------------------------------------------------

    def _once(self, key: Hashable, make: Callable[[], ir.Value]) -> ir.Value:
        if key not in self._constants:
            with ir.InsertionPoint.at_block_begin(self._block):
                self._constants[key] = make()
        return self._constants[key]

    def index(self, n: Index) -> ir.Value:
        """Return an index as a value."""
        if not isinstance(n, int):
            return n
        return self._once(n, lambda: arith.ConstantOp(ir.IndexType.get(), n).result)

    def number(self, value: Number, dtype: DType = dtypes.FLOAT) -> ir.Value:
        """Return a scalar constant."""
        return self._once(
            ("number", dtype, _bits(value, dtype)), lambda: constant(value, dtype).value
        )

    def splat(self, value: Number, lanes: int, dtype: DType = dtypes.FLOAT) -> ir.Value:
        """Return a vector of one number."""

        def make() -> ir.Value:
            kind = self.vector_type(lanes, dtype)
            whole = ir.DenseElementsAttr.get_splat(kind, element_attr(value, dtype))
            return constant_of(kind, whole)

        return self._once((lanes, dtype, _bits(value, dtype)), make)

    def vector_type(self, lanes: int | Sequence[int], dtype: DType = dtypes.FLOAT) -> ir.VectorType:
        shape = [lanes] if isinstance(lanes, int) else list(lanes)
        return ir.VectorType.get(shape, signless(dtype))

    # ---- indices -----------------------------------------------------------------------------

    def add(self, *terms: Index) -> Index:
        """Return the sum of indices."""
        number = sum(t for t in terms if isinstance(t, int))
        values = [t for t in terms if not isinstance(t, int)]
        if not values:
            return number
        total = values[0]
        for v in values[1:]:
            total = arith.AddIOp(total, v).result
        return arith.AddIOp(total, self.index(number)).result if number else total

    def sub(self, a: Index, b: Index) -> Index:
        if isinstance(b, int):
            return self.add(a, -b)
        return arith.SubIOp(self.index(a), b).result

    def mul(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if not isinstance(a, int) and not isinstance(b, int):
            return arith.MulIOp(a, b).result
        value, number = (b, a) if isinstance(a, int) else (a, b)
        if number in (0, 1):
            return value if number else 0
        return arith.MulIOp(self.index(value), self.index(number)).result

    def div(self, a: Index, b: int) -> Index:
        """Return a // b for a non-negative `a`."""
        if isinstance(a, int):
            return a // b
        return a if b == 1 else arith.DivUIOp(a, self.index(b)).result

    def rem(self, a: Index, b: int) -> Index:
        """Return a % b for a non-negative `a`."""
        if isinstance(a, int):
            return a % b
        return 0 if b == 1 else arith.RemUIOp(a, self.index(b)).result

    def min(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return arith.MinSIOp(self.index(a), self.index(b)).result

    def max(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        return arith.MaxSIOp(self.index(a), self.index(b)).result

    def is_less(self, a: Index, b: Index) -> ir.Value:
        """Return a < b, signed, as an i1."""
        return arith.CmpIOp(arith.CmpIPredicate.slt, self.index(a), self.index(b)).result

    def is_below(self, a: Index, b: Index) -> ir.Value:
        """0 <= a < b, as an i1: a negative number is a huge unsigned one."""
        return arith.CmpIOp(arith.CmpIPredicate.ult, self.index(a), self.index(b)).result

    def is_equal(self, a: Index, b: Index) -> ir.Value:
        return arith.CmpIOp(arith.CmpIPredicate.eq, self.index(a), self.index(b)).result

    # ---- memory ------------------------------------------------------------------------------

    def empty(self, dims: Sequence[Index], dtype: DType = dtypes.FLOAT) -> ir.Value:
        """Return a tensor to write into: the result's tile, or scratch on the stack."""
        return tensor.EmptyOp(list(dims), signless(dtype)).result

    def read(
        self,
        source: ir.Value,
        at: Sequence[Index],
        lanes: int | Sequence[int],
        *,
        masked: float | None = None,
    ) -> ir.Value:
        """Return the vector at an index, along the last dims of `source`.

        masked: lanes past the end of `source` are this number.
        """
        dtype = _element(source)
        kind = self.vector_type(lanes, dtype)
        rank = ir.RankedTensorType(source.type).rank
        return vector.TransferReadOp(
            kind,
            source,
            [self.index(i) for i in at],
            ir.AffineMap.get_minor_identity(rank, kind.rank),
            self.number(masked or 0.0, dtype),
            [masked is None] * kind.rank,
        ).result

    def write(
        self, value: ir.Value, into: ir.Value, at: Sequence[Index], *, masked: bool = False
    ) -> ir.Value:
        """`into` with a vector at an index; masked: lanes past the end of `into` are dropped."""
        kind = ir.VectorType(value.type)
        rank = ir.RankedTensorType(into.type).rank
        written: Any = vector.TransferWriteOp(
            into.type,
            value,
            into,
            [self.index(i) for i in at],
            ir.AffineMap.get_minor_identity(rank, kind.rank),
            [not masked] * kind.rank,
        )
        return written.result

    def element(self, source: ir.Value, at: Sequence[Index]) -> ir.Value:
        """Return one scalar of a tensor."""
        return tensor.ExtractOp(source, [self.index(i) for i in at]).result

    def put(self, value: ir.Value, into: ir.Value, at: Sequence[Index]) -> ir.Value:
        """`into` with a scalar at an index."""
        return tensor.InsertOp(value, into, [self.index(i) for i in at]).result

    def collapse(self, source: ir.Value, groups: Sequence[Sequence[int]]) -> ir.Value:
        """Return a tensor with neighbouring dims as one."""
        kind = ir.RankedTensorType(source.type)
        dims = [int(np.prod([kind.shape[i] for i in g])) for g in groups]
        return tensor.CollapseShapeOp(
            ir.RankedTensorType.get(dims, kind.element_type), source, [list(g) for g in groups]
        ).result

    # ---- vectors -----------------------------------------------------------------------------

    def broadcast(self, scalar: ir.Value, lanes: int) -> ir.Value:
        kind = ir.VectorType.get([lanes], scalar.type)
        return vector.BroadcastOp(kind, scalar).result

    def fma(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """Return a * b + c, rounded once."""
        return math.FmaOp(a, b, c).result

    def reduce(self, value: ir.Value, kind: str) -> ir.Value:
        """Return the lanes of a vector as one scalar; kind: `add`, `maximumf`, `maxnumf`, ..."""
        element = ir.VectorType(value.type).element_type
        attribute = ir.Attribute.parse(f"#vector.kind<{kind}>")
        return vector.ReductionOp(element, attribute, value).result

    def transpose(self, value: ir.Value, permutation: Sequence[int] = (1, 0)) -> ir.Value:
        kind = ir.VectorType(value.type)
        shape = [kind.shape[p] for p in permutation]
        return vector.TransposeOp(
            ir.VectorType.get(shape, kind.element_type), value, list(permutation)
        ).result

    # ---- control -----------------------------------------------------------------------------

    def loop(
        self,
        start: Index,
        stop: Index,
        step: Index,
        carried: Sequence[ir.Value],
        body: Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value]],
    ) -> list[ir.Value]:
        """scf.for: `body(i, carried)` gives the carried values of the next round."""
        made = scf.ForOp(self.index(start), self.index(stop), self.index(step), list(carried))
        with ir.InsertionPoint(made.body):
            scf.YieldOp(list(body(made.induction_variable, list(made.inner_iter_args))))
        return list(made.results)

    def when(
        self,
        condition: ir.Value,
        then: Callable[[], Sequence[ir.Value]],
        otherwise: Callable[[], Sequence[ir.Value]],
        types: Sequence[ir.Type],
    ) -> list[ir.Value]:
        """scf.if with results."""
        made = scf.IfOp(condition, list(types), has_else=True)
        for region, build in zip(made.regions, (then, otherwise), strict=True):
            with ir.InsertionPoint(region.blocks[0]):
                scf.YieldOp(list(build()))
        return list(made.results)


# ---- the dispatch ----------------------------------------------------------------------------


def dispatch(
    inputs: Sequence[ir.Value],
    results: Sequence[tuple[Sequence[int], DType]],
    grid: Sequence[tuple[int, int]],
    body: Callable[[WorkgroupBuilder], Sequence[ResultTile]],
) -> list[ir.Value]:
    """One dispatch, whose work-groups stand on a grid of (extent, step) per dim, up to three.

    `body` gives what one group computes of each result, in order. Groups that are next to each
    other along the last grid dim run after each other.
    """
    types = [ir.RankedTensorType.get(list(dims), signless(d)) for dims, d in results]
    outer = ir.Operation.create(
        "flow.dispatch.workgroups",
        results=types,
        operands=list(inputs),
        attributes={
            # workload, arguments, dims of the arguments, dims of the results
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, len(inputs), 0, 0])
        },
        regions=2,
    )
    bound = [_binding("readonly", v.type) for v in inputs] + [
        _binding("writeonly", t) for t in types
    ]
    block = outer.regions[0].blocks.append(*bound)
    k = WorkgroupBuilder(block)
    with ir.InsertionPoint(block):
        for i, (extent, step) in enumerate(grid):
            k.at.append(k.mul(_group_id(len(grid) - 1 - i), step) if step < extent else 0)
        k.inputs = [
            _load(arg, v.type)
            for arg, v in zip(block.arguments[: len(inputs)], inputs, strict=True)
        ]
        tiles = body(k)
        for tile, arg in zip(tiles, block.arguments[len(inputs) :], strict=True):
            _store(tile, arg)
        ir.Operation.create("flow.return")
    with ir.InsertionPoint(outer.regions[1].blocks.append()):
        counts = [-(-extent // step) for extent, step in reversed(grid)]
        counts += [1] * (3 - len(counts))
        index = ir.IndexType.get()
        ir.Operation.create(
            "flow.return", operands=[arith.ConstantOp(index, n).result for n in counts]
        )
    return list(outer.results)


def _group_id(axis: int) -> ir.Value:
    return ir.Operation.create(
        "flow.dispatch.workgroup.id",
        results=[ir.IndexType.get()],
        attributes={"dimension": ir.IntegerAttr.get(ir.IndexType.get(), axis)},
    ).result


def _binding(access: str, t: ir.Type) -> ir.Type:
    return ir.Type.parse(f"!iree_tensor_ext.dispatch.tensor<{access}:{t}>")


def _load(binding: ir.Value, t: ir.Type) -> ir.Value:
    shape = list(ir.RankedTensorType(t).shape)
    return ir.Operation.create(
        "iree_tensor_ext.dispatch.tensor.load",
        results=[t],
        operands=[binding],
        attributes={
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0, 0]),
            "static_offsets": ir.DenseI64ArrayAttr.get([0] * len(shape)),
            "static_sizes": ir.DenseI64ArrayAttr.get(shape),
            "static_strides": ir.DenseI64ArrayAttr.get([1] * len(shape)),
        },
    ).result


def _store(tile: ResultTile, binding: ir.Value) -> None:
    offsets = [i for i in tile.offsets if not isinstance(i, int)]
    sizes = [i for i in tile.sizes if not isinstance(i, int)]
    ir.Operation.create(
        "iree_tensor_ext.dispatch.tensor.store",
        operands=[tile.value, binding, *offsets, *sizes],
        attributes={
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 0, len(offsets), len(sizes), 0]),
            "static_offsets": ir.DenseI64ArrayAttr.get(_static(tile.offsets)),
            "static_sizes": ir.DenseI64ArrayAttr.get(_static(tile.sizes)),
            "static_strides": ir.DenseI64ArrayAttr.get([1] * len(tile.sizes)),
        },
    )


def _static(indices: Sequence[Index]) -> list[int]:
    return [i if isinstance(i, int) else DYN for i in indices]


def _element(value: ir.Value) -> DType:
    return dtypes.from_mlir(ir.RankedTensorType(value.type).element_type)


def _bits(value: Number, dtype: DType) -> bytes:
    """Return a key under which 0.0 and -0.0 differ and NaN is itself."""
    return np.array(value, dtype.np).tobytes()
