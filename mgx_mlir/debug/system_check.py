"""One check of the system or a device: its subject, its status, and the remedy."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

OK, BAD, WARNED, SKIPPED = "ok", "failed", "warning", "skipped"


@dataclass(frozen=True)
class Check:
    """One check: its subject, its status, what was found, and the remedy."""

    name: str
    status: str
    found: str
    notes: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """Return the check as JSON values."""
        return asdict(self)
