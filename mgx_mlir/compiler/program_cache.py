"""The cache of whole programs, keyed by a model's content and every option, never by a path.

If a model has other files, the entry of its key lists them, relative to it. Then the program's key
also has their digests. docs/caches.md says what is in a key.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from mgx_mlir.compiler.environment import watched
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.compiler.options import CompileOptions
from mgx_mlir.compiler.sources import HasProgram, ModelSource
from mgx_mlir.compiler.stats import CompileStats
from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import ReadFile, identity, is_young
from mgx_mlir.core.records import dataclass
from mgx_mlir.programs.lowered import kernel_infos
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.signature import Signature
from mgx_mlir.rewrite.switches import switches
from mgx_mlir.targets import background
from mgx_mlir.targets.base import Target
from mgx_mlir.targets.cache import Cache, default_cache, hash_file
from mgx_mlir.targets.digests import digest
from mgx_mlir.targets.executable import executable_of
from mgx_mlir.targets.flags import host_cpu

log = logging.getLogger(__name__)


def program_cache_key(model: ModelSource, options: CompileOptions, backend: Target) -> str | None:
    """Return the cache key of a model and all options, None if it cannot be cached."""
    store = default_cache() if options.cache else None
    if store is None:
        return None
    if switches().traces or watched():  # a hit runs no pass, and would print nothing
        return None
    if _has_foreign():  # user importers, whose code is not in the key
        return None
    try:
        files, row = _model_files(store, model), _row(options, backend)
    except TypeError:  # an option without a text form: two different values could get one key
        return None
    return None if files is None else store.program_key(files, row)


def _model_files(store: Cache, model: ModelSource) -> list[str] | None:
    """Return the key parts of a model's content, None for a model that cannot be cached."""
    if isinstance(model, bytes):
        return [digest(model)]
    if isinstance(model, str | os.PathLike) and os.path.isfile(model):
        kind = os.path.splitext(os.fspath(model))[1].lower()
        read = _read_onnx if kind == ".onnx" else hash_file
        return [store.file_digest(model, read), kind]
    if isinstance(model, ProgramIR | HasProgram):
        return [program_digest(model if isinstance(model, ProgramIR) else model.program_ir)]
    return None


def _read_onnx(path: Path) -> str:
    """Return the digest of an ONNX file. Errors: FileError."""
    # start-up: the digest of most models is kept
    from mgx_mlir.frontends.onnx import file_digest

    with contextlib.suppress(OSError, FileError):  # the reader of the file reports the fault
        if path.stat().st_size >= file_digest.LEAST:
            return file_digest.file_digest(path)
    return hash_file(path)


def _row(options: CompileOptions, backend: Target) -> dict[str, Any]:
    """Return the other parts of a key. Errors: TypeError for an option without a text form."""
    flags = [list(s.flags) for s in backend.ladder()]
    return {**options.key(), "arch": backend.arch, "flags": flags, "host": host_cpu()}


def _has_foreign() -> bool:
    """Return whether the user has registered an importer of ONNX operators."""
    # loaded, if anything was registered
    registry = sys.modules.get("mgx_mlir.frontends.onnx.registry")
    return registry is not None and registry.has_foreign()


def program_digest(program: ProgramIR) -> str:
    """Return the digest of a program: its instructions, their source nodes and its weights."""
    # start-up: models in files need no bindings
    from mgx_mlir.core.operand_segments import asm

    with program.ctx:
        text = asm(program.module.operation, enable_debug_info=True)
    # every location has the path of the file
    text = text.replace(f'"{program.source}"', '""') if program.source else text
    return digest("program", text, program.store.digest())


@dataclass(frozen=True)
class ModelFolder:
    """Folder of the files that belong to a model: its folder, or that of external data."""

    folder: str
    name: str

    @staticmethod
    def of(model: ModelSource, options: CompileOptions) -> ModelFolder:
        """Return the folder of a model's other files."""
        given = options.importer.get("external_data_path")
        path = os.path.realpath(model) if isinstance(model, str | os.PathLike) else ""
        folder = os.path.realpath(os.fspath(given)) if given else os.path.dirname(path)
        return ModelFolder(os.fspath(folder), os.path.basename(os.fspath(path)))

    def named(self, path: str) -> list[str]:
        """Return a file relative to the model: ["m.onnx", ".npz"] is [model, ".npz"]."""
        found = os.path.relpath(path, self.folder or os.getcwd())
        if self.name and found.startswith(self.name):
            return ["model", found.removeprefix(self.name)]
        return ["", found]

    def path(self, named: Sequence[str]) -> str:
        """Return the path of a name that `named` returned."""
        first, rest = named
        return os.path.join(self.folder, self.name + rest if first else rest)


