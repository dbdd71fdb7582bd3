"""The names of MIGraphX's API that are not there yet: each says what is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from mgx_mlir.core.errors import MgxError


def _missing(name: str, what: str, note: str = "") -> Callable[..., NoReturn]:
    def function(*_args: Any, **_options: Any) -> NoReturn:
        raise MgxError(f"{name} is not supported: {what}", notes=[note] if note else [])

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"MIGraphX's {name}. Raises MgxError: {what}."
    return function


_NO_QUANTIZE = "programs cannot be calibrated yet"
_NO_DEVICE = "arguments live in host memory, device memory cannot be held"
_COPIES = "run copies to and from the device by itself"

quantize_int8 = _missing("quantize_int8", _NO_QUANTIZE)
quantize_fp8 = _missing("quantize_fp8", _NO_QUANTIZE)
allocate_gpu = _missing("allocate_gpu", _NO_DEVICE, _COPIES)
to_gpu = _missing("to_gpu", _NO_DEVICE, _COPIES)
from_gpu = _missing("from_gpu", _NO_DEVICE, _COPIES)
gpu_sync = _missing("gpu_sync", _NO_DEVICE, _COPIES)
