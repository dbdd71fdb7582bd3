"""Checks that run on a GPU: the driver, copies, a kernel, matmuls, bandwidth, launches.

They run in a separate process, because a failing driver can crash it. Each check prints a line of
JSON at once, so that the last line shows how far the checks came.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import mgx_mlir
from mgx_mlir.compiler.recording import open_gpu
from mgx_mlir.core.errors import MgxError
from mgx_mlir.debug.system_check import BAD, OK, SKIPPED, Check
from mgx_mlir.hardware.architectures import driver_of
from mgx_mlir.hardware.machine import HIP_VARIABLE
from mgx_mlir.runtime import gpu_api, gpu_calls, hip_library
from mgx_mlir.runtime.device import Device
from mgx_mlir.runtime.device_memory import DeviceTensor
from mgx_mlir.targets import emulator
from mgx_mlir.targets.devices import gpu_kind

_TIMEOUT = 600  # seconds of all checks, including a first compile
_EMULATED = "gfx942"  # architecture if the environment names none
_STEPS = 32  # matmuls in a dependent chain


@dataclass(frozen=True)
class Sizes:
    """Bytes and extents of the checks, small for an emulated device."""

    copied: int
    extent: int
    repeats: int

    @staticmethod
    def of(emulate: bool) -> Sizes:
        """Return the sizes for a device, or for an emulated one."""
        return Sizes(1 << 16, 64, 1) if emulate else Sizes(1 << 28, 2048, 10)


def device_checks(device_id: int, emulate: bool, timeout: float = _TIMEOUT) -> list[Check]:
    """Run the checks on a device in a child process; the last check is how that process ended."""
    command = [sys.executable, "-m", "mgx_mlir.debug.gpu_checks", str(device_id), str(int(emulate))]
    stated = dict(os.environ)
    if emulate:
        stated.setdefault(emulator.ARCH_VARIABLE, _EMULATED)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=stated
    ) as p:
        try:
            text, said = p.communicate(timeout=timeout)
            ended = "" if p.returncode == 0 else f"the process ended with status {p.returncode}"
        except subprocess.TimeoutExpired:
            p.kill()
            text, said = p.communicate()
            ended = f"no answer in {timeout:g} seconds"
    found = list(_read(text))
    if ended:
        last = tuple([line for line in said.splitlines() if line.strip()][-1:])
        after = found[-1].name if found else "the start"
        found.append(Check("the checks", BAD, f"{ended}, after {after}", last))
    return found


def _read(text: str) -> Iterator[Check]:
    for line in text.splitlines():
        try:
            row = json.loads(line)
            yield Check(row["name"], row["status"], row["found"], tuple(row["notes"]))
        except (ValueError, KeyError, TypeError):  # a driver may print other lines
            continue


def main(device_id: int, emulate: bool) -> None:
    """Run the checks in this process; print each as a line of JSON."""
    for check in _checks(device_id, emulate):
        print(json.dumps(check.row()), flush=True)


def _checks(device_id: int, emulate: bool) -> Iterator[Check]:
    kind = "hip" if emulate else gpu_kind()
    try:
        library = str(emulator.activate()) if emulate else None
        if kind == "hip":
            yield _functions(kind, os.environ.get(HIP_VARIABLE, "") if library is None else library)
        device = open_gpu(kind, device_id, library)
    except MgxError as e:
        yield Check(gpu_api.APIS[kind].name, BAD, e.message, tuple(e.notes))
        return
    sizes = Sizes.of(emulate)
    yield _versions(device)
    arch = _architecture(device)
    yield arch
    if arch.status == BAD:
        return
    name = gpu_calls.device_arch(device)
    rest: list[tuple[str, Callable[[], Check]]] = [
        ("copies", lambda: _copies(device, sizes)),
        ("a kernel", lambda: _kernel(device, name, emulate)),
        ("matmul, f16", lambda: _product(device, name, emulate, sizes)),
        ("next to the emulator", lambda: _beside_emulator(name, emulate, device_id)),
        ("memory bandwidth", lambda: _bandwidth(device, sizes)),
        ("launches", lambda: _launches(device, name, emulate, sizes)),
    ]
    for title, check in rest:
        try:
            yield check()
        except MgxError as e:
            yield Check(title, BAD, e.message, tuple(e.notes))


def _versions(device: Device) -> Check:
    with gpu_calls.current(device) as library:
        calls = ("hipRuntimeGetVersion", "hipDriverGetVersion")
        found = (gpu_api.version(device.api, library, c) for c in calls)
        known = [v for v in found if v is not None]
        shown = [".".join(map(str, v)) for v in known]
    text = f"runtime {shown[0]}, driver {shown[-1]}" if shown else "its version is unknown"
    return Check(device.api.name, OK, text)


def _functions(kind: str, place: str) -> Check:
    """Check a HIP library for the functions that IREE's driver needs: without one of them it does
    not load.
    """
    library = gpu_api.loaded(gpu_api.APIS[kind], place)
    lacks = hip_library.missing(library)
    if lacks:
        return Check(
            "functions of HIP", BAD, f"the library lacks {', '.join(lacks)}",
            ("IREE's driver needs them; install HIP 6 or 7",),
        )  # fmt: skip
    count = len(hip_library.REQUIRED)
    return Check("functions of HIP", OK, f"all {count} that IREE's driver needs are present")


def _architecture(device: Device) -> Check:
    arch = gpu_calls.device_arch(device)
    try:
        named = mgx_mlir.targets.get_target("gpu", architecture=arch).arch
    except MgxError as e:
        return Check("architecture", BAD, f"{arch or 'unknown'}: {e.message}", tuple(e.notes))
    return Check("architecture", OK, str(named))


def _copies(device: Device, sizes: Sizes) -> Check:
    data = np.random.default_rng(0).integers(0, 256, sizes.copied, np.uint8)
    DeviceTensor.of(device, data).to_host()  # the first copy also sets up pinned memory and queues
    start = time.perf_counter()
    there = DeviceTensor.of(device, data)
    gpu_calls.device_synchronize(device)
    half = time.perf_counter()
    back = there.to_host()
    end = time.perf_counter()
    wrong = int(np.count_nonzero(back != data))
    if wrong:
        return Check("copies", BAD, f"{wrong} of {data.size} bytes came back changed")
    there_gb, back_gb = data.nbytes / (half - start) / 1e9, data.nbytes / (end - half) / 1e9
    return Check(
        "copies", OK, f"{_bytes(data.nbytes)} came back unchanged; {there_gb:.1f} GB/s to the "
        f"device, {back_gb:.1f} GB/s back",
    )  # fmt: skip


def _kernel(device: Device, arch: str, emulate: bool) -> Check:
    p = mgx_mlir.program()
    m = p.get_main_module()
    s = mgx_mlir.shape(type="float_type", lens=[1000])
    x, y = m.add_parameter("x", s), m.add_parameter("y", s)
    m.add_return([m.add_instruction(mgx_mlir.op("add"), [x, y])])
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(1000).astype(np.float32) for _ in range(2))
    made = mgx_mlir.compile(p, "gpu", arch=arch, emulate=emulate, device_id=device.index)
    got = np.asarray(made.run({"x": a, "y": b})[0])
    wrong = int(np.count_nonzero(got != a + b))
    if wrong:
        return Check("a kernel", BAD, f"{wrong} of 1000 sums differ from the CPU's")
    return Check("a kernel", OK, "1000 sums equal the CPU's")


def _made_product(arch: str, emulate: bool, device_id: int, extent: int, count: int) -> Any:
    """Compile a chain of `count` matmuls of square matrices in f16."""
    p = mgx_mlir.program()
    m = p.get_main_module()
    s = mgx_mlir.shape(type="half_type", lens=[extent, extent])
    x, y = m.add_parameter("x", s), m.add_parameter("y", s)
    for _ in range(count):
        x = m.add_instruction(mgx_mlir.op("dot"), [x, y])
    m.add_return([x])
    return mgx_mlir.compile(p, "gpu", arch=arch, emulate=emulate, device_id=device_id)


def _operands(extent: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    draw = [rng.standard_normal((extent, extent)) / extent**0.5 for _ in range(2)]
    return {"x": draw[0].astype(np.float16), "y": draw[1].astype(np.float16)}


def _seconds(made: Any, device: Device, inputs: dict[str, np.ndarray], repeats: int) -> float:
    """Return the median seconds of a call whose arguments are in the device's memory."""
    loaded = made.load()
    given = [DeviceTensor.of(device, inputs[port.name]) for port in made.signature.inputs]
    taken = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        loaded.run_on_device(given)
        gpu_calls.device_synchronize(device)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])


