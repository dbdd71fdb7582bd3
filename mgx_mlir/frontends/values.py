"""Values that an importer holds for a name: a tensor, a value that is none, or a failure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mgx_mlir.core.ir import ir

Value = ir.Value


class HostValue:
    """A value that no tensor of the program stands for."""

    what = "value"

    def describe(self) -> str:
        """Return the value in words, as in "expected a tensor, got a resource"."""
        return f"a {self.what}"


class Failed:
    """The value of a node that failed: its users are skipped without a message."""


POISON = Failed()
Held = Value | HostValue | Failed
# results of an operator: one, or a row with None for absent ones
Outputs = Held | Sequence[Held | None]


def has_failed(values: Iterable[Held | None]) -> bool:
    """Return whether one of `values` is of a node that failed."""
    return any(v is POISON for v in values)
