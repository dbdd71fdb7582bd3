"""Runs the installed onnx package's whole backend suite against mgx_mlir, and counts.

    python -m tests.onnx_backend.runner --target cpu --jobs 2 --json out.json --at-least 900

Cases run in worker processes (tests/onnx_backend/worker.py) under a time limit and a memory cap,
with onnx.reference and onnxruntime made to raise. Outputs come back here and are compared by the
suite's own function with the suite's own tolerances. Each case ends as one of STATUSES. Exit code:
0 nothing wrong or crashed and `--at-least` passed, 1 otherwise, 2 the suite could not run.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import pickle
import queue
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.onnx_backend.cases import KINDS, Case, read

STATUSES = ("passed", "wrong", "unsupported", "crashed", "timed out", "error")
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
Result = dict[str, Any]  # name, kind, status, detail, seconds


class Worker:
    """One worker process, restarted after a crash or a time-out."""

    def __init__(self, options: argparse.Namespace, log: Path) -> None:
        self.options, self.log = options, log
        self.process: subprocess.Popen[str] | None = None
        self.channel = -1

    def start(self) -> subprocess.Popen[str]:
        self.channel, write_end = os.pipe()
        environment = dict(os.environ)
        paths = [str(HERE / "block"), str(ROOT), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(p for p in paths if p)
        arguments = [str(write_end), self.options.target, str(self.options.threads)]
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.onnx_backend.worker",
                *arguments,
                str(self.options.memory_gb),
            ],
            stdin=subprocess.PIPE,
            stdout=self.log.open("ab"),
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env=environment,
            pass_fds=[write_end],
            start_new_session=True,  # so that its compile children die with it
        )
        os.close(write_end)
        return self.process

    def stop(self) -> None:
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.channel)
        self.process = None

    def run(self, path: Path) -> dict[str, Any]:
        """The worker's answer for a case, or {"status": "crashed" | "timed out", ...}."""
        process = self.process or self.start()
        start = self.log.stat().st_size if self.log.exists() else 0
        assert process.stdin is not None
        deadline = time.monotonic() + self.options.timeout
        try:
            process.stdin.write(f"{path}\n")
            process.stdin.flush()
            (size,) = struct.unpack("<Q", self.receive(8, deadline))
            return pickle.loads(self.receive(size, deadline))
        except TimeoutError:
            self.stop()
            return {"status": "timed out", "detail": f"more than {self.options.timeout} s"}
        except (EOFError, BrokenPipeError):
            code = process.wait()
            tail = self.log.read_bytes()[start:].decode(errors="replace")[-600:]
            self.stop()
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            return {"status": "crashed", "detail": f"{how}: {tail}"}

    def receive(self, size: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.channel], [], [], left)[0]:
                raise TimeoutError
            piece = os.read(self.channel, min(size - len(data), 1 << 20))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)


def judge(case: Case, answer: dict[str, Any]) -> tuple[str, str]:
    """(status, detail) of a worker's answer."""
    if "status" in answer:
        return answer["status"], answer["detail"]
    if answer["reference_calls"]:
        return "wrong", f"run called the reference of {answer['reference_calls'][0]}"
    if "error" in answer:
        kinds = answer["kinds"]
        if "UnsupportedModel" in kinds or (
            "CompileError" in kinds and "no lowering" in answer["error"]
        ):
            return "unsupported", answer["error"]
        detail = f"{answer['stage']}: {kinds[0]}: {answer['error']}"
        if "MgxError" not in kinds:
            detail += "\n" + answer["trace"]
        return "error", detail
    from onnx.backend.test.runner import Runner

    for (_, expected), got in zip(case.data_sets, answer["outputs"], strict=True):
        try:
            Runner.assert_similar_outputs(expected, got, rtol=case.rtol, atol=case.atol)
        except Exception as error:
            # an AssertionError, or what the suite's comparison raises on a value of another kind
            return "wrong", f"{type(error).__name__}: {str(error).strip()[:600]}"
    return "passed", ""


