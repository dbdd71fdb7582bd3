"""Queues of streams: work that runs when it is waited for, so that what reads too soon is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.emulator

# an order of HIP's calls, then programs: each line says what was found
RUN = """
import ctypes
import numpy as np
import mgx_mlir
from mgx_mlir.runtime.device_memory import DeviceTensor
from mgx_mlir.runtime.gpu_calls import current
from tests.support.models import parsed

NET = '(float[n,8] x) => (float[n,8] y) { a = Softmax <axis = -1> (x) y = Add (a, x) }'
program = mgx_mlir.compile(parsed(NET, {}, opset=18).SerializeToString(), "gpu", arch="gfx942",
                           emulate=True, cache=False)

def wanted(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True) + x

def right(y, x):
    return bool(np.allclose(y, wanted(x), atol=1e-5))

rng = np.random.default_rng(0)
x, z = (rng.standard_normal((5, 8)).astype(np.float32) for _ in range(2))
print("host arrays", all(right(program.run(x=a)[0], a) for a in (x, z, x)))
module = program.load()
device = module.device
there, other = (DeviceTensor.of(device, a) for a in (x, z))
from mgx_mlir.runtime.gpu_streams import Event, Stream
stream, second, event = Stream(device), Stream(device), Event(device)

def copy_on(s, to, source):
    with current(device) as library:
        device.api.call(library, "copy_within_async", ctypes.c_void_p(to.address()),
                        ctypes.c_void_p(source.address()), ctypes.c_size_t(to.nbytes),
                        ctypes.c_void_p(s.address))

copy_on(stream, there, other)
(late,) = module.run_on_device([there])
print("a call that does not wait", right(late.to_host(), x))
stream.synchronize()
(late,) = module.run_on_device([there])
print("a call that waits", right(late.to_host(), z))
first = DeviceTensor.of(device, x)
copy_on(stream, there, first)
event.record(stream)
result = DeviceTensor.of(device, np.zeros((5, 8), np.float32))
second.wait(event)
copy_on(second, result, there)
second.synchronize()
print("a stream that waits for an event", np.array_equal(result.to_host(), x))
copy_on(stream, there, other)
copy_on(second, result, there)
second.synchronize()
print("a stream that does not", np.array_equal(result.to_host(), x))
program.close()
"""


def test_what_is_not_waited_for_is_not_there(library: Path) -> None:
    environment = {**os.environ, "MGX_EMULATE_QUEUES": "1", "MGX_EMULATOR_PATH": str(library)}
    done = subprocess.run(
        [sys.executable, "-c", RUN], capture_output=True, text=True, env=environment, timeout=300
    )
    assert done.stdout.splitlines() == [
        "host arrays True", "a call that does not wait True", "a call that waits True",
        "a stream that waits for an event True", "a stream that does not True",
    ], done.stderr  # fmt: skip
