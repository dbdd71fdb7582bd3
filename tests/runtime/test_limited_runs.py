"""Runs with a limit of time or memory: in Python, in onnxruntime's API, in mgx-driver."""

from __future__ import annotations

import os
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import mgx_mlir
import mgx_mlir.onnxruntime as ort
from mgx_mlir.compiler.run_limits import RunLimits
from mgx_mlir.core.errors import RunError, RunLimitError, UsageError
from mgx_mlir.onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument
from mgx_mlir.tools.driver.main import main
from tests.serving.conftest import texts_bytes
from tests.serving.service import endless_bytes
from tests.support.models import bytes_of

ONE = np.ones((1, 1), np.float32)


def dims(elements: int) -> np.ndarray:
    return np.array([1 << 10, elements >> 10], np.int64)


def graph_bytes(nodes: list[Any], inputs: list[Any], outputs: list[Any]) -> bytes:
    return bytes_of(nodes, inputs, outputs, opset=18)


def expand_bytes() -> bytes:
    """An output whose size an input states."""
    return graph_bytes(
        [helper.make_node("Expand", ["x", "dims"], ["y"])],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1]),
         helper.make_tensor_value_info("dims", TensorProto.INT64, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["a", "b"])],
    )  # fmt: skip


@pytest.fixture(scope="module")
def endless() -> Any:
    program = mgx_mlir.compile(endless_bytes(), "cpu", max_run_seconds=0.5)
    yield program
    program.close()


def test_a_run_without_end_ends(endless: Any) -> None:
    for _ in range(2):
        begin = time.monotonic()
        with pytest.raises(RunLimitError, match=r"longer than 0.5 s \(max_run_seconds\)"):
            endless.run(ONE, dims(1 << 52))
        assert time.monotonic() - begin < 5
        [y] = endless.run(ONE, dims(1 << 12))
        assert np.allclose(y, np.sin(1.0) * (1 << 12), rtol=1e-4)  # a sum of 4096 f32


def test_one_call_with_a_limit() -> None:
    program = mgx_mlir.compile(endless_bytes(), "cpu")
    with pytest.raises(RunLimitError):
        program.run({"x": ONE, "dims": dims(1 << 52)}, max_run_seconds=0.3)
    assert np.allclose(program.run(ONE, dims(1 << 12), max_run_seconds=60),
                       program.run(ONE, dims(1 << 12)))  # fmt: skip
    program.close()
    with pytest.raises(UsageError, match="closed"):
        program.run(ONE, dims(1 << 12))


def test_the_reference_has_limits_too() -> None:
    program = mgx_mlir.compile(endless_bytes(), "ref", max_run_seconds=0.05)
    with pytest.raises(RunLimitError):
        program.run(ONE, dims(1 << 26))
    program.limits = RunLimits(60.0)
    assert np.allclose(program.run(ONE, dims(1 << 12)), np.sin(1.0) * (1 << 12), rtol=1e-4)
    program.close()


def test_processes_end_with_their_runs(endless: Any) -> None:
    endless.run(ONE, dims(1 << 12))
    with pytest.raises(RunLimitError):
        endless.run(ONE, dims(1 << 52))
    pid = endless._limited._workers.pid
    assert len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()) == 0
    other = mgx_mlir.compile(endless_bytes(), "cpu", max_run_seconds=60)
    other.run(ONE, dims(1 << 12))
    pid = other._limited._workers.pid
    assert Path(f"/proc/{pid}").exists()
    other.close()
    assert not Path(f"/proc/{pid}").exists()


def test_a_run_that_is_interrupted_runs_no_further(endless: Any) -> None:
    """Ctrl-C during a run, as an exception in the caller."""

    def stop() -> bool:
        if time.monotonic() > end:
            raise KeyboardInterrupt
        return False

    endless.run(ONE, dims(1 << 12))
    end = time.monotonic() + 0.2
    with pytest.raises(KeyboardInterrupt):
        endless.run_limited({"x": ONE, "dims": dims(1 << 52)}, RunLimits(60.0), stop=stop)
    pid = endless._limited._workers.pid
    assert len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()) == 0
    with pytest.raises(RunLimitError, match="was stopped"):
        endless.run_limited({"x": ONE, "dims": dims(1 << 52)}, RunLimits(60.0),
                            stop=lambda: True)  # fmt: skip


def test_memory_beyond_the_limit_is_refused() -> None:
    program = mgx_mlir.compile(expand_bytes(), "cpu", max_run_memory=64 << 20)
    assert program.run(ONE, dims(1 << 20))[0].shape == (1 << 10, 1 << 10)
    for elements in (1 << 26, 1 << 36, 1 << 46):  # 256 MB, 256 GB, 256 TB
        with pytest.raises(RunLimitError, match=r"more than 67108864 bytes \(max_run_memory\)"):
            program.run(ONE, dims(elements))
        assert program.run(ONE, dims(1 << 20))[0].shape == (1 << 10, 1 << 10)
    program.close()


