"""Programs as Python code: written with their weights, read back as models."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import mgx_mlir as migraphx
from mgx_mlir.tools.driver.scripts import run_script
from tests.driver.conftest import Driver


def test_a_script_and_its_weights(driver: Driver, models: Path, tmp_path: Path) -> None:
    text = driver("read", models / "mnist.onnx").out
    ran = driver("read", models / "mnist.onnx", "-o", tmp_path / "net.py")
    assert (ran.status, ran.out) == (0, "")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.py", "net.py.npz"]
    assert driver("read", tmp_path / "net.py").out == text
    p = migraphx.parse_onnx(str(models / "mnist.onnx"))
    q = run_script(str(tmp_path / "net.py"))
    feed = {
        k: np.random.default_rng(0).random(s.lens(), np.float32)
        for k, s in p.get_parameter_shapes().items()
    }
    assert p.run(feed) == q.run(feed)
    ran = driver("verify", "--cpu", tmp_path / "net.py")
    assert ran.status == 0


def test_printed_code_says_that_large_literals_are_made_up(driver: Driver, models: Path) -> None:
    ran = driver("read", models / "mnist.onnx", "--py")
    assert "generate_argument(" in ran.out
    assert any("-o FILE.py writes them to FILE.py.npz" in line for line in ran.errors)
    assert not any("generated" in line for line in driver("read", "--test", "--py").errors)


def test_wrong_places(driver: Driver, models: Path, tmp_path: Path) -> None:
    (tmp_path / "d.py").mkdir()
    ran = driver("read", models / "mnist.onnx", "-o", tmp_path / "d.py")
    assert (ran.status, ran.out) == (2, "")
    assert "got a directory" in ran.errors[-1]
    (tmp_path / "d.mxr").mkdir()
    assert "got a directory" in driver("read", "--test", "-o", tmp_path / "d.mxr").errors[-1]
    assert driver("read", "--test", "-o", tmp_path / "no" / "x.mxr").status == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.mxr", "d.py"]
