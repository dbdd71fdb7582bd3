"""Dispatches of their own: one that cannot be built leaves nothing behind."""

from __future__ import annotations

from typing import cast

import pytest

from mgx_mlir.core.context import new_context
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext


class _Outside:
    """The lowering context that `alone` needs, outside of a region."""

    in_region = False

    def dynamic_values(self, extents: list[int]) -> list[ir.Value]:
        return []


def test_what_cannot_be_built_leaves_no_dispatch() -> None:
    """Whoever asked lowers it in another form; an empty region would be compiled with it."""

    def refusing() -> list[ir.Value]:
        raise LookupError("not in this form")

    with new_context() as ctx, ir.Location.unknown():
        ctx.allow_unregistered_dialects = True
        module = ir.Module.create()
        kind = ir.RankedTensorType.get([2], ir.F32Type.get())
        with ir.InsertionPoint(module.body), pytest.raises(LookupError, match="in this form"):
            index.alone(cast(LoweringContext, _Outside()), [kind], [[2]], refusing)
        assert list(module.body.operations) == []
