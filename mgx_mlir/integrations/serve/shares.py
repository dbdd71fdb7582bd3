"""Whose request is next: models share the time of the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Key = tuple[str, str]  # a model and its version
T = TypeVar("T")


class Shares:
    """Seconds of workers that each model's runs took: the model with the fewest comes first.

    A dozen runs that do not end would keep quick requests waiting otherwise. A model saves nothing
    up while nobody asks for it: no count is below that of the model that had its turn last.
    """

    def __init__(self) -> None:
        self._seconds: dict[Key, float] = {}
        self._least = 0.0

    def _of(self, key: Key) -> float:
        return max(self._seconds.get(key, 0.0), self._least)

    def ordered(self, waiting: Iterable[T], model_of: Callable[[T], Key]) -> list[T]:
        """Return requests in their order, the models with the fewest seconds first."""
        return sorted(waiting, key=lambda each: self._of(model_of(each)))

    def begin(self, key: Key) -> None:
        """Note the model of a run that begins."""
        self._least = self._of(key)

    def end(self, key: Key, seconds: float) -> None:
        """Note what a run took."""
        self._seconds[key] = self._of(key) + seconds
