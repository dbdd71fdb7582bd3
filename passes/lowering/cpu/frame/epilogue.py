"""The epilogue of a vector kernel: pointwise ops on the vectors of sums before they are stored."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.op import BroadcastOp, Op, Pointwise, is_a, op_class
from mgx_mlir.dialects.migraphx.control import Yield
from mgx_mlir.dialects.migraphx.literal import Literal
from mgx_mlir.dialects.migraphx.views import Squeeze, Transpose, Unsqueeze
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.elements import StoredScalars, narrow, widen
from mgx_mlir.passes.lowering.cpu.frame.sites import KernelSite
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.expr import (
    Compute,
    DimMap,
    Expr,
    Leaf,
    Opaque,
    Splat,
    View,
    compose,
    identity,
)
from mgx_mlir.passes.lowering.scalar import TypedScalar, computed
from mgx_mlir.passes.lowering.select import Refusal

_NARROW = (dtypes.HALF, dtypes.BF16)  # computed as f32
COMPUTED = frozenset(
    (
        dtypes.FLOAT,
        dtypes.DOUBLE,
        dtypes.INT8,
        dtypes.UINT8,
        dtypes.INT32,
        dtypes.INT64,
        dtypes.BOOL,
        *_NARROW,
    )
)
STORED = COMPUTED - {dtypes.BOOL}
# ops of tens of instructions: polynomials, or calls of the C library
_LONG = frozenset(
    {"sigmoid", "exp", "tanh", "erf", "log", "log2", "pow", "sin", "cos", "sinh", "cosh"}
)
_LEAST_ROWS = 3  # from this many rows on, a loop is less code than unrolled rows


class Reads:
    """The tensors that expressions of the same dims read, and whether vectors compute these.

    leaves: by the tensor, and the map of the result's dims that it is read through. refusal: why
    vectors cannot compute the expressions, None if they can. bools: tensors of bools are read as
    bytes.
    """

    def __init__(
        self, results: Sequence[Expr], source: Expr | None = None, *, bools: bool = False
    ) -> None:
        self._read = COMPUTED if bools else STORED
        self.leaves: dict[tuple[ir.Value, DimMap], Leaf] = {}
        self.refusal: str | None = None
        self.is_long = False
        self._source, self._seen = source, set[tuple[int, DimMap]]()
        for x in results:
            self._visit(x, identity(x.type.rank))

    def _refuse(self, reason: str) -> None:
        self.refusal = self.refusal or reason

    def _visit(self, x: Expr, m: DimMap) -> None:
        if (id(x), m) in self._seen:
            return
        self._seen.add((id(x), m))
        dtype = x.type.dtype
        if dtype not in COMPUTED:
            self._refuse(f"{dtype} is not computed on vectors")
        if x is self._source:
            if m != identity(x.type.rank):
                self._refuse("the sums are read through a view")
        elif isinstance(x, Leaf):
            if dtype not in self._read:
                self._refuse(f"an operand of {dtype} is not read as vectors")
            self.leaves[x.value, m] = x
        elif isinstance(x, View):
            self._visit(x.source, compose(m, x.map))
        elif isinstance(x, Compute):
            name = x.cls.OPERATION_NAME
            self.is_long = self.is_long or x.cls.mnemonic in _LONG
            if x.cls.raw or getattr(x.cls, "scalar", None) is None:
                self._refuse(f"'{name}' is not computed on vectors")
            if dtype.is_low_precision and any(a.type.dtype is dtypes.DOUBLE for a in x.args):
                self._refuse(f"'{name}' rounds f64 to {dtype}, vectors round f32 alone")
            for a in x.args:
                self._visit(a, m)
        elif not isinstance(x, Splat):
            self._refuse("an operand is of an unknown kind")


@dataclass(frozen=True)
class Epilogue:
    """Ops after the sums of a kernel: one vector of sums gives one vector of each result.

    `emit(k, tensors, sums, at, reads, masked=)` returns these for the vector `sums` at index `at`
    of the result. tensors: `inputs` inside of the kernel. reads: a memo of read vectors. masked:
    the vector may reach past the end of its row.
    """

    inputs: Sequence[ir.Value]  # tensors that it reads
    stored: Sequence[DType]  # element types of the results
    emit: Callable[..., list[ir.Value]]
    is_long: bool = False  # one vector takes tens of instructions
    along: frozenset[int] = frozenset()  # dims of the result that `inputs` are read along

    def through(
        self, index: Callable[[WorkgroupBuilder, Sequence[Index]], Sequence[Index]]
    ) -> Epilogue:
        """Return the epilogue of loops with other dims: `index(k, at)` is the result's index."""

        def emit(
            k: WorkgroupBuilder, tensors: Sequence[ir.Value], sums: ir.Value, at: Sequence[Index],
            reads: dict[Hashable, ir.Value], *, masked: bool,
        ) -> list[ir.Value]:  # fmt: skip
            return self.emit(k, tensors, sums, index(k, at), reads, masked=masked)

        return replace(self, emit=emit)


