"""Linking of kernels' objects to files for IREE's ELF loader, in the compile worker.

For its ELF loader IREE compiles 44 functions of the C library into each library of kernels, and
drops them when it links: half the time of a small library. Its static libraries have the few that
kernels call, so one is compiled here and linked as IREE links its own.

This file imports nothing of the package, as the worker that loads it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

LOCAL = "--iree-hal-target-device=local"
_MACHINES = {"x86_64": "x86_64", "aarch64": "arm_64"}  # names in formats, by the system's
_QUERY = "iree_hal_executable_library_query"  # the function that IREE's loader calls
_LINKER = "IREE_LLVM_EMBEDDED_LINKER_PATH"  # IREE's variable for another linker
# freestanding, without lazy binding or names of local symbols; equal functions are merged
_OPTIONS = (
    *("-flavor", "gnu", "--build-id=none", "-nostdlib", "-static", "-shared", "--no-undefined"),
    *("--no-allow-shlib-undefined", "--gc-sections", "-z", "now", "-z", "relro", "--discard-all"),
    *("--icf=all", "--ignore-data-address-equality", "--ignore-function-address-equality"),
    "--hash-style=sysv",
)


def format_of(flags: Sequence[str]) -> str | None:
    """Return the format of linked files; None where flags are not for this machine's CPU."""
    name = _MACHINES.get(os.uname().machine)
    return f"embedded-elf-{name}" if name is not None and LOCAL in flags else None


def object_flags(path: str) -> list[str]:
    """Return the flags that write a static library's object to a path."""
    return [
        "--iree-llvmcpu-link-embedded=false",
        "--iree-llvmcpu-link-static",
        f"--iree-llvmcpu-static-library-output-path={path}",
        f"--iree-llvmcpu-target-triple={os.uname().machine}-unknown-unknown-eabi-elf",
    ]


def linked(path: str, name: str) -> bytes | None:
    """Link the object of a static library of a name; None where it needs more of the C library."""
    import iree.compiler

    out = f"{path}.so"
    own = os.path.join(iree.compiler.__path__[0], "_mlir_libs", "iree-lld")
    alias = f"--defsym={_QUERY}={name}_library_query"
    command = [os.environ.get(_LINKER) or own, *_OPTIONS, alias, "-o", out, path]
    # otherwise the linker writes its version into the file
    environment = {**os.environ, "LLD_VERSION": "IREE"}
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    if done.returncode != 0:
        return None
    with open(out, "rb") as f:
        return f.read()


__all__ = ["LOCAL", "format_of", "linked", "object_flags"]
