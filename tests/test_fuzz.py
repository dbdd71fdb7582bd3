"""A share of the fuzzer's seeds (benchmarks/fuzz.py), and that the fuzzer finds what is wrong."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from benchmarks.fuzzing import special
from benchmarks.fuzzing.judge import FAULTS, WRONG, Finding, judged
from benchmarks.fuzzing.pool import Worker
from benchmarks.fuzzing.shrink import shrunk
from benchmarks.fuzzing.tasks import Task, case_of
from mgx_mlir.frontends.onnx import importer, registry
from mgx_mlir.programs.build import Builder

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.stop()


def faults(task: Task, worker: Worker) -> list[str]:
    answers, end, how = worker.run(task)
    found = [Finding(**a["finding"]) for a in answers if "finding" in a]
    assert found or end, f"seed {task.seed} was not judged"
    told = [f"{f.variant}: {f.kind} {f.message}" for f in found if f.kind in FAULTS]
    return [*told, *([f"{end}: {how}"] if end else [])]


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(s, marks=pytest.mark.slow) for s in range(8, 1008))]
)
def test_graphs_read_and_rewritten(seed: int, worker: Worker) -> None:
    assert not faults(Task(seed, ("ref", "passes", "shuffled")), worker)


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(s, marks=pytest.mark.slow) for s in range(3, 203))]
)
def test_graphs_compiled(seed: int, worker: Worker) -> None:
    assert not faults(Task(seed, ("cpu",) if seed < 3 else None), worker)


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(s, marks=pytest.mark.slow) for s in range(3, 203))]
)
def test_graphs_of_special_values(seed: int, worker: Worker) -> None:
    assert not faults(Task(seed, ("ref", "passes") if seed < 3 else None, special=True), worker)


def test_special_values_stay_away_from_what_the_document_leaves_dynamic() -> None:
    cases = [case_of(Task(seed, special=True)) for seed in range(6)]
    assert any(special.holds(list(c.feeds(0).values())) for c in cases)
    for case in cases:
        for step in (s for s in case.steps if s.node.op_type in special.contested()):
            read = [case.values[n].arrays[0] for n in step.node.input if n]
            assert not special.holds(read), step.node.op_type


def digest(seed: int) -> str:
    data = case_of(Task(seed)).model().SerializeToString(deterministic=True)
    return hashlib.sha256(data).hexdigest()


def test_a_seed_decides_the_graph() -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.test_fuzz import digest"
    code += "; print(digest(11))"
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    made = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert made.stdout.strip() == digest(11)


def test_a_wrong_operator_is_found_and_cut_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tanh that is one step of f32 wrong passes, one of 1e-3 does not, whatever is beside it."""
    seed = next(s for s in range(99) if {"Tanh"} < set(case_of(Task(s)).ops()))

    def off_by(error: float) -> Finding:
        def tanh(b: Builder, node: object, x: object) -> object:
            return b.mul(b.tanh(x), 1 + error)

        entry = registry.find("", "Tanh", 13)
        assert entry is not None
        wrong = registry.OnnxOp(**{**vars(entry), "function": tanh})
        monkeypatch.setattr(
            importer,
            "find",
            lambda d, n, v: wrong if (d, n) == ("", "Tanh") else registry.find(d, n, v),
        )
        return judged(case_of(Task(seed)), "ref")

    assert judged(case_of(Task(seed)), "ref").kind == "right"
    assert off_by(float(np.finfo(np.float32).eps)).kind != WRONG
    assert off_by(1e-3).kind == WRONG
    case = case_of(Task(seed))
    small = shrunk(
        Task(seed), len(case.steps), case.worlds, lambda t: judged(case_of(t), "ref").kind == WRONG
    )
    assert case_of(small).ops() == ["Tanh"]
