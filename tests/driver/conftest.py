"""Small models, a compile cache of its own, and a way to run the command line in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest

from examples.mnist import onnx_model, weights
from mgx_mlir.tools.driver.main import main
from tests.support.models import parsed


@dataclass(frozen=True)
class Ran:
    """The result of a command."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def errors(self) -> list[str]:
        return self.err.splitlines()


Driver = Callable[..., Ran]


@pytest.fixture(autouse=True, scope="package")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("MGX_CACHE_DIR")
    os.environ["MGX_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["MGX_CACHE_DIR"]
    else:
        os.environ["MGX_CACHE_DIR"] = before


@pytest.fixture
def driver(capfd: pytest.CaptureFixture[str]) -> Driver:
    """Run mgx-driver; nothing it prints may be a traceback."""

    def run(*arguments: object) -> Ran:
        capfd.readouterr()
        status = main([str(a) for a in arguments])
        found = capfd.readouterr()
        assert "Traceback" not in found.out + found.err
        return Ran(status, found.out, found.err)

    return run


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of models: mnist, flipped, dynamic_batch, tokens, narrow, wider, logs."""
    folder = tmp_path_factory.mktemp("models")
    values = weights()
    onnx.save(onnx_model(values), folder / "mnist.onnx")
    # the largest weight of a unit that the drawn input switches on
    changed = dict(values)
    changed["w1"] = values["w1"].copy()
    x = np.abs(values["w1"]).max(axis=1)
    changed["w1"][int(np.argsort(x)[-2])] *= -1
    onnx.save(onnx_model(changed), folder / "flipped.onnx")
    table = np.random.default_rng(1).standard_normal((11, 4)).astype(np.float32)
    texts = {
        "open": "(float[n,3] x) => (float[n,3] y) { y = Relu (x) }",
        "wider": "(float[2,4] x) => (float[2,4] y) { y = Relu (x) }",
        "half": "(float16[2,4] x) => (float16[2,4] y) { y = Relu (x) }",
        "tokens": """(int64[2,6] ids, int64[2,6] mask) => (float[2,6,4] masked, int64[2,6] sums) {
            rows = Gather (table, ids) m = Cast <to = 1> (mask) m1 = Unsqueeze (m, last)
            masked = Mul (rows, m1) sums = Add (ids, mask) }""",
        "logs": """(float[8] x) => (float[8] y, float[8] z)
            { n = Neg (x) a = Abs (n) b = Neg (a) y = Log (b) z = Sub (x, x) }""",
    }
    for name, text in texts.items():
        held = {"table": table, "last": np.array([-1])} if name == "tokens" else {}
        onnx.save(parsed(text, held), folder / f"{name}.onnx")
    return folder
