#!/usr/bin/env bash
# IREE takes unsigned 8-bit operands of StableHLO's dot_general and convolution for signed ones: 200 * 200 +
# 200 * 200 is 6272, which is 2 * (-56) ** 2. StableHLO's text multiplies numbers of the element type, and ui8 goes
# from 0 to 255: 80000. Quantized models hold activations in it. Maximum, divide, convert, compare
# and reductions of ui8 are right.
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

print("iree-base-compiler", version("iree-base-compiler"))
TEXTS = {
    "dot of ui8": """
func.func @main(%x: tensor<2xui8>, %y: tensor<2xui8>) -> tensor<i32> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0]
      : (tensor<2xui8>, tensor<2xui8>) -> tensor<i32>
  return %r : tensor<i32>
}""",
    "convolution of ui8": """
func.func @main(%x: tensor<2xui8>, %y: tensor<2xui8>) -> tensor<1x1x1xi32> {
  %a = stablehlo.reshape %x : (tensor<2xui8>) -> tensor<1x1x2xui8>
  %b = stablehlo.reshape %y : (tensor<2xui8>) -> tensor<1x1x2xui8>
  %r = stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x1x2xui8>, tensor<1x1x2xui8>) -> tensor<1x1x1xi32>
  return %r : tensor<1x1x1xi32>
}""",
    "product and sum of ui8 converted to i32": """
func.func @main(%x: tensor<2xui8>, %y: tensor<2xui8>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %a = stablehlo.convert %x : (tensor<2xui8>) -> tensor<2xi32>
  %b = stablehlo.convert %y : (tensor<2xui8>) -> tensor<2xi32>
  %p = stablehlo.multiply %a, %b : tensor<2xi32>
  %r = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<2xi32>, tensor<i32>) -> tensor<i32>
  return %r : tensor<i32>
}""",
}


def run(text, *arguments):
    code = iree.compiler.compile_str(
        text, target_backends=["llvm-cpu"], input_type="stablehlo",
        extra_args=["--iree-llvmcpu-target-cpu=generic"],
    )
    context = iree.runtime.SystemContext(config=iree.runtime.Config("local-sync"))
    context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, code))
    return context.modules.module.main(*arguments).to_host().item()


x = np.array([200, 200], np.uint8)
expected = int(x.astype(np.int64) @ x)
found = [run(text, x, x) for text in TEXTS.values()]
for name, value in zip(TEXTS, found, strict=True):
    print(f"{name}: expected {expected}, IREE {value}")
if found != [6272, 6272, expected]:
    sys.exit("unsigned operands are taken otherwise now")
PY
