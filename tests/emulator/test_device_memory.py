"""Device memory that a program's text states, against allocations of the emulated device."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from math import prod
from pathlib import Path

import pytest

import mgx_mlir as migraphx

RUN = """
import sys
import numpy as np
import mgx_mlir as migraphx
from tests.emulator.models import CASES

if sys.argv[1] == "three results":
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float_type", lens=[25, 25]))
    dot, add = migraphx.op("dot"), migraphx.op("reduce_sum", axes=[1])
    y = m.add_instruction(dot, [m.add_instruction(dot, [x, x]), x])
    m.add_return([y, m.add_instruction(add, [y]), m.add_instruction(dot, [y, y])])
    inputs = {"x": np.ones((25, 25), np.float32)}
else:
    case = CASES[sys.argv[1]]("f16", 1)
    p, inputs = migraphx.parse_onnx_buffer(case.model.SerializeToString()), case.inputs
t = migraphx.get_target("gpu", arch="gfx942", emulate=True)
p.compile(t, offload_copy=False)
given = {k: t.copy_to(migraphx.argument(v)) for k, v in inputs.items()}
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
_ROW = re.compile(r"@literal\{ \.\.\. \} -> half_type, \{(\d+)\}")
pytestmark = pytest.mark.emulator
# models without scratch, with some, and with weights that are stored by row
MODELS = {"softmax": 0, "convolution": 1, "bottleneck": 1, "three results": 1}


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
    if len(results) > 1:  # in one piece of memory
        results = [sum(-(-n // 64) * 64 for n in results)]
    assert sorted(allocated) == sorted([*results, *scratch])
    weights = [2 * prod(map(int, dims.split(", "))) for dims in _WEIGHT.findall(done.stdout)]
    held = [int(n) for n in _ALLOCATED.findall(load)]
    for n in weights:
        held.remove(n)
    # the rest: biases that CDNA's matmuls start from, in the type of their sums
    rows = [4 * int(n) for n in _ROW.findall(done.stdout)]
    assert held == (rows[:1] if name == "bottleneck" else [])


def test_what_the_plan_does_not_tell() -> None:
    """A result that is no memory of its own, and dims that only a run knows: no line of scratch."""
    for dims, second in (([2, 3], "reshape"), ([2, 3], "relu"), (None, "relu")):
        p = migraphx.program()
        m = p.get_main_module()
        dim = migraphx.shape.dynamic_dimension
        shape = (
            migraphx.shape(type="float_type", lens=dims)
            if dims
            else migraphx.shape(type="float_type", dyn_dims=[dim(1, 4), dim(3, 3)])
        )
        x = m.add_parameter("x", shape)
        options = {"dims": [3, 2]} if second == "reshape" else {}
        first = m.add_instruction(migraphx.op("exp"), [x])
        m.add_return([first, m.add_instruction(migraphx.op(second, **options), [x])])
        p.compile(migraphx.get_target("gpu", arch="gfx942"))
        plan = p.compiled.program.plan
        known = dims is not None and second == "relu"
        assert plan is not None
        assert plan.scratch == (0 if known else None)
        assert "hip_allocate_memory" not in str(p)
