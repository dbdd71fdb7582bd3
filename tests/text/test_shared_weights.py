"""Weights of sessions of one model: held once by a process, and freed with the last session."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.compiler.backend import backend_of
from mgx_mlir.compiler.options import CompileOptions
from mgx_mlir.compiler.program_cache import program_cache_key
from mgx_mlir.targets import background
from mgx_mlir.text import program
from zoo.made import Graph


def _model(seed: int) -> bytes:
    g = Graph(seed)
    x = g.input("x", [1, 64])
    g.output(g.op("MatMul", x, g.weight(64, 80)), "y", [1, 80])
    return g.model().SerializeToString()


def test_two_sessions_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGX_CACHE_DIR", str(tmp_path))
    options = CompileOptions.of("cpu", None, {"threads": 1})
    shape = program.CacheShape(1, 1, 1)
    for name, seed in (("one", 1), ("other", 2)):
        data = _model(seed)
        mgx_mlir.compile(data, options=options)
        program.keep(name, program_cache_key(data, options, backend_of(options)), shape)
    background.settle()
    before = len(program._HELD)
    rows = [program.cached(name, options) for name in ("one", "one", "other")]
    programs: list[Any] = [row[0] for row in rows if row is not None]
    first, second, other = programs
    for name, array in first.params.items():
        assert second.params[name] is array
        assert other.params[name] is not array
    x = np.ones((1, 64), np.float32)
    [y], [again], [different] = ([p.run({"x": x})] for p in programs)
    assert np.array_equal(y, again)
    assert not np.array_equal(y, different)
    assert len(program._HELD) > before
    del rows, programs, first, second, other, array
    gc.collect()
    assert len(program._HELD) == before
