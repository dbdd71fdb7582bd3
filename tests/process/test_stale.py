"""The cache never gives a program of other bytes than its files have."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mgx_mlir as mgx
from mgx_mlir.compiler import compilation, program_cache

SIZE = 64


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGX_CACHE_DIR", str(tmp_path / "cache"))


def values(v: float) -> bytes:
    return np.full(SIZE, v, np.float32).tobytes()


def make(folder: Path, v: float, external: bool) -> bytes:
    """x + w; w lies in the file, or beside it."""
    w = numpy_helper.from_array(np.full(SIZE, v, np.float32), "w")
    if external:
        onnx.external_data_helper.set_external_data(w, "w.bin")
        w.ClearField("raw_data")
        (folder / "w.bin").write_bytes(values(v))
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [SIZE]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [w])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return made.SerializeToString()


def replace(path: Path, data: bytes) -> None:
    """Another file in its place, with the times of the one before."""
    status = path.stat()
    beside = path.with_suffix(".new")
    beside.write_bytes(data)
    os.utime(beside, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(beside, path)


def overwrite(path: Path, data: bytes) -> None:
    """Other bytes in the same file, with its times."""
    status = path.stat()
    with open(path, "r+b") as f:
        f.write(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def run(path: Path | bytes, **options: Any) -> tuple[float, bool]:
    c = mgx.compile(path, "cpu", **options)
    (y,) = c.run(x=np.zeros(SIZE, np.float32))
    assert (y == y[0]).all()
    return float(y[0]), c.stats.cached


@pytest.mark.parametrize(("change", "external"), [(replace, True), (overwrite, False)])
def test_changed_between_compiles(
    tmp_path: Path, change: Callable[[Path, bytes], None], external: bool
) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(make(tmp_path, 1, external))
    assert run(model) == (1, False)
    assert run(model) == (1, True)
    if external:
        change(tmp_path / "w.bin", values(2))
    else:
        change(model, make(tmp_path, 2, False))
    assert run(model) == (2, False)
    assert run(model) == (2, True)


@pytest.mark.parametrize(
    ("when", "change", "external"),
    [
        ("read", overwrite, False),
        ("optimize", replace, False),
        ("optimize", overwrite, True),
        ("finish", replace, True),
    ],
)
def test_changed_during_a_compile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any, external: bool, when: str
) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(make(tmp_path, 1, external))
    holders = (compilation.Compilation, program_cache.Keeping)
    holder: Any = next(h for h in holders if hasattr(h, when))
    plain = getattr(holder, when)

    def hooked(*args: Any) -> Any:
        monkeypatch.setattr(holder, when, plain)
        if external:
            change(tmp_path / "w.bin", values(2))
        else:
            change(model, make(tmp_path, 2, False))
        return plain(*args)

    monkeypatch.setattr(holder, when, hooked)
    assert run(model)[0] == (2 if when == "read" else 1)
    # whatever is compiled, from the cache or not, has the file's numbers
    for _ in range(2):
        assert run(model)[0] == 2
    change(tmp_path / "w.bin", values(1)) if external else change(model, make(tmp_path, 1, False))
    assert run(model)[0] == 1


def test_written_again_and_again(tmp_path: Path) -> None:
    """Within one tick of the clock; the last one, left alone, is found in the cache."""
    model = tmp_path / "m.onnx"
    model.write_bytes(make(tmp_path, 0, True))
    for v in range(1, 4):
        (tmp_path / "w.bin").write_bytes(values(v))
        assert run(model) == (v, False)
    assert run(model) == (3, True)


def test_bytes_with_external_data(tmp_path: Path) -> None:
    model = make(tmp_path, 1, True)
    assert run(model, external_data_path=str(tmp_path)) == (1, False)
    assert run(model, external_data_path=str(tmp_path)) == (1, True)
    (tmp_path / "w.bin").write_bytes(values(2))
    assert run(model, external_data_path=str(tmp_path)) == (2, False)


def test_weights_beside_mlir(tmp_path: Path) -> None:
    model = tmp_path / "m.mlir"
    weights = np.full(SIZE, 1, np.float32)
    weights[0] = 5
    from mgx_mlir.core.literals import content_key

    model.write_text(
        f"func.func @main(%x: tensor<{SIZE}xf32>) -> tensor<{SIZE}xf32> {{\n"
        f'  %w = "migraphx.literal"() {{key = "{content_key(weights)}"}} : () -> '
        f"tensor<{SIZE}xf32>\n"
        f'  %y = "migraphx.add"(%x, %w) : (tensor<{SIZE}xf32>, tensor<{SIZE}xf32>) -> '
        f"tensor<{SIZE}xf32>\n  return %y : tensor<{SIZE}xf32>\n}}\n"
    )
    np.savez(f"{model}.npz", w=weights)
    time.sleep(0.1)
    for cached in (False, True):
        c = mgx.compile(model, "cpu")
        assert c.stats.cached is cached
    os.remove(f"{model}.npz")
    with pytest.raises(mgx.MgxError, match="weight"):
        mgx.compile(model, "cpu")
