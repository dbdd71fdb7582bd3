#!/usr/bin/env bash
# MLIR's Python bindings: IntegerAttr.get(i8, 300) is 44 and IntegerAttr.get(i32, 2 ** 40) is 0, without a
# word, where the parser refuses "300 : i8"; FloatAttr of f16 makes infinity of 70000. The true of a bool is
# -1 as IntegerAttr.value, and 1 as an element of a DenseIntElementsAttr.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  iree-base-compiler==3.13.0
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

from iree.compiler import ir

print("iree-base-compiler", version("iree-base-compiler"))
with ir.Context(), ir.Location.unknown():
    i1, i8, i32 = (ir.IntegerType.get_signless(n) for n in (1, 8, 32))
    wrapped = ir.IntegerAttr.get(i8, 300).value, ir.IntegerAttr.get(i32, 2**40).value
    print("300 as i8:", wrapped[0], " 2 ** 40 as i32:", wrapped[1])
    try:
        ir.Attribute.parse("300 : i8")
    except ir.MLIRError as refused:
        print("the parser on 300 : i8:", str(refused).splitlines()[-1])
    else:
        sys.exit("the parser takes 300 : i8 now")
    half = ir.FloatAttr.get(ir.F16Type.get(), 70000).value
    print("70000 as f16:", half)
    true = ir.IntegerAttr.get(i1, 1).value
    element = ir.DenseIntElementsAttr(ir.Attribute.parse("dense<[true, false]> : tensor<2xi1>"))[0]
    print("true as IntegerAttr.value:", true, " as an element of DenseIntElementsAttr:", int(element))
if wrapped != (44, 0) or half != float("inf") or (true, int(element)) != (-1, 1):
    sys.exit("such attributes are others now")
PY
