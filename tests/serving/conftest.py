"""A directory of models that the tests serve."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support.models import parsed_bytes

WEIGHTS = np.random.default_rng(0).standard_normal((16, 4)).astype(np.float32)


def model_bytes(version: int = 1, rows: int | str = "n") -> bytes:
    """y = x W + version; `rows` is the first dim."""
    return parsed_bytes(
        f"(float[{rows},16] x) => (float[{rows},4] y) {{ p = MatMul (x, w) y = Add (p, b) }}",
        {"w": WEIGHTS, "b": float(version)},
    )


def texts_bytes() -> bytes:
    """Return a model that compares strings with one string."""
    return parsed_bytes("(string[n] a, string[1] b) => (bool[n] c) { c = Equal (a, b) }", opset=19)


def write_models(folder: Path) -> Path:
    """rows: versions 1 and 2, joined up to 8 rows; alone: not joined; words: strings."""
    for name, version, data in (
        ("rows", "1", model_bytes(1)),
        ("rows", "2", model_bytes(2)),
        ("alone", "1", model_bytes(3)),
        ("words", "1", texts_bytes()),
    ):
        (folder / name / version).mkdir(parents=True, exist_ok=True)
        (folder / name / version / "model.onnx").write_bytes(data)
    (folder / "rows" / "config.json").write_text(json.dumps({"max_batch_size": 8}))
    return folder


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_models(tmp_path_factory.mktemp("models"))


def expected(x: np.ndarray, version: int) -> np.ndarray:
    return x.astype(np.float64) @ WEIGHTS.astype(np.float64) + version


__all__ = ["expected", "model_bytes", "onnx", "texts_bytes", "write_models"]
