"""Rules for the values of inputs: indices of axes, and divisors that are not 0.

They are derived from the imported program, where an op of the entry function reads an input through
views and conversions only. Calls check them on the host. An importer adds further rules to the
function (frontends/bounds.py).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mgx_mlir.core import literals
from mgx_mlir.core.errors import CompileError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import PREFIX, Op, attributes_of, is_a
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.broadcasts import (
    Broadcast,
    BroadcastWithDims,
    Multibroadcast,
    Scalar,
)
from mgx_mlir.dialects.migraphx.convert import Convert
from mgx_mlir.dialects.migraphx.indexing import Gather, GatherND
from mgx_mlir.dialects.migraphx.movement import Concat
from mgx_mlir.dialects.migraphx.pointwise_binary import Div, FMod, Mod
from mgx_mlir.dialects.migraphx.require import Require
from mgx_mlir.dialects.migraphx.roialign import RoiAlign
from mgx_mlir.dialects.migraphx.scatter import ScatterBase, ScatterNDBase
from mgx_mlir.dialects.migraphx.views import (
    Contiguous,
    Flatten,
    Identity,
    Layout,
    Reshape,
    Squeeze,
    Transpose,
    Unsqueeze,
)
from mgx_mlir.programs.program_ir import VALUES, ProgramIR, entry_block
from mgx_mlir.programs.value_rules import ValueRule, as_text, rules_of

_NOPS = (Identity, Contiguous, Layout, Require)
_VIEWS = (
    *_NOPS, Reshape, Squeeze, Unsqueeze, Flatten, Transpose, Multibroadcast, Broadcast,
    BroadcastWithDims, Scalar,
)  # fmt: skip


def state_values(program: ProgramIR) -> None:
    """Add rules for the inputs' values to those on the entry function. CompileError for a constant
    index that is out of range."""
    main = program.main()
    block = entry_block(main)
    arguments: dict[ir.Value, int] = {a: i for i, a in enumerate(block.arguments)}
    with program.ctx, program.store.active():
        rules: dict[ValueRule, None] = {}
        if VALUES in main.attributes:
            rules.update(dict.fromkeys(rules_of(ir.StringAttr(main.attributes[VALUES]).value)))
        for op in block.operations:
            rules.update(dict.fromkeys(_rules(op.operation, arguments)))
        if rules:
            main.attributes[VALUES] = ir.StringAttr.get(as_text(list(rules)))


def source_of(v: ir.Value) -> ir.Value:
    """Return the source of `v` through views and widening conversions."""
    return _behind(v, _VIEWS)


def dim_source(v: ir.Value, axis: int) -> tuple[ir.Value, int] | None:
    """Return the argument, and its dim, whose size is that of a dim of `v`; None: computed."""
    return _dim_of(v, axis)


def _rules(op: ir.Operation, arguments: dict[ir.Value, int]) -> Iterator[ValueRule]:
    where, name = str(op.location), op.name.removeprefix(PREFIX)
    if is_a(op, (Div, Mod, FMod)):
        divisor = op.operands[1]
        source = None if TensorType.of(divisor).dtype.is_float else _behind(divisor, _VIEWS)
        if source in arguments:
            yield ValueRule(arguments[source], where, operator=name)
        return
    for indices, data, axis, column in _indexed(op):
        extent = TensorType.of(data).dims[axis]
        place = _dim_of(data, axis) if extent == DYN else None
        if extent == DYN and (place is None or place[0] not in arguments):
            continue
        source = _behind(indices, _VIEWS if column is None else _NOPS)
        if source in arguments:
            terms = () if place is None else ((arguments[place[0]], place[1], 1),)
            known = None if extent == DYN else extent
            yield ValueRule(arguments[source], where, known, terms, column, operator=name)
        elif extent != DYN and literals.is_literal(source):
            _check_constant(literals.array_of(source), extent, column, where)


def _indexed(op: ir.Operation) -> Iterator[tuple[ir.Value, ir.Value, int, int | None]]:
    """Return (indices, data, axis, column of the indices) of an op that accesses by index."""
    if is_a(op, Gather) or (is_a(op, ScatterBase) and len(op.operands) == 3):
        attributes = attributes_of(op)
        if not attributes.get("skip_out_of_bounds"):
            axis = attributes["axis"]
            yield op.operands[1], op.operands[0], axis % TensorType.of(op.operands[0]).rank, None
    elif is_a(op, RoiAlign):
        yield op.operands[2], op.operands[0], 0, None
    elif is_a(op, (GatherND, ScatterNDBase)):
        data, indices = op.operands[0], op.operands[1]
        first = attributes_of(op).get("batch_dims", 0)
        count = TensorType.of(indices).dims[-1]
        parts = _columns(indices, count)
        for i in range(count):
            if parts is not None:
                yield parts[i], data, first + i, None
            else:
                yield indices, data, first + i, i if count > 1 else None


def _columns(indices: ir.Value, count: int) -> list[ir.Value] | None:
    """Return the columns of concatenated index tuples, else None."""
    op = indices.owner
    if not is_a(op, Concat) or len(op.operands) != count:
        return None
    rank = TensorType.of(indices).rank
    if attributes_of(op)["axis"] % rank != rank - 1:
        return None
    return list(op.operands)


def _behind(v: ir.Value, views: tuple[type[Op], ...]) -> ir.Value:
    """Return the source of `v` behind views and widening conversions of integers."""
    while not isinstance(v.owner, ir.Block):
        op = v.owner
        widened = (
            is_a(op, Convert)
            and not TensorType.of(op.operands[0]).dtype.is_float
            and TensorType.of(op.operands[0]).dtype.size <= TensorType.of(v).dtype.size
        )
        if not is_a(op, views) and not widened:
            break
        v = op.operands[0]
    return v


def _dim_of(v: ir.Value, axis: int) -> tuple[ir.Value, int] | None:
    """Return the argument, and its dim, whose size is that of a dim of `v`."""
    source = _behind(v, _NOPS)
    return (source, axis) if isinstance(source.owner, ir.Block) else None


def _check_constant(array: np.ndarray, extent: int, column: int | None, where: str) -> None:
    values = array if column is None else array[..., column]
    if values.size and not (-extent <= int(values.min()) and int(values.max()) < extent):
        raise CompileError(
            f"expected indices in [{-extent}, {extent}), got {int(values.min())} to "
            f"{int(values.max())}",
            location=where,
        )
