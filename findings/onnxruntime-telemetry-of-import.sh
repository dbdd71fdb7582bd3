#!/usr/bin/env bash
# onnxruntime's wheel for Linux holds a telemetry client that sends events to its maker over HTTPS, on by default, says
# the package's own Privacy.md. Long it was a matter of Windows builds alone. The import starts it: a file with an
# identifier appears in the folder for temporary files before a model is read, and disable_telemetry_events() can be
# called only after that. ORT_DISABLE_TELEMETRY=1 in the environment keeps all of it away.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 onnxruntime==1.32.0
"$work/venv/bin/python" - "$work" <<'PY'
import os
import subprocess
import sys
from importlib.metadata import files, version
from pathlib import Path

print("onnxruntime", version("onnxruntime"))
[privacy] = [f for f in files("onnxruntime") if f.name == "Privacy.md"]
documented = "ORT_DISABLE_TELEMETRY" in privacy.read_text()
print("Privacy.md of the wheel names ORT_DISABLE_TELEMETRY:", documented)
found = {}
for name, code, more in (
    ("import", "import onnxruntime", {}),
    ("import and disable_telemetry_events()",
     "import onnxruntime; onnxruntime.disable_telemetry_events()", {}),
    ("ORT_DISABLE_TELEMETRY=1", "import onnxruntime", {"ORT_DISABLE_TELEMETRY": "1"}),
):  # fmt: skip
    folder = Path(sys.argv[1], f"temporary{len(found)}")
    folder.mkdir()
    environment = {k: v for k, v in os.environ.items() if k != "ORT_DISABLE_TELEMETRY"}
    home = {"HOME": str(folder), "TMPDIR": str(folder), "XDG_CACHE_HOME": str(folder)}
    subprocess.run([sys.executable, "-c", code], env=environment | home | more, check=True)
    found[name] = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    print(f"files after {name}:", *found[name] or ["none"])
if not found["import"] or found["ORT_DISABLE_TELEMETRY=1"]:
    sys.exit("an import starts no telemetry now")
PY
