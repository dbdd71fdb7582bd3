"""A compiled module for IREE's own tools: its parameters as an .irpa, and the line that runs it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
from collections.abc import Mapping, Sequence

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import FileError
from mgx_mlir.runtime.device import IREE_ERRORS, short
from mgx_mlir.runtime.ports import Spec

SCOPE = "model"  # scope of the parameters, in every module of ours


def write_parameters(path: str | os.PathLike[str], params: Mapping[str, np.ndarray]) -> None:
    """Write parameters by key as an archive, under a temporary name first. Errors: FileError."""
    import iree.runtime as rt  # the runtime takes long to load, and only this form needs it

    index, name = rt.ParameterIndex(), os.fspath(path)
    for key, value in params.items():
        data = np.ascontiguousarray(value)
        # bytes: the binding does not know the 8- and 16-bit float types
        index.add_buffer(key, data.reshape(-1).view(np.uint8) if data.size else b"")
    folder, base = os.path.split(name)
    temporary = os.path.join(folder, f".{base[:200]}.{secrets.token_hex(4)}")
    try:
        index.create_archive_file(temporary)
        os.replace(temporary, name)
    except IREE_ERRORS as e:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        why = (getattr(e, "strerror", None) or short(e)).lower()
        raise FileError(f"cannot write the file: {why}", location=name) from None


def run_line(
    code: str, weights: str | None, device: str, inputs: Sequence[Spec], entry: str = "main"
) -> str:
    """Return the iree-run-module command that runs a module on zeros; dynamic dims are 1."""
    words = ["iree-run-module", f"--device={device}", f"--module={code}"]
    if weights is not None:
        words.append(f"--parameters={SCOPE}={weights}")
    words.append(f"--function={entry}")
    for port in inputs:
        # a module declares integers without a sign
        wire = dtypes.from_name(port.dtype).mlir.removeprefix("u")
        words.append(f"--input={'x'.join([*(str(abs(d)) for d in port.dims), wire])}=0")
    return shlex.join(words)
