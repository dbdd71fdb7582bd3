"""Copies ahead and `ldmatrix` in NVIDIA's kernels, as their PTX has them; no GPU is needed."""

from __future__ import annotations

import re

import numpy as np
import pytest
from onnx import TensorProto, helper

from mgx_mlir.targets import worker_fragments
from tests.lowering.test_nvidia_kernels import kernels_of

HALF, BF16 = TensorProto.FLOAT16, TensorProto.BFLOAT16
LANES = 32


def matmul(rows: int | str, columns: int, depth: int) -> str:
    """The PTX of a matmul by weights, with its name as the first word."""
    w = np.random.default_rng(0).standard_normal((depth, columns)).astype(np.float16)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    ports = {"x": (HALF, [rows, depth]), "y": (HALF, [rows, columns])}
    kernels = kernels_of(nodes, ports, w=w)
    [kernel] = [k for k in kernels if "mma.sync" in k.text]
    assert kernel.local == 0
    return kernel.text


@pytest.mark.parametrize(
    ("rows", "columns", "depth"),
    [(128, 768, 768), (512, 2304, 768), (6144, 768, 256), (100, 200, 768), ("n", 768, 768)],
)
def test_a_loop_copies_ahead_and_reads_matrices(rows: int | str, columns: int, depth: int) -> None:
    text = matmul(rows, columns, depth)
    copies = [int(n) for n in re.findall(r"cp\.async\.cg\.shared\.global .*, (\d+)", text)]
    assert copies
    assert set(copies) == {16}
    # every copy of a loop is of a group, and all groups are waited for at the end
    assert "cp.async.commit_group" in text
    assert re.findall(r"cp\.async\.wait_group\s+(\d+)", text)[-1] == "0"
    assert "ldmatrix.sync.aligned.m8n8.x4.shared.b16" in text
    assert "ld.shared" not in text
    assert "st.shared" not in text


def test_rows_beyond_the_last_are_filled_with_zeros() -> None:
    """A copy of a masked row reads nothing: its count of bytes is 0, from which zeros follow."""
    text = matmul("n", 768, 768)
    assert re.search(r"cp\.async\.cg\.shared\.global \[[^\]]+\], \[[^\]]+\], 16, %r\d+", text)


def test_one_iteration_has_no_loop_to_copy_ahead_in() -> None:
    text = matmul(3136, 256, 64)
    assert "cp.async" not in text
    assert "ldmatrix" in text


@pytest.mark.parametrize("kind", [HALF, BF16])
def test_keys_and_values_are_copied_ahead_and_values_turned_as_they_are_read(kind: int) -> None:
    dims = [2, 4, 128, 64]
    nodes = [
        helper.make_node("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["x", "t"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    kernels = kernels_of(nodes, dict.fromkeys("xkvy", (kind, dims)))
    [kernel] = [k for k in kernels if "mma.sync" in k.text]
    assert "cp.async.cg" in kernel.text
    assert "ldmatrix.sync.aligned.m8n8.x4.shared.b16" in kernel.text
    assert "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16" in kernel.text
    assert "ld.shared" not in kernel.text
    assert "ex2.approx.ftz.f32" in kernel.text
    assert kernel.local == 0


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("odd", "upper"), [(8, 16), (320, 8), (8, 320)])
def test_lanes_name_rows_so_that_each_gets_its_own_pairs(
    turned: bool, odd: int, upper: int
) -> None:
    """A lane gets from the hardware the four pairs that it read by itself before."""
    stride = 40
    near, row = (stride, 1) if turned else (1, stride)
    shares = worker_fragments.lane_terms(stride, odd, upper, turned=turned)
    for lane in range(LANES):
        own = lane // 4 * row + 2 * (lane % 4) * near  # offset of its first pair
        for matrix in range(4):
            begin = odd * (matrix % 2) + upper * (matrix // 2)
            for i in range(2):
                wanted = own + begin + i * near
                # the row that holds it: that of the lane which names it, less that lane's own pair
                at = 2 * (lane % 4) + i if turned else lane // 4
                names = 8 * matrix + at
                pair = names // 4 * row + 2 * (names % 4) * near
                first = pair + sum(names % of // by * times for by, of, times in shares)
                inside = lane // 4 if turned else 2 * (lane % 4) + i
                assert first + inside == wanted
