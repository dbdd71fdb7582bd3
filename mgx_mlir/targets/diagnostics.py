"""Parsing of iree-compile's stderr into one error: what failed, where, and what to do."""

from __future__ import annotations

import difflib
import re
import signal
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from mgx_mlir.core.errors import CompileError
from mgx_mlir.core.records import dataclass

# flags: a flag IREE does not take; input: a module it cannot read; compile: code
# generation failed; crash, timeout, memory: the process ended.
Kind = Literal["flags", "input", "compile", "crash", "timeout", "memory"]

# Causes that another flag set cures. stack: a kernel needs more than the limit; layout: data tiling
# cannot pack an operand; kernel: the code generator refuses a kernel's form, or crashes on it;
# time: the default time limit is over; moves: those of a branch cannot be ordered. After other
# failures (constants, memory, scheduling, linking) there is no second try: modules that compiled
# with other flags have computed wrong numbers.
Cause = Literal["stack", "layout", "kernel", "time", "moves", "other", "pointers"]

_HEAD = r"^(?P<loc>(?:[^\s:]|[^:\n]:(?=\d))[^\n]*?:\d+:\d+|<unknown>:\d+|loc\([^\n]*?\)): "
_DIAGNOSTIC = re.compile(_HEAD + r"(?P<sev>error|warning): (?P<msg>[^\n]*)", re.M)
# messages of the Python bindings: error: "-":2:23: message, or error: "node"("file":2:0): message
_BINDING = re.compile(
    r'^error: (?P<loc>"[^"\n]*":\d+:\d+|"[^"\n]*"\([^\n]*?\)|unknown): (?P<msg>[^\n]*)', re.M
)
_PLAIN = re.compile(
    r"^(?:iree-lld|iree-compile|ld\.lld|lld): (?:error: )?(?P<msg>[^\n]+)"
    r"|^LLVM ERROR: (?P<llvm>.+)"
    r"|^<unknown>:0: error: (?P<unk>[^\n]+)",
    re.M,
)
_FLAG = re.compile(
    r"Unknown command line argument '(?P<a>[^']+)'|option not found: (?P<b>\S+)"
    r"|for the (?P<c>--\S+) option: (?P<why>[^\n]+)|option parse error for: (?P<d>\S+)"
)
_SUGGEST = re.compile(r"Did you mean '([^']+)'\?")
_CPU = re.compile(r"Unknown CPU for target architecture (\S+?)\.\nList of accepted CPUs: ([^\n]+)")
_BAD_CPU = re.compile(r"'([^'\n]+)' is not a recognized processor")
_FRAME = re.compile(r"^ *#\d+ 0x[0-9a-f]+ (mlir::[^\n(]+)", re.M)
_UNREGISTERED = re.compile(r"unregistered|not registered|unknown operations|is unknown")
_IN_KERNEL = re.compile(
    r"failed to run translation of source executable"
    r"|^ *#\d+ 0x[0-9a-f]+ [^\n]*(?:Translate|Configure)\w*Executable",
    re.M,
)
_IN_STACK = re.compile(r"exceeded stack allocation limit")
_IN_LAYOUT = re.compile(r"iree_encoding\.|(?:un)?set_encoding|'linalg\.(?:un)?pack'")
# LLVM's lowering of buffer pointers, which may loop for ever on addresses of vectorized loops
_IN_POINTERS = re.compile(r"^ *#\d+ 0x[0-9a-f]+ [^\n]*SplitPtrStructs", re.M)
_ECHOES = ("failed to serialize executable", "failed to translate executables")


@dataclass(frozen=True)
class Failure:
    """One failed compile, before it becomes an error for the user."""

    kind: Kind
    message: str
    location: str | None = None
    notes: tuple[str, ...] = ()
    cause: Cause = "other"
    place: str | None = None  # the location as IREE printed it


class CompileFailed(CompileError):
    """A CompileError with its kind and cause, by which the ladder of flag sets decides to go on."""

    def __init__(self, failure: Failure, *, extra_notes: Sequence[str] = ()) -> None:
        self.kind: Kind = failure.kind
        self.cause: Cause = failure.cause
        self.place = failure.place or failure.location
        self.reproducer: str | None = None
        super().__init__(
            failure.message, location=failure.location, notes=(*failure.notes, *extra_notes)
        )


