"""autocast_fp8_pass: a program of f8 arguments and results, called with f32."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.analysis.retype import type_option
from mgx_mlir.programs.program_ir import entry_block, main_function
from mgx_mlir.rewrite.passes import Pass, option


def _is_f8(value: ir.Value) -> bool:
    dtype = TensorType.of(value).dtype
    return dtype.is_float and dtype.size == 1


@dataclass(frozen=True)
class AutocastFp8Pass(Pass):
    """Give the main function f32 arguments and results instead of f8 ones, and convert inside.

    It serves callers that have no f8 arrays. Values that f8 cannot hold are rounded and saturated.
    The new arguments come after the others, the last first, as in MIGraphX's pass of this name.
    """

    name: ClassVar[str] = "autocast_fp8_pass"
    target_type: str = option("float", "the type of the arguments and results")

    def __post_init__(self) -> None:
        type_option(self.target_type)

    def run(self, module: ir.Operation) -> bool:
        target = type_option(self.target_type)
        main = main_function(module)
        block = entry_block(main)
        end = list(block.operations)[-1].operation
        indices = [i for i, a in enumerate(block.arguments) if _is_f8(a)][::-1]
        results = [i for i, v in enumerate(end.operands) if _is_f8(v)]
        with ir.Location.unknown(module.context), ir.InsertionPoint.at_block_begin(block):
            for i in indices:
                old = block.arguments[i]
                t = TensorType.of(old)
                new = block.add_argument(t.with_dtype(target).mlir(), old.location)
                old.replace_all_uses_with(_convert(new, t.dtype))
        for i in indices:
            block.erase_argument(i)
        with end.location, ir.InsertionPoint(end):
            for i in results:
                end.operands[i] = _convert(end.operands[i], target)
        if not indices and not results:
            return False
        if "arg_attrs" in main.attributes:
            rows = list(ir.ArrayAttr(main.attributes["arg_attrs"]))
            moved = [rows[i] for i in indices]
            rows = [r for i, r in enumerate(rows) if i not in indices]
            main.attributes["arg_attrs"] = ir.ArrayAttr.get([*rows, *moved], module.context)
        kind = ir.FunctionType.get(_types(block.arguments), _types(end.operands), module.context)
        main.attributes["function_type"] = ir.TypeAttr.get(kind)
        return True


def _types(values: Iterable[ir.Value]) -> list[ir.Type]:
    return [v.type for v in values]


def _convert(v: ir.Value, dtype: DType) -> ir.Value:
    return OPS["convert"](v, target_type=dtype).operation.result
