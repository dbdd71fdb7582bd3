"""Checks on trees from untrusted files; each error has the expected and the actual value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mgx_mlir.core.errors import FileError

Tree = Any


def as_map(tree: Tree, what: str) -> dict[str, Tree]:
    """Return `tree` as a map; FileError if it is none. An empty list is an empty map."""
    if isinstance(tree, list) and not tree:
        return {}  # an empty object is written as an empty array
    if not isinstance(tree, dict):
        raise FileError(f"{what} expected an object, got {kind_of(tree)}")
    return tree


def as_list(tree: Tree, what: str) -> list[Tree]:
    """Return `tree` as a list; FileError where it is none. None and {} are empty lists."""
    if tree is None or tree == {}:
        return []
    if not isinstance(tree, list):
        raise FileError(f"{what} expected an array, got {kind_of(tree)}")
    return tree


def as_text(tree: Tree, what: str) -> str:
    """Return `tree` as a string; FileError where it is none."""
    if not isinstance(tree, str):
        raise FileError(f"{what} expected a string, got {kind_of(tree)}")
    return tree


def as_size(tree: Tree, what: str) -> int:
    """Return a number from 0 to 2**64 - 1; a writer may store it as a float of the same value."""
    if isinstance(tree, float) and tree.is_integer():
        tree = int(tree)
    if isinstance(tree, bool) or not isinstance(tree, int) or not 0 <= tree < 2**64:
        raise FileError(f"{what} expected a size, got {shortened(tree)}")
    return tree


def member(found: Mapping[str, Tree], key: str, what: str) -> Tree:
    """Return the value of a key; FileError if the map lacks it."""
    if key not in found:
        raise FileError(f"{what} has no '{key}'")
    return found[key]


_KINDS = {
    dict: "an object", list: "an array", str: "a string", bool: "a bool", int: "a number",
    float: "a number", memoryview: "bytes", type(None): "null",
}  # fmt: skip


def kind_of(tree: Tree) -> str:
    """Return the kind of a tree in words, for messages."""
    return _KINDS.get(type(tree), type(tree).__name__)


def shortened(tree: Tree) -> str:
    """Return a value as text for a message, at most a line long."""
    if isinstance(tree, dict | list | memoryview):
        return kind_of(tree)
    text = repr(tree)
    return text if len(text) <= 40 else text[:37] + "..."


def located(error: FileError, name: str) -> FileError:
    """Return an error in the file `name`, on one line whatever texts of the file it contains."""
    text = error.message if len(error.message) <= 400 else error.message[:397] + "..."
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return FileError(shown, location=error.location or name, notes=error.notes)
