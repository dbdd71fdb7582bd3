#!/usr/bin/env bash
# XLA's text of ReducePrecision: the effect of a conversion to a format "such as IEEE-FP16" and back. For f16, 5 bits
# of exponent and 10 of mantissa, it makes 0 of every number below 6.1e-5, while a conversion to f16 keeps them down to
# 6e-8. IREE does the same with stablehlo.reduce_precision. A simulation of f16 or of an 8-bit float by this
# operator loses what the type has: of float8_e5m2 the six smallest numbers.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 jax==0.10.2 \
  iree-base-compiler==3.13.0 iree-base-runtime==3.13.0
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

import iree.compiler
import iree.runtime
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

print(*(f"{p} {version(p)}" for p in ("jax", "iree-base-compiler")))


def run_iree(function, x):
    code = iree.compiler.compile_str(
        str(jax.jit(function).lower(x).compiler_ir("stablehlo")),
        target_backends=["llvm-cpu"], input_type="stablehlo",
        extra_args=["--iree-llvmcpu-target-cpu=generic"],
    )
    context = iree.runtime.SystemContext(config=iree.runtime.Config("local-sync"))
    module = iree.runtime.VmModule.copy_buffer(context.instance, code)
    context.add_vm_module(module)
    return context.modules[module.name].main(x).to_host()


x = np.array([1 + 2**-11, 1e-4, 3e-5, 3e-6], np.float32)
seen = []
for kind, exponent, mantissa in ((jnp.float16, 5, 10), (jnp.float8_e5m2, 5, 2)):
    converted = np.asarray(jax.jit(lambda v, kind=kind: v.astype(kind).astype(jnp.float32))(x))

    def reduce(v, exponent=exponent, mantissa=mantissa):
        return lax.reduce_precision(v, exponent, mantissa)

    xla, iree_found = np.asarray(jax.jit(reduce)(x)), run_iree(reduce, x)
    print(f"{np.dtype(kind).name}: numbers {x}")
    print("  converted and back     ", converted)
    print("  reduce_precision, XLA  ", xla)
    print("  reduce_precision, IREE ", iree_found)
    seen += [np.count_nonzero(v) for v in (converted, xla, iree_found)]
if seen[:3] != [4, 2, 2] or seen[3] <= seen[4] or seen[4] != seen[5]:
    sys.exit("small numbers are kept now")
PY
