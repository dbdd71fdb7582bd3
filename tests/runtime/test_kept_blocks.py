"""What a call on several threads needs in between costs no page faults in the next one."""

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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another malloc")
def test_large_blocks_are_kept() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CALLS], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 2000  # 36 MB are 9000 pages
