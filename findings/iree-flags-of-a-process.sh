#!/usr/bin/env bash
# Some flags of iree-compile are no flags of a session of its own library: the call that gives flags to
# a session refuses them as unknown, and only the options of the whole process take them. Of two flags
# that stand side by side in `iree-compile --help`, one is a session's and the other is not.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check iree-base-compiler==3.13.0
"$work/venv/bin/python" - <<'PY'
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import iree.compiler
from iree.compiler.api import Session

FLAGS = (
    "--iree-opt-level=O2",
    "--iree-codegen-block-dynamic-dimensions-of-contractions=false",
)
binary = Path(iree.compiler.__file__).parent / "_mlir_libs/iree-compile"
print(f"iree-base-compiler {version('iree-base-compiler')}")
found = []
for flag in FLAGS:
    done = subprocess.run(
        [binary, flag, "--compile-to=input", "-", "-o", "-"],
        input="module {}", text=True, capture_output=True,
    )
    try:
        Session().set_flags(flag)
        session = "taken"
    except ValueError as e:
        session = "refused: " + str(e).strip().splitlines()[-1].strip()
    found.append((done.returncode == 0, session == "taken"))
    print(f"{flag}\n  iree-compile: {'taken' if done.returncode == 0 else 'refused'}, a session: {session}")
sys.exit(0 if found == [(True, True), (True, False)] else 1)
PY
