"""Lowering a program again gives the same bytes, whatever the addresses of Python's objects are."""

from __future__ import annotations

import onnx.parser
import pytest

from mgx_mlir.frontends.onnx.importer import parse_onnx_buffer
from mgx_mlir.passes.lowering.lower import lower_to_linalg
from mgx_mlir.passes.lowering.options import LowerOptions

MODELS = [
    """g (float[a, b, c] x, int64[3] shape) => (float[p, q, r] y) { y = Expand(x, shape) }""",
    """g (float[n, m] x, float[p, q] y) => (float[r, s] z) { w = Add(x, y) z = Mul(w, y) }""",
]


@pytest.mark.parametrize("text", MODELS, ids=["expand", "broadcasts"])
def test_the_lowered_bytes_repeat(text: str) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 18]> {text}')
    kept, found = [], set()
    for _ in range(12):
        program = parse_onnx_buffer(model.SerializeToString())
        lowered = lower_to_linalg(program, LowerOptions("cpu"))
        found.add(lowered.bytecode)
        kept.append((program, lowered))  # new objects get new addresses
    assert len(found) == 1
