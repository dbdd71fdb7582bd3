"""Runs of compiled code on host arrays and tensors of a device, for `program.run`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from mgx_mlir.api.argument import argument
from mgx_mlir.api.caller_buffers import Destinations, in_order
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.core.errors import RunError, UsageError
from mgx_mlir.programs.signature import Signature
from mgx_mlir.runtime.device import Device
from mgx_mlir.runtime.device_memory import DeviceTensor


def execute(
    compiled: CompiledProgram,
    given: dict[str, Any],
    buffers: dict[int, argument],
    *,
    offload: bool,
) -> list[argument]:
    """Run compiled code, and write the results with a buffer of the caller's to it.

    given: host arrays and DeviceTensors by input. buffers: the caller's, by result. offload: host
    arrays are copied to the device. Errors: RunError for wrong inputs, UsageError for limits.
    """
    held = {n: v for n, v in given.items() if isinstance(v, DeviceTensor)}
    shadows = {n: v.shadow for n, v in held.items()}
    check: Any = compiled.check_inputs
    if held:
        check = partial(compiled.signature.check_inputs, unread=held)
    arrays = checked(compiled.signature, check, {**given, **shadows})
    if held and compiled.target != "gpu":
        raise RunError(
            f"{', '.join(sorted(held))}: expected host memory, got a device's",
            notes=[f"the program is compiled for {compiled.target}; from_gpu copies"],
        )
    inputs = [held.get(n, a) for n, a in arrays.items()]
    if compiled.limits is not None and (held or not offload):
        raise UsageError(
            "max_run_seconds and max_run_memory run the program in another process, "
            "which takes no arguments in device memory"
        )
    if not offload:
        outside = [n for n in arrays if n not in held]
        if outside:
            raise RunError(
                f"{', '.join(outside)}: expected arguments in device memory (offload_copy is "
                "off), got host memory",
                notes=["to_gpu copies them"],
            )
        into = Destinations(buffers, device_of(compiled))
        loaded = on_gpu(compiled).load()
        if loaded.updates is not None and into.hold_caches(inputs, compiled.signature):
            found = loaded.updates.on_device(inputs)
        else:
            found = loaded.run_on_device(inputs)
        return compiled.signature.grouped(into.take([argument.on_device(t) for t in found]))
    into, given_arrays = Destinations(buffers, None), list(arrays.values())
    caches = into.caches(given_arrays, compiled.signature) if buffers else {}
    if held:
        found = on_gpu(compiled).load().run(inputs)
    elif caches:
        found = compiled.execute_in_place(given_arrays, caches)
    else:
        found = compiled.execute(given_arrays)
    dense = found if compiled.target != "ref" else map(in_order, found)  # ref returns views
    return compiled.signature.grouped(into.take([argument.of_array(a) for a in dense]))


def device_of(compiled: CompiledProgram | None) -> Device | None:
    """Return the GPU that a program runs on, None for a CPU."""
    is_gpu = compiled is not None and compiled.target == "gpu"
    return on_gpu(compiled).load().device if is_gpu else None


def on_gpu(compiled: CompiledProgram | None) -> IreeProgram:
    """Return a program that is known to be compiled by IREE."""
    assert isinstance(compiled, IreeProgram)
    return compiled


def checked(
    expected: Signature,
    check: Callable[[Mapping[str, Any]], list[np.ndarray]],
    given: dict[str, Any],
) -> dict[str, np.ndarray]:
    """Return arrays by input, checked. RunError names every wrong one."""
    for p in expected.inputs:
        value = given.get(p.name)
        if isinstance(value, np.ndarray) and p.dims == () and value.shape == (1,):
            given[p.name] = value.reshape(())  # MIGraphX shows a scalar as lens {1}
    arrays = check(given)
    return dict(zip((p.name for p in expected.inputs), arrays, strict=True))
