#!/usr/bin/env bash
# MLIR's Python bindings: the hash of an operation follows from its operands and attributes, and its
# equality from its identity. A set of operations loses a member when a rewrite changes one of its
# operands: the same object is no longer found. Values, blocks and types keep their hash.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 iree-base-compiler==3.13.0
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

from iree.compiler import ir

print("iree-base-compiler", version("iree-base-compiler"))
with ir.Context() as context, ir.Location.unknown():
    context.allow_unregistered_dialects = True
    module = ir.Module.parse(
        'func.func @f(%a: i32, %b: i32) { "t.use"(%a) : (i32) -> ()  return }'
    )
    block = module.body.operations[0].regions[0].blocks[0]
    op = block.operations[0]
    seen, before = {op}, hash(op)
    print("found in a set:                       ", op in seen)
    op.operands[0] = block.arguments[1]
    print("found, with another operand:          ", op in seen)
    print("equal to itself, with the same hash:  ", op == block.operations[0], hash(op) == before)
    if op in seen or op != block.operations[0]:
        sys.exit("an operation keeps its hash now")
PY
