"""Which dynamic dimensions are equal: every value's dims under trial sizes of the symbols.

Each symbol is given a number, twice independently; dims that come out equal under both are equal
for every size (up to an accident of the numbers). Small integer tensors are followed by value,
so that dims computed at run time (`Shape` arithmetic) are known too.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from mgx_mlir.core import literals
from mgx_mlir.core.errors import MgxError
from mgx_mlir.core.interpreter import Interpreter
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, attributes_of
from mgx_mlir.core.shapes import DYN, TensorType

# Trial sizes are multiples of 5040, so that the divisions models do come out whole.
_UNIT = 5040
_PRIMES = tuple(p for p in range(11, 4000) if all(p % q for q in range(2, int(p**0.5) + 1)))
_TRIALS = 2
_VALUE_LIMIT = 64


class _Known:
    """A value under one trial: its type, and its elements where it is a small integer tensor."""

    __slots__ = ("array", "type")

    def __init__(self, type_: TensorType, array: np.ndarray | None = None) -> None:
        self.type, self.array = type_, array


class DimProbe:
    """Follows dims through a function while it is built. `active` once a dim is dynamic."""

    def __init__(self) -> None:
        self.active = False
        self._symbols: dict[str, tuple[int, ...]] = {}
        self.seen: dict[ir.Value, tuple[_Known, ...]] = {}
        self._run = Interpreter(None, literals.WeightStore())  # type: ignore[arg-type]

    def _numbers(self, symbol: str) -> tuple[int, ...]:
        if symbol not in self._symbols:
            i = len(self._symbols) * _TRIALS
            self._symbols[symbol] = tuple(
                _UNIT * _PRIMES[(i + t) % len(_PRIMES)] * (1 + (i + t) // len(_PRIMES))
                for t in range(_TRIALS)
            )
        return self._symbols[symbol]

    def argument(self, value: ir.Value, symbols: Sequence[str | None]) -> None:
        """State the symbol of each dim of an argument (None: its own)."""
        t = TensorType.of(value)
        if not t.is_static:
            self.active = True
        names = [s or f"%{len(self.seen)}.{i}" for i, s in enumerate(symbols)]
        self.seen[value] = tuple(
            _Known(
                t.with_dims(
                    self._numbers(n)[trial] if d == DYN else d
                    for d, n in zip(t.dims, names, strict=True)
                )
            )
            for trial in range(_TRIALS)
        )

    def known(self, value: ir.Value) -> tuple[_Known, ...]:
        found = self.seen.get(value)
        if found is None:
            owner = value.owner
            if isinstance(owner, ir.Block):
                self.argument(value, [None] * TensorType.of(value).rank)
            else:
                self._observe(owner)
            found = self.seen[value]
        return found

    def _observe(self, op: ir.Operation) -> None:
        """Compute an op's results under each trial."""
        columns: list[list[_Known]] = []
        for trial in range(_TRIALS):
            operands = [self.known(v)[trial] for v in op.operands]
            columns.append(self._results(op, operands))
        for i, r in enumerate(op.results):
            stated = TensorType.of(r)
            row = []
            for trial in range(_TRIALS):
                k = columns[trial][i]
                # what nobody can tell gets a number of its own
                dims = [
                    d
                    if d != DYN
                    else self._numbers(f"?{id(op)}.{op.name}.{len(self.seen)}.{i}.{j}")[trial]
                    if s == DYN
                    else s
                    for j, (d, s) in enumerate(zip(k.type.dims, stated.dims, strict=True))
                ]
                row.append(_Known(k.type.with_dims(dims), k.array))
            self.seen[r] = tuple(row)

    def _results(self, op: ir.Operation, operands: Sequence[_Known]) -> list[_Known]:
        stated = [TensorType.of(r) for r in op.results]
        if op.name == "migraphx.literal":
            small = stated[0].elements <= _VALUE_LIMIT and not stated[0].dtype.is_float
            return [_Known(stated[0], literals.array_of(op) if small else None)]
        cls = OPS.get(op.name.removeprefix("migraphx."))
        if cls is None or len(op.regions):
            return [_Known(t) for t in stated]
        attributes = attributes_of(op)
        if op.name == "migraphx.dimensions_of":
            dims = operands[0].type.dims
            part = dims[attributes["start"] : attributes["end"] or len(dims)]
            return [_Known(stated[0], np.array(part, np.int64))]
        arrays = self._arrays(op, stated, operands)
        if arrays is not None:
            return [_Known(t.with_dims(a.shape), a) for t, a in zip(stated, arrays, strict=True)]
        o = SimpleNamespace(regions=(), results=None, values={}, **attributes)
        at, constants = 0, {}
        for group, values in zip(cls.OPERANDS, cls._split(op), strict=True):
            part = operands[at : at + len(values)]
            at += len(values)
            types = [k.type for k in part]
            constants[group.name] = part[0].array if part else None
            setattr(o, group.name, types if group.arity == "variadic" else next(iter(types), None))
        o.const = constants.get
        try:
            found = cls.infer(o)
        except MgxError:
            found = None
        if found is None:
            return [_Known(t) for t in stated]
        types = [found] if isinstance(found, TensorType) else list(found)
        same = len(types) == len(stated) and all(
            a.rank == b.rank for a, b in zip(types, stated, strict=True)
        )
        return [_Known(t) for t in (types if same else stated)]

    def _arrays(
        self, op: ir.Operation, stated: Sequence[TensorType], operands: Sequence[_Known]
    ) -> list[np.ndarray] | None:
        """The op on known small integer tensors, or None."""
        if not operands or any(k.array is None for k in operands):
            return None
        if any(t.elements > _VALUE_LIMIT for t in stated):
            return None
        try:
            with np.errstate(all="ignore"):
                found = self._run.evaluate(op, [k.array for k in operands if k.array is not None])
        except MgxError:
            return None
        return found if all(a.size <= _VALUE_LIMIT for a in found) else None

    def same(self, a: ir.Value, i: int, b: ir.Value, j: int) -> bool:
        """Whether dim `i` of `a` equals dim `j` of `b` for every size of the symbols."""
        da, db = TensorType.of(a).dims[i], TensorType.of(b).dims[j]
        if DYN not in (da, db):
            return da == db
        return all(
            x.type.dims[i] == y.type.dims[j]
            for x, y in zip(self.known(a), self.known(b), strict=True)
        )

    def static(self, a: ir.Value, i: int) -> int | None:
        """The extent of a dim that is the same under every trial, else None."""
        d = TensorType.of(a).dims[i]
        if d != DYN:
            return d
        trials = {k.type.dims[i] for k in self.known(a)}
        return trials.pop() if len(trials) == 1 else None

    def constant(self, a: ir.Value) -> np.ndarray | None:
        """The elements of a small integer tensor when no symbol changes them, else None."""
        first, *rest = (k.array for k in self.known(a))
        if first is None or any(r is None or not np.array_equal(first, r) for r in rest):
            return None
        return first


__all__: list[Any] = ["DimProbe"]