def _short(text: str, limit: int = 240) -> str:
    text = text.partition(". If this is intended")[0].strip()  # advice for users of mlir-opt
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _clean(location: str) -> str | None:
    location = location.replace('"', "")
    return None if location.startswith(("<unknown>", "unknown", "-:", "loc(unknown")) else location


def signal_name(number: int) -> str:
    """Return `SIGSEGV` for 11; the number itself when it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def cause_of(stderr: str) -> Cause:
    """Classify a failure by whether another flag set can help."""
    if _IN_STACK.search(stderr):
        return "stack"
    if _IN_POINTERS.search(stderr):
        return "pointers"
    if _IN_LAYOUT.search(stderr):
        return "layout"
    return "kernel" if _IN_KERNEL.search(stderr) else "other"


def read_failure(stderr: str, returncode: int | None) -> Failure:
    """Read the failure that iree-compile's stderr and exit status describe.

    `returncode`: negative for a signal, None for a compile inside a worker that still runs.
    """
    failure = _read(stderr, returncode)
    if failure.kind not in ("compile", "crash"):
        return failure
    return replace(failure, cause=cause_of(stderr))


def _read(stderr: str, returncode: int | None) -> Failure:
    flag = _FLAG.search(stderr)
    if flag:
        name = flag["a"] or flag["b"] or flag["c"] or flag["d"]
        name = name if name.startswith("-") else f"--{name}"
        message = f"iree-compile does not take the flag '{name}'"
        if flag["why"]:
            message = f"flag '{name}': {_short(flag['why'])}"
        near = _SUGGEST.search(stderr)
        return Failure("flags", message, notes=(f"did you mean '{near[1]}'?",) if near else ())
    cpu = _CPU.search(stderr)
    if cpu:
        bad = _BAD_CPU.search(stderr)
        name = bad[1] if bad else "?"
        near_cpus = difflib.get_close_matches(name, cpu[2].split(", "), n=3)
        hint = f"did you mean {' or '.join(near_cpus)}?" if near_cpus else "try host or generic"
        return Failure("flags", f"unknown CPU '{name}' for {cpu[1]}", notes=(hint,))

    rows = [(m["loc"], m["msg"]) for m in _DIAGNOSTIC.finditer(stderr) if m["sev"] == "error"]
    rows += [(m["loc"], m["msg"]) for m in _BINDING.finditer(stderr)]
    plain = [m["msg"] or m["llvm"] or m["unk"] for m in _PLAIN.finditer(stderr)]
    seen: dict[str, str | None] = {}
    for loc, msg in rows:
        seen.setdefault(_short(msg), _clean(loc))
    texts = [t for t in seen if not t.startswith(_ECHOES)] or list(seen)
    place = next((loc for loc in seen.values() if loc), None)
    details = tuple(dict.fromkeys(_short(p) for p in plain if _short(p) not in seen))

    if returncode is not None and returncode < 0:
        frames = [f.strip() for f in _FRAME.findall(stderr)]
        where = f" in {_short(frames[0], 120)}" if frames else ""
        notes = (*details, *texts)[:4]
        message = f"iree-compile crashed with {signal_name(-returncode)}{where}"
        return Failure("crash", message, place, notes)
    if texts and details and texts[0].startswith("failed to link"):
        texts[0], details = details[0], details[1:]
    if texts:
        kind: Kind = "input" if _UNREGISTERED.search(texts[0]) else "compile"
        return Failure(kind, f"iree-compile: {texts[0]}", place, (*details, *texts[1:])[:5])
    if details:
        return Failure("compile", f"iree-compile: {details[0]}", place, details[1:5])
    tail = _short(stderr[-400:]) or "no message"
    return Failure("compile", f"iree-compile failed with status {returncode}: {tail}")


def warnings(stderr: str) -> tuple[str, ...]:
    """Return the warnings of a compile that succeeded, each once."""
    rows = (
        f"{m['loc']}: {m['msg']}" for m in _DIAGNOSTIC.finditer(stderr) if m["sev"] == "warning"
    )
    return tuple(dict.fromkeys(_short(r) for r in rows))
