"""The stubs of the MLIR bindings name what the bindings have, with the parameters they have."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import mgx_mlir.core.ir  # noqa: F401  (loads the bindings as the product does)
from tests.run import ROOT

FOLDER = ROOT / "typings"
# each dialect's class gets one of its own when it is declared
MADE_LATER = {"ext.Dialect.Operation"}
STUBS = sorted(p for p in FOLDER.rglob("*.pyi") if p.stat().st_size)


def module_of(stub: Path) -> object:
    parts = stub.relative_to(FOLDER).with_suffix("").parts
    return importlib.import_module(".".join(parts).removesuffix(".__init__"))


def parameters(function: ast.FunctionDef, *, bound: bool) -> list[str]:
    """Name the parameters that callers may spell; of positional-only ones there are none."""
    a = function.args
    named = [p.arg for p in a.args][1 if bound else 0 :] + [p.arg for p in a.kwonlyargs]
    return [n for n in named if not n.startswith("_")]


def signatures(value: object) -> list[str]:
    """Return the texts of a run-time signature, of which native functions have several."""
    native = getattr(value, "__nb_signature__", None)
    if native is not None:
        return [row[0] for row in native]
    try:
        return [str(inspect.signature(value))]  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        return []


def takes(value: object, names: list[str]) -> bool:
    """Return whether a call may name each of `names`: a signature has them all, or any keyword."""
    rows = signatures(value)
    return any(
        "**" in row or all(re.search(rf"\b{re.escape(n)}\b", row) for n in names) for row in rows
    )


def differences(body: list[ast.stmt], owner: object, where: str, *, bound: bool) -> Iterator[str]:
    """Yield what a stub says of `owner` and its run-time value contradicts."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            private = node.name.startswith("_") and not hasattr(owner, node.name)
            if private:  # a base that the stub alone has: its members are looked for in the others
                continue
            if not hasattr(owner, node.name):
                yield f"{where}.{node.name}"
                continue
            own = members_with_bases(node, body)
            yield from differences(
                own, getattr(owner, node.name), f"{where}.{node.name}", bound=True
            )
        elif isinstance(node, ast.FunctionDef):
            yield from differences_of_function(node, owner, where, bound=bound)


def members_with_bases(node: ast.ClassDef, module: list[ast.stmt]) -> list[ast.stmt]:
    """Return a class's members and those of its private bases, which exist in the stub alone."""
    bases = {b.id for b in node.bases if isinstance(b, ast.Name) and b.id.startswith("_")}
    held = [c for c in module if isinstance(c, ast.ClassDef) and c.name in bases]
    return [*node.body, *(m for c in held for m in c.body)]


def differences_of_function(
    node: ast.FunctionDef, owner: object, where: str, *, bound: bool
) -> Iterator[str]:
    decorators = {d.id for d in node.decorator_list if isinstance(d, ast.Name)}
    if node.name in ("__getattr__", "__setattr__", "__init_subclass__"):
        return  # marks a stub with further names
    if node.name == "__iter__" and hasattr(owner, "__getitem__"):
        return  # Python iterates by position
    if not hasattr(owner, node.name):
        yield f"{where}.{node.name}"
        return
    if "property" in decorators or any(isinstance(d, ast.Attribute) for d in node.decorator_list):
        return
    dunder = node.name.startswith("__") and node.name != "__init__"  # called by operators
    names = [] if dunder else parameters(node, bound=bound and "staticmethod" not in decorators)
    value = getattr(owner, node.name)
    if names and not takes(value, names):
        yield f"{where}.{node.name}({', '.join(names)}), got {signatures(value)}"


@pytest.mark.parametrize("stub", STUBS, ids=[str(p.relative_to(FOLDER)) for p in STUBS])
def test_a_stub_names_what_the_bindings_have(stub: Path) -> None:
    module = module_of(stub)
    tree = ast.parse(stub.read_text())
    found = differences(tree.body, module, stub.stem, bound=False)
    assert [row for row in found if row not in MADE_LATER] == []


def test_a_wrong_name_is_found() -> None:
    from mgx_mlir.core.ir import arith

    text = "class AddIOp:\n    def __init__(self, left): ...\nclass NoOp: ...\ndef addi(lhs): ...\n"
    found = list(differences(ast.parse(text).body, arith, "arith", bound=False))
    assert [row.split(",")[0] for row in found] == ["arith.AddIOp.__init__(left)", "arith.NoOp"]
