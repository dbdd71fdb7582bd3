"""Tensors of torch as arrays, and arrays as tensors; nothing is copied that lies without gaps."""

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

# types that numpy lacks cross as integers of the same size
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
    """Return a tensor's memory as an array; a copy of one with gaps, or of another device."""
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
    """Return whether numpy lacks a type, whose tensors cross as integers."""
    return kind in _BACK


@functools.cache
def dtype_of(kind: torch.dtype) -> DType:
    """Return the element type of a torch type. RunError for types that no program has."""
    if kind in _AS:
        return dtypes.from_numpy(_AS[kind][1])
    try:
        return dtypes.from_numpy(torch.empty(0, dtype=kind).numpy().dtype)
    except Exception:
        raise RunError(f"expected numbers of a type that programs have, got {kind}") from None


def device_tensors_of(device: Device, tensors: Sequence[Any]) -> list[DeviceTensor]:
    """Take tensors in a device's memory, without a copy where they lie without gaps.

    Their values are there: what the caller's current stream was asked to do is waited for. Copies
    of those with gaps are asked of that stream, ahead of the wait. What is given back by this call
    may be read by that stream behind it (`note_reader`).
    """
    packed = [t.detach().contiguous() for t in tensors]
    for t in packed:
        refuse_other(device, (device.api.dlpack, t.get_device()))
    stream = torch.cuda.current_stream(device.index).cuda_stream
    stream_synchronize(device, stream)
    note_reader(device, stream)
    # `__dlpack__` would order streams once more, in Python
    return [from_capsule(device, to_dlpack(t), dtype_of(t.dtype)) for t in packed]
