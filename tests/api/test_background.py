"""Programs that answer before they are compiled, and programs of several sizes."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import mgx_mlir
from mgx_mlir.compiler import compile as compile_module
from mgx_mlir.compiler import sized_program
from mgx_mlir.compiler.background_program import BackgroundProgram
from mgx_mlir.compiler.behind import Behind
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.compiler.sized_program import SizedProgram
from mgx_mlir.core import forks, interrupts
from mgx_mlir.core.errors import CompileError, RunError, UsageError

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n,4] x, float[4] z) => (float[n,4] y, float[4] w) {
  p = Softmax<axis=1>(x)
  y = Add(p, z)
  w = Mul(z, z)
}"""
MIXED = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n,4] x) => (float[n,4] y) { y = Softmax<axis=0>(x) }"""
Z = np.arange(4, dtype=np.float32)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGX_CACHE_DIR", str(tmp_path / "cache"))


def model(text: str = MODEL) -> bytes:
    return onnx.parser.parse_model(text).SerializeToString()


def given(n: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32), "z": Z}


def wanted(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True) + Z


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Hold back compiles until it is set."""
    opened, tuned = threading.Event(), compile_module.compile_tuned

    def held(*args: Any) -> IreeProgram:
        assert opened.wait(60)
        return tuned(*args)

    monkeypatch.setattr(compile_module, "compile_tuned", held)
    yield opened
    opened.set()


def test_the_reference_answers_until_the_code_is_there(gate: threading.Event) -> None:
    program = mgx_mlir.compile(model(), "cpu", background=True)
    assert isinstance(program, BackgroundProgram)
    first = program.run(given(3))
    assert not program.is_ready
    assert program.wait(0) is None
    assert program.now().target == "ref"
    gate.set()
    made = program.wait()
    assert isinstance(made, IreeProgram)
    assert program.now() is made
    for found in (first, program.run(given(3)), made.run(given(3))):
        np.testing.assert_allclose(found[0], wanted(given(3)["x"]), rtol=1e-5)
    assert isinstance(pickle.loads(pickle.dumps(program)), IreeProgram)


def test_the_error_of_a_compile_is_raised_at_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(*_: object) -> IreeProgram:
        raise CompileError("no code for node 'p'")

    monkeypatch.setattr(compile_module, "compile_tuned", failing)
    program = mgx_mlir.compile(model(), "cpu", background=True)
    assert isinstance(program, BackgroundProgram)
    with pytest.raises(CompileError, match="no code for node 'p'"):
        program.wait()
    for _ in range(2):
        with pytest.raises(CompileError, match="no code for node 'p'"):
            program.run(given(1))


def test_a_call_runs_its_size_or_a_padded_one(tmp_path: Path) -> None:
    program = mgx_mlir.compile(model(), "cpu", sizes=[4, 1])
    assert isinstance(program, SizedProgram)
    assert program.is_ready
    assert (program.sizes, program.dim, program.independent) == ([1, 4], "n", True)
    for n in (1, 2, 4):
        y, w = program.run(given(n))
        np.testing.assert_allclose(y, wanted(given(n)["x"]), rtol=1e-5)
        np.testing.assert_array_equal(w, Z * Z)
    out = np.zeros((3, 4), np.float32)
    assert program.run(given(3), out=[out, None])[0] is out
    np.testing.assert_allclose(out, wanted(given(3)["x"]), rtol=1e-5)
    with pytest.raises(RunError, match="size 5 of n is not compiled, compiled are 1, 4"):
        program.run(given(5))
    with pytest.raises(RunError, match="at least 1 row"):
        program.run({"x": np.zeros((0, 4), np.float32), "z": Z})
    with pytest.raises(RunError, match="missing inputs: z"):
        program.run({"x": given(2)["x"]})


def test_a_size_is_refused_where_rows_depend_on_each_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "mgx_mlir.compiler.sized_program")
    program = mgx_mlir.compile(model(MIXED), "cpu", sizes={"n": [2]})
    assert "calls are not padded along n" in caplog.text
    assert isinstance(program, SizedProgram)
    x = given(2)["x"]
    for each in (program, pickle.loads(pickle.dumps(program))):
        assert each.run({"x": x})[0].shape == (2, 4)
        with pytest.raises(RunError, match="size 1 of n is not compiled") as e:
            each.run({"x": x[:1]})
        assert "it works along the batch" in str(e.value)
    with pytest.raises(UsageError, match="no single file"):
        mgx_mlir.save_buffer(program)
    one = mgx_mlir.save_buffer(program.program_for(2))
    assert mgx_mlir.load_buffer(one).input_names == ["x"]


