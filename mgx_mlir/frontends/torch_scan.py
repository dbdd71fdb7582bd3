"""Detection of arguments that torch.onnx's translations never read, from their source.

A translation is a Python function of onnxscript or torch. An argument that it never reads is
silently missing in the ONNX model.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

OPSET = 23  # opset of exports; its Attention gives 0 for a row without visible keys
_LIBRARIES = ("onnxscript.", "torch.onnx.")
_REMARKS = ("warnings", "logger", "logging", "_logger")


def installed() -> dict[str, str]:
    """Return the versions of the libraries with translations, without build suffixes."""
    modules = map(importlib.import_module, ("torch", "onnxscript"))
    return {m.__name__: m.__version__.partition("+")[0] for m in modules}


@cache
def translations_of() -> Mapping[str, Sequence[Any]]:
    """Return the installed translations of each operator, by `aten::name.overload`.

    Each has `onnx_function`, the function, and `fx_target`, the operator.
    """
    place: Any = importlib.import_module("torch.onnx._internal.exporter._registration")
    # registers operators that have translations
    importlib.import_module("torch.ao.quantization.fx._decomposed")
    found = place.ONNXRegistry.from_torchlib(OPSET).functions
    return {name: made for name, made in found.items() if isinstance(name, str)}


def arguments(name: str) -> tuple[list[str], list[str]]:
    """Return an operator's arguments that a translation reads, and those that one drops."""
    read, dropped = dict[str, None](), dict[str, None]()
    for made in translations_of().get(name, ()):
        function = python_function(made.onnx_function)
        missing = unread(function)
        for argument, parameter in _parameters(made.fx_target._schema, function):
            lost = parameter is None or parameter in missing
            (dropped if lost else read)[argument] = None
    return [a for a in read if a not in dropped], list(dropped)


def python_function(translation: Any) -> Callable[..., Any]:
    """Return the Python function of a translation."""
    for name in ("function", "func"):
        inner = getattr(translation, name, None)
        if inspect.isfunction(inner):
            return inner
    return translation


def _parameters(schema: Any, function: Callable[..., Any]) -> Iterator[tuple[str, str | None]]:
    """Return an operator's arguments, each with its parameter: by name, or in order."""
    parameters = [*inspect.signature(function).parameters]
    names = [a.name for a in schema.arguments]
    for i, a in enumerate(schema.arguments):
        if a.name in parameters:
            yield a.name, a.name
        elif not a.kwarg_only and i < len(parameters) and parameters[i] not in names:
            yield a.name, parameters[i]
        else:
            yield a.name, None


@cache
def unread(function: Callable[..., Any]) -> frozenset[str]:
    """Return the parameters that do not influence a function's result.

    A name in an expression counts as read. Exceptions are deletions, messages to the user and their
    conditions, unused values, and arguments of library functions that are unread there.
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    names = [a.arg for a in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)]
    read = _Reads(function)
    before = -1
    while before != len(read.names):  # parts of a value count once the value is read
        before = len(read.names)
        for statement in tree.body:
            read.visit(statement)
    return frozenset(names) - read.names


class _Reads(ast.NodeVisitor):
    """Collector of the names that a function reads."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.names = set[str]()

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.names.add(node.id)

    def visit_Delete(self, node: ast.Delete) -> None:
        """Skip deletions, which do not read."""

    def visit_If(self, node: ast.If) -> None:
        if not all(map(_is_remark, (*node.body, *node.orelse))):
            self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not _is_remark(node):
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        plain = [t.id for t in node.targets if isinstance(t, ast.Name)]
        if len(plain) < len(node.targets) or self.names.intersection(plain):
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        callee = _library_function(self._function, node.func)
        if callee is None or callee is self._function:
            self.generic_visit(node)
            return
        names, missing = [*inspect.signature(callee).parameters], unread(callee)
        places: list[tuple[str, ast.expr]] = [
            *zip(names, node.args, strict=False),
            *((k.arg or "", k.value) for k in node.keywords),
        ]
        for parameter, value in places:
            if parameter not in missing:
                self.visit(value)


def _is_remark(node: ast.stmt) -> bool:
    """Return whether a statement only informs the user."""
    if isinstance(node, ast.Pass):
        return True
    if not isinstance(node, ast.Expr):
        return False
    if isinstance(node.value, ast.Constant):
        return True
    call = node.value.func if isinstance(node.value, ast.Call) else None
    while isinstance(call, ast.Attribute):
        call = call.value
    return isinstance(call, ast.Name) and call.id in _REMARKS


def _library_function(inside: Callable[..., Any], node: ast.expr) -> Callable[..., Any] | None:
    """Return the library function that an expression in another one names."""
    name = node.id if isinstance(node, ast.Name) else ""
    found = python_function(getattr(inside, "__globals__", {}).get(name))
    ours = inspect.isfunction(found) and f"{found.__module__}.".startswith(_LIBRARIES)
    return found if ours else None
