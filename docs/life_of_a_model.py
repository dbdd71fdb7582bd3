"""Fills docs/life-of-a-model.md: what mgx-driver prints at each stage of a small model's compile.

`python docs/life_of_a_model.py` rewrites the blocks between `<!-- NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnx

import mgx_mlir
from mgx_mlir.compiler.compilation import Compilation
from mgx_mlir.compiler.compile import compile as compile_model
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.compiler.models import read_model
from mgx_mlir.compiler.stages import steps_of
from mgx_mlir.frontends.onnx.importer import Importer, parse_onnx
from mgx_mlir.frontends.onnx.ops.linear import matmul_op
from mgx_mlir.passes import PASSES
from mgx_mlir.passes.lowering.lower import lower_to_linalg
from mgx_mlir.passes.lowering.module import ModuleLowering
from mgx_mlir.passes.lowering.ops.linear import dot
from mgx_mlir.passes.lowering.ops.reduce import softmax
from mgx_mlir.passes.simplify_algebra.linear import find_mul_dot
from mgx_mlir.rewrite.passes import run_pipeline
from mgx_mlir.rewrite.pattern import PatternSet
from mgx_mlir.runtime.iree_runtime import LoadedModule
from mgx_mlir.targets.base import Target
from mgx_mlir.targets.child import IreeCompiler
from mgx_mlir.targets.worker import compile_one
from mgx_mlir.tools.driver.main import main

PAGE = Path(__file__).with_name("life-of-a-model.md")
ROOT = PAGE.resolve().parents[1]
ARCH = "x86-64-v3"  # the page is the same on every machine
WIDTH = 118

MODEL = """\
<ir_version: 8, opset_import: ["": 17]>
tiny (float[2,4] x) => (float[2,2] y)
<float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[2] b = {1, -1}, float scale = {0.25}>
{
   product = MatMul(x, w)
   scaled = Mul(product, scale)
   sum = Add(scaled, b)
   clipped = Relu(sum)
   y = Softmax <axis = -1> (clipped)
}
"""

# the functions of each stage, in the order in which they are called
STAGES: dict[str, tuple[Callable[..., Any] | type, ...]] = {
    "where read": (compile_model, Compilation.read, read_model, parse_onnx, Importer, matmul_op),
    "where passes": (
        Compilation.optimize,
        steps_of,
        run_pipeline,
        PatternSet,
        find_mul_dot.function,
    ),
    "where kernels": (PASSES["fuse_pointwise_reduce"],),
    "where lowering": (Compilation.lower, lower_to_linalg, ModuleLowering, dot, softmax),
    "where code": (
        Compilation.generate,
        Target.compile_lowered,
        IreeCompiler,
        compile_one,
    ),
    "where run": (CompiledProgram.run, IreeProgram.load, LoadedModule),
}


def place(function: Callable[..., Any] | type) -> str:
    """The name of a function or class, and the file that defines it."""
    path = Path(inspect.getsourcefile(inspect.unwrap(function)) or "").resolve().relative_to(ROOT)
    return f"`{function.__qualname__}` in `{path}`"


def folded(text: str) -> str:
    """The text with its long lines broken between words; MLIR reads it as before."""
    lines: list[str] = []
    for line in text.strip("\n").splitlines():
        indent = line[: len(line) - len(line.lstrip())] + "    "
        lines += textwrap.wrap(
            line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        ) or [""]
    return "\n".join(lines)


def fenced(text: str, language: str = "mlir") -> str:
    """A block of code."""
    return f"```{language}\n{folded(text)}\n```"


def driver(*arguments: str) -> tuple[str, str]:
    """Run a command of mgx-driver; return its stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([*arguments])
    assert status == 0, err.getvalue()
    return out.getvalue(), err.getvalue()


def modules(trace: str) -> Iterator[tuple[str, str]]:
    """The programs in a trace, each with the pass behind which it was printed."""
    for part in re.split(r"^(?=Pass: )", trace, flags=re.MULTILINE):
        name = re.match(r"Pass: (\S+)", part)
        for text in re.findall(r"^(?:#map.*\n)*^module .*?^}$", part, re.MULTILINE | re.DOTALL):
            yield (name[1] if name else "read"), text


def blocks() -> dict[str, str]:
    """The blocks of the page by name, made by compiling and running the model."""
    out = {name: "\n".join(f"* {place(f)}" for f in fs) for name, fs in STAGES.items()}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            out |= _compiled()
        finally:
            os.chdir(before)
    return out


def _compiled() -> dict[str, str]:
    onnx.save(onnx.parser.parse_model(MODEL), "tiny.onnx")
    out = {"file": fenced(MODEL, "text")}
    traces = ("COMPILE", "MATCHES", "MLIR")
    with mock.patch.dict(os.environ, {f"MIGRAPHX_TRACE_{name}": "1" for name in traces}):
        listing, trace = driver(
            "compile", "tiny.onnx", "--cpu", "--arch", ARCH, "--threads", "1", "--no-cache"
        )  # fmt: skip
    previous = ""
    *passes, (_, lowered) = modules(trace)
    for name, text in passes:
        if text != previous:
            out[name] = fenced(text)
        previous = text
    matches = re.findall(r"^.*: matched by .*$", trace, re.MULTILINE)
    out["matches"] = fenced("\n".join(matches), "text")
    out["lowered"] = fenced(lowered)
    out["listing"] = fenced(listing, "text")
    program = mgx_mlir.compile("tiny.onnx", "cpu", arch=ARCH, threads=1, cache=False)
    assert isinstance(program, IreeProgram)
    out["flags"] = fenced("\n".join(program.executable.flags), "text")
    out["dispatches"] = fenced("\n".join(program.executable.kernels), "text")
    x = np.arange(8, dtype=np.float32).reshape(2, 4) / 100
    [y] = program.run({"x": x})
    out["result"] = fenced("\n".join(" ".join(f"{v:.4f}" for v in row) for row in y), "text")
    return out


def text() -> str:
    """The page with every block as it is printed now."""
    made = blocks()
    used: list[str] = []

    def fill(found: re.Match[str]) -> str:
        used.append(found[1])
        return f"<!-- {found[1]} -->\n{made[found[1]]}\n<!-- end -->"

    page = re.sub(r"<!-- ([\w ]+) -->\n.*?<!-- end -->", fill, PAGE.read_text(), flags=re.DOTALL)
    assert {*used} == {*made}, f"blocks of the page: {used}, made: {[*made]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(text())
