"""Writes docs/onnx-operators.md: every operator, its versions, what of it is refused.

`python docs/onnx_operators.py > docs/onnx-operators.md`
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from mgx_mlir.frontends.onnx import ops
from mgx_mlir.frontends.onnx.registry import operators, refusals, versions

HEAD = """\
# ONNX operators

<!-- written by `python docs/onnx_operators.py > docs/onnx-operators.md` -->

`versions` are the opsets from which an importer reads the operator (a model's opset takes the
newest that is not above it). `refused` is what a node is refused for, with a message that names
it; `{}` stands for what the message fills in. Operators of ai.onnx that are missing here but are
functions in ONNX are read by their bodies. How to add an operator: [Reading ONNX models](onnx.md).
"""

TITLES = {"": "ai.onnx"}


@cache
def _parsed(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text())


@cache
def tree(function: Callable[..., Any]) -> ast.FunctionDef | ast.Lambda:
    """The `def` of a function, or the `lambda` of a table."""
    line = function.__code__.co_firstlineno
    for node in ast.walk(_parsed(inspect.getsourcefile(function) or "")):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
            if line == min(n.lineno for n in (node, *decorators)):
                return node
    raise LookupError(f"no source of {function}")


def reached(function: Callable[..., Any], seen: set[Any]) -> Iterator[Callable[..., Any]]:
    """The function, and those of the operators' modules that it names."""
    function = inspect.unwrap(function)
    if function in seen or not inspect.isfunction(function):
        return
    seen.add(function)
    yield function
    for node in ast.walk(tree(function)):
        if isinstance(node, ast.Name):
            other = function.__globals__.get(node.id)
            if getattr(other, "__module__", "").startswith(ops.__name__):
                yield from reached(other, seen)


def text_of(node: ast.AST) -> str:
    """A message's text, `{}` for what is filled in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(v) for v in node.values)
    return "{}"


def restrictions(function: Callable[..., Any]) -> list[str]:
    """Return the messages of `raise NotSupported(..)` in a function and its callees."""
    found: dict[str, None] = {}
    for f in reached(function, set()):
        for node in ast.walk(tree(f)):
            if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call):
                continue
            name = node.exc.func
            if isinstance(name, ast.Name) and name.id == "NotSupported" and node.exc.args:
                text = text_of(node.exc.args[0])
                if text not in ("", "{}"):
                    found[text] = None
    return list(found)


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def lines() -> Iterator[str]:
    ops.load()
    yield HEAD
    ours = [key for key in operators() if is_ours(*key)]
    for domain in sorted({d for d, _ in ours} | {d for d, _, _ in refusals()}):
        names = [n for d, n in ours if d == domain]
        yield f"## {TITLES.get(domain, domain)}\n"
        if names:
            yield f"{len(names)} operators.\n"
            yield "| operator | versions | refused |"
            yield "|---|---|---|"
        for name in names:
            found = versions(domain, name)
            since = ", ".join(str(v.since) for v in reversed(found))
            why: dict[str, None] = {}
            for v in found:
                why |= dict.fromkeys(restrictions(v.function))
            yield f"| {name} | {since} | {cell('; '.join(why))} |"
        if names:
            yield ""
        told = [(n, why) for d, n, why in refusals() if d == domain]
        if told:
            yield "Not supported; errors for models with them state the reason:\n"
            yield "| operator | reason |"
            yield "|---|---|"
            yield from (f"| {n} | {cell(why)} |" for n, why in told)
            yield ""


def is_ours(domain: str, name: str) -> bool:
    return all(v.function.__module__.startswith("mgx_mlir.") for v in versions(domain, name))


def text() -> str:
    return "\n".join(lines()).rstrip() + "\n"


if __name__ == "__main__":
    print(text(), end="")
