"""Products in the bodies of If and Loop: what a calibration sees of them, and what 8 bits give."""

from __future__ import annotations

from typing import Any

import numpy as np

import mgx_mlir as migraphx
from tests.quantization.test_eight_bits import model
from tests.support.oracle import ort_session

RNG = np.random.default_rng(4)
CPU, REF = migraphx.get_target("cpu"), migraphx.get_target("ref")


def drawn(*dims: int) -> np.ndarray:
    return (RNG.standard_normal(dims) / np.sqrt(dims[0])).astype(np.float32)


W = {"w": drawn(12, 16), "v": drawn(16, 8), "u": drawn(16, 8)}
BRANCHES = """
    h = MatMul(x,w)
    y = If(c) <
        then_branch = t () => (float[n,8] a) { h1 = Relu(h) a = MatMul(h1,v) },
        else_branch = e () => (float[n,8] b) {
            b = If(d) <
                then_branch = tt () => (float[n,8] p) { h2 = Neg(h) p = MatMul(h2,v) },
                else_branch = ee () => (float[n,8] q) { h3 = Abs(h) q = MatMul(h3,u) }
            >
        }
    >"""
LOOP = """
    y = Loop(m,c,x) <body = g (int64 i, bool go, float[4,12] s) => (bool on, float[4,12] k) {
        on = Identity(go) f = MatMul(s,w) r = Relu(f) k = MatMul(r,z) }>"""


def branches(batch: object = "n") -> bytes:
    return model(BRANCHES, f"float[{batch},12] x, bool c, bool d", f"float[{batch},8] y", **W)


def feeds(c: bool, d: bool, rows: int = 5) -> dict[str, np.ndarray]:
    return {"x": drawn(rows, 12), "c": np.array(c), "d": np.array(d)}


def parsed(data: bytes) -> Any:
    shapes = migraphx.shape.dynamic_dimension(1, 64)
    return migraphx.parse_onnx_buffer(data, default_dyn_dim_value=shapes)


def by_onnxruntime(data: bytes, given: dict[str, np.ndarray]) -> np.ndarray:
    return np.asarray(ort_session(data).run(None, given)[0])


def off(got: np.ndarray, want: np.ndarray) -> float:
    return float(np.sqrt(((got - want) ** 2).mean() / (want**2).mean()))


def test_branches() -> None:
    data = branches()
    samples = [feeds(True, False), feeds(False, True, 3), feeds(False, False), feeds(True, True)]
    p = parsed(data)
    found = migraphx.quantize_int8(p, CPU, samples, method="minmax", sensitivity=True)
    assert len(found.names) == 4
    assert not found.left_out
    assert all(25 < s.sqnr < 60 for s in found.sensitivities)
    hidden = [s["x"] @ W["w"] for s in samples]
    seen = [
        np.concatenate([np.maximum(hidden[0], 0), np.maximum(hidden[3], 0)]),
        -hidden[1],
        np.abs(hidden[2]),
    ]
    ranges = list(found.ranges.ranges.values())
    for (got,), want in zip(ranges[1:], seen, strict=True):
        assert got is not None
        np.testing.assert_allclose(got, (want.min(), want.max()), rtol=1e-5, atol=1e-6)
    compiled = migraphx.compile(p, "cpu", cache=False)
    assert sum("quant_dot" in k.name for k in compiled.kernels) == 4
    for given in (*samples, {**samples[2], "x": samples[2]["x"][:1]}):
        got = np.asarray(compiled.run(given)[0])
        assert 1e-4 < off(got, by_onnxruntime(data, given)) < 0.05


def test_a_branch_that_no_sample_takes_finds_its_own_ranges() -> None:
    data = branches(5)
    p = parsed(data)
    found = migraphx.quantize_int8(p, REF, [feeds(True, False)], bias_correction=True)
    assert [len(r) for r in found.ranges.ranges.values()] == [1, 1, 1, 1]
    assert list(found.ranges.ranges.values())[2:] == [[None], [None]]
    given = feeds(False, True)
    p.compile(REF)
    assert 1e-4 < off(np.asarray(p.run(given)[0]), by_onnxruntime(data, given)) < 0.05


