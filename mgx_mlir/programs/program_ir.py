"""A program in the dialect: one context, one module, its weights and its source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.core.weight_files import used_keys

NAME = "migraphx.name"  # argument and result attribute: the user's name
DIMS = "migraphx.dims"  # argument attribute: ranges and symbols of dynamic dims
# argument attribute: no two elements are equal, a promise that costs time alone where it is broken
DISTINCT = "migraphx.distinct"
VALUES = "migraphx.values"  # function attribute: rules for the values of integer inputs
# function attribute: conditions on the sizes of inputs
SIZES = "migraphx.sizes"
GROUPS = "migraphx.groups"  # function attribute: the lists and optionals of a program's interface
STRIDES = "migraphx.strides"  # argument attribute: strides when they are not row-major


@dataclass(frozen=True)
class DevicePlan:
    """Device memory that IREE plans. `scratch`: bytes of a call, None if unknown. `weights`: copies
    at load, as (bytes of an element, elements).
    """

    scratch: int | None
    weights: tuple[tuple[int, int], ...]


@dataclass
class ProgramIR:
    """A program that frontends return, passes transform and targets compile.

    `module` holds `func.func @main`; large constants are in `store`; `source` names the file.
    `plan` is set if the program was compiled for a device.
    """

    ctx: ir.Context
    module: ir.Module
    store: WeightStore = field(default_factory=WeightStore)
    source: str = ""
    plan: DevicePlan | None = None

    def main(self) -> ir.OpView:
        """Return the function that runs first."""
        return main_function(self.module)

    def clone(self) -> ProgramIR:
        """Copy the program in its context. The arrays are shared: they never change."""
        with self.ctx:
            copy = self.module.operation.clone()
            module = ir.Module.parse("module {}", self.ctx)
            for op in list(module.body.operations):
                op.erase()
            for op in list(copy.regions[0].blocks[0].operations):
                op.operation.detach_from_parent()
                module.body.append(op)
            for key in copy.attributes:
                name = key if isinstance(key, str) else key.name
                module.operation.attributes[name] = copy.attributes[name]
        return ProgramIR(self.ctx, module, self.store.copy(), self.source)

    def prune_store(self) -> None:
        """Drop stored weights that no literal refers to."""
        self.store.keep_only(used_keys(self.module.operation))

    def text(self) -> str:
        """Return the module in MLIR's generic form."""
        with self.ctx:
            # loads the MLIR bindings, which reading a signature does not need
            from mgx_mlir.core.operand_segments import asm

            return asm(self.module.operation)


def main_function(module: ir.Module | ir.Operation | ir.OpView) -> ir.OpView:
    """Return the entry function: `@main`, or the only function of the module."""
    operation = module.operation if isinstance(module, ir.Module | ir.OpView) else module
    found = list(functions(operation))
    for f in found:
        if ir.StringAttr(f.attributes["sym_name"]).value == "main":
            return f
    if len(found) != 1:
        raise ModelError(f"expected a function @main, got {len(found)} functions")
    return found[0]


def functions(module: ir.Operation) -> Iterator[ir.OpView]:
    """List the functions of a module, in order."""
    for op in module.regions[0].blocks[0].operations:
        if op.operation.name == "func.func":
            yield op


def _dicts(function: ir.OpView, key: str, count: int) -> list[dict[str, ir.Attribute]]:
    if key not in function.attributes:
        return [{} for _ in range(count)]
    out: list[dict[str, ir.Attribute]] = []
    for entry in ir.ArrayAttr(function.attributes[key]):
        d = ir.DictAttr(entry)
        out.append({d[i].name: d[i].attr for i in range(len(d))})
    return out


def argument_attributes(function: ir.OpView) -> list[dict[str, ir.Attribute]]:
    """Return the attribute dictionary of each argument."""
    return _dicts(function, "arg_attrs", len(entry_block(function).arguments))


def set_distinct(function: ir.OpView, argument: int) -> None:
    """State that no two elements of an argument are equal."""
    held = argument_attributes(function)
    held[argument][DISTINCT] = ir.UnitAttr.get()
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(d) for d in held])


def result_attributes(function: ir.OpView) -> list[dict[str, ir.Attribute]]:
    """Return the attribute dictionary of each result."""
    kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    return _dicts(function, "res_attrs", len(kind.results))


def entry_block(function: ir.OpView) -> ir.Block:
    """Return the first block of a function that has a body."""
    return function.regions[0].blocks[0]


def argument_names(function: ir.OpView) -> list[str]:
    """Return the user's name of each argument; `x<i>` where none is recorded."""
    return [
        ir.StringAttr(d[NAME]).value if NAME in d else f"x{i}"
        for i, d in enumerate(argument_attributes(function))
    ]


def result_names(function: ir.OpView) -> list[str]:
    """Return the user's name of each result; `#output_<i>` where none is recorded."""
    return [
        ir.StringAttr(d[NAME]).value if NAME in d else f"#output_{i}"
        for i, d in enumerate(result_attributes(function))
    ]


def argument_types(function: ir.OpView) -> list[TensorType]:
    """Return the type of each argument of a function."""
    return [TensorType.of(a) for a in entry_block(function).arguments]


def result_types(function: ir.OpView) -> list[TensorType]:
    """Return the type of each result of a function."""
    kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    return [TensorType.of(t) for t in kind.results]


def has_dynamic_dims(function: ir.OpView) -> bool:
    """Return whether an argument, or an op's result, has a dynamic dim."""
    block = entry_block(function)
    values = [*block.arguments, *(r for op in block.operations for r in op.operation.results)]
    return any(not TensorType.of(v).is_static for v in values)
