"""The compile worker: a process that compiles one module after another for its parent.

It is started as a file and imports nothing of this package, so that it starts fast and cannot
see the parent's state. Frames on stdin and stdout are an 8-byte length, a JSON header, and the
bytes whose count the header gives. Diagnostics go to stderr, which the parent reads.

    python worker.py                  serve requests until stdin closes
    python worker.py PIPE FOLDER apart FLAG..
                                      serve requests for separate kernels and host modules, with
                                      flags of OF_PROCESS
    python worker.py --validate FILE  parse FILE strictly; exit 1 with the errors on stderr
    python worker.py --compile FILE OUT FLAG..
                                      compile FILE as iree-compile does, for a GPU
    python worker.py --exec PARENT COMMAND..
                                      become the command, which ends with the process PARENT
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType

if sys.path and sys.path[0] == os.path.dirname(os.path.abspath(__file__)):
    del sys.path[0]  # files beside this one must not shadow other modules

import json
import select
import signal
import struct
import threading
import time
from typing import Any, BinaryIO

IDLE_SECONDS = 120.0  # an idle worker ends after this
SINGLE = "MGX_COMPILE_THREADS"  # 1: IREE's passes use no threads
# Analyses prepare to print the module and verify it for that: a tenth of a compile. The module is
# verified when it is read; errors print ops in the generic form, which needs no verification.
SKIP_CHECKS = "--mlir-print-assume-verified"
# Importers of other formats, and other targets. Building a pattern set walks all registered ops,
# including theirs; without them a small module compiles in three quarters of the time.
UNUSED_PLUGINS = (
    "input_torch", "input_stablehlo", "input_tosa", "hal_target_metal_spirv",
    "hal_target_vulkan_spirv",
)  # fmt: skip
SINGLE_THREAD = "--mlir-disable-threading"
CUDA = "--iree-hal-target-device=cuda"
# targets whose programs are changed between IREE's phases: see `_compile_in_phases`
IN_PHASES = ("--iree-hal-target-device=hip", CUDA)
INPUT = b"mgx.input"  # worker_kernels.py
CONFIGURED = "executable-configurations"  # IREE's phase behind which each kernel has its tiles
# an IREE pass links a module's kernels, and fails for executables without an inner module
NOT_LINKED = "--iree-hal-link-executables=false"
# code generation flags that IREE has per process only: those of GPUs
OF_PROCESS = ("--iree-codegen-block-dynamic-dimensions-of-contractions=false",)
VERIFY = "MGX_COMPILE_VERIFY"  # 1: the module is verified after each of IREE's passes


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
    """Return peak and current resident bytes of this process, 0 if unknown."""
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


def context(ir: Any) -> Any:
    """Return a context that loads a dialect where a module uses it; loading all takes 12 ms."""
    return ir.Context(load_on_create_dialects=[])


def validate(source: bytes) -> str:
    """Parse strictly, with no unregistered operation allowed; the errors, or an empty string."""
    ir = _bindings()
    with context(ir):
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
    """Verify the module after all passes, which is fast as kernels are binaries by then.

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
    """Compile in this process; return ("ok", vmfb), ("flags", why), ("input", why) or ("compile",
    "").

    verify: after each pass too; the source is always verified.
    """
    # --exec needs no compiler
    from iree.compiler.api import Output, Session, Source

    wrong = validate(source)
    if wrong:
        return "input", wrong.encode()
    if any(f in IN_PHASES for f in flags):
        return _compile_in_phases(source, flags, verify)
    if INPUT in source:
        return _compile_with_inputs(source, flags, verify)
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


def in_phases(source: bytes, flags: Sequence[str]) -> bool:
    """Return whether a module is changed between IREE's phases, which its binary cannot do."""
    return INPUT in source or any(f in IN_PHASES for f in flags)


def _compile_with_inputs(source: bytes, flags: list[str], verify: bool) -> tuple[str, bytes]:
    """Compile as `compile_one`, for a CPU: kernels that name memory of inputs."""
    from iree.compiler.api import Output

    kernels = _beside("worker_kernels")
    try:
        stage = kernels.Stage(source, flags, verify=verify)
    except ValueError as e:
        return "flags", str(e).encode()
    try:
        done = kernels.TARGETS
        if not stage.read or not stage.run("", done) or not stage.run(done, "end"):
            return "compile", b""
        if not verify and not stage.module.verify():
            return "compile", b""
        output = Output.open_membuffer()
        with output:
            stage.invocation.output_vm_bytecode(output)
            return "ok", bytes(output.map_memory())
    finally:
        stage.close()


