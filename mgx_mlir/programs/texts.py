"""Strings that a program takes and gives: numbers in a table that lies beside it.

The tensor part computes with the numbers only. A call may hold strings that the table has not:
they get the numbers behind it, for that call, so that they equal each other and no known one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from mgx_mlir.core.errors import RunError
from mgx_mlir.core.ir import ir

TEXTS = "migraphx.texts"  # function attribute: the table of a program's strings
TEXT = "migraphx.text"  # argument and result attribute: its elements are numbers in the table


class CallTexts:
    """The strings of one call: those of the program's table, then those that only the call has."""

    def __init__(self, table: Sequence[str], numbers: Mapping[str, int]) -> None:
        self._table, self._numbers = table, numbers
        self._added: dict[str, int] = {}

    def numbers(self, name: str, given: object) -> object:
        """Return the strings of input `name` as numbers; what has numbers stays as it is.

        Raises RunError for what are neither strings nor numbers of the table.
        """
        array = np.asarray(given) if hasattr(given, "__array__") else np.array(given, object)
        if array.dtype == np.int64:
            return array
        if array.dtype.kind not in "OUT":
            raise RunError(f"input '{name}' expected strings, got {array.dtype.name}")
        flat = array.reshape(-1).tolist()
        try:
            known = map(self._numbers.get, flat, itertools.repeat(-1))
            found = np.fromiter(known, np.int64, len(flat))
        except TypeError:  # an element that is no string, and cannot be looked up
            found = np.full(len(flat), -1)
        for i in np.flatnonzero(found < 0).tolist():
            found[i] = self._number(name, flat[i])
        return found.reshape(array.shape)

    def _number(self, name: str, text: object) -> int:
        if not isinstance(text, str):
            raise RunError(f"input '{name}' expected strings, got {type(text).__name__}")
        known = self._numbers.get(text)
        if known is None:
            known = self._added.setdefault(text, len(self._table) + len(self._added))
        return known

    def strings(self, numbers: np.ndarray) -> np.ndarray:
        """Return the strings that have these numbers."""
        return strings_at([*self._table, *self._added], numbers)


def strings_at(table: Sequence[str], numbers: np.ndarray) -> np.ndarray:
    """Return an array of the table's strings; "" where a number is none of the table."""
    held = np.array([*table, ""], object)
    known = (numbers >= 0) & (numbers < len(table))
    return np.asarray(held[np.where(known, numbers, len(table))], object).reshape(numbers.shape)


def set_texts(function: ir.OpView, table: Iterable[str], inputs: Iterable[int]) -> None:
    """Note on an entry function its table of strings, and which arguments number it."""
    texts = [ir.StringAttr.get(t) for t in table]
    chosen = set(inputs)
    if not texts and not chosen:
        return
    function.attributes[TEXTS] = ir.ArrayAttr.get(texts)
    entries = [ir.DictAttr(a) for a in ir.ArrayAttr(function.attributes["arg_attrs"])]
    for i in chosen:
        held = {entries[i][k].name: entries[i][k].attr for k in range(len(entries[i]))}
        entries[i] = ir.DictAttr.get({**held, TEXT: ir.UnitAttr.get()})
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(entries)


def texts_of(function: ir.OpView) -> tuple[str, ...]:
    """Return the table of strings of an entry function; empty where it has none."""
    if TEXTS not in function.attributes:
        return ()
    return tuple(ir.StringAttr(a).value for a in ir.ArrayAttr(function.attributes[TEXTS]))
