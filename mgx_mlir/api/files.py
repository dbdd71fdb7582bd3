"""load, save, load_buffer, save_buffer: programs in MIGraphX's files, compiled ones included."""

from __future__ import annotations

import functools
import importlib.util
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mgx_mlir.compiler.background_program import StandIn
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.compiler.recording import check_graph
from mgx_mlir.compiler.run_limits import RunLimits
from mgx_mlir.compiler.saved import (
    entry_trees,
    holds_code,
    literal_data,
    restored,
    tree_digest,
    without_weights,
)
from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.frontends.mxr.checks import as_list, located
from mgx_mlir.frontends.mxr.files import MxrFile, read_data, read_file
from mgx_mlir.printers.tree_files import (
    FILE_VERSION,
    MIGRAPHX_VERSION,
    OWN_KEY,
    OWN_VERSION,
    Binary,
    Tree,
    json_text,
    msgpack_bytes,
    save_tree,
)

if TYPE_CHECKING:
    from mgx_mlir.api.program import program


class CodeAlone(FileError):
    """Error: a program is asked for, and the file holds only the code of compile()."""


FORMATS = ("msgpack", "json")
ARRAYS = "arrays"  # key of a tuple of results that are arrays, not arguments
_REFUSED = "trust_code is off"
_TRUST = (
    "load(.., trust_code=True) runs it (mgx-driver: --trust-code)",
    "compiled=False leaves it out (mgx-driver: --strip-context)",
)
_HINT = ("load it with compiled=False (mgx-driver: --strip-context) and compile it again",)


@interrupts.held
def save(
    p: program | CompiledProgram,
    filename: str | os.PathLike[str],
    format: str = "msgpack",
    *,
    source: bool = False,
) -> None:
    """Write a program, or the result of compile(), to a file: .mxr, or JSON with format="json".

    MIGraphX 2.16 reads the file of a program that is not compiled. A compiled program's file holds
    its code and the weights that the code uses. `source` adds the weights of the uncompiled
    program, so that it can be compiled again. Raises FileError.
    """
    save_tree(_tree(p, source), filename, format)


@interrupts.held
def save_buffer(
    p: program | CompiledProgram, format: str = "msgpack", *, source: bool = False
) -> bytes:
    """Serialize a program to the bytes of a file."""
    if format not in FORMATS:
        raise UsageError(f"unknown format '{format}', expected {' or '.join(FORMATS)}")
    tree = _tree(p, source)
    return msgpack_bytes(tree) if format == "msgpack" else json_text(tree).encode()


@interrupts.held
def load(
    filename: str | os.PathLike[str],
    format: str | None = None,
    *,
    compiled: bool = True,
    emulate: bool = False,
    device_id: int = 0,
    graph: bool | None = None,
    hip_graph: bool = False,
    stream_priority: int | None = None,
    trust_code: bool | None = None,
    huge_pages: bool = False,
    max_run_seconds: float | None = None,
    max_run_memory: int | None = None,
) -> Any:
    """Read a `program` from a file, or the CompiledProgram that was saved there.

    `format` None detects msgpack or JSON. A compiled program comes back compiled, without
    compiling again; `compiled=False` gives the program it was compiled from. Code for a GPU runs on
    GPU number `device_id`, or with `emulate` on the emulator; `graph`, by its older name
    `hip_graph`, and `stream_priority` are those of compile. Weights are mapped from the file, and
    processes share that memory. With `huge_pages` they are copied to large pages, which
    matrix-vector products read faster. `max_run_seconds` and `max_run_memory` are those
    of compile. Without torch-mlir, code of a `program` comes as a CompiledProgram too.

    A compiled file holds machine code that will run. `trust_code` None takes it where the file
    belongs to this user or to root, and not everybody may write to it; True takes it from any file,
    False from none. Raises FileError: code that is not trusted, damaged files, other versions, code
    for another CPU or GPU; UsageError: `graph` for code that is not a GPU's.
    """
    found = read_file(filename, format, huge_pages=huge_pages)
    doubt = found.doubt if trust_code is None else "" if trust_code else _REFUSED
    how = _How(emulate, device_id, hip_graph or graph, stream_priority)
    limits = RunLimits.of(max_run_seconds, max_run_memory)
    made = _loaded(found, compiled, how, doubt)
    if limits is not None:
        code = made if isinstance(made, CompiledProgram) else made.is_compiled() and made.compiled
        if not code:
            raise UsageError("max_run_seconds and max_run_memory are for compiled programs")
        code.limits = limits
    return made


@interrupts.held
def load_buffer(
    b: bytes | bytearray | memoryview,
    format: str | None = None,
    *,
    compiled: bool = True,
    emulate: bool = False,
    device_id: int = 0,
    graph: bool | None = None,
    hip_graph: bool = False,
    stream_priority: int | None = None,
    trust_code: bool = True,
) -> Any:
    """Read a program from the bytes `b` of a file; as load. A buffer that can change is copied.

    Bytes have no owner, so their code is loaded unless `trust_code` is off.
    """
    held = b if isinstance(b, bytes) else bytes(b)
    doubt = "" if trust_code else _REFUSED
    how = _How(emulate, device_id, hip_graph or graph, stream_priority)
    return _loaded(read_data(held, format), compiled, how, doubt)


def load_program(
    filename: str | os.PathLike[str], format: str | None = None, **how: Any
) -> program:
    """Read a `program` from a file, also where compile()'s result was saved; as load."""
    return as_program(load(filename, format, **how))


