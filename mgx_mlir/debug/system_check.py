"""One check of the system or a device: what was looked at, how it stands, how to mend it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

OK, BAD, WARNED, SKIPPED = "ok", "failed", "warning", "skipped"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: how it stands, what was found, and how to mend it."""

    name: str
    status: str
    found: str
    notes: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)
