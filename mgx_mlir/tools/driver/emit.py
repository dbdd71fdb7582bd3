"""Writes programs in the form that the options ask for, to stdout or a file."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mgx_mlir.core.errors import UsageError
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.program_texts import check_place, program_text, write_file
from mgx_mlir.tools.driver.progress import say
from mgx_mlir.tools.driver.shown import listing

if TYPE_CHECKING:
    from mgx_mlir.compiler.compiled import CompiledProgram


FORMS = {
    "--text": "text", "--mlir": "mlir", "--json": "json", "--binary": "msgpack",
    "--graphviz": "graphviz", "--cpp": "cpp", "--py": "py", "--netron": "netron",
}  # fmt: skip
CODE = ".vmfb"
SUFFIXES = {
    ".txt": "text", ".mlir": "mlir", ".json": "json", ".mxr": "msgpack", ".dot": "graphviz",
    ".cpp": "cpp", ".py": "py",
}  # fmt: skip


def form_of(args: Arguments, *, more: tuple[str, ...] = ()) -> str:
    """Return the form of the output: by its flag, else by the file's name, else text.

    `more` are suffixes of files that the command writes itself; the form is then the suffix.
    """
    form = _form_of(args, more)
    if "--brief" in args and form != "graphviz":
        raise UsageError("option '--brief' is for --graphviz")
    if "--enable-offload-copy" in args and form != "text":
        raise UsageError("option '--enable-offload-copy' is for --text: files hold no copies")
    if "--debug-symbols" in args and form in ("py", "cpp"):
        raise UsageError("option '--debug-symbols' has no effect: code holds no source nodes")
    if "--text-version" in args and form != "text" and args.command in ("read", "compile"):
        raise UsageError("option '--text-version' is for --text")
    return form


def _form_of(args: Arguments, more: tuple[str, ...]) -> str:
    flag = args.only_one(*FORMS)
    path = args.get("--output")
    if flag is not None:
        return FORMS[flag]
    if path is None:
        return "text"
    suffix = Path(path).suffix.lower()
    if suffix in more:
        return suffix
    if suffix in (".onnx", CODE):
        why = "--netron" if suffix == ".onnx" else "compile --cpu or --gpu"
        raise UsageError(f"'{path}' would not be a {suffix} file",
                         notes=[f"{why} writes one; --binary writes MIGraphX's form"])  # fmt: skip
    return SUFFIXES.get(suffix, "msgpack")


def emit(
    args: Arguments,
    program: ProgramIR | Callable[[], ProgramIR],
    *,
    compiled: CompiledProgram | None = None,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Write a program to --output, or print it.

    `compiled`: its compiled form with `options` of compile(); then the compiled form is written,
    with its code. `program` is its source, which only files hold.
    """
    form = form_of(args)
    path = args.get("--output")
    if form in ("json", "msgpack"):
        _save(args, program() if callable(program) else program, compiled, options, form)
        return
    prefix = "" if compiled is None else compiled.target

    def shown() -> ProgramIR:
        whole = program if compiled is None else compiled.program
        return whole() if callable(whole) else whole

    if form == "netron":
        data = _netron(shown(), prefix)
    else:
        if form == "text" and compiled is not None:
            text = listing(args, compiled)
        else:
            text = program_text(args, shown(), form, prefix)
        if path is None:
            sys.stdout.write(text)
            return
        data = text.encode(errors="surrogatepass")
    if path is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    if form == "mlir":
        _write_mlir_weights(path, shown())
    write_file(path, data)


def _write_mlir_weights(path: str, program: ProgramIR) -> None:
    """Write the weights that a module refers to beside it, where reading it looks for them."""
    # start-up: only what the command asks for is loaded
    from mgx_mlir.core.weight_files import used_keys, weights_beside, write_weights

    keys = used_keys(program.module.operation)
    beside = weights_beside(path)
    if keys:
        check_place(path)
        write_weights(beside, {k: program.store.get(k) for k in sorted(keys)})
        say(f"note: the weights are in {beside}, which belongs to {path}")


def _save(
    args: Arguments,
    program: ProgramIR,
    compiled: CompiledProgram | None,
    options: Mapping[str, Any] | None,
    form: str,
) -> None:
    """Save a program to --output, or print its file."""
    # start-up: only what the command asks for is loaded
    from mgx_mlir.api.files import save, save_buffer
    from mgx_mlir.api.program import program as api_program

    made = api_program.of(program)
    if compiled is not None:
        made.adopt(compiled, {k: v for k, v in (options or {}).items() if v is not None})
    path, source = args.get("--output"), "--with-source" in args
    if path is not None:
        check_place(path)
        save(made, path, form, source=source)
    elif form == "json":
        sys.stdout.write(save_buffer(made, form, source=source).decode() + "\n")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(save_buffer(made, form, source=source))


def _netron(program: ProgramIR, prefix: str) -> bytes:
    # start-up: only what the command asks for is loaded
    from mgx_mlir.printers.emit import emit as print_program

    stream = io.BytesIO()
    print_program(program, stream, "netron", kernel_prefix=prefix)
    return stream.getvalue()
