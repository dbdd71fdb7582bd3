"""Calls of a GPU program that write new rows to caches where these are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from mgx_mlir.core.errors import RunError
from mgx_mlir.runtime.device import Device
from mgx_mlir.runtime.device_memory import DeviceTensor
from mgx_mlir.runtime.entries import Choice, Entry, ForSizes
from mgx_mlir.runtime.gpu_inputs import FromHost, Inputs
from mgx_mlir.runtime.gpu_streams import Copies

Args = Sequence[np.ndarray | DeviceTensor]


class Calls(Protocol):
    """The part of a LoadedModule that makes calls."""

    device: Device
    from_host: FromHost | None

    def invoke(
        self, args: Args, imported: None, inputs: Inputs | None = None, entry: Entry | None = None
    ) -> tuple[Entry, Any]:
        """Check and make a call; return the function and its results."""
        ...

    def on_device(self, entry: Entry, results: Any) -> list[DeviceTensor]:
        """Return a call's results as tensors in the memory of the device."""
        ...


class Updates:
    """Functions that update caches, one of them for each size.

    caches: the number of the result that has the new rows, by the number of the cache's input.
    Errors of calls: those of `invoke`, and RunError for a cache in host memory. A call that fails
    may have written rows.
    """

    def __init__(self, calls: Calls, main: Entry, caches: Mapping[int, int]) -> None:
        self._calls, self.caches = calls, dict(caches)
        self._choice = Choice(main)
        self._in_place = set[str]()  # functions whose caches are known to need no copies

    def add(self, variant: ForSizes, entry: Entry) -> None:
        """Use a function at the sizes of a variant."""
        self._choice.add(variant, entry)

    def function_for(self, args: Args) -> str:
        """Return the function for the sizes of `args`."""
        return self._choice.at(_sizes(args))[0]

    def is_in_place(self, function: str) -> bool:
        """Return whether a call of a function has shown that it copies no cache."""
        return function in self._in_place

    def run(self, args: Args) -> list[np.ndarray]:
        """Write new rows to the caches among `args`, which are DeviceTensors; return the other
        results in host memory.
        """
        assert self._calls.from_host is not None
        return self._calls.from_host.run(self._made, args, kept=self.caches.values())

    def on_device(self, args: Args) -> list[DeviceTensor]:
        """Write new rows as `run` does; return all results in the memory of the device."""
        return self._calls.on_device(*self._made(args, None))

    def _made(self, args: Args, imported: None, inputs: Inputs | None = None) -> tuple[Entry, Any]:
        name, entry = self._choice.at(_sizes(args))
        device = self._calls.device
        for i in self.caches:
            if not isinstance(args[i], DeviceTensor):
                raise RunError(f"{entry.inputs[i].label} expected memory of {device}")
        entry, results = self._calls.invoke(args, imported, inputs, entry)
        if name in self._in_place:
            return entry, results
        copies, found = Copies(device), self._calls.on_device(entry, results)
        for i, k in self.caches.items():
            cache = args[i]
            # without our kernel boundaries IREE copies a cache
            if isinstance(cache, DeviceTensor) and cache.address() != found[k].address():
                copies.within(cache.address(), found[k].address(), cache.nbytes)
        if not copies:
            self._in_place.add(name)
        copies.finish()
        return entry, results


def _sizes(args: Args) -> list[tuple[int, ...]]:
    return [a.dims if isinstance(a, DeviceTensor) else a.shape for a in args]
