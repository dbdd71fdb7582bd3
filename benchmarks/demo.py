"""The main job on a real model: makes ResNet-50 as ONNX, compiles it for the CPU, verifies, times.

    python benchmarks/demo.py [--out DIR]

Runs the commands that it prints. Exit code: that of the first command that fails.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", default="models", help="where the model goes (default: models)")
    out = Path(parser.parse_args().out)
    model = out / "light_resnet50.onnx"
    driver = [sys.executable, "-m", "mgx_mlir.tools.driver"]
    redraw = [sys.executable, str(ROOT / "tests/models/redraw.py"), "--out", str(out), "resnet50"]
    steps = [
        ("make the model: the onnx package's ResNet-50 with weights drawn anew", redraw),
        ("compile", [*driver, "compile", str(model), "--cpu", "-o", str(out / "resnet50.mxr")]),
        ("verify against the reference", [*driver, "verify", str(model), "--cpu"]),
        ("verify against onnxruntime", [*driver, "verify", str(model), "--cpu", "--ort"]),
        ("time", [*driver, "perf", str(model), "--cpu", "--iterations", "20"]),
    ]
    for what, command in steps:
        shown = " ".join(["mgx-driver", *command[3:]] if command[1] == "-m" else command)
        print(f"\n# {what}\n$ {shown}", flush=True)
        code = subprocess.run(command, check=False).returncode
        if code:
            print(f"'{what}' failed with exit code {code}", file=sys.stderr)
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
