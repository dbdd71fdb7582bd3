#!/usr/bin/env bash
# tract computes operators of ONNX by other formulas than the text's. GlobalLpPool is "LpPool with kernel size equal to
# the spatial dimension", a norm; tract divides by the number of elements and takes no magnitudes: of -1 to -4 it is
# -2.5 in place of 10 for p=1, NaN for p=3. Swish of opset 24 is x * sigmoid(alpha * x); alpha is not read. BitShift by
# as many bits as a number has leaves 0; tract shifts by 32 modulo 32. OpenVINO has the first two.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 openvino==2026.4.1 tract==0.23.9
"$work/venv/bin/python" - <<'PY'
import sys
import tempfile
from importlib.metadata import version

import numpy as np
import onnx
import openvino
import tract
from onnx import helper
from onnx.reference import ReferenceEvaluator

print(*(f"{p} {version(p)}" for p in ("onnx", "openvino", "tract")))
core = openvino.Core()


def run(op, *arrays, result, opset=24, **attributes):
    """Return the result of a node in tract and in OpenVINO, or onnx.reference for integers."""
    given = {f"x{i}": a for i, a in enumerate(arrays)}
    kind = helper.np_dtype_to_tensor_dtype(arrays[0].dtype)
    graph = helper.make_graph(
        [helper.make_node(op, [*given], ["y"], **attributes)], "g",
        [helper.make_tensor_value_info(n, kind, a.shape) for n, a in given.items()],
        [helper.make_tensor_value_info("y", kind, result)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    onnx.checker.check_model(model)
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        onnx.save(model, file.name)
        read = tract.onnx().load(file.name)
        for i, a in enumerate(arrays):
            read.set_input_fact(i, ",".join([*map(str, a.shape), "f32" if a.dtype.kind == "f" else "u32"]))
        first = read.into_model().into_runnable().run(list(arrays))[0].to_numpy()
    if arrays[0].dtype.kind != "f":
        return first.ravel(), ReferenceEvaluator(model).run(None, given)[0].ravel()
    read = core.read_model(model.SerializeToString())
    return first.ravel(), core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(given)[0].ravel()


x = -np.arange(1, 5, dtype=np.float32).reshape(1, 1, 4)
points = np.array([-1, 1, 2], np.float32)
found = [
    ("GlobalLpPool p=1", run("GlobalLpPool", x, result=[1, 1, 1], opset=21, p=1), [-2.5], [10]),
    ("GlobalLpPool p=2", run("GlobalLpPool", x, result=[1, 1, 1], opset=21, p=2), [30**0.5 / 2], [30**0.5]),
    ("GlobalLpPool p=3", run("GlobalLpPool", x, result=[1, 1, 1], opset=21, p=3), [np.nan], [100 ** (1 / 3)]),
    ("Swish alpha=2", run("Swish", points, result=[3], alpha=2.0), points / (1 + np.exp(-points)),
     points / (1 + np.exp(-2 * points))),
    ("BitShift of 1, 2, 4 by 32, 33, 1", run("BitShift", np.array([1, 2, 4], np.uint32),
     np.array([32, 33, 1], np.uint32), result=[3], opset=21, direction="RIGHT"), [1, 1, 2], [0, 0, 2]),
]
for name, (first, other), wrong, right in found:
    beside = "onnx.reference" if first.dtype.kind == "u" else "OpenVINO"
    print(f"{name}: tract {first.round(4)} {beside} {other.round(4)}")
    if not np.allclose(first, wrong, atol=1e-4, equal_nan=True) or not np.allclose(other, right, atol=1e-4):
        sys.exit("computed otherwise now")
PY
