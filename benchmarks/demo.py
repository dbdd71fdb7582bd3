"""The main job on a real model: makes ResNet-50 as ONNX, compiles it for the CPU, verifies, times.

    python benchmarks/demo.py [--out DIR] [--model FILE] [--print]

Runs mgx-driver's commands, and prints their results in 13 lines of 80 columns; listings and reports
go to files. Exit code: that of the first command that fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import onnx

import mgx_mlir
from mgx_mlir.hardware.machine import available_cpus
from mgx_mlir.tools.driver.colour import Tone, write_in
from mgx_mlir.tools.driver.commands.env import facts

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 80
ANCHORS = {"Conv", "Gemm", "MatMul"}  # operators that layers are named after
ERRORS = 12  # lines of a failed command that are shown


class FailedError(Exception):
    """Raised when a command ends with a status other than 0."""


class Demo:
    """A model, the folder of what is made of it, and the commands that make it."""

    def __init__(self, model: Path, out: Path, prints: bool) -> None:
        self.model, self.out, self.prints = model, out, prints
        self.anchors: set[str] = set()
        self.name = model.stem.removeprefix("light_")

    def file(self, suffix: str) -> Path:
        return self.out / f"{self.name}{suffix}"

    def driver(self, command: str, *options: str) -> str:
        """Run mgx-driver on the model; return its stdout."""
        line = [command, str(self.model), "--cpu", *options]
        return self.run(
            [sys.executable, "-m", "mgx_mlir.tools.driver", *line], ["mgx-driver", *line]
        )

    def run(self, line: list[str], shown: list[str]) -> str:
        if self.prints:
            print("$", *shown, flush=True)
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if self.prints:
            print(done.stdout + done.stderr, flush=True)
        if done.returncode:
            last = "\n".join(done.stderr.splitlines()[-ERRORS:])
            print(f"{last}\n'{' '.join(shown)}' failed: {done.returncode}", file=sys.stderr)
            raise FailedError(done.returncode)
        return done.stdout

    # ---- the steps, each with its line -----------------------------------------------------------

    def heading(self) -> None:
        found = facts()
        processor, count = found["processor"], available_cpus()
        gpus = len(found["gpus"])
        right = f"{gpus} AMD GPU{'s' * (gpus > 1)}" if gpus else "no AMD GPU found"
        wide = "AVX-512" if "avx512f" in processor["features"] else ""
        threads = "1 thread" if count == 1 else f"{count} threads"
        cpu = re.sub(r"\((R|TM)\)|\bProcessor\b|\bCPU\b|@.*", "", processor["name"])
        parts = [f"mgx_mlir {mgx_mlir.__version__} on {' '.join(cpu.split())[:30]}", threads, wide]
        print(f"{', '.join(filter(None, parts)):<{WIDTH - len(right)}}{right}")

    def step(self, at: int, what: str, subject: str, text: str, verdict: str = "") -> None:
        """Print a step's line, cut to the width."""
        head = f"{at}/5 {what:<8} {subject[:20]:<20}  "
        sys.stdout.write(f"{head}{text[: WIDTH - len(head) - 5]:<{WIDTH - len(head) - 5}} ")
        tones: dict[str, Tone] = {"PASS": "good", "ok": "good", "FAIL": "bad"}
        if verdict:
            write_in(sys.stdout, tones[verdict], f"{verdict:>4}")
        print(flush=True)

    def make(self) -> None:
        if not self.model.exists():
            redraw = [sys.executable, str(ROOT / "zoo/redraw.py"), "--out", str(self.out)]
            self.run([*redraw, "resnet50"], [*redraw, "resnet50"])
        nodes = onnx.load(self.model, load_external_data=False).graph.node
        self.anchors = {n.name for n in nodes if n.op_type in ANCHORS}
        self.step(1, "model", self.model.name, f"{_bytes(self.model)}, {len(nodes)} nodes")

    def compile(self) -> None:
        start = time.perf_counter()
        self.driver("compile", "-o", str(self.file(".mxr")))
        took = time.perf_counter() - start
        listing = self.driver("compile")  # from the cache
        self.file(".txt").write_text(listing)
        kernels = len(re.findall(r" = cpu::", listing))
        text = f"{took:.1f} s, {kernels} kernels, now cached"
        self.step(2, "compile", "cpu", text, "ok")

    def verify(self, at: int, against: str, *options: str) -> None:
        found = json.loads(self.driver("verify", "--json", *options))
        worst = max(found["outputs"], key=lambda o: float(o["rms"]))
        text = f"rms error {float(worst['rms']):.2g}, limit {worst['limits']['rms']:g}"
        self.step(at, "verify", f"against {against}", text, "PASS" if found["passed"] else "FAIL")

    def time(self) -> None:
        found = json.loads(self.driver("perf", "--json", "--ort", "-n", "5"))
        both = found["onnxruntime"]
        ours, theirs = both["ms"], both["onnxruntime_ms"]
        text = f"{ours:.3g} ms median, p95 {both['p95_ms']:.3g} ms, {1e3 / ours:.3g} calls/s"
        self.step(5, "time", "calls in blocks", text)
        text = f"{theirs:.3g} ms median, no ratio: the machine is busy"
        if both["ratio"] is not None:
            interval = f"{both['low']:.2f}-{both['high']:.2f}"
            text = f"{theirs:.3g} ms, ours takes {both['ratio']:.2f} of it ({interval})"
        print(f"{'    onnxruntime, same threads':<35}{text}"[:WIDTH])
        slowest = sorted(found["kernels"], key=lambda k: -k["ms"])[:3]
        names = [f"{self.layer(k)} {100 * k['ms'] / found['kernels_ms']:.0f} %" for k in slowest]
        while names and len(f"    slowest: {', '.join(names)}") > WIDTH:
            names.pop()
        print(f"    slowest: {', '.join(names)}")

    def layer(self, kernel: dict[str, Any]) -> str:
        """Return the node that a kernel is named after: its convolution or matmul, else its
        first.
        """
        nodes = kernel["nodes"] or [kernel["name"]]
        return next((n for n in nodes if n in self.anchors), nodes[0])

    def files(self) -> None:
        page = self.file(".html")
        self.driver("report", "-n", "5", "-o", str(page))
        made = f"{self.file('.mxr').name} (code), {page.name} (open it), {self.file('.txt').name}"
        print(f"Files in {os.path.relpath(self.out)}: {made}"[:WIDTH])
        model = os.path.relpath(self.model)
        print(f"Next:  mgx-driver compile {model} --gpu --arch gfx942"[:WIDTH])
        # not --fp16: values of this model are beyond its range
        print(f"       mgx-driver verify {model} --cpu --bf16"[:WIDTH])
        print(f"       mgx-driver run {model} --cpu --save-outputs y.npz"[:WIDTH])
        print("       docs/index.md lists the documentation"[:WIDTH])


def _bytes(path: Path) -> str:
    size = path.stat().st_size
    return f"{size / 1e6:.0f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", default="models", help="folder of the files (default: models)")
    parser.add_argument("--model", help="an ONNX file of yours (default: ResNet-50 is made)")
    parser.add_argument("--print", action="store_true", help="print what the commands print, too")
    given = parser.parse_args()
    out = Path(given.out)
    out.mkdir(parents=True, exist_ok=True)
    model = Path(given.model) if given.model else out / "light_resnet50.onnx"
    demo = Demo(model, out, given.print)
    try:
        demo.heading()
        demo.make()
        demo.compile()
        demo.verify(3, "numpy")
        demo.verify(4, "onnxruntime", "--ort")
        demo.time()
        demo.files()
    except FailedError as e:
        return int(e.args[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
