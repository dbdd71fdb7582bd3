"""Products in tile registers: their layout, how they are cut, and their sums."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

import mgx_mlir
from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir, tensor
from mgx_mlir.hardware.machine import has_tile_registers, processor_features
from mgx_mlir.passes.lowering.cpu.attention import attention, attention_tiles
from mgx_mlir.passes.lowering.cpu.frame.epilogue import Epilogue
from mgx_mlir.passes.lowering.cpu.frame.isa import AMX, AVX512_BF16, isa_of
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import index_constant
from mgx_mlir.passes.lowering.cpu.matmul import tiled_dot as loops
from mgx_mlir.passes.lowering.cpu.matmul.tile_registers import (
    COLUMNS,
    ROWS,
    Operands,
    TilePanels,
)
from mgx_mlir.passes.lowering.cpu.windows import tiled_convolution
from mgx_mlir.passes.lowering.cpu.windows.convolution_shape import ConvShape, Extents
from mgx_mlir.targets.flags import STACK_LIMIT
from tests.lowering.vector_kernels import run
from tests.support.models import model_of, node
from tests.support.oracle import ort_session

FLOAT = TensorProto.FLOAT
BF16 = ml_dtypes.bfloat16
TYPES = {dtypes.BF16: BF16, dtypes.UINT8: np.uint8, dtypes.INT8: np.int8}
has_tiles = pytest.mark.skipif(not has_tile_registers(), reason="no tile registers here")


def same(dtype: DType = dtypes.BF16) -> Epilogue:
    """Return the epilogue that stores sums."""
    kind = Operands(dtype).sums
    return Epilogue([], [kind], lambda k, given, sums, at, reads, masked: [sums])


def draw(numbers: np.random.Generator, dtype: DType, *dims: int) -> np.ndarray:
    """Return an array as arguments have it: u8 as i8 of the same bits."""
    if dtype is dtypes.BF16:
        return numbers.standard_normal(dims).astype(BF16)
    return numbers.integers(0, 256, dims).astype(np.uint8).view(np.int8)


def numbers_of(x: np.ndarray, dtype: DType) -> np.ndarray:
    """Return the numbers that an argument stands for, in f64."""
    return x.view(TYPES[dtype]).astype(np.float64)


def test_processors_that_have_them() -> None:
    for name in ("sapphirerapids", "graniterapids"):
        assert isa_of(name) is AMX
    assert isa_of("znver4") is AVX512_BF16
    if not {"amx_tile", "amx_bf16", "amx_int8"} <= processor_features():
        assert not has_tile_registers()


def test_who_takes_them() -> None:
    assert loops.takes(128, 768, dtypes.BF16, AMX)
    assert not loops.takes(128, 768, dtypes.BF16, AVX512_BF16)
    assert not loops.takes(128, 768, dtypes.FLOAT, AMX)
    assert not loops.takes(1, 768, dtypes.BF16, AMX)
    assert not loops.takes(128, 8, dtypes.BF16, AMX)
    assert loops.takes(128, 768, dtypes.UINT8, AMX)
    assert loops.takes(128, 768, dtypes.INT8, AMX)
    assert not loops.takes(128, 768, dtypes.UINT8, AVX512_BF16)
    assert not loops.takes(128, 31, dtypes.INT8, AMX)


@given(
    st.sampled_from(tuple(TYPES)),
    st.one_of(st.none(), st.integers(1, 5000)), st.integers(1, 20000), st.integers(1, 40000)
)  # fmt: skip
def test_cut(dtype: DType, rows: int | None, depth: int, columns: int) -> None:
    """Scratch fits the stack, workgroups are whole blocks, and no group of panels is empty."""
    own = Operands(dtype)
    cut = loops.plan(own, rows, own.chunks_of(depth), columns)
    assert cut.rows % (cut.blocks * ROWS) == 0
    assert 1 <= cut.groups <= -(-columns // cut.width)
    assert cut.scratch <= STACK_LIMIT * 3 // 4


@given(
    st.sampled_from(tuple(TYPES)), st.integers(1, 70), st.integers(1, 70), st.integers(1, 2)
)  # fmt: skip
def test_layout(dtype: DType, depth: int, columns: int, across: int) -> None:
    """A register has neighbours of the depth beside each other; what is beyond an end is 0."""
    matrix = np.arange(1, depth * columns + 1, dtype=np.float32).reshape(depth, columns)
    own = Operands(dtype)
    packed = TilePanels(own, across).packed(matrix)
    panels, chunks, _ = packed.shape
    assert panels % across == 0
    whole = packed.reshape(panels, chunks, own.chunk // own.unit, COLUMNS, own.unit)
    whole = whole.transpose(1, 2, 4, 0, 3).reshape(chunks * own.chunk, panels * COLUMNS)
    np.testing.assert_array_equal(whole[:depth, :columns], matrix)
    assert not whole[depth:].any()
    assert not whole[:, columns:].any()


sizes = st.tuples(
    st.one_of(st.integers(1, 40), st.sampled_from((64, 130))),
    st.one_of(st.integers(1, 70), st.sampled_from((768, 1600, 5000))),
    st.one_of(st.integers(1, 70), st.sampled_from((96, 200))),
)


@has_tiles
@settings(deadline=None, max_examples=6)
@given(st.sampled_from(tuple(TYPES)), sizes, st.booleans())
def test_sums(dtype: DType, size: tuple[int, int, int], is_dynamic: bool) -> None:
    """Partial blocks, panels and chunks; a depth in parts; what follows sees each row once."""
    rows, depth, columns = size
    numbers = np.random.default_rng(rows + depth + columns)
    weights = dtypes.INT8 if dtype.is_integer else dtype
    x, w = draw(numbers, dtype, rows, depth), draw(numbers, weights, depth, columns)
    own = Operands(dtype)
    cut = loops.plan(own, None if is_dynamic else rows, own.chunks_of(depth), columns)

    def build(x: ir.Value, w: ir.Value) -> list[ir.Value]:
        count = tensor.DimOp(x, index_constant(0)).result if is_dynamic else rows
        return loops.matmul(count, depth, columns, cut, AMX, [x, w], same(dtype))

    (found,) = run(build, [x, cut.layout.packed(w)], is_dynamic=[is_dynamic, False])
    want = numbers_of(x, dtype) @ numbers_of(w, weights)
    limit = 0 if dtype.is_integer else 1e-5 * np.abs(want).max()
    np.testing.assert_allclose(found, want, atol=limit, rtol=0)


@has_tiles
def test_numbers_that_are_none() -> None:
    """NaN and infinities of a row reach that row alone, and no partial block or chunk."""
    x, w = np.ones((18, 40), BF16), np.ones((40, 20), BF16)
    x[3, 2], x[17, 39] = np.nan, np.inf
    cut = loops.matmul_plan(dtypes.BF16, 18, 40, 20)
    (found,) = run(
        lambda x, w: loops.matmul(18, 40, 20, cut, AMX, [x, w], same()), [x, cut.layout.packed(w)]
    )
    want = np.full((18, 20), 40.0)
    want[3], want[17] = np.nan, np.inf
    np.testing.assert_array_equal(found, want)


def _windows(shape: ConvShape) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return an image, weights, and what the convolution gives in f64."""
    numbers, dtype = np.random.default_rng(shape.inputs), shape.multiplied
    weights = dtypes.INT8 if dtype.is_integer else dtype
    x = draw(numbers, dtype, shape.batch, *shape.size, shape.inputs)
    w = draw(numbers, weights, *shape.kernel, shape.inputs, shape.outputs)
    (kh, kw), (high, wide), (sh, sw), (dh, dw) = (
        shape.kernel, shape.counts, shape.stride, shape.dilation
    )  # fmt: skip
    whole = np.full((shape.batch, *(100, 100), shape.inputs), float(shape.border))
    top, left = shape.low
    whole[:, top : top + shape.size[0], left : left + shape.size[1]] = numbers_of(x, dtype)
    want = np.zeros((shape.batch, high, wide, shape.outputs))
    for i in range(kh):
        for j in range(kw):
            rows, columns = (
                slice(i * dh, i * dh + high * sh, sh),
                slice(j * dw, j * dw + wide * sw, sw),
            )
            want += whole[:, rows, columns][:, :high, :wide] @ numbers_of(w[i, j], weights)
    return x, w, want


