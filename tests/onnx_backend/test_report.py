"""The backend report: what it calls passed and wrong, and that other engines are out of reach."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from mgx_mlir.integrations.backend_report import main, results
from mgx_mlir.integrations.backend_report.cases import FORMS, Case, as_case
from mgx_mlir.integrations.backend_report.pool import ROOT, environment

HERE = Path(__file__).resolve().parent
ONE = np.ones(3, np.float32)


def case(*expected: object) -> Case:
    return Case("test_x", "node", b"", [([], list(expected))], 1e-3, 1e-7)


def answer(*outputs: object, **more: object) -> dict:
    return {"outputs": [list(outputs)], "reference_calls": [], **more}


def error(kinds: list[str], text: str, stage: str = "compile") -> dict:
    fields = {"error": text, "kinds": kinds, "stage": stage, "trace": ""}
    return {"reference_calls": [], **fields}


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (answer(ONE), "passed"),
        (answer(ONE * np.float32(1.0005)), "passed"),
        (answer(ONE * np.float32(1.002)), "wrong"),
        (answer(ONE.astype(np.float64)), "wrong"),
        (answer(ONE.reshape(1, 3)), "wrong"),
        (answer(), "wrong"),
        (answer(ONE, reference_calls=["add"]), "wrong"),
        (error(["UnsupportedModel", "ModelError", "MgxError"], "no importer"), "unsupported"),
        (error(["CompileError", "MgxError"], "'migraphx.gru' op has no lowering"), "unsupported"),
        (error(["CompileError", "MgxError"], "iree-compile failed"), "error"),
        (error(["KeyError"], "x"), "error"),
        ({"status": "timed out", "detail": ""}, "timed out"),
        ({"status": "crashed", "detail": ""}, "crashed"),
    ],
)
def test_judge(given: dict, status: str) -> None:
    given.setdefault("reference_calls", [])
    assert results.judge(case(ONE), given)[0] == status


def test_other_engines_cannot_be_imported() -> None:
    """In the worker's environment, and in a Python that it starts."""
    script = (
        "import subprocess, sys\n"
        "for name in ('onnx.reference', 'onnxruntime'):\n"
        "    try: __import__(name)\n"
        "    except ImportError as e: assert 'blocked' in str(e), e\n"
        "    else: sys.exit(name)\n"
        "if len(sys.argv) == 1: sys.exit(subprocess.call([sys.executable, __file__, 'inner']))\n"
    )
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"mgx_block_{os.getpid()}.py"
    path.write_text(script)
    try:
        done = subprocess.run([sys.executable, str(path)], env=environment(), capture_output=True)
    finally:
        path.unlink()
    assert done.returncode == 0, done.stderr.decode()


def test_regressions_are_named(tmp_path: Path) -> None:
    before = [
        {"name": n, "kind": "node", "form": FORMS[0], "status": "passed", "detail": ""}
        for n in ("a", "b")
    ]
    results.write_json(tmp_path / "before.json", before, 1.0, "cpu")
    after = [dict(before[0]), dict(before[1], status="error")]
    assert results.regressions(after, tmp_path / "before.json") == ["b: passed before, now error"]


def test_lists_are_compared_element_by_element() -> None:
    expected = [[np.float32(0), ONE], None]
    good = [[np.array(0, np.float32), ONE], None]
    assert results.judge(case(*expected), answer(*good))[0] == "passed"
    for other in ([[np.float32(0)], None], [[ONE, ONE], None], [ONE, None], [good[0], ONE]):
        assert results.judge(case(*expected), answer(*other))[0] == "wrong"


def test_random_numbers_are_not_held_against_a_program() -> None:
    rows = [{"status": "wrong", "random": r, "name": f"{r}"} for r in (True, False)]
    assert [r["name"] for r in results.bad(rows)] == ["False"]


def made(*values: onnx.ValueInfoProto, op: str = "Identity") -> Case:
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", [*values], [])
    test = SimpleNamespace(
        name="t", model_dir=None, model=helper.make_model(graph), data_sets=[], rtol=0, atol=0
    )
    return as_case(test, "node")


def test_what_a_case_takes_is_told_apart() -> None:
    tensor = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    text = helper.make_tensor_sequence_value_info("x", TensorProto.STRING, None)
    listed = helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, None)
    forms = [made(tensor).form, made(listed).form, made(tensor, listed, text).form]
    assert forms == list(FORMS)
    assert made(tensor, op="Bernoulli").random
    assert not made(tensor).random


def test_lists_of_cases(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text("a  # why\n\n# b\n")
    rows = [{"name": n, "status": s} for n, s in (("a", "error"), ("c", "wrong"), ("d", "passed"))]
    assert main.remember(path, rows) == 1
    assert main.read_list(path) == ["a", "c"]


@pytest.mark.parametrize("drawn", [130, pytest.param(None, marks=pytest.mark.slow)])
def test_the_sample_and_every_case_that_ever_failed(tmp_path: Path, drawn: int | None) -> None:
    """Cases drawn once, and failed.txt; known.txt says which of them do not pass, and how.

    The whole sample of 400 takes minutes: it is a slow test, CI runs the first 130.
    """
    sample = tmp_path / "sample.txt"
    sample.write_text("\n".join(main.read_list(HERE / "sample.txt")[:drawn]))
    lists = [f"--list={name}" for name in (sample, HERE / "failed.txt")]
    report = tmp_path / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "mgx_mlir.backend_report", "--quiet", f"--json={report}", *lists],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    found = {c["name"]: c for c in json.loads(report.read_text())["cases"]}
    known = dict(line.split() for line in main.read_list(HERE / "known.txt"))
    wrong = [
        f"{name}: {c['status']}, expected {known.get(name, 'passed')}: {c['detail'][:300]}"
        for name, c in found.items()
        if c["status"] not in ("passed", known.get(name))
    ]
    assert not wrong, "\n".join(wrong)
    assert len(found) >= (drawn or 400), done.stdout