def test_known_sizes_are_refused_before_anything_runs() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1 << 20])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1 << 20])
    data = graph_bytes([helper.make_node("Sin", ["x"], ["y"])], [x], [y])
    program = mgx_mlir.compile(data, "cpu", max_run_memory=6 << 20)
    with pytest.raises(RunLimitError, match="more than 6291456 bytes"):
        program.run(np.zeros(1 << 20, np.float32))
    assert program._limited is None  # no process was started


@pytest.mark.parametrize("kind", ["cpu", "ref"])
def test_every_type_comes_back(kind: str) -> None:
    types = {
        TensorProto.FLOAT: np.float32, TensorProto.DOUBLE: np.float64, TensorProto.INT8: np.int8,
        TensorProto.UINT64: np.uint64, TensorProto.BOOL: np.bool_, TensorProto.FLOAT16: np.float16,
        TensorProto.BFLOAT16: ml_dtypes.bfloat16,
    }  # fmt: skip
    names = [f"x{t}" for t in types]
    ins = [helper.make_tensor_value_info(n, t, ["n", 3]) for n, t in zip(names, types, strict=True)]
    outs = [helper.make_tensor_value_info(f"y{n}", t, [3, "n"])
            for n, t in zip(names, types, strict=True)]  # fmt: skip
    nodes = [helper.make_node("Transpose", [n], [f"y{n}"]) for n in names]
    program = mgx_mlir.compile(graph_bytes(nodes, ins, outs), kind, max_run_seconds=60)
    for rows in (0, 5):
        given = {n: (np.arange(3 * rows) % 2).reshape(rows, 3).astype(d)
                 for n, d in zip(names, types.values(), strict=True)}  # fmt: skip
        for found, a in zip(program.run(given), given.values(), strict=True):
            assert found.dtype == a.dtype
            assert np.array_equal(found, a.T)
    program.close()


def test_strings_arrays_of_the_callers_and_names_that_disagree() -> None:
    words = mgx_mlir.compile(texts_bytes(), "cpu", max_run_seconds=60)
    given = {"a": np.array(["é", "b"], object), "b": np.array(["é"], object)}
    assert words.run(given)[0].tolist() == [True, False]
    words.close()
    data = graph_bytes(
        [helper.make_node("Identity", ["a"], ["p"]), helper.make_node("Neg", ["b"], ["q"])],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n"]) for n in "ab"],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n"]) for n in "pq"],
    )
    program = mgx_mlir.compile(data, "cpu", max_run_seconds=60)
    a, b, out = np.ones(3, np.float32), np.ones(3, np.float32), np.zeros(3, np.float32)
    assert program.run(a, b, out=[None, out])[1] is out
    assert np.array_equal(out, -b)
    with pytest.raises(RunError, match="'out' of 'q' expected"):
        program.run(a, b, out=[None, np.zeros(4, np.float32)])
    with pytest.warns(UserWarning, match="compiled again"):
        found = program.run(a, np.ones(2, np.float32))
    assert [f.shape for f in found] == [(3,), (2,)]
    program.close()


def test_threads_have_processes_of_their_own(endless: Any) -> None:
    program = mgx_mlir.compile(endless_bytes(), "cpu", threads=1, max_run_seconds=20)
    program.run(ONE, dims(1 << 12))

    def ask(i: int) -> bool:
        if i % 4 == 0:
            with pytest.raises(RunLimitError):
                program.run(ONE, dims(1 << 52), max_run_seconds=0.2)
            return True
        n = 1 << (10 + i % 3)
        return bool(np.allclose(program.run(ONE, dims(n))[0], np.sin(1.0) * n, rtol=1e-4))

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(ask, range(24)))
    program.close()


def test_a_fork_and_a_pickle_start_their_own(endless: Any) -> None:
    program = mgx_mlir.compile(endless_bytes(), "cpu", threads=1, max_run_seconds=20)
    program.run(ONE, dims(1 << 12))
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            with pytest.raises(RunLimitError):
                program.run(ONE, dims(1 << 52), max_run_seconds=0.2)
            code = 0 if program.run(ONE, dims(1 << 12))[0] > 3000 else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert program.run(ONE, dims(1 << 12))[0] > 3000
    copied = pickle.loads(pickle.dumps(program))
    assert copied.limits == RunLimits(20.0)
    with pytest.raises(RunLimitError):
        copied.run(ONE, dims(1 << 52), max_run_seconds=0.2)
    copied.close()
    program.close()


