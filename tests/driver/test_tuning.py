"""--exhaustive-tune: what is searched, the file that keeps it, and who reads it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from mgx_mlir.compiler.tuning import search, solutions
from mgx_mlir.compiler.tuning.solutions import Tuning
from mgx_mlir.core.errors import CompileError, FileError, UsageError
from mgx_mlir.passes.lowering.gpu.matmul import gemm_shape
from mgx_mlir.programs.signature import DimRange, Port, Signature
from mgx_mlir.targets.child import compiler_version
from tests.driver.conftest import Driver


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "t.json"
    monkeypatch.setenv("MIGRAPHX_PROBLEM_CACHE", str(path))
    monkeypatch.setenv("MIGRAPHX_BENCHMARKING_NRUNS", "3")
    return path


PROBLEM = {"name": "cpu::program", "problem": {"program": "p"}}


class Program:
    """A program that takes its time: `ms` by a clock of its own."""

    def __init__(self, clock: list[float], ms: float) -> None:
        self.clock, self.ms = clock, ms
        self.signature = Signature((), ())

    def execute(self, arrays: object) -> list[np.ndarray]:
        self.clock[0] += self.ms / 1e3
        return []


def searched(monkeypatch: pytest.MonkeyPatch, times: dict[str, float], **options: object):
    clock = [0.0]
    monkeypatch.setattr(search.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(search, "available_cpus", lambda: 2)

    def compile_with(choice: Tuning) -> Program:
        ms = times.get(str(choice))
        if ms is None:
            raise CompileError("it does not compile")
        return Program(clock, ms)

    return search.search(PROBLEM, "cpu", compile_with, inputs=lambda _: [], **options)


def test_the_fastest_is_kept(
    monkeypatch: pytest.MonkeyPatch, file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MIGRAPHX_TRACE_BENCHMARKING", "1")
    times = {
        "default": 10.0,
        "threads=1": 12.0,
        "vector_kernels=off": 9.0,
        "vector_kernels=off, opt_level=O3": 8.9,  # too little to count
        "vector_kernels=off, boundaries=off": 4.0,
    }
    best, found = searched(monkeypatch, times)
    assert best.ms == 4.0
    assert found.best == Tuning(vector_kernels=False, boundaries=False)
    assert [(str(t), None if ms is None else round(ms, 3)) for t, ms in found.tried] == [
        ("default", 10.0),
        ("threads=1", 12.0),
        ("vector_kernels=off", 9.0),
        ("vector_kernels=off, data_tiling=off", None),
        ("vector_kernels=off, opt_level=O3", 8.9),
        ("vector_kernels=off, boundaries=off", 4.0),
    ]
    assert found.lines()[0].startswith("Tuning: 6 choices searched")
    assert "  vector_kernels=off, boundaries=off: 4 ms (best)" in found.lines()
    assert "tuning: default 10 ms, threads=1 12 ms" in capfd.readouterr().err
    [[problem, solution]] = json.loads(file.read_text())
    assert problem == PROBLEM
    assert solution["vector_kernels"] is False
    assert solutions.lookup(PROBLEM) == found.best
    assert solutions.lookup({**PROBLEM, "name": "gpu::program"}) is None


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIGRAPHX_MLIR_TUNE_LIMIT", "2")
    _, found = searched(monkeypatch, {"default": 1.0, "threads=1": 2.0})
    assert len(found.tried) == 2
    # threads that were asked for are no choice
    monkeypatch.setenv("MIGRAPHX_MLIR_TUNE_LIMIT", "3")
    _, found = searched(monkeypatch, {"default": 1.0, "vector_kernels=off": 2.0}, threads=2)
    assert [str(t) for t, _ in found.tried] == ["default", "vector_kernels=off"]
    monkeypatch.setenv("MIGRAPHX_SKIP_BENCHMARKING", "1")
    _, found = searched(monkeypatch, {"default": 1.0})
    assert found.lines() == ["Tuning: using the default: MIGRAPHX_SKIP_BENCHMARKING is set"]
    with pytest.raises(UsageError, match="nothing can be tuned for ref"):
        search.search(PROBLEM, "ref", lambda _: None)


def test_a_newer_solution_replaces_an_older_one(file: Path) -> None:
    other = {"name": "cpu::program", "problem": {"program": "q"}}
    solutions.keep(PROBLEM, Tuning(opt_level="O3"))
    solutions.keep(other, Tuning(data_tiling=False))
    solutions.keep(PROBLEM, Tuning(threads=1))
    assert solutions.lookup(PROBLEM) == Tuning(threads=1)
    assert solutions.lookup(other) == Tuning(data_tiling=False)
    assert solutions.solutions() == 2


@pytest.mark.parametrize(
    "text", ["", "{", "3", '{"a": 1}', "[1]", "[[1]]", "[" * 100000, b"\xff\xfe\x00"]
)
def test_damaged_files(file: Path, text: str | bytes) -> None:
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FileError, match="cannot read the tuning file") as caught:
        solutions.lookup(PROBLEM)
    assert caught.value.location == str(file)


def test_a_damaged_file_in_the_cache_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("MIGRAPHX_PROBLEM_CACHE")
    monkeypatch.setenv("MGX_CACHE_DIR", str(tmp_path))
    (tmp_path / "tuning.json").write_text("{")
    assert solutions.lookup(PROBLEM) is None
    assert "cannot read the tuning file" in caplog.text
    solutions.keep(PROBLEM, Tuning(threads=1))
    assert solutions.lookup(PROBLEM) == Tuning(threads=1)


@pytest.mark.parametrize(
    "solution",
    [3, {"new": 1}, {"threads": -1}, {"threads": "2"}, {"opt_level": "O9"}, {"boundaries": 1}],
)
def test_solutions_of_other_versions_are_none(file: Path, solution: object) -> None:
    file.write_text(json.dumps([[PROBLEM, solution]]))
    assert solutions.lookup(PROBLEM) is None


def test_inputs_at_the_first_optimal_size() -> None:
    n = DimRange(2, 9, (4,), "n")
    ports = (
        Port("x", "float_type", (-1, 3), (n, DimRange(3, 3))),
        Port("i", "int64_type", (-1,), (DimRange(2, 9, (), "n"),)),
        Port("y", "half_type", (-1,), (DimRange(0, None),)),
    )
    x, i, y = search._drawn(Signature(ports, ()))
    assert (x.shape, i.shape, y.shape) == ((4, 3), (4,), (1,))
    assert (i == 1).all()
    assert (x.dtype, y.dtype) == (np.float32, np.float16)


# ---- files below one's own -------------------------------------------------------------------


def product(arch: str = "gfx942", us: float | None = 3.0, judged: str = "time", **more: object):
    """A row of a matmul, as store_matmuls writes it."""
    shape = gemm_shape.GemmShape("dot", "half_type", (64, 64, 64))
    config = gemm_shape.GemmConfig(None, 1)
    key = {
        "name": "gpu::product",
        "problem": {"arch": arch, "compiler": compiler_version(), **shape.to_json()},
    }
    key["problem"].update(more)
    return [key, {**config.to_json(), "us": us, "judged": judged}]


def test_files_below_are_read_and_one_s_own_counts_first(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below, lowest = tmp_path / "below.json", tmp_path / "lowest.json"
    monkeypatch.setenv("MGX_PROBLEM_CACHES", os.pathsep.join([str(below), str(lowest)]))
    assert solutions.layers() == [file, below, lowest]
    assert not solutions.is_kept()
    slow, fast = Tuning(opt_level="O3"), Tuning(threads=1)
    lowest.write_text(json.dumps([[PROBLEM, asdict(slow)], product()]))
    assert solutions.is_kept()
    assert solutions.lookup(PROBLEM) == slow
    assert len(solutions.stored_matmuls("gfx942")) == 1
    below.write_text(json.dumps([[PROBLEM, asdict(fast)]]))
    assert solutions.lookup(PROBLEM) == fast
    before = lowest.read_bytes(), below.read_bytes()
    solutions.keep(PROBLEM, Tuning())
    assert solutions.lookup(PROBLEM) == Tuning()
    assert (lowest.read_bytes(), below.read_bytes()) == before
    lowest.write_text("{")
    with pytest.raises(FileError, match="cannot read the tuning file"):
        solutions.stored_matmuls("gfx942")


def test_problems_are_checked_merged_and_converted(
    driver: Driver, file: Path, tmp_path: Path
) -> None:
    a, b, out = (tmp_path / f"{n}.json" for n in ("a", "b", "out"))
    a.write_text(json.dumps([product(judged="bound"), product("gfx950")]))
    b.write_text(json.dumps([product(), product("gfx1100", compiler="0.1")]))
    ran = driver("problems", "validate", "-i", a, b)
    assert (ran.status, ran.lines) == (
        0, [f"{a}: 2 usable", f"{b}: 1 usable, 1 of another IREE version"],
    )  # fmt: skip
    ran = driver("problems", "merge", "-i", a, b, "-o", out)
    assert ran.lines == [f"wrote 3 rows to {out}, of 2 files"]
    rows = json.loads(out.read_text())
    assert [r[1]["judged"] for r in rows] == ["time", "time", "time"]  # a time beats a bound
    ran = driver("problems", "convert", "-i", out, "-o", out)
    assert ran.lines == [f"wrote 3 rows to {out}, 1 of another IREE version"]
    taken = json.loads(out.read_text())[2]
    assert (taken[0]["problem"]["compiler"], taken[1]["judged"]) == (compiler_version(), "bound")
    out.write_text(json.dumps([product(), product(), [{"name": "x"}, 1]]))
    ran = driver("problems", "validate", "-i", out)
    assert ran.status == 1
    assert [line.partition(": ")[0] for line in ran.lines[1:]] == ["  row 1", "  row 2"]
    assert driver("problems", "list").lines == [f"{file}: not there"]
    for wrong in (["merge", "-i", a], ["convert", "-i", a, b, "-o", out], ["validate"], ["sort"]):
        assert driver("problems", *wrong).status == 2
    assert driver("problems", "validate", "-i", tmp_path / "none").status == 2
