"""mgx-driver: finds the command, runs it, and converts every failure to a message and a status."""

from __future__ import annotations

import importlib
import os
import shlex
import sys
import time
import traceback
from collections.abc import Sequence
from typing import Any

from mgx_mlir import __version__
from mgx_mlir.core import plugins
from mgx_mlir.core.errors import MgxError, RunError, UsageError
from mgx_mlir.core.names import safe_output
from mgx_mlir.rewrite.pipeline import did_you_mean
from mgx_mlir.tools.driver.arguments import Option, parse_arguments
from mgx_mlir.tools.driver.colour import write_in
from mgx_mlir.tools.driver.environment import check_environment
from mgx_mlir.tools.driver.options import EVERY, options_of, refused_by
from mgx_mlir.tools.driver.places import check_places
from mgx_mlir.tools.driver.progress import logging_as, say
from mgx_mlir.tools.ending import INTERRUPTED, drop_stdout

COMMANDS = {
    "bundle": "compile for several batch sizes and architectures into a folder, weights once",
    "cache": "list, export, import or prune the compile cache",
    "chat": "talk with a language model",
    "compile": "compile a model and print the compiled program",
    "completion": "print the completion of a shell",
    "doctor": "check a GPU from its kernel driver to a matmul",
    "env": "print versions, devices, and where the caches are",
    "explain": "list the 8-bit matmuls of a quantised model, and why other pairs stay",
    "generate": "continue a text by a language model, and print tokens per second",
    "onnx": "list the ONNX operators that can be read",
    "op": "list all operators, or print the default attributes of one",
    "params": "print the shapes of a model's inputs and outputs",
    "perf": "compile, run, and print a performance report",
    "problems": "list, check, merge or convert files of tuning solutions",
    "quantize": "convert a model to smaller types, write it, and report accuracy and gain",
    "read": "read a model and print it",
    "report": "compile, run and verify a model, and write a page about it",
    "roctx": "run a model between the markers that ROCm's profilers show",
    "run": "compile, run once on generated inputs, and print the program",
    "serve": "serve a directory of models, or a language model, over HTTP",
    "tf": "list the TensorFlow operators that can be read",
    "time": "compile, and print the mean time of a call",
    "verify": "compare a target's outputs with the reference's",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status is returned.

    0: success; 1: a difference (verify) or regression; 2: failure; 130: interrupted. Errors go
    to stderr as one line and its notes.
    """
    with safe_output():
        return _guarded(argv)


def _guarded(argv: Sequence[str] | None) -> int:
    try:
        status = _main(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return status
    except MgxError as e:
        return _failed(str(e) if e.location else f"error: {e}", e.exit_code)
    except BrokenPipeError:
        drop_stdout()  # the reader of our output is gone
        return 2
    except KeyboardInterrupt:
        _cancel_jobs()
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


def _cancel_jobs() -> None:
    """Drop cache entries that are not written yet, so that an interrupt does not wait for them."""
    background: Any = sys.modules.get("mgx_mlir.targets.background")
    if background is not None:
        background.cancel()


def _failed(text: str, status: int) -> int:
    try:
        sys.stdout.flush()
        head, error, rest = text.partition("error:")
        sys.stderr.write(head)
        write_in(sys.stderr, "bad", error)
        sys.stderr.write(f"{rest}\n")
        sys.stderr.flush()
    except BrokenPipeError:
        drop_stdout()
    return status


def _main(argv: list[str]) -> int:
    # start-up: only what the command asks for is loaded
    from mgx_mlir.tools.driver.help import command_help, main_help

    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        # names come from files, so control characters are escaped
        reconfigure(errors="backslashreplace")
    if not argv or argv[0] in ("-h", "--help"):
        print(main_help(COMMANDS))
        return 0
    name, *tokens = argv
    if name in ("-v", "--version"):
        print(versions())
        return 0
    if name == "--ort-sha":
        print(f"onnxruntime {version_of('onnxruntime')}")
        return 0
    if name not in COMMANDS:
        raise _unknown_command(name, tokens)
    command: Any = importlib.import_module(f"mgx_mlir.tools.driver.commands.{name}")
    if "-h" in tokens or "--help" in tokens:
        print(command_help(name, COMMANDS[name], command))
        return 0
    options = options_of(command)
    arguments = parse_arguments(name, tokens, options, refused_by(options, EVERY))
    with logging_as(arguments):
        check_environment()
        check_places(arguments)
        for source in arguments.get("--load-plugin", []):
            plugins.add(source)
        start = time.perf_counter()
        line = shlex.join(["mgx-driver", *argv])
        say(f"Running [ {__version__} ]: {line}", "debug")
        try:
            status = command.run(arguments)
            if "--time-report" in arguments:
                # start-up: only what the command asks for is loaded
                from mgx_mlir.tools.driver.compile_model import report_times

                report_times(arguments)
        except RunError as e:
            if "--dynamic-dims" in arguments and not {"--batch", "--input-dim"} & set(tokens):
                e.notes += (
                    "dims that stay dynamic are run at 1: --input-dim states sizes to run at",
                )
            raise
        say(f"[ {__version__} ] Complete({time.perf_counter() - start:.3g}s): {line}", "debug")
    return status


def command_table() -> dict[str, tuple[str, tuple[Option, ...]]]:
    """Return the summary of each command, and its options."""
    found = {}
    for name, text in COMMANDS.items():
        command: Any = importlib.import_module(f"mgx_mlir.tools.driver.commands.{name}")
        found[name] = (text, options_of(command))
    return found


def _unknown_command(name: str, tokens: Sequence[str]) -> UsageError:
    notes = did_you_mean(name, COMMANDS)
    later = next((t for t in tokens if t in COMMANDS), None)
    if later is not None:
        notes = [f"the command must be the first argument: mgx-driver {later} ..."]
    return UsageError(
        f"unknown command '{name}'", notes=[*notes, f"the commands are {', '.join(COMMANDS)}"]
    )


PACKAGES = ("torch-mlir", "iree-base-compiler", "iree-base-runtime", "onnx")


def versions() -> str:
    """Return the versions of the package and its dependencies, a line each."""
    rows = [f"{package} {version_of(package)}" for package in PACKAGES]
    return "\n".join([f"mgx-driver {__version__}", *rows])


def version_of(package: str) -> str:
    """Return the version of an installed package."""
    from importlib.metadata import PackageNotFoundError, version  # slow to load

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    sys.exit(main())
