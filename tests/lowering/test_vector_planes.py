"""Depthwise convolutions of planes as vector loops, against sums in f64 and onnxruntime."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import mgx_mlir
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering.cpu.frame.isa import AVX2, AVX512, NEON, Isa, isa_of
from mgx_mlir.passes.lowering.cpu.windows import planes
from mgx_mlir.passes.lowering.cpu.windows.convolution_shape import ConvShape
from tests.lowering.programs import COMPILES
from tests.lowering.test_vector_grouped import AFTER, _close, _count, _reference
from tests.lowering.vector_kernels import run
from tests.support.models import model_of, node
from tests.support.oracle import ort_session

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

TO_FIRST, TO_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
AXES = st.tuples(
    st.sampled_from((1, 2, 3, 5, 7)), st.integers(1, 4), st.integers(1, 2), st.integers(0, 3),
    st.integers(0, 3), st.sampled_from((1, 9, 16, 31, 32, 33, 50, 200)),
)  # fmt: skip


@st.composite
def _shapes(draw: st.DrawFn) -> ConvShape:
    """A depthwise convolution of one window or more: a result for each channel, or two."""
    channels = draw(st.sampled_from((1, 2, 3, 17)))
    (kh, sh, dh, ph, qh, h), (kw, sw, dw, pw, qw, w) = draw(AXES), draw(AXES)
    made = ConvShape(
        draw(st.integers(1, 2)), (h, w), 1, channels * draw(st.integers(1, 2)), (kh, kw),
        (sh, sw), (dh, dw), (ph, pw), (0, 0), high=(qh, qw),
    )  # fmt: skip
    size = tuple(max(n, made.span(a, 1) - made.low[a] - made.high[a]) for a, n in enumerate((h, w)))
    counts = tuple(_count(n, a, made) for a, n in enumerate(size))
    return replace(made, size=(size[0], size[1]), counts=(counts[0], counts[1]))


def _groups(shape: ConvShape) -> int:
    """Half of an even number of results, so that each channel has two."""
    return shape.outputs // 2 if shape.outputs % 2 == 0 else shape.outputs


@pytest.mark.parametrize("isa", [AVX512, AVX2, NEON], ids=["avx512", "avx2", "neon"])
@settings(COMPILES, max_examples=3)
@given(shapes=st.lists(_shapes(), min_size=4, max_size=4))
def test_loops(isa: Isa, shapes: list[ConvShape]) -> None:
    """The code of every processor runs on a wider one, too; rows may be shorter than a vector."""
    cuts = [(s, cut) for s in shapes if (cut := planes.plan(s, isa)) is not None]
    assert cuts, "no window fits"
    numbers = np.random.default_rng(0)
    images = [
        numbers.standard_normal((s.batch, *s.size, _groups(s))).astype(np.float32) for s, _ in cuts
    ]
    weights = [
        numbers.standard_normal((*s.kernel, 1, s.outputs)).astype(np.float32) for s, _ in cuts
    ]

    def build(*given: ir.Value) -> list[ir.Value]:
        found: list[ir.Value] = []
        for i, (shape, cut) in enumerate(cuts):
            x, packed = given[2 * i : 2 * i + 2]
            found += planes.convolution(shape, cut, isa, x, packed, AFTER, shape.batch)
        return found

    pairs = zip(images, weights, strict=True)
    arrays = [
        a for x, w in pairs for a in (np.ascontiguousarray(x.transpose(TO_FIRST)), planes.pack(w))
    ]
    got = run(build, arrays)
    for i, ((shape, _), x, w) in enumerate(zip(cuts, images, weights, strict=True)):
        want = _reference(x, w, shape, _groups(shape))
        _close(got[2 * i].transpose(TO_LAST), want)
        _close(got[2 * i + 1].transpose(TO_LAST), want + 1)


@pytest.mark.parametrize("isa", [AVX512, AVX2, NEON], ids=["avx512", "avx2", "neon"])
def test_sums_fit_the_registers(isa: Isa) -> None:
    """Weights that do not fit beside the sums of a row are shared by two vectors of it."""
    for k, wide in ((3, 14), (3, 56), (5, 28), (5, 112), (7, 56)):
        shape = ConvShape(
            1, (wide, wide), 1, 96, (k, k), (1, 1), (1, 1), (k // 2, k // 2), (wide, wide),
            high=(k // 2, k // 2),
        )  # fmt: skip
        cut = planes.plan(shape, isa)
        assert cut is not None
        assert cut.tile * cut.vectors < isa.registers
        assert prod(shape.kernel) * cut.tile * cut.vectors <= 800
        assert cut.span * cut.pitch * 4 <= 48 << 10


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.FLOAT16], ids=["f32", "f16"])
def test_models(kind: int) -> None:
    """One kernel takes the convolution between planes, with what follows it, for any batch."""
    element, numbers = helper.tensor_dtype_to_np_dtype(kind), np.random.default_rng(0)
    nodes = [
        node("Conv", "x w1 b1", "c", pads=[1, 1, 0, 2], group=19),
        node("HardSwish", "c", "y0"),
        node("Conv", "z w2", "d", pads=[2] * 4, strides=[2, 2], group=6),
        node("Mul", "d r", "e"),
        node("Relu", "e", "y1"),
        node("Conv", "s w3", "f", group=12),
        node("Add", "f u", "y2"),
    ]
    dims = {"w1": (19, 1, 3, 3), "b1": (19,), "w2": (12, 1, 5, 5), "r": (1, 12, 1, 1)}
    dims["w3"] = (12, 1, 3, 3)
    held = {n: numbers.standard_normal(d).astype(element) for n, d in dims.items()}
    given = {"x": ["n", 19, 11, 21], "z": ["n", 6, 70, 130]}
    given |= {"s": ["n", 12, 20, 40], "u": ["n", 12, 18, 38]}
    results = ("y0", "y1", "y2")
    proto = model_of(
        nodes, {n: (kind, d) for n, d in given.items()},
        {y: (kind, [None] * 4) for y in results}, held, opset=22, ir_version=10,
    )  # fmt: skip
    program = mgx_mlir.compile(proto.SerializeToString(), target="cpu", threads=2, cache=False)
    assert not program.executable.fallbacks
    # a sum with another image is a kernel, and its convolution reads a transposed copy
    kernels = [k.name for k in program.kernels]
    if kind == TensorProto.FLOAT:  # images of f16 are widened by kernels of their own
        assert len(kernels) == 5, kernels
    for n in (1, 3):
        own = [[n if d == "n" else d for d in dims] for dims in given.values()]
        drawn = [numbers.standard_normal(d).astype(element) for d in own]
        inputs = dict(zip(given, drawn, strict=True))
        wide = model_of(
            nodes, {k: (TensorProto.FLOAT, d) for k, d in given.items()},
            {y: (TensorProto.FLOAT, [None] * 4) for y in results},
            {k: v.astype(np.float32) for k, v in held.items()}, opset=22, ir_version=10,
        )  # fmt: skip
        want = ort_session(wide).run(None, {k: v.astype(np.float32) for k, v in inputs.items()})
        for got, expected in zip(program.run(inputs), want, strict=True):
            scale = float(np.abs(expected).max())
            limit = 1e-5 if kind == TensorProto.FLOAT else 4e-3
            np.testing.assert_allclose(got, expected, rtol=limit, atol=limit * scale)


@pytest.mark.parametrize(("inputs", "outputs"), [(24, 144), (64, 7), (9, 33)])
def test_single_pixels(inputs: int, outputs: int) -> None:
    """A convolution of 1x1 between planes is one matmul, with what follows it."""
    numbers = np.random.default_rng(0)
    nodes = [
        node("Conv", "x w b", "c"), node("HardSwish", "c", "d"), node("Mul", "d r", "y"),
    ]  # fmt: skip
    dims = {"w": (outputs, inputs, 1, 1), "b": (outputs,), "r": (1, outputs, 1, 1)}
    held = {n: numbers.standard_normal(d).astype(np.float32) for n, d in dims.items()}
    proto = model_of(
        nodes, {"x": (TensorProto.FLOAT, [1, inputs, 29, 43])},
        {"y": (TensorProto.FLOAT, [None] * 4)}, held, opset=22, ir_version=10,
    )  # fmt: skip
    program = mgx_mlir.compile(proto.SerializeToString(), target="cpu", threads=2, cache=False)
    assert not program.executable.fallbacks
    assert len(program.kernels) == 1, program.kernels
    x = numbers.standard_normal((1, inputs, 29, 43)).astype(np.float32)
    sums = np.einsum("oi,nihw->nohw", held["w"][:, :, 0, 0].astype(np.float64), x)
    sums += held["b"][:, None, None]
    want = sums * np.clip(sums / 6 + 0.5, 0, 1) * held["r"]
    (got,) = program.run(x)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())
