"""The error of a run with wrong sizes, parsed from the compiled code's assertion."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from mgx_mlir.core.errors import RunError
from mgx_mlir.runtime.device_memory import DeviceTensor
from mgx_mlir.runtime.entries import Entry

# an assertion's message: expectation, dims of inputs that it depends on ("0.1"), inputs whose
# values it depends on ("0"), location
_ASSERTION = re.compile(r"mgx: (.*?)\|([\d.,]*)\|(.*?)\|", re.DOTALL)
_MOST = 8  # elements of an input that a message shows


def refusal(entry: Entry, args: Sequence[np.ndarray | DeviceTensor], text: str) -> RunError | None:
    """Return the error of a run with wrong sizes, None for another failure."""
    found = _ASSERTION.search(text)
    if found is None:
        return None
    expected, dims, where = found.groups()
    names = [port.label for port in entry.inputs]
    shapes = [a.dims if isinstance(a, DeviceTensor) else np.shape(a) for a in args]
    parts: list[str] = []
    for place in filter(None, dims.split(",")):
        i, _, axis = place.partition(".")
        arg = args[int(i)]
        if axis:
            parts.append(f"{shapes[int(i)][int(axis)]} for dim {axis} of {names[int(i)]}")
        elif isinstance(arg, np.ndarray) and 0 < arg.size <= _MOST:
            parts.append(f"{arg.tolist()} for {names[int(i)]}")
    got = ", ".join(parts)
    expected = re.sub(r"\$(\d+)\$", lambda m: names[int(m[1])], expected)
    return RunError(expected + (f", got {got}" if got else ""), location=where or None)
