"""The library that stands in for CUDA's: it runs PTX on the CPU. Built once, into the cache."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from mgx_mlir.targets import emulator_build, native_library
from mgx_mlir.targets.cache import cache_root

HERE = Path(__file__).parent
LIBRARY = "libcuda.so.1"
_SOURCES = ("cuda_stand_in.cpp", "ptx.cpp")
# integers wrap as the hardware's; kernels are run on the machine that builds it
_FLAGS = ("-std=c++17", "-O1", "-march=native", "-fwrapv", "-fPIC", "-w", "-fvisibility=hidden")
_WAIT = 900.0  # seconds that another process may build for


def built() -> Path:
    """Return the folder of the library, under both of its names. Skips where no compiler is."""
    compiler = emulator_build.compiler()
    files = sorted([*HERE.glob("ptx*"), HERE / _SOURCES[0]])
    key = hashlib.sha256("\0".join((*compiler, *_FLAGS)).encode())
    for file in files:
        key.update(file.read_bytes())
    folder = cache_root() / "cuda-stand-in" / key.hexdigest()[:32]

    def build() -> None:
        with tempfile.TemporaryDirectory(prefix="build-", dir=folder) as made:
            whole = Path(made, LIBRARY)
            linked = (f"-Wl,-soname,{LIBRARY}", "-Wl,-Bsymbolic", "-ldl", "-o", str(whole))
            command = [*compiler, *_FLAGS, "-shared", *(str(HERE / s) for s in _SOURCES), *linked]
            native_library.compile_with("stand-in of CUDA", command, made)
            native_library.publish(whole, folder / LIBRARY)
            other = Path(made, "libcuda.so")
            other.symlink_to(LIBRARY)
            other.replace(folder / other.name)

    try:
        native_library.once(folder / LIBRARY, "stand-in of CUDA", _WAIT, lambda _: None, build)
    except OSError:
        pytest.skip("no C++ compiler")
    return folder


def ran(folder: Path, text: str, *arguments: str, **more: str) -> list[dict[str, Any]]:
    """Run lines of Python over the stand-in; what they say as lines of JSON.

    more: variables of the environment.
    """
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("LD_LIBRARY_PATH"))))
    done = subprocess.run(
        [sys.executable, "-c", text, *arguments], capture_output=True, text=True,
        env={**os.environ, "LD_LIBRARY_PATH": path, **more}, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
