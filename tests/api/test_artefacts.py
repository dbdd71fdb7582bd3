"""A compiled program as a thing: saved, loaded where it lies, closed, pickled, copied."""

from __future__ import annotations

import copy
import gc
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest

import mgx_mlir as mgx
from mgx_mlir.api.files import CodeAlone
from mgx_mlir.core.errors import UsageError
from mgx_mlir.frontends.mxr.decode import decode_msgpack
from mgx_mlir.hardware.machine import available_cpus
from mgx_mlir.runtime.buffers import address
from tests.support.models import parsed

SIDE = 1152  # whole panels on every CPU: packed weights are not padded
WEIGHTS = SIDE * SIDE * 4
RNG = np.random.default_rng(5)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two matrices of 5.3 MB, of which the passes change one."""
    a, b = (RNG.standard_normal((SIDE, SIDE), np.float32) for _ in range(2))
    scale = RNG.random(SIDE, np.float32) + 1
    text = f"""(float[2,{SIDE}] x) => (float[2,{SIDE}] y)
        {{ h = MatMul (x, a) scaled = Mul (b, scale) y = MatMul (h, scaled) }}"""
    path = tmp_path_factory.mktemp("two") / "two.onnx"
    onnx.save(parsed(text, {"a": a, "b": b, "scale": scale}), path)
    return path


@pytest.fixture(scope="module")
def x() -> np.ndarray:
    return RNG.standard_normal((2, SIDE)).astype(np.float32)


@pytest.fixture(scope="module")
def made(model: Path) -> mgx.CompiledProgram:
    return mgx.compile(model, "cpu")


@pytest.fixture(scope="module")
def saved(made: mgx.CompiledProgram, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "two.mxr"
    mgx.save(made, path)
    return path


def resident() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("target", ["cpu", "ref"])
def test_what_compile_gives_is_saved_and_comes_back(
    target: str, model: Path, x: np.ndarray, tmp_path: Path
) -> None:
    c = mgx.compile(model, target)
    for kind in ("msgpack", "json") if target == "ref" else ("msgpack",):
        mgx.save(c, tmp_path / "m.mxr", kind)
        found = mgx.load(tmp_path / "m.mxr")
        assert type(found) is type(c)
        assert found.input_names == c.input_names
        assert np.array_equal(found.run(x)[0], c.run(x)[0])


def test_it_shows_what_it_takes_and_gives(saved: Path) -> None:
    dims = f"float_type {{2, {SIDE}}}"
    assert repr(mgx.load(saved)) == f"<compiled for cpu: x {dims} -> y {dims}>"


def test_code_alone_has_no_program(saved: Path) -> None:
    with pytest.raises(CodeAlone, match="the file holds only compiled code"):
        mgx.load(saved, compiled=False)


def test_a_file_has_the_weights_once(saved: Path, model: Path, tmp_path: Path) -> None:
    assert saved.stat().st_size < 1.05 * 2 * WEIGHTS
    p = mgx.parse_onnx(str(model))
    p.compile(mgx.get_target("cpu"))
    mgx.save(p, tmp_path / "p.mxr")
    assert (tmp_path / "p.mxr").stat().st_size < 1.05 * 2 * WEIGHTS
    plain = mgx.load(tmp_path / "p.mxr", compiled=False)
    assert plain.get_parameter_names() == ["x"]
    with pytest.raises(mgx.MgxError, match="without its weights"):
        plain.run({"x": np.zeros((2, SIDE), np.float32)})
    mgx.save(mgx.load(tmp_path / "p.mxr"), tmp_path / "again.mxr")
    assert (tmp_path / "again.mxr").read_bytes() == (tmp_path / "p.mxr").read_bytes()
    mgx.save(p, tmp_path / "source.mxr", source=True)
    whole = mgx.load(tmp_path / "source.mxr", compiled=False)
    whole.compile(mgx.get_target("ref"))


def test_weights_are_used_where_they_lie_in_the_file(saved: Path) -> None:
    entry = decode_msgpack(saved.read_bytes())["mgx_mlir"]["compiled"][0]
    assert sum(len(p["data"]["data"]) for p in entry["params"].values()) == 2 * WEIGHTS
    c = mgx.load(saved)
    assert all(address(a) % 64 == 0 for a in c.params.values())
    assert c.load().copied_parameter_bytes == 0
    with open("/proc/self/maps") as f:
        assert any(str(saved) in line for line in f)


def test_loading_takes_the_weights_once_and_gives_them_back(saved: Path, x: np.ndarray) -> None:
    mgx.load(saved).run(x)
    gc.collect()
    before = resident()
    with mgx.load(saved) as c:
        want = c.run(x)[0].copy()
        assert resident() - before < 1.1 * 2 * WEIGHTS
    assert resident() - before < 1 << 20
    with pytest.raises(UsageError, match="closed"):
        c.run(x)
    for i in range(300):
        c = mgx.load(saved)
        if i % 10 == 0:
            assert np.array_equal(c.run(x)[0], want)
        del c
        if i == 20:
            before = resident()
    assert resident() - before < 5 << 20


def test_close_gives_back_a_program_too(saved: Path, model: Path) -> None:
    p = mgx.parse_onnx(str(model))
    p.compile(mgx.get_target("cpu"))
    with p:
        p.run({"x": np.zeros((2, SIDE), np.float32)})
    with pytest.raises(UsageError, match="closed"):
        p.run({"x": np.zeros((2, SIDE), np.float32)})


@pytest.mark.parametrize("target", ["cpu", "ref"])
def test_pickle_and_deepcopy(target: str, model: Path, x: np.ndarray) -> None:
    c = mgx.compile(model, target)
    want = c.run(x)[0]
    for copied in (pickle.loads(pickle.dumps(c)), copy.deepcopy(c)):
        c2: mgx.CompiledProgram = copied
        assert type(c2) is type(c)
        assert np.array_equal(c2.run(x)[0], want)
    if target == "cpu":
        assert len(pickle.dumps(c)) < 1.05 * 2 * WEIGHTS
        shared = copy.deepcopy(c)
        assert {k: address(a) for k, a in shared.params.items()} == {
            k: address(a) for k, a in c.params.items()
        }
    p = mgx.parse_onnx(str(model))
    p.compile(mgx.get_target(target))
    again = pickle.loads(pickle.dumps(p))
    assert np.array_equal(np.array(again.run({"x": x})[0]), want)
    assert again.get_parameter_names() == ["x"]


def test_calls_on_one_program_run_side_by_side(saved: Path, x: np.ndarray) -> None:
    c = mgx.load(saved)
    want = c.run(x)[0]
    loaded = c.load()
    before = resident()
    _, taken = loaded.lanes._lanes[0]
    with taken, ThreadPoolExecutor(1) as pool:  # stands for a long call
        assert np.array_equal(pool.submit(c.run, x).result(60)[0], want)
    assert len(loaded.lanes._lanes) == 2
    assert resident() - before < WEIGHTS  # the weights are shared
    with ThreadPoolExecutor(8) as pool:
        inputs = [x * i for i in range(64)]
        for given, (found,) in zip(inputs, pool.map(c.run, inputs), strict=True):
            np.testing.assert_allclose(found, c.run(given)[0], rtol=1e-6)
    assert len(loaded.lanes._lanes) <= available_cpus()


def test_results_go_into_arrays_that_are_given(made: mgx.CompiledProgram, x: np.ndarray) -> None:
    want = made.run(x)[0]
    y = np.zeros((2, SIDE), np.float32)
    for out in (y, [y], {"y": y}, np.zeros((2, 2 * SIDE), np.float32)[:, ::2]):
        (found,) = made.run(x, out=out)
        assert found is (out if isinstance(out, np.ndarray) else y)
        assert np.array_equal(found, want)
        y[:] = 0
    assert made.run({"x": x}, out=[None])[0] is not y
    locked = np.zeros((2, SIDE), np.float32)
    locked.flags.writeable = False
    for out, why in (
        ([], "expected 1 arrays, got 0"),
        ({"z": y}, "unknown outputs: z"),
        (y.astype(np.float64), "expected float32, got float64"),
        (y[:, :5], "got {2, 5}"),
        (locked, "read-only"),
        ([3], "expected an array, got int"),
    ):
        with pytest.raises(mgx.MgxError, match=why):
            made.run(x, out=out)
