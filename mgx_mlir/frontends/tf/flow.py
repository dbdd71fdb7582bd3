"""Control flow of version 1: the loops and branches that Enter, Switch and Merge nodes draw."""

from __future__ import annotations

from typing import Any

from mgx_mlir.frontends.tf.graph import Body


class Flow:
    """What a body's loops and branches are, found when they are first met."""

    def __init__(self, body: Body) -> None:
        self.body = body

    def reads(self, name: str, scope: Any) -> list[str]:
        """The nodes that must be imported before `name`."""
        return [n for n, _ in self.body.refs(name)]

    def build(self, importer: Any, name: str, scope: Any) -> Any:
        """The outputs of a node of control flow; None for any other."""
        return None
