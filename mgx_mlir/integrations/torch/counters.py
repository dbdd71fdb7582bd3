"""What the backend did in this process: graphs that were compiled, and calls of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Counters:
    """Numbers since the start, or since `clear`."""

    graphs: int = 0  # that Dynamo gave to the backend
    # that were compiled of them, one for each graph unless its weights were others or changed
    programs: int = 0
    eager: int = 0  # nodes that were left to torch

    def clear(self) -> None:
        """Count from zero."""
        self.graphs = self.programs = self.eager = 0


counters = Counters()
