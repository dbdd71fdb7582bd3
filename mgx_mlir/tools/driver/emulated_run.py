"""One call of a compiled gpu program on the emulator, in a process of its own, with its counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mgx_mlir.core.errors import TargetError
from mgx_mlir.core.files import temporary_folder
from mgx_mlir.programs.program_ir import ProgramIR

if TYPE_CHECKING:
    from mgx_mlir.compiler.iree_program import IreeProgram


STATISTICS = "MGX_EMULATE_STATS"


def emulated_statistics(source: ProgramIR, compiled: IreeProgram) -> dict[str, Any]:
    """Count `launches` and `executed` on the emulator; docs/emulator.md describes them.

    `source`: the program that was compiled. The counts are written when a process ends, so a
    process is started for them. Errors: TargetError where it fails, with what it printed.
    """
    # start-up: only what the command asks for is loaded
    from mgx_mlir.api.files import save
    from mgx_mlir.api.program import program

    arch = compiled.executable.arch
    made = program.of(source)
    made.adopt(compiled, {"target": "gpu", "arch": arch})
    with temporary_folder("mgx-emulate-") as folder:
        saved, counts = Path(folder, "program.mxr"), Path(folder, "counts.json")
        save(made, saved)
        command = [sys.executable, "-m", "mgx_mlir.tools.driver", "run", str(saved), "--gpu",
                   "--arch", arch, "--emulate"]  # fmt: skip
        ran = subprocess.run(
            command,
            env={**os.environ, STATISTICS: str(counts)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if ran.returncode or not counts.is_file():
            said = [line for line in ran.stderr.splitlines() if line.startswith(("error", "note"))]
            raise TargetError("the emulated call failed", notes=said or [ran.stderr[-1000:]])
        return json.loads(counts.read_text())
