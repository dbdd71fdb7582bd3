"""What a program's text says of device memory, against what the emulated device allocates."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from math import prod
from pathlib import Path

import pytest

RUN = """
import sys
import mgx_mlir as migraphx
from tests.emulator.models import CASES

case = CASES[sys.argv[1]]("f16", 1)
p = migraphx.parse_onnx_buffer(case.model.SerializeToString())
t = migraphx.get_target("gpu", arch="gfx942", emulate=True)
p.compile(t, offload_copy=False)
given = {k: t.copy_to(migraphx.argument(v)) for k, v in case.inputs.items()}
print(p)
print("LOAD", file=sys.stderr, flush=True)
p.finalize()
print("CALL", file=sys.stderr, flush=True)
found = p.run(given)
print("END", file=sys.stderr, flush=True)
print("RESULTS", *[s.get_shape().bytes() for s in found])
"""
_ALLOCATED = re.compile(r"emulator: device 0: (\d+) bytes allocated")
_SCRATCH = re.compile(r"hip::hip_allocate_memory\[shape=float_type, \{(\d+)\}, \{1\},id=scratch\]")
_WEIGHT = re.compile(r"hip::hip_copy_literal\[id=@literal:\d+\] -> half_type, \{([\d, ]+)\}")
pytestmark = pytest.mark.emulator
# what has no scratch, what has some, and what has weights that are stored by row
MODELS = {"softmax": 0, "convolution": 1, "bottleneck": 1}


@pytest.mark.parametrize("name", MODELS)
def test_scratch_and_weights(name: str, library: Path) -> None:
    environment = {**os.environ, "MGX_EMULATE_LOG": "1"}
    done = subprocess.run(
        [sys.executable, "-c", RUN, name],
        capture_output=True, text=True, timeout=300, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    load, call = done.stderr.partition("LOAD\n")[2].partition("CALL\n")[::2]
    allocated = [int(n) for n in _ALLOCATED.findall(call.partition("END\n")[0])]
    results = [int(n) for n in done.stdout.partition("RESULTS ")[2].split()]
    assert "@0 = check_context::migraphx::gpu::context -> float_type, {}, {}" in done.stdout
    scratch = [int(n) * 4 for n in _SCRATCH.findall(done.stdout)]
    assert len(scratch) == MODELS[name]
    assert sorted(allocated) == sorted([*results, *scratch])
    weights = [2 * prod(map(int, dims.split(", "))) for dims in _WEIGHT.findall(done.stdout)]
    assert sorted(weights) == sorted(int(n) for n in _ALLOCATED.findall(load))