def _compile_in_phases(source: bytes, flags: list[str], verify: bool) -> tuple[str, bytes]:
    """Compile as `compile_one`, for a GPU: without barriers between kernels (worker_barriers.py).

    CUDA refuses empty launches (worker_empty.py), and its queue wants waits (worker_waits.py).
    """
    from iree.compiler.api import Output

    kernels, barriers = _beside("worker_kernels"), _beside("worker_barriers")
    try:
        stage = kernels.Stage(source, flags, verify=verify)
    except ValueError as e:
        return "flags", str(e).encode()
    try:
        if not stage.read or not stage.run("", "flow"):
            return "compile", b""
        barriers.drop(_bindings(), stage.module)
        done = "flow"
        if CUDA in flags:
            done = "hal"
            if not _lower_for_cuda(stage) or not stage.run(CONFIGURED, done):
                return "compile", b""
            _beside("worker_empty").guard(_bindings(), stage.module)
            _beside("worker_waits").add(_bindings(), stage.module)
        if not stage.run(done, "end") or not stage.module.verify():
            return "compile", b""
        output = Output.open_membuffer()
        with output:
            stage.invocation.output_vm_bytecode(output)
            return "ok", bytes(output.map_memory())
    finally:
        stage.close()


def _lower_for_cuda(stage: Any) -> bool:
    """Make loops of kernels, and change them (worker_nvidia.py)."""
    if not stage.run("flow", CONFIGURED):
        return False
    for name in ("worker_gathers", "worker_copies", "worker_fragments"):
        _beside(name)
    kernels = _beside("worker_nvidia")
    if not stage.invocation.execute_text_pass_pipeline(kernels.LOWER):
        return False
    kernels.change(_bindings(), stage.module)
    return bool(stage.invocation.execute_text_pass_pipeline(kernels.FINISH))


def compile_file(path: str, out: str, flags: list[str]) -> int:
    """Compile one file as IREE's binary does, and return the exit status.

    flags: those of the binary, which a session takes from its process.
    """
    _set_options(*(f for f in flags if f not in process_options()))
    with open(path, "rb") as f:
        source = f.read()
    status, made = compile_one(source, [f for f in flags if f in IN_PHASES], verify=True)
    if status != "ok":
        print(made.decode(errors="replace"), file=sys.stderr)
        return 1
    with open(out, "wb") as f:
        f.write(made)
    return 0


def _remove(folder: str) -> None:
    """Remove the temporary folder that the parent made: it may have been killed."""
    import shutil  # lazy: slow to load, and only needed at the end

    shutil.rmtree(folder, ignore_errors=True)


def _die_with_parent(lifeline: int, folder: str) -> None:
    """Block until the parent's end of the pipe closes, then remove folder and end this group."""
    os.read(lifeline, 1)
    _remove(folder)
    os.killpg(os.getpgid(0), signal.SIGKILL)


def become(parent: int, command: list[str]) -> None:
    """Replace this process by a command that is killed when the parent's thread ends.

    parent: the process that started this one. It may be number 1, as in a container.
    """
    if sys.platform == "linux":
        parent_death_signal = 1  # option of prctl(2); execve keeps it
        ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit(1)  # the parent ended before the call
    os.execv(command[0], command)


def process_options() -> list[str]:
    """Return the options that IREE has per process only.

    On request IREE's passes use no threads: for many small modules on one worker per core,
    scheduling small tasks takes a sixth of the time.
    """
    single = [SINGLE_THREAD] if os.environ.get(SINGLE) == "1" else []
    return [SKIP_CHECKS, *(f"--iree-plugin=-{name}" for name in UNUSED_PLUGINS), *single]


def _set_options(*more: str) -> None:
    """Give IREE the options of this process."""
    # --exec needs no compiler
    from iree.compiler.api import ctypes_dl

    ctypes_dl._initializeGlobalCL("worker", *process_options(), *more)


def _beside(name: str) -> ModuleType:
    """Load a file beside this one as a module."""
    if name in sys.modules:
        return sys.modules[name]
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


Reply = tuple[dict[str, Any], bytes]


