"""The frame of a vector kernel: one dispatch of workgroups, and the builder of their bodies.

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        (row,), (x,) = k.at, k.inputs
        def one(i, carried):
            v = k.read(x, [k.add(row, i), 0], 32)
            return [k.write(k.fma(v, v, v), carried[0], [i, 0])]
        made = k.loop(0, 64, 1, [k.empty((64, 32))], one)
        return [ResultTile(made[0], (row, 0), (64, 32))]

    out, = dispatch([x], [((1536, 32), dtypes.FLOAT)], [(1536, 64)], body)

A read or write without `masked` must stay inside of its tensor. All tensors that a kernel reads
must be inputs. A scratch tensor is on the stack of a worker thread: a kernel's must be smaller than
SCRATCH_BYTES.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, math, scf, tensor, vector
from mgx_mlir.core.shapes import DYN
from mgx_mlir.passes.lowering import equal_kernels
from mgx_mlir.passes.lowering.cpu.frame.dispatch_operands import DispatchOperands, index_constant
from mgx_mlir.passes.lowering.index_builder import Index, IndexBuilder
from mgx_mlir.passes.lowering.iree import iree_ops
from mgx_mlir.passes.lowering.scalar import Number, constant, constant_of, element_attr, signless

SCRATCH_BYTES = 48 << 10
_L1 = 3  # locality of a prefetch to all levels of cache

# f32 reductions that LLVM lowers to a serial chain over the lanes
_BY_HALVES: dict[str, Callable[..., Any]] = {
    "maxnumf": arith.MaxNumFOp,
    "minnumf": arith.MinNumFOp,
    "mul": arith.MulFOp,
}


# attribute of a dispatch: the program's op that it belongs to, by number and name
LAUNCH = "mgx.launched_for"
_FOR: ContextVar[str] = ContextVar("launched_for", default="")


@contextmanager
def launched_for(name: str) -> Generator[None]:
    """Set the op that dispatches made inside belong to."""
    before = _FOR.set(name)
    try:
        yield
    finally:
        _FOR.reset(before)


@dataclass(frozen=True)
class ResultTile:
    """The part of a result that a workgroup has computed."""

    value: ir.Value
    offsets: Sequence[Index]
    sizes: Sequence[Index]


class WorkgroupBuilder(IndexBuilder):
    """Builds the body of one workgroup at the current insertion point.

    at: where the group starts along each grid dim. inputs: the kernel's inputs, as tensors; dims:
    their extents. known: the body's value of each outer dynamic extent. An index may be a Python
    int; ints fold.
    """

    def __init__(self, block: ir.Block) -> None:
        self.at: list[Index] = []
        self.inputs: list[ir.Value] = []
        self.results: list[tuple[ir.Value, list[Index]]] = []
        self.dims: list[list[Index]] = []
        self.known: dict[ir.Value, ir.Value] = {}
        self._block = block
        self._constants: dict[Hashable, ir.Value] = {}
        self._buffers: dict[ir.Value, ir.Value] = {}

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

    def table(self, numbers: Sequence[float]) -> ir.Value:
        """Return a vector of f32 numbers."""

        def make() -> ir.Value:
            kind = self.vector_type(len(numbers))
            each: list[ir.Attribute] = [element_attr(n, dtypes.FLOAT) for n in numbers]
            return constant_of(kind, ir.DenseElementsAttr.get(each, kind))

        return self._once(("table", *numbers), make)

    def vector_type(self, lanes: int | Sequence[int], dtype: DType = dtypes.FLOAT) -> ir.VectorType:
        """Return the type of a vector of these lanes."""
        shape = [lanes] if isinstance(lanes, int) else list(lanes)
        return ir.VectorType.get(shape, signless(dtype))

    # ---- indices -----------------------------------------------------------------------------

    def inner(self, extent: Index) -> Index:
        """Return the body's value of an outer extent: an int or a value."""
        return extent if isinstance(extent, int) else self.known[extent]

    def covered(self, at: Index, step: int, extent: Index) -> Index:
        """Return min(step, extent - at)."""
        if step == 1 or (isinstance(extent, int) and extent % step == 0):
            return step
        return self.min(step, self.sub(extent, at))

    def is_less(self, a: Index, b: Index) -> ir.Value:
        """Return a < b, signed, as an i1."""
        return arith.CmpIOp(arith.CmpIPredicate.slt, self.index(a), self.index(b)).result

    def is_below(self, a: Index, b: Index) -> ir.Value:
        """0 <= a < b, as an i1: a negative number is a huge unsigned one."""
        return arith.CmpIOp(arith.CmpIPredicate.ult, self.index(a), self.index(b)).result

    def is_equal(self, a: Index, b: Index) -> ir.Value:
        """Return whether two indices are equal, as i1."""
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
        masked: float | bool | None = None,
    ) -> ir.Value:
        """Return the vector at an index, along the last dims of `source`.

        masked: lanes past the end of `source` are 0 (True), or this number.
        """
        inside = masked is None or masked is False
        beyond = 0.0 if masked is None or isinstance(masked, bool) else masked
        dtype = _element(source)
        kind = self.vector_type(lanes, dtype)
        rank = ir.RankedTensorType(source.type).rank
        return vector.TransferReadOp(
            kind,
            source,
            [self.index(i) for i in at],
            ir.AffineMap.get_minor_identity(rank, kind.rank),
            self.number(beyond, dtype),
            [inside] * kind.rank,
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

    def store(self, tile: ResultTile, result: int) -> None:
        """Write part of a result in place, for a result that is updated."""
        iree_ops.store(tile.value, tile.offsets, tile.sizes, *self.results[result])

    def collapse(self, source: ir.Value, groups: Sequence[Sequence[int]]) -> ir.Value:
        """Return a tensor with neighbouring dims as one."""
        kind = ir.RankedTensorType(source.type)
        shapes = [[kind.shape[i] for i in g] for g in groups]
        dims = [DYN if DYN in shape else int(np.prod(shape)) for shape in shapes]
        return tensor.CollapseShapeOp(
            ir.RankedTensorType.get(dims, kind.element_type), source, [list(g) for g in groups]
        ).result

    # ---- vectors -----------------------------------------------------------------------------

    def expand(self, source: ir.Value, dims: Sequence[int]) -> ir.Value:
        """Return a tensor of one dim with static dims of the same number of elements."""
        kind = ir.RankedTensorType.get(list(dims), ir.RankedTensorType(source.type).element_type)
        return tensor.ExpandShapeOp(kind, source, [list(range(len(dims)))], [], list(dims)).result

    def broadcast(self, scalar: ir.Value, lanes: int) -> ir.Value:
        """Build a vector with a scalar in each lane."""
        kind = ir.VectorType.get([lanes], scalar.type)
        return vector.BroadcastOp(kind, scalar).result

    def fma(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """Return a * b + c, rounded once."""
        return math.FmaOp(a, b, c).result

    def reduce(self, value: ir.Value, kind: str) -> ir.Value:
        """Return the lanes of a vector as one scalar; kind: `add`, `maximumf`, `maxnumf`, ..."""
        element = ir.VectorType(value.type).element_type
        halves = _BY_HALVES.get(kind) if isinstance(element, ir.F32Type) else None
        if halves is not None:
            return self._by_halves(value, halves)
        attribute = ir.Attribute.parse(f"#vector.kind<{kind}>")
        return vector.ReductionOp(element, attribute, value).result

    def _by_halves(self, value: ir.Value, combine: Callable[..., Any]) -> ir.Value:
        """Return the lanes of a vector as one, the upper half joined with the lower one."""
        kind = ir.VectorType(value.type)
        lanes = kind.shape[0]
        while lanes > 1 and lanes % 2 == 0:
            lanes //= 2
            half = ir.VectorType.get([lanes], kind.element_type)
            low, high = (
                vector.ExtractStridedSliceOp(half, value, [at], [lanes], [1]).result
                for at in (0, lanes)
            )
            value = combine(low, high).result
        scalars = [vector.ExtractOp(value, [], [i]).result for i in range(lanes)]
        found = scalars[0]
        for other in scalars[1:]:
            found = combine(found, other).result
        return found

    def transpose(self, value: ir.Value, permutation: Sequence[int] = (1, 0)) -> ir.Value:
        """Build a vector with its dims in another order."""
        kind = ir.VectorType(value.type)
        shape = [kind.shape[p] for p in permutation]
        return vector.TransposeOp(
            ir.VectorType.get(shape, kind.element_type), value, list(permutation)
        ).result

    def prefetch(self, source: ir.Value, at: Sequence[Index]) -> None:
        """Ask for the cache line of an element of an input that has static extents.

        The element may lie past the input's end.
        """
        data, read = {"isDataCache": ir.BoolAttr.get(True)}, {"isWrite": ir.BoolAttr.get(False)}
        near = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), _L1)
        operands = [self._buffer(source), *map(self.index, at)]
        attributes = {**data, **read, "localityHint": near}
        iree_ops.build("memref.prefetch", operands, attributes=attributes)

    def _buffer(self, source: ir.Value) -> ir.Value:
        """Return the buffer of an input; it is made once, where the input is loaded."""
        if source not in self._buffers:
            with ir.InsertionPoint.after(source.owner):
                self._buffers[source] = iree_ops.buffer(source)
        return self._buffers[source]

    def intrinsic(self, name: str, kind: ir.Type, *operands: ir.Value) -> ir.Value:
        """Return the result of an LLVM intrinsic: an instruction of the CPU, as a rule."""
        none = ir.DenseI32ArrayAttr.get([])
        return iree_ops.build(
            "llvm.call_intrinsic", operands, [kind],
            segments=(len(operands), 0),  # numbers of operands and of bundle operands
            attributes={"intrin": ir.StringAttr.get(name), "op_bundle_sizes": none},
        ).result  # fmt: skip

    def by_registers(
        self, size: int, make: Callable[[list[ir.Value]], ir.Value], *operands: ir.Value
    ) -> ir.Value:
        """Return `make([part of each operand])` of parts of `size` lanes, as one vector."""
        lanes = ir.VectorType(operands[0].type).shape[0]
        if lanes == size:
            return make(list(operands))
        whole = None
        for at in range(0, lanes, size):
            parts: list[ir.Value] = []
            for x in operands:
                kind = ir.VectorType.get([size], ir.VectorType(x.type).element_type)
                parts.append(vector.ExtractStridedSliceOp(kind, x, [at], [size], [1]).result)
            made = make(parts)
            if whole is not None:
                made = vector.ShuffleOp(whole, made, list(range(at + size))).result
            whole = made
        assert whole is not None
        return whole

    # ---- control -----------------------------------------------------------------------------

    def loop(
        self,
        start: Index,
        stop: Index,
        step: Index,
        carried: Sequence[ir.Value],
        body: Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value]],
    ) -> list[ir.Value]:
        """scf.for: `body(i, carried)` returns the carried values of the next iteration."""
        made = scf.ForOp(self.index(start), self.index(stop), self.index(step), list(carried))
        with ir.InsertionPoint(made.body):
            scf.YieldOp(list(body(made.induction_variable, list(made.inner_iter_args))))
        return list(made.results)

    def each(
        self,
        start: Index,
        stop: Index,
        step: int,
        carried: Sequence[ir.Value],
        body: Callable[[Index, list[ir.Value]], Sequence[ir.Value]],
    ) -> list[ir.Value]:
        """`loop`, without a loop for at most one iteration."""
        if isinstance(start, int) and isinstance(stop, int) and stop - start <= step:
            return list(body(start, list(carried)) if stop > start else carried)
        return self.loop(start, stop, step, carried, body)

    def along(
        self,
        count: Index,
        lanes: int,
        carried: Sequence[ir.Value],
        body: Callable[[Index, bool, list[ir.Value]], Sequence[ir.Value]],
    ) -> list[ir.Value]:
        """`body(i, masked, carried)` over [0, count) in vectors of `lanes`.

        Only the last vector is masked, if `lanes` does not divide the count: its reads and writes
        must pass `masked`.
        """
        whole = self.sub(count, self.rem(count, lanes))
        found = list(carried)
        if whole == lanes:
            found = list(body(0, False, found))
        elif whole != 0:
            found = self.loop(0, whole, lanes, found, lambda i, c: body(i, False, c))
        if isinstance(count, int):
            return list(body(whole, True, found)) if whole != count else found
        return self.when(
            self.is_less(whole, count),
            lambda: body(whole, True, found),
            lambda: found,
            [v.type for v in found],
        )

    def sweep(
        self,
        count: Index,
        wide: int,
        narrow: int,
        carried: Sequence[ir.Value],
        body: Callable[[Index, int, bool, list[ir.Value]], Sequence[ir.Value]],
    ) -> list[ir.Value]:
        """`body(i, lanes, masked, carried)` over [0, count): wide vectors, then narrow ones.

        The last narrow vector alone is masked, as that of `along`.
        """
        most: Index = 0 if wide == narrow else self.sub(count, self.rem(count, wide))
        found = list(carried)
        if most == wide:
            found = list(body(0, wide, False, found))
        elif most != 0:
            found = self.loop(0, most, wide, found, lambda i, c: body(i, wide, False, c))
        return self.along(
            self.sub(count, most), narrow, found,
            lambda i, masked, c: body(self.add(most, i), narrow, masked, c),
        )  # fmt: skip

    def coordinates(self, flat: Index, extents: Sequence[Index]) -> list[Index]:
        """Return the indices along several dims of a flat index; empty for no dims.

        extents: outer ones, as for `inner`.
        """
        out: list[Index] = []
        for extent in reversed(extents[1:]):
            inner = self.inner(extent)
            out.append(self.rem(flat, inner))
            flat = self.div(flat, inner)
        return [flat, *reversed(out)] if extents else []

    def along_twice(
        self,
        count: Index,
        lanes: int,
        carried: Sequence[ir.Value],
        body: Callable[[Index, bool, list[ir.Value]], Sequence[ir.Value]],
    ) -> list[ir.Value]:
        """`along` for an idempotent body.

        The last vector of a dynamic count overlaps the one before it. It is masked only if the
        count is less than one vector.
        """
        if isinstance(count, int):
            return self.along(count, lanes, carried, body)
        last = self.sub(count, lanes)
        return self.when(
            self.is_less(count, lanes),
            lambda: self.loop(0, count, lanes, carried, lambda i, c: body(i, True, c)),
            lambda: self.loop(
                0, count, lanes, carried, lambda i, c: body(self.min(i, last), False, c)
            ),
            [v.type for v in carried],
        )

    def repeat(
        self,
        carried: Sequence[ir.Value],
        goes_on: Callable[[list[ir.Value]], ir.Value],
        body: Callable[[list[ir.Value]], Sequence[ir.Value]],
    ) -> list[ir.Value]:
        """scf.while: `body(carried)` returns the carried values while `goes_on(carried)` holds."""
        kinds = [v.type for v in carried]
        made = scf.WhileOp(kinds, list(carried))
        before, after = (r.blocks.append(*kinds) for r in (made.before, made.after))
        with ir.InsertionPoint(before):
            scf.ConditionOp(goes_on(list(before.arguments)), list(before.arguments))
        with ir.InsertionPoint(after):
            scf.YieldOp(list(body(list(after.arguments))))
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
    results: Sequence[tuple[Sequence[Index], DType]],
    grid: Sequence[tuple[Index, int]],
    body: Callable[[WorkgroupBuilder], Sequence[ResultTile]],
    extents: Sequence[Index] = (),
    updated: Sequence[ir.Value] = (),
) -> list[ir.Value]:
    """Build one dispatch, with a grid of workgroups of (extent, step) per dim, up to three.

    `body` returns a group's part of each result, in order. Neighbours along the last grid dim run
    after each other.

    An extent of a result or of the grid is a number, or an index value. `body` gets such an index,
    and those in `extents`, by `k.inner`.

    With an extent of 0 nothing runs. `updated`: a tensor for each result, which is updated in place
    by `k.store`; elements that no group writes keep their values. Where another op reads the tensor
    afterwards, IREE copies it first.
    """
    outer = DispatchOperands(inputs, results, [*extents, *[extent for extent, _ in grid]])
    types = [ir.RankedTensorType.get(iree_ops.static(dims), signless(d)) for dims, d in results]
    known = outer.values
    arguments = [*known, *inputs, *updated]
    dims = [*outer.input_dims, *(outer.result_dims if updated else ())]
    # workload, arguments, dims of the arguments, dims of the results
    groups = known, arguments, dims, outer.result_dims
    tied = iree_ops.tied_operands(range(len(arguments) - len(updated), len(arguments)))
    made = iree_ops.build(
        "flow.dispatch.workgroups", list(chain(*groups)), types, segments=list(map(len, groups)),
        attributes={LAUNCH: ir.StringAttr.get(_FOR.get()), **tied}, regions=2,
    )  # fmt: skip
    codes = equal_kernels.codes()
    key = codes.key((outer.described(results, grid, types), bool(updated)))
    number = codes.number(key)
    if number is None:
        name = codes.name(key)
        known = codes.known(name)
        build = _nothing if known else body
        _build(made, outer, inputs, results, grid, build, updated=bool(updated))
        number = codes.built(key, made, name, known=known)
    if number is not None:
        made.attributes[equal_kernels.CODE] = ir.IntegerAttr.get(
            ir.IntegerType.get_signless(64), number
        )
    return list(made.results)


