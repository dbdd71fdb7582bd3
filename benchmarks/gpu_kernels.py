"""Times models on an AMD GPU, per call and per kernel beside the bounds: a file to send us.

    python benchmarks/gpu_kernels.py MODEL.onnx... [--fp16] [--calls 50] [-o gpu.json]
    python benchmarks/gpu_kernels.py MODEL.onnx --emulate gfx942      # here: no time is a GPU's

Each kernel runs by itself in a loop (IREE's benchmarks of executables), so no profiler is needed;
those of dynamic sizes have none. `bound` is of the compiled code (`targets/kernel_time.py`), and
`--emulate` says that all times are a processor's. Exit code 0: all models were timed; 1: one was
not; 2: there is no device.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import mgx_mlir
from benchmarks.gpu_bounds import narrowed
from benchmarks.oracle import inputs_for
from mgx_mlir.core.errors import MgxError
from mgx_mlir.hardware.machine import HIP_VARIABLE
from mgx_mlir.targets import emulator
from mgx_mlir.targets.child import CompileOutput, shared_compiler
from mgx_mlir.targets.devices import gpu_devices, why_no_device
from mgx_mlir.targets.kernel_bounds import compile_with_bounds

DUMPED = "--iree-hal-dump-executable-benchmarks-to"
TOOLS = Path(sys.executable).parent
LOOP = 20  # launches of a kernel between two readings of the clock


def compiled(path: Path, arch: str, options: argparse.Namespace, folder: Path) -> tuple[Any, bytes]:
    """Compile a model; leave a benchmark of each kernel in a folder. The module, as IREE got it."""
    compiler, sources = shared_compiler(), list[bytes]()
    plain = compiler.run

    def run(source: bytes, flags: Sequence[str], **given: Any) -> CompileOutput:
        sources.append(source)
        return plain(source, (*flags, f"{DUMPED}={folder}"), **given)

    compiler.run = run
    try:
        made = mgx_mlir.compile(
            narrowed(onnx.load(path)) if options.fp16 else str(path),
            target="gpu", arch=arch, emulate=bool(options.emulate), cache=False,
        )  # fmt: skip
    finally:
        del compiler.run
    return made, sources[-1]


def call_us(made: Any, inputs: dict[str, np.ndarray], calls: int) -> list[float]:
    """Quartiles of the time of a call, from arrays to arrays; the first one is not counted."""
    made.run(inputs)
    times: list[float] = []
    for _ in range(calls):
        start = time.perf_counter()
        made.run(inputs)
        times.append((time.perf_counter() - start) * 1e6)
    return [float(n) for n in np.percentile(times, (25, 50, 75))]


def kernel_us(folder: Path, arch: str, library: str, calls: int) -> dict[str, float]:
    """The time of each kernel that has a benchmark, by its name."""
    found: dict[str, float] = {}
    env = {**os.environ, **({HIP_VARIABLE: library} if library else {})}
    for source in sorted(folder.glob("*.mlir")):
        module = source.with_suffix(".vmfb")
        target = ["--iree-hal-target-device=hip", f"--iree-rocm-target={arch}"]
        compiling = [TOOLS / "iree-compile", source, *target, "-o", module]
        timing = [TOOLS / "iree-benchmark-module", f"--module={module}", "--device=hip",
                  f"--batch_size={LOOP}", f"--benchmark_min_time={calls}x",
                  "--benchmark_format=json"]  # fmt: skip
        if subprocess.run(compiling, capture_output=True, env=env).returncode:
            continue
        ran = subprocess.run(timing, capture_output=True, text=True, env=env)
        start = ran.stdout.find("{")
        for row in json.loads(ran.stdout[start:])["benchmarks"] if start >= 0 else ():
            found[row["name"].split("/")[0]] = float(row["real_time"])
    return found


def timed(path: Path, arch: str, options: argparse.Namespace, library: str) -> dict[str, Any]:
    """The figures of one model."""
    with tempfile.TemporaryDirectory(prefix="mgx-gpu-") as name:
        folder = Path(name)
        made, source = compiled(path, arch, options, folder)
        inputs = inputs_for(path)
        if options.fp16:
            floats = {n: a for n, a in inputs.items() if a.dtype == np.float32}
            inputs |= {n: a.astype(np.float16) for n, a in floats.items()}
        quartiles = call_us(made, inputs, options.calls)
        by_kernel = kernel_us(folder, arch, library, options.calls)
    _, launches = compile_with_bounds(source, arch)
    kernels = [
        {
            "name": one.kernel.name, "workgroups": one.workgroups,
            # a kernel that spills has no such figure
            "bound_us": one.time.us if one.time and isfinite(one.time.us) else None,
            "bound_by": one.time and one.time.bound_by,
            "us": next((us for n, us in by_kernel.items() if n.endswith(one.kernel.name)), None),
        }
        for one in launches.get("main$async") or next(iter(launches.values()), [])
    ]  # fmt: skip
    return {"model": path.stem, "arch": arch, "call_us": quartiles, "kernels": kernels,
            "fallbacks": list(made.executable.fallbacks)}  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--fp16", action="store_true", help="in f16")
    parser.add_argument("--calls", type=int, default=50, help="of each model and kernel")
    parser.add_argument("--emulate", metavar="GFX", help="on the emulator, as this GPU")
    parser.add_argument("-o", "--output", type=Path, default=Path("gpu.json"))
    options = parser.parse_args(argv)
    devices, library = gpu_devices(), ""
    if options.emulate:
        arch, library = options.emulate, str(emulator.activate())
    elif not devices:
        print(f"error: no GPU: {why_no_device()}; --emulate GFX runs here", file=sys.stderr)
        return 2
    else:
        arch = devices[0].arch
    rows: list[dict[str, Any]] = []
    status = 0
    for path in options.models:
        try:
            row = timed(path, arch, options, library)
        except (MgxError, OSError) as e:
            print(f"{path.stem}: {e}", file=sys.stderr)
            rows.append({"model": path.stem, "arch": arch, "error": str(e)})
            status = 1
            continue
        rows.append(row)
        known = [k for k in row["kernels"] if k["us"] is not None]
        bound = sum(k["bound_us"] or 0.0 for k in row["kernels"])
        print(f"{path.stem:<24} {arch:<8} call {row['call_us'][1]:10.1f} us, kernels "
              f"{sum(k['us'] for k in known):10.1f} us ({len(known)} of {len(row['kernels'])} "
              f"timed), bound {bound:8.1f} us", flush=True)  # fmt: skip
    report = {"emulated": bool(options.emulate), "version": mgx_mlir.__version__, "models": rows}
    options.output.write_text(json.dumps(report, indent=1))
    return status


if __name__ == "__main__":
    sys.exit(main())
