"""Weights in 4 bits by samples of their inputs: never off by more than rounded to nearest."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx.parser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper

import mgx_mlir as migraphx
from mgx_mlir.core.errors import MgxError, UsageError
from mgx_mlir.passes.quantize_int4 import grid_of, group_of
from mgx_mlir.quantization.four_bits import FourBits
from mgx_mlir.quantization.gptq import SecondMoments, compensated
from mgx_mlir.quantization.sites import sites

CPU = migraphx.get_target("cpu")


def alike(rng: np.random.Generator, rows: int, columns: int, rank: int) -> np.ndarray:
    """Draw inputs that go together: sums of a few, with noise."""
    few = rng.standard_normal((rows, rank)) @ rng.standard_normal((rank, columns))
    return (few + 0.1 * rng.standard_normal((rows, columns))).astype(np.float32)


def errors(x: np.ndarray, changed: np.ndarray, w: np.ndarray) -> np.ndarray:
    return ((x.astype(np.float64) @ (changed.astype(np.float64) - w)) ** 2).sum(0)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 5), st.sampled_from([2, 16, 32, 64]),
    st.integers(1, 12), st.integers(1, 80), st.sampled_from(["alike", "white", "large", "dead"]),
    st.sampled_from([np.float32, np.float16, ml_dtypes.bfloat16]),
)  # fmt: skip
def test_no_column_is_further_off_than_rounded_to_nearest(
    seed: int, groups: int, group: int, columns: int, rows: int, kind: str, dtype: Any
) -> None:
    rng = np.random.default_rng(seed)
    inputs = groups * group
    x = alike(rng, rows, inputs, 3) if kind == "alike" else rng.standard_normal((rows, inputs))
    x = x.astype(np.float32)
    if kind == "large":
        x[:, rng.integers(0, inputs)] *= 1000
    if kind == "dead":
        x[:, rng.random(inputs) < 0.5] = 0
    w = rng.standard_normal((inputs, columns)).astype(np.float32)
    moments = SecondMoments()
    for part in np.array_split(x, 3):
        moments.add(part)
    grid, codes = compensated(w, moments, group, np.dtype(dtype))
    assert codes.max() <= 15
    assert grid.step.dtype == dtype
    plain = grid_of(w, group, np.dtype(dtype))
    nearest = plain.restored(plain.codes_of(w))
    got, want = errors(x, grid.restored(codes), w), errors(x, nearest, w)
    # the sums are of f32: they do not tell errors apart that are smaller than their rounding
    assert (got <= want * (1 + 1e-3) + 1e-9 * (x**2).sum()).all()


def test_inputs_that_go_together_gain_a_bit_and_more() -> None:
    rng = np.random.default_rng(0)
    x, w = alike(rng, 600, 128, 20), rng.standard_normal((128, 40)).astype(np.float32)
    moments = SecondMoments()
    moments.add(x[:500])
    grid, codes = compensated(w, moments, 32, np.dtype(np.float32))
    plain = grid_of(w, 32, np.dtype(np.float32))
    held = x[500:]  # samples that the codes were not chosen by
    got = errors(held, grid.restored(codes), w).sum()
    assert 10 * np.log10(errors(held, plain.restored(plain.codes_of(w)), w).sum() / got) > 6


def test_without_samples_weights_are_rounded_to_nearest() -> None:
    w = np.random.default_rng(1).standard_normal((64, 6)).astype(np.float32)
    plain = grid_of(w, 32, np.dtype(np.float32))
    for x in (np.zeros((5, 64)), np.full((5, 64), np.nan), np.zeros((0, 64))):
        moments = SecondMoments()
        moments.add(x)
        _, codes = compensated(w, moments, 32, np.dtype(np.float32))
        assert np.array_equal(codes, plain.codes_of(w))


# ---- programs ------------------------------------------------------------------------------------

RNG = np.random.default_rng(2)
W0, W1 = (RNG.standard_normal((64, 64)).astype(np.float32) / 8 for _ in range(2))
SAMPLES = [{"x": alike(RNG, 30, 64, 8)} for _ in range(4)]


def parsed(body: str, **weights: np.ndarray) -> Any:
    text = f'<ir_version: 8, opset_import: ["" : 17]> g (float[30,64] x) => (y) {{ {body} }}'
    made = onnx.parser.parse_model(text.replace("(y)", "(float[30,64] y)"))
    made.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in weights.items())
    return migraphx.parse_onnx_buffer(made.SerializeToString())


def run(p: Any, feeds: dict[str, np.ndarray]) -> np.ndarray:
    p.compile(CPU)
    return np.asarray(p.run(feeds)[0])


def test_a_program_computes_with_the_codes() -> None:
    p = parsed("h = MatMul(x,a) r = Relu(h) y = MatMul(r,b)", a=W0, b=W1)
    found = migraphx.quantize_int4_weights(p, calibration=SAMPLES)
    assert isinstance(found, FourBits)
    a, b = (grid.restored(codes).astype(np.float64) for grid, codes in found.codes.values())
    x = SAMPLES[0]["x"]
    got = run(p, SAMPLES[0])
    np.testing.assert_allclose(got, np.maximum(x @ a, 0) @ b, rtol=1e-4, atol=1e-4)
    want = np.maximum(x.astype(np.float64) @ W0, 0) @ W1
    nearest = parsed("h = MatMul(x,a) r = Relu(h) y = MatMul(r,b)", a=W0, b=W1)
    assert migraphx.quantize_int4_weights(nearest) == FourBits()
    rounded = run(nearest, SAMPLES[0])
    assert ((got - want) ** 2).mean() < 0.5 * ((rounded - want) ** 2).mean()


def test_weights_of_two_products_have_codes_for_both() -> None:
    p = parsed("h = MatMul(x,a) r = Relu(h) y = MatMul(r,a)", a=W0)
    found = migraphx.quantize_int4_weights(p, calibration=iter(SAMPLES), group_size=64)
    (grid, codes), (_, other) = found.codes.values()
    assert codes is other
    a = grid.restored(codes).astype(np.float64)
    want = np.maximum(SAMPLES[0]["x"] @ a, 0) @ a
    np.testing.assert_allclose(run(p, SAMPLES[0]), want, rtol=1e-4, atol=1e-4)


def test_sums_that_do_not_fit_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The samples are run again for the products behind: the codes stay the same."""
    found = []
    for room in (1 << 30, 1):
        monkeypatch.setattr("mgx_mlir.quantization.four_bits._ROOM", room)
        p = parsed("h = MatMul(x,a) y = MatMul(h,b)", a=W0, b=W1)
        found.append(migraphx.quantize_int4_weights(p, calibration=iter(SAMPLES), samples=3))
    assert len(found[0].codes) == 2
    for name, (grid, codes) in found[0].codes.items():
        assert np.array_equal(codes, found[1].codes[name][1])
        assert np.array_equal(grid.step, found[1].codes[name][0].step)


