"""Numbers beside 16-bit floats: torch computes with them in f32, torch.onnx rounds them first.

A number that the tensor's type holds, rounded, is left as it is. One that becomes an infinity, 0 or
a subnormal number in it is not: 1e-3 * 1e6 is 1000 in torch, and infinite in an f16 graph.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

# numbers of other operators (add) are rounded by torch too, or change no result
OPERATORS = ("aten::div.Scalar", "aten::div.Tensor", "aten::mul.Scalar", "aten::mul.Tensor")


def is_beyond(target: Any, args: Sequence[Any]) -> bool:
    """Return whether a call has a number that its 16-bit floats cannot stand for."""
    if target.name() not in OPERATORS:
        return False
    numbers = [x for x in args if isinstance(x, int | float) and not isinstance(x, bool) and x]
    if not numbers:
        return False
    kind = _short_kind(args)
    return kind is not None and any(_is_lost(x, kind) for x in numbers)


def in_f32(target: Any) -> Callable[..., Any]:
    """Return a function that computes such calls in f32, and keeps others."""

    def compute(*args: Any) -> Any:
        if not is_beyond(target, args):
            return NotImplemented
        wide = importlib.import_module("torch").float32
        return target(*(_as(x, wide) for x in args)).to(_short_kind(args))

    return compute


def _short_kind(given: Iterable[Any]) -> Any:
    """Return the type of 16-bit floats that all float tensors have; None for other calls."""
    kinds = {kind for x in given if (kind := _kind(x)) is not None and kind.is_floating_point}
    kind = kinds.pop() if len(kinds) == 1 else None
    return kind if kind is not None and kind.itemsize == 2 else None


def _kind(x: Any) -> Any:
    """Return the type of a tensor, or of a node of a graph that is one; None of anything else."""
    value = x.meta.get("val") if hasattr(x, "meta") and hasattr(x, "op") else x
    return getattr(value, "dtype", None)


def _is_lost(number: float, kind: Any) -> bool:
    limits = importlib.import_module("torch").finfo(kind)
    size = abs(number)
    return not limits.smallest_normal <= size <= limits.max


def _as(x: Any, wide: Any) -> Any:
    kind = getattr(x, "dtype", None)
    return x.to(wide) if kind is not None and kind.is_floating_point else x
