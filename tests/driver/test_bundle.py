"""Bundles: several batch sizes, weights once, and what is damaged in them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest

import mgx_mlir
from mgx_mlir.core.errors import FileError, UsageError
from tests.driver.conftest import Driver
from tests.support.models import parsed

W = np.random.default_rng(3).standard_normal((512, 256)).astype(np.float32)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.onnx"
    onnx.save(parsed("(int64[n] x) => (float[n,256] y) { y = Gather (w, x) }", {"w": W}), path)
    return path


def test_a_bundle(driver: Driver, model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    ran = driver("bundle", model, "--cpu", "--batch", "1,3", "-o", folder)
    assert ran.status == 0, ran.err
    done = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=folder, check=False)
    assert done.returncode == 0
    files = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    assert files == [
        "SHA256SUMS", "code/b1-host.vmfb", "code/b3-host.vmfb", "manifest.json", "weights.irpa",
    ]  # fmt: skip
    assert (folder / "weights.irpa").stat().st_size < 1.05 * W.nbytes
    for batch in (1, 3):
        c = mgx_mlir.load_bundle(folder, batch)
        rows = np.arange(batch, dtype=np.int64)
        assert np.array_equal(c.run(rows)[0], W[rows])
        assert c.load().copied_parameter_bytes == 0
    with pytest.raises(UsageError, match="no batch size 2, expected one of 1, 3"):
        mgx_mlir.load_bundle(folder, 2)
    first = json.loads((folder / "manifest.json").read_text())
    again = tmp_path / "again"
    assert driver("bundle", model, "--cpu", "--batch", "1,3", "-o", again).status == 0
    assert json.loads((again / "manifest.json").read_text())["key"] == first["key"]
    for name, at in (("code/b1-host.vmfb", 3000), ("weights.irpa", 5000), ("manifest.json", 900)):
        raw = bytearray((folder / name).read_bytes())
        raw[at] ^= 1
        (again / name).write_bytes(raw)
        with pytest.raises(FileError):
            mgx_mlir.load_bundle(again, 1)
        (again / name).write_bytes((folder / name).read_bytes())
    mgx_mlir.load_bundle(again, 1)
    for row in ({"code": "../../x.vmfb"}, {"code": 3}, {"batch": True}, {"entry": []}):
        bad = {**first, "members": [{**first["members"][0], **row}]}
        (again / "manifest.json").write_text(json.dumps(bad))
        with pytest.raises(FileError):
            mgx_mlir.load_bundle(again, 1)
    (again / "manifest.json").write_text("{")
    with pytest.raises(FileError):
        mgx_mlir.load_bundle(again, 1)
    assert driver("bundle", model, "--cpu", "--batch", "1,x", "-o", folder).status == 2
    assert driver("bundle", model, "--cpu").status == 2


def test_a_bundle_for_gpus(driver: Driver, model: Path, tmp_path: Path) -> None:
    ran = driver("bundle", model, "--arch", "gfx942,gfx1100", "--gpu", "-o", tmp_path / "out")
    assert ran.status == 0, ran.err
    rows = json.loads((tmp_path / "out" / "manifest.json").read_text())["members"]
    assert [(r["name"], r["batch"]) for r in rows] == [("b1-gfx942", 1), ("b1-gfx1100", 1)]
    assert mgx_mlir.load_bundle(tmp_path / "out", 1).archs == ("gfx942", "gfx1100")
