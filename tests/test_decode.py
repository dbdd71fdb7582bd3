"""The benchmark of decoding: its models are those of onnxruntime in every form of weights."""

from __future__ import annotations

import json
from pathlib import Path

import mgx_mlir as migraphx
from benchmarks import decode


def test_rows(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    forms = ["f32", "int8", "int4"]
    arguments = ["--size", "tiny", "--rounds", "1", "--past", "7", "--json", str(out)]
    assert decode.main([*arguments, "--weights", *forms]) == 0
    rows = json.loads(out.read_text())
    assert [r["weights"] for r in rows] == forms
    for row in rows:
        assert row["error"] < 1e-5, row
        assert row["ratio"] > 0
        assert row["tokens_s"] > 0


def test_caches_in_place() -> None:
    """The function for caches in place reads the packed weights of the other one."""
    row = decode.measure("tiny", "int4", 1, 7, 1, in_place=True)
    assert row["error"] < 1e-5
    model = decode.Decoder(decode.SHAPES["tiny"], "int4", 7, in_place=True).build()
    program = migraphx.compile(model.SerializeToString(), target="cpu", threads=1)
    assert program.signature.in_place
    assert sum(v.nbytes for v in program.params.values()) < 1.1 * row["bytes"]
