"""The operands of a program that are computed in 8 bits, and what is known of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mgx_mlir.core import literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.broadcasts import Multibroadcast
from mgx_mlir.dialects.migraphx.linear import Convolution, Dot
from mgx_mlir.passes.analysis.retype import named_ops
from mgx_mlir.programs.program_ir import ProgramIR, entry_block

OPS = ("dot", "convolution")
Place = tuple[int, int]  # (argument, -1), or (position of the op in @main's block, result)


@dataclass(frozen=True)
class Site:
    """A product whose second operand is constant, or whose operands are both computed.

    `name` is unique in the program; `place` says which value the first operand is, so that it is
    found in a copy; `weights` are None where the second operand is computed.
    """

    name: str
    kind: str
    op: ir.Operation
    values: tuple[Place, ...]  # of the operands that are computed, in order
    weights: np.ndarray | None

    @property
    def channel_axis(self) -> int:
        """The axis of the first operand along which the weights are summed."""
        return 1 if self.kind == "convolution" else -1

    @property
    def output_axis(self) -> int:
        """The axis of the weights that is not summed: each has a scale of its own."""
        return 0 if self.kind == "convolution" else -1


def sites(
    program: ProgramIR, names: Sequence[str] = OPS, *, computed_operands: bool = False
) -> list[Site]:
    """List the products of @main that can be computed in 8 bits, in order.

    Left out: ops in the bodies of If and Loop, whose operands no calibration sees; first operands
    that are constant; and, without `computed_operands`, products of two computed operands, which
    are attention's: it stays one kernel.
    """
    found: list[Site] = []
    used: dict[str, int] = {}
    with program.ctx, program.store.active():
        block = entry_block(program.main())
        places = _places(block)
        for op in named_ops(program.module.operation, names):
            if op.block != block or not is_a(op, (Dot, Convolution)):
                continue
            x, w = op.operands[0], op.operands[1]
            if not TensorType.of(x).dtype.is_float or x not in places or literal_of(x) is not None:
                continue
            constant = literal_of(w)
            if constant is None and (w not in places or not computed_operands):
                continue
            label = op_name(op)
            used[label] = used.get(label, 0) + 1
            count = used[label]
            values = (places[x],) if constant is not None else (places[x], places[w])
            found.append(
                Site(
                    label if count == 1 else f"{label}#{count}",
                    "convolution" if is_a(op, Convolution) else "dot",
                    op, values,
                    None if constant is None else literals.array_of(constant.owner),
                )
            )  # fmt: skip
    return found


def _places(block: ir.Block) -> dict[ir.Value, Place]:
    places: dict[ir.Value, Place] = {v: (i, -1) for i, v in enumerate(block.arguments)}
    for at, view in enumerate(block.operations):
        for k, v in enumerate(view.operation.results):
            if isinstance(v.type, ir.RankedTensorType):
                places[v] = (at, k)
    return places


def at_place(block: ir.Block, place: Place) -> ir.Value:
    """Return the value at a place of a block, which is that of a copy of the program."""
    at, k = place
    return block.arguments[at] if k < 0 else list(block.operations)[at].operation.results[k]


def literal_of(value: ir.Value) -> ir.Value | None:
    """Return the literal that a value is, also where it is repeated along new leading dims."""
    rank = TensorType.of(value).rank
    dims = TensorType.of(value).dims
    while not isinstance(value.owner, ir.Block):
        own = TensorType.of(value).dims
        if own != dims[rank - len(own) :]:
            return None
        if literals.is_literal(value):
            return value if TensorType.of(value).dtype.is_float else None
        if not is_a(value.owner, Multibroadcast) or len(value.owner.operation.operands) != 1:
            return None
        value = value.owner.operation.operands[0]
    return None


def op_name(op: ir.Operation) -> str:
    """Return the name of the source node that an op comes from, else the op's own name."""
    text = str(op.location)
    first = text.find('"')
    last = text.find('"', first + 1)
    if first >= 0 and last > first + 1:
        return text[first + 1 : last]
    return op.name.removeprefix("migraphx.")
