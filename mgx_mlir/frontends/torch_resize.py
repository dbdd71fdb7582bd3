"""Decomposed torch resizes by scales for which f32 and f64 sizes may differ."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

_STEPS = 256  # multiples of 1 / 256 times sizes up to 65,536 are exact in f32


def _resized(name: str) -> Callable[..., Any]:
    def resized(x: Any, size: Any, *rest: Any) -> Any:
        """Return a resize by factors; NotImplemented if torch.onnx's has the same size."""
        if rest[-1] is None or _exact(x.shape[2:], rest[-1]):
            return NotImplemented
        *options, factors = rest
        to_size = importlib.import_module("torch").sym_int
        size = [to_size(n * s) for n, s in zip(x.shape[2:], factors, strict=True)]
        table = importlib.import_module("torch._decomp").decomposition_table
        return table[_operator(name)](x, size, *options, *factors)

    return resized


nearest1d = _resized("upsample_nearest1d")
nearest2d = _resized("upsample_nearest2d")
nearest3d = _resized("upsample_nearest3d")
bilinear2d = _resized("upsample_bilinear2d")
trilinear3d = _resized("upsample_trilinear3d")
bicubic2d = _resized("upsample_bicubic2d")


def _exact(sizes: Iterable[Any], scales: Iterable[float]) -> bool:
    """Return whether ONNX's Resize, which multiplies in f32, gives torch's sizes."""
    return all(
        int(n * s) == int(np.float32(n) * np.float32(s))
        if isinstance(n, int)
        else (s * _STEPS).is_integer()
        for n, s in zip(sizes, scales, strict=True)
    )


def _operator(name: str) -> Any:
    return getattr(importlib.import_module("torch").ops.aten, name).default
