"""doctor: whether a GPU can be used, from the kernel driver to a matmul."""

from __future__ import annotations

import json
import sys

from mgx_mlir.core.errors import UsageError
from mgx_mlir.debug.gpu_system import system_checks
from mgx_mlir.debug.system_check import BAD, OK, WARNED, Check
from mgx_mlir.tools.driver.arguments import Arguments, Option, number
from mgx_mlir.tools.driver.colour import Tone, write_in
from mgx_mlir.tools.driver.options import HELP
from mgx_mlir.tools.driver.progress import say, step
from mgx_mlir.tools.driver.target_choice import EMULATED

USAGE = "[--gpu] [--device N] [--emulate] [--json]"
DESCRIPTION = """
Looks at the kernel driver, the permissions of /dev/kfd and the render nodes (of NVIDIA's: its
device files and libcuda), the GPUs that the driver lists, and the variables that hide or rename
them. Then, in a process of its own: the version of HIP or CUDA, the architecture, copies, a kernel,
an f16 matmul against numpy and the emulator, bandwidth and the latency of a launch. A line a
check, and below it how to mend what failed. Exit status 1: a check failed."""
OPTIONS = (
    Option(("--gpu",), "check a GPU (the default)", group="Target"),
    Option(("--device",), "which of several GPUs (default: 0)", "N", parse=number(0),
           group="Target"),
    Option(("--emulate",), "run the checks on the emulator of GPUs; the system's are left out",
           group="Target"),
    Option(("--json",), "print JSON", group="Output"),
    HELP,
)  # fmt: skip
_TONES: dict[str, Tone] = {OK: "good", BAD: "bad", WARNED: "odd"}


def run(args: Arguments) -> int:
    """Run the checks and print them; return 1 if one failed."""
    # start-up: only what the command asks for is loaded
    from mgx_mlir.debug.gpu_checks import device_checks
    from mgx_mlir.targets import emulator

    if args.file is not None:
        raise UsageError(f"expected no argument, got '{args.file}'")
    emulate, device = "--emulate" in args, args.get("--device", 0)
    if emulate:
        emulator.activate()  # here, since it may have to be built, which is said
    checks = [] if emulate else system_checks()
    # a process that opens a GPU without them fails in the same way, and says less
    if all(c.status != BAD for c in checks):
        with step("Running on the device ..."):
            checks += device_checks(device, emulate)
    failed = sum(c.status == BAD for c in checks)
    if "--json" in args:
        print(json.dumps({"checks": [c.row() for c in checks], "failed": failed}, indent=2))
    else:
        _print(checks)
        if emulate:
            say(EMULATED)
    return 1 if failed else 0


def _print(checks: list[Check]) -> None:
    width = max(len(c.name) for c in checks)
    for check in checks:
        sys.stdout.write(f"{check.name.ljust(width)}  ")
        write_in(sys.stdout, _TONES.get(check.status, "odd"), check.status.ljust(7))
        sys.stdout.write(f"  {check.found}\n")
        for note in check.notes:
            sys.stdout.write(f"{' ' * width}  note: {note}\n")
    bad = [c.name for c in checks if c.status == BAD]
    print(f"failed: {', '.join(bad)}" if bad else "all is well")
