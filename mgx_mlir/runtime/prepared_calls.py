"""Calls at known shapes: small inputs are copied into kept arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from mgx_mlir.core.literals import aligned_empty
from mgx_mlir.runtime.buffers import span

_BYTES = np.dtype(np.uint8)
_MOST_SHAPES = 16  # beyond this many shapes in rotation, arguments are made anew
COPY_BELOW = 1 << 12  # bytes; copying a smaller result costs less than holding its buffer
_LARGE = 1 << 16  # bytes; larger inputs are used in place where possible
Shapes = tuple[tuple[int, ...], ...]


class TypedPort(Protocol):
    """An input of a known type."""

    np: np.dtype[Any]
    itemsize: int
    element_type: int


def is_large(nbytes: int) -> bool:
    """Return whether an input is used in place when it can be, rather than copied."""
    return nbytes >= _LARGE


class PreparedCall:
    """The arguments of one call at a time.

    `entry`: the function. `own`: the memory of each input, None for a large one. `views`: the
    buffer view of each input, None for a large one. `arguments`: all views, None where an input is
    large. `spans`: the address ranges of the memory. `places`: start addresses of the last call's
    inputs, 0 for small ones; `placed`: arguments for inputs at these addresses, and all address
    ranges. They keep no array alive.
    """

    __slots__ = ("_raw", "arguments", "entry", "own", "placed", "places", "spans", "views")

    def __init__(
        self, hal: Any, entry: Any, ports: Sequence[TypedPort], shapes: Shapes, kind: int,
        usage: int,
    ) -> None:  # fmt: skip
        import iree.runtime as rt  # the runtime takes long to load, and only calls need it

        self.entry = entry
        self.own: list[np.ndarray | None] = []
        self.views: list[Any] = []
        self.spans: list[tuple[int, int]] = []
        self._raw: list[np.ndarray] = []
        for port, shape in zip(ports, shapes, strict=True):
            if is_large(math.prod(shape) * port.itemsize):
                self.own.append(None)
                self.views.append(None)
                continue
            own = aligned_empty(shape, port.np)
            # the binding knows numpy's types only, and no empty buffers
            raw = own.reshape(-1).view(np.uint8) if own.size else aligned_empty((64,), _BYTES)
            buffer = hal.allocator.import_host_allocation(raw, kind, usage)
            self.own.append(own)
            self.views.append(rt.HalBufferView(buffer, shape, port.element_type))
            self.spans.append(span(own))
            self._raw.append(raw)
        self.places: tuple[int, ...] = ()
        self.placed: tuple[Any, list[tuple[int, int]]] | None = None
        self.arguments: Any = None
        if all(own is not None for own in self.own):
            self.arguments = rt.VmVariantList(len(self.views))
            for view in self.views:
                self.arguments.push_ref(view)


class PreparedCalls:
    """The idle prepared calls, for shapes that came twice in a row.

    make: prepares a call at shapes that passed the checks of the inputs.
    """

    def __init__(self, ports: Sequence[TypedPort], make: Callable[[Shapes], PreparedCall]) -> None:
        self._types = [p.np for p in ports]
        self._make = make
        self._free: dict[Shapes, list[PreparedCall]] = {}
        self._last: Shapes | None = None

    def shapes_of(self, args: Sequence[Any]) -> Shapes | None:
        """Return the shapes of arrays of the inputs' types, None for anything else."""
        if len(args) != len(self._types):
            return None
        for a, kind in zip(args, self._types):  # noqa: B905  (as many)
            if type(a) is not np.ndarray or a.dtype is not kind:
                return None
        return tuple([a.shape for a in args])

    def take(self, shapes: Shapes) -> PreparedCall | None:
        """Return a call for arrays of the inputs' types, to be returned by `give_back`; None
        for shapes that do not recur.
        """
        free = self._free.get(shapes)
        if free is None:
            return None
        try:
            return free.pop()
        except IndexError:
            return self._make(shapes)

    def free_at(self, shapes: Shapes) -> list[PreparedCall] | None:
        """Return the idle calls at shapes, a list to pop from and append to."""
        return self._free.get(shapes)

    def give_back(self, shapes: Shapes, used: PreparedCall) -> None:
        """Return a call whose results were taken."""
        free = self._free.get(shapes)
        if free is not None:
            free.append(used)

    def passed(self, shapes: Shapes | None) -> None:
        """Record that arrays of the inputs' types and these shapes passed the checks."""
        if shapes is not None and shapes == self._last:
            if len(self._free) >= _MOST_SHAPES:
                self._free = {}
            self._free.setdefault(shapes, [])
        self._last = shapes
