"""Operators on views of larger tensors, on emulated GPUs, at sizes where threads have vectors.

A view's rows lie apart, in another order, or are one row. Each operator reads eight views of 8, 3
and 64 elements, and onnxruntime gives the wanted numbers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto

import mgx_mlir
from tests.support.models import parsed

VIEWS = {  # dims of the tensor, and the view V of it
    "columns": ("8,15,64", "V = Slice (x, n9, n12, n1)"),
    "inner": ("8,5,80", "V = Slice (x, n1_7, n4_71, n1_2)"),
    "reshaped": ("8,960", "V_u = Slice (x, n576, n768, n1) V = Reshape (V_u, dims)"),
    "steps": ("8,6,64", "V = Slice (x, n0, n6, n1, n2)"),
    "steps_inner": ("8,3,128", "V = Slice (x, n1, n128, n2, n2)"),
    "transposed": ("64,3,8", "V = Transpose <perm = [2, 1, 0]> (x)"),
    "swapped": ("3,8,96", "V_u = Slice (x, n32, n96, n2) V = Transpose <perm = [1, 0, 2]> (V_u)"),
    "broadcast": ("8,2,64", "V_u = Slice (x, n1, n2, n1) V = Expand (V_u, dims)"),
}
READERS = {
    "argmax": "y = ArgMax <axis = 1> (s)",
    "average_pool": "y = AveragePool <kernel_shape = [5]> (s)",
    "compress": "y = Compress <axis = 1> (s, picked)",
    "concat": "y = Concat <axis = 1> (s, s)",
    "conv": "y = Conv <pads = [1, 1]> (s, w)",
    "conv_of_groups": "y = Conv <pads = [1, 1], group = 3> (s, w_of_one)",
    "conv_transpose": "y = ConvTranspose (s, w_back)",
    "cumsum": "y = CumSum (s, number1)",
    "depth_to_space": "r = Reshape (s, blocks) y = DepthToSpace <blocksize = 2> (r)",
    "einsum": 'y = Einsum <equation = "bij,bkj->bik"> (s, s)',
    "gather": "y = Gather <axis = 2> (s, at)",
    "gather_elements": "y = GatherElements <axis = 1> (s, rows)",
    "gather_nd": "y = GatherND (s, pairs)",
    "layer_norm": "y = LayerNormalization (s, ones)",
    "lp_norm": "y = LpNormalization <axis = 1> (s)",
    "matmul": "y = MatMul (s, m)",
    "matmul_of_batch": "y = MatMul (left, s)",
    "max_pool": "y = MaxPool <kernel_shape = [3], strides = [2]> (s)",
    "pad": "y = Pad (s, pads)",
    "pad_edge": 'y = Pad <mode = "edge"> (s, pads)',
    "pad_reflect": 'y = Pad <mode = "reflect"> (s, pads)',
    "reduce": "y = ReduceL2 <keepdims = 1> (s, n1)",
    "reshape_gather": "r = Reshape (s, two) y = Gather <axis = 1> (r, at)",
    "resize": 'y = Resize <mode = "nearest"> (s, , scales)',
    "resize_linear": 'y = Resize <mode = "linear"> (s, , scales)',
    "reverse": "y = ReverseSequence <batch_axis = 0, time_axis = 1> (s, lengths)",
    "roi_align": "r = Reshape (s, image) y = RoiAlign <output_height = 2, output_width = 8> "
                 "(r, boxes, images)",
    "scatter_elements": "y = ScatterElements <axis = 1> (s, rows, doubles)",
    "scatter_nd": "y = ScatterND (s, pair, blocks_of_ones)",
    "softmax": "y = Softmax <axis = 1> (s)",
    "softmax_of_rows": "y = Softmax <axis = -1> (s)",
    "tile": "y = Tile (s, twice)",
    "top_k": "y, i = TopK <axis = 1> (s, n2)",
    "top_k_of_rows": "y, i = TopK <axis = 2> (s, n5)",
    "transpose": "y = Transpose <perm = [2, 1, 0]> (s)",
    "trilu": "y = Trilu (s)",
    "where": "c = Greater (s, zero) y = Where (c, s, zero)",
}  # fmt: skip
RNG = np.random.default_rng(1)


def draw(*dims: int) -> np.ndarray:
    return RNG.standard_normal(dims).astype(np.float32)


NUMBERS = {
    **{f"n{n}": np.array([n]) for n in (0, 1, 2, 5, 6, 9, 12, 32, 96, 128, 576, 768)},
    "n1_7": np.array([1, 7]), "n4_71": np.array([4, 71]), "n1_2": np.array([1, 2]),
    "dims": np.array([8, 3, 64]), "two": np.array([24, 64]), "image": np.array([8, 1, 3, 64]),
    "blocks": np.array([2, 12, 1, 64]), "picked": np.array([1, 0, 1], bool),
    "w": draw(4, 3, 3), "w_of_one": draw(3, 1, 3), "w_back": draw(3, 4, 3), "m": draw(64, 32),
    "left": draw(8, 16, 3), "ones": np.ones(64, np.float32), "zero": np.float32(0),
    "number1": np.array(1), "at": RNG.integers(0, 64, 16),
    "rows": RNG.random((8, 3, 64)).argsort(1),
    "doubles": draw(8, 3, 64), "pairs": np.array([[0, 1], [7, 2], [3, 0], [4, 2]]),
    "pair": np.array([[1], [5]]), "blocks_of_ones": np.ones((2, 3, 64), np.float32),
    "pads": np.array([0, 1, 2, 0, 1, 3]), "scales": np.array([1, 1, 2], np.float32),
    "lengths": np.array([3, 2, 1, 3, 2, 3, 2, 3]), "twice": np.array([1, 2, 2]),
    "boxes": np.array([[0, 0, 2, 30], [0, 0, 1, 50]], np.float32), "images": np.array([1, 3]),
}  # fmt: skip
QUICK = ("gather", "pad_reflect", "resize_linear", "softmax", "top_k", "conv")


def model(reader: str) -> ModelProto:
    """Return a model with an input for each view, and an output for each."""
    inputs, outputs, nodes = [], [], []
    for view, (dims, text) in VIEWS.items():
        inputs.append(f"float[{dims}] {view}")
        rank = "a,b,c,d" if reader in ("roi_align", "depth_to_space") else "a,b,c"
        rank = "a,b" if reader in ("reshape_gather", "gather_nd") else rank
        outputs.append(f"{'int64' if reader == 'argmax' else 'float'}[{rank}] y_{view}")
        text = text.replace("V", f"s_{view}").replace("(x", f"({view}")
        read = READERS[reader]
        for name in ("s", "y", "r", "i", "c"):
            for before, behind in ((" ", " "), ("(", ","), ("(", ")"), (" ", ","), (" ", ")")):
                read = f" {read}".replace(
                    before + name + behind, f"{before}{name}_{view}{behind}"
                ).strip()
        nodes.append(f"{text} {read}")
    text = f"({', '.join(inputs)}) => ({', '.join(outputs)}) {{ {' '.join(nodes)} }}"
    return parsed(text, NUMBERS, opset=20)


@pytest.mark.parametrize("arch", ["gfx942", pytest.param("gfx1201", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "reader", [r if r in QUICK else pytest.param(r, marks=pytest.mark.slow) for r in READERS]
)
def test_views(reader: str, arch: str, library: Path) -> None:
    made = model(reader).SerializeToString()
    rng = np.random.default_rng(0)
    inputs = {
        view: rng.standard_normal([int(d) for d in dims.split(",")]).astype(np.float32)
        for view, (dims, _) in VIEWS.items()
    }
    wanted = onnxruntime.InferenceSession(made).run(None, inputs)
    compiled = mgx_mlir.compile(made, "gpu", arch=arch, emulate=True, cache=False)
    for view, got, want in zip(VIEWS, compiled.run(inputs), wanted, strict=True):
        # sums of up to 64 products of numbers about 1, in another order
        np.testing.assert_allclose(got, np.array(want), rtol=1e-5, atol=3e-5, err_msg=view)
