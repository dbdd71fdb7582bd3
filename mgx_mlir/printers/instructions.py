"""The lines of a listing: instructions, modules, and a program's modules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any, Literal

import numpy as np

from mgx_mlir.core import literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.programs.layout import AnyShape, Shape
from mgx_mlir.programs.module_shapes import ModuleShapes

Numbering = Literal["seed", "2.16"]


@dataclass
class ListedInstruction:
    """One line of a listing.

    `lhs` is its printed name, `op` MIGraphX's operator name. `values` are its values in the IR;
    `operation` is None for a parameter. `shape` is None for @return.
    """

    lhs: str
    op: str
    attributes: dict[str, Any] = field(default_factory=dict)
    inputs: list[ListedInstruction] = field(default_factory=list)
    modules: list[Module] = field(default_factory=list)
    shape: AnyShape | None = None
    symbols: list[str] = field(default_factory=list)
    operation: ir.Operation | None = None
    values: tuple[ir.Value, ...] = ()
    implied: bool = False  # a return that was added implicitly

    def array(self) -> np.ndarray:
        """Return the elements of a literal. The program's weight store must be active."""
        assert self.operation is not None
        return literals.array_of(self.operation)

    @property
    def is_literal(self) -> bool:
        """Return whether the instruction is a literal."""
        return self.op == "@literal"


@dataclass
class Module:
    """A module: its name, and its instructions in MIGraphX's order."""

    name: str
    instructions: list[ListedInstruction] = field(default_factory=list)

    def visible(self) -> Iterator[ListedInstruction]:
        """Return the instructions without an implicit return."""
        return (i for i in self.instructions if not i.implied)


@dataclass
class Listing:
    """Modules of a program: main first, submodules in order of first use."""

    modules: list[Module]
    layout: ModuleShapes

    @property
    def main(self) -> Module:
        """The main module."""
        return self.modules[0]

    def by_value(self) -> dict[Any, ListedInstruction]:
        """Map each value and operation to its line."""
        found: dict[Any, ListedInstruction] = {}
        for m in self.modules:
            for line in m.instructions:
                for value in line.values:
                    found[value] = line
                if line.operation is not None:
                    found.setdefault(line.operation, line)
        return found


def static_shape(shape: AnyShape | None) -> Shape:
    """Return the shape of an instruction that is one tensor."""
    assert isinstance(shape, Shape)
    return shape
