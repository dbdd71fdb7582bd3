"""env: versions, devices, caches, and what the environment sets."""

from __future__ import annotations

import json
import os
import platform
from typing import Any

from mgx_mlir import __version__
from mgx_mlir.core.errors import MgxError, UsageError
from mgx_mlir.tools.driver.arguments import Arguments, Option
from mgx_mlir.tools.driver.environment import PREFIX, VARIABLES
from mgx_mlir.tools.driver.options import HELP

USAGE = "[--json]"
DESCRIPTION = """
What a report of a fault should say: versions, processor, GPUs, the compile cache and the tuning
file, and the variables of the environment that change what the driver does."""
OPTIONS = (Option(("--json",), "print JSON", group="Output"), HELP)

PACKAGES = ("torch-mlir", "iree-base-compiler", "iree-base-runtime", "numpy", "onnx", "ml_dtypes")
OPTIONAL = ("onnxruntime", "tensorflow")  # packages that some commands compare with, or read with


def run(args: Arguments) -> int:
    """Print versions, devices, caches and the environment's switches."""
    if args.file is not None:
        raise UsageError(f"expected no argument, got '{args.file}'")
    found = facts()
    if "--json" in args:
        print(json.dumps(found, indent=2))
        return 0
    for group, rows in found.items():
        print(f"{group}:")
        for name, value in rows.items() if isinstance(rows, dict) else enumerate(rows):
            text = ", ".join(map(str, value)) if isinstance(value, list) else value
            print(f"  {name}: {'none' if text in ('', None) else text}")
        if not rows:
            print("  none")
    return 0


def facts() -> dict[str, Any]:
    """Collect what the command prints, as JSON values."""
    return {
        "versions": _versions(),
        "processor": _processor(),
        "gpus": _gpus(),
        "cache": _cache(),
        "tuning": _tuning(),
        "environment": {
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith("MGX_") or name.removeprefix(PREFIX) in VARIABLES
        },
    }


def _versions() -> dict[str, str]:
    # start-up: only what the command asks for is loaded
    from mgx_mlir.tools.driver.main import version_of

    return {
        "mgx_mlir": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        **{name: version_of(name) for name in (*PACKAGES, *OPTIONAL)},
    }


def _processor() -> dict[str, Any]:
    # start-up: only what the command asks for is loaded
    from mgx_mlir.hardware.machine import available_cpus, processor_features

    shown = ("avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512_bf16", "avx512_fp16",
             "avx512_vnni", "amx_tile", "amx_int8", "amx_bf16", "asimd", "sve", "sve2", "i8mm",
             "bf16")  # fmt: skip
    features = processor_features()
    return {
        "name": _processor_name(),
        "machine": platform.machine(),
        "threads": available_cpus(),
        "features": [f for f in shown if f in features],
        "vector kernels": _has_vector_kernels(),
    }


def _has_vector_kernels() -> bool | None:
    """Return whether the CPU has them; None where no bindings are installed to say it."""
    try:
        from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
    except MgxError:
        return None
    return isa_of("host") is not None


def _processor_name() -> str:
    try:
        with open("/proc/cpuinfo") as f:
            for line in f:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def _gpus() -> list[str]:
    # start-up: only what the command asks for is loaded
    from mgx_mlir.targets.devices import gpu_devices

    return [f"{d.name} {d.arch}".strip() for d in gpu_devices()]


def _cache() -> dict[str, Any]:
    # start-up: only what the command asks for is loaded
    from mgx_mlir.targets.cache import cache_root, default_cache

    size = entries = 0
    for folder, _, files in os.walk(cache_root()):
        for name in files:
            try:
                size += os.stat(os.path.join(folder, name)).st_size
            except OSError:
                continue
            entries += 1
    return {"path": str(cache_root()), "on": default_cache() is not None, "files": entries,
            "bytes": size}  # fmt: skip


def _tuning() -> dict[str, Any]:
    # start-up: only what the command asks for is loaded
    from mgx_mlir.compiler.tuning.solutions import solutions, tuning_file

    try:
        count: Any = solutions()
    except MgxError as e:
        count = e.message
    return {"path": str(tuning_file()), "solutions": count}