def test_a_larger_size_answers_while_one_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    opened, original = threading.Event(), compile_module._compile

    def held(source: Any, options: Any) -> Any:
        if options.target == "cpu" and "tensor<1x4xf32>" in source.text():
            assert opened.wait(60)
        return original(source, options)

    monkeypatch.setattr(compile_module, "_compile", held)
    program = mgx_mlir.compile(model(), "cpu", sizes=[1, 4], background=True)
    assert isinstance(program, SizedProgram)
    program.program_for(4)
    assert not program.is_ready
    run, at = program._chosen(1)
    assert (run.target, at) == ("cpu", 4)
    np.testing.assert_allclose(program.run(given(1))[0], wanted(given(1)["x"]), rtol=1e-5)
    opened.set()
    program.program_for(1)
    assert program._chosen(1)[1] == 1


def waits_to_be_stopped(ended: list[str]) -> Any:
    """Return a compile that ends at a safe point alone; the second one interrupts the caller."""
    begun: list[str] = []

    def compile(source: Any, options: Any) -> Any:
        if options.target == "ref":
            return _compile(source, options)
        begun.append(options.target)
        if len(begun) == 2:
            signal.raise_signal(signal.SIGINT)
        try:
            while True:
                interrupts.check()
                time.sleep(0.001)
        finally:
            ended.append(options.target)

    _compile = compile_module._compile
    return compile


def no_compile_runs() -> bool:
    return not [t for t in threading.enumerate() if t.name == "mgx-compile"]


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_an_interrupt_and_a_close_stop_what_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []
    monkeypatch.setattr(compile_module, "_compile", waits_to_be_stopped(ended))
    monkeypatch.setattr(sized_program, "available_cpus", lambda: 2)  # one waits for its turn
    with pytest.raises(KeyboardInterrupt):
        mgx_mlir.compile(model(), "cpu", sizes=[1, 2, 3])
    until(no_compile_runs)
    assert len(ended) >= 2
    program = mgx_mlir.compile(model(), "cpu", background=True)
    program.close()
    until(no_compile_runs)
    with pytest.raises(UsageError, match="the program is closed"):
        program.run(given(1))
    with pytest.raises(UsageError, match="the program is closed"):
        mgx_mlir.save_buffer(program)


def test_a_forked_child_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread of a compile is its parent's."""
    calls: list[int] = []
    opened = threading.Event()

    def work() -> int:
        calls.append(1)
        assert len(calls) > 1 or opened.wait(60)
        return len(calls)

    behind = Behind(work)
    until(lambda: len(calls) == 1)
    assert behind.found() is None
    here = forks.count()
    monkeypatch.setattr(forks, "count", lambda: here + 1)
    assert behind.wait() == 2
    opened.set()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"sizes": [0]}, "sizes of 1 or more"),
        ({"sizes": {"n": []}}, "sizes of 1 or more"),
        ({"sizes": {"m": [1]}}, "no dynamic dim 'm', it has n"),
        ({"sizes": {"n": [1], "m": [1]}}, "expected one dim, got 2"),
        ({"background": True, "target": "ref"}, "background is for cpu and gpu"),
    ],
)
def test_wrong_options(options: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        mgx_mlir.compile(model(), **{"target": "cpu", **options})


EXITS = """
import os, sys, mgx_mlir
from mgx_mlir.core import progress
p = mgx_mlir.compile(sys.argv[1], "cpu", background=True)
p.run(x=[[1.0] * 4], z=[1.0] * 4)
"""


def test_the_end_of_a_process_ends_a_compile(tmp_path: Path) -> None:
    """Nothing waits for the code, no thread crashes in it, and no folder is left."""
    path = tmp_path / "m.onnx"
    path.write_bytes(model())
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    env = {**os.environ, "TMPDIR": str(scratch)}
    done = subprocess.run(
        [sys.executable, "-c", EXITS, str(path)], capture_output=True, text=True, timeout=60,
        env=env, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert list(scratch.iterdir()) == []
