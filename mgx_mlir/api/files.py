"""load, save, load_buffer, save_buffer: programs in MIGraphX's files, compiled ones included."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from mgx_mlir.api.program import get_target, program
from mgx_mlir.core import segments
from mgx_mlir.core.errors import FileError, MgxError, UsageError
from mgx_mlir.core.literals import WeightStore, content_key
from mgx_mlir.core.lowered import kernel_infos
from mgx_mlir.core.signature import Signature
from mgx_mlir.frontends.mxr.reader import (
    MxrFile,
    argument_of,
    as_list,
    as_map,
    as_text,
    member,
    read_data,
    read_file,
)
from mgx_mlir.printers.value_tree import (
    Binary,
    Tree,
    array_tree,
    json_text,
    msgpack_bytes,
    program_tree,
    save_tree,
)

FORMATS = ("msgpack", "json")


def save(p: program, filename: str | os.PathLike[str], format: str = "msgpack") -> None:
    """Write a program to a file (.mxr, or JSON with format="json").

    MIGraphX 2.16 reads it; of a compiled program it reads the program that was compiled. Raises
    FileError.
    """
    save_tree(_tree(p), filename, format)


def save_buffer(p: program, format: str = "msgpack") -> bytes:
    """A program as the bytes of a file."""
    if format not in FORMATS:
        raise UsageError(f"unknown format '{format}', expected {' or '.join(FORMATS)}")
    tree = _tree(p)
    return msgpack_bytes(tree) if format == "msgpack" else json_text(tree).encode()


def load(
    filename: str | os.PathLike[str], format: str | None = None, *, compiled: bool = True
) -> program:
    """Read a program from a file.

    `format` None tells msgpack from JSON. A compiled program comes back compiled, without
    compiling again; `compiled=False` gives the program it was compiled from. A compiled file
    holds machine code that will run: load it only from where you trust. Raises FileError: damaged
    files, other versions, code for another processor.
    """
    return _program(read_file(filename, format), compiled, os.fspath(filename))


def load_buffer(
    data: bytes | memoryview, format: str | None = None, *, compiled: bool = True
) -> program:
    """Read a program from the bytes of a file; as load."""
    return _program(read_data(data, format), compiled, "<buffer>")


def _tree(p: program) -> Tree:
    if not isinstance(p, program):
        raise UsageError(f"expected a program, got {type(p).__name__}")
    own: dict[str, Tree] = {}
    if p.is_compiled():
        own["compiled"] = [compiled_tree(p)]
    return program_tree(p.program_ir, own)


# ---- compiled programs -------------------------------------------------------------------------


def compiled_tree(p: program) -> dict[str, Tree]:
    """What a compiled program adds to its file: code, parameters, and what they depend on."""
    from mgx_mlir.targets.cache import digest
    from mgx_mlir.targets.child import compiler_version
    from mgx_mlir.targets.flags import host_cpu

    c = p.compiled
    found: dict[str, Tree] = {"target": c.target, "options": _plain(p.compile_options)}
    if c.target == "ref":
        return found
    e = c.executable
    record = {
        f.name: _plain(getattr(e, f.name))
        for f in fields(e)
        if f.name not in ("vmfb", "key", "cached")
    }
    vmfb = np.frombuffer(e.vmfb, np.uint8) if isinstance(e.vmfb, bytes) else np.asarray(e.vmfb)
    with c.program.ctx:
        text = segments.asm(c.program.module.operation, enable_debug_info=True)
    store = p.program_ir.store
    found |= {
        "arch": e.arch,
        "host": host_cpu() if c.target == "cpu" else "",
        "versions": {"compiler": compiler_version()},
        "signature": _plain(c.signature.to_json()),
        "kernels": [_plain(asdict(k)) for k in c.kernels],
        "text": text,
        "executable": record,
        "checksum": digest(vmfb),
        "params": {k: _param_tree(a, store) for k, a in c.params.items()},
        "vmfb": Binary(vmfb),
    }
    return found


def _param_tree(array: np.ndarray, store: WeightStore) -> Tree:
    """A parameter of the code; one that is a weight of the program is not written again."""
    key = content_key(array)
    return {"key": key} if key in store else array_tree(array)


def _param(tree: Tree, store: WeightStore) -> np.ndarray:
    found = as_map(tree, "a parameter")
    if "key" in found:
        return store.get(as_text(found["key"], "'key'"))
    array = argument_of(found)
    if isinstance(array, tuple):
        raise FileError("a parameter expected a tensor, got a tuple")
    return array


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value


def _program(found: MxrFile, compiled: bool, name: str) -> program:
    made = program.of(found.program)
    entries = as_list(found.own.get("compiled"), "'compiled'")
    if not compiled or not entries:
        return made
    try:
        return _restored(made, as_map(entries[0], "'compiled'"))
    except FileError as e:
        raise FileError(e.message, location=e.location or name, notes=e.notes) from None
    except (MgxError, KeyError, TypeError, ValueError) as e:
        text = e.message if isinstance(e, MgxError) else f"{type(e).__name__.lower()}: {e}"
        raise FileError(f"the compiled program is damaged: {text}", location=name) from None


def _restored(made: program, entry: dict[str, Tree]) -> program:
    from mgx_mlir.api.compile import CompileSettings, IreeProgram
    from mgx_mlir.targets.base import Executable
    from mgx_mlir.targets.cache import digest
    from mgx_mlir.targets.child import compiler_version
    from mgx_mlir.targets.flags import host_cpu

    kind = as_text(member(entry, "target", "'compiled'"), "'target'")
    options = as_map(entry.get("options", {}), "'options'")
    if kind == "ref":
        made.compile(get_target(kind), **{k: v for k, v in options.items() if k == "fast_math"})
        return made
    hint = ["load it with compiled=False and compile it again"]
    versions = as_map(member(entry, "versions", "'compiled'"), "'versions'")
    if versions.get("compiler") != compiler_version():
        raise FileError(
            f"the code is of compiler {versions.get('compiler')}, expected {compiler_version()}",
            notes=hint,
        )
    if kind == "cpu" and entry.get("host") != host_cpu():
        raise FileError("the code is for another processor than this one", notes=hint)
    vmfb = member(entry, "vmfb", "'compiled'")
    if not isinstance(vmfb, memoryview) or digest(np.frombuffer(vmfb, np.uint8)) != entry.get(
        "checksum"
    ):
        raise FileError("the code is damaged: its checksum does not match", notes=hint)
    record = as_map(member(entry, "executable", "'compiled'"), "'executable'")
    fields_of: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in record.items()
    }
    executable = Executable(
        vmfb=np.frombuffer(vmfb, np.uint8), key="", cached=True,
        **fields_of,
    )  # fmt: skip
    params = as_map(entry.get("params", {}), "'params'")
    settings = CompileSettings(target=kind, arch=options.get("arch"))
    found = IreeProgram(
        settings,
        Signature.from_json(as_map(member(entry, "signature", "'compiled'"), "'signature'")),
        kernel_infos(as_list(entry.get("kernels"), "'kernels'")),
        {"cached": True},
        executable=executable,
        params={k: _param(v, made.program_ir.store) for k, v in params.items()},
        module_text=as_text(member(entry, "text", "'compiled'"), "'text'"),
    )
    made.adopt(found, options)
    return made
