"""Fair order of requests: models share the time of the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Key = tuple[str, str]  # a model and its version
T = TypeVar("T")


class Shares:
    """Seconds that each model's runs took; requests of the model with the fewest come first.

    Without it a dozen endless runs would block quick requests. An idle model saves no time up: no
    count is below that of the model that ran last.
    """

    def __init__(self) -> None:
        self._seconds: dict[Key, float] = {}
        self._least = 0.0

    def _of(self, key: Key) -> float:
        return max(self._seconds.get(key, 0.0), self._least)

    def ordered(self, waiting: Iterable[T], model_of: Callable[[T], Key]) -> list[T]:
        """Return requests in their order; models with the fewest seconds come first."""
        return sorted(waiting, key=lambda each: self._of(model_of(each)))

    def begin(self, key: Key) -> None:
        """Record the model of a run that starts."""
        self._least = self._of(key)

    def end(self, key: Key, seconds: float) -> None:
        """Record the seconds of a run."""
        self._seconds[key] = self._of(key) + seconds
