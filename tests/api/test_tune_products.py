"""The search of how a program's matmuls are computed: judges, the file, compile."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from math import inf
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

import mgx_mlir
from mgx_mlir.compiler.models import read_model
from mgx_mlir.compiler.tuning import gemm_search
from mgx_mlir.compiler.tuning.cost_models import by_bound, race
from mgx_mlir.compiler.tuning.gemm_search import Found, product_kernels, search_products
from mgx_mlir.compiler.tuning.solutions import (
    Tuning,
    keep,
    solutions,
    store_matmuls,
    stored_matmuls,
)
from mgx_mlir.core.errors import CompileError
from mgx_mlir.passes.lowering.gpu.matmul.gemm_shape import (
    DOT,
    GemmConfig,
    GemmShape,
    alternatives,
    default,
)
from mgx_mlir.passes.lowering.gpu.matmul.tiles import MmaSchedule
from mgx_mlir.passes.pipelines import pipeline
from mgx_mlir.programs.lowered import Lowered
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.rewrite.passes import run_pipeline
from tests.lowering.programs import text_of
from tests.support.models import bytes_of, node

ARCH = "gfx942"


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "t.json"
    monkeypatch.setenv("MIGRAPHX_PROBLEM_CACHE", str(path))
    return path


def model(*layers: int, rows: int = 32) -> bytes:
    """Dots of these widths with activations between them, f16."""
    rng = np.random.default_rng(0)
    nodes, weights, value, kind = [], {}, "x", TensorProto.FLOAT16
    for i, (k, n) in enumerate(pairwise(layers)):
        weights[f"w{i}"] = (rng.standard_normal((k, n)) / k**0.5).astype(np.float16)
        nodes += [node("MatMul", f"{value} w{i}", f"m{i}"), node("Relu", f"m{i}", f"r{i}")]
        value = f"r{i}"
    ends = {"x": (kind, [rows, layers[0]])}, {value: (kind, [rows, layers[-1]])}
    return bytes_of(nodes, *ends, weights)


def fused(data: bytes) -> ProgramIR:
    program = read_model(data)
    run_pipeline(program.module, pipeline("gpu"), store=program.store)
    return program


def dot(m: int, n: int, k: int) -> GemmShape:
    return GemmShape(DOT, "half_type", (m, n, k))


def test_the_products_of_a_program() -> None:
    found = product_kernels(fused(model(64, 96, 64, 96, 64)), ARCH)
    assert list(found) == [dot(32, 96, 64), dot(32, 64, 96)]  # each once
    assert product_kernels(fused(model(64, 96, rows=1)), ARCH) == {}  # left to the compiler


class Judge:
    """Microseconds by choice, and what was asked; a choice without any does not compile."""

    def __init__(self, times: Mapping[int, float]) -> None:
        self.times, self.asked = times, []

    def __call__(self, lowered: Lowered, names: Sequence[str]) -> Mapping[str, float | None]:
        self.asked.append(len(names))
        found = {}
        for n in names:
            i = int(n.removeprefix("choice") or 0) if n != "main" else 0
            if self.times.get(i, 0.0) < 0:
                raise CompileError("it does not compile")
            found[n] = self.times.get(i, 9.0)
        return found


def test_the_quickest_is_kept_and_not_searched_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIGRAPHX_MLIR_TUNE_LIMIT", "3")
    program, judge = fused(model(64, 96)), Judge({0: 5.0, 1: 4.0, 2: 6.0})
    product = dot(32, 96, 64)
    choices = alternatives(ARCH, product, 3)
    found = search_products(program, ARCH, judge, "time")
    assert judge.asked == [3]
    assert found.found[0].tried == dict(zip(choices, (5.0, 4.0, 6.0), strict=True))
    assert stored_matmuls(ARCH) == {product: choices[1]}
    assert stored_matmuls("gfx1100") == {}
    assert "3 choices, each judged by a GPU's clock" in found.lines()[0]
    assert f"  dot 32x96x64 half_type: 5 us, {choices[1]}: 4 us" in found.lines()
    [[problem, solution]] = json.loads(file.read_text())
    assert problem["name"] == "gpu::product"
    assert (solution["us"], solution["judged"]) == (4.0, "time")
    again = search_products(program, ARCH, judge, "time")
    assert (len(judge.asked), again.known, again.found) == (1, 1, [])
    assert again.lines() == [f"Tuning: 1 matmuls are in {file}"]


def test_what_does_not_compile_costs_itself_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIGRAPHX_MLIR_TUNE_LIMIT", "4")
    asked = []

    def judge(lowered: Lowered, names: Sequence[str]) -> Mapping[str, float | None]:
        asked.append(len(names))
        if b"workgroup = [32, 32, 0]" in str_of(lowered):
            raise CompileError("it does not compile")
        return dict.fromkeys(names, 1.0)

    bad = GemmConfig(MmaSchedule((1, 2, 2), (1, 1, 1), 2))
    good = [GemmConfig(MmaSchedule((1, 1, n), (1, 1, 1), 2)) for n in (1, 2, 4)]
    monkeypatch.setattr(gemm_search, "alternatives", lambda *_: [good[0], bad, *good[1:]])
    found = search_products(fused(model(64, 96)), ARCH, judge, "bound").found[0]
    assert asked == [4, 2, 1, 1, 2]
    assert found.tried == {good[0]: 1.0, bad: None, good[1]: 1.0, good[2]: 1.0}
    assert found.best == good[0]


def str_of(lowered: Lowered) -> bytes:
    return text_of(lowered).encode()


def test_which_is_best() -> None:
    product = dot(32, 96, 64)
    tiles = [GemmConfig(MmaSchedule((1, 1, n), (1, 1, 1), 2)) for n in (1, 2, 4)]
    parts = GemmConfig(MmaSchedule((1, 1, 1), (1, 1, 1), 2), 4)

    def best(judged: str, *times: float | None) -> GemmConfig:
        return Found(product, dict(zip([*tiles, parts], times, strict=False)), judged).best

    assert best("bound", 5.0, 4.95, 6.0) == tiles[0]  # too little to count
    assert best("bound", 5.0, 3.0, 2.9) == tiles[2]
    assert best("bound", None, 3.0, None) == tiles[1]
    assert best("bound", inf, 3.0, inf) == tiles[1]
    assert best("bound", None, None, None) == tiles[0]
    # a launch more is a guess in a bound, but in a time
    assert best("bound", 5.0, 6.0, 6.0, 4.0) == tiles[0]
    assert best("bound", 5.0, 6.0, 6.0, 3.0) == parts
    assert best("time", 5.0, 6.0, 6.0, 4.0) == parts


def test_a_bound_does_not_replace_a_time(file: Path) -> None:
    product, other = dot(32, 96, 64), dot(8, 8, 8)
    timed, bound = GemmConfig(None), default(ARCH, product)
    store_matmuls(ARCH, {product: (timed, 3.0)}, "time")
    store_matmuls(ARCH, {product: (bound, 1.0), other: (bound, inf)}, "bound")
    assert stored_matmuls(ARCH) == {product: timed, other: bound}
    assert json.loads(file.read_text())[1][1]["us"] is None  # JSON has no infinity
    store_matmuls(ARCH, {product: (bound, 4.0)}, "time")
    assert stored_matmuls(ARCH)[product] == bound
    # rows of other kinds stay
    problem = {"name": "gpu::program", "problem": {"program": "p"}}
    keep(problem, Tuning(opt_level="O3"))
    store_matmuls("gfx1100", {product: (timed, 1.0)}, "time")
    assert solutions() == 4
    assert stored_matmuls(ARCH)[product] == bound


@pytest.mark.parametrize(
    "row",
    [
        [3, {}], [{"name": "gpu::product"}, {}], [{"name": "gpu::product", "problem": 3}, {}],
        [{"name": "gpu::product", "problem": {"arch": ARCH, "compiler": "3", "op": "dot"}}, {}],
        [{"name": ["gpu::product"], "problem": {}}, {"tile": None, "split": 1}],
    ],
)  # fmt: skip
def test_rows_of_others(file: Path, row: object) -> None:
    product = dot(32, 96, 64)
    store_matmuls(ARCH, {product: (GemmConfig(None), 1.0)}, "bound")
    rows = json.loads(file.read_text())
    file.write_text(json.dumps([row, *rows, [rows[0][0], {"tile": 7, "split": 1}]]))
    assert stored_matmuls(ARCH) == {product: GemmConfig(None)}
    # another version's entry for the same matmul is replaced
    store_matmuls(ARCH, {product: (GemmConfig(None), 2.0)}, "bound")
    assert len(json.loads(file.read_text())) == 2


def _keep(i: int) -> None:
    store_matmuls(ARCH, {dot(i, 8, 8): (GemmConfig(None), 1.0)}, "bound")


def test_processes_together() -> None:
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(_keep, range(2, 12)))
    assert len(stored_matmuls(ARCH)) == 10


def test_calls_in_turns() -> None:
    now, made = [0.0], []

    def call(name: str, takes: float):
        def made_by() -> None:
            made.append(name)
            now[0] += takes

        return made_by

    calls = [call("a", 1.0), call("b", 3.0)]
    assert race(calls, 10.0, lambda: now[0]) == [1.0, 3.0]
    assert made[:6] == ["a", "b", "a", "b", "a", "b"]
    assert len(made) == 2 * (1 + 5)


def test_a_compile_searches_without_a_device_and_the_next_one_uses_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search uses the bound of compiled code; the program then has the stored choice."""
    monkeypatch.setenv("MIGRAPHX_MLIR_TUNE_LIMIT", "3")
    data, product = model(64, 96), dot(32, 96, 64)
    found = mgx_mlir.compile(data, target="gpu", arch=ARCH, cache=False, exhaustive_tune=True)
    lines = found.stats.tuning
    assert "1 matmuls on gfx942, 3 choices, each judged by the bound of its code" in lines[0]
    assert set(stored_matmuls(ARCH)) == {product}
    two = GemmConfig(MmaSchedule((1, 1, 2), (1, 1, 2), 1))
    store_matmuls(ARCH, {product: (two, 1.0)}, "time")
    later = mgx_mlir.compile(data, target="gpu", arch=ARCH, cache=False)
    assert "1 known matmuls" in later.stats.tuning[0]
    from mgx_mlir.targets.report import gpu_report

    [kernel] = gpu_report(later.executable.vmfb).kernels
    assert kernel.workgroup == (128, 1, 1)
    file.unlink()
    plain = mgx_mlir.compile(data, target="gpu", arch=ARCH, cache=False)
    assert not plain.stats.tuning
    [kernel] = gpu_report(plain.executable.vmfb).kernels
    assert kernel.workgroup == (64, 1, 1)


def test_the_bound_knows_a_bad_choice() -> None:
    """A tile of which one workgroup has all the work takes longest."""
    product = dot(64, 64, 2048)
    slow, quick = GemmConfig(MmaSchedule((1, 4, 4), (1, 1, 1), 1)), default(ARCH, product)
    program = fused(model(2048, 64, rows=64))
    kernels = product_kernels(program, ARCH)
    times = gemm_search._costs(
        program, kernels, [(product, slow), (product, quick)], ARCH, by_bound(ARCH)
    )
    slow_us, quick_us = times[product, slow], times[product, quick]
    assert slow_us is not None
    assert quick_us is not None
    assert slow_us > 3 * quick_us
