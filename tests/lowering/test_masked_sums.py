"""Products and convolutions whose rows a mask of fewer dims scales, as speech models write them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import mgx_mlir
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.support.oracle import ort_session

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")
RNG = np.random.default_rng(3)


def model(rank: int) -> bytes:
    """Convolution and product of masked rows, and one whose own sums are seen without a dim."""
    numbers = {
        "w": RNG.standard_normal((9, 8, *[3] * (rank - 2))), "bias": RNG.standard_normal(9),
        "one": RNG.standard_normal((1, 8, *[3] * (rank - 2))), "m": RNG.standard_normal((8, 17)),
    }  # fmt: skip
    constants = [numpy_helper.from_array(a.astype(np.float32), n) for n, a in numbers.items()]
    constants += [
        numpy_helper.from_array(np.array([k], np.int64), n) for n, k in (("first", 1), ("last", -1))
    ]
    dims = ["b", *(["h"] if rank == 4 else []), "n"]
    pads = [1] * (2 * (rank - 2))
    nodes = [
        helper.make_node("Unsqueeze", ["mask", "first"], ["tall"]),
        helper.make_node("Conv", ["x", "w", "bias"], ["c"], pads=pads),
        helper.make_node("Mul", ["c", "tall"], ["y"]),
        helper.make_node("Conv", ["x", "one"], ["o"], pads=pads),
        helper.make_node("Squeeze", ["o", "first"], ["s"]),
        helper.make_node("Mul", ["s", "mask"], ["z"]),
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, *range(2, rank), 1]),
        helper.make_node("MatMul", ["t", "m"], ["p"]),
        helper.make_node("Unsqueeze", ["mask", "last"], ["wide"]),
        helper.make_node("Mul", ["p", "wide"], ["q"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "masked",
        [
            value("x", TensorProto.FLOAT, [dims[0], 8, *dims[1:]]),
            value("mask", TensorProto.FLOAT, dims),
        ],
        [value(n, TensorProto.FLOAT, None) for n in "yzq"],
        constants,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return made.SerializeToString()


@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize("fixed", [False, True])
def test_masks_stay_in_the_kernel(rank: int, fixed: bool) -> None:
    data = model(rank)
    session = ort_session(data)
    sizes = [(2, 5, 13), (1, 1, 1), (3, 4, 40)]
    program = None
    for b, h, n in sizes[:1] if fixed else sizes:
        own = (b, h, n) if rank == 4 else (b, n)
        x = RNG.standard_normal((b, 8, *own[1:])).astype(np.float32)
        mask = (RNG.random(own) < 0.7).astype(np.float32)
        given = {"x": x, "mask": mask}
        if program is None:
            dims = {k: list(v.shape) for k, v in given.items()} if fixed else {}
            program = mgx_mlir.compile(data, "cpu", threads=1, map_input_dims=dims, cache=False)
        for found, wanted in zip(program.run(given), session.run(None, given), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    names = [n for found in program.executable.dispatches.values() for n in found]
    assert any("convolution_add_mul" in n for n in names), names
    assert any("dot_mul" in n for n in names), names
    left_to_iree = [n for n in names if "_conv_" in n or "matmul" in n]
    assert len(left_to_iree) <= 1, left_to_iree  # the one whose sums are seen without a dim
