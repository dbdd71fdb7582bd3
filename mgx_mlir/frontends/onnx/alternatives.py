"""Choice of a branch for each `If` whose branches differ in rank, so that the model is valid.

Exporters write `squeeze` of a dynamic dim as such an `If`. If no later node depends on the rank,
the program has both branches (ranks.py). Else the model is read with each branch. If one branch
makes later nodes invalid, or gives outputs of other ranks than the file states, the program has
only the other one. A run whose condition selects the missing branch then fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

import onnx

from mgx_mlir.core.errors import MgxError
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.signature import Signature

_MOST_READS = 32  # most readings of one model


class Choice(Enum):
    """Reading of an `If` whose branches differ in rank."""

    BOTH = auto()  # both branches if no node depends on the rank, else an error
    THEN = auto()
    ELSE = auto()
    # both branches; nodes that depend on the rank read the larger one, which is checked at run time
    CHECKED = auto()


Choices = Mapping[str | bytes, Choice]  # keys: names of nodes, or digests of equal nodes


class Undecided(Exception):
    """Raised at an `If` without a choice, which ends the reading.

    `like` identifies equal nodes: a function that is called often has many of them.
    """

    def __init__(self, node: str, like: bytes) -> None:
        super().__init__(node)
        self.node, self.like = node, like


@dataclass
class Alternatives:
    """Readings of a graph; `read` makes its program for given choices."""

    read: Callable[[Choices], ProgramIR]
    graph: onnx.GraphProto
    reads: int = 0

    def program(self, choices: Choices | None = None) -> ProgramIR:
        """Return the only valid program. Errors: those of the model."""
        choices = choices or {}
        return self._decided(choices, self._reading(choices))

    def _reading(self, choices: Choices) -> ProgramIR | Undecided:
        """Read once; return the program, or the `If` that ended it. Errors: those of the model."""
        self.reads += 1
        try:
            return self.read(choices)
        except Undecided as e:
            return e

    def _decided(self, choices: Choices, found: ProgramIR | Undecided) -> ProgramIR:
        """Return a reading's program; try the choices of the `If` that ended it."""
        if not isinstance(found, Undecided):
            return found
        node = found.node
        if (both := self._tried(choices, node, Choice.BOTH)) is not None:
            whole = self._finished({**choices, node: Choice.BOTH}, both)
            if whole is not None:
                return whole
        begun = {c: self._tried(choices, node, c) for c in (Choice.THEN, Choice.ELSE)}
        begun = {c: first for c, first in begun.items() if first is not None}
        if both is None and len(begun) == 1 and self.reads < _MOST_READS:
            # the others ended before the next such `If`, so they end at equal ones too
            [choice] = begun
            shared = self._attempt({**choices, node: choice, found.like: choice})
            if shared is not None:
                return shared
        each = [self._finished({**choices, node: c}, first) for c, first in begun.items()]
        programs = [p for p in each if p is not None]
        if len(programs) > 1:
            programs = [p for p in programs if self._as_stated(p)]
        if len(programs) == 1:
            return programs[0]
        return self.program({**choices, node: Choice.CHECKED})

    def _tried(self, choices: Choices, node: str, choice: Choice) -> ProgramIR | Undecided | None:
        """Read with one more choice, up to the next `If`; None if that makes the model invalid."""
        if self.reads >= _MOST_READS:
            return None
        try:
            return self._reading({**choices, node: choice})
        except MgxError:
            return None

    def _finished(self, choices: Choices, found: ProgramIR | Undecided) -> ProgramIR | None:
        try:
            return self._decided(choices, found)
        except MgxError:
            return None

    def _attempt(self, choices: Choices) -> ProgramIR | None:
        try:
            return self.program(choices)
        except MgxError:
            return None

    def _as_stated(self, program: ProgramIR) -> bool:
        """Return whether the outputs have the ranks that the file states for them."""
        stated = {
            o.name: len(o.type.tensor_type.shape.dim)
            for o in self.graph.output
            if o.type.tensor_type.HasField("shape")
        }
        with program.ctx:
            outputs = Signature.of(program.main()).outputs
            return all(stated.get(o.name, len(o.dims)) == len(o.dims) for o in outputs)
