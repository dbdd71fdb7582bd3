"""Cost models of a search: the time of functions of a lowered GPU module, bounded or measured."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mgx_mlir.hardware.architectures import driver_of
from mgx_mlir.programs.lowered import Lowered
from mgx_mlir.targets.child import shared_compiler
from mgx_mlir.targets.flags import gpu_ladder
from mgx_mlir.targets.kernel_bounds import compile_with_bounds, time_us

if TYPE_CHECKING:
    from mgx_mlir.runtime.ports import Port

# microseconds of the functions of a lowered module, None where unknown. Raises CompileError where
# the module does not compile.
CostModel = Callable[[Lowered, Sequence[str]], Mapping[str, float | None]]

SECONDS = 0.05  # spent on calling each function


def by_bound(arch: str, opt_level: str = "O2", timeout: float | None = None) -> CostModel:
    """Estimate time by the lower bound of the compiled code; infinite for code that spills."""

    def cost(lowered: Lowered, names: Sequence[str]) -> Mapping[str, float | None]:
        _, launches = compile_with_bounds(
            lowered.bytecode, arch, opt_level=opt_level, timeout=timeout
        )
        return {n: time_us(launches.get(n, [])) for n in names}

    return cost


def by_time(
    arch: str,
    opt_level: str = "O2",
    timeout: float | None = None,
    *,
    library: str | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> CostModel:
    """Measure the median time of calls on a GPU, all functions interleaved.

    Operands and results stay in its memory; the overhead of a call is the same for all.
    """
    # start-up: compiling needs no runtime
    from mgx_mlir.runtime.device_memory import DeviceTensor
    from mgx_mlir.runtime.iree_runtime import LoadedModule

    def cost(lowered: Lowered, names: Sequence[str]) -> Mapping[str, float | None]:
        flags = gpu_ladder(arch, opt_level=opt_level)[0].flags
        made = shared_compiler().run(lowered.bytecode, flags, timeout=timeout, reproducer=False)
        rng = np.random.default_rng(0)
        calls = []
        for name in names:
            module = LoadedModule(
                made.vmfb, lowered.params, device=driver_of(arch), entry=name, library=library
            )
            drawn = [DeviceTensor.of(module.device, _drawn(rng, p)) for p in module.inputs]
            calls.append(lambda module=module, drawn=drawn: module.run_on_device(drawn))
        medians = race(calls, SECONDS, clock)
        return {n: 1e6 * t for n, t in zip(names, medians, strict=True)}

    return cost


def race(
    calls: Sequence[Callable[[], Any]],
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
    runs: int = 0,
) -> list[float]:
    """Time interleaved calls, and return the median seconds of each.

    `runs` is the number of calls of each; 0: as many as fit in `seconds` for each, at least 5. Each
    is called once before, untimed.
    """
    for call in calls:
        call()
    times: list[list[float]] = [[] for _ in calls]
    end = clock() + len(calls) * seconds
    while len(times[0]) < runs or (not runs and (len(times[0]) < 5 or clock() < end)):
        for call, mine in zip(calls, times, strict=True):
            start = clock()
            call()
            mine.append(clock() - start)
    return [statistics.median(mine) for mine in times]


def _drawn(rng: np.random.Generator, port: Port) -> np.ndarray:
    values = rng.standard_normal(port.dims) if port.dtype.is_float else np.ones(port.dims)
    return np.asarray(values).astype(port.np)


__all__ = ["CostModel", "by_bound", "by_time", "race"]
