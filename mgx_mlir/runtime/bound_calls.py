"""A repeated call on the same caches, which are updated in place.

Arguments of arrays that stay are made once; else a call with 60 caches costs 1.3 ms of Python.
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

    args: all inputs in order, C-contiguous, writable, aligned as `aligned_empty` makes them; None
    for an input that each call gives. caches: for a result's number, the input whose memory it
    uses. check: raises RunError for input values that the code cannot take. Raises RunError for
    wrong arrays.
    """

    def __init__(
        self,
        module: LoadedModule,
        args: Sequence[np.ndarray | None],
        caches: Mapping[int, np.ndarray],
        check: Check | None,
    ) -> None:
        entry = module.updating
        if entry is None:
            raise RunError("the program has no function that updates caches in place")
        self._module, self._entry = module, entry
        self._caches, self._check = dict(caches), check
        self._outputs = [i for i in range(len(entry.outputs)) if i not in self._caches]
        self._held: list[tuple[np.ndarray, Any] | None] = []  # arrays that stay, and their views
        for port, a in zip(entry.inputs, args, strict=True):
            if a is None:
                self._held.append(None)
                continue
            port.check(a)
            if not (a.flags.carray and a.size) or address(a) % module.input_alignment:
                raise RunError(f"{port.label} expected an aligned array without gaps")
            self._held.append((a, module.view_of(port, a)))
        # arrays and arguments of calls whose inputs all stay
        self._always = self._complete(()) if all(a is not None for a in args) else None
        self._is_proven = False

    def _complete(self, given: Sequence[np.ndarray]) -> tuple[list[np.ndarray], Any]:
        """Return all inputs and the arguments of a call, and check values."""
        rest, module = iter(given), self._module
        args = [next(rest) if held is None else held[0] for held in self._held]
        if self._check is not None and given:
            self._check(args)
        arguments = module.list_type(len(args))
        for port, held, a in zip(self._entry.inputs, self._held, args, strict=True):
            if held is None:
                module.push(arguments, port, a, None)
            else:
                arguments.push_ref(held[1])
        return args, arguments

    def __call__(self, given: Sequence[np.ndarray] = ()) -> list[np.ndarray]:
        """Run on the arrays' current content; return the results that are not caches, in order.

        given: the inputs that `args` does not have, in order.
        """
        module = self._module
        module.device.check()
        if self._always is None:
            args, arguments = self._complete(given)
        else:
            args, arguments = self._always
            if self._check is not None:
                self._check(args)
        results = module.call(self._entry, arguments, args)
        if not self._is_proven:
            self._prove(results)
        found: list[np.ndarray] = []
        for i in self._outputs:
            view, port = results.get_as_object(i, module.view_type), self._entry.outputs[i]
            shape = tuple(view.shape)
            # the mapping is the array's base, and holds the buffer
            empty = 0 in shape
            found.append(np.empty(shape, port.np) if empty else
                         np.ndarray(shape, port.np, view.map()))  # fmt: skip
        return found

    def _prove(self, results: Any) -> None:
        """Check once that each cache's result is in its input's memory. Raises RunError."""
        for i, cache in self._caches.items():
            view = results.get_as_object(i, self._module.view_type)
            array = np.ndarray(tuple(view.shape), cache.dtype, view.map())
            if address(array) != address(cache) or array.shape != cache.shape:
                raise RunError(f"result {i} is not in the memory of its input")
        self._is_proven = True
