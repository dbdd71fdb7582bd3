"""Programs in smaller types: against onnxruntime, and what is refused."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import mgx_mlir as migraphx
from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import UsageError
from tests.support.models import parsed_bytes
from tests.support.oracle import ort_session

RNG = np.random.default_rng(3)


@pytest.fixture(scope="module")
def model() -> bytes:
    """A convolution, a pooling, a normalisation and a classifier, in f32."""
    weights = {
        "w": RNG.standard_normal((4, 2, 3, 3)), "b": RNG.standard_normal(4),
        "v": RNG.standard_normal((4, 8)) / 2, "g": RNG.uniform(0.5, 1.5, 8),
        "o": RNG.standard_normal(8),
    }  # fmt: skip
    return parsed_bytes(
        """(float[3,2,8,8] x) => (float[3,8] y) {
        c = Conv <pads = [1,1,1,1]> (x, w, b) r = Relu (c) p = GlobalAveragePool (r)
        f = Flatten (p) m = MatMul (f, v) n = LayerNormalization (m, g, o)
        y = Softmax <axis = 1> (n) }""",
        weights,
    )


def types_of(p: migraphx.program, name: str) -> set[str]:
    return {i.shape().type_string() for i in p.get_main_module() if i.name() == name}


@pytest.mark.parametrize("target", [None, "ref", "cpu"])
@pytest.mark.parametrize(
    ("quantize", "short", "rtol"),
    # the steps of the types are 2**-11 and 2**-8; a dozen roundings follow each other
    [("quantize_fp16", "half_type", 0.005), ("quantize_bf16", "bf16_type", 0.04)],
)
def test_in_16_bits(model, target, quantize, short, rtol) -> None:
    p = migraphx.parse_onnx_buffer(model)
    getattr(migraphx, quantize)(p)
    for name in ("convolution", "dot", "relu"):
        assert types_of(p, name) == {short}, name
    assert p.get_parameter_shapes()["x"].type_string() == "float_type"
    assert [s.type_string() for s in p.get_output_shapes()] == ["float_type"]
    if target is not None:
        p.compile(migraphx.get_target(target))
    x = RNG.standard_normal((3, 2, 8, 8)).astype("f4")
    (want,) = ort_session(model).run(None, {"x": x})
    got = np.array(p.run({"x": x})[0])
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * want.max())
    assert np.abs(got - want).max() > 1e-6, "nothing was computed in 16 bits"


def test_only_the_named_instructions(model) -> None:
    p = migraphx.parse_onnx_buffer(model)
    migraphx.quantize_fp16(p, ["dot"])
    assert types_of(p, "dot") == {"half_type"}
    assert types_of(p, "convolution") == {"float_type"}


def test_a_built_program_goes_on_after_it() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="float", lens=[4]))
    m.add_return([m.add_instruction(migraphx.op("exp"), [x])])
    migraphx.quantize_bf16(p)
    value = np.array([0.0, 1.0, -2.0, 3.0], "f4")
    want = np.exp(value).astype(ml_dtypes.bfloat16).astype("f4")
    np.testing.assert_array_equal(np.array(p.run({"x": value})[0]), want)
    assert p.get_parameter_names() == ["x"]
    with pytest.raises(UsageError):
        x.shape()  # belongs to the earlier program


def test_f8_parameters_become_f32_ones() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", migraphx.shape(type="fp8e4m3fn_type", lens=[4]))
    m.add_return([m.add_instruction(migraphx.op("neg"), [x])])
    migraphx.autocast_fp8(p)
    assert p.get_parameter_shapes()["x"].type_string() == "float_type"
    value = np.array([0.1, 1.0, 500.0, -3.3], "f4")
    rounded = np.clip(value, -448, 448).astype(dtypes.FP8E4M3FN.np).astype("f4")
    np.testing.assert_array_equal(np.array(p.run({"x": value})[0]), -rounded)


def test_what_is_refused(model) -> None:
    p = migraphx.parse_onnx_buffer(model)
    with pytest.raises(UsageError, match="not operators: dott"):
        migraphx.quantize_fp16(p, ["dott"])
    with pytest.raises(UsageError, match="a list of names, got 'dot'"):
        migraphx.quantize_fp16(p, "dot")
    with pytest.raises(UsageError, match="expected a program, got bytes"):
        migraphx.quantize_bf16(model)
    p.compile(migraphx.get_target("ref"))
    with pytest.raises(UsageError, match="compiled"):
        migraphx.quantize_fp16(p)