def test_a_search_sees_into_branches() -> None:
    samples = [feeds(True, False), feeds(False, True), feeds(False, False)]
    p = parsed(branches())
    found = migraphx.quantize_int8(p, REF, samples, max_error=8e-3)
    assert 0 < len(found.kept) < 4
    assert found.error is not None
    assert found.error <= 8e-3


def test_a_loop() -> None:
    data = model(LOOP, "float[4,12] x, int64 m, bool c", "float[4,12] y", w=W["w"], z=drawn(16, 12))
    p = migraphx.parse_onnx_buffer(data)
    given = {"x": drawn(4, 12), "m": np.array(3), "c": np.array(True)}
    found = migraphx.quantize_int8(p, CPU, [given], method="minmax", sensitivity=True)
    assert len(found.names) == 2
    # range over all iterations; the first one has the input itself
    seen = next(iter(found.ranges.ranges.values()))[0]
    assert seen is not None
    low, high = seen
    assert low <= given["x"].min()
    assert high >= given["x"].max()
    p.compile(CPU)
    assert 1e-4 < off(np.asarray(p.run(given)[0]), by_onnxruntime(data, given)) < 0.08


def test_a_branch_in_a_loop_stays() -> None:
    """Trips that do not take it would have other dims than those that do."""
    body = """y = Loop(m,c,x) <
        body = g (int64 i, bool go, float[4,12] s) => (bool on, float[4,12] k) {
        on = Identity(go) f = MatMul(s,w) odd = Greater(i,one)
        k = If(odd) <
            then_branch = t () => (float[4,12] p) { r = Relu(f) p = MatMul(r,z) },
            else_branch = e () => (float[4,12] q) { n = Neg(f) q = MatMul(n,z) } >
    }>"""
    shapes = ("float[4,12] x, int64 m, bool c", "float[4,12] y")
    data = model(body, *shapes, w=W["w"], z=drawn(16, 12), one=np.array(1))
    p = migraphx.parse_onnx_buffer(data)
    given = {"x": drawn(4, 12), "m": np.array(3), "c": np.array(True)}
    found = migraphx.quantize_int8(p, REF, [given], sensitivity=True)
    assert len(found.names) == 1
    assert [o.why for o in found.left_out] == ["it is in a branch in the body of a Loop"] * 2
    p.compile(REF)
    assert 1e-4 < off(np.asarray(p.run(given)[0]), by_onnxruntime(data, given)) < 0.08


def test_a_loop_of_dynamic_dims_stays() -> None:
    text = LOOP.replace("4,12", "n,12")
    data = model(text, "float[n,12] x, int64 m, bool c", "float[n,12] y", w=W["w"], z=drawn(16, 12))
    p = parsed(data)
    given = {"x": drawn(4, 12), "m": np.array(3), "c": np.array(True)}
    found = migraphx.quantize_int8(p, REF, [given])
    assert not found.names
    assert all("iterations may differ in dims" in o.why for o in found.left_out)


def test_a_convolution_of_which_nothing_may_be_left() -> None:
    """A window may be longer than a dynamic extent: what follows is in 8 bits all the same."""
    body = """y = If(c) <
        then_branch = t () => (float[1,8,k] e) {
            g = Pad<mode="reflect">(x,pads) a = Conv<strides=[2]>(g,w)
            l = Slice(a,starts,ends,axes) r = Relu(l) e = Conv<pads=[1,1]>(r,v)
        },
        else_branch = f () => (float[1,8,l] d) { d = Conv(x,w) } >"""
    weights = {"w": drawn(8, 3, 6), "v": drawn(8, 8, 3), "pads": np.array([0, 0, 0, 0, 0, 4])}
    weights |= {"starts": np.array([0]), "ends": np.array([2**62]), "axes": np.array([2])}
    p = parsed(data := model(body, "float[1,3,n] x, bool c", "float[1,8,o] y", **weights))
    samples = [{"x": drawn(1, 3, n), "c": np.array(True)} for n in (30, 41)]
    assert len(migraphx.quantize_int8(p, CPU, samples).names) == 3
    compiled = migraphx.compile(p, "cpu", cache=False)
    assert any("quant_convolution" in k.name for k in compiled.kernels)
    for s in samples:
        assert off(np.asarray(compiled.run(s)[0]), by_onnxruntime(data, s)) < 0.05
