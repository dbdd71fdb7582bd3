"""Pooling as vector loops against onnxruntime: windows, borders, counts, layouts, dynamic
extents."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from onnx import helper, numpy_helper

import mgx_mlir
from mgx_mlir.compiler.models import read_model
from mgx_mlir.passes.lowering.cpu.frame.isa import isa_of
from mgx_mlir.passes.lowering.lower import lower_to_linalg
from mgx_mlir.passes.lowering.options import LowerOptions
from mgx_mlir.passes.pipelines import pipeline
from mgx_mlir.rewrite.passes import run_pipeline
from tests.lowering.kernel_families.boundaries import STRIPS
from tests.lowering.programs import Programs, text_of
from tests.support.compare import agrees
from tests.support.models import model_of, node
from tests.support.oracle import ort_session

pytestmark = pytest.mark.skipif(isa_of("host") is None, reason="no vector kernels for this host")

PER_MODEL = 8
KINDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("MaxPool", {}),
    ("AveragePool", {"count_include_pad": 0}),
    ("AveragePool", {"count_include_pad": 1}),
    ("LpPool", {"p": 2}),
    ("LpPool", {"p": 1}),
)


class _Net:
    """Poolings beside each other. last: behind a convolution, which makes them channels-last."""

    def __init__(self, seed: int, last: bool) -> None:
        self.random, self.last = random.Random(seed), last
        self.numbers = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.inputs: dict[str, np.ndarray] = {}

    def pool(self, kind: str, fixed: dict[str, Any]) -> None:
        r, i = self.random, len(self.inputs)
        axes = r.choice((1, 2, 2))
        kernel = [r.randint(1, 4) for _ in range(axes)]
        stride = [r.randint(1, 3) for _ in range(axes)]
        low, high = ([r.randint(0, k - 1) for k in kernel] for _ in range(2))
        more = dict(fixed)
        # onnxruntime knows dilations of a maximum alone
        dilation = [r.randint(1, 2) for _ in range(axes)] if kind == "MaxPool" else [1] * axes
        if kind == "MaxPool":
            more["dilations"] = dilation
        more["ceil_mode"] = int(r.random() < 0.4 and kind != "LpPool")
        size = [d * (k - 1) + 1 + r.randint(0, 40) for k, d in zip(kernel, dilation, strict=True)]
        channels = r.choice((1, 3, 16, 20, 64, 80))
        x = f"x{i}"
        self.inputs[x] = self.numbers.standard_normal((r.randint(1, 3), channels, *size)).astype(
            np.float32
        )
        given = x
        if self.last:
            w = self.numbers.standard_normal((channels, channels, *[1] * axes)).astype(np.float32)
            self.weights.append(numpy_helper.from_array(w, f"w{i}"))
            self.nodes.append(helper.make_node("Conv", [x, f"w{i}"], [f"c{i}"]))
            given = f"c{i}"
        pool = helper.make_node(
            kind, [given], [f"p{i}"], kernel_shape=kernel, strides=stride, pads=[*low, *high],
            **more,
        )  # fmt: skip
        self.nodes += [pool, helper.make_node("Neg", [f"p{i}"], [f"y{i}"])]

    def model(self, *, opened: bool = False) -> bytes:
        inputs: dict[str, Any] = {
            n: [f"{n}d{i}" if opened and i != 1 else d for i, d in enumerate(a.shape)]
            for n, a in self.inputs.items()
        }
        results = " ".join(f"y{i}" for i in range(len(inputs)))
        made = model_of(self.nodes, inputs, results, self.weights, opset=20)
        return onnx.shape_inference.infer_shapes(made).SerializeToString()

    def check(self, model: bytes, threads: int = 1) -> None:
        program = mgx_mlir.compile(model, target="cpu", threads=threads, cache=False)
        session = ort_session(model)
        want, got = session.run(None, self.inputs), program.run(self.inputs)
        for found, expected in zip(got, want, strict=True):
            scale = max(1.0, float(np.abs(expected[np.isfinite(expected)]).max(initial=0)))
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * scale)


def _vector_kernels(model: bytes) -> tuple[int, int]:
    """The poolings that are left when all passes have run, and the vector kernels made."""
    program = read_model(model)
    run_pipeline(program.module, pipeline("cpu"), store=program.store)
    pools = str(program.module).count("migraphx.pooling")
    text = text_of(lower_to_linalg(program, LowerOptions("cpu")))
    return pools, text.count('"flow.executable"')


@pytest.mark.parametrize("last", [False, True], ids=["planes", "channels-last"])
@pytest.mark.parametrize("seed", range(2))
def test_random(seed: int, last: bool) -> None:
    net = _Net(seed, last)
    for i in range(PER_MODEL):
        net.pool(*KINDS[(i + seed) % len(KINDS)])
    model = net.model()
    pools, kernels = _vector_kernels(model)
    assert pools > PER_MODEL // 2
    assert kernels >= pools
    net.check(model, threads=1 + seed)


@pytest.mark.parametrize("last", [False, True], ids=["planes", "channels-last"])
def test_dynamic(last: bool) -> None:
    """Images of dynamic batch, height and width."""
    net = _Net(7, last=last)
    for kind in KINDS:
        net.pool(*kind)
    net.check(net.model(opened=True))


def test_strips_of_rows_longer_than_the_scratch() -> None:
    """Rows of any length are cases of kernel_families/boundaries.py."""
    nodes = [node(kind, "x", f"y{i}", **given) for i, (kind, given) in enumerate(STRIPS)]
    outputs = " ".join(n.output[0] for n in nodes)
    model = model_of(nodes, {"x": ["n", 2, "h", 13000]}, outputs, opset=20)
    raw = onnx.shape_inference.infer_shapes(model).SerializeToString()
    assert _vector_kernels(raw)[1] >= len(STRIPS)
    x = np.random.default_rng(0).standard_normal((2, 2, 3, 13000)).astype(np.float32)
    agrees(raw, [{"x": x}], atol=1e-6)


@pytest.mark.parametrize("channels", [1, 64])
def test_infinities(channels: int) -> None:
    """A border never wins, infinities do; onnxruntime answers the largest finite number."""
    x = np.full((1, channels, 7, 20), -np.inf, np.float32)
    x[..., 2, 3], x[..., 3, 12] = np.inf, 1
    pool = node("MaxPool", "x", "y", kernel_shape=[3, 3], pads=[1] * 4)
    model = model_of([pool], {"x": x}, "y", opset=20)
    (got,) = mgx_mlir.compile(model, target="cpu", cache=False).run({"x": x})
    padded = np.pad(x, [(0, 0)] * 2 + [(1, 1)] * 2, constant_values=-np.inf)
    want = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3)).max((-1, -2))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("last", [False, True], ids=["planes", "channels-last"])
def test_bytes(last: bool) -> None:
    """Maxima of 8-bit integers, the ends of both types among them, are pooled as they are."""
    made, rng = Programs(), np.random.default_rng(4)
    for kind, channels, size in (
        (np.int8, 3, (9, 21)),
        (np.uint8, 64, (8, 8)),
        (np.int8, 20, (5, 7)),
    ):
        info = np.iinfo(kind)
        x = rng.integers(info.min, info.max + 1, (2, channels, *size)).astype(kind)
        x[0] = info.min
        padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=info.min)
        want = sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2, ::2].max((4, 5))

        def build(b: Any, v: Any) -> Any:
            return b.op(
                "pooling", v, mode="max", lengths=[3, 3], stride=[2, 2], padding=[1] * 4,
                dilations=[1, 1], channels_last=last,
            )  # fmt: skip

        order = (0, 2, 3, 1) if last else (0, 1, 2, 3)
        made.add(build, [x.transpose(order)], want.transpose(order))
    made.agree("fuse_pointwise_reduce")