@pytest.mark.parametrize(
    ("inputs", "size", "group"),
    [(64, 32, 32), (24, 32, 24), (784, 32, 16), (72, 32, 24), (100, 32, 0), (88, 32, 0), (64, 0, 0),
     (120, 64, 40), (3, 2, 0), (1, 32, 0)],
)  # fmt: skip
def test_groups(inputs: int, size: int, group: int) -> None:
    """Groups shrink by 8, down to half, if the inputs are not a multiple of their size."""
    ones = np.ones((800, 800), np.float32)
    p = parsed("h = MatMul(x,a) y = MatMul(h,b)", a=ones[:64, :inputs], b=ones[:inputs, :64])
    with p.program_ir.ctx:
        found = sites(p.program_ir)
        assert group_of(found[1].op.operands[1], size) == group


def test_errors() -> None:
    p = parsed("y = MatMul(x,a)", a=W0)
    with pytest.raises(UsageError, match="no sample"):
        migraphx.quantize_int4_weights(p, calibration=[])
    with pytest.raises(UsageError, match="calibration data has no x"):
        migraphx.quantize_int4_weights(p, calibration=[{"z": W0}])
    with pytest.raises(MgxError, match="group-size expected 0, or 2 and more, got 1"):
        migraphx.quantize_int4_weights(p, calibration=SAMPLES, group_size=1)


# the last: what rounding the operands and results of the product to the type may change
@pytest.mark.parametrize(
    ("name", "dtype", "limit"),
    [("fp16", np.float16, 2e-3), ("bf16", ml_dtypes.bfloat16, 1.6e-2), ("", np.float32, 1e-6)],
)
def test_weights_of_any_float_type_are_quantised(name: str, dtype: Any, limit: float) -> None:
    """A program in smaller floats first: its weights are codes, as they are of one in f32."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((64, 48)).astype(np.float32)
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 20]> g (float[3,64] x) => (float[3,48] y) '
        "{ y = MatMul(x, w) }"
    )
    model.graph.initializer.append(numpy_helper.from_array(w, "w"))
    prog = migraphx.parse_onnx_buffer(model.SerializeToString())
    if name:
        getattr(migraphx, f"quantize_{name}")(prog)
    migraphx.quantize_int4_weights(prog)
    assert str(prog).count("unpack_int4") == 1
    x = rng.standard_normal((3, 64)).astype(np.float32)
    own = w.astype(dtype)
    grid = grid_of(own, 32, np.dtype(dtype))
    want = x.astype(np.float64) @ grid.restored(grid.codes_of(own))
    prog.compile(CPU)
    got = np.asarray(prog.run({"x": x})[0])
    assert np.abs(got - want).max() <= limit * np.abs(want).max()
    plain = x.astype(np.float64) @ w
    assert np.abs(got - plain).max() > 0.01 * np.abs(plain).max()
