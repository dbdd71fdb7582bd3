"""Runs all GPU checks and benchmarks in one command, and writes one file to send.

    python -m benchmarks.gpu_device                      # compile, run, write gpu-device.json
    python -m benchmarks.gpu_device --prepare FOLDER --arch sm_90,gfx942      # anywhere
    python -m benchmarks.gpu_device --folder FOLDER      # on the machine with the GPU, no compiler
    python -m benchmarks.gpu_device --folder FOLDER --resume     # what the file lacks

Parts in their order: families, programs and edges (right or wrong), models (times beside torch),
launches, calls (what torch.compile costs), memory, torch, compiler (torch.compile and the APIs,
where the compiler is installed), sizes (drawn ones, TopK), doctor, faults; in parallel to them
sanitizer (NVIDIA's compute-sanitizer over kernel families). Each runs in its own process with a
time limit, and the file is written when it ends, so that a lost device or machine loses no earlier
result. 8 minutes at most, without the compile.
Exit code 0: all is right; 1: something is wrong, and the file says what; 2: there is no device.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mgx_mlir.hardware.machine import available_cpus
from mgx_mlir.targets.devices import gpu_devices, why_no_device

# time limit of each part in seconds, in the order of the run: the most wanted parts come first
LIMITS = {
    "sanitizer": 90, "families": 60, "programs": 60, "edges": 90, "models": 240, "launches": 40,
    "calls": 60, "memory": 60, "torch": 60, "compiler": 90, "sizes": 60, "doctor": 60, "faults": 30,
}  # fmt: skip
MOST = 480.0  # seconds of all parts
_LAST = 25.0  # seconds reserved for the last part
_LEAST = 5.0  # seconds of a part that starts after the limit
SANITIZED = ("gemm-f16-0", "softmax-f32-0", "layernorm-f16-0", "convolution-f16-0",
             "attention-f16-0", "bert-bf16-0")  # fmt: skip
_ROOT = Path(__file__).resolve().parents[1]


class Report:
    """The file: rows of each part, written anew after each."""

    def __init__(self, path: Path, arch: str, resumed: bool = False) -> None:
        self.path = path
        self.parts: dict[str, list[dict[str, Any]]] = {}
        if resumed and path.is_file():
            self.parts = json.loads(path.read_text())["parts"]
        self.head: dict[str, Any] = {
            "arch": arch, "date": time.strftime("%Y-%m-%d"), "python": platform.python_version(),
            "cpus": available_cpus(), **card(),
        }  # fmt: skip
        self._write()

    def lacks(self, part: str) -> bool:
        """Return whether a part was not run, or did not end by itself. Its cases are kept."""
        rows = self.parts.get(part, [])
        if rows and not any("ended" in row for row in rows):
            return False
        self.parts[part] = [row for row in rows if "case" in row and not row.get("error")]
        self._write()
        return True

    def add(self, part: str, rows: list[dict[str, Any]]) -> None:
        """Append the rows of a part."""
        self.parts.setdefault(part, []).extend(rows)
        self._write()

    def _write(self) -> None:
        self.path.write_text(json.dumps({**self.head, "parts": self.parts}, indent=0))


def card() -> dict[str, str]:
    """Return what the vendor's tool says of card and driver."""
    ask = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    for command in (ask, ["rocm-smi", "--showproductname", "--showdriverversion", "--csv"]):
        if shutil.which(command[0]):
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            return {"card": done.stdout.strip()[:400]}
    return {"card": ", ".join(d.name for d in gpu_devices())}


def ran(command: list[str], seconds: float) -> list[dict[str, Any]]:
    """Run a part; its rows, and how it ended where that was not well."""
    start, ended = time.monotonic(), ""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        try:
            done = subprocess.run(command, stdout=out, stderr=err, timeout=seconds, cwd=_ROOT)
            ended = f"status {done.returncode}" if done.returncode else ""
        except subprocess.TimeoutExpired:
            ended = f"not done in {seconds:.0f} s"
        out.seek(0)
        err.seek(0)
        rows = [json.loads(line) for line in out if line.startswith("{")]
        said = err.read().strip().splitlines()
    if ended:
        rows.append({"ended": ended, "said": said[-3:]})
    rows.append({"part_s": round(time.monotonic() - start, 1)})
    return rows


def sanitized(folder: Path, tool: str, seconds: float) -> list[dict[str, Any]]:
    """Run programs under compute-sanitizer, where there is one."""
    found = shutil.which("compute-sanitizer")
    if found is None:
        return [{"sanitizer": "not installed"}]
    files = [folder / "programs" / f"{name}.mxr" for name in SANITIZED]
    own = [sys.executable, "-m", "benchmarks.gpu_parts", "check", str(folder)]
    command = [found, "--tool", tool, "--error-exitcode", "9", *own,
               *(str(f) for f in files if f.is_file())]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, cwd=_ROOT)
    except subprocess.TimeoutExpired as e:
        text = (e.stdout or b"").decode(errors="replace")
        return [{"sanitizer": tool, "ended": f"not done in {seconds:.0f} s", "said": text[-400:]}]
    lines = [line for line in done.stdout.splitlines() if line.startswith("=====")]
    kinds = Counter(line for line in lines if "rogram hit" in line or "========= Invalid" in line)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    said = [f"{n} x {line}" for line, n in kinds.most_common(8)] + lines[-1:]
    return [{"sanitizer": tool, "status": done.returncode, "said": said, "ran": len(rows),
             "wrong": [r for r in rows if r.get("wrong") or r.get("error")]}]  # fmt: skip


