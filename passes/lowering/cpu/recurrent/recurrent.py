"""Recurrent steps that the CPU runs as one kernel, and the operands of that kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from mgx_mlir.core import dtypes, literals
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.activations import Activation
from mgx_mlir.dialects.migraphx.broadcasts import DimensionsOf
from mgx_mlir.dialects.migraphx.recurrent_steps import GruSteps, LstmSteps, RnnSteps
from mgx_mlir.dialects.migraphx.rnn import Gru, Lstm, Rnn, activations, direction_count
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.isa import AVX512, Isa
from mgx_mlir.passes.lowering.cpu.frame.sites import by_form
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.matmul.instructions import byte_unit
from mgx_mlir.passes.lowering.cpu.recurrent.activations import Function, vector_function
from mgx_mlir.passes.lowering.cpu.recurrent.recurrent_codes import pack_bytes
from mgx_mlir.passes.lowering.cpu.recurrent.recurrent_kernel import Network, pack, steps_kernel
from mgx_mlir.passes.lowering.registry import Results
from mgx_mlir.passes.lowering.select import KernelRule

StepsOp: TypeAlias = RnnSteps | GruSteps | LstmSteps
AnyNetwork: TypeAlias = Rnn | Gru | Lstm | StepsOp

STEPS = (RnnSteps, GruSteps, LstmSteps)
_TYPES = (dtypes.FLOAT, dtypes.HALF, dtypes.BF16)


def refusal(op: AnyNetwork) -> str | None:
    """Return why no vector kernel runs the steps of a network, None if one does."""
    t = TensorType.of(op.input)
    if t.dtype not in _TYPES:
        return f"it computes in {t.dtype}"
    if 0 in t.dims:
        return "it has no elements"
    if not TensorType.of(op.recurrence).is_static:
        return "its weights have dynamic dims"
    for f in (f for row in _functions(op) for f in row):
        if vector_function(f) is None:
            return f"its activation {f.name} is not computed on vectors"
    # the widest registers need the most scratch
    if not _network(op).rows(1, AVX512):
        return f"the states of {op.hidden_size} hidden units do not fit into scratch"
    return None


def build(
    e: LoweringContext, op: StepsOp, ins: Sequence[Results | None], isa: Isa
) -> list[ir.Value]:
    """Build the steps of a network as one kernel; `refusal` is None."""
    names = ["x", "r", "bias", "lens", "h", "c", "peephole", "scale"]
    given = {n: v for n, v in zip(names, ins, strict=False) if isinstance(v, ir.Value)}
    network, recurrence = _network(op), given.pop("r")
    steps, batch, _ = e.extents(given["x"])
    if network.bytes:
        given["r0"], given["totals"] = _packed_bytes(e, op, network, isa)
    else:
        for i, packed in enumerate(_packed(e, op, network, recurrence, isa.lanes)):
            given[f"r{i}"] = packed
    t = TensorType.of(op.out)
    results = dict(zip(("out", "cells"), op.operation.results, strict=False))
    wanted = [name for name, r in results.items() if _is_read(r)] or ["out"]
    made = steps_kernel(network, isa, (steps, batch), given, wanted, t.dtype)
    found = dict(zip(wanted, (e.refine(v, t) for v in made), strict=True))
    return [found.get(name, found[wanted[0]]) for name in results]


RULE = KernelRule(
    "recurrent", STEPS, by_form(refusal),
    lambda e, site, _: build(e, site.op, site.operands, site.isa), asks=refusal,
)  # fmt: skip


def _is_read(result: ir.Value) -> bool:
    """Return whether a result is read: IREE would keep an unread one on the stack."""
    return any(not is_a(use.owner.operation, DimensionsOf) for use in result.uses)


def _packed_bytes(e: LoweringContext, op: StepsOp, network: Network, isa: Isa) -> list[ir.Value]:
    """Return R of i8 as the kernel reads it, and the sums of its rows."""
    array, lanes, unit = literals.array_of(op.recurrence), isa.lanes, byte_unit(isa)

    def packed() -> np.ndarray:
        return pack_bytes(pack(array.astype(np.float32), network, lanes)[0], lanes, unit)

    def totals() -> np.ndarray:
        return array.astype(np.int32).sum(-1, dtype=np.int32)

    return [
        e.parameter(e.repacked(array, ("recurrent_bytes", lanes, unit), packed)),
        e.parameter(e.repacked(array, ("recurrent_totals",), totals)),
    ]


def _packed(
    e: LoweringContext, op: StepsOp, network: Network, recurrence: ir.Value, lanes: int
) -> list[ir.Value]:
    """Return R in the kernel's layout: a parameter, or computed at run time."""
    if literals.is_literal(op.recurrence.owner):
        array = literals.array_of(op.recurrence)
        return [
            e.parameter(
                e.repacked(
                    array,
                    ("recurrent", network.groups, lanes, i),
                    lambda i=i: pack(array.astype(np.float32), network, lanes)[i],
                )
            )
            for i in range(len(network.groups))
        ]
    h, count = network.hidden, network.registers(lanes)
    wide = e.cast_tensor(recurrence, TensorType.of(op.recurrence).dtype, dtypes.FLOAT)
    found: list[ir.Value] = []
    for group in network.groups:

        def element(where: list[ir.Value], first: int = group[0]) -> ir.Value:
            d, register, depth, place = where
            gate = e.add(e.div(place, lanes), first)
            unit = e.add(e.mul(register, lanes), e.rem(place, lanes))
            row = e.add(e.mul(gate, h), e.min(unit, h - 1))  # past the last unit: dropped
            return index.read(wide, [d, e.index(row), depth])

        dims = [network.directions, count, h, len(group) * lanes]
        found.append(index.from_positions_alone(e, dims, dtypes.FLOAT, element))
    return found


