"""Convolutions as vector loops against onnxruntime: windows, borders, channels, epilogues."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from iree import runtime
from onnx import TensorProto, helper

import mgx_mlir
from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir, tensor
from mgx_mlir.core.shapes import DYN
from mgx_mlir.passes.lowering.cpu.frame.epilogue import Epilogue
from mgx_mlir.passes.lowering.cpu.frame.isa import AVX2, AVX512, AVX512_BF16, NEON, Isa, isa_of
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import SCRATCH_BYTES, WorkgroupBuilder
from mgx_mlir.passes.lowering.cpu.windows import convolution as loops
from mgx_mlir.passes.lowering.cpu.windows import winograd
from mgx_mlir.passes.lowering.index_builder import IndexBuilder
from tests.lowering.programs import lowered_model, text_of
from tests.lowering.vector_kernels import compiled
from tests.support.draws import seeds
from tests.support.models import Nodes, bytes_of
from tests.support.oracle import ort_session

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

PER_MODEL = 8
HOST = isa_of("host")


class _Net(Nodes):
    """An ONNX model of convolutions beside each other, each with inputs of its own."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.random = random.Random(seed)
        self.inputs: dict[str, np.ndarray] = {}
        self.outputs: list[str] = []
        self.vector_kernels = 0

    def draw(self, *dims: int) -> np.ndarray:
        return self.rng.standard_normal(dims).astype(np.float32)

    def argument(self, *dims: int) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.draw(*dims)
        return name

    def output(self, name: str) -> None:
        self.outputs.append(name)

    def inferred(self) -> bytes:
        made = self.model(self.inputs, " ".join(self.outputs), opset=20)
        return onnx.shape_inference.infer_shapes(made).SerializeToString()

    def check(self, threads: int = 1) -> None:
        """Check the number of vector kernels, one dispatch each, and the results."""
        model = self.inferred()
        assert _vector_kernels(model) == self.vector_kernels
        program = mgx_mlir.compile(model, target="cpu", threads=threads, cache=False)
        assert not program.executable.fallbacks
        session = ort_session(model)
        want = session.run(self.outputs, self.inputs)
        got = program.run(self.inputs)
        for found, expected in zip(got, want, strict=True):
            scale = max(1.0, float(np.abs(expected).max()))
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * scale)


def _vector_kernels(model: bytes, *, fast_math: bool = True) -> int:
    """Return the number of vector kernels without layout copies, which some CPUs leave to IREE."""
    text = text_of(lowered_model(model, fast_math=fast_math))
    launches = re.findall(r"entry_points = \[@(kernel_dispatch_\w+)::", text)
    return sum(re.search(r"_copy(_part\d+of\d+)?$", name) is None for name in launches)


# ---- drawing -------------------------------------------------------------------------------------


def _scaled(net: _Net, y: str, dims: tuple[int, ...]) -> str:
    return net.op("Mul", y, net.argument(dims[0], dims[1], 1, 1))


def _residual(net: _Net, y: str, dims: tuple[int, ...]) -> str:
    return net.op("Relu", net.op("Add", net.argument(*dims), y))


def _clip(net: _Net, y: str, dims: tuple[int, ...]) -> str:
    low, high = (net.const(np.array(v, np.float32)) for v in (-0.5, 0.75))
    return net.op("Clip", y, low, high)


EPILOGUES: tuple[Callable[[_Net, str, tuple[int, ...]], str], ...] = (
    lambda net, y, dims: y,
    lambda net, y, dims: net.op("Relu", y),
    lambda net, y, dims: net.op("Gelu", y),
    lambda net, y, dims: net.op("Mul", y, net.op("Sigmoid", y)),
    lambda net, y, dims: net.op("HardSwish", y),
    _clip,
    _residual,
    _scaled,
)


