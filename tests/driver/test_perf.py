"""perf, time and roctx: reports, traces, comparisons, and ranges that a profiler sees."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mgx_mlir.compiler.models import read_model
from mgx_mlir.debug.engine_times import Block, EngineTimes, time_engines
from mgx_mlir.debug.peaks import Peaks, machine_peaks
from mgx_mlir.debug.work import Work, work_of
from mgx_mlir.programs.program_ir import entry_block
from mgx_mlir.tools.driver.beside_onnxruntime import OURS, THEIRS, BesideOnnxruntime
from mgx_mlir.tools.driver.call_times import Calls
from mgx_mlir.tools.driver.perf_report import (
    OtherRun,
    Performance,
    compare_runs,
    comparison_lines,
    performance_json,
    rates_of,
    read_report,
    table_lines,
)
from mgx_mlir.tools.driver.timing import Kernels, Line
from mgx_mlir.tools.driver.trace_file import trace_json
from tests.driver.conftest import Driver

PEAKS = Peaks(2, 10.0, 100.0)


@pytest.fixture(autouse=True)
def _known_peaks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # tests of other files keep what this machine reaches
    monkeypatch.setattr("mgx_mlir.debug.peaks._file", lambda n: tmp_path / "peaks" / f"{n}.json")
    monkeypatch.setattr("mgx_mlir.debug.peaks._measure", lambda threads: Peaks(threads, 10, 100))


def performance(kernels: list[Line], times: tuple[float, ...] = (2.0, 2.0, 3.0)) -> Performance:
    spans = tuple((10.0 * i, t) for i, t in enumerate(times))
    found = Kernels("means", kernels)
    return Performance("m", "cpu", 2, 1, Calls(tuple(sorted(times)), spans), found, PEAKS)


def line(name: str, ms: float, **more: Any) -> Line:
    return Line(f"@0 = {name}()", ms, name, name, **more)


# ---- work ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "operations", "nbytes"),
    [
        ('"migraphx.dot"(%a, %b) : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>',
         2 * 2 * 3 * 4 * 5, 4 * (24 + 40 + 30)),
        ('"migraphx.add"(%a, %a) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>',
         24, 4 * (24 + 24)),
        ('"migraphx.reduce_sum"(%a) {axes = array<i64: 2>} : (tensor<2x3x4xf32>) -> '
         "tensor<2x3x1xf32>", 24, 4 * (24 + 6)),
        ('"migraphx.transpose"(%a) {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> '
         "tensor<4x2x3xf32>", 0, 4 * 48),
        ('"migraphx.convolution"(%x, %w) {padding = array<i64: 0, 0>} : (tensor<1x4x6x6xf32>, '
         "tensor<8x4x3x3xf32>) -> tensor<1x8x4x4xf32>",
         2 * 8 * 4 * 4 * (4 * 3 * 3), 4 * (144 + 288 + 128)),
    ],
    ids=["dot", "add", "reduce", "view", "convolution"],
)  # fmt: skip
def test_what_an_instruction_has_to_do(
    tmp_path: Path, body: str, operations: int, nbytes: int
) -> None:
    result = body.rsplit(" -> ", 1)[1]
    arguments = (
        "%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>, %x: tensor<1x4x6x6xf32>, "
        "%w: tensor<8x4x3x3xf32>"
    )
    text = f"func.func @main({arguments}) -> {result} {{\n %0 = {body}\n return %0 : {result}\n}}\n"
    (tmp_path / "m.mlir").write_text(text)
    program = read_model(tmp_path / "m.mlir")
    with program.ctx:
        found = work_of(next(iter(entry_block(program.main()).operations)).operation)
    assert (found.operations, found.bytes) == (operations, nbytes)


def test_rates_and_their_share_of_the_peaks() -> None:
    row = line("k", 4.0, work=Work(10_000_000, 100_000_000))
    p = performance([row, line("unknown", 4.0)])
    assert p.kernels is not None
    rates = rates_of(row)
    assert rates.gb_s == pytest.approx(2.5)
    assert rates.gflop_s == pytest.approx(25)
    head, first, second, last = table_lines(p.kernels, PEAKS)
    assert head.split()[-1] == "kernel"
    assert first.split() == ["4", "50%", "10", "100", "2.5", "25%", "25", "25%", "k"]
    assert second.split() == ["4", "50%", "-", "-", "-", "-", "-", "-", "unknown"]
    assert "2 threads: 10 GB/s from memory, 100 GFLOP/s in f32" in last


def test_a_share_below_half_a_percent_is_not_rounded_up() -> None:
    p = performance([line("large", 9.9), line("small", 0.06), line("tiny", 0.04)])
    assert p.kernels is not None
    rows = table_lines(p.kernels, None)[1:]
    assert [row.split()[1] for row in rows] == ["99%", "1%", "<1%"]


def test_peaks_are_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGX_CACHE_DIR", str(tmp_path))
    calls = []

    def measure(threads: int) -> Peaks:
        calls.append(threads)
        return Peaks(threads, 1.0, 2.0)

    monkeypatch.setattr("mgx_mlir.debug.peaks._measure", measure)
    assert machine_peaks(3) == machine_peaks(3) == Peaks(3, 1.0, 2.0)
    assert calls == [3]
    assert machine_peaks(3, least=Peaks(3, 0.5, 4.0)) == Peaks(3, 1.0, 4.0)
    (kept,) = tmp_path.rglob("peaks/*.json")
    for damaged in ("", "[]", '{"threads": 3, "gb_s": -1, "gflop_s": 2}', '{"gb_s": "x"}'):
        kept.write_text(damaged)
        assert machine_peaks(3) == Peaks(3, 1.0, 2.0)
    assert len(calls) == 6
    # a kernel that always exceeds them does not have them measured at each run
    for _ in range(5):
        machine_peaks(3, least=Peaks(3, 0.5, 1.0))
    assert len(calls) == 8


@pytest.mark.slow
def test_the_measured_peaks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("MGX_CACHE_DIR", str(tmp_path))
    found = machine_peaks(1)
    # numpy's own sum of two arrays, and its dot, which are near what can be reached
    x = np.ones(1 << 24, np.float32)
    y, out = x.copy(), np.empty_like(x)
    assert found.gb_s > 0.3 * rate(lambda: np.add(x, y, out=out), 3 * x.nbytes)
    a = np.ones((512, 512), np.float32)
    assert found.gflop_s > 0.3 * rate(lambda: a @ a, 2 * 512**3)


def rate(call: Callable[[], object], amount: float) -> float:
    """10**9 of something a second, at best, by the processor's time."""
    call()
    times = []
    for _ in range(10):
        start = time.thread_time()
        call()
        times.append(time.thread_time() - start)
    return amount / min(times) / 1e9


