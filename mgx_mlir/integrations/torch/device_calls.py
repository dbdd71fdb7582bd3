"""Calls of a GPU's programs with tensors: results stay there, ordered on the caller's stream.

A call that was recorded as a HIP graph is asynchronous. It is launched on the current stream,
between copies from the tensors' memory and to that of new ones. Other calls are synchronous.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.dlpack import from_dlpack

from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import RunError
from mgx_mlir.integrations.torch.memory import array_of, device_tensors_of, tensor_of
from mgx_mlir.runtime.buffers import address
from mgx_mlir.runtime.device import forget
from mgx_mlir.runtime.graphs import GraphModule, Replay

Run = Callable[[Sequence[Any]], list[Any]]
_MOST_SHAPES = 64
Shapes = tuple[tuple[int, ...], ...]


def device_runner(made: IreeProgram) -> Run:
    """Return the function that runs a program on tensors, or numbers, in the order of its inputs.

    Results are in the GPU's memory if one of the inputs is. Errors: RunError, SizesRefused.
    """
    known: dict[Shapes, Callable[[Sequence[Any]], list[Any] | None]] = {}
    signature, tensor = made.signature, torch.Tensor
    check = signature.check_sizes if any(r.reads_values for r in signature.sizes) else None

    def run(given: Sequence[Any]) -> list[Any]:
        shapes = tuple([t.shape if isinstance(t, tensor) else () for t in given])
        call = known.get(shapes)
        if call is not None:
            if check is not None:
                check(given)
            found = call(given)
            if found is not None:
                return found
            known.pop(shapes, None)
        signature.check_sizes(given)
        module: Any = made.load()
        if isinstance(module, GraphModule):
            recorded = module.recorded(_arguments(module.device, given))
            if recorded is not None:
                call = _prepared(made, module, recorded)
                found = call(given)
                if found is not None:
                    if len(known) >= _MOST_SHAPES:
                        known.clear()
                    known[shapes] = call
                    return found
        return _launched(module, given)

    return run


def _is_there(t: Any) -> bool:
    return isinstance(t, torch.Tensor) and t.is_cuda


def _arguments(device: Any, given: Sequence[Any]) -> list[Any]:
    """Return inputs as arrays and as tensors of the device, whose values are complete."""
    there = [t for t in given if _is_there(t)]
    held = iter(device_tensors_of(device, there) if there else ())
    return [
        next(held)
        if _is_there(t)
        else array_of(t)
        if isinstance(t, torch.Tensor)
        else np.asarray(t, np.int64)
        for t in given
    ]


def _launched(module: Any, given: Sequence[Any]) -> list[Any]:
    """Make a synchronous call."""
    inputs = _arguments(module.device, given)
    if not any(map(_is_there, given)):
        return [tensor_of(a) for a in module.run(inputs)]
    return [from_dlpack(r.dlpack()) for r in module.run_on_device(inputs)]


def _prepared(
    made: IreeProgram, module: GraphModule, recorded: Replay
) -> Callable[[Sequence[Any]], list[Any] | None]:
    """Return the function of a recorded call: None for inputs of another form."""
    index, is_lost = module.device.index, type(module.device).is_lost.__get__
    tensor, empty, int64 = torch.Tensor, torch.empty, np.int64
    kinds = [_kind_of(p.dtype) for p in module.inputs]
    results = [
        (dims, _kind_of(p.dtype)) for p, dims in zip(module.outputs, recorded.dims, strict=True)
    ]
    there, here = torch.device("cuda", index), torch.device("cpu")
    stream_of = _current_stream(index)
    lock, launch, device = recorded.lock, recorded.launch, module.device

    def call(given: Sequence[Any]) -> list[Any] | None:
        if recorded.is_dropped or is_lost(device):
            return None
        sources, held = [], []
        is_there = has_host = False
        for t, kind in zip(given, kinds):  # noqa: B905  (as many)
            if not isinstance(t, tensor):
                a = np.asarray(t, int64)
                held.append(a)
                sources.append(address(a))
                continue
            if t.dtype is not kind:
                return None
            if not t.is_contiguous() or t.is_neg():
                t = t.contiguous().resolve_neg()
                held.append(t)
            if t.get_device() == index:
                is_there = True
            elif t.is_cpu:
                has_host = True  # page-locked memory is read after the call returns
            else:
                return None
            sources.append(t.data_ptr())
        stream = stream_of() if is_there else module.stream
        place = there if is_there else here
        found = [empty(dims, dtype=kind, device=place) for dims, kind in results]
        with lock:
            if recorded.is_dropped:
                return None
            try:
                launch(
                    sources, [t.data_ptr() for t in found], stream, wait=has_host or not is_there
                )
            except RunError as e:
                forget(module.recorded_on, e)
                raise
        return found

    return call


def _current_stream(index: int) -> Callable[[], int]:
    """Return a function that gives the address of a device's current stream."""
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is not None:  # a tenth of the time that an object for the stream takes
        return lambda: raw(index)
    return lambda: torch.cuda.current_stream(index).cuda_stream


def _kind_of(dtype: dtypes.DType) -> torch.dtype:
    return tensor_of(np.empty(0, dtype.np)).dtype
