"""A fixed share of the damaged files, in a process of its own; and that its judge sees faults."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mgx_mlir.core.errors import FileError
from tests.formats import fuzz
from tests.formats.mutations import damaged
from tests.formats.programs import PROGRAMS

ROOT = Path(__file__).parent.parent.parent
COUNT = 400


def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.formats.fuzz", "--count", str(COUNT), "--seed", "7",
         "--keep", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    found = re.search(rf"{COUNT} files in .* 0 failures; .* peak memory (\d+) MB", done.stdout)
    assert found is not None, done.stdout
    assert int(found[1]) < 1000
    # neither all of them broken at the first byte, nor all of them harmless
    for kind in ("mxr", "json", "argument", "container", "onnx", "tf", "mlir_opt", "npy"):
        assert re.search(rf"{kind} read \d", done.stdout), done.stdout
        assert re.search(rf"{kind} refused \d", done.stdout), done.stdout


def test_the_same_seed_gives_the_same_files() -> None:
    import random

    import mgx_mlir as migraphx

    for kind in ("msgpack", "json"):
        data = migraphx.save_buffer(PROGRAMS["branches"](), kind)
        a, b, c = (
            [damaged(data, random.Random(f"{seed}.{i}"), [data]) for i in range(30)]
            for seed in (1, 1, 2)
        )
        assert a == b
        assert a != c
        assert data not in a


def raises(error: BaseException) -> object:
    def reader(_: bytes) -> None:
        raise error

    return reader


@pytest.mark.parametrize(("reader", "outcome", "problem"), [
    (raises(FileError("damaged")), "refused", ""),
    (lambda data: None, "read", ""),
    (raises(ValueError("odd")), "failed", "ValueError: odd"),
    (raises(RecursionError("deep")), "failed", "RecursionError: deep"),
    (raises(AssertionError("other")), "failed", "AssertionError: other"),
])  # fmt: skip
def test_the_judge(
    reader: object, outcome: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "peak_bytes", lambda: 0)  # ignore other tests' memory
    found = fuzz.read_one(reader, b"")  # type: ignore[arg-type]
    assert found[:2] == (outcome, problem)


def test_the_judge_sees_what_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "LIMIT_SECONDS", 0.2)
    outcome, problem, took = fuzz.read_one(lambda _: time.sleep(5), b"")
    assert (outcome, problem) == ("failed", "TimeoutError: took more than 0 s")
    assert took < 3


def test_the_judge_sees_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "peak_bytes", lambda: 2 << 30)
    outcome, problem, _ = fuzz.read_one(lambda _: None, b"")
    assert (outcome, problem) == ("failed", "memory grew to 2147 MB")
