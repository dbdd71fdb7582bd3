"""Compiled programs as entries of a .mxr file, and back.

Reading them needs no IREE compiler. The entries are beside the program's tree, under a key that
MIGraphX ignores. Code and weights are {"bytes": their SHA-256, "data": the memory}, aligned in the
file so that they can be mapped. Without "data" the memory is that of another entry with the same
digest.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from mgx_mlir.compiler.architectures import device_archs, of_device, together
from mgx_mlir.compiler.compiled import CompiledProgram, Placement
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.compiler.stats import CompileStats
from mgx_mlir.core import dtypes, interrupts
from mgx_mlir.core.errors import FileError, MgxError, UsageError
from mgx_mlir.frontends.mxr.checks import (
    as_list,
    as_map,
    as_size,
    as_text,
    member,
    shortened,
)
from mgx_mlir.hardware.architectures import best_of
from mgx_mlir.printers.tree_files import Aligned, Binary, Tree, write_msgpack
from mgx_mlir.programs.lowered import kernel_infos
from mgx_mlir.programs.signature import Signature
from mgx_mlir.runtime.device import runtime_version
from mgx_mlir.targets.base import Executable
from mgx_mlir.targets.flags import host_cpu

MOST_ENTRIES = 64
MOST_DIMS = 64
_MAPS = (
    "dispatches",
    "plan",
    "symbols",
)  # fields of an Executable; empty ones are written as arrays
INLINE_BYTES = 1 << 14  # bytes: literals up to this size stay in the program of a compiled file
Weights = dict[str, memoryview]


# ---- writing -----------------------------------------------------------------------------------


def entry_trees(
    c: CompiledProgram, options: Mapping[str, Any], program: str, held: set[str]
) -> list[Tree]:
    """Encode the code of a compiled program, one entry for each architecture.

    `options` are those of compile(), `program` is the digest of the tree beside the code. `held`
    has the digests of that tree's literals; those of written weights are added.
    """
    found: list[Tree] = []
    for each in (c, *getattr(c, "alternatives", ())):
        own = dict(options)
        if isinstance(each, IreeProgram) and c.target == "gpu":
            own["arch"] = each.executable.arch
        entry, blobs = entry_and_data(each, own, program)
        for name, data in blobs.items():
            blob = entry["params"][name] if name else entry["vmfb"]
            if not name or blob["bytes"] not in held:
                blob["data"] = data
                held.add(blob["bytes"])
        found.append(entry)
    return found


def entry_and_data(
    c: CompiledProgram, options: Mapping[str, Any], program: str
) -> tuple[dict[str, Tree], dict[str, Aligned]]:
    """Return the entry of one program without its memory, and the memory: code under "", weights by
    name.
    """
    found: dict[str, Tree] = {
        "target": c.target,
        "options": _plain(options),
        "program": program,
    }
    blobs: dict[str, Aligned] = {}
    if isinstance(c, IreeProgram):
        e = c.executable
        record = {
            f.name: _plain(getattr(e, f.name))
            for f in fields(e)
            if f.name not in ("vmfb", "key", "cached")
        }
        code = Aligned(np.frombuffer(e.vmfb, np.uint8) if isinstance(e.vmfb, bytes) else e.vmfb)
        blobs[""] = code
        params: dict[str, Tree] = {}
        for name, array in c.params.items():
            data = Aligned(array)
            key = bytes_key(data.data)
            kind = dtypes.from_numpy(array.dtype).name
            params[name] = {"type": kind, "lens": list(array.shape), "bytes": key}
            blobs[name] = data
        found |= {
            "arch": e.arch,
            "host": host_cpu() if c.target == "cpu" else "",
            "versions": {"iree": runtime_version()},
            "signature": _plain(c.signature.to_json()),
            "kernels": [_plain(asdict(k)) for k in c.kernels],
            "text": c.text,
            "executable": record,
            "params": params,
            "vmfb": {"bytes": bytes_key(code.data)},
        }
    found["checksum"] = tree_digest(found)
    return found, blobs


def without_weights(modules: Tree) -> Tree:
    """Return the tree of a program with digests in place of large literals."""
    out: dict[str, Tree] = {}
    for name, module in modules.items():
        nodes = []
        for node in module["nodes"]:
            literal = node.get("literal")
            data = literal.get("data") if literal else None
            if isinstance(data, Binary) and len(data) > INLINE_BYTES:
                literal = {"shape": literal["shape"], "bytes": bytes_key(data.data)}
                node = {**node, "literal": literal}
            nodes.append(node)
        out[name] = {**module, "nodes": nodes}
    return out


def literal_data(modules: Tree) -> Weights:
    """Return the memory of a program's literals by digest, of a tree to write or a tree that
    was read.
    """
    found: Weights = {}
    for module in modules.values() if isinstance(modules, Mapping) else ():
        for node in as_list(as_map(module, "a module").get("nodes"), "'nodes'"):
            literal = node.get("literal") if isinstance(node, Mapping) else None
            data = literal.get("data") if isinstance(literal, Mapping) else None
            if isinstance(data, Binary):
                data = data.data
            if isinstance(data, memoryview) and len(data):
                found[bytes_key(data)] = data
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value


def bytes_key(data: memoryview) -> str:
    """Return the digest that names memory."""
    interrupts.check()
    return hashlib.sha256(data).hexdigest()


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


def restored(
    entries: Sequence[Tree],
    modules: Tree,
    *,
    hint: Sequence[str],
    emulate: bool,
    device_id: int,
    elsewhere: Callable[[str], memoryview | None] | None = None,
) -> tuple[IreeProgram | None, dict[str, Any], Weights]:
    """Return the compiled program of entries, its options, and weights of the file by digest.

    The program is None for target ref. FileError, with `hint`, where no entry fits this machine.
    emulate: run on the emulator; device_id: the GPU's number; elsewhere: finds memory of other
    files by digest.
    """
    try:
        found = [as_map(entry, "'compiled'") for entry in entries]
        return _restored(found, modules, emulate, device_id, elsewhere)
    except FileError as e:
        raise FileError(e.message, location=e.location, notes=e.notes or hint) from None
    except RecursionError:
        raise FileError("the compiled program nests too deep") from None
    except UsageError:
        raise
    except (MgxError, AttributeError, KeyError, TypeError, ValueError) as e:
        text = e.message if isinstance(e, MgxError) else f"{type(e).__name__.lower()}: {e}"
        raise FileError(f"the compiled program is damaged: {text}", notes=hint) from None


def _restored(
    entries: list[dict[str, Tree]],
    modules: Tree,
    emulate: bool,
    device_id: int,
    elsewhere: Callable[[str], memoryview | None] | None,
) -> tuple[IreeProgram | None, dict[str, Any], Weights]:
    kinds = [as_text(member(e, "target", "'compiled'"), "'target'") for e in entries]
    kind = kinds[0]
    if kind not in ("ref", "cpu", "gpu"):
        raise FileError(f"the code is for the unknown target {shortened(kind)}")
    if len(set(kinds)) > 1 or (kind != "gpu" and len(kinds) > 1):
        raise FileError(f"expected code for one target, got {', '.join(map(shortened, kinds))}")
    if len(entries) > MOST_ENTRIES:
        raise FileError(f"expected at most {MOST_ENTRIES} architectures, got {len(entries)}")
    _check_place(kind, entries, emulate, device_id)
    digest, weights = tree_digest(modules), Weights()
    for entry in entries:
        _check_sums(entry, digest, weights)
    if emulate and kind != "gpu":
        raise UsageError(f"only gpu programs are emulated, the file's code is for {kind}")
    options = as_map(entries[0].get("options", {}), "'options'")
    if kind == "ref":
        return None, options, weights

    def memory(key: str) -> memoryview | None:
        if key not in weights and elsewhere is not None:
            found = elsewhere(key)
            if found is not None and bytes_key(found) == key:
                weights[key] = found
        elif key not in weights:
            weights.update(literal_data(modules))
        return weights.get(key)

    programs = [_program_of(kind, entry, memory, emulate) for entry in entries]
    chosen = programs[0]
    if kind == "gpu":
        chosen = together(programs, of_device(device_id, emulate=emulate))
    chosen.device_id = device_id
    options = as_map(entries[programs.index(chosen)].get("options", {}), "'options'")
    return chosen, options, weights


def _check_sums(entry: dict[str, Tree], digest: str, weights: Weights) -> None:
    """Raise FileError for an entry that is damaged, or belongs to another program.

    Memory goes to `weights`, by its digest.
    """
    stated = {k: v for k, v in entry.items() if k != "checksum"}
    data: list[tuple[str, memoryview]] = []
    if "vmfb" in entry:
        stated["vmfb"] = _stated(entry["vmfb"], "'vmfb'", data)
        params = as_map(entry.get("params", {}), "'params'")
        # an empty map is written as an empty array, and hashed as one
        stated["params"] = {k: _stated(p, "a parameter", data) for k, p in params.items()}
    if tree_digest(stated) != entry.get("checksum"):
        raise FileError("the code is damaged: its checksum does not match")
    for key, memory in data:
        if key not in weights:
            if bytes_key(memory) != key:
                raise FileError("the code is damaged: its checksum does not match")
            weights[key] = memory
    if digest != entry.get("program"):
        raise FileError("the code was not compiled from the program in this file: it is damaged")


def _stated(tree: Tree, what: str, data: list[tuple[str, memoryview]]) -> dict[str, Tree]:
    """Return the part of a memory entry that the checksum covers: its digest, without data."""
    found = dict(as_map(tree, what))
    memory = found.pop("data", None)
    if isinstance(memory, dict):  # msgpack's form of aligned bytes: {"pad", "data"}
        pad = memory.get("pad")
        if isinstance(pad, memoryview) and any(pad):
            raise FileError("the code is damaged: its padding is not zero")
        memory = memory.get("data")
    if memory == []:
        memory = memoryview(b"")
    if memory is not None:
        if not isinstance(memory, memoryview):
            raise FileError(f"{what} expected bytes, got {shortened(memory)}")
        data.append((as_text(member(found, "bytes", what), "'bytes'"), memory))
    return found


def _check_place(kind: str, entries: list[dict[str, Tree]], emulate: bool, device_id: int) -> None:
    """Raise FileError for code of another IREE version, or for another CPU."""
    if kind == "ref":
        return
    for entry in entries:
        versions = as_map(member(entry, "versions", "'compiled'"), "'versions'")
        if versions.get("iree") != runtime_version():
            raise FileError(
                f"the code is for IREE {shortened(versions.get('iree'))}, "
                f"expected {runtime_version()}"
            )
    if kind == "cpu" and entries[0].get("host") != host_cpu():
        raise FileError("the code is for another CPU than this one")
    if kind != "gpu":
        return
    archs = [as_text(member(e, "arch", "'compiled'"), "'arch'") for e in entries]
    wanted = of_device(device_id, emulate=emulate)
    here = {wanted} if wanted else set(device_archs(emulate=emulate)) - {""}
    if here and all(best_of(archs, device) is None for device in here):
        has = "the emulated device is" if emulate else "this machine has"
        names = ", ".join(map(shortened, archs)).replace("'", "")
        raise FileError(f"the code is for {names}, {has} {', '.join(sorted(here))}")


def _program_of(
    kind: str, entry: dict[str, Tree], memory: Callable[[str], memoryview | None], emulate: bool
) -> IreeProgram:
    code = memory(as_text(member(as_map(entry["vmfb"], "'vmfb'"), "bytes", "'vmfb'"), "'bytes'"))
    if code is None:
        raise FileError("the file lacks its code")
    record = as_map(member(entry, "executable", "'compiled'"), "'executable'")
    known: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
    known |= {k: as_map(record[k], f"'{k}'") for k in _MAPS if k in record}
    params = as_map(entry.get("params", {}), "'params'")
    return IreeProgram(
        Placement(kind, emulate),
        Signature.from_json(as_map(member(entry, "signature", "'compiled'"), "'signature'")),
        kernel_infos(as_list(entry.get("kernels"), "'kernels'")),
        CompileStats(cached=True),
        executable=Executable(vmfb=np.frombuffer(code, np.uint8), key="", cached=True, **known),
        params={k: _param(k, v, memory) for k, v in params.items()},
        module_text=as_text(member(entry, "text", "'compiled'"), "'text'"),
    )


def _param(name: str, tree: Tree, memory: Callable[[str], memoryview | None]) -> np.ndarray:
    found = as_map(tree, "a parameter")
    dtype = dtypes.from_name(as_text(member(found, "type", "a parameter"), "'type'")).np
    lens = [as_size(d, "'lens'") for d in as_list(found.get("lens"), "'lens'")]
    data = memory(as_text(member(found, "bytes", "a parameter"), "'bytes'"))
    if data is None:
        raise FileError(f"the file lacks the parameter {shortened(name)}")
    size = math.prod(lens) * dtype.itemsize
    if len(lens) > MOST_DIMS or size != len(data):
        raise FileError(
            f"parameter {shortened(name)} expected {shortened(size)} bytes, got {len(data)}"
        )
    return np.frombuffer(data, np.uint8).view(dtype).reshape(lens)
