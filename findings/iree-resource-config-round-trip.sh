#!/usr/bin/env bash
# IREE 3.13 does not read the #stream.resource_config that it prints: the Boolean
# alias_mutable_bindings is printed as 0 or 1 and read as false or true only. A module that
# states its alignment cannot be dumped as text, or stored as bytecode, and compiled further.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check iree-base-compiler==3.13.0
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

from iree.compiler import ir

CONFIG = (
    "#stream.resource_config<{max_allocation_size = 1073741824, min_buffer_offset_alignment = 16, "
    "max_buffer_range = 1073741824, min_buffer_range_alignment = 16, index_bits = 32, "
    "alias_mutable_bindings = false, memory_model = Unified}>"
)
print("iree-base-compiler", version("iree-base-compiler"))
with ir.Context():
    printed = str(ir.Attribute.parse(CONFIG))
    print("read    ", CONFIG)
    print("printed ", printed)
    try:
        ir.Attribute.parse(printed)
    except ir.MLIRError as e:
        print("and read:", str(e).splitlines()[-1].strip() or "an error")
    else:
        sys.exit("the printed form is read now")
if "alias_mutable_bindings = 0" not in printed:
    sys.exit("it is not printed as a number any more")
PY
