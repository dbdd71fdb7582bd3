"""The caller's memory: pointers as inputs, and buffers for the results of a call.

A program that is compiled with `offload_copy=False` has a parameter `main:#output_N` for each
result, as MIGraphX's have. Here they may be left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mgx_mlir.api.argument import argument, array_of
from mgx_mlir.api.device import is_on_gpu, shared
from mgx_mlir.api.shape import shape
from mgx_mlir.compiler.given_outputs import caches_of, is_same
from mgx_mlir.core.errors import MgxError, RunError, UsageError
from mgx_mlir.programs.layout import AnyShape, Shape
from mgx_mlir.programs.signature import Port, Signature
from mgx_mlir.runtime import gpu_calls
from mgx_mlir.runtime.device import Device
from mgx_mlir.runtime.device_memory import DeviceTensor, at_address

_NAME = re.compile(r"main:#output_(\d+)")


def output_parameters(signature: Signature) -> list[str]:
    """Return the names of a program's parameters for results, in the order of the results."""
    return [f"main:#output_{i}" for i in range(len(signature.outputs))]


def parted(
    given: Mapping[str, Any], signature: Signature, device: Callable[[], Device | None]
) -> tuple[dict[str, Any], dict[int, argument]]:
    """Split a call's arguments into inputs, and result buffers by the number of their result.

    device: the GPU that the program runs on, None for a CPU. Errors: RunError for a buffer without
    a result, or without memory.
    """
    inputs: dict[str, Any] = {}
    buffers: dict[int, argument] = {}
    known = set(signature.input_names)
    for name, value in given.items():
        match = _NAME.fullmatch(name)
        if match is None or name in known:
            inputs[name] = value
            continue
        number = int(match[1])
        if number >= len(signature.outputs):
            raise RunError(
                f"{name}: expected a number below {len(signature.outputs)}, "
                f"the program has no such result"
            )
        if is_on_gpu(value):
            here = device()
            if here is not None:
                value = argument.on_device(shared(here, value))
        buffers[number] = _buffer(name, value, signature.outputs[number])
    return inputs, buffers


def _buffer(name: str, value: object, port: Port) -> argument:
    """Return a caller's buffer as an argument. Static dims are checked now, dynamic ones after the
    call.
    """
    if not isinstance(value, argument):
        if isinstance(value, bool | int | float | list | tuple):
            raise RunError(f"{name}: expected an argument or array, got {type(value).__name__}")
        try:
            value = argument.of_array(array_of(value))
        except MgxError as e:
            raise RunError(f"{name}: {e.message}") from None
    if value.get_sub_objects():
        raise RunError(f"{name}: expected a tensor, got a tuple")
    own = value.get_shape().core
    _check(name, own.dtype.name, own.dims, port.dtype, port.dims)
    return value


def _check(
    name: str, dtype: str, dims: Sequence[Any], wanted: str, wanted_dims: Sequence[int]
) -> None:
    """Raise RunError unless a buffer is for a result; -1 takes any extent, {1} is a scalar too."""
    fits = len(dims) == len(wanted_dims) and all(
        w in (-1, d) for d, w in zip(dims, wanted_dims, strict=True)
    )
    scalar = tuple(wanted_dims) == () and tuple(dims) == (1,)
    if dtype != wanted or not (fits or scalar):
        text = ", ".join("?" if d < 0 else str(d) for d in wanted_dims)
        got = ", ".join(map(str, dims))
        raise RunError(f"{name}: expected {wanted}, {{{text}}}, got {dtype}, {{{got}}}")


def standard(found: AnyShape) -> shape:
    """Return the shape of a result, which a run writes row-major; a scalar stays one."""
    if not isinstance(found, Shape) or found.is_dynamic or found.is_scalar:
        return shape.of(found)
    return shape.of(Shape.standard(found.dtype, found.dims))


def in_order(result: np.ndarray) -> np.ndarray:
    """Return a result row-major; a scalar stays one."""
    return np.ascontiguousarray(result) if result.ndim else result


def plain(value: object) -> object:
    """Return the array of an argument in host memory; anything else as it is."""
    if type(value) is argument and value._tensor is None and value.pointer is None:
        return value._array
    return value


def values_of(params: Mapping[str, Any], device: Device | None) -> dict[str, Any]:
    """Return inputs as arrays and tensors of a device; Python's numbers and lists as they are.

    A tensor of another library that is in the device's memory is taken without a copy.
    """
    if not isinstance(params, Mapping):
        raise UsageError(
            f"expected inputs by name, a dict, got {type(params).__name__}",
            notes=["get_parameter_names() lists the names"],
        )
    return {name: _value(name, value, device) for name, value in params.items()}


def _value(name: str, value: Any, device: Device | None) -> Any:
    if isinstance(value, argument) and (value.pointer or value.device_tensor):
        return placed(name, value, device)
    if isinstance(value, bool | int | float | list | tuple):
        return value
    if device is not None and is_on_gpu(value):
        return shared(device, value)
    try:
        return array_of(value)
    except MgxError:
        return value