def _network(op: AnyNetwork) -> Network:
    d, h = direction_count(op.direction), op.hidden_size
    functions = tuple(_of_directions(own) for own in zip(*_functions(op), strict=True))
    backward = op.direction == "reverse"
    if isinstance(op, Rnn | RnnSteps):
        return Network(((0,),), 1, h, d, backward, op.clip, functions)
    if isinstance(op, Gru | GruSteps):
        late = bool(op.linear_before_reset)
        groups = ((0, 1, 2),) if late else ((0, 1), (2,))
        return Network(groups, 3, h, d, backward, op.clip, functions, late=late)
    tied = bool(op.input_forget)
    groups = ((0, 1, 2, 3),)
    return Network(
        groups, 4, h, d, backward, op.clip, functions, forget_tied=tied, has_cell=True,
        quantized=_is_quantized(op), bytes=_is_quantized(op) and _bytes(op) is not None,
    )  # fmt: skip


def _is_quantized(op: AnyNetwork) -> bool:
    return isinstance(op, LstmSteps) and op.recurrence_scale is not None


def _bytes(op: AnyNetwork) -> np.ndarray | None:
    """Return constant R as i8 if all its values are such integers, else None."""
    if not literals.is_literal(op.recurrence.owner):
        return None
    array = literals.array_of(op.recurrence)
    small = np.clip(np.nan_to_num(array.astype(np.float32)), -128, 127).astype(np.int8)
    return small if (small == array).all() else None


def _of_directions(own: Sequence[Activation]) -> Function:
    """Return the gates' activation function for the direction that a workgroup runs."""
    kept = [f for a in own if (f := vector_function(a)) is not None]
    if len(kept) < 2 or len({(a.name, *a.values.items()) for a in own}) == 1:
        return kept[0]

    def either(k: WorkgroupBuilder, x: ir.Value) -> ir.Value:
        first = k.is_equal(k.at[0], 0)
        return arith.SelectOp(first, kept[0](k, x), kept[1](k, x)).result

    return either


def _functions(op: AnyNetwork) -> list[list[Activation]]:
    count = 1 if isinstance(op, Rnn | RnnSteps) else 2 if isinstance(op, Gru | GruSteps) else 3
    return activations(op.actv_func, count, direction_count(op.direction))