# ---- the command ---------------------------------------------------------------------------------


@pytest.mark.parametrize("option", [("--dim-param", "@n"), ("--default-dyn-dim",)])
def test_a_dynamic_program_is_timed_at_a_size(
    driver: Driver, models: Path, option: tuple[str, ...]
) -> None:
    """The program that is measured takes every size; its inputs have the size that is asked for."""
    common = ("perf", "--cpu", models / "open.onnx", "-n", 2, "--threads", 1)
    ran = driver(*common, *option, "{min:2, max:8}", "--input-dim", "@x", 7, 3)
    assert ran.status == 0
    assert any("dynamic, float_type, {[2..8], 3}" in line for line in ran.lines)
    ran = driver(*common, *option, "{min:2, max:8}", "--input-dim", "@x", 9, 3)
    assert ran.status == 2
    assert "input 'x' dim 0 expected [2..8], got 9" in ran.err


def test_json(driver: Driver, models: Path, tmp_path: Path) -> None:
    ran = driver("perf", "--cpu", models / "mnist.onnx", "--threads", 1, "-n", 5, "--json")
    assert ran.status == 0
    found = json.loads(ran.out)
    assert found["report"] == "mgx-driver perf 1"
    assert (found["target"], found["threads"], found["iterations"]) == ("cpu", 1, 5)
    assert found["calls"]["min_ms"] <= found["total_ms"] <= found["calls"]["max_ms"]
    assert found["rate_per_s"] == pytest.approx(1e3 / found["total_ms"])
    names = [k["group"] for k in found["kernels"]]
    assert names[:3] == ["cpu::dot_add_relu", "cpu::dot_add", "cpu::softmax"]
    first = found["kernels"][0]
    assert first["operations"] == 2 * 784 * 128 + 2 * 128
    assert first["bytes"] == 4 * (784 + 784 * 128 + 128 + 128)
    assert first["gb_s"] == pytest.approx(first["bytes"] / first["ms"] / 1e6)
    assert first["bandwidth_share"] == pytest.approx(first["gb_s"] / 10)
    assert found["kernels_ms"] == pytest.approx(sum(k["ms"] for k in found["kernels"]))
    memory = found["memory"]
    weights = 4 * (784 * 128 + 128 + 1280)
    filled = 4 * (784 * 144 + 144 + 3840)  # columns fill up panels of up to 48, by the processor
    assert weights <= memory["weights"] <= filled
    assert memory["transient"] > 0
    assert memory["peak"] > memory["weights"]
    # into a file
    path = tmp_path / "r.json"
    ran = driver("perf", "--ref", "--test", "-n", 2, "--json", "-o", path)
    assert (ran.status, ran.out) == (0, "")
    assert json.loads(path.read_text())["kernels"][0]["group"] == "ref::dot"