def run(folder: Path, report: Report, parts: list[str], models: list[str], most: float) -> int:
    """Run the parts that the report lacks; the sanitizer, which slows programs down, beside."""
    start = time.monotonic()
    part = [sys.executable, "-m", "benchmarks.gpu_parts"]

    def left(name: str) -> float:
        return max(min(LIMITS[name], most - (time.monotonic() - start)), _LEAST)

    with ThreadPoolExecutor(3) as pool:
        slow: list[Future[list[dict[str, Any]]]] = []
        for name in [p for p in LIMITS if p in parts and report.lacks(p)]:
            limit = left(name)
            if name == "sanitizer":
                tools = ("memcheck", "racecheck", "initcheck")
                slow = [pool.submit(sanitized, folder, tool, limit) for tool in tools]
                continue
            if name == "models":
                timed(folder, report, models, max(limit - _LAST, _LEAST))
            elif name == "doctor":
                report.add("doctor", doctor(limit))
            elif name == "faults":  # runs last: on some drivers it makes the device unusable
                for tool in slow:
                    report.add("sanitizer", tool.result())
                slow = []
                report.add("faults", ran([*part, "faults", str(folder)], limit))
            else:
                known = [str(limit - 3), str(report.path)]
                report.add(name, ran([*part, name, str(folder), *known], limit + 5))
            print(f"{name}: {summary(report.parts[name])}", flush=True)
        for tool in slow:
            report.add("sanitizer", tool.result())
    report.add("all", [{"s": round(time.monotonic() - start, 1)}])
    rows = [row for each in report.parts.values() for row in each]
    return int(any(row.get("wrong") or row.get("error") for row in rows))


def timed(folder: Path, report: Report, models: list[str], limit: float) -> None:
    """Time networks, their compilers beside one another."""
    for stage in folder.glob("compiled-*"):
        shutil.rmtree(stage)
    part = [sys.executable, "-m", "benchmarks.gpu_parts", "models", str(folder)]
    each = [[*part, name, str(len(models))] for name in models]
    with ThreadPoolExecutor(max(len(models), 1)) as pool:
        for rows in pool.map(lambda command: ran(command, limit), each):
            report.add("models", rows)


def doctor(seconds: float) -> list[dict[str, Any]]:
    """Run mgx-driver doctor; its checks."""
    command = [sys.executable, "-m", "mgx_mlir.tools.driver.main", "doctor", "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, cwd=_ROOT)
        return list(json.loads(done.stdout)["checks"])
    except subprocess.TimeoutExpired:
        return [{"ended": f"not done in {seconds:.0f} s"}]
    except ValueError:
        return [{"ended": f"status {done.returncode}", "said": done.stderr[-600:]}]


def summary(rows: list[dict[str, Any]]) -> str:
    """Return the counts of a part in words."""
    of = Counter(
        "error" if row.get("error") else "wrong" if row.get("wrong") else "right"
        for row in rows
        if "wrong" in row or "error" in row
    )
    ended = next((row["ended"] for row in rows if "ended" in row), "")
    seconds = next((row["part_s"] for row in rows if "part_s" in row), 0)
    counts = ", ".join(f"{n} {what}" for what, n in sorted(of.items(), reverse=True))
    return f"{counts or 'no checks'} in {seconds} s{f'; {ended}' if ended else ''}"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--prepare", type=Path, metavar="FOLDER", help="compile into it, and end")
    parser.add_argument("--arch", help="what to compile for; by default the device's")
    parser.add_argument("--folder", type=Path, help="what was compiled ahead")
    parser.add_argument("--jobs", type=int, default=available_cpus(), help="compiles at once")
    parser.add_argument("--part", default=",".join(LIMITS), help="parts to run, with commas")
    parser.add_argument("--most", type=float, default=MOST, help="seconds of all parts together")
    parser.add_argument("--resume", action="store_true", help="run what the file lacks")
    parser.add_argument("--model", help="networks to time, with commas; by default all")
    parser.add_argument("-o", "--output", type=Path, default=Path("gpu-device.json"))
    options = parser.parse_args(argv)
    devices = gpu_devices()
    arch = options.arch or (devices[0].arch if devices else "")
    if options.prepare:
        return prepare(options.prepare, arch, options.jobs)
    if not devices:
        print(f"error: no GPU: {why_no_device()}", file=sys.stderr)
        return 2
    folder = options.folder
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="mgx-gpu-"))
        prepare(folder, arch, options.jobs)
    names = options.model.split(",") if options.model else None
    if names is None:
        stored = sorted(f.stem for f in (folder / "models").glob("*.mxr"))
        names = [name for name in stored if not name.startswith(("chain", "call"))]
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    parts = options.part.split(",")
    report = Report(options.output, arch, options.resume)
    return run(folder, report, parts, names, options.most)


def prepare(folder: Path, arch: str, jobs: int) -> int:
    """Compile all programs: each network in a process, and the others `jobs` at once."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "benchmarks.gpu_suite", str(folder), "--arch", arch]
    shares = [("models", i, 8) for i in range(8)]
    shares += [("families,programs,edges", i, jobs) for i in range(jobs)]
    each = [[*command, "--part", part, "--share", f"{i}/{n}"] for part, i, n in shares]
    with ThreadPoolExecutor(jobs) as pool:
        done = list(pool.map(lambda c: subprocess.run(c, cwd=_ROOT).returncode, each))
    return int(any(done))


if __name__ == "__main__":
    sys.exit(main())
