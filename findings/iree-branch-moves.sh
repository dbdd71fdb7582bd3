#!/usr/bin/env bash
# IREE's VM bytecode: the moves that pass arguments to a block are made one after the other, and those
# of 32-bit and of 64-bit registers are ordered apart, although a 64-bit register is a pair of 32-bit
# ones. A block with arguments of both kinds gets a number that another move has overwritten: two
# 64-bit sums come out wrong in silence. With 64-bit arguments alone they are right.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  iree-base-compiler==3.13.0 iree-base-runtime==3.13.0
cd "$work"
"$work/venv/bin/python" - <<'PY'
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import iree.runtime as rt

TEXT = """
vm.module @m {
  vm.export @f
  vm.func @f(%c: i32, %x: i64, %y: i64, %z: TYPE) -> (i64, i64, TYPE) {
    vm.cond_br %c, ^l, ^r
  ^l:
    %l0 = vm.mul.i64 %x, %x : i64
    vm.br ^m(%y, %x, %z : i64, i64, TYPE)
  ^r:
    %r0 = vm.add.TYPE %z, %z : TYPE
    vm.br ^m(%x, %y, %r0 : i64, i64, TYPE)
  ^m(%p: i64, %q: i64, %s: TYPE):
    %u2 = vm.add.TYPE %s, %s : TYPE
    %u1 = vm.add.i64 %q, %p : i64
    %u0 = vm.add.i64 %p, %p : i64
    vm.return %u0, %u1, %u2 : i64, i64, TYPE
  }
}
"""
x, y, z = 10**12 + 1, 20**9 + 2, 7
wanted = {1: [2 * y, x + y, 2 * z], 0: [2 * x, x + y, 4 * z]}


def run(kind, condition):
    Path("m.mlir").write_text(TEXT.replace("TYPE", kind))
    compiler = str(Path(sys.executable).parent / "iree-compile")
    subprocess.run([compiler, "--compile-mode=vm", "m.mlir", "-o", "m.vmfb"], check=True)
    instance = rt.VmInstance()
    module = rt.VmModule.copy_buffer(instance, Path("m.vmfb").read_bytes())
    given, found = rt.VmVariantList(4), rt.VmVariantList(3)
    for number in (condition, x, y, z):
        given.push_int(number)
    rt.VmContext(instance, [module]).invoke(module.lookup_function("f"), given, found)
    return [found.get_variant(i) for i in range(3)]


print("iree-base-compiler", version("iree-base-compiler"))
right = {}
for kind in ("i64", "i32"):
    found = {c: run(kind, c) for c in (1, 0)}
    right[kind] = found == wanted
    for condition in (1, 0):
        print(f"third argument {kind}, condition {condition}: found", found[condition])
        print("                             expected", wanted[condition])
if right != {"i64": True, "i32": False}:
    sys.exit("both are right now, or both wrong")
PY
