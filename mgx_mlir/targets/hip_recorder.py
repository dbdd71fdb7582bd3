"""Builds the library that records a call as a HIP graph (native/record): once, into the cache.

It is loaded between IREE's driver and a HIP library, and linked with that library. The build needs
a C++17 compiler, and takes a second.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from pathlib import Path

from mgx_mlir.core.errors import TargetError
from mgx_mlir.targets import emulator_build, native_library
from mgx_mlir.targets.cache import cache_root
from mgx_mlir.targets.emulator import LIBRARY

_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-pthread", "-shared",
          "-Wl,-Bsymbolic")  # fmt: skip
_WAIT = 300.0  # seconds that another process may build for


def build(hip: Path) -> Path:
    """Return the folder of the recorder over a HIP library's file; build it where it is missing.

    Errors: TargetError where that cannot be done, with what to install.
    """
    source, compiler = _checked()
    key = hashlib.sha256(source.read_bytes())
    key.update("\0".join((str(hip), *compiler, *_FLAGS)).encode())
    folder = cache_root() / "hip-graph" / key.hexdigest()[:32]
    native_library.once(
        folder / LIBRARY, "recorder of HIP graphs", _WAIT, lambda holder: None,
        lambda: _build(source, compiler, hip, folder),
    )  # fmt: skip
    return folder


def _checked() -> tuple[Path, list[str]]:
    """Return the sources and the C++ compiler. Errors: TargetError that says what is missing."""
    if sys.platform != "linux":
        raise TargetError("HIP graphs are recorded on Linux only")
    place = emulator_build.sources()
    source = None if place is None else place / "record" / "record.cpp"
    if source is None or not source.is_file():
        raise TargetError("the source of the recorder of HIP graphs is not installed")
    compiler = emulator_build.compiler()
    if shutil.which(compiler[0]) is None:
        raise TargetError(
            "a program as one HIP graph needs a C++17 compiler, once",
            notes=["install the package g++ (dnf: gcc-c++), or leave graph (--graph) out"],
        )
    return source, compiler


def _build(source: Path, compiler: list[str], hip: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="build-", dir=folder) as made:
        whole = Path(made, LIBRARY)
        command = [*compiler, *_FLAGS, f'-DMGX_HIP="{hip}"', str(source), "-o", str(whole),
                   "-Wl,--no-as-needed", str(hip), f"-Wl,-rpath,{hip.parent}", "-ldl"]  # fmt: skip
        native_library.compile_with("recorder of HIP graphs", command, made)
        native_library.publish(whole, folder / LIBRARY)