CONVOLUTIONS = {
    "1x1": ConvShape(2, (5, 7), 64, 40, (1, 1), (1, 1), (1, 1), (0, 0), (5, 7)),
    "1x1 strided": ConvShape(1, (7, 7), 48, 16, (1, 1), (2, 2), (1, 1), (0, 0), (4, 4)),
    "border": ConvShape(2, (6, 5), 32, 33, (3, 3), (1, 1), (1, 1), (1, 1), (6, 5), high=(1, 1)),
    "partial runs": ConvShape(
        2, (6, 9), 24, 8, (3, 3), (1, 1), (1, 1), (1, 1), (6, 9), high=(1, 1)
    ),
    "strided": ConvShape(1, (9, 12), 16, 32, (3, 3), (2, 2), (1, 1), (1, 1), (5, 6), high=(1, 0)),
    "dilated": ConvShape(1, (9, 8), 20, 16, (3, 3), (1, 1), (2, 3), (2, 3), (9, 8), high=(2, 3)),
    "planes": ConvShape(
        2, (11, 12), 3, 16, (7, 7), (2, 2), (1, 1), (3, 3), (6, 6), planar=True, high=(3, 3)
    ),
    "wider than the image": ConvShape(
        1, (3, 2), 32, 16, (1, 5), (1, 1), (1, 1), (0, 2), (3, 2), high=(0, 2)
    ),
    "pieces of a run": ConvShape(
        1, (4, 5), 1100, 16, (3, 3), (1, 1), (1, 1), (1, 1), (4, 5), high=(1, 1)
    ),
}


