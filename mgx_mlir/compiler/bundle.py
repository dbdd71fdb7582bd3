"""Bundles: a folder with a model's code for several batch sizes and architectures, and its weights
once.

    manifest.json       the contents, and the key that they are made from
    code/NAME.vmfb      a module for each batch size and architecture
    weights.irpa        every weight once, named by its SHA-256; mapped when it is loaded
    SHA256SUMS          of all files, for sha256sum -c

docs/deploy.md states the fields of the manifest.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.compiler.saved import bytes_key, entry_and_data, restored, tree_digest
from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.core.files import atomic, file_sha256, read_with_status, writer_of
from mgx_mlir.core.literals import own
from mgx_mlir.frontends.mxr.checks import as_list, as_map, as_text, located, member
from mgx_mlir.frontends.mxr.decode import decode_json
from mgx_mlir.runtime.device import IREE_ERRORS, runtime_version, short
from mgx_mlir.runtime.parameter_files import write_parameters

MANIFEST, WEIGHTS, SUMS = "manifest.json", "weights.irpa", "SHA256SUMS"
VERSION = 1
_CODE = re.compile(r"code/[A-Za-z0-9._-]{1,200}\.vmfb")
_HINT = ("make the bundle again: mgx-driver bundle",)


@dataclass(frozen=True)
class Member:
    """One compiled program of a bundle: its name (of the file too), batch size, and code."""

    name: str
    batch: int
    program: IreeProgram


def bundle_key(model: str, options: Mapping[str, Any]) -> str:
    """Return a bundle's key: SHA-256 of the model's digest, options and IREE's version.

    As JSON with sorted keys and without spaces: {"iree":..,"model":..,"options":{..}}.
    """
    row = {"model": model, "options": dict(options), "iree": runtime_version()}
    text = json.dumps(row, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@interrupts.held
def write_bundle(
    folder: str | os.PathLike[str],
    members: Sequence[Member],
    model: str,
    options: Mapping[str, Any],
) -> None:
    """Write a bundle into a folder, which is made. `model` is the SHA-256 of the model's file.

    The manifest is written last: a folder that has one is complete. Errors: FileError.
    """
    at = Path(folder)
    rows: list[dict[str, Any]] = []
    weights: dict[str, np.ndarray] = {}
    sums: dict[str, str] = {}
    try:
        (at / "code").mkdir(parents=True, exist_ok=True)
        (at / MANIFEST).unlink(missing_ok=True)
        for m in members:
            entry, blobs = entry_and_data(m.program, {}, tree_digest({}))
            code = f"code/{m.name}.vmfb"
            _write(at / code, blobs.pop("").data)
            sums[code] = entry["vmfb"]["bytes"]
            for name, data in blobs.items():
                weights.setdefault(
                    entry["params"][name]["bytes"], np.frombuffer(data.data, np.uint8)
                )
            arch = m.program.executable.arch
            rows.append({"name": m.name, "batch": m.batch, "arch": arch, "code": code,
                         "entry": entry})  # fmt: skip
        if weights:
            write_parameters(at / WEIGHTS, dict(sorted(weights.items())))
            sums[WEIGHTS] = file_sha256(at / WEIGHTS)
        manifest = {
            "mgx_mlir_bundle": VERSION,
            "key": bundle_key(model, options),
            "model": model,
            "options": dict(options),
            "iree": runtime_version(),
            "target": members[0].program.target,
            "weights": WEIGHTS if weights else None,
            "members": rows,
        }
        text = json.dumps(manifest, indent=1).encode()
        sums[MANIFEST] = hashlib.sha256(text).hexdigest()
        lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))
        _write(at / SUMS, lines.encode())
        _write(at / MANIFEST, text)
    except OSError as e:
        why = (e.strerror or str(e)).lower()
        raise FileError(f"cannot write the bundle: {why}", location=os.fspath(folder)) from None


def _write(path: Path, data: bytes | memoryview) -> None:
    with atomic(path) as f:
        f.write(data)


class Bundle:
    """An opened bundle.

    `key`, `target`, `batches` and `archs` describe it. Errors: FileError for another folder, or for
    code that others may have written; see load() about `trust_code`.
    """

    def __init__(self, folder: str | os.PathLike[str], *, trust_code: bool | None = None) -> None:
        self._at, self._trust = Path(folder), trust_code
        name = os.fspath(self._at / MANIFEST)
        try:
            found = as_map(decode_json(self._read(MANIFEST)), "the manifest")
            version = found.get("mgx_mlir_bundle")
            if version != VERSION:
                raise FileError(f"the bundle's version is {version!r:.40}, expected {VERSION}")
            self.key = as_text(member(found, "key", "the manifest"), "'key'")
            self.target = as_text(member(found, "target", "the manifest"), "'target'")
            self._weights = found.get("weights")
            if self._weights not in (None, WEIGHTS):
                raise FileError(f"'weights' expected {WEIGHTS}")
            rows = as_list(member(found, "members", "the manifest"), "'members'")
            self._rows = [as_map(r, "a member") for r in rows]
            self.batches = sorted({self._batch(r) for r in self._rows})
            self.archs = sorted({as_text(r.get("arch"), "'arch'") for r in self._rows})
        except FileError as e:
            raise located(e, name) from None

    @staticmethod
    def _batch(row: Mapping[str, Any]) -> int:
        batch = row.get("batch")
        if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
            raise FileError("'batch' expected a size")
        return batch

    def load(self, batch: int, *, emulate: bool = False, device_id: int = 0) -> IreeProgram:
        """Return the program for a batch size and this machine's device. Nothing is compiled.

        Errors: FileError where there is none; UsageError for another batch size.
        """
        rows = [r for r in self._rows if self._batch(r) == batch]
        if not rows:
            listed = ", ".join(map(str, self.batches))
            raise UsageError(f"the bundle has no batch size {batch}, expected one of {listed}")
        try:
            entries = [as_map(member(r, "entry", "a member"), "'entry'") for r in rows]
            codes = {}
            for row, entry in zip(rows, entries, strict=True):
                path = as_text(member(row, "code", "a member"), "'code'")
                if not _CODE.fullmatch(path):
                    raise FileError("'code' expected a file of the bundle")
                data = self._read(path)
                stated = as_map(member(entry, "vmfb", "'entry'"), "'vmfb'").get("bytes")
                if bytes_key(data) != stated:
                    raise FileError(f"{path} is damaged: its checksum does not match")
                codes[stated] = data
            weights = self._memory() if self._weights else {}
            made, _, _ = restored(
                entries, {}, hint=_HINT, emulate=emulate, device_id=device_id,
                elsewhere=lambda key: codes.get(key) or weights.get(key),
            )  # fmt: skip
        except FileError as e:
            raise located(e, os.fspath(self._at)) from None
        if made is None:
            raise FileError("a bundle holds code, got the reference", location=os.fspath(self._at))
        return made

    def _read(self, name: str) -> memoryview:
        view, status = read_with_status(self._at / name, mapped=True)
        self._check(name, status)
        return own(np.frombuffer(view, np.uint8)).data

    def _check(self, name: str, status: os.stat_result) -> None:
        doubt = writer_of(status) if self._trust is None else "" if self._trust else "it is off"
        if doubt:
            raise FileError(
                f"{name} belongs to machine code that is not trusted: {doubt}",
                notes=["trust_code=True runs it"],
            )

    def _memory(self) -> dict[str, memoryview]:
        """Return the weights by digest, mapped."""
        import iree.runtime as rt  # lazy: the runtime takes long to load

        path = self._at / WEIGHTS
        try:
            self._check(WEIGHTS, path.stat())
            index = rt.ParameterIndex()
            index.load(os.fspath(path), mmap=True)
            items = list(index.items())
        except IREE_ERRORS as e:
            why = (getattr(e, "strerror", None) or short(e)).lower()
            raise FileError(f"{WEIGHTS} cannot be read: {why}") from None
        # the view keeps the mapping
        return {k: np.frombuffer(e.file_view, np.uint8).data for k, e in items if e.is_file}


@interrupts.held
def load_bundle(
    folder: str | os.PathLike[str],
    batch: int,
    *,
    emulate: bool = False,
    device_id: int = 0,
    trust_code: bool | None = None,
) -> IreeProgram:
    """Return a bundle's program for a batch size, without compiling; weights are mapped.

    Of several architectures it takes the code for this machine's device. Errors: FileError,
    UsageError.
    """
    found = Bundle(folder, trust_code=trust_code)
    return found.load(batch, emulate=emulate, device_id=device_id)