def _nothing(_: WorkgroupBuilder) -> Sequence[ResultTile]:
    return ()


def _build(
    made: ir.Operation,
    outer: DispatchOperands,
    inputs: Sequence[ir.Value],
    results: Sequence[tuple[Sequence[Index], DType]],
    grid: Sequence[tuple[Index, int]],
    body: Callable[[WorkgroupBuilder], Sequence[ResultTile]],
    *,
    updated: bool,
) -> None:
    """Build the code of a dispatch, and its number of workgroups."""
    known = outer.values
    index = ir.IndexType.get()
    block = made.regions[0].blocks.append(
        *[index] * len(known),
        *[iree_ops.binding("readonly", v.type) for v in inputs],
        *[iree_ops.binding("readwrite" if updated else "writeonly", r.type) for r in made.results],
    )
    k = WorkgroupBuilder(block)
    with ir.InsertionPoint(block):
        for i, value in enumerate(known):
            k.known[value] = iree_ops.ordinal(block.arguments[i], i)
        bindings = list(block.arguments)[len(known) :]
        ties = [outer.dims_of(v) for v in inputs] + [list(dims) for dims, _ in results]
        tied = [
            iree_ops.tied_binding(b, [k.inner(d) for d in t])
            for b, t in zip(bindings, ties, strict=True)
        ]
        for i, (extent, step) in enumerate(grid):
            many = not isinstance(extent, int) or step < extent
            k.at.append(k.mul(iree_ops.group_id(len(grid) - 1 - i), step) if many else 0)
        for binding, v in zip(tied, inputs, strict=False):
            dims = [k.inner(d) for d in outer.dims_of(v)]
            k.inputs.append(iree_ops.load(binding, v.type, dims))
            k.dims.append(dims)
        shapes = [[k.inner(d) for d in dims] for dims, _ in results]
        k.results = list(zip(tied[len(inputs) :], shapes, strict=True))
        for i, tile in enumerate(body(k)):
            k.store(tile, i)
        iree_ops.flow_return()
    count = made.regions[1].blocks.append(*[index] * len(known))
    with ir.InsertionPoint(count):
        workload = dict(zip(known, count.arguments, strict=True))
        counts = [
            _as_value(ceil_div(workload[extent] if isinstance(extent, ir.Value) else extent, step))
            for extent, step in reversed(grid)
        ]
        counts += [index_constant(1) for _ in range(3 - len(counts))]
        iree_ops.flow_return(counts)


def _as_value(n: Index) -> ir.Value:
    return index_constant(n) if isinstance(n, int) else n


def ceil_div(a: Index, b: int) -> Index:
    """Return ceil(a / b) for a >= 0; an int where both are."""
    if isinstance(a, int):
        return -(-a // b)
    return a if b == 1 else arith.CeilDivUIOp(a, index_constant(b)).result


def _element(value: ir.Value) -> DType:
    return dtypes.from_mlir(ir.RankedTensorType(value.type).element_type)


def _bits(value: Number, dtype: DType) -> bytes:
    """Return a key under which 0.0 and -0.0 differ and NaN is itself."""
    return np.array(value, dtype.np).tobytes()
