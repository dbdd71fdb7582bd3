"""Queries about constants: literals, splats, axes along which a constant varies."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mgx_mlir.core import literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.op import OPS, is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.core.type_cache import MEMO
from mgx_mlir.passes.analysis.view_chains import (
    VIEWS_AND_SLICE,
    Map,
    build_map,
    trace,
    varying,
)
from mgx_mlir.rewrite.pattern import Rewriter, has_one_use

_DEPTH = 8  # most ops between a literal and a constant


def is_constant(value: ir.Value, depth: int = _DEPTH) -> bool:
    """Say whether `value` depends on literals alone."""
    owner = value.owner
    if is_literal(owner):
        return True
    if isinstance(owner, ir.Block) or depth == 0 or owner.name not in _foldable():
        return False
    operands = owner.operands
    return len(operands) > 0 and all(is_constant(v, depth - 1) for v in operands)


@functools.cache
def _foldable() -> frozenset[str]:
    """Return the deterministic ops."""
    pure = (c for c in OPS.values() if c.is_pure() and not c.REGIONS)
    return frozenset(c.OPERATION_NAME for c in pure)


def splat(value: ir.Value) -> Any:
    """Return the number of a splat constant, through views; None for other values."""
    owner = value.owner
    for _ in range(_DEPTH):
        if isinstance(owner, ir.Block):
            return None
        if is_literal(owner):
            break
        if not is_a(owner, VIEWS_AND_SLICE):
            return None
        owner = owner.operands[0].owner
    else:
        return None
    attributes = owner.attributes
    memo = MEMO.get()
    if memo is None or "value" not in attributes:
        return _literal_splat(owner)
    value = attributes["value"]
    if value not in memo.splats:
        memo.splats[value] = _literal_splat(owner)
    return memo.splats[value]


def _literal_splat(owner: ir.Operation) -> Any:
    """Return the number of a splat literal; None for large literals, which are in the store."""
    elements = TensorType.of(owner.results[0]).elements
    if not elements or ("key" in owner.attributes and elements != 1):
        return None
    array = literals.array_of(owner)
    if not any(array.strides):
        return array.flat[0]
    array = array.reshape(-1)
    return array[0] if bool(np.all(array == array[0])) or elements == 1 else None


def is_splat(value: ir.Value, number: float) -> bool:
    """Say whether every element of `value` is the constant `number`."""
    found = splat(value)
    return found is not None and bool(found == number)


def constant_map(value: ir.Value) -> tuple[ir.Value, Map] | None:
    """Return the constant behind views and its index map; None when not constant."""
    if not is_constant(value):
        return None
    found = trace(value)
    return None if found is None else (found[0], found[1])


def is_own(value: ir.Value) -> bool:
    """Return whether a constant has one reader, so that its folded form replaces it."""
    while has_one_use(value):
        owner = value.owner
        if isinstance(owner, ir.Block) or not len(owner.operands):
            return True
        value = owner.operands[0]
    return False


def copied(value: ir.Value) -> ir.Value:
    """Rebuild a constant expression at the insertion point.

    For patterns that build before their root, where `value` may not be defined yet.
    """
    made: dict[ir.Value, ir.Value] = {}

    def copy(v: ir.Value) -> ir.Value:
        if v not in made:
            op = v.owner.operation
            operands = [copy(x) for x in op.operands]
            attributes = {k: op.attributes[k] for k in _names(op)}
            new = ir.Operation.create(op.name, [r.type for r in op.results], operands, attributes)
            for old, result in zip(op.results, new.results, strict=True):
                made[old] = result
        return made[v]

    return copy(value)


def _names(op: ir.Operation) -> list[str]:
    return list(op.attributes)


def can_join(values: Sequence[ir.Value]) -> bool:
    """Say whether all of `values` are constants that `joined` takes."""
    return all(TensorType.of(v).is_static and constant_map(v) is not None for v in values)


def joined(
    rw: Rewriter, values: Sequence[ir.Value], axis: int, keep: Iterable[int] = ()
) -> ir.Value | None:
    """Build the concatenation of constants along `axis` at the insertion point.

    Axes along which none of them varies are repeated afterwards, except those in `keep`. If one is
    not constant, or has dynamic dims, it builds nothing and returns None.
    """
    dims = list(TensorType.of(values[0]).dims)
    if not can_join(values):
        return None
    dims[axis] = sum(TensorType.of(v).dims[axis] for v in values)
    kept = {axis, *keep}
    number = splat(values[0]) if len(kept) == 1 else None
    # zeros of both signs are equal
    if number and all(is_splat(v, number) for v in values):
        return rw.multibroadcast(rw.literal(number, rw.dtype(values[0])), dims)
    sources = [f for v in values if (f := constant_map(v)) is not None]
    for _, m in sources:
        kept |= varying(m)
    parts: list[ir.Value] = []
    for (source, m), v in zip(sources, values, strict=True):
        own = TensorType.of(v).dims
        small = tuple(
            (atoms or (((own[i], 0),) if own[i] != 1 else ())) if i in kept else ()
            for i, atoms in enumerate(m)
        )
        parts.append(build_map(rw, copied(source), small))
    wide = parts[0] if len(parts) == 1 else rw.op("concat", parts, axis=axis)
    return rw.multibroadcast(wide, dims)
