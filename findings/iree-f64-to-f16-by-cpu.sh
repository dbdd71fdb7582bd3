#!/usr/bin/env bash
# `arith.truncf` from f64 to f16 rounds once by its definition, as numpy does. IREE's code for x86-64 without
# AVX512-FP16 rounds to f32 and then to f16: 1 + 2**-11 + 2**-40 becomes 1, and not 1.0009765625. For a CPU with these
# instructions the same program is one conversion, so two machines of one architecture give two results.
set -euo pipefail
[ "$(uname -m)" = x86_64 ] || { echo "this shows code of x86-64"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check \
    iree-base-compiler==3.13.0 iree-base-runtime==3.13.0 numpy==2.4.6
cat >"$work/cast.py" <<'PY'
import pathlib
import subprocess
import sys

import iree.runtime as rt
import numpy as np

work = pathlib.Path(sys.argv[1])
tool = pathlib.Path(sys.executable).with_name("iree-compile")
(work / "f.mlir").write_text("""
func.func @f(%x: tensor<1xf64>) -> tensor<1xf16> {
  %y = arith.truncf %x : tensor<1xf64> to tensor<1xf16>
  return %y : tensor<1xf16>
}
""")


def compiled(cpu):
    """Return the module for a CPU, and the assembly of its kernel."""
    folder = work / cpu
    folder.mkdir()
    subprocess.run(
        [tool, work / "f.mlir", "--iree-hal-target-device=local", "--iree-input-demote-f64-to-f32=false",
         "--iree-hal-local-target-device-backends=llvm-cpu", f"--iree-llvmcpu-target-cpu={cpu}",
         f"--iree-hal-dump-executable-intermediates-to={folder}", "-o", folder / "f.vmfb"],
        check=True, capture_output=True,
    )
    return (folder / "f.vmfb").read_bytes(), "".join(p.read_text() for p in folder.glob("*.s"))


x = np.array([1 + 2.0**-11 + 2.0**-40])
code, plain = compiled("x86-64-v3")
_, wide = compiled("sapphirerapids")
module = rt.load_vm_module(rt.VmModule.copy_buffer((c := rt.Config("local-sync")).vm_instance, code), c)
[y] = np.asarray(module.f(x))
direct = "vcvtsd2sh" in wide or "vcvtpd2ph" in wide
print("iree", rt.version.VERSION if hasattr(rt, "version") else "3.13.0")
print("x                     ", float(x[0]))
print("numpy                 ", float(x.astype(np.float16)[0]))
print("IREE, x86-64-v3       ", float(y))
print("one conversion in code", {"x86-64-v3": "vcvtsd2sh" in plain, "sapphirerapids": direct})
good = float(y) == 1.0 and float(x.astype(np.float16)[0]) == 1.0009765625 and direct
print("as described" if good else "changed")
sys.exit(not good)
PY
"$work/venv/bin/python" "$work/cast.py" "$work"
