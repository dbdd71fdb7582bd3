"""Lowering of branches to scf.if, with tensors and host scalars as results."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core.ir import ir, scf, tensor
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.control import If
from mgx_mlir.passes.analysis.control_flow import SCALARS, is_static
from mgx_mlir.passes.lowering import assertions
from mgx_mlir.passes.lowering.context import LoweringContext, Scope
from mgx_mlir.passes.lowering.iree import buffer_views
from mgx_mlir.passes.lowering.ops.carried import (
    Carried,
    elements_of,
    flag,
    flatten,
    opaque,
    shared_with_others,
    unflatten,
)
from mgx_mlir.passes.lowering.registry import Results, lowers


@lowers(If)
def if_(op: If, ins: tuple[()], e: LoweringContext) -> Results:
    """scf.if; a condition known now leaves its branch. Small integers come out as scalars."""
    operation = op.operation
    operands, results = list(operation.operands), list(operation.results)
    cond = flag(e, operands[0])
    blocks = [region.blocks[0] for region in operation.regions]
    if isinstance(cond, bool):
        block = blocks[0 if cond else 1]
        _pass_through(e, block, operands[1:])
        yields = e.statements(block)
        held = [e.elements(v) for v in yields]
        return [e.expr(v) if x is None else x for v, x in zip(yields, held, strict=True)]
    # built without results, whose types are known after both branches are lowered
    draft = ir.Operation.create("scf.if", operands=[cond], regions=2)
    lowered: list[tuple[ir.Block, Scope, list[ir.Value]]] = []
    for block, region in zip(blocks, draft.regions, strict=True):
        made = region.blocks.append()
        with ir.InsertionPoint(made), e.inner_scope() as scope:
            _pass_through(e, block, operands[1:])
            lowered.append((made, scope, e.statements(block)))
    static = is_static(operation) and all(TensorType.of(r).is_static for r in results)
    types = [TensorType.of(r) for r in results]
    scalars = [
        t.is_static
        and t.elements <= SCALARS
        and all(yields[i] in scope.elements for _, scope, yields in lowered)
        for i, t in enumerate(types)
    ]
    found: list[list[Carried]] = []
    for made, scope, yields in lowered:
        with ir.InsertionPoint(made), e.inner_scope(scope):
            found.append([
                elements_of(e, v) if is_host else e.tensor(v)
                for v, is_host in zip(yields, scalars, strict=True)
            ])  # fmt: skip
    kinds = [_joined(e, t, *pair) for t, *pair in zip(types, *found, strict=True)]
    outs: list[ir.Type] = []
    for (made, _, yields), own, block in zip(lowered, found, blocks, strict=True):
        with ir.InsertionPoint(made):
            fitted = [
                tensor.CastOp(k, v).result
                if isinstance(v, ir.Value) and k is not None and v.type != k
                else v
                for v, k in zip(own, kinds, strict=True)
            ]
            flat = flatten(e, fitted, types, shared_with_others(yields, block), static=static)
            scf.YieldOp(flat)
            assertions.wait(e, made)
            outs = [v.type for v in flat]
    branch = ir.Operation.create("scf.if", results=outs, operands=[cond], regions=2)
    for (made, _, _), region in zip(lowered, branch.regions, strict=True):
        made.append_to(region)
    draft.erase()
    values = [
        buffer_views.settled(e, v) if isinstance(v.type, ir.RankedTensorType) else opaque(v)
        for v in branch.results
    ]
    return list(unflatten(e, values, types, scalars, kinds, static=static))


def _pass_through(e: LoweringContext, block: ir.Block, operands: Sequence[ir.Value]) -> None:
    """Let a block's arguments stand for operands of its op."""
    for argument, v in zip(block.arguments, operands, strict=True):
        held = e.elements(v)
        if held is not None:
            e.bind(argument, held)
        if held is None or v in e.scope.exprs:
            e.bind(argument, e.expr(v))


def _joined(e: LoweringContext, t: TensorType, a: Carried, b: Carried) -> ir.Type | None:
    """Return the common type of two branches' tensors; None for scalars."""
    if not isinstance(a, ir.Value) or not isinstance(b, ir.Value):
        return None
    dims = [
        x if x == y else DYN
        for x, y in zip(
            ir.RankedTensorType(a.type).shape, ir.RankedTensorType(b.type).shape, strict=True
        )
    ]
    return e.mlir_type(t.with_dims(dims))
