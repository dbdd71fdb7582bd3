"""Prints the program of an ONNX model as MLIR: python -m mgx_mlir.frontends.onnx FILE.

FILE is a model, or ONNX's textual syntax (.onnxtxt) with cases split by lines `// -----`. Other
lines that begin with // are comments. With --errors-to-stdout the error of a case is printed to
stdout, so that a test can check it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator

import onnx.parser

from mgx_mlir.core.errors import FileError, MgxError, ModelError
from mgx_mlir.core.operand_segments import asm
from mgx_mlir.frontends.files import open_regular
from mgx_mlir.frontends.onnx.importer import import_model, parse_onnx
from mgx_mlir.frontends.onnx.load import load_bytes
from mgx_mlir.frontends.onnx.options import OnnxOptions
from mgx_mlir.programs.program_ir import ProgramIR

_SPLIT = re.compile(r"^// -----.*$", re.MULTILINE)


def cases(path: str) -> Iterator[str]:
    """Return the texts of the cases of a .onnxtxt file, comments removed."""
    with open(open_regular(path), encoding="utf-8") as f:
        try:
            text = f.read()
        except UnicodeDecodeError:
            raise FileError("the file is not text", location=path) from None
    for case in _SPLIT.split(text):
        lines = [line for line in case.splitlines() if not line.lstrip().startswith("//")]
        if any(line.strip() for line in lines):
            yield "\n".join(lines)


def model_of(text: str, name: str) -> onnx.ModelProto:
    """Return a model from ONNX's textual syntax."""
    try:
        return onnx.parser.parse_model(text)
    except onnx.parser.ParseError as e:
        raise ModelError(f"not a model in ONNX's textual syntax: {e}", location=name) from None


def programs(path: str, options: OnnxOptions) -> Iterator[tuple[str, ProgramIR | MgxError]]:
    """Return each case's name and its program or error."""
    if not path.endswith(".onnxtxt"):
        try:
            yield path, parse_onnx(path, options)
        except MgxError as e:
            yield path, e
        return
    for text in cases(path):
        name = ""
        try:
            proto = model_of(text, path)
            name = proto.graph.name
            with load_bytes(
                proto.SerializeToString(),
                name=path.rpartition("/")[2],
                external_data_path=options.external_data_path or None,
            ) as model:
                yield name, import_model(model, options)
        except MgxError as e:
            yield name, e


def main(arguments: list[str] | None = None) -> int:
    """Print the program of an ONNX model; return the exit code."""
    parser = argparse.ArgumentParser(prog="mgx_mlir.frontends.onnx", description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--default-dim-value", type=int, default=0)
    parser.add_argument("--skip-unknown-operators", action="store_true")
    parser.add_argument("--errors-to-stdout", action="store_true")
    parser.add_argument("--locations", action="store_true", help="print source nodes")
    given = parser.parse_args(arguments)
    status = 0
    try:
        options = OnnxOptions(
            default_dim_value=given.default_dim_value,
            skip_unknown_operators=given.skip_unknown_operators,
        )
        for name, found in programs(given.file, options):
            print(f"// ----- {name}")
            if isinstance(found, ProgramIR):
                print(text_of(found, given.locations))
            elif given.errors_to_stdout:
                print(found)
            else:
                print(found, file=sys.stderr)
                status = found.exit_code
    except MgxError as e:
        print(e, file=sys.stderr)
        return e.exit_code
    return status


def text_of(program: ProgramIR, locations: bool) -> str:
    """Return the module as text, with each operation's source node in its location if requested."""
    with program.ctx:
        return asm(program.module.operation, enable_debug_info=locations, use_local_scope=locations)


if __name__ == "__main__":
    sys.exit(main())
