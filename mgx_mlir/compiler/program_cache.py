"""The cache of whole programs: keyed by a model with every option, checked when found."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Mapping
from dataclasses import asdict

from mgx_mlir.compiler.compiled import CompileStats, IreeProgram
from mgx_mlir.compiler.environment import watched
from mgx_mlir.compiler.models import HasProgram, ModelSource
from mgx_mlir.compiler.settings import CompileSettings
from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import ReadFile
from mgx_mlir.frontends.onnx.registry import has_foreign
from mgx_mlir.programs.lowered import kernel_infos
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.signature import Signature
from mgx_mlir.rewrite.switches import switches
from mgx_mlir.targets.base import Target, executable_of
from mgx_mlir.targets.cache import default_cache, digest, program_key
from mgx_mlir.targets.flags import host_cpu

log = logging.getLogger(__name__)


def program_cache_key(model: ModelSource, settings: CompileSettings, backend: Target) -> str | None:
    """Return the cache key of a model and all options, None if it cannot be cached."""
    store = default_cache() if settings.cache else None
    if store is None:
        return None
    if switches().traces or watched():  # a hit runs no pass: there would be nothing to see
        return None
    if has_foreign():  # importers of the user's, whose code the key would not hold
        return None
    if isinstance(model, bytes):
        files = [digest(model)]
    elif isinstance(model, str | os.PathLike) and os.path.isfile(model):
        files = [store.file_digest(model), str(os.path.abspath(os.fspath(model)))]
    elif isinstance(model, ProgramIR | HasProgram):
        files = [program_digest(model if isinstance(model, ProgramIR) else model.program_ir)]
    else:
        return None
    flags = [list(s.flags) for s in backend.ladder()]
    try:
        options = settings.key()
    except TypeError:  # an option of a kind that has no text: another one could look the same
        return None
    return program_key(files, {**options, "flags": flags, "host": host_cpu()})


def program_digest(program: ProgramIR) -> str:
    """Return the digest of a program: its instructions, their locations and its weights."""
    buffer = io.BytesIO()
    with program.ctx:
        program.module.operation.write_bytecode(buffer)
    return digest("program", program.source, buffer.getvalue(), program.store.digest())


def find_program(key: str, settings: CompileSettings) -> IreeProgram | None:
    """Return the cached program of a key, None where there is none that still holds."""
    store = default_cache()
    found = store.get_program(key) if store is not None else None
    if store is None or found is None:
        return None
    try:
        manifest = found.manifest
        for path, then in manifest["external"]:
            if store.file_digest(path) != then:
                return None
        signature = Signature.from_json(manifest["signature"])
        kernels = kernel_infos(manifest["kernels"])
        executable = executable_of(manifest["module"], found.modules["main"])
    except (KeyError, TypeError, ValueError, FileError):
        return None
    stats = CompileStats(
        cached=True,
        import_s=0.0,
        passes_s=0.0,
        lowering_s=0.0,
        iree_s=0.0,
        iree_peak_memory=executable.peak_memory,
        iree_crashes=len(executable.crashes),
    )
    return IreeProgram(
        settings.placement,
        signature,
        kernels,
        stats,
        executable=executable,
        params=found.params,
        module_text=manifest["text"],
        threads=settings.run_threads,
    )


def keep_program(key: str, compiled: IreeProgram, reads: Mapping[str, ReadFile]) -> None:
    """Store a program under its key, with what was read: the model's file, external data.

    Nothing is stored where a file is not known to have the bytes that were read. One that changed
    between the key and the reading is stored with its new digest, and never found.
    """
    store = default_cache()
    if store is None:
        return
    external: list[tuple[str, str]] = []
    for read in reads.values():
        try:
            now, identity = store.dated_digest(read.path)
        except FileError:
            identity = None
        if identity is None or identity != read.identity:
            log.info("%s: not cached, the file is new or changed meanwhile", read.path)
            return
        external.append((read.path, now))
    manifest = {
        "signature": compiled.signature.to_json(),
        "kernels": [asdict(k) for k in compiled.kernels],
        "text": compiled.module_text,
        "module": compiled.executable.key,
        "external": external,
    }
    store.put_program(key, manifest, {"main": compiled.executable.key}, compiled.params)
