"""Running an op's `infer` on dims that have names (core/dynamic_dims.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mgx_mlir.core.dynamic_dims import NamedDim, UndecidedError, is_named
from mgx_mlir.core.shapes import DYN, TensorType


def inferred(cls: Any, o: Any) -> TensorType | Sequence[TensorType] | None:
    """Return the result types of an op class's `infer` for a view `o` of an op.

    Where it compares a named dim and the answer depends on the sizes, the types of all answers are
    joined. Where they cannot be joined, `infer` sees named dims as `?`.
    """
    try:
        return cls.infer(o)
    except UndecidedError:
        dims = (d for g in cls.OPERANDS for t in _types(getattr(o, g.name)) for d in t.dims)
        first = next((d for d in dims if isinstance(d, NamedDim)), None)
        found = None if first is None else first.inferred(cls, o)
        if found is not None:
            return found
        for group in cls.OPERANDS:
            held = getattr(o, group.name)
            plain = [_unnamed(t) for t in _types(held)]
            if held is not None:
                setattr(o, group.name, plain if group.arity == "variadic" else plain[0])
        return cls.infer(o)


def _types(held: TensorType | Sequence[TensorType] | None) -> Sequence[TensorType]:
    if held is None:
        return ()
    return (held,) if isinstance(held, TensorType) else held


def _unnamed(t: TensorType) -> TensorType:
    return t.with_dims(DYN if is_named(d) else d for d in t.dims)
