"""The benchmark of single operators: it finds a wrong result, and takes dims fixed and open."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import single_ops
from mgx_mlir.compiler.iree_program import IreeProgram


@pytest.mark.parametrize("dims", [[], ["--dynamic"]])
def test_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str], dims: list[str]) -> None:
    out = tmp_path / "out.json"
    arguments = ["tiny_add", *dims, "--rounds", "1", "--seconds", "0.001", "--json", str(out)]
    assert single_ops.main(arguments) == 0
    (row,) = json.loads(out.read_text())
    assert row["dynamic"] == bool(dims)
    assert row["ratio"] > 0
    assert row["error"] == 0
    assert "1 operators" in capsys.readouterr().out


def test_a_wrong_result_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    run = IreeProgram.run

    def off_by_a_little(self: IreeProgram, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        return [r + np.float32(1e-3) for r in run(self, inputs)]

    monkeypatch.setattr(IreeProgram, "run", off_by_a_little)
    assert single_ops.main(["tiny_add", "--rounds", "1", "--seconds", "0.001"]) == 1
