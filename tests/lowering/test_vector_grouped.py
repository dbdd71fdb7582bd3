"""Grouped and depthwise convolutions as vector loops against sums in f64 and onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iree import runtime
from onnx import TensorProto, helper

import mgx_mlir
from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir, tensor
from mgx_mlir.core.shapes import DYN
from mgx_mlir.passes.lowering.cpu.frame.epilogue import Epilogue
from mgx_mlir.passes.lowering.cpu.frame.isa import AVX2, AVX512, NEON, Isa, isa_of
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.windows import grouped_convolution as loops
from mgx_mlir.passes.lowering.cpu.windows.convolution_shape import ConvShape, Extents
from mgx_mlir.passes.lowering.index_builder import IndexBuilder
from tests.lowering.programs import COMPILES
from tests.lowering.vector_kernels import compiled, run
from tests.support.models import model_of, node
from tests.support.oracle import ort_session

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

# groups, inputs and outputs of one
CHANNELS = (
    (1, 1, 1), (3, 1, 1), (17, 1, 1), (19, 1, 1), (32, 1, 1), (5, 1, 4), (6, 2, 1), (9, 4, 4),
    (4, 8, 8), (3, 3, 5), (7, 5, 3), (2, 16, 40), (2, 24, 16),
)  # fmt: skip


AXES = st.tuples(
    st.sampled_from((1, 2, 3, 5)), st.integers(1, 3), st.integers(1, 2), st.integers(0, 3),
    st.integers(0, 3), st.integers(1, 37),
)  # fmt: skip


def _count(size: int, axis: int, s: ConvShape) -> int:
    return max(0, (size + s.low[axis] + s.high[axis] - s.span(axis, 1)) // s.stride[axis] + 1)


@st.composite
def _shapes(draw: st.DrawFn) -> tuple[ConvShape, int]:
    """A convolution of at least one window, and its groups."""
    groups, ci, co = draw(st.sampled_from(CHANNELS))
    (kh, sh, dh, ph, qh, h), (kw, sw, dw, pw, qw, w) = draw(AXES), draw(AXES)
    made = ConvShape(
        draw(st.integers(1, 2)), (h, w), ci, co * groups, (kh, kw), (sh, sw), (dh, dw), (ph, pw),
        (0, 0), high=(qh, qw),
    )  # fmt: skip
    size = tuple(max(n, made.span(a, 1) - made.low[a] - made.high[a]) for a, n in enumerate((h, w)))
    counts = tuple(_count(n, a, made) for a, n in enumerate(size))
    return replace(made, size=(size[0], size[1]), counts=(counts[0], counts[1])), groups


def _reference(x: np.ndarray, w: np.ndarray, s: ConvShape, groups: int) -> np.ndarray:
    """The convolution of [N, H, W, C] in f64, an element of the window at a time."""
    pads = [(0, 0), (s.low[0], s.high[0]), (s.low[1], s.high[1]), (0, 0)]
    padded = np.pad(x.astype(np.float64), pads)
    counts = [_count(n, a, s) for a, n in enumerate(x.shape[1:3])]
    co = s.outputs // groups
    out = np.zeros((len(x), *counts, s.outputs))
    for i, j in np.ndindex(*s.kernel):
        at = [t * d for t, d in zip((i, j), s.dilation, strict=True)]
        rows, columns = (
            slice(a, a + (n - 1) * step + 1, step) if n else slice(0, 0)
            for a, n, step in zip(at, counts, s.stride, strict=True)
        )
        seen = padded[:, rows, columns]
        for g in range(groups):
            ins, outs = slice(g * s.inputs, (g + 1) * s.inputs), slice(g * co, (g + 1) * co)
            out[..., outs] += seen[..., ins] @ w[i, j, :, outs].astype(np.float64)
    return out


def _twice(
    k: WorkgroupBuilder, tensors: Any, sums: ir.Value, at: Any, reads: Any, *, masked: bool
) -> list[ir.Value]:
    """The sums, and the sums plus one, as two results."""
    one = k.splat(1.0, ir.VectorType(sums.type).shape[0])
    return [sums, k.fma(one, one, sums)]


AFTER = Epilogue((), [dtypes.FLOAT] * 2, _twice)


def _drawn(shape: ConvShape, groups: int, cut: loops.GroupedPlan) -> Sequence[np.ndarray]:
    numbers = np.random.default_rng(0)
    x = numbers.standard_normal((shape.batch, *shape.size, shape.inputs * groups))
    w = numbers.standard_normal((*shape.kernel, shape.inputs, shape.outputs))
    x, w = x.astype(np.float32), w.astype(np.float32)
    return x, w, loops.pack(w, cut)


def _close(got: np.ndarray, want: np.ndarray) -> None:
    assert got.shape == want.shape
    scale = float(np.abs(want).max(initial=0))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6 * max(scale, 1e-30))


@pytest.mark.parametrize("isa", [AVX512, AVX2, NEON], ids=["avx512", "avx2", "neon"])
@settings(COMPILES, max_examples=2)
@given(cases=st.lists(_shapes(), min_size=3, max_size=3))
def test_loops(isa: Isa, cases: list[tuple[ConvShape, int]]) -> None:
    """Fixed extents. The code of every processor runs on a wider one, too."""
    cuts = [loops.plan(shape, groups, isa) for shape, groups in cases]
    planned = [(s, g, cut) for (s, g), cut in zip(cases, cuts, strict=True) if cut is not None]
    assert len(planned) == len(cases)
    arrays = [_drawn(*p) for p in planned]

    def build(*given: ir.Value) -> list[ir.Value]:
        found: list[ir.Value] = []
        for i, (shape, _, cut) in enumerate(planned):
            x, packed = given[2 * i : 2 * i + 2]
            found += loops.convolution(shape, cut, x, packed, AFTER)
        return found

    got = run(build, [a for x, _, packed in arrays for a in (x, packed)])
    for i, ((shape, groups, _), (x, w, _)) in enumerate(zip(planned, arrays, strict=True)):
        want = _reference(x, w, shape, groups)
        _close(got[2 * i], want)
        _close(got[2 * i + 1], want + 1)


SIZES = ((1, 9, 9), (2, 23, 61), (1, 30, 2), (1, 1, 16), (0, 9, 9), (1, 0, 9), (1, 9, 0))


@settings(COMPILES, max_examples=2)
@given(case=_shapes(), threads=st.integers(1, 2))
def test_dynamic_extents(case: tuple[ConvShape, int], threads: int) -> None:
    """One program for every batch, height and width, none of which need be there."""
    known, groups = case
    shape = replace(known, batch=DYN, size=(DYN, DYN), counts=(DYN, DYN))
    cut = loops.plan(shape, groups, AVX512)
    assert cut is not None
    _, w, packed = _drawn(known, groups, cut)

    def build(x: ir.Value, packed: ir.Value) -> list[ir.Value]:
        i = IndexBuilder()
        batch, *size = (tensor.DimOp(x, i.index(a)).result for a in range(3))
        counts = [
            i.div(
                i.max(0, i.add(n, shape.low[a] + shape.high[a] - shape.span(a, 1) + stride)),
                stride,
            )
            for a, (n, stride) in enumerate(zip(size, shape.stride, strict=True))
        ]
        kind = ir.RankedTensorType.get([DYN] * 3 + [shape.inputs * groups], ir.F32Type.get())
        return loops.convolution(
            shape, cut, tensor.CastOp(kind, x).result, packed, AFTER,
            Extents(batch, (size[0], size[1]), (counts[0], counts[1])),
        )  # fmt: skip

    numbers = np.random.default_rng(1)
    images = [
        numbers.standard_normal((*size, shape.inputs * groups)).astype(np.float32) for size in SIZES
    ]
    module = runtime.load_vm_flatbuffer(
        compiled(build, [images[0], packed], is_dynamic=[True, False]),
        driver="local-sync" if threads == 1 else "local-task",
    )
    for x in images:
        want = _reference(x, w, shape, groups)
        got, more = (found.to_host() for found in module.main(x, packed))
        _close(got, want)
        _close(more, want + 1)


def _model(opened: bool, kind: int) -> onnx.ModelProto:
    """A depthwise, a grouped and a one-axis convolution, each with what follows it in models."""
    numbers = np.random.default_rng(0)
    element = helper.tensor_dtype_to_np_dtype(kind)
    weights = {
        "w1": (19, 1, 3, 3), "b1": (19,), "w2": (24, 2, 5, 5), "r": (1, 24, 1, 1), "w3": (20, 1, 7),
    }  # fmt: skip
    nodes = [
        node("Conv", "x w1 b1", "c", pads=[1] * 4, group=19),
        node("HardSwish", "c", "y0"),
        node("Conv", "z w2", "d", pads=[2] * 4, strides=[2, 2], group=6),
        node("Mul", "d r", "e"),
        node("Relu", "e", "y1"),
        node("Conv", "s w3", "y2", pads=[6, 0], group=20),
    ]
    dims = {"x": ["n", 19, "h", "w"], "z": ["n", 12, "h", "w"], "s": ["n", 20, "w"]}
    own: dict[Any, int] = {} if opened else {"n": 2, "h": 11, "w": 21}
    inputs = {n: (kind, [own.get(v, v) for v in d]) for n, d in dims.items()}
    outputs = {f"y{i}": (kind, [None] * rank) for i, rank in enumerate((4, 4, 3))}
    held = {n: numbers.standard_normal(d).astype(element) for n, d in weights.items()}
    return model_of(nodes, inputs, outputs, held, opset=22, ir_version=10)


@pytest.mark.parametrize(
    ("kind", "opened"),
    [
        (TensorProto.FLOAT, False),
        (TensorProto.FLOAT16, True),
        pytest.param(TensorProto.FLOAT, True, marks=pytest.mark.slow),
        pytest.param(TensorProto.FLOAT16, False, marks=pytest.mark.slow),
    ],
    ids=["f32", "f16, open", "f32, open", "f16"],
)
def test_models(kind: int, opened: bool) -> None:
    proto = _model(opened, kind)
    program = mgx_mlir.compile(proto.SerializeToString(), target="cpu", threads=2, cache=False)
    assert not program.executable.fallbacks
    element = helper.tensor_dtype_to_np_dtype(kind)
    numbers = np.random.default_rng(3)
    wide = ort_session(_model(True, TensorProto.FLOAT))
    for n, h, w in ((2, 11, 21), (1, 32, 5), (3, 2, 100)) if opened else ((2, 11, 21),):
        given = {"x": (n, 19, h, w), "z": (n, 12, h, w), "s": (n, 20, w)}
        inputs = {k: numbers.standard_normal(d).astype(element) for k, d in given.items()}
        want: Sequence[Any] = wide.run(None, {k: v.astype(np.float32) for k, v in inputs.items()})
        for got, expected in zip(program.run(inputs), want, strict=True):
            scale = float(np.abs(expected).max())
            limit = 1e-5 if kind == TensorProto.FLOAT else 4e-3
            np.testing.assert_allclose(got, expected, rtol=limit, atol=limit * scale)
