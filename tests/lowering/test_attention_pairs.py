"""Attention of bf16 by the instruction that multiplies pairs."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest

import mgx_mlir
from mgx_mlir.hardware.machine import has_tile_registers
from mgx_mlir.passes.lowering.cpu.attention import attention, attention_pairs
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.support.models import model_of, node

FLOAT = onnx.TensorProto.FLOAT
host = isa_of("host")
has_pairs = pytest.mark.skipif(
    not (host and host.bf16_dot) or has_tile_registers(),
    reason="no instruction for pairs of bf16, or tile registers",
)


# queries, keys, width, depth, and whether there is a mask
SIZES = [((128, 128, 64, 64), True), ((70, 301, 32, 48), False), ((20, 37, 96, 16), True),
         ((65, 512, 64, 32), True), ((33, 129, 32, 16), False)]  # fmt: skip


def _attention(q: int, keys: int, width: int, depth: int, *, mask: bool) -> onnx.ModelProto:
    """Return softmax(q k^T / 8 + mask) v of two times three heads."""
    nodes = [
        node("Transpose", "k", "t", perm=[0, 1, 3, 2]),
        node("MatMul", "q t", "p"),
        node("Mul", "p s", "r"),
        *([node("Add", "r m", "a")] if mask else []),
        node("Softmax", "a" if mask else "r", "w", axis=-1),
        node("MatMul", "w v", "y"),
    ]
    sizes = {"q": [2, 3, q, width], "k": [2, 3, keys, width], "v": [2, 3, keys, depth]}
    inputs = {n: (FLOAT, dims) for n, dims in sizes.items()}
    if mask:
        inputs["m"] = (FLOAT, [2, 1, q, keys])
    scale = {"s": np.float32(0.125).reshape(())}
    return model_of(nodes, inputs, {"y": (FLOAT, [2, 3, q, depth])}, scale, opset=18)


@has_pairs
@pytest.mark.parametrize("rounds", [False, True], ids=["bf16", "row_bits"])
@pytest.mark.parametrize(("size", "mask"), SIZES)
def test_sizes(
    size: tuple[int, int, int, int], mask: bool, rounds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys in blocks, a last key alone, queries that no register fills, scores that are -inf.

    rounds: operands are f32, and 8 bits for rows let the kernel round them.
    """
    numbers = np.random.default_rng(size[1])
    model = _attention(*size, mask=mask)
    given: dict[str, np.ndarray] = {}
    for port in model.graph.input:
        x = numbers.standard_normal([d.dim_value for d in port.type.tensor_type.shape.dim])
        if port.name == "m":
            x = np.where(x > 1, -np.inf, x)
            x[0, 0, 3] = -np.inf
            x[0, 0, 3, 5] = 0
        given[port.name] = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    program = mgx_mlir.parse_onnx_buffer(model.SerializeToString())
    if not rounds:
        mgx_mlir.quantize_bf16(program)
    taken: list[bool] = []
    takes = attention_pairs.takes
    monkeypatch.setattr(
        attention, "takes_pairs", lambda *a, **b: taken.append(takes(*a, **b)) or taken[-1]
    )
    compiled = mgx_mlir.compile(program, target="cpu", cache=False, row_bits=8 if rounds else 16)
    assert taken
    assert all(taken)
    (found,) = compiled.run(given)
    scores = given["q"].astype(np.float64) @ given["k"].astype(np.float64).swapaxes(-1, -2) / 8
    scores += given["m"] if mask else 0
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ given["v"].astype(np.float64)
    np.testing.assert_allclose(found, want, atol=2**-7 * np.abs(want).max())
    assert np.abs(found - want).mean() < 2**-9 * np.abs(want).max()


@has_pairs
def test_special_values() -> None:
    """NaN of a query reaches its row alone, an infinite value the elements of its column; the last
    key, which has no neighbour, adds no NaN.
    """
    numbers = np.random.default_rng(2)
    q, k, v = (numbers.standard_normal((2, 3, n, 32)).astype(np.float32) for n in (20, 37, 37))
    q[0, 0, 4, 1] = np.nan
    v[1, 2, 36, 7] = np.inf
    program = mgx_mlir.parse_onnx_buffer(_attention(20, 37, 32, 32, mask=False).SerializeToString())
    mgx_mlir.quantize_bf16(program)
    (found,) = mgx_mlir.compile(program, target="cpu", cache=False).run({"q": q, "k": k, "v": v})
    wrong = np.isnan(found)
    assert wrong[0, 0, 4].all()
    assert wrong.sum() == 32
    assert (found[1, 2, :, 7] == np.inf).all()
    assert np.isinf(found).sum() == 20
