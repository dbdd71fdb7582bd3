"""Pads that mirror or repeat a border, as copies of rows: planes and channels-last, dynamic
dims."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

import mgx_mlir
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from tests.support.models import bytes_of, node

# dims with None for those that are open, pads of the beginnings and ends
CASES = {
    "planes": ([None, 3, None, None], [0, 0, 4, 4, 0, 0, 4, 4]),
    "uneven": ([None, 2, None, None], [0, 0, 1, 2, 0, 0, 0, 3]),
    "last": ([None, None, 19], [0, 0, 5, 0, 0, 2]),
    "channels": ([None, None, None, 19], [0, 1, 2, 0, 0, 3, 1, 0]),
    "rows": ([None, None, 33], [0, 2, 0, 0, 1, 0]),
    "apart": ([None, 3, None, 5], [2, 0, 1, 0, 1, 0, 2, 0]),
    "fixed": ([2, 9, 7, 16], [0, 1, 2, 0, 0, 3, 1, 0]),
}


def model() -> bytes:
    """Each case by each mode, one input each."""
    inputs, outputs, nodes, held = {}, {}, [], {}
    for name, (dims, pads) in CASES.items():
        kind = TensorProto.INT8 if name == "rows" else TensorProto.FLOAT
        inputs[name] = (kind, [f"{name}{i}" if d is None else d for i, d in enumerate(dims)])
        held[f"{name}_pads"] = np.asarray(pads, np.int64)
        for mode in ("reflect", "edge"):
            nodes.append(node("Pad", f"{name} {name}_pads", f"{name}_{mode}", mode=mode))
            outputs[f"{name}_{mode}"] = (kind, [None] * len(dims))
    return bytes_of(nodes, inputs, outputs, held, opset=18)


@pytest.mark.parametrize("target", ["cpu", "ref"])
def test_borders(target: str) -> None:
    data = model()
    program = mgx_mlir.compile(data, target)
    rng = np.random.default_rng(0)
    for sizes in ((5, 5, 5, 5), (7, 6, 9, 8), (5, 31, 47, 64), (6, 5, 6, 17)):
        feeds = {}
        for name, (dims, _) in CASES.items():
            own = [n if d is None else d for d, n in zip(dims, sizes, strict=False)]
            values = rng.integers(-100, 100, own)
            feeds[name] = values.astype(np.int8 if name == "rows" else np.float32)
        got = iter(program.run(feeds))
        for name, (dims, pads) in CASES.items():
            widths = list(zip(pads[: len(dims)], pads[len(dims) :], strict=True))
            for mode in ("reflect", "edge"):
                want = np.pad(feeds[name], widths, mode=mode)
                np.testing.assert_array_equal(next(got), want, err_msg=f"{name} {mode} {sizes}")


@pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")
def test_they_are_vector_kernels() -> None:
    made = mgx_mlir.compile(model(), "cpu")
    assert isinstance(made, IreeProgram)
    names = made.executable.dispatches["main"]
    assert sum(n.endswith("_pad") for n in names) == 2 * (len(CASES) - 1), "but of axes apart"


def test_an_empty_image_has_no_border_to_read() -> None:
    program = mgx_mlir.compile(model(), "cpu")
    feeds = {}
    for name, (dims, _) in CASES.items():
        kind = np.int8 if name == "rows" else np.float32
        feeds[name] = np.ones([0 if d is None else d for d in dims], kind)
    with pytest.raises(mgx_mlir.MgxError, match="expected dim 2 of input 'planes'"):
        program.run(feeds)
