"""What a compiled program adds to its file: code, parameters and what they depend on.

The entry carries a checksum of all of it and the digest of the program beside it, so that code
is never run with other parameters, signature or program than it was saved with.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, NamedTuple

import numpy as np

from mgx_mlir.api.program import get_target, program
from mgx_mlir.compiler.architectures import device_archs, of_device, together
from mgx_mlir.compiler.compiled import CompiledProgram, CompileStats, IreeProgram
from mgx_mlir.compiler.settings import CompileSettings
from mgx_mlir.core import operand_segments
from mgx_mlir.core.errors import FileError, MgxError, UsageError
from mgx_mlir.core.literals import WeightStore, content_key
from mgx_mlir.frontends.mxr.checks import as_list, as_map, as_text, member, shortened
from mgx_mlir.frontends.mxr.shapes import argument_of
from mgx_mlir.printers.value_tree import Binary, Tree, array_tree, write_msgpack
from mgx_mlir.programs.lowered import kernel_infos
from mgx_mlir.programs.signature import Signature
from mgx_mlir.targets.base import Executable
from mgx_mlir.targets.child import compiler_version
from mgx_mlir.targets.flags import host_cpu

MOST_ENTRIES = 64
HINT = ["load it with compiled=False (mgx-driver: --strip-context) and compile it again"]


def compiled_trees(p: program, modules: Tree) -> list[Tree]:
    """Encode the code of a compiled program, one entry for each architecture.

    `modules` is the tree of the same file's program.
    """
    c = p.compiled
    digest, held = tree_digest(modules), Held(p.program_ir.store, {})
    found: list[Tree] = []
    for n, each in enumerate((c, *getattr(c, "alternatives", ()))):
        options = dict(p.compile_options)
        if isinstance(each, IreeProgram) and c.target == "gpu":
            options["arch"] = each.executable.arch
        found.append(_tree(each, options, digest, held))
        for name, array in getattr(each, "params", {}).items():
            held.params.setdefault(content_key(array), (n, name))
    return found


class Held(NamedTuple):
    """What a file holds already: weights of its program, and by content parameters of the entries
    so far, as (entry, name)."""

    store: WeightStore
    params: dict[str, tuple[int, str]]


def _tree(
    c: CompiledProgram, options: Mapping[str, Any], digest: str, held: Held
) -> dict[str, Tree]:
    """Encode the code of one compiled program."""
    found: dict[str, Tree] = {
        "target": c.target,
        "options": _plain(options),
        "program": digest,
    }
    if isinstance(c, IreeProgram):
        e = c.executable
        record = {
            f.name: _plain(getattr(e, f.name))
            for f in fields(e)
            if f.name not in ("vmfb", "key", "cached")
        }
        vmfb = np.frombuffer(e.vmfb, np.uint8) if isinstance(e.vmfb, bytes) else np.asarray(e.vmfb)
        with c.program.ctx:
            text = operand_segments.asm(c.program.module.operation, enable_debug_info=True)
        found |= {
            "arch": e.arch,
            "host": host_cpu() if c.target == "cpu" else "",
            "versions": {"compiler": compiler_version()},
            "signature": _plain(c.signature.to_json()),
            "kernels": [_plain(asdict(k)) for k in c.kernels],
            "text": text,
            "executable": record,
            "params": {k: _param_tree(a, held) for k, a in c.params.items()},
            "vmfb": Binary(vmfb),
        }
    return {**found, "checksum": tree_digest(found)}


def _param_tree(array: np.ndarray, held: Held) -> Tree:
    """Encode a parameter of the code; refer to it where the file holds the same bytes already."""
    key = content_key(array)
    if key in held.store:
        return {"key": key}
    if key in held.params:
        entry, name = held.params[key]
        return {"key": key, "entry": entry, "name": name}
    return array_tree(array)


def _param(tree: Tree, store: WeightStore, earlier: Sequence[IreeProgram]) -> np.ndarray:
    found = as_map(tree, "a parameter")
    if "entry" in found:
        entry, name = found["entry"], as_text(member(found, "name", "a parameter"), "'name'")
        if not isinstance(entry, int) or not 0 <= entry < len(earlier):
            raise FileError(f"'entry' expected an earlier entry, got {shortened(entry)}")
        array = earlier[entry].params.get(name)
        if array is None or content_key(array) != found.get("key"):
            raise FileError(f"the parameter {shortened(name)} is not in entry {entry}")
        return array
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
    """Hash a tree; the digest is the same for either encoding, written or read."""
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


def holds_code(entries: Sequence[Tree]) -> bool:
    """Return whether entries hold machine code; those of the reference do not."""
    return any(not isinstance(e, Mapping) or e.get("target") != "ref" for e in entries)


# ---- reading -----------------------------------------------------------------------------------


def restore(
    made: program, entries: Sequence[Tree], modules: Tree, *, emulate: bool, device_id: int
) -> None:
    """Make `made` the compiled program of entries. FileError where none can be used here.

    emulate: on the emulator; device_id: which of several GPUs. Entries are one, or one for each
    architecture.
    """
    try:
        found = [as_map(entry, "'compiled'") for entry in entries]
        _restore(made, found, modules, emulate, device_id)
    except FileError as e:
        raise FileError(e.message, location=e.location, notes=e.notes or HINT) from None
    except RecursionError:
        raise FileError("the compiled program nests too deep") from None
    except UsageError:
        raise
    except (MgxError, KeyError, TypeError, ValueError) as e:
        text = e.message if isinstance(e, MgxError) else f"{type(e).__name__.lower()}: {e}"
        raise FileError(f"the compiled program is damaged: {text}", notes=HINT) from None


def _restore(
    made: program, entries: list[dict[str, Tree]], modules: Tree, emulate: bool, device_id: int
) -> None:
    kinds = [as_text(member(e, "target", "'compiled'"), "'target'") for e in entries]
    kind = kinds[0]
    if kind not in ("ref", "cpu", "gpu"):
        raise FileError(f"the code is for the unknown target {shortened(kind)}")
    if len(set(kinds)) > 1 or (kind != "gpu" and len(kinds) > 1):
        raise FileError(f"expected code for one target, got {', '.join(map(shortened, kinds))}")
    if len(entries) > MOST_ENTRIES:
        raise FileError(f"expected at most {MOST_ENTRIES} architectures, got {len(entries)}")
    _check_place(kind, entries, emulate, device_id)
    digest = tree_digest(modules)
    for entry in entries:
        _check_sums(entry, digest)
    if emulate and kind != "gpu":
        raise UsageError(f"only gpu programs are emulated, the file's code is for {kind}")
    options = as_map(entries[0].get("options", {}), "'options'")
    if kind == "ref":
        stated = ("fast_math", "offload_copy")
        made.compile(get_target(kind), **{k: v for k, v in options.items() if k in stated})
        return
    programs: list[IreeProgram] = []
    for entry in entries:
        programs.append(_program_of(made, kind, entry, programs, emulate))
    chosen = programs[0]
    if kind == "gpu":
        chosen = together(programs, of_device(device_id, emulate=emulate))
    chosen.device_id = device_id
    options = as_map(entries[programs.index(chosen)].get("options", {}), "'options'")
    made.adopt(chosen, options)


def _check_sums(entry: dict[str, Tree], digest: str) -> None:
    """Raise FileError for an entry that is damaged, or belongs to another program."""
    stated = {k: v for k, v in entry.items() if k != "checksum"}
    if tree_digest(stated) != entry.get("checksum"):
        raise FileError("the code is damaged: its checksum does not match")
    if digest != entry.get("program"):
        raise FileError("the code is of another program than the one beside it")


def _check_place(kind: str, entries: list[dict[str, Tree]], emulate: bool, device_id: int) -> None:
    """Raise FileError for code of another compiler, or for a processor other than this one."""
    if kind == "ref":
        return
    for entry in entries:
        versions = as_map(member(entry, "versions", "'compiled'"), "'versions'")
        if versions.get("compiler") != compiler_version():
            raise FileError(
                f"the code is of compiler {shortened(versions.get('compiler'))}, "
                f"expected {compiler_version()}"
            )
    if kind == "cpu" and entries[0].get("host") != host_cpu():
        raise FileError("the code is for another processor than this one")
    if kind != "gpu":
        return
    archs = [as_text(member(e, "arch", "'compiled'"), "'arch'") for e in entries]
    wanted = of_device(device_id, emulate=emulate)
    here = {wanted} if wanted else set(device_archs(emulate=emulate)) - {""}
    if here and here.isdisjoint(archs):
        has = "the emulated device is" if emulate else "this machine has"
        names = ", ".join(map(shortened, archs)).replace("'", "")
        raise FileError(f"the code is for {names}, {has} {', '.join(sorted(here))}")


def _program_of(
    made: program,
    kind: str,
    entry: dict[str, Tree],
    earlier: Sequence[IreeProgram],
    emulate: bool,
) -> IreeProgram:
    options = as_map(entry.get("options", {}), "'options'")
    vmfb = member(entry, "vmfb", "'compiled'")
    if not isinstance(vmfb, memoryview):
        raise FileError(f"'vmfb' expected bytes, got {shortened(vmfb)}")
    code = np.frombuffer(vmfb, np.uint8)
    record = as_map(member(entry, "executable", "'compiled'"), "'executable'")
    known: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
    params = as_map(entry.get("params", {}), "'params'")
    return IreeProgram(
        CompileSettings(target=kind, arch=options.get("arch"), emulate=emulate),
        Signature.from_json(as_map(member(entry, "signature", "'compiled'"), "'signature'")),
        kernel_infos(as_list(entry.get("kernels"), "'kernels'")),
        CompileStats(cached=True),
        executable=Executable(vmfb=code, key="", cached=True, **known),
        params={k: _param(v, made.program_ir.store, earlier) for k, v in params.items()},
        module_text=as_text(member(entry, "text", "'compiled'"), "'text'"),
    )
