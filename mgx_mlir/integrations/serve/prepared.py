"""Models of a directory, compiled once by a separate process, in files that workers map."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import mgx_mlir
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.integrations.v2.models import Entry, ServedModel, find_models, load_models
from mgx_mlir.runtime.workers import Workers

HANDLER = "mgx_mlir.integrations.serve.prepared:prepare"


def prepare(setup: Mapping[str, Any]) -> Any:
    """Compile the models of a directory; write their paths and compile times to a file.

    setup: "folder" of models, "target", "options" of `compile`, "into" a folder for the files.
    """
    rows: list[dict[str, Any]] = []
    for k, entry in enumerate(find_models(setup["folder"])):
        seconds: float | None = None
        path = entry.path

        def program_of(entry: Entry) -> CompiledProgram:
            return _compiled(entry, setup["target"], setup["options"])

        if path.suffix != ".mxr":
            [served] = load_models([entry], program_of)
            stats = served.program.stats
            seconds = None if stats.cached else stats.total_s or 0.0
            path = Path(setup["into"], f"{k}.mxr")
            mgx_mlir.save(served.program, path)
            served.program.close()
        else:  # workers map a copy: the original may be overwritten
            path = Path(setup["into"], f"{k}.mxr")
            shutil.copyfile(entry.path, path)
        rows.append(
            {"name": entry.name, "version": entry.version, "path": str(path),
             "config": dict(entry.config), "seconds": seconds}
        )  # fmt: skip
    Path(setup["into"], "models.json").write_text(json.dumps(rows))
    return sys.exit


def _compiled(entry: Entry, target: str | None, options: Mapping[str, Any]) -> CompiledProgram:
    config = entry.config
    own = {**options, **config.get("options", {})}
    own |= {key: config[key] for key in ("arch", "threads") if key in config}
    return mgx_mlir.compile(str(entry.path), config.get("target", target), **own)


def loaded(rows: Sequence[Mapping[str, Any]]) -> list[ServedModel]:
    """Return the models of prepared files, read in place without a copy."""
    entries = [Entry(r["name"], r["version"], Path(r["path"]), r["config"]) for r in rows]
    return load_models(entries, lambda e: _program(e.path))


def _program(path: Path) -> CompiledProgram:
    found = mgx_mlir.load(path)
    return found if isinstance(found, CompiledProgram) else found.compiled


def prepared(
    folder: str | os.PathLike[str], target: str | None, options: Mapping[str, Any], ends: ExitStack
) -> list[dict[str, Any]]:
    """Return the rows of a directory's compiled models; `ends` removes their files.

    Errors: MgxError if a model cannot be read, compiled or served.
    """
    find_models(folder)
    into = ends.enter_context(tempfile.TemporaryDirectory(prefix="mgx-serve-"))
    setup = {"folder": os.path.abspath(folder), "target": target, "options": dict(options),
             "into": into}  # fmt: skip
    Workers(HANDLER, setup).close()
    return json.loads(Path(into, "models.json").read_text())