def test_a_file_and_a_migraphx_program(tmp_path: Path) -> None:
    mgx_mlir.save(mgx_mlir.compile(endless_bytes(), "cpu"), tmp_path / "m.mxr")
    program = mgx_mlir.load(tmp_path / "m.mxr", max_run_seconds=0.3)
    with pytest.raises(RunLimitError):
        program.run(ONE, dims(1 << 52))
    program.close()
    (tmp_path / "m.onnx").write_bytes(endless_bytes())
    made = mgx_mlir.parse_onnx(str(tmp_path / "m.onnx"))
    made.compile(mgx_mlir.get_target("cpu"))
    mgx_mlir.save(made, tmp_path / "p.mxr")
    made = mgx_mlir.load(tmp_path / "p.mxr", max_run_seconds=0.3)
    with pytest.raises(RunLimitError):
        made.run({"x": ONE, "dims": dims(1 << 52)})
    mgx_mlir.save(mgx_mlir.parse_onnx(str(tmp_path / "m.onnx")), tmp_path / "q.mxr")
    with pytest.raises(UsageError, match="are for compiled programs"):
        mgx_mlir.load(tmp_path / "q.mxr", max_run_seconds=0.3)


@pytest.mark.parametrize("how", [
    {"max_run_seconds": 0}, {"max_run_seconds": -1.0}, {"max_run_seconds": "1"},
    {"max_run_seconds": float("nan")}, {"max_run_seconds": True}, {"max_run_memory": 0},
    {"max_run_memory": float("inf")}, {"max_run_memory": 0.5},
    pytest.param({"max_run_seconds": 10**5000}, id="an integer of 5000 digits"),
], ids=str)  # fmt: skip
def test_limits_that_are_none(how: dict[str, Any]) -> None:
    expected = "a number above 0" if "max_run_seconds" in how else "a number from 1 on"
    with pytest.raises(UsageError, match=f"expected {expected}, got "):
        mgx_mlir.compile(endless_bytes(), "cpu", **how)


def test_limits_beyond_what_the_system_takes() -> None:
    """Three hundred years, and more bytes than an address has."""
    program = mgx_mlir.compile(
        endless_bytes(), "cpu", max_run_seconds=1e300, max_run_memory=1 << 70
    )
    assert np.allclose(program.run(ONE, dims(1 << 12)), np.sin(1.0) * (1 << 12), rtol=1e-4)
    program.close()


def test_sessions_have_limits() -> None:
    options = ort.SessionOptions()
    options.add_session_config_entry("mgx.max_run_seconds", "0.3")
    session = ort.InferenceSession(endless_bytes(), options, providers=["CPUExecutionProvider"])
    never = {"x": ONE, "dims": dims(1 << 52)}
    with pytest.raises(Fail, match=r"longer than 0\.3 s"):
        session.run(None, never)
    of_run = ort.RunOptions()
    of_run.add_run_config_entry("mgx.max_run_seconds", "0.1")
    with pytest.raises(Fail, match=r"longer than 0\.1 s"):
        session.run(None, never, of_run)
    of_run.add_run_config_entry("mgx.max_run_seconds", "soon")
    with pytest.raises(InvalidArgument, match="expected a number, got 'soon'"):
        session.run(None, never, of_run)
    ended = ort.RunOptions()
    ended.add_run_config_entry("mgx.max_run_seconds", "60")

    def terminate() -> None:
        ended.terminate = True

    timer = threading.Timer(0.3, terminate)
    timer.start()
    begin = time.monotonic()
    with pytest.raises(Fail, match="was stopped"):
        session.run(None, never, ended)
    assert time.monotonic() - begin < 10
    assert session.run(None, {"x": ONE, "dims": dims(1 << 12)})[0] > 3000


def test_the_driver_has_limits(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path, sizes = tmp_path / "m.onnx", tmp_path / "dims.npy"
    path.write_bytes(endless_bytes())
    given = [str(path), "--cpu", "--load-arg", "@dims", str(sizes)]
    np.save(sizes, dims(1 << 52))
    for command in ("run", "perf", "time", "verify"):
        assert main([command, *given, "--max-run-seconds", "0.3"]) == 2
        assert "error: the run took longer than 0.3 s (max_run_seconds)" in capfd.readouterr().err
    path.write_bytes(expand_bytes())
    np.save(sizes, dims(1 << 30))
    assert main(["run", *given, "--max-run-memory", "64"]) == 2
    assert "needs more than 67108864 bytes" in capfd.readouterr().err
    np.save(sizes, dims(1 << 12))
    assert main(["time", *given, "--max-run-seconds", "60", "--iterations", "2"]) == 0
    assert "Total time" in capfd.readouterr().out


def test_a_process_that_dies_is_an_error(endless: Any) -> None:
    endless.run(ONE, dims(1 << 12))
    runs = endless._limited
    pid = runs._idle[-1].pid
    os.kill(pid, 9)
    with pytest.raises(RunError, match="ended by signal 9"):
        endless.run(ONE, dims(1 << 12))
    os.kill(runs._workers.pid, 9)
    assert endless.run(ONE, dims(1 << 12))[0] > 3000
