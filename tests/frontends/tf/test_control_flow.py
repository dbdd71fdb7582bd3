"""Loops, branches and tensor lists in every form (make_control.py), against TensorFlow."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.frontends.tf.options import TfOptions
from mgx_mlir.frontends.tf.program import parse_tf_buffer

DATA = Path(__file__).parent / "data" / "control"
CASES = sorted(p.stem for p in DATA.glob("*.npz"))
FORMS = ("v2", "lowered", "v1")
# one of each kind is compiled too; the targets' own tests look at loops and branches
COMPILED = [("branch_in_a_loop", "v1"), ("unstacked", "v2"), ("early_end", "v1")]


def check(name, form, target):
    found = np.load(DATA / f"{name}.npz")
    if form not in found:
        pytest.skip(f"version 1 has no form of {name}")
    meta = json.loads(bytes(found["meta"]))[form]
    options = TfOptions(output_names=meta["outputs"])
    program = parse_tf_buffer(bytes(found[form]), options, name)
    compiled = mgx_mlir.compile(program, target)
    for i in range(3):
        given = {meta["input"]: found[f"x{i}"]} if compiled.input_names else {}
        for k, y in enumerate(compiled.run(given)):
            wanted = found[f"o{i}_{k}"]
            assert y.shape == wanted.shape
            np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CASES)
def test_interpreted(name, form):
    check(name, form, "ref")


@pytest.mark.parametrize(("name", "form"), COMPILED)
def test_on_the_cpu(name, form):
    check(name, form, "cpu")


def test_every_case_is_stored():
    assert len(CASES) >= 17
