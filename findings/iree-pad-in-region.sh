#!/usr/bin/env bash
# IREE for CPUs: a dispatch region that computes a tensor and pads it returns shifted values.
# max(x, 0) padded by one zero on either side gives [0, x1, x2, ..., 0, 0] in place of
# [0, x0, x1, ..., 0]. Without the region the numbers are right. No message, no assertion.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  iree-base-compiler==3.13.0 iree-base-runtime==3.13.0
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

import iree.compiler
import iree.runtime
import numpy as np

BODY = """
    %e = tensor.empty() : tensor<6xf32>
    %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
        iterator_types = ["parallel"]} ins(%x : tensor<6xf32>) outs(%e : tensor<6xf32>) {
    ^bb0(%a: f32, %o: f32):
      %s = arith.maximumf %a, %zero : f32
      linalg.yield %s : f32
    } -> tensor<6xf32>
    %p = tensor.pad %y low[1] high[1] {
    ^bb0(%i: index):
      tensor.yield %zero : f32
    } : tensor<6xf32> to tensor<8xf32>
"""
REGION = "%r = flow.dispatch.region -> (tensor<8xf32>) {" + BODY + "flow.return %p : tensor<8xf32> }"
x = np.arange(1, 7, dtype=np.float32)


def run(body, result):
    code = iree.compiler.compile_str(
        f"""func.func @main(%x: tensor<6xf32>) -> tensor<8xf32> {{
        %zero = arith.constant 0.0 : f32
        {body}
        return {result} : tensor<8xf32> }}""",
        target_backends=["llvm-cpu"],
        input_type="none",
        extra_args=["--iree-llvmcpu-target-cpu=generic"],
    )
    context = iree.runtime.SystemContext(config=iree.runtime.Config("local-sync"))
    context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, code))
    return context.modules.module.main(x).to_host()


print("iree-base-compiler", version("iree-base-compiler"))
print("expected        ", np.pad(x, 1))
plain, region = run(BODY, "%p"), run(REGION, "%r")
print("without a region", plain)
print("in a region     ", region)
if not np.array_equal(plain, np.pad(x, 1)) or np.array_equal(region, np.pad(x, 1)):
    sys.exit("both are right now, or both wrong")
PY