class Parts:
    """Answers requests for separate kernels and host modules, one program at a time."""

    def __init__(self) -> None:
        self.kernels = _beside("worker_kernels")
        _beside("worker_link")
        self.hosts = _beside("worker_host")
        self.program: Any = None
        self.host: Any = None

    def answer(self, header: dict[str, Any], payload: bytes) -> Reply:
        """Answer one request. Its kind: whole, split, kernels, library, host or finish."""
        if "flags" in header:
            own = [f for f in header["flags"] if f not in OF_PROCESS]
            header = {**header, "flags": own}
        try:
            return getattr(self, "_" + header["kind"])(header, payload)
        except ValueError as e:  # an unknown flag
            return {"status": "flags"}, str(e).encode()

    def _whole(self, header: dict[str, Any], payload: bytes) -> Reply:
        """Compile a small module with its kernels."""
        self._forget()
        wrong = validate(payload)
        if wrong:
            return {"status": "input"}, wrong.encode()
        made = self.hosts.whole(payload, header["flags"], verify=header["verify"])
        return ({"status": "compile"}, b"") if made is None else ({"status": "ok"}, made)

    def _split(self, header: dict[str, Any], payload: bytes) -> Reply:
        """Extract the kernels of a module, which is kept for `host`.

        start: IREE's phase that makes kernels; empty: the module has them.
        """
        self._forget()
        if header["start"]:
            drop = _beside("worker_barriers").drop
            flowed = self.hosts.run_to(payload, header["flags"], header["start"], drop)
            if flowed is None:
                return {"status": "compile"}, b""
            payload = flowed
        try:
            self.program = self.kernels.Program(payload, context(_bindings()))
        except _bindings().MLIRError as e:
            return {"status": "input"}, str(e).encode()
        self.program.split(counted=bool(header["start"]))
        found = self.program.kernels
        rows = [[name, k.key, k.layout, len(k.text.encode())] for name, k in found.items()]
        texts = "".join(k.text for k in found.values()).encode()
        reply = {"status": "ok", "kernels": rows, "resources": self.program.resources}
        return {**reply, "left_out": self.program.left_out}, texts

    def _kernels(self, header: dict[str, Any], payload: bytes) -> Reply:
        """Return the keys of the kernels of modules with one kernel each, by the modules' numbers.

        They are not kept for `host`.
        """
        rows, texts, resources, at = [], [], "", 0
        shared = context(_bindings())
        for i, size in enumerate(header["sizes"]):
            program = self.kernels.Program(payload[at : at + size], shared)
            program.split()
            at += size
            found = program.kernels.values()
            rows += [[str(i), k.key, k.layout, len(k.text.encode())] for k in found]
            texts += [k.text for k in program.kernels.values()]
            resources = program.resources
        reply = {"status": "ok", "kernels": rows, "resources": resources}
        return reply, "".join(texts).encode()

    def _library(self, header: dict[str, Any], payload: bytes) -> Reply:
        """Compile a module of kernels to one binary."""
        made = self.hosts.library(payload, header["flags"], verify=header["verify"])
        if made is None:
            return {"status": "compile"}, b""
        return {"status": "ok", "format": made[0], "counts": made[2]}, made[1]

    def _host(self, header: dict[str, Any], payload: bytes) -> Reply:
        """Compile the host functions of the split module, up to the point that needs the
        kernels' binaries.
        """
        places = {name: tuple(at) for name, at in header["places"].items()}
        keys = header["keys"]
        source = self.program.host(places, header["formats"], keys)
        resources, self.program = self.program.resources, None
        self.host = self.hosts.Host(
            source, header["flags"], verify=header["verify"], resources=resources,
            start=header["start"],
        )  # fmt: skip
        ok = self.host.read and self.host.launch(keys)
        return {"status": "ok" if ok else "compile"}, b""

    def _finish(self, header: dict[str, Any], payload: bytes) -> Reply:
        """Insert the binaries, in order of their libraries."""
        libraries, at = [], 0
        for size in header["sizes"]:
            libraries.append(payload[at : at + size])
            at += size
        made = self.host.finish(libraries, header["counts"])
        self._forget()
        return ({"status": "compile"}, b"") if made is None else ({"status": "ok"}, made)

    def _forget(self) -> None:
        """Free the state of the previous program."""
        if self.host is not None:
            self.host.close()
        self.host = self.program = None


def serve(lifeline: int, folder: str, *, apart: list[str] | None = None) -> int:
    """Answer requests until stdin closes or nothing came for IDLE_SECONDS.

    lifeline: a pipe that the parent holds open, or -1. folder: the process's own, or "".
    apart: requests are those of `Parts`; flags of OF_PROCESS for all of them.
    """
    requests = sys.stdin.buffer
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # keeps output of native code out of the reply stream
    if lifeline >= 0:
        watch = threading.Thread(target=_die_with_parent, args=(lifeline, folder), daemon=True)
        watch.start()
    import iree.compiler.api  # --exec needs no compiler

    _set_options(*(() if apart is None else (NOT_LINKED, *apart)))
    _bindings()
    parts = None if apart is None else Parts()
    send(replies, {"ready": iree.compiler.api.__name__})
    while select.select([requests], [], [], IDLE_SECONDS)[0]:
        frame = receive(requests)
        if frame is None:
            break
        header, source = frame
        _reset_peak()
        start = time.perf_counter()
        if parts is not None:
            reply, payload = parts.answer(header, source)
        else:
            status, payload = compile_one(source, header["flags"], header["verify"])
            reply = {"status": status}
        sys.stderr.flush()
        peak, now = _memory()
        seconds = time.perf_counter() - start
        send(replies, {**reply, "seconds": seconds, "peak": peak, "rss": now}, payload)
    if folder:
        _remove(folder)
    return 0


def main(argv: list[str]) -> int:
    """Run as the module docstring says."""
    # IREE's bindings work without numpy, which takes as long to load as they do
    sys.modules["numpy"] = None  # type: ignore[assignment]
    if hasattr(signal, "SIGCHLD"):
        # if the caller ignores SIGCHLD it is inherited, and IREE cannot wait for its linker
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if argv[:1] == ["--validate"]:
        with open(argv[1], "rb") as f:
            wrong = validate(f.read())
        if wrong:
            print(wrong, file=sys.stderr)
        return 1 if wrong else 0
    if argv[:1] == ["--compile"]:
        return compile_file(argv[1], argv[2], argv[3:])
    if argv[:1] == ["--exec"]:
        become(int(argv[1]), argv[2:])
    if not argv:
        return serve(-1, "")
    return serve(int(argv[0]), argv[1], apart=argv[3:] if argv[2:3] == ["apart"] else None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
