"""The names of MIGraphX's API that are not there yet: each says what is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from mgx_mlir.core.errors import MgxError


def _missing(name: str, what: str, note: str = "") -> Callable[..., NoReturn]:
    def function(*_args: object, **_options: object) -> NoReturn:
        raise MgxError(f"{name} is not supported: {what}", notes=[note] if note else [])

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"MIGraphX's {name}. Raises MgxError: {what}."
    return function


_NO_QUANTIZE = "programs cannot be calibrated yet"

quantize_int8 = _missing("quantize_int8", _NO_QUANTIZE)
quantize_fp8 = _missing("quantize_fp8", _NO_QUANTIZE)