@dataclass(frozen=True)
class Spot:
    """The index at which one register of sums is stored."""

    at: Sequence[Index]  # index in the kernel's results
    local: Sequence[Index]  # index in a workgroup's tiles of them
    masked: bool  # the vector may reach past the end of its row


@dataclass(frozen=True)
class Stores:
    """The stores of a workgroup: its epilogue's results for sums, written to tiles."""

    k: WorkgroupBuilder
    epilogue: Epilogue
    tensors: Sequence[ir.Value]  # the epilogue's inputs, inside of the kernel

    def stored(
        self, sums: Sequence[ir.Value], spots: Sequence[Spot], tiles: list[ir.Value]
    ) -> list[ir.Value]:
        """Return the tiles with the epilogue of each register of sums stored."""
        k, reads = self.k, dict[object, ir.Value]()
        for total, spot in zip(sums, spots, strict=True):
            found = self.epilogue.emit(
                k, self.tensors, total, spot.at, reads, masked=spot.masked
            )  # fmt: skip
            tiles = [
                k.write(v, into, spot.local, masked=spot.masked)
                for v, into in zip(found, tiles, strict=True)
            ]
        return tiles

    def rows(
        self, sums: Sequence[ir.Value], count: int, row: Callable[[Index], Sequence[Spot]],
        tiles: list[ir.Value],
    ) -> list[ir.Value]:  # fmt: skip
        """Return the tiles with the epilogue of `count` rows of sums; row(i): spots of a row.

        A long epilogue unrolled for each register would dominate the compile. So it is a loop over
        rows, which reads the sums from the tile that its results go to.
        """
        k, epilogue = self.k, self.epilogue
        spots = [spot for i in range(count) for spot in row(i)]
        kind = ir.VectorType(sums[0].type)
        is_kept = epilogue.stored[0] is dtypes.FLOAT and isinstance(kind.element_type, ir.F32Type)
        if not epilogue.is_long or not is_kept or count < _LEAST_ROWS:
            return self.stored(sums, spots, tiles)
        first = tiles[0]
        for total, spot in zip(sums, spots, strict=True):
            first = k.write(total, first, spot.local, masked=spot.masked)

        def one(i: ir.Value, c: list[ir.Value]) -> list[ir.Value]:
            own = list(row(i))
            kept = [
                k.read(c[0], spot.local, kind.shape[0], masked=0.0 if spot.masked else None)
                for spot in own
            ]
            return self.stored(kept, own, c)

        return k.loop(0, count, 1, [first, *tiles[1:]], one)