def _convolution(net: _Net, epilogue: Callable[[_Net, str, tuple[int, ...]], str]) -> None:
    """A random convolution. Weights of all-different channels, so that no panel is another's."""
    r = net.random
    kernel = [r.choice((1, 1, 2, 3, 3, 5)) for _ in range(2)]
    stride = [r.choice((1, 1, 2, 3)) for _ in range(2)]
    dilation = [r.choice((1, 1, 2)) for _ in range(2)]
    low, high = ([r.randint(0, k // 2 + 1) for k in kernel] for _ in range(2))
    size = [
        max(r.randint(1, 30), d * (k - 1) + 1 - a - b)
        for k, d, a, b in zip(kernel, dilation, low, high, strict=True)
    ]
    counts = [
        (n + a + b - d * (k - 1) - 1) // s + 1
        for n, a, b, k, d, s in zip(size, low, high, kernel, dilation, stride, strict=True)
    ]
    batch, ci = r.randint(1, 3), r.choice((1, 3, 7, 16, 32, 48, 96))
    co = r.choice((16, 16, 32, 48, 64, 80, 96, 24, 5))
    w = net.draw(co, ci, *kernel) / np.float32(np.sqrt(ci * kernel[0] * kernel[1]))
    inputs = [net.argument(batch, ci, *size), net.const(w)]
    if r.random() < 0.7:
        inputs.append(net.const(net.draw(co)))
    y = net.op(
        "Conv", *inputs, pads=[*low, *high], strides=stride, dilations=dilation,
        kernel_shape=kernel,
    )  # fmt: skip
    net.output(epilogue(net, y, (batch, co, *counts)))
    shape = loops.ConvShape(
        batch, (size[0], size[1]), ci, co, (kernel[0], kernel[1]), (stride[0], stride[1]),
        (dilation[0], dilation[1]), (low[0], low[1]), (counts[0], counts[1]),
    )  # fmt: skip
    isa = isa_of("host")
    assert isa is not None
    net.vector_kernels += 1 if winograd.plan(shape, isa) is None else 2


@pytest.mark.parametrize("seed", seeds(2, 4))
def test_random(seed: int) -> None:
    net = _Net(seed)
    for i in range(PER_MODEL):
        _convolution(net, EPILOGUES[(i + seed) % len(EPILOGUES)])
    net.check(threads=1 + seed % 2)


# ---- the loops by themselves ---------------------------------------------------------------------


def _reference(x: np.ndarray, w: np.ndarray, shape: loops.ConvShape) -> np.ndarray:
    """The convolution of [N, H, W, C] in f64, an element of the window at a time."""
    (oh, ow), (sh, sw), (dh, dw) = shape.counts, shape.stride, shape.dilation
    high = [max(r - s - p, 0) for r, s, p in zip(shape.reach, shape.size, shape.low, strict=True)]
    pads = [(0, 0), (shape.low[0], high[0]), (shape.low[1], high[1]), (0, 0)]
    padded = np.pad(x.astype(np.float64), pads)
    out = np.zeros((shape.batch, oh, ow, shape.outputs))
    for i in range(shape.kernel[0]):
        for j in range(shape.kernel[1]):
            rows = slice(i * dh, i * dh + (oh - 1) * sh + 1, sh)
            columns = slice(j * dw, j * dw + (ow - 1) * sw + 1, sw)
            out += padded[:, rows, columns] @ w[i, j].astype(np.float64)
    return out


def _twice(
    k: WorkgroupBuilder, tensors: Any, sums: ir.Value, at: Any, reads: Any, *, masked: bool
) -> list[ir.Value]:
    """The sums, and the sums plus one, as two results."""
    lanes = ir.VectorType(sums.type).shape[0]
    one = k.splat(1.0, lanes)
    return [sums, k.fma(one, one, sums)]


AFTER = Epilogue((), [dtypes.FLOAT] * 2, _twice)
Plan = loops.ConvPlan | winograd.WinogradPlan


def _loops_agree(
    cases: Mapping[str, tuple[loops.ConvShape, Plan | None]], isa: Isa, dtype: Any = np.float32
) -> None:
    """Loops of one program on one thread and on several, against sums in f64."""
    numbers = np.random.default_rng(0)
    arrays, wants = [], []
    for name, (shape, cut) in cases.items():
        assert cut is not None, name
        x = numbers.standard_normal((shape.batch, *shape.size, shape.inputs)).astype(dtype)
        w = numbers.standard_normal((*shape.kernel, shape.inputs, shape.outputs)).astype(dtype)
        flat = x.transpose(0, 3, 1, 2) if shape.planar else x
        arrays += [np.ascontiguousarray(flat).reshape(-1), _packed(w, shape, cut, isa)]
        wants.append(_reference(x.astype(np.float32), w.astype(np.float32), shape))

    def build(*given: ir.Value) -> list[ir.Value]:
        found: list[ir.Value] = []
        for (shape, cut), x, w in zip(cases.values(), given[::2], given[1::2], strict=True):
            form = winograd if isinstance(cut, winograd.WinogradPlan) else loops
            found += form.convolution(shape, cut, isa, x, w, AFTER)
        return found

    code = compiled(build, arrays)
    for driver in ("local-sync", "local-task"):
        made = runtime.load_vm_flatbuffer(code, driver=driver).main(*arrays)
        results = [found.to_host() for found in made]
        for (name, (_, cut)), want, got, more in zip(
            cases.items(), wants, results[::2], results[1::2], strict=True
        ):
            limit = 2e-6 if isinstance(cut, winograd.WinogradPlan) else 1e-6
            limits = {"rtol": 1e-5, "atol": limit * np.abs(want).max(), "err_msg": name}
            np.testing.assert_allclose(got, want, **limits)
            np.testing.assert_allclose(more, want + 1, **limits)


def _packed(w: np.ndarray, shape: loops.ConvShape, cut: Plan, isa: Isa) -> np.ndarray:
    if isinstance(cut, winograd.WinogradPlan):
        return winograd.packing(w, cut).array()
    layout = loops.panels_of(shape, cut.width, isa)
    return layout.packed(loops.matrix_of(w, shape, cut.block))


SHAPES = {
    "blocks": loops.ConvShape(1, (14, 14), 256, 64, (3, 3), (1, 1), (1, 1), (1, 1), (14, 14)),
    "blocks, strided": loops.ConvShape(
        2, (57, 56), 64, 32, (3, 3), (2, 2), (1, 1), (1, 1), (29, 28)
    ),
    "in place": loops.ConvShape(2, (9, 11), 24, 48, (3, 2), (2, 1), (1, 1), (0, 0), (4, 10)),
    "dilated": loops.ConvShape(1, (20, 17), 32, 32, (3, 3), (1, 1), (3, 2), (3, 2), (20, 17)),
    "planar": loops.ConvShape(2, (40, 45), 3, 32, (7, 7), (2, 2), (1, 1), (3, 3), (20, 23), True),
    "from row to row": loops.ConvShape(2, (7, 7), 24, 32, (1, 1), (1, 1), (1, 1), (0, 0), (7, 7)),
    "strided, from row to row": loops.ConvShape(
        1, (14, 14), 256, 48, (3, 3), (2, 2), (1, 1), (0, 0), (7, 7)
    ),
    "dilated, from row to row": loops.ConvShape(
        2, (7, 7), 16, 16, (3, 3), (1, 1), (2, 1), (2, 1), (7, 7)
    ),
    "two columns": loops.ConvShape(1, (9, 2), 24, 32, (3, 3), (1, 1), (1, 1), (1, 1), (9, 2)),
    "one pixel": loops.ConvShape(1, (1, 1), 96, 40, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1)),
    "beyond the image": loops.ConvShape(1, (2, 3), 16, 16, (3, 3), (1, 1), (1, 1), (4, 5), (9, 11)),
}


# Winograd's form: batch, image and channels, the lower border, the results
WINOGRAD = {
    "even": ((1, 28, 28, 64, 96), (1, 1), (28, 28)),
    "odd, no border": ((2, 17, 23, 80, 64), (0, 0), (15, 21)),
    "wide border": ((1, 12, 9, 128, 64), (2, 3), (14, 13)),
    "ragged rows": ((3, 37, 11, 64, 256), (1, 1), (37, 11)),
}


@pytest.mark.parametrize("isa", [AVX512, AVX2, NEON], ids=["avx512", "avx2", "neon"])
def test_loops(isa: Isa) -> None:
    """The code of every processor runs on a wider one, too."""
    cases: dict[str, tuple[loops.ConvShape, Plan | None]] = {
        name: (shape, loops.plan(shape, isa)) for name, shape in SHAPES.items()
    }
    for name, ((batch, high, wide, ci, co), low, counts) in WINOGRAD.items():
        one = (1, 1)
        shape = loops.ConvShape(batch, (high, wide), ci, co, (3, 3), one, one, low, counts)
        cases[f"Winograd, {name}"] = shape, winograd.plan(shape, isa)
    if isa is AVX512:
        cut = loops.ConvPlan(5, 14, panels=1, width=32, pixels=4, block=64)
        cases["rows and tiles that do not divide what they cut"] = SHAPES["blocks"], cut
    _loops_agree(cases, isa)


@pytest.mark.parametrize("name", [name for name in SHAPES if name.endswith("row to row")])
def test_tiles_go_on_from_row_to_row(name: str) -> None:
    """Seven pixels are more than a tile of few registers has, and two tiles of too few sums."""
    cut = loops.plan(SHAPES[name], AVX2)
    assert cut is not None
    assert cut.across
    assert cut.pixels == 6


OPEN = {
    "same": ((3, 3), (1, 1), (1, 1), (1, 1), (1, 1), 24, 40, False),
    "strided, one side": ((3, 5), (2, 3), (1, 1), (0, 2), (1, 0), 64, 19, False),
    "in place, dilated": ((2, 3), (1, 2), (2, 3), (0, 0), (0, 0), 5, 16, False),
    "planar": ((7, 7), (2, 2), (1, 1), (3, 3), (3, 3), 3, 32, True),
    "channel blocks": ((3, 3), (1, 1), (2, 2), (2, 2), (2, 2), 256, 16, False),
}
SIZES = ((1, 9, 9), (2, 23, 61), (3, 30, 10))


@pytest.mark.parametrize("name", OPEN)
def test_dynamic_extents(name: str) -> None:
    """One program for every batch, height and width, on one thread and on several."""
    kernel, stride, dilation, low, high, ci, co, planar = OPEN[name]
    shape = loops.ConvShape(
        DYN, (DYN, DYN), ci, co, kernel, stride, dilation, low, (DYN, DYN), planar, high
    )
    cut = loops.plan(shape, AVX512)
    assert cut is not None
    numbers = np.random.default_rng(0)
    w = numbers.standard_normal((*kernel, ci, co)).astype(np.float32)

    def build(image: ir.Value, packed: ir.Value) -> list[ir.Value]:
        i = IndexBuilder()
        dims: list[Any] = [tensor.DimOp(image, i.index(a)).result for a in range(4)]
        batch, *size = [dims[a] for a in ((0, 2, 3) if planar else (0, 1, 2))]
        counts = [
            i.add(i.div(i.add(n, low[a] + high[a] - shape.span(a, 1)), stride[a]), 1)
            for a, n in enumerate(size)
        ]
        flat = tensor.CollapseShapeOp(
            ir.RankedTensorType.get([DYN], ir.F32Type.get()), image, [[0, 1, 2, 3]]
        ).result
        return loops.convolution(
            shape, cut, AVX512, flat, packed, AFTER,
            loops.Extents(batch, (size[0], size[1]), (counts[0], counts[1])),
        )  # fmt: skip

    images = [numbers.standard_normal((*size, ci)).astype(np.float32) for size in SIZES]
    given = [np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if planar else x for x in images]
    packed = _packed(w, shape, cut, AVX512)
    code = compiled(build, [given[0], packed], fixed=False)
    modules = [runtime.load_vm_flatbuffer(code, driver=d) for d in ("local-sync", "local-task")]
    for module, (x, image) in product(modules, zip(images, given, strict=True)):
        size = (x.shape[1], x.shape[2])
        counts = [
            (n + low[a] + high[a] - shape.span(a, 1)) // stride[a] + 1 for a, n in enumerate(size)
        ]
        known = replace(shape, batch=len(x), size=size, counts=(counts[0], counts[1]))
        want = _reference(x, w, known)
        got, more = (found.to_host() for found in module.main(image, packed))
        scale = np.abs(want).max()
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6 * scale)
        np.testing.assert_allclose(more, want + 1, rtol=1e-5, atol=1e-6 * scale)


@pytest.mark.parametrize("isa", [AVX512, AVX2, NEON], ids=["avx512", "avx2", "neon"])
def test_scratch_is_bounded(isa: Isa) -> None:
    """The scratch of every plan fits the stack, for all convolutions."""
    draw = random.Random(0)
    planned = 0
    for _ in range(2000):
        kernel, stride, dilation, low, size = (
            (draw.randint(a, b), draw.randint(a, b))
            for a, b in ((1, 9), (1, 4), (1, 4), (0, 5), (1, 120))
        )
        counts = tuple(
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, p, d, k, s in zip(size, low, dilation, kernel, stride, strict=True)
        )
        if min(counts) < 1:
            continue
        shape = loops.ConvShape(
            1, size, draw.randint(1, 600), draw.randint(1, 640), kernel, stride, dilation,
            low, (counts[0], counts[1]), draw.random() < 0.3,
        )  # fmt: skip
        cut = loops.plan(shape, isa)
        if cut is None:
            continue
        planned += 1
        assert shape.inputs % cut.block == 0
        assert -(-shape.outputs // cut.width) % cut.panels == 0
        assert cut.rows >= 1
        assert 1 <= cut.pixels <= max(rows for rows, _ in isa.tiles)
        if not shape.in_place:
            rows = (cut.rows - 1) * stride[0] + (kernel[0] - 1) * dilation[0] + 1
            assert 4 * rows * shape.span(1, cut.columns) * cut.block <= SCRATCH_BYTES
    assert planned > 300


def test_winograd_is_fast_math() -> None:
    """Two dispatches of a 3x3 convolution by default, the direct form without fast math."""
    net = _Net(0)
    w = net.draw(64, 64, 3, 3) / np.float32(24)
    y = net.op("Conv", net.argument(2, 64, 14, 13), net.const(w), pads=[1] * 4)
    net.output(_residual(net, y, (2, 64, 14, 13)))
    net.vector_kernels = 2
    net.check()
    assert _vector_kernels(net.inferred(), fast_math=False) == 1


# ---- as part of a model --------------------------------------------------------------------------


def test_one_axis() -> None:
    """Signals, and images that are one column wide, with windows from short to long."""
    net = _Net(0)
    for x, w, more in (
        ((2, 8, 300), (24, 8, 3), {"pads": [1, 2]}),
        ((1, 1, 1500), (20, 1, 80), {"strides": [10]}),
        ((1, 1, 1500, 1), (33, 1, 80, 1), {"strides": [10, 1]}),
        ((1, 16, 600), (16, 16, 5), {"dilations": [3]}),
    ):
        y = net.op("Conv", net.argument(*x), net.const(net.draw(*w)), **more)
        net.output(net.op("Relu", y))
        net.vector_kernels += 1
    net.check()


@pytest.mark.parametrize("opened", ["N", "NHW", "NHWC"])
def test_dynamic_model(opened: str) -> None:
    """A model of dynamic batch, or of other dynamic dims as well, takes images of any."""
    net = _Net(0)
    x = net.argument(1, 3, 20, 30)
    y = net.op("Conv", x, net.const(net.draw(20, 3, 5, 5)), pads=[2] * 4, strides=[2, 2])
    y = net.op("Conv", y, net.const(net.draw(64, 20, 1, 1)), net.const(net.draw(64)))
    y = net.op("Conv", net.op("Relu", y), net.const(net.draw(64, 64, 3, 3)), pads=[1] * 4)
    net.output(y)
    proto = onnx.load_from_string(net.inferred())
    for axis, symbol in zip((0, 2, 3, 1), opened, strict=False):
        proto.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = symbol
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    model = proto.SerializeToString()
    # the last one is Winograd's two
    assert _vector_kernels(model) == 4
    program = mgx_mlir.compile(model, target="cpu", cache=False)
    session = ort_session(model)
    sizes = (
        ((20, 30), (7, 101), (64, 5), (1, 1), (3, 2), (33, 34))
        if opened != "N"
        else ((20, 30),) * 3
    )
    for batch, size in enumerate(sizes, 1):
        dims = (batch, 3, *size)
        given = {x: net.draw(*dims)}
        want, got = session.run(None, given)[0], program.run(given)[0]
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * float(np.abs(want).max()))


@pytest.mark.parametrize(
    ("kind", "limit"), [(TensorProto.FLOAT16, 1e-3), (TensorProto.BFLOAT16, 8e-3)]
)
def test_narrow(kind: int, limit: float) -> None:
    """Images and weights of 16 bits give the f32 sums of what they are, rounded once."""
    net = _Net(0)
    for x, w, more in (
        ((2, 17, 9, 11), (19, 17, 3, 3), {"pads": [1, 1, 0, 2]}),
        ((1, 3, 20, 21), (32, 3, 5, 5), {"pads": [2] * 4, "strides": [2, 2]}),
        ((1, 64, 7, 8), (48, 64, 1, 1), {}),
    ):
        y = net.op("Conv", net.argument(*x), net.const(net.draw(*w)), **more)
        net.output(net.op("Relu", y))
    narrow = helper.tensor_dtype_to_np_dtype(kind)
    inputs, weights = (
        {n: a.astype(narrow) for n, a in arrays.items()} for arrays in (net.inputs, net.weights)
    )
    net.weights = {n: a.astype(np.float32) for n, a in weights.items()}
    want = ort_session(net.inferred()).run(
        None, {n: a.astype(np.float32) for n, a in inputs.items()}
    )
    outputs = dict.fromkeys(net.outputs, (kind, None))
    model = bytes_of(net.nodes, inputs, outputs, weights, opset=22, ir_version=10)
    assert _vector_kernels(model) == 3
    program = mgx_mlir.compile(model, target="cpu", cache=False)
    for found, expected in zip(program.run(inputs), want, strict=True):
        scale = float(np.abs(expected).max())
        got = found.astype(np.float32)
        np.testing.assert_allclose(got, expected, rtol=limit, atol=limit * scale)


@pytest.mark.skipif(HOST is None or not HOST.bf16_dot, reason="no products of bf16 pairs here")
def test_pairs() -> None:
    """Two channels of bf16 at a time: odd borders, strides, dilations and channels of the result.

    An image of planes has any count of channels: the copy fills them up.
    """
    assert HOST is not None
    cases: dict[str, tuple[loops.ConvShape, Plan | None]] = {}
    size, kernel, stride, dilation = (9, 13), (3, 2), (2, 1), (1, 2)
    for inputs, planar in ((2, True), (2, False), (6, True), (6, False), (3, True)):
        shape = loops.ConvShape(
            2, size, inputs, 19, kernel, stride, dilation, (1, 3), (5, 15), planar, (1, 1),
            narrow=True, unit=2,
        )  # fmt: skip
        whole = replace(shape, kernel=(1, 1), stride=(1, 1), low=(0, 0), high=(0, 0), counts=size)
        assert whole.in_place == (not planar)
        cases[f"{inputs} channels, planar: {planar}"] = shape, loops.plan(shape, HOST)
        cases[f"{inputs} channels, planar: {planar}, 1x1"] = whole, loops.plan(whole, HOST)
    _loops_agree(cases, HOST, dtypes.BF16.np)


def test_pairs_take_what_f32_has_no_room_for() -> None:
    """All channels of three rows are in the scratch at once, of bf16 in half the room."""
    shape = loops.ConvShape(
        1, (7, 7), 512, 512, (3, 3), (1, 1), (1, 1), (1, 1), (7, 7), narrow=True, unit=2
    )
    assert loops.plan(shape, AVX512_BF16) is not None
    assert loops.plan(replace(shape, unit=0), AVX512_BF16) is None


# ---- what stays with the compiler ----------------------------------------------------------------


def _one(net: _Net, ci: int = 8, co: int = 16, group: int = 1, weights: str = "") -> str:
    w = weights or net.const(net.draw(co, ci // group, 3, 3))
    return net.op("Conv", net.argument(1, ci, 8, 8), w, pads=[1, 1, 1, 1], group=group)


def test_weights_as_arguments() -> None:
    net = _Net(0)
    net.output(_one(net, weights=net.argument(16, 8, 3, 3)))
    net.vector_kernels = 0
    net.check()


def test_groups_and_channels() -> None:
    net = _Net(0)
    net.output(_one(net, group=2))
    net.vector_kernels = 1
    for ci, co in ((8, 20), (17, 19), (5, 1), (16, 100)):
        net.output(_one(net, ci=ci, co=co))
        net.vector_kernels += 1
    net.check()


def test_operand_that_is_not_read_as_vectors() -> None:
    """A padded convolution whose epilogue reads bools: it pads its input in its region."""
    net = _Net(0)
    dims = (1, 16, 8, 8)
    mask, other = net.argument(1, 16, 1, 1), net.argument(1, 16, 1, 1)
    net.inputs[mask] = net.inputs[mask] > 0
    net.output(net.op("Where", mask, _one(net), other))
    positive = net.op("Greater", _one(net), net.argument(*dims))
    net.output(net.op("Where", positive, net.argument(*dims), net.argument(*dims)))
    net.vector_kernels = 1
    net.check()


def test_image_is_read_as_it_is() -> None:
    """No transposed copy of a model's image: convolution and mean are all that runs."""
    net = _Net(0)
    y = net.op(
        "Conv", net.argument(1, 3, 40, 40), net.const(net.draw(32, 3, 7, 7)),
        pads=[3, 3, 3, 3], strides=[2, 2],
    )  # fmt: skip
    net.output(net.op("GlobalAveragePool", net.op("Relu", y)))
    net.vector_kernels = 2  # the mean is one too
    net.check()
    program = mgx_mlir.compile(net.inferred(), target="cpu", cache=False)
    assert len(program.executable.kernels) == 2
    # the weights are there once, as the loops read them
    assert [a.size for a in program.params.values()] == [32 * 3 * 7 * 7]
