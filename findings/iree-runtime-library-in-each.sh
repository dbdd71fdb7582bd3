#!/usr/bin/env bash
# IREE compiles its C runtime library into each CPU executable, whatever the kernel calls: most of
# the code that LLVM optimises for a small kernel is dropped again by the linker.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q --disable-pip-version-check iree-base-compiler==3.13.0
cd "$folder"
cat > add.mlir <<'M'
func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %0 = arith.addf %x, %y : tensor<64xf32>
  return %0 : tensor<64xf32>
}
M
"$folder/env/bin/iree-compile" --version | grep -o 'IREE compiler version [^ ]*'
"$folder/env/bin/iree-compile" add.mlir -o add.vmfb --iree-hal-target-device=local \
  --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-cpu=generic \
  --iree-hal-dump-executable-intermediates-to=steps
own=$(grep -c '^define' steps/*.codegen.ll)
optimised=$(grep -c '^define' steps/*.optimized.ll)
math=$(grep -cE '^define .*@(expf|logf|powf|fmodf|exp|log)\(' steps/*.optimized.ll)
size=$(wc -c < add.vmfb)
echo "functions of the program: $own; functions that LLVM optimised and compiled: $optimised"
echo "of the C library's exp, log, pow, fmod among them: $math, for one addition; module: $size bytes"
[ "$own" -le 2 ] && [ "$optimised" -ge 40 ] && [ "$math" -ge 4 ] && [ "$size" -lt 20000 ]
