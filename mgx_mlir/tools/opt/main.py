"""mgx-opt: reads MLIR, runs a pass pipeline, prints the result (like mlir-opt upstream)."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from mgx_mlir.core import plugins
from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.core.files import atomic, read_bytes
from mgx_mlir.core.mlir_text import checked_text
from mgx_mlir.core.names import safe_output
from mgx_mlir.tools.ending import ended
from mgx_mlir.tools.opt.arguments import (
    Arguments,
    help_text,
    parse_arguments,
    passes_text,
    plugin_sources,
)

# dialects that builds of the bindings may have; the context lists them
_DIALECTS = (
    "acc", "affine", "amdgpu", "amx", "arith", "arm_neon", "arm_sme", "arm_sve", "async",
    "bufferization", "builtin", "cf", "complex", "dlti", "emitc", "func", "gpu", "index",
    "irdl", "linalg", "llvm", "math", "memref", "migraphx", "ml_program", "mpi", "nvgpu",
    "nvvm", "omp", "pdl", "pdl_interp", "ptr", "quant", "rocdl", "scf", "shape", "shard",
    "smt", "sparse_tensor", "spirv", "tensor", "tosa", "transform", "ub", "vector", "wasmssa",
    "x86", "x86vector", "xegpu", "xevm",
)  # fmt: skip


BYTECODE = b"ML\xefR"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status is returned. Messages go to stderr."""
    with safe_output():
        words = list(sys.argv[1:] if argv is None else argv)
        return ended("mgx-opt", lambda: _main(words))


def _main(argv: list[str]) -> int:
    import mgx_mlir.passes  # noqa: F401  (declares the passes)

    for source in plugin_sources(argv):
        plugins.add(source)
    arguments = parse_arguments(argv)
    if "help" in arguments:
        print(help_text())
    elif "version" in arguments:
        print(_versions())
    elif "list-passes" in arguments:
        print(passes_text())
    elif "show-dialects" in arguments:
        print(_dialects())
    elif (path := arguments.values.get("mlir-pass-pipeline-crash-reproducer")) is not None:
        # start-up: --help and --version need none of it
        from mgx_mlir.tools.opt.crash import is_child, run_guarded

        return _run(arguments) if is_child() else run_guarded(argv, path)
    else:
        return _run(arguments)
    return 0


def _run(arguments: Arguments) -> int:
    from mgx_mlir.tools.opt.session import Session  # start-up: --help and --version need none of it

    pipeline = arguments.pipeline()
    if (dialect := arguments.values.get("irdl-file")) is not None:
        _write_dialect(dialect)
        if arguments.input == "-" and sys.stdin.isatty():
            return 0
    text = _read(arguments.input)
    name = "<stdin>" if arguments.input == "-" else arguments.input
    session = Session(arguments, pipeline, name)
    output: list[str | bytes] = []
    status = 0
    marker = arguments.values.get("split-input-file")
    for chunk in [text] if marker is None else _chunks(text, marker):
        printed, code = session.run(chunk)
        status = max(status, code)
        if printed is not None:
            output.append(printed)
    session.finish()
    if "verify-diagnostics" not in arguments and (output or status == 0):
        between = arguments.values.get("output-split-marker", "// -----")
        _write(arguments.values.get("o", "-"), _joined(output, f"{between}\n"))
    return status


def _joined(output: list[str | bytes], between: str) -> bytes:
    """Join the results of all inputs. UsageError for several that are bytecode."""
    binary = [part for part in output if isinstance(part, bytes)]
    if len(binary) > 1:
        raise UsageError(
            f"option '--emit-bytecode' is for one input, --split-input-file gives {len(binary)}"
        )
    if binary:
        return binary[0]
    return between.join(part for part in output if isinstance(part, str)).encode()


def _write_dialect(path: str) -> None:
    """Write the dialect's definition as IRDL."""
    import mgx_mlir.dialects  # noqa: F401  (defines the operators)
    from mgx_mlir.core.irdl_text import dialect_irdl

    _write(path, dialect_irdl().encode())


def _chunks(text: str, marker: str) -> list[str]:
    """Split a file into its inputs, each after as many newlines as keep its line numbers."""
    out, start = [], 0
    split = re.compile(rf"^{re.escape(marker or '// -----')}.*$", re.MULTILINE)
    for border in [*split.finditer(text), None]:
        end = len(text) if border is None else border.start()
        out.append("\n" * text.count("\n", 0, start) + text[start:end])
        start = end if border is None else border.end()
    return out


def _read(path: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if path == "-" else bytes(read_bytes(path))
    except FileError as e:
        why = e.message.removeprefix("cannot open the file: ")
        raise FileError(f"cannot open '{path}': {why}") from None
    except OSError as e:
        raise FileError(f"cannot read '{path}': {e.strerror}") from None
    return checked_text(raw, path)


def _write(path: str, data: bytes) -> None:
    if path == "-":
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = None
        if text is None or data.startswith(BYTECODE):
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
        else:
            sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        with atomic(path) as f:
            f.write(data)
    except OSError as e:
        raise FileError(f"cannot write '{path}': {e.strerror}") from None


def _versions() -> str:
    from importlib.metadata import PackageNotFoundError, version  # slow to load

    lines = []
    for package in ("mgx-mlir", "torch-mlir", "iree-base-compiler"):
        try:
            lines.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            lines.append(f"{package} not installed")
    lines += [str(plugin) for plugin in plugins.all_plugins()]
    return "\n".join(lines)


def _dialects() -> str:
    import mgx_mlir.dialects  # noqa: F401  (the op classes that a context is made with)
    from mgx_mlir.core.context import new_context

    context = new_context()
    found = []
    for name in _DIALECTS:
        try:
            context.get_dialect_descriptor(name)
        except (ValueError, RuntimeError):
            continue  # not in this build of the bindings
        found.append(name)
    return "Available Dialects: " + ", ".join(found)


if __name__ == "__main__":
    sys.exit(main())
