"""The branch of an `If` of two ranks that the rest of the model can be read with.

Exporters write `squeeze` of a dynamic dim so. Where nothing that follows depends on the rank, the
program has both (ranks.py). Else the model is read with each of the two. Where one of them makes it
invalid further on, or gives outputs of other ranks than the file states, the program has the other
one, and a run in which the condition says otherwise ends with an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

import onnx

from mgx_mlir.core.errors import MgxError
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.signature import Signature

_MOST_READS = 32  # readings of one model


class Choice(Enum):
    """Reading of an `If` whose branches differ in rank."""

    BOTH = auto()  # both branches if nothing depends on the rank, else an error
    THEN = auto()
    ELSE = auto()
    CHECKED = auto()  # both; what depends on the rank reads the larger one, which a run checks


Choices = Mapping[str | bytes, Choice]  # keys: names of nodes, or bytes that equal nodes share


class Undecided(Exception):
    """Ends a reading at an `If` that nothing has been chosen for.

    `like` is the node's own form: a function that is called often has as many equal nodes.
    """

    def __init__(self, node: str, like: bytes) -> None:
        super().__init__(node)
        self.node, self.like = node, like


@dataclass
class Alternatives:
    """The readings of a graph; `read` makes its program with the choices that it is given."""

    read: Callable[[Choices], ProgramIR]
    graph: onnx.GraphProto
    reads: int = 0

    def program(self, choices: Choices | None = None) -> ProgramIR:
        """Return the only program that there is. Errors: those of the model."""
        choices = choices or {}
        return self._decided(choices, self._reading(choices))

    def _reading(self, choices: Choices) -> ProgramIR | Undecided:
        """Read once: the program, or the `If` that ended it. Errors: those of the model."""
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
            # the others ended ahead of the next such `If`: they do so at equal ones, too
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
        """Read with one choice more, up to the next `If`; None where the model is wrong so."""
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
