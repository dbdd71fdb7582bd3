"""Arrays with repeated elements (stride 0) that stay views in reshapes for which numpy copies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from mgx_mlir.core.records import dataclass


@dataclass(frozen=True)
class Repeated:
    """An array, each of whose dims is one or more adjacent axes of `data`.

    Repeated elements are separate axes of stride 0, so that no reshape merges them with others.
    """

    data: np.ndarray
    axes: tuple[int, ...]  # number of axes of each dim

    @staticmethod
    def of(array: np.ndarray) -> Repeated:
        """Wrap an array."""
        return Repeated(array, (1,) * array.ndim)

    @property
    def dims(self) -> tuple[int, ...]:
        """The dims of the array."""
        return tuple(math.prod(part) for part in self._split(self.data.shape))

    def _split(self, row: Sequence[int]) -> list[list[int]]:
        """Return the ranges of axes by dim."""
        left = iter(row)
        return [list(itertools.islice(left, n)) for n in self.axes]

    def dense(self) -> np.ndarray:
        """Return the array: a view if strides can express it, else a copy."""
        return self.data.reshape(self.dims)

    def transposed(self, order: Sequence[int]) -> Repeated:
        """Return the array with its dims in another order."""
        numbers = self._split(range(self.data.ndim))
        flat = [axis for d in order for axis in numbers[d]]
        return Repeated(self.data.transpose(flat), tuple(self.axes[d] for d in order))

    def broadcast(self, dims: Sequence[int], start: int) -> Repeated:
        """Broadcast to dims from `start` on: extents of 1, and new dims, repeat."""
        shape: list[int] = []
        places: list[list[int]] = [[n] for n in dims]
        for extents, n, at in zip(
            self._split(self.data.shape), dims[start:], itertools.count(start), strict=False
        ):
            places[at] = extents if math.prod(extents) == n else [n]
            shape += places[at] if places[at] is extents else [1]
        whole = [n for part in places for n in part]
        end = start + len(self.axes)
        inner = self.data.reshape(shape + [1] * sum(map(len, places[end:])))
        return Repeated(np.broadcast_to(inner, whole), tuple(map(len, places)))

    def reshaped(self, dims: Sequence[int]) -> Repeated:
        """Reshape; copy if a new dim ends inside of an axis that it does not divide."""
        extents, places = [n for n in self.data.shape if n != 1], list[list[int]]()
        for n in dims:
            part = list[int]()
            while n != 1:
                first = extents.pop(0) if extents else 0
                taken = math.gcd(n, first)
                if taken not in (n, first) or not first:
                    return Repeated.of(self.dense().reshape(dims))
                extents[:0] = [first // taken] if first != taken else []
                part.append(taken)
                n //= taken
            places.append(part)
        whole = [n for part in places for n in part]
        return Repeated(self.data.reshape(whole), tuple(map(len, places)))

    def distinct(self) -> tuple[np.ndarray, int]:
        """Return the array without rows that repeat the previous one, and the number of
        repetitions.

        Rows are those of the first dim. Row i of the array is row i // size of the result.
        """
        size, index = 1, [slice(None)] * self.data.ndim
        for axis in reversed(range(self.axes[0])):
            if self.data.strides[axis] and self.data.shape[axis] != 1:
                break
            size *= self.data.shape[axis]
            index[axis] = slice(0, 1)
        rows, *rest = self.dims
        return self.data[tuple(index)].reshape(rows // size, *rest), size


__all__ = ["Repeated"]
