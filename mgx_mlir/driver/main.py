"""mgx-driver: finds the command, runs it, and turns every failure into a message and a status."""

from __future__ import annotations

import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from mgx_mlir.core.errors import MgxError, UsageError
from mgx_mlir.core.pipeline import did_you_mean
from mgx_mlir.driver.arguments import parse_arguments
from mgx_mlir.driver.options import EVERY, refused_by

COMMANDS = {
    "compile": "compile a model and print the compiled program",
    "onnx": "list the ONNX operators that can be read",
    "op": "list all operators, or print the default attributes of one",
    "params": "print the shapes of a model's inputs and outputs",
    "perf": "compile, run, and print a performance report",
    "read": "read a model and print it",
    "run": "compile, run once on generated inputs, and print the program",
    "tf": "list the TensorFlow operators that can be read",
    "verify": "compare a target's outputs with the reference's",
}
LATER = ("roctx", "time")  # MIGraphX's commands that are not here yet
INTERRUPTED = 130  # what shells show for SIGINT


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status is returned.

    0: done; 1: the answer is no (verify); 2: it could not be done; 130: interrupted. Errors go
    to stderr as one line and its notes.
    """
    try:
        status = _main(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return status
    except MgxError as e:
        return _failed(str(e) if e.location else f"error: {e}", e.exit_code)
    except BrokenPipeError:
        _drop_stdout()  # whoever read our output is gone
        return 2
    except KeyboardInterrupt:
        return _failed("interrupted", INTERRUPTED)
    except MemoryError:
        return _failed("error: out of memory", 2)
    except OSError as e:
        where = f"{e.filename}: " if e.filename else ""
        return _failed(f"{where}error: {(e.strerror or str(e)).lower()}", 2)
    except Exception as e:
        if os.environ.get("MGX_TRACEBACK"):
            traceback.print_exc()
        detail = str(e).splitlines()[0] if str(e) else "no message"
        return _failed(
            f"error: internal error: {type(e).__name__}: {detail}\n"
            "note: this is a bug; MGX_TRACEBACK=1 prints where",
            2,
        )


def _failed(text: str, status: int) -> int:
    try:
        sys.stdout.flush()
        print(text, file=sys.stderr, flush=True)
    except BrokenPipeError:
        _drop_stdout()
    return status


def _drop_stdout() -> None:
    """Point stdout elsewhere, so that closing it is quiet."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, io.UnsupportedOperation):
        return


def _main(argv: list[str]) -> int:
    from mgx_mlir.driver.help import command_help, main_help

    if isinstance(sys.stdout, io.TextIOWrapper):
        # names come from files: what the terminal cannot show is escaped
        sys.stdout.reconfigure(errors="backslashreplace")
    if not argv or argv[0] in ("-h", "--help"):
        print(main_help(COMMANDS))
        return 0
    name, *tokens = argv
    if name in ("-v", "--version"):
        print(versions())
        return 0
    if name not in COMMANDS:
        raise _unknown_command(name, tokens)
    command: Any = importlib.import_module(f"mgx_mlir.driver.commands.{name}")
    if "-h" in tokens or "--help" in tokens:
        print(command_help(name, COMMANDS[name], command))
        return 0
    arguments = parse_arguments(name, tokens, command.OPTIONS, refused_by(command.OPTIONS, EVERY))
    return command.run(arguments)


def _unknown_command(name: str, tokens: Sequence[str]) -> UsageError:
    if name in LATER:
        return UsageError(f"command '{name}' is not supported yet")
    notes = did_you_mean(name, COMMANDS)
    later = next((t for t in tokens if t in COMMANDS), None)
    if later is not None:
        notes = [f"the command must be the first argument: mgx-driver {later} ..."]
    return UsageError(
        f"unknown command '{name}'", notes=[*notes, f"the commands are {', '.join(COMMANDS)}"]
    )


def versions() -> str:
    """The versions of the package and of what it compiles with, a line each."""
    from importlib.metadata import PackageNotFoundError, version

    from mgx_mlir import __version__

    lines = [f"mgx-driver {__version__}"]
    for package in ("torch-mlir", "iree-base-compiler", "iree-base-runtime", "onnx"):
        try:
            lines.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            lines.append(f"{package} not installed")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