def epilogue_of(
    e: LoweringContext, site: KernelSite, anchor: Any, total: Opaque,
    views: Sequence[ir.Operation] = (), seen: View | None = None,
    apart: Sequence[ir.Operation] = (),
) -> Epilogue | Refusal:  # fmt: skip
    """Return the epilogue of a kernel's anchor, or the reason why vectors cannot compute it.

    anchor: the op. total: the op's result, with the type and extents of its sums. views: ops of the
    kernel through which it reads its operands. seen: the op's result as a view of `total`, whose
    dims are in another order. apart: ops of the kernel that are lowered before.
    """
    cls: type[Op] = anchor.__class__
    read = [anchor.operation, *views, *apart]
    left = next((o for o in site.members if o not in read and not _follows(o)), None)
    if left is not None:
        return Refusal(f"'{left.name}' is not computed on the vectors of a sum")
    with e.kernel():  # views and pointwise ops are lowered lazily
        for o in site.members:
            if o in views:
                e.operation(o)
        e.sizes.relations_of(anchor.operation, cls)
        e.bind(anchor.out, seen or total)
        for o in site.members:
            if o not in read and not is_a(o, (Literal, Yield)):
                e.operation(o)
        results = [e.expr(v) for v in site.members[-1].operands]
    reads = Reads(results, total)
    reason = _refusal(results, total, site.stored, reads)
    if reason is not None:
        return Refusal(reason)
    inputs, rank = list(dict.fromkeys(v for v, _ in reads.leaves)), total.type.rank

    def emit(
        k: WorkgroupBuilder, tensors: Sequence[ir.Value], sums: ir.Value, at: Sequence[Index],
        reads: dict[Hashable, ir.Value], *, masked: bool,
    ) -> list[ir.Value]:  # fmt: skip
        lanes = ir.VectorType(sums.type).shape[0]
        inside = dict(zip(inputs, tensors, strict=True))

        def read(x: Leaf, m: DimMap) -> ir.Value:
            where = [0 if i is None else at[i] for i in m]
            key = (x.value, lanes, tuple(where))
            if key not in reads:
                source = inside[x.value]
                if m and m[-1] == rank - 1:
                    reads[key] = k.read(source, where, lanes, masked=0.0 if masked else None)
                else:
                    reads[key] = k.broadcast(k.element(source, where), lanes)
            return reads[key]

        given = {id(total): sums}
        return computed_vectors(k, lanes, results, site.stored, read, given, rank)

    along = frozenset(i for _, m in reads.leaves for i in m if i is not None)
    return Epilogue(inputs, site.stored, emit, reads.is_long, along)


def _follows(o: ir.Operation) -> bool:
    """Return whether an op may follow a kernel's sums on vectors."""
    if is_a(o, (Literal, Yield, BroadcastOp, Squeeze, Unsqueeze, Transpose)):
        return True  # `Reads` refuses views of the sums
    cls = op_class(o)
    return cls is not None and issubclass(cls, Pointwise) and not cls.raw


def _refusal(
    results: Sequence[Expr], total: Expr, stored: Sequence[DType], reads: Reads
) -> str | None:
    rank = total.type.rank
    for x in results:
        if x.type.dims != total.type.dims:
            return f"a result of {x.type} is not of the sums' extents"
    if any(rank - 1 in m[:-1] for _, m in reads.leaves):
        return reads.refusal or "an operand's lanes are not adjacent in memory"
    for dtype in stored:
        if dtype not in STORED:
            return reads.refusal or f"a result of {dtype} is not stored from vectors"
    return reads.refusal


def computed_vectors(
    k: WorkgroupBuilder,
    lanes: int,
    results: Sequence[Expr],
    stored: Sequence[DType],
    read: Callable[[Leaf, DimMap], ir.Value],
    given: Mapping[int, ir.Value],
    rank: int,
) -> list[ir.Value]:
    """Return expressions of `rank` dims as vectors of the types that they are stored in.

    read: the stored vector of a tensor that a map of the result's dims reads; a tensor of bools is
    stored as bytes. given: the computed
    vector of expressions, by their id.
    """
    memo: dict[tuple[int, DimMap], TypedScalar] = {}

    def value(x: Expr, m: DimMap) -> TypedScalar:
        key = (id(x), m)
        if key not in memo:
            dtype = x.type.dtype
            if id(x) in given:
                memo[key] = TypedScalar(given[id(x)], dtype)
            elif isinstance(x, Leaf) and dtype.is_bool:
                none = k.splat(0, lanes, dtypes.INT8)
                found = arith.CmpIOp(arith.CmpIPredicate.ne, read(x, m), none).result
                memo[key] = TypedScalar(found, dtype)
            elif isinstance(x, Leaf):
                memo[key] = widen(k, TypedScalar(read(x, m), dtype), lanes)
            elif isinstance(x, Splat):
                wide = computed(dtype)
                memo[key] = TypedScalar(k.splat(x.number, lanes, wide), wide)
            elif isinstance(x, View):
                memo[key] = value(x.source, compose(m, x.map))
            else:
                assert isinstance(x, Compute)
                first = x.args[0].type.dtype if x.args else dtype
                args = [value(a, m) for a in x.args]
                memo[key] = x.computed(StoredScalars(k, lanes, first, dtype), args)
        return memo[key]

    def as_stored(x: TypedScalar, dtype: DType) -> ir.Value:
        if x.dtype.is_bool:
            return arith.ExtUIOp(k.vector_type(lanes, dtype), x.value).result
        return narrow(k, x, dtype, lanes).value

    found = [value(x, identity(rank)) for x in results]
    return [as_stored(x, dtype) for x, dtype in zip(found, stored, strict=True)]
