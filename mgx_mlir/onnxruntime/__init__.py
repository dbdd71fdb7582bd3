"""onnxruntime's Python API: `import mgx_mlir.onnxruntime as ort`. See docs/onnxruntime.md."""

from typing import Any

from mgx_mlir import __version__
from mgx_mlir.integrations.onnxruntime import public as _public
from mgx_mlir.integrations.onnxruntime.public import *  # noqa: F403
from mgx_mlir.onnxruntime import capi

__all__ = ["__version__", "capi", *_public.__all__, *_public.REFUSALS]


def __getattr__(name: str) -> Any:
    found = _public.REFUSALS.get(name)
    if found is None:
        raise AttributeError(f"module 'mgx_mlir.onnxruntime' has no attribute '{name}'")
    return found
