"""A model repository for Triton's Python backend: config.pbtxt, model.py, the artefact."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.core.files import atomic
from mgx_mlir.integrations.v2.datatypes import datatype_of
from mgx_mlir.programs.signature import Port

ARTEFACT = "model.mxr"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")
MODEL = '''"""Written by mgx-driver bundle --triton; needs mgx_mlir where Triton runs."""

import os

from mgx_mlir.integrations.triton import TritonPythonModel

TritonPythonModel.folder = os.path.dirname(os.path.abspath(__file__))
'''


def data_type(port: Port) -> str:
    """Return Triton's name of a port's type. UsageError if its Python backend has none."""
    name = datatype_of(port)
    if not name or name == "BF16":
        raise UsageError(f"Triton's Python backend has no type for '{port.name}': {port.dtype}")
    return "TYPE_STRING" if port.text else f"TYPE_{name}"


def dims_of(port: Port, rows: bool) -> list[int]:
    """Return a port's dims without Triton's batch dim; dynamic dims are -1."""
    return list(port.dims[1:] if rows else port.dims)


def config_text(name: str, program: CompiledProgram, max_batch_size: int) -> str:
    """Return the config.pbtxt of a program.

    `max_batch_size` 0: requests are not batched. UsageError if a first dim is not dynamic.
    """
    s = program.signature
    if s.input_groups or s.output_groups:
        raise UsageError("expected tensors for inputs and outputs, got sequences")
    ports = (*s.inputs, *s.outputs)
    if max_batch_size and not all(p.dims[:1] == (-1,) for p in ports):
        raise UsageError(
            "--max-batch-size needs a first dim that is dynamic in every input and output"
        )
    if max_batch_size and any(len(p.dims) < 2 for p in ports):
        raise UsageError(
            "--max-batch-size needs a dim after the batch dim: Triton loads no other model"
        )
    kind = "KIND_GPU" if program.target == "gpu" else "KIND_CPU"
    lines = [f"name: {_text(name)}", 'backend: "python"', f"max_batch_size: {max_batch_size}"]
    lines += _ports("input", s.inputs, max_batch_size > 0)
    lines += _ports("output", s.outputs, max_batch_size > 0)
    lines.append(f"instance_group [ {{ kind: {kind} count: 1 }} ]")
    if max_batch_size:
        lines.append("dynamic_batching { max_queue_delay_microseconds: 5000 }")
    return "\n".join(lines) + "\n"


def _ports(role: str, ports: Sequence[Port], rows: bool) -> list[str]:
    found: list[str] = []
    for p in ports:
        dims = dims_of(p, rows)
        shape = f"dims: [ {', '.join(map(str, dims))} ]" if dims else "dims: [ 1 ]"
        more = "" if dims else " reshape { shape: [ ] }"
        entry = f"name: {_text(p.name)} data_type: {data_type(p)} {shape}{more}"
        found.append(f"{role} [ {{ {entry} }} ]")
    return found


def _text(value: str) -> str:
    """Return a string in protobuf's text format."""
    escaped = "".join(
        chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:03o}" for b in value.encode()
    )
    return f'"{escaped}"'


def write_repository(
    folder: str | os.PathLike[str], name: str, program: CompiledProgram, max_batch_size: int = 0
) -> Path:
    """Write DIR/NAME with version 1 of a program; return the folder.

    Errors: UsageError for names and types that Triton does not take, FileError.
    """
    from mgx_mlir.api.files import save

    if not _NAME.fullmatch(name):
        raise UsageError(f"expected a name of letters, digits, '.', '_' and '-', got '{name}'")
    config = config_text(name, program, max_batch_size)
    at = Path(folder) / name
    try:
        (at / "1").mkdir(parents=True, exist_ok=True)
        save(program, at / "1" / ARTEFACT)
        for path, text in ((at / "1" / "model.py", MODEL), (at / "config.pbtxt", config)):
            with atomic(path) as f:
                f.write(text.encode())
    except OSError as e:
        why = (e.strerror or str(e)).lower()
        raise FileError(f"cannot write the repository: {why}", location=os.fspath(at)) from None
    return at