# element types of convolutions; a border of 8-bit integers is their zero point
ELEMENTS: dict[str, dict[str, Any]] = {
    "bf16": {"narrow": True, "unit": 2},
    "u8": {"unit": 4, "border": 200},
    "i8": {"unit": 4, "border": -7, "signed": True},
}


@has_tiles
@pytest.mark.parametrize("elements", ELEMENTS)
def test_windows(elements: str) -> None:
    """Borders, strides and dilations; runs in parts and in pieces; images one after the other."""
    arrays, wants = [], []
    cases = {n: replace(s, **ELEMENTS[elements]) for n, s in CONVOLUTIONS.items()}
    dtype = cases["border"].multiplied
    for shape in cases.values():
        assert tiled_convolution.takes(shape, AMX) or dtype.is_integer
        x, w, want = _windows(shape)
        runs, cut = tiled_convolution.Runs.of(shape), tiled_convolution.plan(shape)
        given = np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if shape.planar else x
        arrays += [given.reshape(-1), cut.layout.packed(runs.matrix(w))]
        wants.append(want.reshape(-1, shape.outputs))
    assert tiled_convolution.Runs.of(cases["pieces of a run"]).pieces > 1

    def build(*given: ir.Value) -> list[ir.Value]:
        found: list[ir.Value] = []
        for shape, x, w in zip(cases.values(), given[::2], given[1::2], strict=True):
            cut, extents = tiled_convolution.plan(shape), Extents.of(shape)
            if shape.planar:
                last = tiled_convolution.channels_last(shape, extents, x)
                x = tensor.CollapseShapeOp(x.type, last, [[0, 1]]).result
            found += tiled_convolution.convolution(shape, cut, AMX, x, w, same(dtype), extents)
        return found

    for name, found, want in zip(cases, run(build, arrays), wants, strict=True):
        limit = 0 if dtype.is_integer else 1e-5 * np.abs(want).max()
        np.testing.assert_allclose(found, want, atol=limit, rtol=0, err_msg=name)


