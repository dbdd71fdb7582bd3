"""Whole models, with weights drawn by weights.py, against what TensorFlow computed.

The stored graphs are frozen ones; those whose names end in _v1 have the control flow of version 1.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.frontends.tf import schema
from mgx_mlir.frontends.tf.options import TfOptions
from mgx_mlir.frontends.tf.program import parse_tf_buffer
from zoo.tf_cases import weights

DATA = Path(__file__).parent / "data" / "models"
NAMES = sorted(p.stem for p in DATA.glob("*.npz"))
LIMIT = 1e-4  # share of the largest magnitude
# the models of layers small enough to be compiled in seconds; the others are interpreted, and
# compiled in the slow tests
COMPILED = ["mnist", "lstm", "branches_v1", "unet", "transformer"]
OPEN = ["mnist", "lstm", "lstm_v1", "gru", "bidirectional", "masked_lstm_v1", "transformer", "unet"]


def stored(name):
    """The graph with its weights, the input's name and array, and what TensorFlow gives."""
    found = np.load(DATA / f"{name}.npz")
    meta = json.loads(bytes(found["meta"]))
    graph = schema.Graph()
    graph.ParseFromString(bytes(found["graph"]))
    weights.put_back(graph, meta["drawn"])
    wanted = [found[f"o{i}"] for i in range(len(meta["outputs"]))]
    return graph.SerializeToString(), meta, found["x"], wanted


def check(name, target, **options):
    data, meta, x, wanted = stored(name)
    options = {"batch_size": len(x), "output_names": meta["outputs"], **options}
    program = parse_tf_buffer(data, TfOptions(**options), name)
    compiled = mgx_mlir.compile(program, target)
    for found, w in zip(compiled.run({meta["input"]: x}), wanted, strict=True):
        assert found.shape == w.shape
        assert found.dtype == w.dtype
        assert np.isfinite(w).all()
        size = max(float(np.abs(w).max()), 1e-30)
        assert float(np.abs(found - w).max()) <= LIMIT * size
    return program


def test_every_model_of_the_list_is_stored():
    wanted = {"resnet50", "mobilenet_v2", "mobilenet_v3", "efficientnet", "densenet", "convnext",
              "transformer", "lstm", "gru", "unet", "preprocessing", "mnist"}  # fmt: skip
    assert wanted <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_interpreted(name):
    check(name, "ref")


@pytest.mark.parametrize("name", COMPILED)
def test_on_the_cpu(name):
    check(name, "cpu")


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in NAMES if n not in COMPILED])
def test_the_others_on_the_cpu(name):
    check(name, "cpu")


@pytest.mark.parametrize("name", OPEN)
def test_dynamic_batch(name):
    """The batch stays dynamic, in the program's types too."""
    program = check(name, "ref", batch_size=None)
    arguments = program.main().arguments
    assert any(DYN in TensorType.of(a).dims for a in arguments)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPEN)
def test_dynamic_batch_on_the_cpu(name):
    """One program for two sizes."""
    data, meta, x, wanted = stored(name)
    options = TfOptions(batch_size=None, output_names=meta["outputs"])
    compiled = mgx_mlir.compile(parse_tf_buffer(data, options, name), "cpu")
    for n in (len(x), 1):
        for found, w in zip(compiled.run({meta["input"]: x[:n]}), wanted, strict=True):
            assert found.shape == w[:n].shape
            assert float(np.abs(found - w[:n]).max()) <= LIMIT * float(np.abs(w).max())


def test_weights_are_those_that_were_drawn_when_the_cases_were_made():
    """The generator's stream is frozen: these are its numbers."""
    found = weights.draw(3, "dense/kernel", (2, 2)).reshape(-1)
    wanted = np.random.RandomState(1003).standard_normal(4) * (1.4 / 2**0.5)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