def find_program(key: str, options: CompileOptions, model: ModelSource) -> IreeProgram | None:
    """Return the cached program of a key, None where there is none that is still valid."""
    store = default_cache()
    found = store.get_program(key) if store is not None else None
    if store is None or found is None:
        return None
    try:
        if "beside" in found.manifest:
            place, names = ModelFolder.of(model, options), found.manifest["beside"]
            rows = [(list(n), store.file_digest(place.path(n))) for n in names]
            found = store.get_program(_with_files(key, rows))
            if found is None:
                return None
        manifest = found.manifest
        signature = Signature.from_json(manifest["signature"])
        kernels = kernel_infos(manifest["kernels"])
        seconds = None if manifest.get("seconds") is None else float(manifest["seconds"])
        executable = executable_of(manifest["module"], found.modules["main"])
    except (KeyError, TypeError, ValueError, FileError):
        return None
    stats = CompileStats(
        cached=True,
        import_s=0.0,
        passes_s=0.0,
        lowering_s=0.0,
        iree_s=0.0,
        first_s=seconds,
        iree_peak_memory=executable.peak_memory,
        iree_crashes=len(executable.crashes),
    )
    return IreeProgram(
        options.placement,
        signature,
        kernels,
        stats,
        executable=executable,
        params=found.params,
        module_text=manifest["text"],
        threads=options.run_threads,
    )


def _with_files(key: str, rows: Sequence[tuple[list[str], str]]) -> str:
    """Return the key of a program with the names and digests of its model's other files."""
    return digest(key, json.dumps(rows))


class Keeping:
    """A cache entry that is being written.

    Its parameters are written in the background from the end of lowering on, while IREE compiles.
    """

    def __init__(self, store: Cache, key: str, params: Mapping[str, np.ndarray]) -> None:
        self._store, self._name, self._key = store, (store.root, key), key
        self._params, self._pack = params, ""
        self._job = background.submit(background.Job(self._name, self._write_params))

    @staticmethod
    def of(key: str | None, params: Mapping[str, np.ndarray]) -> Keeping | None:
        """Begin to write an entry with these parameters; None without a cache."""
        store = default_cache() if key is not None else None
        return None if store is None or key is None else Keeping(store, key, params)

    def _write_params(self, job: background.Job) -> None:
        self._pack = self._store.put_pack(self._params, job.check)

    def cancel(self) -> None:
        """Drop the entry: the compile failed."""
        self._job.cancel()

    def finish(
        self,
        compiled: IreeProgram,
        reads: Mapping[str, ReadFile],
        model: ModelSource,
        options: CompileOptions,
        backend: Target,
    ) -> None:
        """Store the program with the digests of the files that were read: the model, external data.

        Nothing is stored where a file may have changed since it was read, or between key and
        reading.
        """
        if compiled.params is not self._params:  # a fallback lowered it again
            self._job.cancel()
            self._params = compiled.params
            self._job = background.submit(background.Job(self._name, self._write_params))
        manifest = {
            "signature": compiled.signature.to_json(),
            "kernels": [asdict(k) for k in compiled.kernels],
            "text": compiled.module_text,
            "module": compiled.executable.key,
            "seconds": compiled.stats.total_s,
        }
        path = os.path.realpath(model) if isinstance(model, str | os.PathLike) else ""
        for read in reads.values():
            if not _is_as_read(read):
                log.info("%s: not cached, the file is new or changed during the compile", read.path)
                self._job.cancel()
                return
        if path and program_cache_key(model, options, backend) != self._key:
            log.info("not cached, the model changed during the compile")
            self._job.cancel()
            return
        beside = [read for read in reads.values() if read.path != path]
        place, modules = ModelFolder.of(model, options), {"main": compiled.executable.key}

        def work(_: background.Job) -> None:
            files = self._digests(beside, place)
            key = self._key
            if files is None:
                return
            if files:
                self._store.put_program(key, {"beside": [name for name, _ in files]}, {}, {})
                key = _with_files(key, files)
            self._store.put_program_of(key, manifest, modules, self._pack)

        background.submit(background.Job(self._name, work))

    def _digests(
        self, files: Sequence[ReadFile], place: ModelFolder
    ) -> list[tuple[list[str], str]] | None:
        """Return the names and digests of files that were read; None where one has changed."""
        rows: list[tuple[list[str], str]] = []
        for read in files:
            try:
                now, found = self._store.dated_digest(read.path)
            except FileError:
                now, found = "", None
            if found is None or found != read.identity:
                log.info("%s: not cached, the file changed during the compile", read.path)
                return None
            rows.append((place.named(read.path), now))
        return sorted(rows)


def _is_as_read(read: ReadFile) -> bool:
    """Return whether a file still has the bytes that were read."""
    try:
        status = os.stat(read.path)
    except OSError:
        return False
    return read.identity is not None and not is_young(status) and identity(status) == read.identity