def as_program(found: Any) -> program:
    """Return a loaded program in MIGraphX's class."""
    if not isinstance(found, CompiledProgram):
        return found
    # lazy: needs MLIR's bindings, which running code does not
    from mgx_mlir.api.program import program

    return program.of_code(found, {}, lambda: found.program, {})


# ---- writing -----------------------------------------------------------------------------------


def _tree(p: program | CompiledProgram, source: bool) -> Tree:
    if isinstance(p, CompiledProgram):
        return _code_tree(p, source)
    # lazy: needs MLIR's bindings, which saving a CompiledProgram does not
    from mgx_mlir.api.program import program
    from mgx_mlir.printers.value_tree import program_tree

    if not isinstance(p, program):
        raise UsageError(f"expected a program, got {type(p).__name__}")
    if p.bound:
        raise UsageError(
            f"the program has values for parameters that files do not hold: {', '.join(p.bound)}",
            notes=["save the program that create_program_with_weights was called on"],
        )
    if not p.is_compiled():
        return program_tree(p.program_ir)
    held = p.saved_tree
    if held == {}:
        return _code_tree(p.compiled, source)
    if held is None:
        tree = program_tree(p.program_ir)
        if isinstance(p.compiled, IreeProgram) and not source:
            tree["modules"] = without_weights(tree["modules"])
    else:
        tree = {k: _written(v) for k, v in held.items()}
    own = tree.setdefault(OWN_KEY, {"version": OWN_VERSION})
    modules = tree["modules"]
    held_keys = set(literal_data(modules))
    own["compiled"] = entry_trees(p.compiled, p.compile_options, tree_digest(modules), held_keys)
    return tree


def _code_tree(c: CompiledProgram, source: bool) -> Tree:
    """Return the tree of a CompiledProgram, which has no program from before the passes."""
    if source:
        raise UsageError(
            "a result of compile() has no source to keep",
            notes=["parse_onnx(..), compile and save a program"],
        )
    options: dict[str, Any] = {}
    if isinstance(c, StandIn):
        c = c.alone()
    if isinstance(c, IreeProgram):
        modules: Tree = {}
    else:
        from mgx_mlir.printers.value_tree import program_tree  # lazy: needs MLIR's bindings

        return {
            **(tree := program_tree(c.program)),
            OWN_KEY: {
                **tree.get(OWN_KEY, {"version": OWN_VERSION}),
                "gives": ARRAYS,
                "compiled": entry_trees(c, options, tree_digest(tree["modules"]), set()),
            },
        }
    return {
        "version": FILE_VERSION,
        "migraphx_version": MIGRAPHX_VERSION,
        "targets": [],
        "contexts": [],
        "modules": modules,
        OWN_KEY: {
            "version": OWN_VERSION,
            "gives": ARRAYS,
            "compiled": entry_trees(c, options, tree_digest(modules), set()),
        },
    }


def _written(tree: Tree) -> Tree:
    """Convert a tree that was read to one that can be written."""
    if isinstance(tree, dict):
        return {k: _written(v) for k, v in tree.items()}
    if isinstance(tree, list):
        return [_written(v) for v in tree]
    return Binary(tree) if isinstance(tree, memoryview) else tree


# ---- reading -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _How:
    """Device and options of loaded code."""

    emulate: bool
    device_id: int
    graph: bool | None
    stream_priority: int | None


def _loaded(found: MxrFile, compiled: bool, how: _How, doubt: str) -> Any:
    try:
        entries = as_list(found.own.get("compiled"), "'compiled'")
        if compiled and doubt and holds_code(entries):
            raise FileError(f"the file's machine code is not trusted: {doubt}", notes=_TRUST)
        if compiled and entries:
            return _compiled(found, entries, how)
    except FileError as e:
        raise located(e, found.name) from None
    if entries and not found.modules:
        raise CodeAlone(
            "the file holds only compiled code, not the program that it was compiled from",
            location=found.name,
        )
    if how.graph or how.stream_priority is not None:
        raise UsageError(
            "graph is for compiled code, and none is loaded from this file",
            notes=["compile the program with it: get_target('gpu', graph=True)"],
        )
    # lazy: needs MLIR's bindings, which running code does not
    from mgx_mlir.api.program import program

    return program.of(found.program)


def _compiled(found: MxrFile, entries: list[Tree], how: _How) -> Any:
    c, options, found.weights = restored(
        entries, found.modules, hint=_HINT, emulate=how.emulate, device_id=how.device_id
    )
    check_graph("ref" if c is None else c.target, how.graph, how.stream_priority)
    gives_arrays = found.own.get("gives") == ARRAYS
    if c is None:
        # lazy: needs MLIR's bindings, for the reference interpreter
        from mgx_mlir.api.program import program
        from mgx_mlir.api.target import get_target

        made = program.of(found.program)
        stated = ("fast_math", "offload_copy")
        made.compile(get_target("ref"), **{k: v for k, v in options.items() if k in stated})
        return made.compiled if gives_arrays else made
    c.graph, c.stream_priority = how.graph, how.stream_priority
    if gives_arrays or not _has_bindings():
        return c
    # lazy: needs MLIR's bindings, which running code does not
    from mgx_mlir.api.program import program

    saved = {k: v for k, v in found.tree.items() if k != OWN_KEY}
    own = {k: v for k, v in found.own.items() if k != "compiled"}
    if not gives_arrays:
        saved[OWN_KEY] = own
    return program.of_code(c, options, lambda: found.program, saved)


@functools.cache
def _has_bindings() -> bool:
    return importlib.util.find_spec("torch_mlir") is not None
