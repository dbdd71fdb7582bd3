"""A program as MIGraphX's value tree; printers/tree_files.py encodes it.

The tree is made of None, bool, int, float, str, lists, dicts (in writing order) and Binary. Files
of version 8: program, modules, nodes, shapes and literals as MIGraphX 2.16 names them, and where a
program needs it one key more, `mgx_mlir`, that MIGraphX does not read.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import asdict
from typing import Any, BinaryIO, TextIO, TypeAlias

import numpy as np

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import FileError
from mgx_mlir.printers.instructions import ListedInstruction, Module, static_shape
from mgx_mlir.printers.listing import list_program, stated_types
from mgx_mlir.printers.tree_files import (
    FILE_VERSION,
    MIGRAPHX_VERSION,
    OWN_KEY,
    OWN_VERSION,
    Binary,
    Tree,
    save_tree,
    write_json,
    write_msgpack,
)
from mgx_mlir.programs.layout import AnyShape, Shape, TupleShape, shape_of_parts
from mgx_mlir.programs.migraphx_names import Enum, NestedOp
from mgx_mlir.programs.program_ir import ProgramIR, result_names
from mgx_mlir.programs.signature import DimRange, Signature
from mgx_mlir.programs.size_rules import as_text as sizes_as_text
from mgx_mlir.programs.strided import laid_out, shape_of_array
from mgx_mlir.programs.value_rules import as_named_text

# ops whose static forms pad their results in MIGraphX; ours pad only if an attribute says so
PADDED = ("nonzero", "loop", "nonmaxsuppression")
UNBOUNDED = 2**64 - 1
ArrayTree: TypeAlias = "np.ndarray | tuple[ArrayTree, ...]"


# ---- the tree ----------------------------------------------------------------------------------


def program_tree(program: ProgramIR) -> dict[str, Tree]:
    """Return the tree of a program that is not compiled.

    Data that MIGraphX's format lacks is stored under a key that MIGraphX ignores. Literals share
    the store's memory.
    """
    listing = list_program(program, numbering="2.16")
    with program.store.active():
        modules = {m.name: module_tree(m) for m in listing.modules}
    found: dict[str, Tree] = {
        "version": FILE_VERSION,
        "migraphx_version": MIGRAPHX_VERSION,
        "targets": [],
        "contexts": [],
        "modules": modules,
    }
    for m in listing.modules:
        names = Counter(i.lhs for i in m.visible() if i.op != "@return")
        twice = [name for name, n in names.items() if n > 1]
        if twice:
            raise FileError(f"the format cannot tell two nodes '{twice[0]}' apart")
    beside = _interface(program)
    lines = [i for m in listing.modules for i in m.visible()]
    taken = {m.name for i in lines for m in i.modules}
    unused = len(taken) + 1 < len(listing.modules)
    if beside or unused or any(map(_is_ours, lines)):
        found[OWN_KEY] = {"version": OWN_VERSION, **beside}
    return found


def _is_ours(line: ListedInstruction) -> bool:
    """Return whether MIGraphX would infer another result shape than the instruction has."""
    if line.op in PADDED or (line.operation is not None and stated_types(line)):
        return not line.op.startswith("unknown:")
    made = line.op not in ("@param", "@return")
    return made and any(s.is_dynamic for s in shape_of_parts(line.shape))


def _interface(program: ProgramIR) -> dict[str, Tree]:
    """Return the facts about inputs and outputs that the format has no field for."""
    main = program.main()
    signature = Signature.of(main)
    names = result_names(main)
    found: dict[str, Tree] = {}
    if names != [f"#output_{i}" for i in range(len(names))]:
        found["outputs"] = names
    symbols = {
        p.name: [r.symbol for r in p.ranges]
        for p in signature.inputs
        if any(r.symbol for r in p.ranges)
    }
    if symbols:
        found["symbols"] = symbols
    ports = {"inputs": signature.inputs, "outputs": signature.outputs}
    if any(p.element for row in ports.values() for p in row):
        found["elements"] = {k: [p.element for p in row] for k, row in ports.items()}
    groups = {"inputs": signature.input_groups, "outputs": signature.output_groups}
    if any(groups.values()):
        found["groups"] = {k: [[g.name, g.count] for g in row] for k, row in groups.items()}
    if signature.values:
        found["values"] = as_named_text(signature.values, [p.name for p in signature.inputs])
    if signature.sizes:
        found["sizes"] = sizes_as_text(signature.sizes, [p.name for p in signature.inputs])
    strings = _strings(signature)
    if strings:
        found["strings"] = json.dumps(strings)
    return found


def _strings(signature: Signature) -> dict[str, Any]:
    """Return the strings for files: the table, ports that index it, results with their own strings,
    and steps before the program; empty if there are none.
    """
    outputs = signature.outputs
    found: dict[str, Any] = {
        "table": list(signature.texts),
        "inputs": [i for i, p in enumerate(signature.inputs) if p.text],
        "outputs": [i for i, p in enumerate(outputs) if p.text],
        "shown": [[i, asdict(p.shown)] for i, p in enumerate(outputs) if p.shown],
        "steps": [asdict(s) for s in signature.steps],
    }
    return found if any(found.values()) else {}


def module_tree(module: Module) -> dict[str, Tree]:
    """Return the tree of one module."""
    return {"name": module.name, "nodes": [node_tree(i) for i in module.visible()]}


def node_tree(line: ListedInstruction) -> dict[str, Tree]:
    """Return the tree of one instruction."""
    node: dict[str, Tree] = {
        "output": line.lhs,
        "name": line.op,
        "shape": shape_tree(_shape_of(line)),
        "normalized": False,
    }
    if line.is_literal:
        node["literal"] = array_tree(line.array(), static_shape(line.shape))
    dynamic_dims = [_dynamic_dims(s) for s in shape_of_parts(line.shape)]
    if any(dynamic_dims):
        node["dynamic_dims"] = dynamic_dims
    node["operator"] = {k: attribute_tree(v) for k, v in line.attributes.items()}
    node["inputs"] = [i.lhs for i in line.inputs]
    if line.modules:
        node["module_inputs"] = [m.name for m in line.modules]
    if line.symbols:
        node["debug_symbols"] = list(line.symbols)
    return node


def _dynamic_dims(shape: Shape) -> list[int]:
    """Return the dims that are dynamic in the program although only one extent is possible."""
    return [i for i, d in enumerate(shape.dims) if isinstance(d, DimRange) and d.is_fixed]


def _shape_of(line: ListedInstruction) -> AnyShape | None:
    if line.op != "@return":
        return line.shape
    parts = tuple(i.shape for i in line.inputs if i.shape is not None)
    return parts[0] if len(parts) == 1 else TupleShape(parts)


def shape_tree(shape: AnyShape | None) -> dict[str, Tree]:
    """Return a shape object; fields that do not apply are empty lists."""
    found: dict[str, Tree] = {
        "type": "float_type",
        "sub_shapes": [],
        "lens": [],
        "strides": [],
        "dynamic_dimensions": [],
        "dyn_strides": [],
    }
    if isinstance(shape, TupleShape):
        found["type"] = "tuple_type"
        found["sub_shapes"] = [shape_tree(s) for s in shape.parts]
    elif isinstance(shape, Shape):
        found["type"] = shape.dtype.name
        if shape.is_dynamic:
            found["dynamic_dimensions"] = [dim_tree(d) for d in shape.dims]
        else:
            found["lens"] = list(shape.lens)
            found["strides"] = list(shape.shown_strides)
    return found


def dim_tree(d: int | DimRange) -> dict[str, Tree]:
    """Return a dynamic dimension object."""
    if isinstance(d, int):
        d = DimRange(d, d)
    upper = UNBOUNDED if d.max is None else d.max
    return {"range": {"min": d.min, "max": upper}, "optimals": list(d.optimals), "sym": None}


def array_tree(array: np.ndarray, shape: Shape | None = None) -> dict[str, Tree]:
    """Return a literal or argument: its shape (None: the array's), and the bytes of its memory."""
    found = shape_of_array(array) if shape is None else shape
    return {"shape": shape_tree(found), "data": Binary(laid_out(array, found))}


def attribute_tree(value: Any) -> Tree:
    """Return an attribute value in the form of MIGraphX's `to_value`."""
    if isinstance(value, Enum | DType):
        return value.number
    if isinstance(value, NestedOp):
        return {"name": value.name, "operator": dict(value.attributes)}
    if isinstance(value, Shape | TupleShape):
        return shape_tree(value)
    if isinstance(value, DimRange):
        return dim_tree(value)
    if isinstance(value, list | tuple):
        # dims are objects even if they are static
        dims = any(isinstance(v, DimRange) for v in value)
        return [dim_tree(v) if dims else attribute_tree(v) for v in value]
    return value


# ---- files -------------------------------------------------------------------------------------


def print_json(program: ProgramIR, stream: TextIO) -> None:
    """Write a program as JSON."""
    write_json(program_tree(program), stream.write)
    stream.write("\n")


def print_binary(program: ProgramIR, stream: BinaryIO) -> None:
    """Write a program as msgpack."""
    write_msgpack(program_tree(program), stream.write)


def save_argument(arrays: ArrayTree, path: str | os.PathLike[str]) -> None:
    """Write an argument file: an array, or a tuple of such."""
    save_tree(argument_tree(arrays), path, "msgpack")


def argument_tree(arrays: ArrayTree) -> dict[str, Tree]:
    """Return the tree of an array or of a tuple of trees."""
    if isinstance(arrays, tuple):
        parts = [argument_tree(a) for a in arrays]
        shape = shape_tree(TupleShape(()))
        shape["sub_shapes"] = [p["shape"] for p in parts]
        return {"shape": shape, "sub": parts}
    return array_tree(arrays)