def run_all(paths: list[Path], options: argparse.Namespace, work: Path) -> list[Result]:
    """Every case over `--jobs` workers, in file order."""
    waiting: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for path in paths:
        waiting.put(path)
    results: list[Result] = []
    lock = threading.Lock()

    def serve(number: int) -> None:
        worker = Worker(options, work / f"worker{number}.log")
        try:
            while True:
                try:
                    path = waiting.get_nowait()
                except queue.Empty:
                    return
                case = read(path)
                start = time.monotonic()
                answer = worker.run(path)
                seconds = round(time.monotonic() - start, 3)
                with lock:
                    status, detail = judge(case, answer)
                    results.append(
                        {
                            "name": case.name,
                            "kind": case.kind,
                            "status": status,
                            "detail": detail,
                            "seconds": seconds,
                        }
                    )
                    progress(results, len(paths), options)
        finally:
            worker.stop()

    threads = [threading.Thread(target=serve, args=(n,)) for n in range(options.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(results, key=lambda r: (r["kind"], r["name"]))


def progress(results: list[Result], total: int, options: argparse.Namespace) -> None:
    last = results[-1]
    if last["status"] not in ("passed", "unsupported") and not options.quiet:
        first = last["detail"].splitlines()[0] if last["detail"] else ""
        print(f"\r{last['status']:>11}  {last['name']}: {first[:200]}", file=sys.stderr)
    if sys.stderr.isatty():
        print(f"\r{len(results)}/{total}", end="", file=sys.stderr, flush=True)


def count(results: list[Result]) -> dict[str, dict[str, int]]:
    """Status counts by group, and over all of them under "total"."""
    table = {
        kind: {s: sum(r["kind"] == kind and r["status"] == s for r in results) for s in STATUSES}
        for kind in KINDS
        if any(r["kind"] == kind for r in results)
    }
    table["total"] = {s: sum(r["status"] == s for r in results) for s in STATUSES}
    return table


def show(results: list[Result], seconds: float) -> None:
    print(f"{'':20}" + "".join(f"{status:>13}" for status in STATUSES))
    for kind, counts in count(results).items():
        print(f"{kind:20}" + "".join(f"{counts[status]:13}" for status in STATUSES))
    print(f"{len(results)} cases in {seconds:.0f} s")
    for status in ("unsupported", "error"):
        reasons = collections.Counter(reason(r["detail"]) for r in results if r["status"] == status)
        if reasons:
            print(f"\n{status}, most common reasons:")
            for text, number in reasons.most_common(25):
                print(f"  {number:4}  {text}")


def reason(detail: str) -> str:
    """The part of an error that is the same for many cases: its first note says most."""
    lines = [line.strip() for line in detail.splitlines() if line.strip()]
    line = next((line for line in lines[1:] if not line.startswith("note: skip")), "")
    if not line or line.startswith("Traceback"):
        line = lines[0] if lines else ""
    if operator := re.search(r"'migraphx\.\w+' op .*", line):
        line = operator[0]
    line = re.sub(r"^.*?error: |, first '.*$| +1 node", "", line)
    return re.sub(r"\(opset \d+\)", "", re.sub(r"\{[^}]*\}|\[[^]]*\]", "..", line))[:140]


def regressions(results: list[Result], earlier: Path) -> list[str]:
    """Cases that passed in an earlier run's JSON and do not any more."""
    before = {case["name"]: case["status"] for case in json.loads(earlier.read_text())["cases"]}
    return [
        f"{r['name']}: passed before, now {r['status']}"
        for r in results
        if before.get(r["name"]) == "passed" and r["status"] != "passed"
    ]


def write_json(path: Path, results: list[Result], seconds: float, target: str) -> None:
    import onnx

    content = {
        "onnx": onnx.__version__,
        "target": target,
        "seconds": round(seconds, 1),
        "counts": count(results),
        "cases": results,
    }
    temporary = path.with_suffix(path.suffix + ".tmp")
    temporary.write_text(json.dumps(content, indent=1))
    os.replace(temporary, path)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="threads of the compiled program")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one case")
    parser.add_argument("--memory-gb", type=float, default=12, help="address space of a process")
    parser.add_argument("-k", metavar="REGEX", default="", help="only the cases whose name matches")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this group")
    parser.add_argument("--every", type=int, default=1, help="every n-th case only")
    parser.add_argument("--at-least", type=int, default=0, help="cases that must pass")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--earlier", type=Path, help="a --json of before: name the regressions")
    parser.add_argument("--quiet", action="store_true", help="no line per failed case")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="mgx-backend-") as folder:
        work = Path(folder)
        collected = subprocess.run(
            [sys.executable, str(HERE / "cases.py"), str(work / "cases")],
            capture_output=True,
            text=True,
        )
        if collected.returncode:
            print(f"error: cannot collect the cases\n{collected.stderr}", file=sys.stderr)
            return 2
        paths = sorted((work / "cases").glob("*.pkl"))
        chosen = [
            path
            for path in paths
            if re.search(options.k, path.stem)
            and (not options.kind or path.name.split(".")[0] in options.kind)
        ][:: options.every]
        start = time.monotonic()
        results = run_all(chosen, options, work)
        seconds = time.monotonic() - start
    show(results, seconds)
    if options.json:
        write_json(options.json, results, seconds, options.target)
    lost = regressions(results, options.earlier) if options.earlier else []
    print("".join(f"regression: {line}\n" for line in lost), end="")
    total = count(results)["total"]
    bad = total["wrong"] + total["crashed"] + len(lost)
    if not bad and total["passed"] >= options.at_least:
        return 0
    print(f"not accepted: {bad} wrong, crashed or lost; {total['passed']} passed")
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
