"""The compile worker: a process that compiles one module after another for its parent.

It is started as a file and imports nothing of this package, so that it starts fast and cannot
see the parent's state. Frames on stdin and stdout are an 8-byte length, a JSON header, and the
bytes whose count the header gives. Diagnostics go to stderr, which the parent reads.

    python worker.py                  serve requests until stdin closes
    python worker.py --validate FILE  parse FILE strictly; exit 1 with the errors on stderr
    python worker.py --exec PARENT COMMAND..
                                      become the command, which ends with the process PARENT
"""

from __future__ import annotations

import ctypes
import os
import sys
from types import ModuleType

if sys.path and sys.path[0] == os.path.dirname(os.path.abspath(__file__)):
    del sys.path[0]  # the neighbours of this file must not shadow other packages' modules

import json
import select
import signal
import struct
import threading
import time
from typing import Any, BinaryIO

IDLE_SECONDS = 120.0  # an idle worker gives its memory back
SINGLE = "MGX_COMPILE_THREADS"  # 1: IREE's passes use no threads
# Analyses prepare to print the module, and verify it for that: a tenth of a compile. It is verified
# as it is read; errors print an op in the generic form, which takes any.
SKIP_CHECKS = "--mlir-print-assume-verified"
# Readers of other formats and targets of other machines. Every set of patterns is built by a walk
# over all registered ops, theirs included: a small module takes three quarters of the time without.
UNUSED_PLUGINS = (
    "input_torch", "input_stablehlo", "input_tosa", "hal_target_cuda", "hal_target_metal_spirv",
    "hal_target_vulkan_spirv",
)  # fmt: skip
SINGLE_THREAD = "--mlir-disable-threading"
VERIFY = "MGX_COMPILE_VERIFY"  # 1: what each of IREE's passes made is verified


def send(stream: BinaryIO, header: dict[str, Any], payload: bytes = b"") -> None:
    """Write one frame."""
    text = json.dumps({**header, "bytes": len(payload)}).encode()
    stream.write(struct.pack("<Q", len(text)) + text)
    stream.write(payload)
    stream.flush()


