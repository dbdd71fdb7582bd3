"""What the two regions of an `if` give, as one."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.control import joined
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Value


def same_count(yields: Sequence[Sequence[object]]) -> None:
    """ModelError where the branches give other numbers of values."""
    if len(yields[0]) != len(yields[1]):
        raise ModelError(
            f"the branches give {len(yields[0])} and {len(yields[1])} outputs, expected as many"
        )


def joined_types(yields: Sequence[Sequence[Value]]) -> list[TensorType]:
    """Return the type of each value of an `if` from what its two branches yield.

    Dims that differ are dynamic. ModelError where types differ, NotSupported where ranks do.
    """
    types = []
    for i, pair in enumerate(zip(*yields, strict=True)):
        a, c = (TensorType.of(v) for v in pair)
        if a.dtype is not c.dtype:
            raise ModelError(f"output {i} is {a} or {c}, expected one element type")
        if a.rank != c.rank:
            raise NotSupported(f"output {i} of rank {a.rank} or {c.rank}")
        types.append(joined(a, c))
    return types