def _product(device: Device, arch: str, emulate: bool, sizes: Sizes) -> Check:
    n = sizes.extent
    made, inputs = _made_product(arch, emulate, device.index, n, 1), _operands(n)
    got = np.asarray(made.run(inputs)[0], np.float64)
    want = inputs["x"].astype(np.float64) @ inputs["y"].astype(np.float64)
    error = float(np.linalg.norm(got - want) / np.linalg.norm(want))
    # half a unit in the last place of f16 is at most 4.9e-4 of a value
    if not error < 1e-3:
        return Check("matmul, f16", BAD, f"{n}x{n}x{n} is {error:.1e} off numpy's in f64")
    rate = 2 * n**3 / _seconds(made, device, inputs, sizes.repeats) / 1e12
    text = f"{n}x{n}x{n} is {error:.1e} off numpy's in f64"
    return Check("matmul, f16", OK, text if emulate else f"{text}; {rate:.1f} TFLOP/s")


def _beside_emulator(arch: str, emulate: bool, device_id: int) -> Check:
    name = "next to the emulator"
    if emulate:
        return Check(name, SKIPPED, "this is the emulator")
    if driver_of(arch) != "hip":
        return Check(name, SKIPPED, "the emulator is for AMD GPUs")
    if emulator.find_library() is None:
        return Check(name, SKIPPED, "the emulator is not built",
                     ("'mgx-driver run --gpu --emulate MODEL' builds it",))  # fmt: skip
    inputs = _operands(128)
    here = np.asarray(_made_product(arch, False, device_id, 128, 1).run(inputs)[0])
    there = np.asarray(_made_product(arch, True, 0, 128, 1).run(inputs)[0])
    apart = np.abs(here.view(np.int16).astype(int) - there.view(np.int16).astype(int))
    if apart.max() > 1:
        return Check(
            name, BAD, f"results of 128x128x128 in f16 differ by up to {apart.max()} f16 steps"
        )
    same = int(np.count_nonzero(apart == 0))
    return Check(
        name, OK, f"{same} of {apart.size} results are equal, the others differ by one f16 step"
    )


