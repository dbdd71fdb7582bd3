"""Importer values of a name: a tensor, a value that is no tensor, or a failure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mgx_mlir.core.ir import ir

Value = ir.Value


class HostValue:
    """A value that no tensor of the program represents."""

    what = "value"

    def describe(self) -> str:
        """Return the value in words, as in "expected a tensor, got a resource"."""
        return f"a {self.what}"


class Failed:
    """Value of a node that failed: its users are skipped without a message."""


POISON = Failed()
Held = Value | HostValue | Failed
# results of an operator: one, or a row with None for absent ones
Outputs = Held | Sequence[Held | None]


def has_failed(values: Iterable[Held | None]) -> bool:
    """Return whether one of `values` comes from a failed node."""
    return any(v is POISON for v in values)
