"""Models by directory: DIR/NAME/VERSION/model.onnx, compiled, with the protocol's metadata.

A folder DIR/NAME may hold config.json. {"max_batch_size": 32} states that rows of the first dim are
independent of each other, so that requests may be batched. "target", "arch", "threads" and
"options" (of `mgx_mlir.compile`) replace the server's for the model.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.core.errors import FileError, MgxError, RunError
from mgx_mlir.integrations.v2.datatypes import DTYPES, datatype_of
from mgx_mlir.integrations.v2.errors import V2Error
from mgx_mlir.programs.signature import DimRange, Port

PLATFORM = "mgx_mlir"
FILES = ("model.mxr", "model.onnx")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")


@dataclass(frozen=True)
class Entry:
    """A model in a directory: its file, and its configuration."""

    name: str
    version: str
    path: Path
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def max_batch_size(self) -> int:
        """Return the rows of a batch at most; 1 if requests are not batched."""
        return int(self.config.get("max_batch_size", 1))


def find_models(folder: str | os.PathLike[str]) -> list[Entry]:
    """Return the models of a directory, by name and version. FileError if there are none."""
    at = Path(folder)
    if not at.is_dir():
        raise FileError("expected a directory of models", location=str(folder))
    found: list[Entry] = []
    for place in sorted(at.iterdir()):
        if not place.is_dir() or not _NAME.fullmatch(place.name):
            continue
        config = _config(place / "config.json")
        versions = [p for p in place.iterdir() if p.is_dir() and p.name.isdecimal()]
        for version in sorted(versions, key=lambda p: int(p.name)):
            found += _entries(place.name, version.name, version, config)
        if not versions:
            found += _entries(place.name, "1", place, config)
    if not found:
        raise FileError(
            "the directory has no models", location=str(folder),
            notes=[f"expected NAME/VERSION/{' or '.join(FILES)}"],
        )  # fmt: skip
    return found


def _entries(name: str, version: str, folder: Path, config: Mapping[str, Any]) -> list[Entry]:
    for file in FILES:
        if (folder / file).is_file():
            return [Entry(name, version, folder / file, config)]
    return []


def _config(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as e:
        raise FileError(f"expected JSON: {str(e)[:200]}", location=str(path)) from None
    known = {"max_batch_size": int, "target": str, "arch": str, "threads": int, "options": dict}
    for key, value in found.items() if isinstance(found, dict) else [("", found)]:
        kind = known.get(key)
        if kind is None or not isinstance(value, kind) or (kind is int and value < 1):
            raise FileError(
                f"unknown or wrong entry {key!r}, expected {', '.join(known)}", location=str(path)
            )
    return found


class ServedModel:
    """A compiled model with the protocol's metadata.

    Errors: V2Error if an input or output has no type of the protocol.
    """

    def __init__(self, entry: Entry, program: CompiledProgram) -> None:
        self.entry, self.program = entry, program
        self.name, self.version = entry.name, entry.version
        signature = program.signature
        if signature.input_groups or signature.output_groups:
            raise FileError("inputs and outputs expected tensors", location=str(entry.path))
        for p in (*signature.given_inputs, *signature.outputs):
            if not datatype_of(p):
                raise FileError(
                    f"the protocol has no type for '{p.name}'", location=str(entry.path)
                )
        self.max_batch_size = entry.max_batch_size
        if self.max_batch_size > 1 and not self._has_dynamic_rows():
            raise FileError(
                "'max_batch_size' expected a first dim that every input and output leaves dynamic",
                location=str(entry.path),
            )

    def _has_dynamic_rows(self) -> bool:
        signature = self.program.signature
        return all(p.dims[:1] == (-1,) for p in (*signature.given_inputs, *signature.outputs))

    def warm_up(self) -> float:
        """Load the code and run it once; return the seconds."""
        start = time.perf_counter()
        feed: dict[str, np.ndarray] = {}
        for p in self.program.signature.given_inputs:
            ranges = p.ranges or (DimRange(),) * len(p.dims)
            dims = [d if d >= 0 else max(1, r.min) for d, r in zip(p.dims, ranges, strict=True)]
            kind = object if p.text else DTYPES[datatype_of(p)]
            feed[p.name] = np.full(dims, "", kind) if p.text else np.ones(dims, kind)
        # sizes or indices of zeros that the model does not take
        with contextlib.suppress(RunError):
            self.program.run(feed)
        return time.perf_counter() - start

    def metadata(self, versions: Sequence[str]) -> dict[str, Any]:
        """Return the model's metadata in the protocol's form."""

        def row(p: Port) -> dict[str, Any]:
            return {"name": p.name, "datatype": datatype_of(p), "shape": list(p.dims)}

        s = self.program.signature
        return {
            "name": self.name,
            "versions": list(versions),
            "platform": PLATFORM,
            "inputs": [row(p) for p in s.inputs],
            "outputs": [row(p) for p in s.outputs],
        }

    def config(self) -> dict[str, Any]:
        """Return the model configuration that clients of Triton ask for: names, types, batching."""

        def row(p: Port) -> dict[str, Any]:
            kind = "TYPE_STRING" if p.text else f"TYPE_{datatype_of(p)}"
            dims = p.dims[1:] if self.max_batch_size > 1 else p.dims
            return {"name": p.name, "data_type": kind, "dims": list(dims)}

        s = self.program.signature
        batch = self.max_batch_size if self.max_batch_size > 1 else 0
        return {
            "name": self.name, "platform": PLATFORM, "backend": PLATFORM, "max_batch_size": batch,
            "input": [row(p) for p in s.inputs], "output": [row(p) for p in s.outputs],
        }  # fmt: skip

    def checked(self, given: Mapping[str, np.ndarray], outputs: Sequence[str] | None) -> int:
        """Check a request; return its rows. Errors: V2Error, RunError."""
        unknown = [n for n in outputs or () if n not in self.program.output_names]
        if unknown:
            known = ", ".join(self.program.output_names)
            raise V2Error(f"unknown output '{unknown[0][:80]}', expected one of {known}")
        self.program.check_inputs(given)
        if self.max_batch_size == 1:
            return 1
        rows = {a.shape[0] for a in given.values()}
        if len(rows) > 1:
            raise V2Error(f"the inputs expected the same number of rows, got {sorted(rows)}")
        return rows.pop()


class Models:
    """Models of a server, by name and version; the newest version is the default."""

    def __init__(self, served: Sequence[ServedModel]) -> None:
        self._by_name: dict[str, dict[str, ServedModel]] = {}
        for m in served:
            self._by_name.setdefault(m.name, {})[m.version] = m

    @property
    def all(self) -> list[ServedModel]:
        """All models and versions."""
        return [m for versions in self._by_name.values() for m in versions.values()]

    def versions(self, name: str) -> list[str]:
        """Return the versions of a model, oldest first."""
        return sorted(self._by_name.get(name, {}), key=int)

    def get(self, name: str, version: str | None) -> ServedModel:
        """Return a model. Errors: V2Error, 404."""
        versions = self._by_name.get(name)
        if not versions:
            raise V2Error(f"unknown model '{name[:80]}'", 404)
        found = versions.get(version if version is not None else self.versions(name)[-1])
        if found is None:
            known = ", ".join(self.versions(name))
            raise V2Error(f"model '{name}' has no version '{str(version)[:40]}', only {known}", 404)
        return found


def load_models(
    entries: Sequence[Entry], program_of: Callable[[Entry], CompiledProgram]
) -> list[ServedModel]:
    """Return the models of entries, compiled by `program_of`; errors name the file."""
    found: list[ServedModel] = []
    for e in entries:
        try:
            found.append(ServedModel(e, program_of(e)))
        except MgxError as error:
            if error.location:
                raise
            raise FileError(error.message, location=str(e.path), notes=error.notes) from error
    return found