def bound_weights(
    given: Mapping[str, Any], shapes: Mapping[str, shape], device: Device | None
) -> dict[str, Any]:
    """Return values for parameters in the form that calls take; for a GPU, copied to it once.

    Errors: RunError for a name that is no parameter, and a wrong type or dims.
    """
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name not in shapes:
            raise RunError(
                f"the program has no parameter '{name}'", notes=[f"it has: {', '.join(shapes)}"]
            )
        arg = value if isinstance(value, argument) else argument(array_of(value))
        s, own = shapes[name].core, arg.get_shape().core
        _check(name, own.dtype.name, own.dims, s.dtype.name,
               [d if isinstance(d, int) else -1 for d in s.dims])  # fmt: skip
        held = placed(name, arg, device)
        if device is not None and isinstance(held, np.ndarray):
            held = DeviceTensor.of(device, held)
        if isinstance(held, DeviceTensor):
            found[name] = argument.on_device(held)
        else:
            found[name] = argument.of_array(held)
    return found


def placed(name: str, arg: argument, device: Device | None) -> Any:
    """Return an argument's data: a tensor of `device`, or an array in host memory.

    A pointer is the device's memory where the device knows the address. `device` None: the program
    runs on a CPU. Errors: RunError for memory that is too short, or that cannot be read.
    """
    if arg.device_tensor is not None:
        return arg.device_tensor
    if arg.pointer is None:
        return arg.array
    address, s = arg.pointer
    room = 0 if device is None or not address else gpu_calls.allocation_bytes_from(device, address)
    if device is None or not room:
        try:
            return arg.array
        except MgxError as e:
            raise RunError(f"{name}: {e.message}", notes=e.notes) from None
    needed = s.element_space * s.dtype.size
    if needed > room:
        raise RunError(f"{name}: expected {needed} bytes of {device} at {address:#x}, got {room}")
    if not s.is_standard:
        raise RunError(f"{name}: expected row-major memory without gaps, got {s}")
    return at_address(device, address, s.dtype, s.lens if s.dims else ())


class Destinations:
    """Result buffers by the number of their result, in the memory of the program's target.

    Errors: RunError for a buffer in other memory, before anything runs.
    """

    def __init__(self, buffers: Mapping[int, argument], device: Device | None) -> None:
        self._given, self._device = buffers, device
        self._places: dict[int, Any] = {}
        for number, arg in buffers.items():
            name = f"main:#output_{number}"
            found = placed(name, arg, device)
            if device is None:
                self._places[number] = _host(name, found)
                continue
            if not isinstance(found, DeviceTensor):
                raise RunError(
                    f"{name}: expected memory of {device}, got host memory",
                    notes=["allocate_gpu makes it; argument_from_pointer takes a device's pointer"],
                )
            if found.device is not device:
                raise RunError(f"{name}: expected memory of {device}, got {found.device}")
            self._places[number] = found

    def caches(self, inputs: Sequence[np.ndarray], signature: Signature) -> dict[int, np.ndarray]:
        """Return the memory of results that alias inputs, by their number."""
        given = [self._places.get(k) for k in range(len(signature.outputs))]
        return caches_of(given, inputs, signature.in_place)

    def hold_caches(self, inputs: Sequence[Any], signature: Signature) -> bool:
        """Return whether each result that can update an input is given that input's memory.

        inputs: all in the device's memory. Where another input shares some of it, nothing is in
        place.
        """
        places = [(self._places.get(k), inputs[i]) for i, k in signature.in_place]
        if not places or any(
            to is None or to.address() != cache.address() or not cache.nbytes
            for to, cache in places
        ):
            return False
        spans = sorted((t.address(), t.address() + t.nbytes) for t in inputs if t.nbytes)
        return all(end <= begin for (_, end), (begin, _) in pairwise(spans))

    def take(self, results: Sequence[argument]) -> list[argument]:
        """Write results to their buffers; return those buffers instead of the results."""
        found = list(results)
        for number, place in self._places.items():
            result, name = found[number], f"main:#output_{number}"
            s, own = result.get_shape().core, self._given[number].get_shape().core
            _check(
                name,
                own.dtype.name,
                own.dims,
                s.dtype.name,
                [d if isinstance(d, int) else -1 for d in s.dims],
            )
            if isinstance(place, DeviceTensor):
                tensor = result.device_tensor
                assert tensor is not None
                if place.address() != tensor.address():
                    source, size = tensor.address(), tensor.nbytes
                    gpu_calls.copy(place.device, place.address(), source, size)
            elif not is_same(place, result.array):
                np.copyto(place, result.array.reshape(place.shape))
            found[number] = self._given[number]
        if self._device is not None and self._places:
            gpu_calls.device_synchronize(self._device)
        return found


def _host(name: str, found: Any) -> np.ndarray:
    """Return a buffer as an array that can be written."""
    if isinstance(found, DeviceTensor):
        raise RunError(f"{name}: expected host memory, got a device's")
    if not found.flags.writeable:
        raise RunError(f"{name}: expected memory that can be written, got read-only memory")
    return found
