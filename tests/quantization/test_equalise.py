"""Cross-layer equalisation: the same program, of weights that 8 bits hold better."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mgx_mlir as migraphx
from mgx_mlir.core.literals import array_of, is_literal
from mgx_mlir.frontends.onnx.importer import parse_onnx_buffer
from mgx_mlir.programs.program_ir import ProgramIR, entry_block
from mgx_mlir.quantization.equalise import equalise
from mgx_mlir.quantization.quantize import prepared
from tests.support.oracle import ort_session
from zoo.made import Graph

RNG = np.random.default_rng(0)
REF = migraphx.get_target("ref")


def spread(g: Graph, *dims: int, fan_in: int, axis: int = 0) -> str:
    """Weights of which some channels are a hundred times as large as others."""
    shape = [dims[axis] if i == axis else 1 for i in range(len(dims))]
    each = 10.0 ** g.rng.uniform(-1, 1, shape)
    return g.const(g.rng.standard_normal(dims) * each / np.sqrt(fan_in))


def net(batch: int | str = 2) -> bytes:
    """Each op that channels may pass through, and readers that they may not."""
    g = Graph(3)
    x = g.input("x", [batch, 3, 9, 9])
    a = g.op("Conv", x, spread(g, 8, 3, 3, 3, fan_in=27), g.vector(8), pads=[1] * 4)
    a = g.op("Relu", a)
    a = g.op("Conv", a, spread(g, 8, 1, 3, 3, fan_in=9), g.vector(8), pads=[1] * 4, group=8)
    a = g.op("Clip", a, g.const(0.0), g.const(6.0))
    a = g.op("Conv", a, spread(g, 12, 4, 1, 1, fan_in=4), g.vector(12), group=2)
    a = g.op("PRelu", a, g.const(np.abs(g.rng.standard_normal((12, 1, 1)))))
    a = g.op("MaxPool", a, kernel_shape=[2, 2], strides=[2, 2])
    a = g.op("Conv", a, spread(g, 6, 12, 3, 3, fan_in=108))
    a = g.op("LeakyRelu", g.op("Mul", a, g.vector(1, 0.5, 2.0)), alpha=0.1)
    a = g.op("Flatten", g.op("GlobalAveragePool", a))
    a = g.op("Gemm", a, spread(g, 6, 16, fan_in=6, axis=1), g.vector(16))
    a = g.op("Max", a, g.vector(16, -0.1, 0.1))
    b = g.op("MatMul", a, spread(g, 16, 10, fan_in=16, axis=1))
    c = g.op("MatMul", g.op("Sigmoid", b), g.weight(10, 5))  # Sigmoid of b is not proportional to b
    g.output(g.op("Add", c, g.op("MatMul", b, g.weight(10, 5))), "y", [batch, 5])
    return g.model().SerializeToString()


FEEDS = {"x": RNG.standard_normal((2, 3, 9, 9)).astype(np.float32)}


def run(program: ProgramIR | bytes, target: str = "ref") -> np.ndarray:
    return np.asarray(migraphx.compile(program, target=target).run(dict(FEEDS))[0])


def weights_of(program: ProgramIR) -> list[np.ndarray]:
    with program.ctx, program.store.active():
        ops = [v.operation for v in entry_block(program.main()).operations]
        found = [o.operands[1] for o in ops if o.name in ("migraphx.dot", "migraphx.convolution")]
        return [array_of(v.owner) for v in found if is_literal(v)]


@pytest.mark.parametrize("batch", [2, "n"])
def test_the_program_computes_the_same(batch: int | str) -> None:
    data = net(batch)
    [want] = ort_session(data).run(None, FEEDS)
    program = prepared(parse_onnx_buffer(data))
    assert equalise(program) == 5  # conv to conv thrice, conv to Gemm, Gemm to MatMul
    got = run(program)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_both_weights_of_a_channel_are_as_large() -> None:
    program = prepared(migraphx.parse_onnx_buffer(net()).program_ir)
    before = weights_of(program)
    equalise(program)
    w = weights_of(program)
    assert all(a.dtype == b.dtype and a.shape == b.shape for a, b in zip(before, w, strict=True))
    out = [np.abs(a).reshape(a.shape[0], -1).max(1) for a in w[:4]]
    # a depthwise convolution between its neighbours has the same input and output channels
    np.testing.assert_allclose(out[0], out[1], rtol=0.01)
    np.testing.assert_allclose(out[1], np.abs(w[2].reshape(2, 6, 4)).max(1).reshape(-1), rtol=0.01)
    np.testing.assert_allclose(out[2], np.abs(w[3]).max((0, 2, 3)), rtol=0.01)
    np.testing.assert_allclose(out[3], np.abs(w[4]).max(1), rtol=0.01)
    np.testing.assert_allclose(np.abs(w[4]).max(0), np.abs(w[5]).max(1), rtol=0.01)


def off(got: np.ndarray, want: np.ndarray) -> float:
    return float(np.sqrt(((got - want) ** 2).mean() / (want**2).mean()))


def unbalanced() -> bytes:
    """A net whose channels are multiplied by up to ten and divided again by the next weights."""
    g = Graph(4)
    factors = [10.0 ** g.rng.uniform(-1, 1, n) for n in (8, 8, 12)]

    def conv(x: str, outs: int, ins: int, k: int, before: Any, behind: Any, **more: Any) -> str:
        w = g.rng.standard_normal((outs, ins, k, k)) * np.sqrt(2 / (ins * k * k))
        w = w * behind[:, None, None, None] / np.reshape(before, (-1, ins, 1, 1))
        bias = g.rng.uniform(-0.2, 0.2, outs) * behind
        return g.op("Relu", g.op("Conv", x, g.const(w), g.const(bias), **more))

    x = g.input("x", [2, 3, 9, 9])
    a = conv(x, 8, 3, 3, np.ones(3), factors[0], pads=[1] * 4)
    a = conv(a, 8, 1, 3, factors[0], factors[1], pads=[1] * 4, group=8)
    a = conv(a, 12, 8, 1, factors[1], factors[2])
    a = g.op("Flatten", g.op("GlobalAveragePool", a))
    last = g.rng.standard_normal((12, 5)) / factors[2][:, None]
    g.output(g.op("MatMul", a, g.const(last)), "y", [2, 5])
    return g.model().SerializeToString()


@pytest.mark.parametrize("options", [{"per_channel": False}, {}], ids=["tensor", "channel"])
def test_8_bits_lose_less(options: dict[str, Any]) -> None:
    data = unbalanced()
    [want] = ort_session(data).run(None, FEEDS)
    samples = [{"x": RNG.standard_normal((2, 3, 9, 9)).astype(np.float32)} for _ in range(3)]
    lost: list[float] = []
    for equalize in (False, True):
        prog = migraphx.parse_onnx_buffer(data)
        migraphx.quantize_int8(prog, REF, samples, equalize=equalize, **options)
        lost.append(off(run(prog.program_ir), want))
    assert lost[1] < 0.5 * lost[0], lost


def test_what_has_no_neighbour_stays() -> None:
    """Results, weights that two products read, and zero channels are left alone."""
    g = Graph(5)
    x = g.input("x", [2, 3, 9, 9])
    w = g.weight(3, 3, 1, 1)
    a = g.op("Conv", g.op("Relu", g.op("Conv", x, w)), w)
    dead = np.zeros((4, 3, 1, 1), np.float32)
    dead[1] = 2.0
    a = g.op("Conv", g.op("Relu", a), g.const(dead))
    g.output(g.op("Conv", a, g.weight(2, 4, 1, 1)), "y", [2, 2, 9, 9])
    data = g.model().SerializeToString()
    [want] = ort_session(data).run(None, FEEDS)
    program = prepared(migraphx.parse_onnx_buffer(data).program_ir)
    equalise(program)
    np.testing.assert_allclose(run(program), want, rtol=1e-4, atol=1e-5)
