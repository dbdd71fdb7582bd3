"""Crash reproducers: mgx-opt in a child process, so that a crash leaves a reproducer."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.weight_files import weights_beside

PENDING = (
    "MGX_OPT_PENDING_REPRODUCER"  # file in which the child keeps the module that it is about to run
)


def is_child() -> bool:
    """Return whether this process runs pipelines for a parent that writes reproducers."""
    return PENDING in os.environ


def pending() -> str | None:
    """Return the file that the child writes before it runs a pipeline."""
    return os.environ.get(PENDING)


def run_guarded(argv: Sequence[str], path: str) -> int:
    """Run the command line in a child; where a signal ends it, its reproducer goes to `path`."""
    folder = Path(tempfile.mkdtemp(prefix="mgx-opt-"))
    try:
        file = folder / "pending.mlir"
        command = [sys.executable, "-m", "mgx_mlir.tools.opt", *argv]
        environment = {**os.environ, PENDING: str(file)}
        code = subprocess.run(command, env=environment, check=False).returncode
        if code >= 0:
            return code
        name = signal.Signals(-code).name
        print(f"mgx-opt: error: the pass pipeline crashed: {name}", file=sys.stderr)
        if file.exists():
            try:
                shutil.copyfile(file, path)
                weights = weights_beside(file)
                if os.path.exists(weights):
                    shutil.copyfile(weights, weights_beside(path))
            except OSError as e:
                reason = (e.strerror or str(e)).lower()
                raise FileError(f"cannot write '{path}': {reason}") from None
            print(f"note: reproducer generated at `{path}`", file=sys.stderr)
        return 2
    finally:
        shutil.rmtree(folder, ignore_errors=True)
