"""Joined results of an `if`'s two regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.control import joined
from mgx_mlir.frontends.helpers import compare
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder


def same_count(yields: Sequence[Sequence[object]]) -> None:
    """Raise ModelError if the branches yield different numbers of values."""
    if len(yields[0]) != len(yields[1]):
        raise ModelError(
            f"the branches give {len(yields[0])} and {len(yields[1])} outputs, expected equal "
            "numbers"
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


def choose(b: Builder, which: Value, count: int, make: Callable[[int], Value]) -> Value:
    """Return make(i) for the i equal to `which` at run time, the last one for other values.

    All have the same rank and dtype.
    """

    def from_(i: int) -> Value:
        if i == count - 1:
            return make(i)
        cond = compare(b, "equal", which, i)
        draft = OPS["if"](cond, [], results=[]).operation
        values = []
        for region, build in zip(
            draft.regions, (lambda: make(i), lambda: from_(i + 1)), strict=True
        ):
            with ir.InsertionPoint(region.blocks.append()):
                values.append(build())
                OPS["yield"](values[-1:])
        kind = joined(*(TensorType.of(v) for v in values))
        made = OPS["if"](cond, [], results=[kind]).operation
        for old, new in zip(draft.regions, made.regions, strict=True):
            old.blocks[0].append_to(new)
        draft.erase()
        return made.results[0]

    return from_(0)
