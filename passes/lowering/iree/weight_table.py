"""Small weights of a module in one table per element type, which kernels read at offsets.

IREE makes a global per weight, and one initializer that loads all of them. Its passes over the
initializer are quadratic in the number of weights: 61 % of the compile of an
MLP of 4,000 nodes. A slice of a table is an offset of a kernel's binding, and copies nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mgx_mlir.core import attrs
from mgx_mlir.core.filling import AT_ONCE
from mgx_mlir.core.huge_pages import PAGE, huge_empty
from mgx_mlir.core.ir import ir, ml_program, tensor
from mgx_mlir.core.literals import ALIGNMENT, aligned_empty, own
from mgx_mlir.passes.lowering.iree.iree_ops import barrier, reshaped
from mgx_mlir.passes.lowering.weights import Weights

# Most bytes of a weight in a table, which is a copy. Larger ones are few, and may still be being
# filled.
LARGEST = AT_ONCE
# Weights of a program that has a table: IREE takes 1 ms for each, and fewer are not worth a copy.
LEAST = 16
_DISPATCH = "flow.dispatch"


@dataclass
class _Row:
    """A weight that goes into a table: its array, and the values that it has in the module."""

    array: np.ndarray
    values: list[ir.Value]


def make_tables(module: ir.Module, weights: Weights) -> None:
    """global, load; constant -> global of all, load, slices

    Only for weights that kernels read directly. IREE evaluates other uses of a separate global at
    load time, but uses of a table, which is behind a barrier, in each call.
    """
    loads, constants = _found(module)
    rows: dict[str, list[_Row]] = {}
    named: list[str] = []
    for name, values in loads.items():
        array = weights.arrays.get(name)
        if array is None or array.nbytes > LARGEST or not all(map(_fits, values)):
            continue
        named.append(name)
        rows.setdefault(_element(values[0]), []).append(_Row(array, values))
    for value in filter(_fits, constants):
        attribute = value.owner.attributes["value"]
        array = None if _is_splat(attribute) else attrs.array_of(attribute)
        if array is not None and array.size > 1 and array.nbytes <= LARGEST:
            rows.setdefault(_element(value), []).append(_Row(array, [value]))
    if sum(map(len, rows.values())) < LEAST:
        return
    for element, own_rows in sorted(rows.items()):
        weights.arrays[f"table_{element}"] = _table(module, element, own_rows)
    for name in named:
        del weights.arrays[name]
    for view in list(module.body.operations):
        op = view.operation
        is_global = op.name == "ml_program.global"
        if is_global and ir.StringAttr(op.attributes["sym_name"]).value in named:
            op.erase()


def _found(module: ir.Module) -> tuple[dict[str, list[ir.Value]], list[ir.Value]]:
    """Return the loads of each weight, and constants, in the functions of a module."""
    loads: dict[str, list[ir.Value]] = {}
    constants: list[ir.Value] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "flow.executable":
            return ir.WalkResult.SKIP
        if op.name == "ml_program.global_load_const":
            name = ir.FlatSymbolRefAttr(op.attributes["global"]).value
            loads.setdefault(name, []).append(op.results[0])
        elif op.name == "arith.constant" and isinstance(op.results[0].type, ir.RankedTensorType):
            constants.append(op.results[0])
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return loads, constants


def _fits(value: ir.Value) -> bool:
    """Say whether kernels alone read a value of whole bytes."""
    kind = ir.RankedTensorType(value.type)
    element = kind.element_type
    width = element.width if isinstance(element, ir.IntegerType | ir.FloatType) else 0
    users = [use.owner.name for use in value.uses]
    return width % 8 == 0 < width and bool(users) and set(users) == {_DISPATCH}


def _is_splat(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat


def _element(value: ir.Value) -> str:
    return str(ir.RankedTensorType(value.type).element_type)


def _table(module: ir.Module, element: str, rows: list[_Row]) -> np.ndarray:
    """Make the global of a table and the slices of it that replace the weights; its array."""
    dtype = rows[0].array.dtype
    offsets = list(_offsets(rows, dtype.itemsize))
    count = offsets.pop()
    size = count * dtype.itemsize
    bytes_ = huge_empty(size) if size >= PAGE else aligned_empty((size,), np.dtype(np.uint8))
    table = bytes_.view(dtype)
    table[...] = 0
    name = f"table_{element}"
    kind = ir.RankedTensorType.get([count], ir.Type.parse(element))
    with ir.InsertionPoint.at_block_begin(module.body):
        ml_program.GlobalOp(
            name,
            ir.TypeAttr.get(kind),
            value=ir.Attribute.parse(f'#flow.parameter.named<"model"::"{name}"> : {kind}'),
            sym_visibility=ir.StringAttr.get("private"),
        )
    tables: dict[ir.Operation, ir.Value] = {}
    for row, at in zip(rows, offsets, strict=True):
        table[at : at + row.array.size] = row.array.reshape(-1).view(dtype)
        for value in row.values:
            function = _function(value)
            if function not in tables:
                with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
                    loaded = ml_program.GlobalLoadConstOp(kind, ir.FlatSymbolRefAttr.get(name))
                    tables[function] = barrier(loaded.result)
            _replace(value, tables[function], at, row.array.size)
    return own(table)


def _offsets(rows: list[_Row], itemsize: int) -> Iterator[int]:
    """Yield the place of each row, and the size of the table, in elements."""
    step = ALIGNMENT // itemsize
    at = 0
    for row in rows:
        yield at
        at += -(-row.array.size // step) * step
    yield at


def _function(value: ir.Value) -> ir.Operation:
    op = value.owner.operation
    while op.name != "func.func":
        op = op.parent.operation
    return op


def _replace(value: ir.Value, table: ir.Value, at: int, size: int) -> None:
    """Replace a weight by a part of a table."""
    kind, op = ir.RankedTensorType(value.type), value.owner.operation
    flat = ir.RankedTensorType.get([size], kind.element_type)
    with ir.InsertionPoint(op), op.location:
        part = tensor.ExtractSliceOp(flat, table, [], [], [], [at], [size], [1]).result
        value.replace_all_uses_with(part if kind.rank == 1 else reshaped(part, kind, (), ()))
    op.erase()
