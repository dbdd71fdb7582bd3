"""Weights as the runtime reads them: what is computed of them when a model is compiled, too."""

from __future__ import annotations

import numpy as np

import mgx_mlir
from mgx_mlir.compiler.iree_program import IreeProgram
from tests.support.models import parsed


def test_weights_in_a_layout_of_their_own_are_not_copied_at_load() -> None:
    """Weights of a matmul, of a convolution, and one that is folded from constants."""
    rng = np.random.default_rng(0)
    dims = {"dense": (96, 200), "kernel": (24, 16, 3, 3), "table": (200, 300)}
    weights = {n: rng.standard_normal(d) for n, d in dims.items()}
    model = parsed(
        """(float[b,96] x, float[1,16,20,20] image, int64[b] rows) => (float[] y, float[] z) {
        a = MatMul (x, dense) turned = Transpose <perm = [1,0]> (table) more = Exp (turned)
        picked = Gather (more, rows) y = Add (a, picked) z = Conv (image, kernel) }""",
        weights,
        opset=18,
    )
    program = mgx_mlir.compile(model, "cpu", cache=False)
    assert isinstance(program, IreeProgram)
    assert sum(a.nbytes for a in program.params.values()) > 300_000
    assert program.load().copied_parameter_bytes == 0
