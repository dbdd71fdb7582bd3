"""Arguments of calls that are used again: small inputs of fixed sizes are written into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from mgx_mlir.core.literals import aligned_empty
from mgx_mlir.runtime.buffers import span


class FixedPort(Protocol):
    """An input of a known size."""

    np: np.dtype[Any]
    static: tuple[int, ...] | None
    element_type: int


class ArgumentList:
    """The arguments of one call at a time, in memory of their own."""

    def __init__(self, hal: Any, ports: Sequence[FixedPort], kind: int, usage: int) -> None:
        import iree.runtime as rt

        self.arguments: Any = rt.VmVariantList(len(ports))
        self._arrays: list[tuple[np.ndarray, np.dtype[Any], tuple[int, ...]]] = []
        self.spans: list[tuple[int, int]] = []
        self._views: list[Any] = []
        for port in ports:
            assert port.static is not None
            own = aligned_empty(port.static, port.np)
            # the binding knows plain types alone
            raw = own.reshape(-1).view(np.uint8)
            buffer = hal.allocator.import_host_allocation(raw, kind, usage)
            view = rt.HalBufferView(buffer, port.static, port.element_type)
            self.arguments.push_ref(view)
            self._views.append(view)
            self._arrays.append((own, own.dtype, own.shape))
            self.spans.append(span(own))

    def write(self, args: Sequence[object]) -> bool:
        """Copy arrays to the arguments; False where one is not as the program wants it."""
        if len(args) != len(self._arrays):
            return False
        for (own, kind, shape), a in zip(self._arrays, args):  # noqa: B905  (checked above)
            if type(a) is not np.ndarray or a.dtype is not kind or a.shape != shape:
                return False
            own[...] = a
        return True
