"""Per-dispatch times of a module on the CPU, from IREE's own counters.

Measured are the time from the start of each dispatch's first workgroup to the end of its last,
without the runtime's work between dispatches, and the sum of all threads' time in its workgroups.
The module runs in a separate process of IREE's benchmark tool
on a local device; the numbers are wall clock, and include effects of other load.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mgx_mlir.core import dtypes, interrupts
from mgx_mlir.core.errors import RunError
from mgx_mlir.core.files import temporary_folder
from mgx_mlir.core.literals import aligned
from mgx_mlir.hardware.machine import has_tile_registers, runtime_tool
from mgx_mlir.runtime.asking_library import environment
from mgx_mlir.runtime.device import WORKER_STACK, choose

_ROW = re.compile(
    r"^\s*host_execute (?P<name>\S+)\s+count=(?P<count>\d+) total=(?P<total>[\d.]+) (?P<unit>\w+)"
    r"(?:[^\n]* tile_sum=(?P<busy>[\d.]+) (?P<busy_unit>\w+))?",
    re.M,
)
_WALL = re.compile(r"^BM_\S+\s+([\d.]+) (ns|us|ms|s)\s", re.M)
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True)
class DispatchTime:
    """A dispatch function: its launches per call of the program, and seconds per call.

    `seconds` is elapsed time, `busy` the sum of what each thread spent in it.
    """

    name: str
    launches: float
    seconds: float
    busy: float


@dataclass(frozen=True)
class Profile:
    """Times of one call: every dispatch function, slowest first, and the wall clock."""

    dispatches: tuple[DispatchTime, ...]
    wall: float
    calls: int
    threads: int

    @property
    def total(self) -> float:
        """Seconds in dispatches, over all of them."""
        return sum(d.seconds for d in self.dispatches)


def profile(
    vmfb: bytes | np.ndarray,
    params: Mapping[str, np.ndarray],
    args: Sequence[np.ndarray],
    *,
    threads: int | None = 1,
    calls: int = 10,
    entry: str = "main",
    scope: str = "model",
    timeout: float = 600.0,
) -> Profile:
    """Run a CPU module `calls` times and time each dispatch.

    args: the inputs in order, signless as the module has them or unsigned.
    Errors: RunError when the tool fails or its output has changed; TargetError without it.
    """
    kind, count = choose(None, threads)
    with temporary_folder("mgx-profile-") as folder:
        module = Path(folder, "module.vmfb")
        module.write_bytes(bytes(vmfb))
        command = [
            str(runtime_tool("iree-benchmark-module")),
            f"--module={module}",
            f"--device={kind}",
            f"--function={entry}",
            f"--benchmark_min_time={calls}x",
            "--print_device_statistics=true",
            f"--task_worker_stack_size={WORKER_STACK}",
        ]
        if kind == "local-task":
            command.append(f"--task_topology_group_count={count}")
        if params:
            archive = Path(folder, "params.irpa")
            _save(params, archive)
            command.append(f"--parameters={scope}={archive}")
        for i, a in enumerate(args):
            data = np.asarray(a, order="C")
            wire = dtypes.from_numpy(data.dtype).mlir.removeprefix("u")
            path = Path(folder, f"input{i}.bin")
            path.write_bytes(data.tobytes())
            command.append(f"--input={''.join(f'{d}x' for d in data.shape)}{wire}=@{path}")
        asks = environment(Path(folder)) if has_tile_registers() else {}
        try:
            with interrupts.at_once():
                done = subprocess.run(
                    command, capture_output=True, text=True, timeout=timeout, check=False,
                    env={**os.environ, **asks},
                )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise RunError(f"the profile was ended after {timeout:g} seconds") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise RunError(f"the profile failed: {lines[0] if lines else done.returncode}")
    return _parse(done.stdout + done.stderr, calls, count)


def _save(params: Mapping[str, np.ndarray], path: Path) -> None:
    import iree.runtime as rt  # the runtime takes long to load, and only calls need it

    index = rt.ParameterIndex()
    for key, value in params.items():
        a = aligned(np.asarray(value))
        index.add_buffer(key, a.reshape(-1).view(np.uint8) if a.size else b"")
    index.create_archive_file(str(path))


def _parse(text: str, calls: int, threads: int) -> Profile:
    wall = _WALL.search(text)
    if wall is None:
        raise RunError("the benchmark tool's output has no time in it")
    rows = []
    for m in _ROW.finditer(text):
        seconds = float(m["total"]) * _UNITS[m["unit"]] / calls
        busy = float(m["busy"]) * _UNITS[m["busy_unit"]] / calls if m["busy"] else seconds
        rows.append(DispatchTime(m["name"], int(m["count"]) / calls, seconds, busy))
    rows.sort(key=lambda d: -d.seconds)
    return Profile(tuple(rows), float(wall[1]) * _UNITS[wall[2]], calls, threads)
