"""Sessions from many threads, in pickles, behind forks and spawns: nothing is compiled again."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import mgx_mlir
import mgx_mlir.onnxruntime as ort
from tests.onnxruntime_api.conftest import K, W, X, sum_of_two, two_outputs

FEED = {"x": X, "k": K}
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile(*_: object, **__: object) -> None:
        raise AssertionError("it is compiled again")

    monkeypatch.setattr(mgx_mlir, "compile", compile)


def test_a_pickled_session(request: pytest.FixtureRequest) -> None:
    o = ort.SessionOptions()
    o.add_session_config_entry("a", "b")
    made = ort.InferenceSession(two_outputs(), o)
    made.run(None, FEED)
    request.getfixturevalue("never")
    for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert again.get_inputs() == made.get_inputs()
        assert again.get_modelmeta() == made.get_modelmeta()
        assert again.get_session_options().get_session_config_entry("a") == "b"
        assert np.array_equal(again.run(["y"], FEED)[0], X + W)


def test_a_pickled_session_compiles_for_names_that_differ() -> None:
    made = ort.InferenceSession(sum_of_two())
    again = pickle.loads(pickle.dumps(made))
    with pytest.warns(UserWarning, match="compiled again"):
        assert np.array_equal(again.run(None, {"x": K, "z": K[:1]})[0], K + K[:1])


_SPAWNED = """
import pickle, sys
import numpy as np
import mgx_mlir.compiler.compile as c
def never(*_, **__): raise AssertionError("compiled again")
c._compile = never
s = pickle.load(open(sys.argv[1], "rb"))
x = np.ones((4, 3), np.float32)
y = s.run(["y"], {"x": x, "k": np.ones(3, np.float32)})[0]
assert np.array_equal(y, x + np.array([1, 2, 3], np.float32))
"""


def test_a_session_travels_to_another_process(tmp_path: Path) -> None:
    (tmp_path / "s.pkl").write_bytes(pickle.dumps(ort.InferenceSession(two_outputs())))
    done = subprocess.run(
        [sys.executable, "-c", _SPAWNED, tmp_path / "s.pkl"],
        cwd=ROOT, capture_output=True, text=True, timeout=120,
        env={**os.environ, "MGX_CACHE": "0"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def _child(session: Any, pipe: Any) -> None:
    done: list[Any] = []
    ready = threading.Event()

    def callback(results: list[Any], _: object, problem: str) -> None:
        done.append((results, problem))
        ready.set()

    y = session.run(["y"], FEED)[0]
    session.run_async(["y"], FEED, callback, None)
    ready.wait(60)
    pipe.send((y, done[0][0][0], done[0][1]))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forks beside threads warn
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_session_behind_a_fork(request: pytest.FixtureRequest) -> None:
    made = ort.InferenceSession(two_outputs())
    ready = threading.Event()
    made.run_async(["y"], FEED, lambda *_: ready.set(), None)
    assert ready.wait(60)
    request.getfixturevalue("never")
    fork = multiprocessing.get_context("fork")
    mine, theirs = fork.Pipe()
    process = fork.Process(target=_child, args=(made, theirs))
    process.start()
    assert mine.poll(60), "the child hangs"
    y, later, problem = mine.recv()
    process.join(30)
    assert process.exitcode == 0
    assert np.array_equal(y, X + W)
    assert np.array_equal(later, X + W)
    assert problem == ""


def test_many_threads() -> None:
    made = ort.InferenceSession(two_outputs())
    oracle = onnxruntime.InferenceSession(two_outputs())
    wrong: list[object] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(60):
            x = rng.standard_normal((int(rng.integers(0, 9)), 3), np.float32)
            feed = {"x": x, "k": K}
            for got, want in zip(made.run(None, feed), oracle.run(None, feed), strict=True):
                if not np.allclose(got, want, rtol=1e-6):
                    wrong.append((x, got, want))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []
