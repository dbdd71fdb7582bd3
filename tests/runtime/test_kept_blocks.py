"""Temporary memory and results of a call cost no page faults in the next one."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

CALLS = """
import resource
import numpy as np, onnx.helper, onnx.parser
import mgx_mlir

text = '''g (float[3000,3000] x) => (float[1,1] y) {
    zero = Constant <value_int = 0> ()
    one = Constant <value_int = 1> ()
    a = CumSum (x, zero)
    b = CumSum (a, one)
    y = ReduceMax <keepdims = 1> (b)
}'''
opsets = [onnx.helper.make_opsetid("", 17)]
model = onnx.helper.make_model(onnx.parser.parse_graph(text), opset_imports=opsets, ir_version=8)
program = mgx_mlir.compile(model.SerializeToString(), "cpu", threads=2)
assert program.executable.plan["transient"] > 32 << 20
x = {"x": np.ones((3000, 3000), np.float32)}
for _ in range(3):
    assert program.run(x)[0] == 9e6
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(4):
    program.run(x)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""

# the runtime keeps 64 free blocks: behind calls at as many sizes it keeps none that come later
OPEN_CALLS = """
import resource
import numpy as np, onnx.helper, onnx.parser
import mgx_mlir

text = '''g (float[n,m] x) => (
    float[n,m] a, float[n,m] b, float[n,m] c, float[n,m] d, float[n,m] e, float[n,m] f) {
    zero = Constant <value_int = 0> ()
    a = CumSum (x, zero)
    b = CumSum (a, zero)
    c = CumSum (b, zero)
    d = CumSum (c, zero)
    e = CumSum (d, zero)
    f = CumSum (e, zero)
}'''
opsets = [onnx.helper.make_opsetid("", 17)]
model = onnx.helper.make_model(onnx.parser.parse_graph(text), opset_imports=opsets, ir_version=8)
program = mgx_mlir.compile(model.SerializeToString(), "cpu", threads=1)
for n in range(1, 80):
    program.run({"x": np.ones((n, 40), np.float32)})
x = {"x": np.ones((2000, 1500), np.float32)}
for _ in range(3):
    program.run(x)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(4):
    program.run(x)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another malloc")
@pytest.mark.parametrize("calls", [CALLS, OPEN_CALLS], ids=["large", "open"])
def test_blocks_are_kept(calls: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", calls], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 2000  # a call's 36 or 72 MB are 9000 or 18000 pages
