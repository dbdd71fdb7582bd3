"""Counters of the backend in this process: compiled graphs, and calls of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Counters:
    """Counts since the start, or since `clear`."""

    graphs: int = 0  # graphs that Dynamo passed to the backend
    # compiled programs: one per graph, and more if its weights differ or change
    programs: int = 0
    eager: int = 0  # nodes that were left to torch

    def clear(self) -> None:
        """Count from zero."""
        self.graphs = self.programs = self.eager = 0


counters = Counters()
