"""The functions of a compiled module, and the choice of one by input sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mgx_mlir.runtime.ports import Port


class ForSizes(Protocol):
    """A function for some sizes of the inputs: (input, dim, size) of each.

    alike: groups of dims, as (input, dim), that must have equal sizes.
    """

    @property
    def function(self) -> str: ...
    @property
    def sizes(self) -> tuple[tuple[int, int, int], ...]: ...
    @property
    def alike(self) -> tuple[tuple[tuple[int, int], ...], ...]: ...


@dataclass(frozen=True)
class Entry:
    """An exported function and its ports."""

    function: Any
    inputs: list[Port]
    outputs: list[Port]

    @property
    def is_static(self) -> bool:
        """Return whether all its inputs and outputs have fixed sizes."""
        return all(p.static is not None for p in (*self.inputs, *self.outputs))


class Choice:
    """Return the entry for these input shapes: the first variant that they fit."""

    def __init__(self, main: Entry) -> None:
        self._main = main
        self.variants: list[tuple[ForSizes, Entry]] = []

    def add(self, variant: ForSizes, entry: Entry) -> None:
        """Use an entry instead of the main one at the sizes of a variant."""
        self.variants.append((variant, entry))

    def at(self, shapes: Sequence[Sequence[int]]) -> tuple[str, Entry]:
        """Return the name and the entry. IndexError for shapes of other ranks."""
        for v, entry in self.variants:
            if all(shapes[i][d] == n for i, d, n in v.sizes) and all(
                len({shapes[i][d] for i, d in group}) == 1 for group in v.alike
            ):
                return v.function, entry
        return "main", self._main
