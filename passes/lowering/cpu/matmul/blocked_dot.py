"""The kernel rule of matmuls with constant weights of few bits on CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mgx_mlir.core import literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Kernel, is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.blocked_dot import BlockedDot
from mgx_mlir.dialects.migraphx.control import Yield
from mgx_mlir.dialects.migraphx.literal import Literal
from mgx_mlir.passes.lowering import views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.epilogue import Epilogue
from mgx_mlir.passes.lowering.cpu.frame.sites import KernelSite
from mgx_mlir.passes.lowering.cpu.matmul import dot as loops
from mgx_mlir.passes.lowering.cpu.matmul.dot_kernel import Rows, outside_epilogue
from mgx_mlir.passes.lowering.cpu.matmul.few_bits import UNIT, FewBits, panels, words
from mgx_mlir.passes.lowering.expr import Extent, Opaque
from mgx_mlir.passes.lowering.select import KernelRule, Refusal


def refusal(dot: BlockedDot) -> str | None:
    """Return why no vector kernel computes a product, None if one does."""
    weights = [dot.codes, dot.scales] + ([] if dot.zero_points is None else [dot.zero_points])
    if any(_literal(v) is None for v in weights):
        return "its weights are computed"
    x, out = TensorType.of(dot.input), TensorType.of(dot.out)
    if 0 in x.dims or 0 in out.dims:
        return "it has no elements"
    if x.dims[-1] % UNIT or dot.block_size % UNIT:
        return f"depth and blocks are no multiples of {UNIT}"
    return None


def _literal(v: ir.Value) -> ir.Value | None:
    """Return the literal that a kernel reads as `v`."""
    if isinstance(v.owner, ir.Block) and is_a(v.owner.owner.operation, Kernel):
        v = v.owner.owner.operation.operands[ir.BlockArgument(v).arg_number]
    return v if literals.is_literal(v) else None


@dataclass(frozen=True)
class _Plan:
    """A matmul and the pointwise ops behind it, on the sums."""

    dot: BlockedDot
    lead: Sequence[Extent]
    depth: int
    epilogue: Epilogue


def match(e: LoweringContext, site: KernelSite) -> _Plan | Refusal:
    """Take a kernel of one matmul whose other ops are computed on its sums."""
    members = site.members
    dots = [o for o in site.body.operations if isinstance(o, BlockedDot)]
    if len(dots) != 1:
        return Refusal(f"it has {len(dots)} matmuls with weights of few bits")
    (dot,) = dots
    reason = refusal(dot)
    if reason is not None:
        return Refusal(reason)
    left = outside_epilogue(members, [dot.operation])
    if left is not None:
        return left
    *lead, depth = e.expr_extents(e.expr(dot.input))
    assert isinstance(depth, int)
    total = Opaque(TensorType.of(dot.out), [*lead, TensorType.of(dot.out).dims[-1]])
    with e.kernel():  # views and pointwise ops wait to be asked for
        e.sizes.relations_of(dot.operation, type(dot))
        e.bind(dot.out, total)
        for o in members:
            if o != dot.operation and not is_a(o, (Literal, Yield)):
                e.operation(o)
        results = [e.expr(v) for v in members[-1].operands]
    epilogue = Epilogue(results, total, site.stored)
    if epilogue.refusal:
        return Refusal(epilogue.refusal)
    return _Plan(dot, lead, depth, epilogue)


def build(e: LoweringContext, site: KernelSite, plan: _Plan) -> list[ir.Value]:
    """Build the loops over the tiles of the result."""
    isa, dot, lead, depth, epilogue = site.isa, plan.dot, plan.lead, plan.depth, plan.epilogue
    x, columns = e.tensor(dot.input), TensorType.of(dot.out).dims[-1]
    flat = views.reshaped(e, x, [e.product(lead), depth]) if len(lead) > 1 else x
    zeros = None if dot.zero_points is None else TensorType.of(dot.zero_points).dtype
    form = FewBits(dot.bits, dot.block_size, zeros)
    shape = loops.DotShape(e.extent(flat, 0), depth, columns, bits=form)
    cut = loops.plan(shape, isa)
    made = loops.product(
        shape, cut, isa, (flat, *_weights(e, dot, cut.width)), 1, epilogue.inputs,
        epilogue.stored, Rows(epilogue, lead), lead,
    )  # fmt: skip
    return [views.reshaped(e, v, [*lead, columns]) for v in made]


RULE = KernelRule("few_bits_matmul", (), match, build, asks=refusal)


def _weights(e: LoweringContext, dot: BlockedDot, width: int) -> list[ir.Value]:
    """Return codes, scales and zero points in the order in which they are read."""
    given = [dot.codes, dot.scales] + ([] if dot.zero_points is None else [dot.zero_points])
    out: list[ir.Value] = []
    for i, v in enumerate(given):
        literal = _literal(v)
        assert literal is not None
        array = literals.array_of(literal)
        layout = words if i == 0 and dot.bits == 4 else panels

        def make(array: np.ndarray = array, layout: object = layout) -> np.ndarray:
            return (words if layout is words else panels)(array, width)

        out.append(e.parameter(e.repacked(array, (layout.__name__, width), make)))
    return out
