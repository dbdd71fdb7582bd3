"""Models to save and to write as code: exports of torch, with inputs, from tests/families."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import mgx_mlir as migraphx

STORED = Path(__file__).parent.parent / "families" / "stored"
NAMES = sorted(p.stem for p in STORED.glob("*.onnx"))


def model(name: str) -> tuple[migraphx.program, dict[str, np.ndarray]]:
    """The program of a model with its dims left dynamic, and inputs for it."""
    p = migraphx.program.of(migraphx.read_model(STORED / f"{name}.onnx"))
    with np.load(STORED / f"{name}.0.npz") as data:
        feed = {k: data[k] for k in p.get_parameter_names()}
    return p, feed


def results(p: migraphx.program, feed: dict[str, np.ndarray]) -> list[bytes]:
    """The outputs of a program on the reference, bit for bit."""
    return [np.array(a).tobytes() for a in p.run(feed)]
