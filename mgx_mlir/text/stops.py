"""Strings that end a text, found across the pieces that it comes in."""

from __future__ import annotations

from collections.abc import Sequence


class Stops:
    """Hold back text that may be the beginning of a stop string."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [s for s in stops if s]
        self._held = ""

    def add(self, text: str) -> tuple[str, bool]:
        """Return the text that may be shown, and whether a stop string has come."""
        if not self._stops:
            return text, False
        self._held += text
        ends = [at for s in self._stops if (at := self._held.find(s)) >= 0]
        if ends:
            shown, self._held = self._held[: min(ends)], ""
            return shown, True
        keep = max(self._begun(s) for s in self._stops)
        cut = len(self._held) - keep
        shown, self._held = self._held[:cut], self._held[cut:]
        return shown, False

    def _begun(self, stop: str) -> int:
        """Return how many last characters are the beginning of `stop`."""
        longest = min(len(stop) - 1, len(self._held))
        return next((n for n in range(longest, 0, -1) if self._held.endswith(stop[:n])), 0)

    def rest(self) -> str:
        """Return what was held back: no more text comes."""
        held, self._held = self._held, ""
        return held
