"""A program as MIGraphX's value tree, and the two encodings of it: msgpack and JSON.

The tree is made of None, bool, int, float, str, lists, dicts (in writing order) and Binary. Files
of version 8: program, modules, nodes, shapes and literals as MIGraphX 2.16 names them, and where a
program needs it one key more, `mgx_mlir`, that MIGraphX does not read.
"""

from __future__ import annotations

import functools
import json
import math
import os
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, TextIO, TypeAlias

import numpy as np

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import atomic
from mgx_mlir.core.names import quoted_unicode
from mgx_mlir.printers.instructions import ListedInstruction, Module, static_shape
from mgx_mlir.printers.listing import list_program, stated_types
from mgx_mlir.programs.layout import AnyShape, Shape, TupleShape, shape_of_parts
from mgx_mlir.programs.migraphx_names import Enum, NestedOp
from mgx_mlir.programs.program_ir import ProgramIR, result_names
from mgx_mlir.programs.signature import DimRange, Signature
from mgx_mlir.programs.strided import laid_out, shape_of_array

FILE_VERSION = 8
MIGRAPHX_VERSION = "2.16.0"
OWN_KEY = "mgx_mlir"
OWN_VERSION = 1
# static forms of these fill up their results, which ours does not unless it says so
PADDED = ("nonzero", "loop", "nonmaxsuppression")
MAX_BIN = 2**32 - 2  # bytes of one msgpack BIN; longer data is an array of several
UNBOUNDED = 2**64 - 1
ArrayTree: TypeAlias = "np.ndarray | tuple[ArrayTree, ...]"
Tree = Any


class Binary:
    """Raw bytes in a tree: those of an array, not copied."""

    def __init__(self, data: Any) -> None:
        if isinstance(data, np.ndarray):
            flat = np.ascontiguousarray(data).reshape(-1)
            data = flat.view(np.uint8).data if flat.size else memoryview(b"")
        self.data = memoryview(data)

    def __len__(self) -> int:
        return self.data.nbytes


# ---- the tree ----------------------------------------------------------------------------------


def program_tree(program: ProgramIR) -> dict[str, Tree]:
    """Return the tree of a program that is not compiled.

    What MIGraphX's format cannot hold is stored under a key that MIGraphX does not read; a program
    that needs none has no such key. Literals share the store's memory.
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
    """Return what inputs and outputs are to a user, where the format has no field for it."""
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
    return found


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
    open_dims = [_open_dims(s) for s in shape_of_parts(line.shape)]
    if any(open_dims):
        node["open_dims"] = open_dims
    node["operator"] = {k: attribute_tree(v) for k, v in line.attributes.items()}
    node["inputs"] = [i.lhs for i in line.inputs]
    if line.modules:
        node["module_inputs"] = [m.name for m in line.modules]
    if line.symbols:
        node["debug_symbols"] = list(line.symbols)
    return node


def _open_dims(shape: Shape) -> list[int]:
    """Return the dims that are dynamic in the program although one extent alone seems possible."""
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
    """Return an attribute value as MIGraphX's `to_value` does."""
    if isinstance(value, Enum | DType):
        return value.number
    if isinstance(value, NestedOp):
        return {"name": value.name, "operator": dict(value.attributes)}
    if isinstance(value, Shape | TupleShape):
        return shape_tree(value)
    if isinstance(value, DimRange):
        return dim_tree(value)
    if isinstance(value, list | tuple):
        # dims are objects even where they are fixed
        dims = any(isinstance(v, DimRange) for v in value)
        return [dim_tree(v) if dims else attribute_tree(v) for v in value]
    return value


# ---- msgpack -----------------------------------------------------------------------------------


def write_msgpack(tree: Tree, write: Callable[[Any], Any]) -> None:
    """Encode a tree: an empty dict as an empty array, Binary as an array of BIN chunks.

    Large binaries are handed to `write` as they are.
    """
    import msgpack  # only this form needs it

    packer = msgpack.Packer(use_bin_type=True)
    pending = bytearray()

    def flush() -> None:
        if pending:
            write(bytes(pending))
            pending.clear()

    def encode(value: Tree) -> None:
        if isinstance(value, Mapping):
            if not value:
                pending.extend(packer.pack_array_header(0))
                return
            pending.extend(packer.pack_map_header(len(value)))
            for k, v in value.items():
                pending.extend(packer.pack(str(k)))
                encode(v)
        elif isinstance(value, list | tuple):
            pending.extend(packer.pack_array_header(len(value)))
            for v in value:
                encode(v)
        elif isinstance(value, Binary):
            data = value.data
            chunks = [data[i : i + MAX_BIN] for i in range(0, len(value), MAX_BIN)] or [data]
            pending.extend(packer.pack_array_header(len(chunks)))
            for chunk in chunks:
                pending.extend(_bin_header(chunk.nbytes))
                if chunk.nbytes < 4096:
                    pending.extend(chunk)
                else:
                    flush()
                    write(chunk)
        else:
            pending.extend(packer.pack(value))

    try:
        encode(tree)
    except OverflowError:
        raise FileError("the program has an extent or a stride that 64 bits do not hold") from None
    flush()


