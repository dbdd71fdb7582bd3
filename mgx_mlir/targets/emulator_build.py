"""Build the emulator of AMD GPUs on demand: once, into the cache.

It needs only a C++17 compiler: `CXX`, else c++, g++ or clang++. The build is for this machine's
CPU, and its key has the sources, the C++ compiler and the CPU. Concurrent processes wait for the
first. MGX_EMULATOR_BUILD=0 switches it off. The library is trusted only if this user or root owns
it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import TargetError
from mgx_mlir.hardware.machine import available_cpus, processor_features
from mgx_mlir.targets import locks, native_library
from mgx_mlir.targets.cache import cache_root

SWITCH = "MGX_EMULATOR_BUILD"
_COMPILERS = ("c++", "g++", "clang++")
# flags of native/CMakeLists.txt: no contraction, as a product and a sum are one rounding only
# where the instruction says so; and the library's own calls stay its own
_FLAGS = ("-std=c++17", "-O2", "-ftree-vectorize", "-fPIC", "-march=native", "-ffp-contract=off",
          "-fno-math-errno", "-fvisibility=hidden", "-w", "-pthread")  # fmt: skip
_LINK = ("-shared", "-pthread", "-Wl,-Bsymbolic")
_WAIT = 1800.0  # seconds that another process may build for


def sources() -> Path | None:
    """Return the folder of the emulator's sources, in a wheel or in this tree."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "native", package.parent / "native"):
        if (folder / "src").is_dir():
            return folder
    return None


def build(library: str) -> Path:
    """Return the folder of the library in the cache; build it if it is missing.

    Errors: TargetError where that cannot be done, with what to install.
    """
    place, compiler = _checked()
    folder = cache_root() / "emulator" / _key(place, compiler)

    def waiting(holder: int) -> None:
        _say(f"Waiting for {locks.holder_text(holder)}, which builds the emulator ...")

    native_library.once(
        folder / library,
        "emulator",
        _WAIT,
        waiting,
        lambda: _build(place, compiler, folder, library),
    )
    return folder


def _checked() -> tuple[Path, list[str]]:
    """Return the sources and the C++ compiler. Errors: TargetError that says what is missing."""
    if os.environ.get(SWITCH) == "0":
        raise TargetError("the emulator is not built", notes=[f"{SWITCH}=0 says not to build it"])
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        raise TargetError(
            "the emulator is not built: it is for Linux on x86-64, this is "
            f"{platform.system()} on {platform.machine()}"
        )
    place = sources()
    if place is None:
        raise TargetError("the emulator is not built, and its sources are not installed")
    found = compiler()
    if shutil.which(found[0]) is None:
        stated = os.environ.get("CXX", "").strip()
        missing = f"'{found[0]}', which CXX names," if stated else "a C++17 compiler"
        raise TargetError(
            f"the emulator is not built, and {missing} is not found",
            notes=["install the package g++ (dnf: gcc-c++): it is built at the next run, once"],
        )
    return place, found


def compiler() -> list[str]:
    """Return the command of the C++ compiler: CXX, else the first that is installed, or the
    preferred one.
    """
    stated = shlex.split(os.environ.get("CXX", ""))
    return stated or [next((n for n in _COMPILERS if shutil.which(n)), _COMPILERS[0])]


def _files(place: Path) -> list[Path]:
    return sorted(p for p in (place / "src").rglob("*.cpp"))


def _key(place: Path, compiler: list[str]) -> str:
    """Return what a build depends on: sources, compiler, flags, and the CPU."""
    found = hashlib.sha256()
    inputs = [p for s in ("src", "isa") for p in (place / s).rglob("*") if p.is_file()]
    for path in sorted(inputs):
        found.update(f"{path.relative_to(place)}\0".encode() + path.read_bytes() + b"\0")
    version = subprocess.run(
        [*compiler, "--version"], capture_output=True, text=True, check=False, timeout=60
    ).stdout
    for text in (version, *compiler, *_FLAGS, *_LINK, *sorted(processor_features())):
        found.update(f"{text}\0".encode())
    return found.hexdigest()[:32]


def _build(place: Path, compiler: list[str], folder: Path, library: str) -> None:
    """Build the library in its folder, which one process does at a time.

    Objects of a build that was cut off are taken: the folder is named by all that they depend on.
    """
    files, run = _files(place), functools.partial(native_library.compile_with, "emulator")
    made = folder / "objects"
    made.mkdir(exist_ok=True)
    with _progress(len(files)) as done:

        def one(path: Path) -> str:
            out = made / f"{path.parent.name}-{path.stem}.o"
            if not out.exists():
                part = out.with_suffix(".part")
                run([*compiler, *_FLAGS, f"-I{place / 'src'}", f"-I{place}", "-c", str(path),
                     "-o", str(part)], str(made))  # fmt: skip
                part.replace(out)
            done()
            return str(out)

        with interrupts.at_once(), ThreadPoolExecutor(max(available_cpus(), 1)) as pool:
            objects = list(pool.map(one, files))
        whole = made / library
        run([*compiler, *objects, *_LINK, "-o", str(whole)], str(made))
        native_library.publish(whole, folder / library)
    shutil.rmtree(made, ignore_errors=True)


@contextlib.contextmanager
def _progress(count: int) -> Iterator[Callable[[], None]]:
    """Print that the emulator is being built, and on a terminal the progress."""
    _say("Building the emulator of AMD GPUs, once, for about a minute ...")
    shown = sys.stderr.isatty()
    lock = threading.Lock()
    ready = 0

    def done() -> None:
        nonlocal ready
        with lock:
            ready += 1
            if shown:
                sys.stderr.write(f"\r  {ready} of {count} files")
                sys.stderr.flush()

    try:
        yield done
    finally:
        if shown:
            sys.stderr.write("\r" + " " * 30 + "\r")


def _say(text: str) -> None:
    """Write a line of progress, because a build takes a minute."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
