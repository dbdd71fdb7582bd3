"""Which dynamic dimensions are equal: every value's dims under trial sizes of the symbols.

Each symbol is given a number, twice independently; dims that come out equal under both are equal
for every size (up to an accident of the numbers). Small integer tensors are followed by value,
so that dims computed at run time (`Shape` arithmetic) are known too.

That no symbol changes a number takes more: of min(N, 2), N > 7 or N % 2 large sizes know nothing.
Such a number is computed again for small sizes, and for those that it is compared with.
"""

from __future__ import annotations

import contextlib
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
# What numbers of a symbol are compared with, or divided by: both sides of those are tried.
_DECIDING = frozenset(
    f"migraphx.{n}"
    for n in ("equal", "less", "greater", "min", "max", "fmod", "mod", "div", "clip", "where")
)
_MOST_LIMITS = 6


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
        # the symbol of each dim of an argument, and the sizes that it may have
        self._arguments: dict[ir.Value, list[str]] = {}
        self._ranges: dict[str, tuple[int, int | None]] = {}
        self._samples: dict[int | None, dict[ir.Value, _Known | None]] = {}
        self._like: dict[ir.Value, tuple[ir.Value, ir.Value | None]] = {}
        self._run = Interpreter(None, literals.WeightStore())  # type: ignore[arg-type]

    def _numbers(self, symbol: str) -> tuple[int, ...]:
        if symbol not in self._symbols:
            i = len(self._symbols) * _TRIALS
            self._symbols[symbol] = tuple(
                _UNIT * _PRIMES[(i + t) % len(_PRIMES)] * (1 + (i + t) // len(_PRIMES))
                for t in range(_TRIALS)
            )
        return self._symbols[symbol]

    def argument(
        self,
        value: ir.Value,
        symbols: Sequence[str | None],
        ranges: Sequence[tuple[int, int | None]] | None = None,
    ) -> None:
        """State the symbol of each dim of an argument (None: its own), and its least and most."""
        t = TensorType.of(value)
        if not t.is_static:
            self.active = True
        names = [s or f"%{len(self.seen)}.{i}" for i, s in enumerate(symbols)]
        self._arguments[value] = list(names)
        self._ranges.update(zip(names, ranges or (), strict=False))
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

    def _results(
        self, op: ir.Operation, operands: Sequence[_Known], *, strict: bool = False
    ) -> list[_Known]:
        """An op's results from its operands; `strict`: MgxError where it refuses their dims."""
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
        arrays = self._arrays(op, stated, operands, strict=strict)
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
            if strict:
                raise
            found = None
        if found is None:
            return [_Known(t) for t in stated]
        types = [found] if isinstance(found, TensorType) else list(found)
        same = len(types) == len(stated) and all(
            a.rank == b.rank for a, b in zip(types, stated, strict=True)
        )
        return [_Known(t) for t in (types if same else stated)]

    def _arrays(
        self,
        op: ir.Operation,
        stated: Sequence[TensorType],
        operands: Sequence[_Known],
        *,
        strict: bool = False,
    ) -> list[np.ndarray] | None:
        """The op on known small integer tensors, or None."""
        if not operands or any(k.array is None for k in operands):
            return None
        if any(t.elements > _VALUE_LIMIT for t in stated):
            return None
        try:
            # a division by zero is no program either
            with np.errstate(all="ignore", divide="raise" if strict else "ignore"):
                found = self._run.evaluate(op, [k.array for k in operands if k.array is not None])
        except (MgxError, FloatingPointError) as e:
            if strict:
                raise MgxError(str(e)) from e
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
        limits = self._limits(a)
        for sample in (0, 1, 2, None, *(n + d for n in limits for d in (-1, 0, 1))):
            found = self._sampled(a, sample)
            if found is None:
                continue  # no program of these sizes runs
            if found.array is None or not np.array_equal(first, found.array):
                return None
        return first

    # ---- small sizes -------------------------------------------------------------------------

    def _limits(self, a: ir.Value) -> list[int]:
        """The numbers that decide what small integers `a` is made of: N < 7, min(N, 2)."""
        found: dict[int, None] = {}
        stack, visited = [a], {a}
        while stack:
            owner = stack.pop().owner
            if isinstance(owner, ir.Block) or owner.name == "migraphx.dimensions_of":
                continue
            for v in owner.operands:
                known = self.seen.get(v)
                literal = not isinstance(v.owner, ir.Block) and v.owner.name == "migraphx.literal"
                if literal and known and known[0].array is not None and owner.name in _DECIDING:
                    found.update((int(n), None) for n in known[0].array.flat if n > 2)
                if v not in visited and known is not None and known[0].array is not None:
                    visited.add(v)
                    stack.append(v)
        return list(found)[:_MOST_LIMITS]

    def _size(self, symbol: str, sample: int | None) -> int:
        """A symbol's number in a sample: the same for all, or one of its own (None)."""
        low, high = self._ranges.get(symbol, (0, None))
        own = _PRIMES[hash_of(symbol) % 97] if sample is None else sample
        return max(own if high is None else min(own, high), low)

    def state_dims(self, v: ir.Value, source: ir.Value, first: ir.Value | None = None) -> None:
        """State that `v` has the dims of `source` for every size, behind those that `first` has."""
        self.known(v)  # what this finds about other results of an op comes before what is stated
        self._like[v] = (source, first)
        rows = self.known(source if first is None else first)
        self.seen[v] = tuple(
            self._dims_like(k, None if first is None else r)
            for k, r in zip(self.known(source), rows, strict=True)
        )

    @staticmethod
    def _dims_like(source: _Known, first: _Known | None) -> _Known:
        if first is None:
            return _Known(source.type)
        return _Known(source.type.with_dims((first.type.dims[0], *source.type.dims)))

    def forget(self, size: int) -> None:
        """Drop what was found out since there were `size` values, some of which are erased now."""
        while len(self.seen) > size:
            self.seen.popitem()
        self._samples.clear()
        for table in (self._arguments, self._like):
            for v in [v for v in table if v not in self.seen]:
                del table[v]  # type: ignore[arg-type]

    def _sampled(self, a: ir.Value, sample: int | None) -> _Known | None:
        """A value where the symbols have other sizes; None where an op refuses them."""
        memo = self._samples.setdefault(sample, {})
        stack = [a]
        while stack:
            v = stack[-1]
            if v in memo:
                stack.pop()
                continue
            t = TensorType.of(v)
            if v in self._arguments or isinstance(v.owner, ir.Block):
                self.known(v)
                names = self._arguments.get(v) or [f"{v}.{i}" for i in range(t.rank)]
                memo[v] = _Known(
                    t.with_dims(
                        self._size(str(n), sample) if d == DYN else d
                        for d, n in zip(t.dims, names, strict=True)
                    )
                )
                continue
            extents = self._by_symbols(v, sample)
            if extents is not None:
                memo[v] = _Known(t, extents)
                continue
            like = self._like.get(v)
            needed = v.owner.operands if like is None else [x for x in like if x is not None]
            missing = [x for x in needed if x not in memo]
            if missing:
                stack += missing
                continue
            if like is None:
                self._sample_results(v.owner, memo, sample)
                continue
            source, first = (None if x is None else memo[x] for x in like)
            memo[v] = source and self._dims_like(source, first)
        return memo[a]

    def _by_symbols(self, v: ir.Value, sample: int | None) -> np.ndarray | None:
        """Extents that are static, or those of a symbol, in a sample; None where some are neither.

        Saves a walk through everything that the tensor was computed from.
        """
        op = v.owner
        if op.name != "migraphx.dimensions_of":
            return None
        stated, attributes = TensorType.of(op.operands[0]).dims, attributes_of(op)
        rows = [k.type.dims for k in self.known(op.operands[0])]
        symbols = {numbers: name for name, numbers in self._symbols.items()}
        out: list[int] = []
        for d, *numbers in list(zip(stated, *rows, strict=True))[
            attributes["start"] : attributes["end"] or len(stated)
        ]:
            name = symbols.get(tuple(numbers))
            if d == DYN and name is None:
                return None
            out.append(d if d != DYN else self._size(str(name), sample))
        return np.array(out, np.int64)

    def _sample_results(
        self, op: ir.Operation, memo: dict[ir.Value, _Known | None], sample: int | None
    ) -> None:
        operands = [memo[v] for v in op.operands]
        given = [k for k in operands if k is not None]
        found: Sequence[_Known | None] = [None] * len(op.results)
        if len(given) == len(operands):
            with contextlib.suppress(MgxError):
                found = self._results(op, given, strict=True)
        for i, (r, k) in enumerate(zip(op.results, found, strict=True)):
            stated = TensorType.of(r)
            if k is not None:
                dims = [
                    d if d != DYN else s if s != DYN else self._size(f"{op.name}.{i}.{j}", sample)
                    for j, (d, s) in enumerate(zip(k.type.dims, stated.dims, strict=True))
                ]
                k = _Known(k.type.with_dims(dims), k.array)
            memo[r] = k


def hash_of(name: str) -> int:
    """A number of a name, the same in every process."""
    return sum((i + 1) * ord(c) for i, c in enumerate(name))


__all__: list[Any] = ["DimProbe"]
