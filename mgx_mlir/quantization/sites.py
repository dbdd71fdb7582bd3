"""Dots and convolutions of a program that can be computed in 8 bits, and their operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mgx_mlir.core import literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.linear import Convolution, Dot
from mgx_mlir.passes.analysis.repeated import repeated
from mgx_mlir.passes.analysis.retype import named_ops
from mgx_mlir.programs.program_ir import ProgramIR, entry_block
from mgx_mlir.quantization.bodies import values_of, why_not_calibrated

OPS = ("dot", "convolution")
Place = int  # index of a value in the order of @main


@dataclass(frozen=True)
class Site:
    """A dot or convolution whose second operand is constant, or whose operands are both computed.

    `name` is unique in the program. `place` is the index of the first operand, valid in copies too.
    `weights` is None if the second operand is computed.
    """

    name: str
    kind: str
    op: ir.Operation
    values: tuple[Place, ...]  # indices of the computed operands, in order
    weights: np.ndarray | None

    @property
    def channel_axis(self) -> int:
        """Axis of the first operand along which the weights are summed."""
        return 1 if self.kind == "convolution" else -1

    @property
    def output_axis(self) -> int:
        """Axis of the weights that is not summed: each index has its own scale."""
        return 0 if self.kind == "convolution" else -1


@dataclass(frozen=True)
class LeftOut:
    """A dot or convolution that no option quantises, and the reason."""

    name: str
    kind: str
    why: str


def sites(
    program: ProgramIR, names: Sequence[str] = OPS, *, computed_operands: bool = False
) -> list[Site]:
    """List the dots and convolutions of @main, including bodies of If and Loop, that 8 bits
    support.

    Left out are ops in bodies of Loops whose operands a calibration cannot observe, and ops with a
    constant first operand. Without `computed_operands`, dots of two computed operands are left out
    too: they belong to attention, which stays one kernel.
    """
    every = _products(program, names, computed_operands)
    return [s for s in every if isinstance(s, Site)]


def left_out(
    program: ProgramIR, names: Sequence[str] = OPS, *, computed_operands: bool = False
) -> list[LeftOut]:
    """List the dots and convolutions that `sites` leaves out, in order; also ops not in `names`."""
    every = _products(program, OPS, computed_operands)
    found = [s for s in every if isinstance(s, LeftOut)]
    others = [s for s in every if isinstance(s, Site) and s.kind not in names]
    found += [LeftOut(s.name, s.kind, f"only {' and '.join(names)} were asked for") for s in others]
    return found


def _products(
    program: ProgramIR, names: Sequence[str], computed_operands: bool
) -> list[Site | LeftOut]:
    found: list[Site | LeftOut] = []
    used: dict[str, int] = {}
    with program.ctx, program.store.active():
        block = entry_block(program.main())
        places = _places(block)
        for op in named_ops(program.module.operation, names):
            if not is_a(op, (Dot, Convolution)):
                continue
            kind = "convolution" if is_a(op, Convolution) else "dot"
            label = op_name(op)
            used[label] = used.get(label, 0) + 1
            name = label if used[label] == 1 else f"{label}#{used[label]}"
            x, w = op.operands[0], op.operands[1]
            constant = literal_of(w)
            why = _why_not(
                op, block, places, is_computed=constant is None and not computed_operands
            )
            if why is not None:
                found.append(LeftOut(name, kind, why))
                continue
            values = (places[x],) if constant is not None else (places[x], places[w])
            array = None if constant is None else literals.array_of(constant.owner)
            if array is not None and not np.isfinite(array).all():
                # codes cannot represent NaN and infinity; both would become finite numbers
                found.append(LeftOut(name, kind, "its weights are not all finite"))
                continue
            found.append(Site(name, kind, op, values, array))
    return found


def _why_not(
    op: ir.Operation, block: ir.Block, places: dict[ir.Value, Place], *, is_computed: bool
) -> str | None:
    """Return why an op is left out, None if it is not."""
    x, w = op.operands[0], op.operands[1]
    if not TensorType.of(x).dtype.is_float:
        return f"its operands are {TensorType.of(x).dtype.name} already"
    if literal_of(x) is not None:
        return "its first operand is constant"
    if x not in places or (literal_of(w) is None and w not in places):
        return "its operands are no tensors of the program's main function"
    unseen = [why_not_calibrated(v, block) for v in (x, w) if literal_of(v) is None]
    for why in unseen:
        if why is not None:
            return why
    if is_computed:
        return "both operands are computed, as in attention, which stays one kernel"
    return None


def _places(block: ir.Block) -> dict[ir.Value, Place]:
    every = enumerate(values_of(block))
    return {v: i for i, v in every if isinstance(v.type, ir.RankedTensorType)}


def at_places(block: ir.Block, places: Sequence[Place]) -> list[ir.Value]:
    """Return the values at these indices of a block, which is that of a copy of the program."""
    every = list(values_of(block))
    return [every[p] for p in places]


def literal_of(value: ir.Value) -> ir.Value | None:
    """Return the float literal of a value, also if it is repeated along leading dims."""
    found = repeated(value)
    if found is None or not TensorType.of(found.literal).dtype.is_float:
        return None
    return found.literal


def op_name(op: ir.Operation) -> str:
    """Return the name of the source node that an op comes from, else the op's own name."""
    text = str(op.location)
    first = text.find('"')
    last = text.find('"', first + 1)
    if first >= 0 and last > first + 1:
        return text[first + 1 : last]
    return op.name.removeprefix("migraphx.")