def test_beside_onnxruntime(driver: Driver, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "mgx_mlir.tools.driver.beside_onnxruntime"
    monkeypatch.setattr(f"{module}.time_engines", partial(time_engines, block=0.01, rounds=2))
    common = ("perf", "--cpu", models / "mnist.onnx", "--threads", 1, "-n", 2, "--ort")
    found = json.loads(driver(*common, "--json").out)["onnxruntime"]
    assert (found["version"], found["threads"], found["clock"]) == (
        version("onnxruntime"),
        1,
        "cpu",
    )
    assert found["blocks"] == 2
    assert all(0 < found[name] < 100 for name in ("ms", "p95_ms", "onnxruntime_ms"))
    assert (found["ratio"] is None) == bool(found["problem"])
    [line] = [n for n in driver(*common).lines if n.startswith("Beside onnxruntime")]
    assert line.startswith("Beside onnxruntime (1 thread, medians of CPU time): ")
    assert f" of onnxruntime {version('onnxruntime')}, " in line


def test_a_ratio_or_its_absence() -> None:
    def blocks(seconds: float, waited: float = 0.0) -> list[Block]:
        return [Block(seconds, (seconds,), waited)] * 6

    times = EngineTimes("wall", {THEIRS: blocks(0.02), OURS: blocks(0.01)})
    found = BesideOnnxruntime("1.2", 2, times)
    assert found.lines() == [
        "Beside onnxruntime (2 threads, medians): 10ms beside 20ms of onnxruntime 1.2, "
        "takes 0.50 (0.50 to 0.50) of it by 6 blocks of each"
    ]
    assert found.json()["ratio"] == 0.5
    times.blocks[OURS] = blocks(0.01, waited=1.0)
    assert "no ratio: other programs use the cores" in found.lines()[0]
    told = found.json()
    assert (told["ratio"], told["blocks"], told["disturbed_blocks"]) == (None, 0, 6)
    assert told["problem"].startswith("other programs use the cores")


def test_what_has_no_onnxruntime_beside_it(driver: Driver, models: Path, tmp_path: Path) -> None:
    ran = driver("perf", "--ref", models / "mnist.onnx", "--ort")
    assert (ran.status, "option '--ort' is for --cpu, the target is ref" in ran.err) == (2, True)
    ran = driver("perf", "--cpu", "--test", "--ort")
    assert (ran.status, "option '--ort' needs an ONNX model" in ran.err) == (2, True)


def test_detailed_groups(driver: Driver, models: Path) -> None:
    ran = driver("perf", "--cpu", models / "mnist.onnx", "--threads", 1, "-n", 2, "-d")
    assert "cpu::dot_add_relu<float_type(1x784, 784x128, 1x128)>: " in ran.out


def test_compare(driver: Driver, tmp_path: Path) -> None:
    path = tmp_path / "before.json"
    assert driver("perf", "--ref", "--test", "-n", 3, "--json", "-o", path).status == 0
    before = json.loads(path.read_text())
    before["total_ms"] *= 1000
    path.write_text(json.dumps(before))
    ran = driver("perf", "--ref", "--test", "-n", 3, "--compare", path)
    assert ran.status == 0
    assert ran.lines[-1] == "Not slower than allowed (1.10x)"
    assert f"Compared with {path}:" in ran.lines
    before["total_ms"] /= 1e6
    path.write_text(json.dumps(before))
    ran = driver("perf", "--ref", "--test", "-n", 3, "--compare", path, "--threshold", 50)
    assert ran.status == 1
    assert ran.lines[-1] == "Slower than allowed (1.50x)"
    ran = driver("perf", "--ref", "--test", "-n", 3, "--compare", path, "--json")
    assert ran.status == 1
    assert json.loads(ran.out)["compared"]["slower"] is True
    assert driver("perf", "--ref", "--test", "--threshold", 5).status == 2


def test_kernels_are_compared_by_name() -> None:
    this = performance([line("a", 2.0), line("b", 1.0), line("a", 4.0), line("new", 1.0)])
    other = performance([line("a", 1.0), line("a", 8.0), line("gone", 1.0), line("b", 0.0)])
    rows = performance_json(other)
    held = OtherRun(rows["total_ms"], tuple((k["name"], k["ms"]) for k in rows["kernels"]))
    found = compare_runs(this, held)
    assert found.ratio == pytest.approx(1.0)
    assert found.kernels == (
        ("a", 2.0, 1.0), ("b", 1.0, 0.0), ("a", 4.0, 8.0), ("new", 1.0, None), ("gone", None, 1.0),
    )  # fmt: skip
    text = comparison_lines(found, this, held, "x.json")
    assert [row.split()[2] for row in text[2:-1]] == ["2.00x", "-", "0.50x", "-", "-"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"{}", b'{"report": "mgx-driver perf 1"}', b"[" * 100_000,
     b'{"report": "mgx-driver perf 1", "total_ms": "x"}',
     b'{"report": "mgx-driver perf 1", "total_ms": NaN}',
     b'{"report": "mgx-driver perf 1", "total_ms": 0}',
     b'{"report": "mgx-driver perf 1", "total_ms": 1, "kernels": 3}',
     b'{"report": "mgx-driver perf 1", "total_ms": 1, "kernels": [{"name": "x"}]}',
     b'{"report": "mgx-driver perf 1", "total_ms": 1, "kernels": [1]}'],
)  # fmt: skip
def test_damaged_reports(driver: Driver, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r.json").write_bytes(content)
    ran = driver("perf", "--ref", "--test", "--compare", tmp_path / "r.json")
    assert (ran.status, ran.out) == (2, "")
    assert len(ran.errors) == 1
    assert ran.errors[0].startswith(f"{tmp_path / 'r.json'}: error: ")


def test_report_that_is_read(tmp_path: Path) -> None:
    p = performance([line("a", 2.0)])
    (tmp_path / "r.json").write_text(json.dumps(performance_json(p)))
    found = read_report(str(tmp_path / "r.json"))
    assert (found.total_ms, found.kernels) == (p.calls.total, (("a", 2.0),))


# ---- traces --------------------------------------------------------------------------------------


def test_trace(driver: Driver, models: Path, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    ran = driver(
        "perf", "--cpu", models / "mnist.onnx", "--threads", 1, "-n", 4, "--trace", path, "--json"
    )
    assert ran.status == 0
    report = json.loads(ran.out)
    events = json.loads(path.read_text())["traceEvents"]
    whole = [e for e in events if e["ph"] == "X"]
    calls = [e for e in whole if e["cat"] == "call"]
    assert [e["name"] for e in calls] == [f"call {i}" for i in range(4)]
    assert max(e["dur"] for e in calls) == pytest.approx(report["calls"]["max_ms"] * 1e3)
    for a, b in itertools.pairwise(calls):
        assert a["ts"] + a["dur"] <= b["ts"]
    kernels = [e for e in whole if e["cat"] == "kernel"]
    (outer,) = [e for e in whole if e["cat"] == "kernels"]
    assert [e["dur"] for e in kernels] == pytest.approx([k["ms"] * 1e3 for k in report["kernels"]])
    assert nested(outer, kernels)
    assert outer["dur"] == pytest.approx(report["kernels_ms"] * 1e3)


def nested(outer: dict[str, Any], inner: list[dict[str, Any]]) -> bool:
    """Return whether events lie in another, one after the other."""
    slack = 1e-6
    at = outer["ts"]
    for e in inner:
        if e["tid"] != outer["tid"] or e["ts"] < at - slack:
            return False
        at = e["ts"] + e["dur"]
    return at <= outer["ts"] + outer["dur"] + slack


def test_kernels_follow_one_another_in_a_trace() -> None:
    found = trace_json(performance([line("a", 2.0), line("b", 4.0)]))
    kernels = [e for e in found["traceEvents"] if e.get("cat") == "kernel"]
    assert [(e["ts"], e["dur"]) for e in kernels] == [(0.0, 2000.0), (2000.0, 4000.0)]


# ---- time and roctx ------------------------------------------------------------------------------


def test_time(driver: Driver, models: Path) -> None:
    ran = driver("time", "--cpu", models / "mnist.onnx", "-n", 3)
    assert ran.status == 0
    assert re.match(r"Total time: [\d.e-]+ms$", ran.lines[-1])
    assert "cpu::dot_add_relu" in ran.out


def test_roctx_without_the_library(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise OSError("not there")

    monkeypatch.setattr("ctypes.CDLL", missing)
    ran = driver("roctx", "--ref", "--test")
    assert (ran.status, ran.out) == (2, "")
    assert ran.errors[-2:] == [
        "error: libroctx64.so cannot be loaded: not there",
        "note: it is part of ROCm's roctracer; perf --trace needs no library",
    ]


_ROCTX = """
#include <stdio.h>
#include <stdlib.h>
static void said(const char *what, const char *text) {
  FILE *f = fopen(getenv("ROCTX_LOG"), "a");
  fprintf(f, "%s %s\\n", what, text);
  fclose(f);
}
int roctxRangePushA(const char *m) { said("push", m); return 0; }
int roctxRangePop(void) { said("pop", ""); return 0; }
unsigned long roctxRangeStartA(const char *m) { said("start", m); return 7; }
void roctxRangeStop(unsigned long id) { said("stop", id == 7 ? "7" : "?"); }
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_roctx_ranges(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ctypes

    (tmp_path / "r.c").write_text(_ROCTX)
    library = tmp_path / "libroctx64.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "r.c"], check=True)
    whole = ctypes.CDLL
    monkeypatch.setattr(
        "ctypes.CDLL", lambda name, *a, **k: whole(str(library) if "roctx" in str(name) else name)
    )
    log = tmp_path / "log"
    ctypes.CDLL("libc.so.6").setenv(b"ROCTX_LOG", str(log).encode(), 1)
    ran = driver("roctx", "--ref", "--test")
    assert ran.status == 0
    assert log.read_text().splitlines() == [
        "start 0", "push Marker start: ref::dot", "pop ", "stop 7",
    ]  # fmt: skip
    log.unlink()
    assert driver("roctx", "--cpu", "--test").status == 0
    assert log.read_text().splitlines() == ["start 0", "stop 7"]


def test_calls_keep_their_order() -> None:
    from mgx_mlir.tools.driver.call_times import time_calls

    class Program:
        def execute(self, arrays: object) -> None:
            np.ones(1000).sum()

    found = time_calls(Program(), [], 4)
    assert tuple(sorted(d for _, d in found.spans)) == found.times
    assert [s for s, _ in found.spans] == sorted(s for s, _ in found.spans)
