"""Arguments of calls that are used again: small inputs are written into them, shape by shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from mgx_mlir.core.literals import aligned_empty
from mgx_mlir.runtime.buffers import span

_BYTES = np.dtype(np.uint8)
_MOST_SHAPES = 16  # a program that is called at more sizes in turn makes its arguments anew
Shapes = tuple[tuple[int, ...], ...]


class TypedPort(Protocol):
    """An input of a known type."""

    np: np.dtype[Any]
    element_type: int


class ArgumentList:
    """The arguments of one call at a time, in memory of their own."""

    def __init__(
        self, hal: Any, ports: Sequence[TypedPort], shapes: Shapes, kind: int, usage: int
    ) -> None:
        import iree.runtime as rt  # the runtime takes long to load, and only calls need it

        self.arguments: Any = rt.VmVariantList(len(ports))
        self._arrays: list[tuple[np.ndarray, np.dtype[Any], tuple[int, ...]]] = []
        self.spans: list[tuple[int, int]] = []
        self._kept: list[Any] = []
        for port, shape in zip(ports, shapes, strict=True):
            own = aligned_empty(shape, port.np)
            # the binding knows plain types alone, and no buffer without bytes
            raw = own.reshape(-1).view(np.uint8) if own.size else aligned_empty((64,), _BYTES)
            buffer = hal.allocator.import_host_allocation(raw, kind, usage)
            view = rt.HalBufferView(buffer, shape, port.element_type)
            self.arguments.push_ref(view)
            self._kept.append((view, raw))
            self._arrays.append((own, own.dtype, own.shape))
            self.spans.append(span(own))

    def write(self, args: Sequence[object]) -> bool:
        """Copy arrays of the list's shapes; False where one is not as the program wants it."""
        for (own, kind, shape), a in zip(self._arrays, args):  # noqa: B905  (as many as shapes)
            if type(a) is not np.ndarray or a.dtype is not kind or a.shape != shape:
                return False
            own[...] = a
        return True


class ArgumentLists:
    """The lists that no call uses now, for the shapes that came twice in a row.

    make: builds a list for shapes that passed the checks of the inputs; largest: bytes of an
    input from which on it is not copied.
    """

    def __init__(self, make: Callable[[Shapes], ArgumentList], largest: int) -> None:
        self._make, self._largest = make, largest
        self._free: dict[Shapes, list[ArgumentList]] = {}
        self._last: Shapes | None = None

    def take(self, args: Sequence[Any]) -> tuple[Shapes, ArgumentList] | None:
        """Return a list that holds the arrays now; None for those that are to be checked."""
        try:
            shapes = tuple([a.shape for a in args])
        except AttributeError:
            return None
        free = self._free.get(shapes)
        if free is None:
            return None
        try:
            found = free.pop()
        except IndexError:
            found = self._make(shapes)
        if found.write(args):
            return shapes, found
        free.append(found)
        return None

    def give_back(self, shapes: Shapes, used: ArgumentList) -> None:
        """Say that the call is over and its results were taken."""
        self._free.setdefault(shapes, []).append(used)

    def passed(self, args: Sequence[Any]) -> None:
        """Say that arrays of such shapes passed the checks."""
        if all(type(a) is np.ndarray and a.nbytes < self._largest for a in args):
            shapes = tuple([a.shape for a in args])
            if shapes == self._last:
                if len(self._free) >= _MOST_SHAPES:
                    self._free = {}
                self._free.setdefault(shapes, [])
            self._last = shapes
