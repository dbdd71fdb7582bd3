"""One model on two emulated GPUs, in a process that has them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mgx_mlir.targets.emulator import PATH_VARIABLE

pytestmark = pytest.mark.emulator

PROGRAM = """
import json, sys
import numpy as np
import onnx
from onnx import helper
import mgx_mlir

def model(rows, reduced=False):
    T = onnx.TensorProto.FLOAT
    rng = np.random.default_rng(5)
    w = rng.standard_normal((8, 3)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]),
             helper.make_node("Mul", ["p", "s"], ["q"]), helper.make_node("Tanh", ["q"], ["y"])]
    outs = [helper.make_tensor_value_info("y", T, [rows, 3])]
    if reduced:
        nodes.append(helper.make_node("ReduceSum", ["y"], ["z"], keepdims=0))
        outs.append(helper.make_tensor_value_info("z", T, []))
    g = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", T, [rows, 8]),
        helper.make_tensor_value_info("s", T, [3])], outs, [onnx.numpy_helper.from_array(w, "w")])
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)]), w

said = {}
def error(call):
    try:
        call()
    except mgx_mlir.MgxError as e:
        return e.message

rng = np.random.default_rng(7)
s = rng.standard_normal(3).astype(np.float32)
for name, rows, counts, options in (("open", "rows", (1, 2, 7), {}), ("fixed", 2, (2, 4, 6), {}),
                                    ("graph", 2, (2, 4, 6), {"hip_graph": True})):
    made, w = model(rows)
    p = mgx_mlir.data_parallel(made, [0, 1], emulate=True, **options)
    for n in counts:
        x = rng.standard_normal((n, 8)).astype(np.float32)
        want = np.tanh(x.astype(np.float64) @ w * s)
        got = p.run({"x": x, "s": s})[0]
        assert got.shape == want.shape
        said[f"{name} {n}"] = float(abs(got - want).max())
    said[name] = [p.devices, p.split]
    if name == "fixed":
        said["odd"] = error(lambda: p.run({"x": x[:3], "s": s}))
        said["none"] = error(lambda: p.run({"s": s}))
    p.close()
said["no rows"] = error(lambda: mgx_mlir.data_parallel(model(2, True)[0], [0, 1], emulate=True))
said["twice"] = error(lambda: mgx_mlir.data_parallel(model(2)[0], [0, 0], emulate=True))
p = mgx_mlir.data_parallel(model(2)[0], [0, 5], emulate=True)
said["absent"] = error(lambda: p.run({"x": np.ones((4, 8), np.float32), "s": s}))
print(json.dumps(said))
"""


@pytest.mark.parametrize("archs", ["gfx942", "gfx942,gfx1100"])
def test_a_batch_over_two_devices(archs: str, library: Path, tmp_path: Path) -> None:
    counts = tmp_path / "stats.json"
    env = {**os.environ, PATH_VARIABLE: str(library), "MGX_EMULATE_ARCH": archs,
           "MGX_EMULATE_STATS": str(counts)}  # fmt: skip
    if "," not in archs:
        env["MGX_EMULATE_DEVICES"] = "2"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    errors = [v for k, v in said.items() if k.split()[0] in ("open", "fixed", "graph") and " " in k]
    assert len(errors) == 9
    assert max(errors) < 2e-6
    assert said["open"] == said["fixed"] == [[0, 1], ["x"]]
    assert said["odd"] == "expected a multiple of 2 rows, got 3"
    assert said["none"] == "missing inputs: x"
    assert "z has no batch dim" in said["no rows"]
    assert said["twice"] == "expected different devices, got [0, 0]"
    assert said["absent"] == "there is no HIP device 5, expected 0 to 1"
    launches = json.loads(counts.read_text())["launches"]
    assert {r["device"] for r in launches} == {0, 1}


def test_an_old_hip(library: Path) -> None:
    code = "import mgx_mlir as m; m.get_target('gpu', emulate=True).get_context().finish()"
    for version, said in (("5.7.1", "HIP 5.7.1 is too old: HIP 6 or newer is needed"), ("7.1", "")):
        env = {**os.environ, PATH_VARIABLE: str(library), "MGX_EMULATE_HIP": version}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60
        )
        assert (done.returncode == 0) == (said == ""), done.stderr
        assert said in done.stderr
