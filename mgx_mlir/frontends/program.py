"""Common form of imported programs: named arguments with dims, and no dead op."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.core.subbyte_types import ELEMENT, Narrow
from mgx_mlir.frontends.dims import Dim, DynamicDim
from mgx_mlir.programs.program_ir import DIMS, NAME
from mgx_mlir.rewrite.passes import diagnostics_text

DEBUG_SYMBOLS = "migraphx.debug_symbols"  # module attribute: printers show source node names


@dataclass(frozen=True)
class Parameter:
    """A parameter of the program: an input, or an element of an input list."""

    name: str
    dtype: DType
    dims: Sequence[Dim]
    number: int = 0  # ONNX's number of the element type


def drop_unused(block: ir.Block) -> None:
    """Erase dead operations, which folding and defaults leave behind."""
    for op in reversed(list(block.operations)):
        operation = op.operation
        if operation.name.startswith("migraphx.") and not any(
            any(True for _ in r.uses) for r in operation.results
        ):
            operation.erase()


def check_valid(module: ir.Module, source: str) -> None:
    """Raise ModelError if MLIR finds the finished program invalid."""
    try:
        valid, why = module.operation.verify(), ""
    except ir.MLIRError as e:
        valid, why = False, f": {diagnostics_text(e)}"
    if not valid:
        raise ModelError(f"the imported program does not verify{why}", location=source)


def type_of(dtype: DType, dims: Sequence[Dim]) -> TensorType:
    """Return the type of a tensor of these dims; ranges become dynamic."""
    return TensorType(dtype, tuple(d if isinstance(d, int) else DYN for d in dims))


def argument_attribute(name: str, dims: Sequence[Dim], kind: Narrow | None = None) -> ir.Attribute:
    """Return {migraphx.name, migraphx.dims?, migraphx.element?}; dims has an integer or a range per
    dim.
    """
    entries: dict[str, ir.Attribute] = {NAME: ir.StringAttr.get(name)}
    if kind is not None:
        entries[ELEMENT] = ir.StringAttr.get(kind.name)
    if any(isinstance(d, DynamicDim) for d in dims):
        i64 = ir.IntegerType.get_signless(64)
        entries[DIMS] = ir.ArrayAttr.get(
            [ir.IntegerAttr.get(i64, d) if isinstance(d, int) else d.attribute() for d in dims]
        )
    return ir.DictAttr.get(entries)
