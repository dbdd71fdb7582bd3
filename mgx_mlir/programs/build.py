"""Building migraphx ops from Python: numbers become literals, broadcasts become explicit."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import ShapeError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, Op, Pointwise, ValueLike, as_value
from mgx_mlir.core.shapes import DYN, TensorType, broadcast_dims
from mgx_mlir.programs.dim_probe import DimProbe
from mgx_mlir.programs.interpreter import Folder
from mgx_mlir.programs.value_rules import ValueRule


class Dims(tuple[int, ...]):
    """Extents of a value; asking for an axis beyond its rank is a ShapeError."""

    __slots__ = ()

    @overload
    def __getitem__(self, at: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[int, ...]: ...
    def __getitem__(self, at: SupportsIndex | slice) -> int | tuple[int, ...]:
        if isinstance(at, slice):
            return super().__getitem__(at)
        try:
            return super().__getitem__(at)
        except IndexError:
            place = operator.index(at)
            wanted = place + 1 if place >= 0 else -place
            raise ShapeError(f"expected rank {wanted} or more, got {len(self)}") from None


class Builder:
    """Builds at the current insertion point and location, into the active weight store.

    `b.op("name", ...)` builds an op as it is. `b.<name>(...)` does the same, and for pointwise ops
    also converts Python numbers and arrays to literals of the other operands' dtype and broadcasts
    all operands to common dims, explicitly. Both return the result value, or a tuple of them.
    """

    def __init__(self) -> None:
        self.folder = Folder()
        self.probe = DimProbe()
        self.operator = ""  # operator being imported, for messages
        self.rules: list[ValueRule] = []  # rules for values of the program's inputs

    # ---- ops ---------------------------------------------------------------------------------

    def op(self, name: str, *operands: object, **attributes: object) -> Any:
        """Build `migraphx.<name>` without any conversion of operands."""
        cls = OPS.get(name)
        if cls is None:
            raise ShapeError(f"unknown operator '{name}'")
        built = cls(*operands, **attributes)
        results = tuple(built.operation.results)
        return results[0] if len(results) == 1 else results

    def __getattr__(self, name: str) -> Callable[..., Any]:
        cls = OPS.get(name.rstrip("_"))
        if cls is None:
            raise AttributeError(f"unknown operator '{name}'")
        if issubclass(cls, Pointwise):
            return lambda *xs, **attributes: self._pointwise(cls, xs, attributes)
        return lambda *xs, **attributes: self.op(cls.mnemonic, *xs, **attributes)

    def _pointwise(self, cls: type[Op], xs: Sequence[object], attributes: dict[str, object]) -> Any:
        values = self.literals_like(xs)
        if len(values) > 1:
            values = self.broadcast(*values)
        return self.op(cls.mnemonic, *values, **attributes)

    def literals_like(self, xs: Sequence[object]) -> list[ir.Value]:
        """Convert numbers and arrays among `xs` to literals of the last tensor operand's dtype."""
        like = [
            TensorType.of(as_value(x)).dtype
            for x in xs
            if isinstance(x, ir.Value | ir.OpView | ir.Operation)
        ]
        out: list[ir.Value] = []
        for x in xs:
            if isinstance(x, ir.Value | ir.OpView | ir.Operation):
                out.append(as_value(x))
            elif isinstance(x, np.ndarray | np.generic):
                out.append(self.literal(np.asarray(cast(object, x))))
            elif like:
                out.append(self.literal(np.array(x).astype(like[-1].np)))
            else:
                raise ShapeError("expected at least one tensor operand")
        return out

    def literal(
        self, array: ArrayLike, dtype: DType | None = None, *, digest: bytes | None = None
    ) -> ir.Value:
        """Return a constant of a numpy array, or of a number with `dtype`.

        digest: `literals.bytes_digest` of the array, if it is known.
        """
        found = np.asarray(array) if dtype is None else np.asarray(array).astype(dtype.np)
        dtypes.from_numpy(found.dtype)
        return literals.create(found, digest=digest)

    def ints(self, values: Sequence[int]) -> ir.Value:
        """Return a 1-D i64 constant."""
        return self.literal(np.array(list(values), np.int64))

    # ---- what is known -----------------------------------------------------------------------

    def remembered(self) -> tuple[int, int]:
        """Return a mark to pass to `forget`."""
        return len(self.folder.known), len(self.probe.seen)

    def forget(self, mark: tuple[int, int]) -> None:
        """Drop facts recorded since `mark`, about values that are erased now.

        A new value may reuse the address of an erased one, and would inherit its facts.
        """
        while len(self.folder.known) > mark[0]:
            self.folder.known.popitem()
        self.probe.forget(mark[1])

    def const(self, v: ValueLike) -> np.ndarray | None:
        """Return the array of a small value known at compile time, else None."""
        value = as_value(v)
        found = self.folder.value(value)
        if found is None and self.probe.active:
            t = TensorType.of(value)
            if t.is_static and not t.dtype.is_float and t.elements <= 64:
                found = self.probe.constant(value)
        return found

    def type(self, v: ValueLike) -> TensorType:
        """Return the dtype and dims of `v`."""
        return TensorType.of(as_value(v))

    def dims(self, v: ValueLike) -> tuple[int, ...]:
        """Return the extents of `v`; asking for an axis beyond its rank is a ShapeError."""
        return Dims(self.type(v).dims)

    def dtype(self, v: ValueLike) -> DType:
        """Return the element type of `v`."""
        return self.type(v).dtype

    def shape(self, x: ValueLike, start: int = 0, end: int | None = None) -> ir.Value:
        """Return the extents of `x` (from `start` to `end`) as a 1-D i64 tensor."""
        value = as_value(x)
        rank = self.type(value).rank
        start, stop, _ = slice(start, end).indices(rank)
        dims = self.dims(value)[start:stop]
        if DYN not in dims or start >= stop:
            return self.ints(dims)
        return self.op("dimensions_of", value, start=start, end=stop)

    # ---- broadcasting ------------------------------------------------------------------------

    def broadcast(self, *xs: ValueLike) -> list[ir.Value]:
        """Broadcast all operands to common dims, by numpy's rules, with explicit ops.

        A dynamic extent that is provably equal in all operands needs no op. If two dynamic extents
        may differ (one may be 1 at run time), the target dims are computed at run time.
        """
        values = [as_value(x) for x in xs]
        all_dims = [self.dims(v) for v in values]
        target = broadcast_dims(*all_dims)
        if DYN not in target:
            if any(DYN in d for d in all_dims):
                return [self._to_dynamic(v, target, values) for v in values]
            return [self.multibroadcast(v, target) for v in values]
        return [self._to_dynamic(v, target, values) for v in values]

    def multibroadcast(self, x: ValueLike, dims: Sequence[int]) -> ir.Value:
        """Broadcast `x` to static dims; return `x` itself if it has them."""
        value = as_value(x)
        if self.dims(value) == tuple(dims):
            return value
        return self.op("multibroadcast", [value], out_lens=list(dims))

    def _to_dynamic(
        self, v: ir.Value, target: Sequence[int], values: Sequence[ir.Value]
    ) -> ir.Value:
        rank, own = len(target), self.dims(v)
        if len(own) == rank and all(self._settled(v, axis, values, rank) for axis in range(rank)):
            return v
        ref = self._reference(values, rank)
        if ref is not None and all(
            own[axis - (rank - len(own))] == 1
            or self.probe.same(v, axis - (rank - len(own)), ref, axis)
            for axis in range(rank - len(own), rank)
        ):
            return self.op("multibroadcast", [v, ref])
        if all(self._agree(axis, values, rank) for axis in range(rank)):
            # each extent is that of some operand, for all sizes
            return self.op("multibroadcast", [v, *(x for x in values if x != v)])
        # a known extent that is not 1 is also that of the other operands
        kind = TensorType(self.dtype(v), tuple(target))
        return self.op("broadcast_with_dims", v, self.common_shape(values, rank), results=[kind])

    def _agree(self, axis: int, values: Sequence[ir.Value], rank: int) -> bool:
        """Return whether all extents at `axis` that are not 1 are equal, for every size."""
        places = [(v, axis - (rank - len(self.dims(v)))) for v in values]
        places = [(v, i) for v, i in places if i >= 0 and self.dims(v)[i] != 1]
        return all(self.probe.same(*places[0], *place) for place in places[1:])

    def _settled(self, v: ir.Value, axis: int, values: Sequence[ir.Value], rank: int) -> bool:
        """Return whether `v` already has the broadcast extent at `axis`, for every size."""
        for other in values:
            i = axis - (rank - len(self.dims(other)))
            if i < 0 or self.dims(other)[i] == 1:
                continue
            if not self.probe.same(v, axis, other, i):
                return False
        return True

    def _reference(self, values: Sequence[ir.Value], rank: int) -> ir.Value | None:
        """Return an operand that has the broadcast dims at every axis, for every size."""
        for v in values:
            if len(self.dims(v)) == rank and all(
                self._settled(v, axis, values, rank) for axis in range(rank)
            ):
                return v
        return None

    def common_shape(self, values: Sequence[ir.Value], rank: int) -> ir.Value:
        """Return the broadcast dims as an i64 tensor computed at run time."""
        out: ir.Value | None = None
        for v in values:
            own = self.shape(v)
            missing = rank - len(self.dims(v))
            if missing:
                own = self.op("concat", [self.ints([1] * missing), own], axis=0)
            if out is None:
                out = own
                continue
            # an extent of 1 is replaced by the other, whatever that is (0 included)
            one = self.op("equal", out, self.multibroadcast(self.ints([1]), [rank]))
            cond = self.op("convert", one, target_type=dtypes.BOOL)
            out = self.op("where", cond, own, out)
        assert out is not None
        return out
