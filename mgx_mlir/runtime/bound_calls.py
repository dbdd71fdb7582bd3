"""A repeated call on the same arrays, with caches that are updated in place.

Arguments are made once; else a step of a decoder with 60 caches costs 1.3 ms of Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mgx_mlir.core.errors import RunError
from mgx_mlir.runtime.buffers import address

if TYPE_CHECKING:
    from mgx_mlir.runtime.iree_runtime import LoadedModule

Check = Callable[[Sequence[np.ndarray]], None]


class BoundCall:
    """A call of the function that updates caches, on arrays whose content may change.

    args: all inputs in order, C-contiguous, writable, aligned as `aligned_empty` makes them.
    caches: for a result's number, the input whose memory it uses. check: raises RunError for input
    values that the code cannot take. Raises RunError for wrong arrays.
    """

    def __init__(
        self,
        module: LoadedModule,
        args: Sequence[np.ndarray],
        caches: Mapping[int, np.ndarray],
        check: Check | None,
    ) -> None:
        entry = module.updating
        if entry is None:
            raise RunError("the program has no function that updates caches in place")
        self._module, self._entry, self._args = module, entry, list(args)
        self._caches, self._check = dict(caches), check
        self._outputs = [i for i in range(len(entry.outputs)) if i not in self._caches]
        self._arguments = module.list_type(len(args))
        for port, a in zip(entry.inputs, args, strict=True):
            port.check(a)
            if not (a.flags.carray and a.size) or address(a) % module.input_alignment:
                raise RunError(f"{port.label} expected an aligned array without gaps")
            self._arguments.push_ref(module.view_of(port, a))
        self._is_proven = False

    def __call__(self) -> list[np.ndarray]:
        """Run on the arrays' current content; return the results that are not caches, in order."""
        module = self._module
        module.device.check()
        if self._check is not None:
            self._check(self._args)
        results = module.call(self._entry, self._arguments, self._args)
        if not self._is_proven:
            self._prove(results)
        found = []
        for i in self._outputs:
            view, port = results.get_as_object(i, module.view_type), self._entry.outputs[i]
            # the mapping is the array's base, and holds the buffer
            found.append(np.ndarray(tuple(view.shape), port.np, view.map()))
        return found

    def _prove(self, results: Any) -> None:
        """Check once that each cache's result is in its input's memory. Raises RunError."""
        for i, cache in self._caches.items():
            view = results.get_as_object(i, self._module.view_type)
            array = np.ndarray(tuple(view.shape), cache.dtype, view.map())
            if address(array) != address(cache) or array.shape != cache.shape:
                raise RunError(f"result {i} is not in the memory of its input")
        self._is_proven = True
