"""Conversion between tensors and arrays; contiguous data is not copied."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import torch
from torch.utils.dlpack import to_dlpack

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import RunError
from mgx_mlir.runtime.device import Device
from mgx_mlir.runtime.device_memory import DeviceTensor, from_capsule, refuse_other
from mgx_mlir.runtime.gpu_calls import stream_synchronize
from mgx_mlir.runtime.gpu_streams import note_reader

# tensors of types that numpy lacks pass as integers of the same size
_AS: dict[torch.dtype, tuple[torch.dtype, np.dtype[Any]]] = {
    torch.bfloat16: (torch.int16, np.dtype(ml_dtypes.bfloat16)),
    torch.float8_e4m3fn: (torch.uint8, np.dtype(ml_dtypes.float8_e4m3fn)),
    torch.float8_e4m3fnuz: (torch.uint8, np.dtype(ml_dtypes.float8_e4m3fnuz)),
    torch.float8_e5m2: (torch.uint8, np.dtype(ml_dtypes.float8_e5m2)),
    torch.float8_e5m2fnuz: (torch.uint8, np.dtype(ml_dtypes.float8_e5m2fnuz)),
}
_BACK = {kind: (np.dtype(f"u{kind.itemsize}" if kind.itemsize == 1 else "i2"), t)
         for t, (_, kind) in _AS.items()}  # fmt: skip


def array_of(t: torch.Tensor) -> np.ndarray:
    """Return a tensor's memory as an array; copy if it has gaps, or is on another device."""
    if t.requires_grad:
        t = t.detach()
    if not t.is_contiguous():
        t = t.contiguous()
    through = _AS.get(t.dtype)
    if through is None:
        try:
            return t.numpy()
        except (TypeError, RuntimeError):
            return t.cpu().resolve_conj().resolve_neg().numpy()
    return t.cpu().view(through[0]).numpy().view(through[1])


def tensor_of(a: np.ndarray) -> torch.Tensor:
    """Return an array's memory as a tensor, which keeps the array alive."""
    through = _BACK.get(a.dtype)
    if through is None:
        return torch.from_numpy(a)
    return torch.from_numpy(a.view(through[0])).view(through[1])


def crosses_as_integers(kind: np.dtype[Any]) -> bool:
    """Return whether numpy lacks a type, so that its tensors pass as integers."""
    return kind in _BACK


@functools.cache
def dtype_of(kind: torch.dtype) -> DType:
    """Return the element type for a torch type. RunError for types that programs lack."""
    if kind in _AS:
        return dtypes.from_numpy(_AS[kind][1])
    try:
        return dtypes.from_numpy(torch.empty(0, dtype=kind).numpy().dtype)
    except Exception:
        raise RunError(f"expected numbers of a type that programs have, got {kind}") from None


def device_tensors_of(device: Device, tensors: Sequence[Any]) -> list[DeviceTensor]:
    """Take tensors in a device's memory; contiguous ones without a copy.

    The function waits for the caller's current stream, so that the values are complete. Copies of
    tensors with gaps are launched on that stream before the wait. That stream may read the returned
    tensors after the call (`note_reader`).
    """
    packed = [t.detach().contiguous() for t in tensors]
    for t in packed:
        refuse_other(device, (device.api.dlpack, t.get_device()))
    stream = torch.cuda.current_stream(device.index).cuda_stream
    stream_synchronize(device, stream)
    note_reader(device, stream)
    # `__dlpack__` would synchronize streams once more, in Python
    return [from_capsule(device, to_dlpack(t), dtype_of(t.dtype)) for t in packed]
