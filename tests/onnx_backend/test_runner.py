"""The suite's runner: what it calls passed and wrong, and that other engines are out of reach."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.onnx_backend import runner
from tests.onnx_backend.cases import Case

ROOT = Path(runner.__file__).resolve().parents[2]
ONE = np.ones(3, np.float32)


def case(*expected: np.ndarray) -> Case:
    return Case("test_x", "node", b"", [([], list(expected))], 1e-3, 1e-7)


def answer(*outputs: np.ndarray, **more: object) -> dict:
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
    assert runner.judge(case(ONE), given)[0] == status


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
        environment = {**os.environ, "PYTHONPATH": str(runner.HERE / "block")}
        done = subprocess.run([sys.executable, str(path)], env=environment, capture_output=True)
    finally:
        path.unlink()
    assert done.returncode == 0, done.stderr.decode()


def test_regressions_are_named(tmp_path: Path) -> None:
    before = [{"name": n, "kind": "node", "status": "passed", "detail": ""} for n in ("a", "b")]
    runner.write_json(tmp_path / "before.json", before, 1.0, "cpu")
    after = [dict(before[0]), dict(before[1], status="error")]
    assert runner.regressions(after, tmp_path / "before.json") == ["b: passed before, now error"]


def test_a_sample_of_the_suite(tmp_path: Path) -> None:
    """Every 40th case of the suite: none wrong, none crashed. The whole suite is the module's own
    command line (see runner.py)."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.onnx_backend.runner", "--every", "40", "--at-least", "22"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cases in" in done.stdout
