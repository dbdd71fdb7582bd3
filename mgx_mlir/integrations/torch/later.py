"""Calls of a graph that is compiled in the background: eager answers until the program is ready."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from mgx_mlir.compiler.behind import Behind
from mgx_mlir.core.errors import MgxError
from mgx_mlir.integrations.torch.calls import Call
from mgx_mlir.integrations.torch.check import Checked

Run = Callable[[Sequence[Any]], Sequence[Any]]


class Later:
    """Runs the graph module until `work` has made the call of its program.

    keep_eager: a failed compile is a warning, and torch keeps running the graph.
    """

    def __init__(
        self, eager: fx.GraphModule, work: Callable[[], Call | Checked], keep_eager: bool
    ) -> None:
        self._eager, self._keep = eager, keep_eager
        self._run: Run | None = None
        self._behind = Behind(work)

    @property
    def is_ready(self) -> bool:
        """Return whether the compile has ended."""
        return self._behind.is_done

    def wait(self, seconds: float | None = None) -> None:
        """Wait for the end of the compile. Raises its error."""
        self._behind.wait(seconds)

    def __call__(self, args: Sequence[Any]) -> Sequence[Any]:
        """Return the results of the graph. Errors: those of the compile, and of the call."""
        run = self._run or self._found()
        return self._by_eager(args) if run is None else run(args)

    def _found(self) -> Run | None:
        try:
            found = self._behind.found()
        except MgxError as e:
            if not self._keep:
                raise
            warnings.warn(f"torch keeps running the graph: {e.message}", stacklevel=4)
            self._run = self._by_eager
        else:
            self._run = None if found is None else found.function()
        return self._run

    def _by_eager(self, args: Sequence[Any]) -> Sequence[Any]:
        with torch.no_grad():
            return self._eager(*args)

    def function(self) -> Run:
        """Return the call as a function."""
        return self


__all__ = ["Later"]
