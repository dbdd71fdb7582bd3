"""Device memory and calls of HIP of a program whose sizes each call draws."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.emulator

# rows are drawn; the device has 150 MB, of which the runtime's staging takes 128 MiB
RUN = """
import sys
import numpy as np
import mgx_mlir
from tests.support.models import parsed

NET = '''(float[n,64] x) => (float[n,64] y) {
a = Softmax <axis = 0> (x) b = Softmax <axis = 0> (a) c = Softmax <axis = 0> (b)
y = Softmax <axis = 0> (c) }'''
program = mgx_mlir.compile(parsed(NET, {}, opset=18).SerializeToString(), "gpu", arch="gfx942",
                           emulate=True, cache=False)
calls, least, most = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
start = program.memory()
used = []
for n in rng.integers(least, most, calls, endpoint=True):
    x = rng.standard_normal((n, 64)).astype(np.float32)
    y = program.run(x=x)[0]
    assert y.shape == x.shape and abs(float(y.sum()) - 64) < 0.64
    if least < most:
        found = program.memory()
        used.append(found.total - found.free)
print(start.total, start.total - start.free, max(used, default=0), flush=True)
program.close()
"""


def run(
    calls: int, sizes: tuple[int, int], stats: Path, library: Path
) -> tuple[list[int], dict[str, int], int]:
    """The printed numbers, how often each function of HIP was called, and the launches."""
    environment = {
        **os.environ, "MGX_EMULATE_MEMORY": "150000000", "MGX_EMULATE_STATS": str(stats),
        "MGX_EMULATOR_PATH": str(library),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(calls), *map(str, sizes)],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(stats.read_text())
    return [*map(int, done.stdout.split())], told["calls"], len(told["launches"])


@pytest.mark.parametrize(
    ("calls", "most"),
    [(40, 8000), pytest.param(10_000, 400, marks=pytest.mark.slow)],
)
def test_drawn_sizes(calls: int, most: int, library: Path, tmp_path: Path) -> None:
    """Blocks of earlier sizes are given back: 10 calls took 16 MB of 16 before they were."""
    (total, opened, used), _, _ = run(calls, (1, most), tmp_path / "stats", library)
    assert opened < used < total


def test_calls_of_hip(library: Path, tmp_path: Path) -> None:
    """A call of 12 launches takes at most 120 calls of HIP; one of 9 took 327 before."""
    calls = 40
    _, hip, launches = run(calls, (100, 100), tmp_path / "stats", library)
    assert launches == 12 * calls
    assert sum(hip.values()) <= 120 * calls  # loading included
    assert hip["hipMalloc"] < 10  # at the first call
    assert hip["hipStreamSynchronize"] <= 2 * calls + 4  # for its inputs, and its results
    assert "hipHostRegister" not in hip


@pytest.mark.slow
def test_the_part_of_the_device_run(library: Path) -> None:
    """The checks of `benchmarks/gpu_device.py` pass, with few of their calls."""
    environment = {**os.environ, "IREE_HIP_DYLIB_PATH": str(library), "MGX_EMULATE_ARCH": "gfx942"}
    done = subprocess.run(
        [sys.executable, "-c", "from benchmarks.gpu_parts import sizes; sizes(4, 60)"],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["wrong"] for row in rows] == ["", ""], done.stderr
