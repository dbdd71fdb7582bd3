"""Products and convolutions whose rows a mask of fewer dims scales, as speech models write them."""

from __future__ import annotations

import numpy as np
import pytest

from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.support.compare import agrees
from tests.support.models import bytes_of, node

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")
RNG = np.random.default_rng(3)


def model(rank: int) -> bytes:
    """Convolution and product of masked rows, and one whose own sums are seen without a dim."""
    weights = {
        "w": RNG.standard_normal((9, 8, *[3] * (rank - 2))), "bias": RNG.standard_normal(9),
        "one": RNG.standard_normal((1, 8, *[3] * (rank - 2))), "m": RNG.standard_normal((8, 17)),
        "first": np.array([1]), "last": np.array([-1]),
    }  # fmt: skip
    dims, pads = (["b", "h", "n"] if rank == 4 else ["b", "n"]), [1] * (2 * (rank - 2))
    nodes = [
        node("Unsqueeze", "mask first", "tall"),
        node("Conv", "x w bias", "c", pads=pads),
        node("Mul", "c tall", "y"),
        node("Conv", "x one", "o", pads=pads),
        node("Squeeze", "o first", "s"),
        node("Mul", "s mask", "z"),
        node("Transpose", "x", "t", perm=[0, *range(2, rank), 1]),
        node("MatMul", "t m", "p"),
        node("Unsqueeze", "mask last", "wide"),
        node("Mul", "p wide", "q"),
    ]
    inputs = {"x": [dims[0], 8, *dims[1:]], "mask": dims}
    return bytes_of(nodes, inputs, "y z q", weights, opset=18)


@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize("fixed", [False, True])
def test_masks_stay_in_the_kernel(rank: int, fixed: bool) -> None:
    calls = []
    for b, h, n in [(2, 5, 13), (1, 1, 1), (3, 4, 40)][: 1 if fixed else 3]:
        own = (b, h, n) if rank == 4 else (b, n)
        x = RNG.standard_normal((b, 8, *own[1:])).astype(np.float32)
        calls.append({"x": x, "mask": (RNG.random(own) < 0.7).astype(np.float32)})
    dims = {k: list(v.shape) for k, v in calls[0].items()} if fixed else {}
    program = agrees(model(rank), calls, threads=1, map_input_dims=dims)
    names = [n for found in program.executable.dispatches.values() for n in found]
    assert any("convolution_add_mul" in n for n in names), names
    assert any("dot_mul" in n for n in names), names
    left_to_iree = [n for n in names if "_conv_" in n or "matmul" in n]
    assert len(left_to_iree) <= 1, left_to_iree  # the one whose sums are seen without a dim