def receive(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """Read one frame; None when the stream ends."""
    size = stream.read(8)
    if len(size) < 8:
        return None
    text = stream.read(struct.unpack("<Q", size)[0])
    header = json.loads(text)
    payload = stream.read(header["bytes"])
    return (header, payload) if len(payload) == header["bytes"] else None


def _reset_peak() -> None:
    try:
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")
    except OSError:
        pass  # not Linux: the parent then reports no peak


def _memory() -> tuple[int, int]:
    """Return peak and present resident bytes of this process, 0 where the system does not say."""
    peak = now = 0
    try:
        with open("/proc/self/status") as f:
            for line in f:
                if line.startswith("VmHWM:"):
                    peak = int(line.split()[1]) * 1024
                elif line.startswith("VmRSS:"):
                    now = int(line.split()[1]) * 1024
    except OSError:
        pass
    return peak, now


def _bindings() -> ModuleType:
    """Return IREE's MLIR bindings, of which the wheel ships no stub."""
    from iree.compiler import ir  # --exec needs no compiler

    return ir


def validate(source: bytes) -> str:
    """Parse strictly, with no unregistered operation allowed; the errors, or an empty string."""
    ir = _bindings()
    with ir.Context():
        try:
            ir.Module.parse(source)
        except ir.MLIRError as e:
            return str(e)
    return ""


def _without_verifier(invocation: Any) -> None:
    """Turn off the checks between passes, a third of a compile; the bindings lack the call."""
    # --exec needs no compiler
    from iree.compiler.api import ctypes_dl

    call = ctypes_dl._dylib.ireeCompilerInvocationSetVerifyIR
    call.argtypes, call.restype = [ctypes.c_void_p, ctypes.c_bool], None
    call(invocation._inv_p, False)


def _is_valid(invocation: Any) -> bool:
    """Verify what all passes made, in little time: kernels are binaries by then.

    An invalid cast on the host would be written as the bytes of another type.
    """
    # --exec needs no compiler
    from iree.compiler.api import ctypes_dl

    library = ctypes_dl._dylib
    take, check = library.ireeCompilerInvocationExportStealModule, library.mlirOperationVerify
    give = library.ireeCompilerInvocationImportStealModule
    take.argtypes, take.restype = [ctypes.c_void_p], ctypes.c_void_p
    check.argtypes, check.restype = [ctypes.c_void_p], ctypes.c_bool
    give.argtypes, give.restype = [ctypes.c_void_p, ctypes.c_void_p], ctypes.c_bool
    module = take(invocation._inv_p)
    valid = bool(check(module))
    return bool(give(invocation._inv_p, module)) and valid


def compile_one(source: bytes, flags: list[str], verify: bool) -> tuple[str, bytes]:
    """Compile in this process: ("ok", vmfb), ("flags", why), ("input", why) or ("compile", "").

    verify: after each pass too; the source is verified in any case.
    """
    # --exec needs no compiler
    from iree.compiler.api import Output, Session, Source

    wrong = validate(source)
    if wrong:
        return "input", wrong.encode()
    with Session() as session:
        try:
            session.set_flags(*flags)
        except ValueError as e:
            return "flags", str(e).encode()
        # text must end in a NUL; bytecode is recognised by its magic number
        data = source if source[:4] == b"ML\xefR" else source + b"\0"
        wrapped = Source.wrap_buffer(session, data, buffer_name="input.mlir")
        with wrapped:
            invocation = session.invocation()
            invocation.enable_console_diagnostics()
            if not verify:
                _without_verifier(invocation)
            if not invocation.parse_source(wrapped) or not invocation.execute():
                return "compile", b""
            if not verify and not _is_valid(invocation):
                return "compile", b""
            output = Output.open_membuffer()
            with output:
                invocation.output_vm_bytecode(output)
                return "ok", bytes(output.map_memory())


def _remove(folder: str) -> None:
    """Remove the temporary folder that the parent made: it may have been killed."""
    import shutil  # takes long to load, and is needed at the end alone

    shutil.rmtree(folder, ignore_errors=True)


def _die_with_parent(lifeline: int, folder: str) -> None:
    """Block until the parent's end of the pipe closes, then remove folder and end this group."""
    os.read(lifeline, 1)
    _remove(folder)
    os.killpg(os.getpgid(0), signal.SIGKILL)


def become(parent: int, command: list[str]) -> None:
    """Replace this process by a command that the system ends when the parent's thread ends.

    parent: the process that started this one. It may be number 1, as in a container.
    """
    if sys.platform == "linux":
        parent_death_signal = 1  # option of prctl(2); execve keeps it
        ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit(1)  # the parent ended before the call
    os.execv(command[0], command)


def process_options() -> list[str]:
    """Return the options that IREE has for a process, but none for a session.

    No threads inside passes where that is asked for: there are many small modules then, one worker
    for each core, and handing out small work takes a sixth of the time.
    """
    single = [SINGLE_THREAD] if os.environ.get(SINGLE) == "1" else []
    return [SKIP_CHECKS, *(f"--iree-plugin=-{name}" for name in UNUSED_PLUGINS), *single]


def _set_options() -> None:
    """Give IREE the options of this process."""
    # --exec needs no compiler
    from iree.compiler.api import ctypes_dl

    ctypes_dl._initializeGlobalCL("worker", *process_options())


def serve(lifeline: int, folder: str) -> int:
    """Answer requests until stdin closes or nothing came for IDLE_SECONDS.

    lifeline: a pipe that the parent holds open, or -1. folder: the process's own, or "".
    """
    requests = sys.stdin.buffer
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # native code may print; the reply stream stays clean
    if lifeline >= 0:
        watch = threading.Thread(target=_die_with_parent, args=(lifeline, folder), daemon=True)
        watch.start()
    import iree.compiler.api  # --exec needs no compiler

    _set_options()
    with _bindings().Context():
        pass  # loads the dialects once, before the first request
    send(replies, {"ready": iree.compiler.api.__name__})
    while select.select([requests], [], [], IDLE_SECONDS)[0]:
        frame = receive(requests)
        if frame is None:
            break
        header, source = frame
        _reset_peak()
        start = time.perf_counter()
        status, payload = compile_one(source, header["flags"], header["verify"])
        sys.stderr.flush()
        peak, now = _memory()
        seconds = time.perf_counter() - start
        send(replies, {"status": status, "seconds": seconds, "peak": peak, "rss": now}, payload)
    if folder:
        _remove(folder)
    return 0


def main(argv: list[str]) -> int:
    """Run as the module docstring says."""
    if hasattr(signal, "SIGCHLD"):
        # ignored by a caller, it is so here, and IREE cannot wait for its linker
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if argv[:1] == ["--validate"]:
        with open(argv[1], "rb") as f:
            wrong = validate(f.read())
        if wrong:
            print(wrong, file=sys.stderr)
        return 1 if wrong else 0
    if argv[:1] == ["--exec"]:
        become(int(argv[1]), argv[2:])
    return serve(int(argv[0]), argv[1]) if argv else serve(-1, "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
