"""What the backend did in this process: graphs that were compiled, and calls of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Counters:
    """Numbers since the start, or since `clear`.

    graphs: that Dynamo gave to the backend. programs: that were compiled of them, one for each
    graph unless its weights were others or changed. eager: nodes that were left to torch.
    """

    graphs: int = 0
    programs: int = 0
    eager: int = 0

    def clear(self) -> None:
        """Count from zero."""
        self.graphs = self.programs = self.eager = 0


counters = Counters()
