"""What a compiled program adds to its file: code, parameters and what they depend on.

The entry carries a checksum of all of it and the digest of the program beside it, so that code
is never run with other parameters, signature or program than it was saved with.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from mgx_mlir.api.compiled import CompileSettings, IreeProgram
from mgx_mlir.api.program import get_target, program
from mgx_mlir.core import segments
from mgx_mlir.core.errors import FileError, MgxError
from mgx_mlir.core.literals import WeightStore, content_key
from mgx_mlir.core.lowered import kernel_infos
from mgx_mlir.core.signature import Signature
from mgx_mlir.frontends.mxr.checks import as_list, as_map, as_text, member, shortened
from mgx_mlir.frontends.mxr.shapes import argument_of
from mgx_mlir.printers.value_tree import Binary, Tree, array_tree, write_msgpack

HINT = ["load it with compiled=False (mgx-driver: --strip-context) and compile it again"]


def compiled_tree(p: program, modules: Tree) -> dict[str, Tree]:
    """The entry of a compiled program whose file holds `modules`."""
    from mgx_mlir.targets.child import compiler_version
    from mgx_mlir.targets.flags import host_cpu

    c = p.compiled
    found: dict[str, Tree] = {
        "target": c.target,
        "options": _plain(p.compile_options),
        "program": tree_digest(modules),
    }
    if c.target != "ref":
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
            "params": {k: _param_tree(a, store) for k, a in c.params.items()},
            "vmfb": Binary(vmfb),
        }
    return {**found, "checksum": tree_digest(found)}


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


def tree_digest(tree: Tree) -> str:
    """The digest of a tree, the same for what is written and what is read in either encoding."""
    h = hashlib.sha256()
    write_msgpack(_canonical(tree), h.update)
    return h.hexdigest()


def _canonical(tree: Tree) -> Tree:
    if isinstance(tree, Mapping):
        return {k: _canonical(tree[k]) for k in sorted(tree)}
    if isinstance(tree, list | tuple):
        return [_canonical(v) for v in tree]
    if isinstance(tree, memoryview):
        return Binary(tree)
    if isinstance(tree, float):  # encodings may store one as an integer or as text
        tree = int(tree) if math.isfinite(tree) and tree.is_integer() else str(tree)
    if isinstance(tree, int) and not -(2**63) <= tree < 2**64:
        return str(tree)
    return tree


# ---- reading -----------------------------------------------------------------------------------


def restore(made: program, entry: Tree, modules: Tree) -> None:
    """Make `made` the compiled program of an entry. FileError where it cannot be used here."""
    try:
        _restore(made, as_map(entry, "'compiled'"), modules)
    except FileError as e:
        raise FileError(e.message, location=e.location, notes=e.notes or HINT) from None
    except RecursionError:
        raise FileError("the compiled program nests too deep") from None
    except (MgxError, KeyError, TypeError, ValueError) as e:
        text = e.message if isinstance(e, MgxError) else f"{type(e).__name__.lower()}: {e}"
        raise FileError(f"the compiled program is damaged: {text}", notes=HINT) from None


def _restore(made: program, entry: dict[str, Tree], modules: Tree) -> None:
    kind = as_text(member(entry, "target", "'compiled'"), "'target'")
    if kind not in ("ref", "cpu", "gpu"):
        raise FileError(f"the code is for the unknown target {shortened(kind)}")
    _check_place(kind, entry)
    stated = {k: v for k, v in entry.items() if k != "checksum"}
    if tree_digest(stated) != entry.get("checksum"):
        raise FileError("the code is damaged: its checksum does not match")
    if tree_digest(modules) != entry.get("program"):
        raise FileError("the code is of another program than the one beside it")
    options = as_map(entry.get("options", {}), "'options'")
    if kind == "ref":
        made.compile(get_target(kind), **{k: v for k, v in options.items() if k == "fast_math"})
        return
    made.adopt(_program_of(made, kind, entry, options), options)


def _check_place(kind: str, entry: dict[str, Tree]) -> None:
    """FileError for code of another compiler, or for another processor than is here."""
    from mgx_mlir.targets.child import compiler_version
    from mgx_mlir.targets.devices import hip_devices
    from mgx_mlir.targets.flags import host_cpu

    if kind == "ref":
        return
    versions = as_map(member(entry, "versions", "'compiled'"), "'versions'")
    if versions.get("compiler") != compiler_version():
        raise FileError(
            f"the code is of compiler {shortened(versions.get('compiler'))}, "
            f"expected {compiler_version()}"
        )
    if kind == "cpu" and entry.get("host") != host_cpu():
        raise FileError("the code is for another processor than this one")
    here = {d.arch for d in hip_devices() if d.arch} if kind == "gpu" else set()
    if here and entry.get("arch") not in here:
        listed = ", ".join(sorted(here))
        raise FileError(
            f"the code is for {shortened(entry.get('arch'))}, this machine has {listed}"
        )


def _program_of(
    made: program, kind: str, entry: dict[str, Tree], options: dict[str, Tree]
) -> IreeProgram:
    from mgx_mlir.targets.base import Executable

    vmfb = member(entry, "vmfb", "'compiled'")
    if not isinstance(vmfb, memoryview):
        raise FileError(f"'vmfb' expected bytes, got {shortened(vmfb)}")
    code = np.frombuffer(vmfb, np.uint8)
    record = as_map(member(entry, "executable", "'compiled'"), "'executable'")
    known: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
    params = as_map(entry.get("params", {}), "'params'")
    return IreeProgram(
        CompileSettings(target=kind, arch=options.get("arch")),
        Signature.from_json(as_map(member(entry, "signature", "'compiled'"), "'signature'")),
        kernel_infos(as_list(entry.get("kernels"), "'kernels'")),
        {"cached": True},
        executable=Executable(vmfb=code, key="", cached=True, **known),
        params={k: _param(v, made.program_ir.store) for k, v in params.items()},
        module_text=as_text(member(entry, "text", "'compiled'"), "'text'"),
    )
