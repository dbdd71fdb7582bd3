"""The pointwise ops behind a vector kernel's sums, on the vectors that it is about to store."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering.cpu.frame.elements import StoredScalars, narrow, widen
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import Index, WorkgroupBuilder
from mgx_mlir.passes.lowering.expr import (
    Compute,
    DimMap,
    Expr,
    Leaf,
    Splat,
    View,
    compose,
    identity,
)
from mgx_mlir.passes.lowering.scalar import TypedScalar, computed

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


class Reads:
    """The tensors that expressions of the same dims read, and whether vectors compute these.

    leaves: by the tensor, and the map of the result's dims that it is read through. refusal: why
    vectors do not compute the expressions, None where they do.
    """

    def __init__(self, results: Sequence[Expr], source: Expr | None = None) -> None:
        self.leaves: dict[tuple[ir.Value, DimMap], Leaf] = {}
        self.refusal: str | None = None
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
            if dtype not in STORED:
                self._refuse(f"an operand of {dtype} is not read as vectors")
            self.leaves[x.value, m] = x
        elif isinstance(x, View):
            self._visit(x.source, compose(m, x.map))
        elif isinstance(x, Compute):
            name = x.cls.OPERATION_NAME
            if x.cls.raw or getattr(x.cls, "scalar", None) is None:
                self._refuse(f"'{name}' is not computed on vectors")
            if dtype.is_low_precision and any(a.type.dtype is dtypes.DOUBLE for a in x.args):
                self._refuse(f"'{name}' rounds f64 to {dtype}, vectors round f32 alone")
            for a in x.args:
                self._visit(a, m)
        elif not isinstance(x, Splat):
            self._refuse("an operand is of an unknown kind")


class Epilogue:
    """Expressions over one tensor, `source`, that its kernel computes vector by vector.

    stored: the types of the results, where they are not the expressions' own. inputs: the other
    tensors they read. refusal: why they cannot be had on vectors, else None.
    """

    def __init__(self, results: Sequence[Expr], source: Expr, stored: Sequence[DType] = ()) -> None:
        self.results, self.source = list(results), source
        self.stored = list(stored) or [x.type.dtype for x in results]
        self.rank = source.type.rank
        reads = Reads(self.results, source)
        self.inputs: list[ir.Value] = list(dict.fromkeys(v for v, _ in reads.leaves))
        self.refusal = self._refusal(reads)

    def _refusal(self, reads: Reads) -> str | None:
        for x in self.results:
            if x.type.dims != self.source.type.dims:
                return f"a result of {x.type} is not of the sums' extents"
        if any(self.rank - 1 in m[:-1] for _, m in reads.leaves):
            return reads.refusal or "an operand's lanes are not next to each other"
        for dtype in self.stored:
            if dtype not in STORED:
                return reads.refusal or f"a result of {dtype} is not stored from vectors"
        return reads.refusal

    def emit(
        self,
        k: WorkgroupBuilder,
        tensors: Sequence[ir.Value],
        sums: ir.Value,
        at: Sequence[Index],
        reads: dict[Hashable, ir.Value],
        *,
        masked: bool = False,
    ) -> list[ir.Value]:
        """Return the results for the vector `sums` that stands at an index of the kernel's result.

        tensors: `inputs` inside of the kernel. reads: what has been read here already. masked: the
        vector may reach past the end of its row.
        """
        lanes = ir.VectorType(sums.type).shape[0]
        inside = dict(zip(self.inputs, tensors, strict=True))

        def read(x: Leaf, m: DimMap) -> ir.Value:
            where = [0 if i is None else at[i] for i in m]
            key = (x.value, lanes, tuple(where))
            if key not in reads:
                source = inside[x.value]
                if m and m[-1] == self.rank - 1:
                    reads[key] = k.read(source, where, lanes, masked=0.0 if masked else None)
                else:
                    reads[key] = k.broadcast(k.element(source, where), lanes)
            return reads[key]

        return computed_vectors(
            k, lanes, self.results, self.stored, read, {id(self.source): sums}, self.rank
        )


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

    read: the stored vector of a tensor that a map of the result's dims reads. given: the computed
    vector of expressions, by their id.
    """
    memo: dict[tuple[int, DimMap], TypedScalar] = {}

    def value(x: Expr, m: DimMap) -> TypedScalar:
        key = (id(x), m)
        if key not in memo:
            dtype = x.type.dtype
            if id(x) in given:
                memo[key] = TypedScalar(given[id(x)], dtype)
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

    found = [value(x, identity(rank)) for x in results]
    return [narrow(k, x, dtype, lanes).value for x, dtype in zip(found, stored, strict=True)]