def _bandwidth(device: Device, sizes: Sizes) -> Check:
    source = DeviceTensor.of(device, np.ones(sizes.copied, np.uint8))
    target = DeviceTensor.of(device, np.zeros(sizes.copied, np.uint8))
    taken = []
    for _ in range(sizes.repeats + 1):
        start = time.perf_counter()
        gpu_calls.copy(device, target.address(), source.address(), sizes.copied)
        gpu_calls.device_synchronize(device)
        taken.append(time.perf_counter() - start)
    if not target.to_host().all():
        return Check("memory bandwidth", BAD, "a copy within the device lost bytes")
    rate = 2 * sizes.copied / statistics.median(taken[1:]) / 1e9
    return Check("memory bandwidth", OK, f"{rate:.0f} GB/s read and written")


def _launches(device: Device, arch: str, emulate: bool, sizes: Sizes) -> Check:
    inputs = _operands(32)
    one, many = (
        _seconds(_made_product(arch, emulate, device.index, 32, n), device, inputs, sizes.repeats)
        for n in (1, _STEPS + 1)
    )
    each = max(many - one, 0) / _STEPS
    return Check(
        "launches", OK, f"a call of one kernel takes {one * 1e6:.0f} us, each further kernel "
        f"{each * 1e6:.1f} us",
    )  # fmt: skip


def _bytes(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2] == "1")
