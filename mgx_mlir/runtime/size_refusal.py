"""The error of a run whose sizes do not fit, read from what the compiled code says."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from mgx_mlir.core.errors import RunError
from mgx_mlir.runtime.device_memory import DeviceTensor
from mgx_mlir.runtime.entries import Entry

# what the lowering has a run say whose sizes do not fit: what was expected, the dims of inputs
# that it comes from, and where
_ASSERTION = re.compile(r"mgx: (.*?)\|([\d.,]*)\|(.*?)\|", re.DOTALL)
_PLACE = re.compile(r"(\d+)\.(\d+)")


def refusal(entry: Entry, args: Sequence[np.ndarray | DeviceTensor], text: str) -> RunError | None:
    """Return the error of a run whose sizes do not fit, None for another one."""
    found = _ASSERTION.search(text)
    if found is None:
        return None
    expected, dims, where = found.groups()
    names = [port.label for port in entry.inputs]
    shapes = [a.dims if isinstance(a, DeviceTensor) else np.shape(a) for a in args]
    places = [(int(i), int(axis)) for i, axis in _PLACE.findall(dims)]
    got = ", ".join(f"{shapes[i][axis]} for dim {axis} of {names[i]}" for i, axis in places)
    expected = re.sub(r"\$(\d+)\$", lambda m: names[int(m[1])], expected)
    return RunError(expected + (f", got {got}" if got else ""), location=where or None)
