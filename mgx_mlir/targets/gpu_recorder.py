"""Builds the library that records a call as a HIP or CUDA graph (native/record), into the cache.

It is loaded between IREE's driver and HIP or CUDA: linked with a HIP library, or loading CUDA's by
name. The build needs a C++17 compiler, and takes a second.
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
CUDA_LIBRARY = "libcuda.so"  # the name that IREE looks for
_CUDA = "libcuda.so.1"  # the driver's own


def build(hip: Path) -> Path:
    """Return the folder of the recorder over a HIP library's file; build it where it is missing.

    Errors: TargetError where that cannot be done, with what to install.
    """
    linked = (f'-DMGX_HIP="{hip}"', "-Wl,--no-as-needed", str(hip), f"-Wl,-rpath,{hip.parent}")
    return _built("HIP", "record.cpp", LIBRARY, linked)


def build_cuda() -> Path:
    """Return the folder of the recorder over CUDA; build it where it is missing.

    Errors: TargetError where that cannot be done, with what to install.
    """
    # the name under which IREE is given it, once it is loaded
    linked = (f'-DMGX_CUDA="{_CUDA}"', f"-Wl,-soname,{CUDA_LIBRARY}")
    return _built("CUDA", "record_cuda.cpp", CUDA_LIBRARY, linked)


def _built(vendor: str, file: str, library: str, linked: tuple[str, ...]) -> Path:
    what = f"recorder of {vendor} graphs"
    source, compiler = _checked(vendor, file)
    key = hashlib.sha256(source.read_bytes() + source.with_name("recording.h").read_bytes())
    key.update("\0".join((*linked, *compiler, *_FLAGS)).encode())
    folder = cache_root() / f"{vendor.lower()}-graph" / key.hexdigest()[:32]

    def build() -> None:
        with tempfile.TemporaryDirectory(prefix="build-", dir=folder) as made:
            whole = Path(made, library)
            command = [*compiler, *_FLAGS, str(source), "-o", str(whole), *linked, "-ldl"]
            native_library.compile_with(what, command, made)
            native_library.publish(whole, folder / library)

    native_library.once(folder / library, what, _WAIT, lambda holder: None, build)
    return folder


def _checked(vendor: str, file: str) -> tuple[Path, list[str]]:
    """Return the source and the C++ compiler. Errors: TargetError that says what is missing."""
    if sys.platform != "linux":
        raise TargetError(f"{vendor} graphs are recorded on Linux only")
    place = emulator_build.sources()
    source = None if place is None else place / "record" / file
    if source is None or not source.is_file():
        raise TargetError(f"the source of the recorder of {vendor} graphs is not installed")
    compiler = emulator_build.compiler()
    if shutil.which(compiler[0]) is None:
        raise TargetError(
            f"a program as one {vendor} graph needs a C++17 compiler, once",
            notes=["install the package g++ (dnf: gcc-c++), or leave graph (--graph) out"],
        )
    return source, compiler