def _bin_header(size: int) -> bytes:
    if size < 2**8:
        return struct.pack(">BB", 0xC4, size)
    if size < 2**16:
        return struct.pack(">BH", 0xC5, size)
    return struct.pack(">BI", 0xC6, size)


def msgpack_bytes(tree: Tree) -> bytes:
    """Encode a tree as msgpack."""
    parts: list[Any] = []
    write_msgpack(tree, parts.append)
    return b"".join(parts)


# ---- JSON --------------------------------------------------------------------------------------


def write_json(tree: Tree, write: Callable[[str], Any]) -> None:
    """Encode a tree on one line, keys sorted; bytes as {"bytes": [...]}, inf as "inf"."""
    if isinstance(tree, Mapping):
        write("{")
        for i, key in enumerate(sorted(tree)):
            write(("," if i else "") + json_string(key) + ":")
            write_json(tree[key], write)
        write("}")
    elif isinstance(tree, list | tuple):
        write("[")
        for i, value in enumerate(tree):
            if i:
                write(",")
            write_json(value, write)
        write("]")
    elif isinstance(tree, Binary):
        write('{"bytes":[')
        for start in range(0, len(tree), 1 << 20):
            part = np.frombuffer(tree.data[start : start + (1 << 20)], np.uint8)
            write(("," if start else "") + decimal_text(part))
        write("]}")
    elif isinstance(tree, float):
        write(json_number(tree))
    elif isinstance(tree, str):
        write(json_string(tree))
    else:
        write(json.dumps(tree))


def json_string(text: str) -> str:
    """Quote a string; control characters are escaped."""
    return quoted_unicode(json.dumps(text, ensure_ascii=False))


def decimal_text(data: np.ndarray) -> str:
    """Write bytes as decimal numbers joined by commas; a table makes it 50 times as fast."""
    digits, used = _decimals()
    return digits[data][used[data]].tobytes()[:-1].decode()


@functools.cache
def _decimals() -> tuple[np.ndarray, np.ndarray]:
    """Return the characters of each byte's number and its comma, and which of the four are used."""
    texts = [f"{i}," for i in range(256)]
    digits = np.array([list(t.ljust(4).encode()) for t in texts], np.uint8)
    return digits, np.array([[k < len(t) for k in range(4)] for t in texts])


def json_number(value: float) -> str:
    """Write a float in the fewest digits, in the form of MIGraphX's JSON library."""
    if not math.isfinite(value):
        # MIGraphX writes null, and reads that as 0; a string it refuses
        return f'"{value}"'
    text = repr(value)
    if 1e15 <= abs(value) < 1e16:  # where the two forms differ
        digits = f"{value:.0f}".lstrip("-").rstrip("0")
        sign = "-" if value < 0 else ""
        rest = f".{digits[1:]}" if digits[1:] else ""
        return f"{sign}{digits[0]}{rest}e+15"
    return text


def json_text(tree: Tree) -> str:
    """Encode a tree as JSON."""
    parts: list[str] = []
    write_json(tree, parts.append)
    return "".join(parts)


# ---- files -------------------------------------------------------------------------------------


def print_json(program: ProgramIR, stream: TextIO) -> None:
    """Write a program as JSON."""
    write_json(program_tree(program), stream.write)
    stream.write("\n")


def print_binary(program: ProgramIR, stream: BinaryIO) -> None:
    """Write a program as msgpack."""
    write_msgpack(program_tree(program), stream.write)


def save_tree(tree: Tree, path: str | os.PathLike[str], format: str) -> None:
    """Write a tree to a file, through a temporary one. FileError where that fails."""
    name = os.fspath(path)
    if format not in ("msgpack", "json"):
        raise FileError(f"unknown format '{format}', expected msgpack or json", location=name)
    try:
        with atomic(name) as f:
            if format == "json":
                write_json(tree, lambda s: f.write(s.encode()))
            else:
                write_msgpack(tree, f.write)
    except OSError as e:
        reason = (e.strerror or str(e)).lower()
        raise FileError(f"cannot write the file: {reason}", location=name) from None


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
