"""Strings of a program's inputs and outputs: indices into a table beside the program.

The tensor part computes only with the indices. Strings of a call that are not in the table get the
next indices, for that call. So equal strings compare equal, and differ from all of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mgx_mlir.core.errors import RunError
from mgx_mlir.core.ir import ir

TEXTS = "migraphx.texts"  # function attribute: the table of a program's strings
TEXT = "migraphx.text"  # argument and result attribute: its elements are indices into the table


class CallTexts:
    """Strings of one call: the program's table, then strings that only the call has.

    numbers: indices of the table's strings. shown: the table from `shown_table`.
    """

    def __init__(self, numbers: Mapping[str, int], shown: np.ndarray) -> None:
        self._numbers, self._shown = numbers, shown
        self._added: dict[str, int] = {}

    def numbers(self, name: str, given: object) -> object:
        """Return the strings of input `name` as indices; indices stay as they are.

        Raises RunError for values that are neither strings nor indices into the table.
        """
        array: Any = given
        if type(given) is not np.ndarray:
            has_type = hasattr(given, "__array__")
            array = np.asarray(given) if has_type else np.array(given, object)
        kind = array.dtype
        if kind.kind not in "OUT":
            if kind == np.int64:
                return array
            raise RunError(f"input '{name}' expected strings, got {kind.name}")
        flat, count = array.reshape(-1).tolist(), array.size
        try:  # fast path: most calls have only strings of the table
            found = np.fromiter(map(self._numbers.__getitem__, flat), np.int64, count)
        except KeyError:
            found = self._with_new(name, flat)
        except TypeError:  # an element that is no string, and not hashable
            raise _not_text(name, flat) from None
        return found.reshape(array.shape)

    def _with_new(self, name: str, texts: list[Any]) -> np.ndarray:
        """Return the indices of strings; strings that are not in the table get the next ones."""
        try:
            found = list(map(self._numbers.get, texts))
        except TypeError:
            raise _not_text(name, texts) from None
        added, first = self._added, self._shown.size - 2
        for i, known in enumerate(found):
            if known is None:
                text = texts[i]
                known = added.get(text)
                if known is None:
                    if not isinstance(text, str):
                        raise _not_text(name, texts)
                    known = added[text] = first + len(added)
                found[i] = known
        return np.array(found, np.int64)

    def strings(self, numbers: np.ndarray) -> np.ndarray:
        """Return the strings of these indices."""
        shown = self._shown
        if self._added:
            shown = shown_table([*shown[1:-1].tolist(), *self._added])
        return strings_at(shown, numbers)


def _not_text(name: str, values: Iterable[Any]) -> RunError:
    wrong = next(v for v in values if not isinstance(v, str))
    return RunError(f"input '{name}' expected strings, got {type(wrong).__name__}")


def shown_table(table: Sequence[str]) -> np.ndarray:
    """Return a table of strings with "" at both ends, for indices outside of the table."""
    return np.array(["", *table, ""], object)


def strings_at(shown: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return strings by their indices, from a table of `shown_table`."""
    # the largest index wraps to the least one, which is outside of the table too
    return np.asarray(shown.take(numbers + 1, mode="clip"), object).reshape(numbers.shape)


def set_texts(function: ir.OpView, table: Iterable[str], inputs: Iterable[int]) -> None:
    """Set an entry function's table of strings, and the arguments that index it."""
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
    """Return the table of strings of an entry function; empty if it has none."""
    if TEXTS not in function.attributes:
        return ()
    return tuple(ir.StringAttr(a).value for a in ir.ArrayAttr(function.attributes[TEXTS]))
