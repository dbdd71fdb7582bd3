"""Runs tests with a guard page behind each buffer of the runtime, and each large array of numpy.

    python -m tests.runtime.guarded tests/models tests/lowering [OPTION OF PYTEST...]

A program that reads or writes outside of a buffer, or uses one that was freed, stops at the
instruction: the test is reported as one whose worker crashed, and stderr says which buffer it was
(guard/guard.c). Needs Linux, glibc and a C compiler. Memory is taken 8 KiB at least for a buffer.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_name("guard") / "guard.c"
# arrays of this many bytes may be read in place; smaller ones are copied to the runtime's memory
FROM_NUMPY = 1 << 16


def compiler() -> str | None:
    """The system's C compiler, where guards can be built at all."""
    if not sys.platform.startswith("linux") or not hasattr(ctypes.CDLL(None), "__libc_malloc"):
        return None
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def build(folder: Path) -> Path:
    """The library that is preloaded."""
    made = folder / "guard.so"
    found = compiler()
    if found is None:
        raise SystemExit("guards need Linux, glibc and a C compiler")
    flags = ["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([found, *flags, str(SOURCE), "-o", str(made)], check=True)
    return made


def environment(library: Path) -> dict[str, str]:
    """The environment of a guarded process."""
    return {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(ROOT)}


def watch() -> ctypes.CDLL:
    """Guard what the runtime and numpy allocate in this process from now on.

    Devices that are made later keep no freed buffer for another use.
    """
    import iree.runtime  # noqa: F401
    import numpy as np
    from iree.runtime import _binding

    np.zeros(1)
    guard = ctypes.CDLL(None)
    guard.guard_watch.argtypes = [ctypes.c_size_t] * 3
    guard.guard_count.restype = guard.guard_refused.restype = ctypes.c_size_t
    for row in Path("/proc/self/maps").read_text().splitlines():
        fields = row.split()
        if len(fields) < 6 or "x" not in fields[1]:
            continue
        name = Path(fields[5]).name
        begin, end = (int(x, 16) for x in fields[0].split("-"))
        if name == Path(_binding.__file__).name:
            guard.guard_watch(begin, end, 1)
        elif name.startswith("_multiarray_umath"):
            guard.guard_watch(begin, end, FROM_NUMPY)
    plain = _binding.HalDriver.create_default_device
    _binding.HalDriver.create_default_device = lambda driver, *_args, **_named: plain(driver)
    faulthandler.enable()
    guard.guard_report()
    return guard


def pytest_configure(config: object) -> None:
    """In the process that runs tests."""
    if hasattr(config, "workerinput"):
        watch()


def main(arguments: list[str]) -> int:
    """Run pytest on one guarded worker, which is started anew when it crashes."""
    with tempfile.TemporaryDirectory(prefix="mgx-guard-") as folder:
        command = [
            sys.executable, "-m", "pytest", "-p", "tests.runtime.guarded", "-n", "1",
            "--max-worker-restart", "1000", *arguments,
        ]  # fmt: skip
        return subprocess.run(command, env=environment(build(Path(folder))), check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
