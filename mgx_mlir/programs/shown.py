"""User's view of a result whose tensor has another form: fewer axes, or strings.

A program's tensors have numbers as elements, and a known rank. An axis that exists only if its
extent is not 1 at run time is always in the tensor. Strings are indices into a table beside the
program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mgx_mlir.core.ir import ir
from mgx_mlir.programs.texts import shown_table, strings_at

SHOWN = "migraphx.shown"  # result attribute: {ones: [axes], texts: [table]}


@dataclass(frozen=True)
class Shown:
    """`ones` are axes that are dropped if their extent is 1; elements are indices into `texts`."""

    ones: tuple[int, ...] = ()
    texts: tuple[str, ...] = ()

    def array(self, found: np.ndarray) -> np.ndarray:
        """Return the array in the user's view."""
        if self.ones:
            found = found.squeeze(tuple(a for a in self.ones if found.shape[a] == 1))
        return strings_at(self._table, found) if self.texts else found

    @cached_property
    def _table(self) -> np.ndarray:
        return shown_table(self.texts)

    def attribute(self) -> ir.Attribute:
        """Return what `shown_of` reads."""
        i64 = ir.IntegerType.get_signless(64)
        return ir.DictAttr.get(
            {
                "ones": ir.ArrayAttr.get([ir.IntegerAttr.get(i64, a) for a in self.ones]),
                "texts": ir.ArrayAttr.get([ir.StringAttr.get(t) for t in self.texts]),
            }
        )


def shown_of(attributes: Mapping[str, ir.Attribute]) -> Shown | None:
    """Return the user's view of a result from its attributes; None if it is the tensor itself."""
    if SHOWN not in attributes:
        return None
    rows = ir.DictAttr(attributes[SHOWN])
    ones = tuple(ir.IntegerAttr(a).value for a in ir.ArrayAttr(rows["ones"]))
    return Shown(ones, tuple(ir.StringAttr(a).value for a in ir.ArrayAttr(rows["texts"])))


def shown_from_json(row: Mapping[str, Sequence[Any]] | None) -> Shown | None:
    """Return what dataclasses.asdict wrote."""
    return None if row is None else Shown(tuple(map(int, row["ones"])), tuple(row["texts"]))