@has_tiles
def test_dynamic_images() -> None:
    """Sizes that the run decides: one convolution of planes, one of channels."""
    numbers = np.random.default_rng(5)
    weights = {
        "v": numbers.integers(-2, 3, (16, 3, 3, 3)).astype(np.float32),
        "w": numbers.integers(-1, 2, (24, 16, 3, 3)).astype(np.float32),
    }
    nodes = [
        node("Conv", "x v", "c", pads=[1] * 4, strides=[2, 2]),
        node("Conv", "c w", "y", pads=[1] * 4),
    ]
    inputs, outputs = {"x": (FLOAT, ["n", 3, "h", "w"])}, {"y": (FLOAT, ["n", 24, "a", "b"])}
    model = model_of(nodes, inputs, outputs, weights, opset=18)
    program = mgx_mlir.parse_onnx_buffer(
        model.SerializeToString(), default_dyn_dim_value=mgx_mlir.dynamic_dimension(1, 64)
    )
    mgx_mlir.quantize_bf16(program)
    compiled = mgx_mlir.compile(program, target="cpu", cache=False)
    for size in ((2, 3, 9, 14), (1, 3, 20, 5), (3, 3, 1, 1)):
        x = numbers.integers(-2, 3, size).astype(np.float32)
        want = ort_session(model).run(None, {"x": x})[0]
        (found,) = compiled.run({"x": x})
        # numbers above 256 are rounded twice
        np.testing.assert_allclose(found, want, atol=2**-6 * np.abs(want).max())


def _attention(q: int, keys: int, width: int, depth: int, *, mask: bool) -> onnx.ModelProto:
    """Return softmax(q k^T / 8 + mask) v of two times three heads."""
    scale = {"s": np.float32(0.125).reshape(())}
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
    return model_of(nodes, inputs, {"y": (FLOAT, [2, 3, q, depth])}, scale, opset=18)


@has_tiles
@pytest.mark.parametrize(
    ("size", "mask"),
    [((128, 128, 64, 64), True), ((70, 300, 32, 48), False), ((20, 37, 96, 16), True),
     ((65, 512, 64, 32), True)],
)  # fmt: skip
def test_attention(
    size: tuple[int, int, int, int], mask: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys in blocks and partial chunks, queries that no register fills, scores that are -inf."""
    numbers = np.random.default_rng(size[1])
    model = _attention(*size, mask=mask)
    given: dict[str, np.ndarray] = {}
    for port in model.graph.input:
        dims = [d.dim_value for d in port.type.tensor_type.shape.dim]
        x = numbers.standard_normal(dims)
        if port.name == "m":
            x = np.where(x > 1, -np.inf, x)
            x[0, 0, 3] = -np.inf
            x[0, 0, 3, 5] = 0
        given[port.name] = x.astype(BF16).astype(np.float32)
    program = mgx_mlir.parse_onnx_buffer(model.SerializeToString())
    mgx_mlir.quantize_bf16(program)
    taken: list[bool] = []
    takes = attention_tiles.takes
    monkeypatch.setattr(
        attention, "takes", lambda *a, **more: taken.append(takes(*a, **more)) or taken[-1]
    )
    compiled = mgx_mlir.compile(program, target="cpu", cache=False)
    assert taken
    assert all(taken)
    (found,) = compiled.run(given)
    scores = given["q"].astype(np.float64) @ given["k"].astype(np.float64).swapaxes(-1, -2) / 8
    scores += given["m"] if mask else 0
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ given["v"].astype(np.float64)
    np.testing.assert_allclose(found, want, atol=2**-7 * np.abs(want).max())
    assert np.abs(found - want).mean() < 2**-9 * np.abs(want).max()
