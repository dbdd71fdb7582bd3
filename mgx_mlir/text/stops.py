"""Stop strings, found across the pieces of a text."""

from __future__ import annotations

from collections.abc import Sequence


class Stops:
    """Holds back text that may be the beginning of a stop string."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [s for s in stops if s]
        self._held = ""

    def add(self, text: str) -> tuple[str, bool]:
        """Return the text that may be shown, and whether a stop string was found."""
        if not self._stops:
            return text, False
        self._held += text
        ends = [at for s in self._stops if (at := self._held.find(s)) >= 0]
        if ends:
            shown, self._held = self._held[: min(ends)], ""
            return shown, True
        keep = max(begun(s, self._held) for s in self._stops)
        cut = len(self._held) - keep
        shown, self._held = self._held[:cut], self._held[cut:]
        return shown, False

    def rest(self) -> str:
        """Return the text held back, at the end of the answer."""
        held, self._held = self._held, ""
        return held


def begun(stop: str, text: str) -> int:
    """Return the number of last characters that are a beginning of `stop`."""
    longest = min(len(stop) - 1, len(text))
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)
