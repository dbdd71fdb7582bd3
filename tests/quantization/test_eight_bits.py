"""Programs in 8 and 4 bits: numbers by hand, options, what is kept, ranges in files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper

import mgx_mlir as migraphx
from mgx_mlir.core.errors import MgxError, UsageError
from mgx_mlir.quantization.scales import KnownRanges
from tests.support.oracle import ort_session

RNG = np.random.default_rng(0)
CPU, REF = migraphx.get_target("cpu"), migraphx.get_target("ref")


def drawn(*dims: int) -> np.ndarray:
    fan = np.prod(dims[1:]) if len(dims) > 2 else dims[0]
    return (RNG.standard_normal(dims) / np.sqrt(fan)).astype(np.float32)


def model(body: str, inputs: str, outputs: str, **weights: np.ndarray) -> bytes:
    text = f'<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => ({outputs}) {{ {body} }}'
    made = onnx.parser.parse_model(text)
    made.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in weights.items())
    return made.SerializeToString()


W0, W1, W2, W3 = drawn(8, 3, 3, 3), drawn(12, 8, 3, 3), drawn(12, 16), drawn(16, 5)
NET = """
    a = Conv<pads=[1,1,1,1]>(x,w0)  a1 = Relu(a)
    c = Conv<strides=[2,2],pads=[1,1,1,1]>(a1,w1)  c1 = Relu(c)
    p = GlobalAveragePool(c1)  f = Flatten(p)  h = MatMul(f,w2)  h1 = Relu(h)  y = MatMul(h1,w3)"""


def net(batch: object = 4) -> bytes:
    shapes = (f"float[{batch},3,10,10] x", f"float[{batch},5] y")
    return model(NET, *shapes, w0=W0, w1=W1, w2=W2, w3=W3)


SAMPLES = [{"x": RNG.standard_normal((4, 3, 10, 10)).astype(np.float32)} for _ in range(3)]
INPUT = {"x": RNG.standard_normal((4, 3, 10, 10)).astype(np.float32)}


def run(prog: Any, target: Any, feeds: dict[str, np.ndarray]) -> np.ndarray:
    made = migraphx.program.of(prog.program_ir.clone())
    made.compile(target)
    return np.asarray(made.run(feeds)[0])


def by_onnxruntime(data: bytes, feeds: dict[str, np.ndarray]) -> np.ndarray:
    session = ort_session(data)
    return np.asarray(session.run(None, feeds)[0])


def off(got: np.ndarray, want: np.ndarray) -> float:
    return float(np.sqrt(((got - want) ** 2).mean() / (want**2).mean()))


def rounded(a: np.ndarray, scale: Any, low: int = -127, high: int = 127) -> np.ndarray:
    return np.clip(np.rint(a.astype(np.float64) / scale), low, high) * scale


@pytest.mark.parametrize("target", [CPU, REF], ids=["cpu", "ref"])
@pytest.mark.parametrize("per_channel", [True, False])
def test_a_dot_by_hand(target: Any, per_channel: bool) -> None:
    data = model("y = MatMul(x,w)", "float[7,12] x", "float[7,16] y", w=W2)
    x = RNG.standard_normal((7, 12)).astype(np.float32)
    p = migraphx.parse_onnx_buffer(data)
    found = migraphx.quantize_int8(p, target, [{"x": x}], method="minmax", per_channel=per_channel)
    low, high = found.ranges.ranges["MatMul_0"][0]
    assert (low, high) == (x.min(), x.max())
    columns = np.abs(W2).max(0 if per_channel else None) / 127
    want = rounded(x, np.abs(x).max() / 127) @ rounded(W2, columns)
    np.testing.assert_allclose(run(p, target, {"x": x}), want, rtol=1e-4, atol=1e-5)


def test_a_zero_point_by_hand() -> None:
    data = model("y = MatMul(x,w)", "float[7,12] x", "float[7,16] y", w=W2)
    x = RNG.uniform(-1, 5, (7, 12)).astype(np.float32)
    p = migraphx.parse_onnx_buffer(data)
    migraphx.quantize_int8(p, CPU, [{"x": x}], method="minmax", asymmetric=True)
    scale = (float(x.max()) - float(x.min())) / 255
    zero = np.rint(-float(x.min()) / scale)
    codes = np.clip(np.rint(x / scale) + zero, 0, 255)
    want = ((codes - zero) * scale) @ rounded(W2, np.abs(W2).max(0) / 127)
    np.testing.assert_allclose(run(p, CPU, {"x": x}), want, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {}, {"method": "minmax"}, {"method": "entropy"}, {"method": "percentile"},
        {"asymmetric": True}, {"per_channel": False}, {"bias_correction": True}, {"smooth": 0.5},
    ],
    ids=lambda o: " ".join(f"{k} {v}" for k, v in o.items()) or "plain",
)  # fmt: skip
def test_a_net_in_int8(options: dict[str, Any]) -> None:
    p = migraphx.parse_onnx_buffer(net())
    found = migraphx.quantize_int8(p, CPU, SAMPLES, **options)
    assert len(found.names) == 4
    got = run(p, CPU, INPUT)
    limit = 0.1 if options.get("method") == "entropy" else 0.06
    assert 0 < off(got, by_onnxruntime(net(), INPUT)) < limit
    np.testing.assert_allclose(got, run(p, REF, INPUT), rtol=1e-4, atol=1e-5)


def test_without_samples_each_run_finds_its_ranges() -> None:
    p = migraphx.parse_onnx_buffer(net())
    migraphx.quantize_int8(p, CPU, [])
    want = by_onnxruntime(net(), INPUT)
    assert 0 < off(run(p, CPU, INPUT), want) < 0.03
    large = {"x": 1000 * INPUT["x"]}
    assert off(run(p, CPU, large), by_onnxruntime(net(), large)) < 0.03


def test_dynamic_dims() -> None:
    data = net("n")
    for samples in (SAMPLES, []):
        p = migraphx.parse_onnx_buffer(data, default_dyn_dim_value=migraphx.dynamic_dimension(1, 8))
        assert len(migraphx.quantize_int8(p, CPU, samples).names) == 4
        for n in (1, 5):
            feeds = {"x": RNG.standard_normal((n, 3, 10, 10)).astype(np.float32)}
            assert 0 < off(run(p, CPU, feeds), by_onnxruntime(data, feeds)) < 0.06


def test_a_search_with_dynamic_dims() -> None:
    """Means are subtracted and choices compared where only the run knows the batch."""
    data = net("n")
    options: dict[str, Any] = {"bias_correction": True, "asymmetric": True}
    shapes = migraphx.dynamic_dimension(1, 8)
    p, q = (migraphx.parse_onnx_buffer(data, default_dyn_dim_value=shapes) for _ in range(2))
    want = np.concatenate([by_onnxruntime(data, s) for s in SAMPLES])

    def error(made: Any) -> float:
        return off(np.concatenate([run(made, CPU, s) for s in SAMPLES]), want)

    migraphx.quantize_int8(p, CPU, SAMPLES, **options)
    whole = error(p)
    found = migraphx.quantize_int8(q, CPU, SAMPLES, max_error=0.5 * whole, **options)
    assert 0 < len(found.kept) < 4
    assert found.error is not None
    assert found.error <= 0.5 * whole < 0.03
    assert error(q) <= 1.05 * 0.5 * whole


def test_channels_of_a_convolution_are_made_alike() -> None:
    """A scale for each channel of the activations where each has weights of its own."""
    w = drawn(8, 1, 3, 3)
    data = model(
        "y = Conv<group=8,pads=[1,1,1,1]>(x,w)", "float[2,8,9,9] x", "float[2,8,9,9] y", w=w
    )
    factors = np.geomspace(1, 1000, 8).astype(np.float32)[:, None, None]
    given = [{"x": RNG.standard_normal((2, 8, 9, 9)).astype(np.float32) * factors}] * 2
    want = by_onnxruntime(data, given[0])
    errors: dict[Any, float] = {}
    for smooth in (None, 0.5):
        p = migraphx.parse_onnx_buffer(data)
        options: dict[str, Any] = {"asymmetric": True, "bias_correction": True, "smooth": smooth}
        migraphx.quantize_int8(p, REF, given, method="minmax", **options)
        got = run(p, REF, given[0])
        errors[smooth] = max(off(got[:, i], want[:, i]) for i in range(8))
    assert errors[0.5] < 0.03 < 0.3 < errors[None]


def test_what_is_kept_is_what_the_outputs_lose_by() -> None:
    """Not what is off most by itself: a product whose result hardly counts may be."""
    odd = W2.copy()
    odd[:, 0] *= 300  # one large column: the others are off by it, per tensor
    body = "h = MatMul(x,w) k = MatMul(z,v) r = Relu(k) s = Mul(r,c) y = Add(h,s)"
    shapes = ("float[6,12] x, float[6,12] z", "float[6,16] y")
    data = model(body, *shapes, w=W2, v=odd, c=np.array(1e-4, np.float32))
    given = [{n: RNG.standard_normal((6, 12)).astype(np.float32) for n in "xz"} for _ in "ab"]
    p = migraphx.parse_onnx_buffer(data)
    found = migraphx.quantize_int8(
        p, REF, given, per_channel=False, max_error=3e-3, sensitivity=True
    )
    first, second = found.sensitivities
    assert second.sqnr < first.sqnr
    assert found.kept == [first.name]


def test_fp8_by_hand() -> None:
    data = model("y = MatMul(x,w)", "float[7,12] x", "float[7,16] y", w=W2)
    x = RNG.standard_normal((7, 12)).astype(np.float32)
    p = migraphx.parse_onnx_buffer(data)
    migraphx.quantize_fp8(p, CPU, [{"x": x}])

    def narrow(a: np.ndarray, scale: Any) -> np.ndarray:
        scaled = (a / np.asarray(scale, np.float32)).astype(np.float32)
        return scaled.astype(ml_dtypes.float8_e4m3fn).astype(np.float64) * scale

    want = narrow(x, np.abs(x).max() / 448) @ narrow(W2, np.abs(W2).max(0) / 448)
    np.testing.assert_allclose(run(p, CPU, {"x": x}), want, rtol=1e-3, atol=1e-4)


def test_int4_weights_by_hand() -> None:
    w = drawn(64, 30)
    data = model("y = MatMul(x,w)", "float[40,64] x", "float[40,30] y", w=w)
    x = RNG.standard_normal((40, 64)).astype(np.float32)
    errors = []
    for size in (0, 32, 16):
        p = migraphx.parse_onnx_buffer(data)
        migraphx.quantize_int4_weights(p, group_size=size)
        groups = w.reshape(64 // size, size, 30) if size else w[None]
        axes = 1 if size else (0, 1, 2)
        low = np.minimum(groups.min(axes, keepdims=True), 0)
        high = np.maximum(groups.max(axes, keepdims=True), 0)
        step = (high - low) / 15
        half = step.astype(np.float16)  # steps are rounded up to f16
        step = np.where(half < step, np.nextafter(half, np.float16(9)), half).astype(np.float64)
        zero = np.rint(-low / step)
        codes = np.clip(np.rint(groups / step) + zero, 0, 15)
        want = x @ ((codes - zero) * step).reshape(64, 30)
        np.testing.assert_allclose(run(p, CPU, {"x": x}), want, rtol=1e-4, atol=1e-5)
        errors.append(off(want, x @ w))
    assert errors[0] > errors[2]


def test_sizes_shrink() -> None:
    data = model("y = MatMul(x,w)", "float[2,256] x", "float[2,256] y", w=drawn(256, 256))

    def stored(quantize: Any) -> int:
        p = migraphx.parse_onnx_buffer(data)
        quantize(p)
        p.compile(CPU)
        return len(migraphx.save_buffer(p))

    # columns are filled up to 288 in the code's weights, which the file holds once
    code, weights = 48 << 10, 256 * 288
    plain = stored(lambda p: None)
    assert 256 * 256 * 4 < plain < 4 * weights + code
    assert stored(lambda p: migraphx.quantize_int8(p, CPU, [])) < weights + code
    # 4 bits, and 24 of scale and zero point for 32 weights
    packed = stored(lambda p: migraphx.quantize_int4_weights(p))
    assert packed < 0.6 * weights + code


def test_attention_stays_as_it_is_unless_asked_for() -> None:
    text = "t = Transpose<perm=[1,0]>(x) s = MatMul(x,t) y = MatMul(s,w)"
    data = model(text, "float[6,8] x", "float[6,3] y", w=drawn(6, 3))
    x = {"x": RNG.standard_normal((6, 8)).astype(np.float32)}
    for computed, names in ((False, ["MatMul_2"]), (True, ["MatMul_1", "MatMul_2"])):
        p = migraphx.parse_onnx_buffer(data)
        found = migraphx.quantize_int8(p, CPU, [x], computed_operands=computed)
        assert found.names == names
        assert off(run(p, CPU, x), by_onnxruntime(data, x)) < 0.03


def test_products_are_kept_until_the_error_is_met() -> None:
    p = migraphx.parse_onnx_buffer(net())
    plain = migraphx.quantize_int8(p, CPU, SAMPLES)
    assert (plain.kept, plain.error) == ([], None)
    want = by_onnxruntime(net(), SAMPLES[0])
    whole = off(run(p, CPU, SAMPLES[0]), want)
    p = migraphx.parse_onnx_buffer(net())
    found = migraphx.quantize_int8(p, CPU, SAMPLES, max_error=0.7 * whole, sensitivity=True)
    assert 0 < len(found.kept) < 4
    assert sorted([*found.kept, *found.names]) == sorted(plain.names)
    assert found.error is not None
    assert found.error <= 0.7 * whole
    assert off(run(p, CPU, SAMPLES[0]), want) <= 1.05 * 0.7 * whole
    ranked = found.sensitivities
    assert all(10 < s.sqnr < 80 and 0.99 < s.cosine <= 1 for s in ranked)


def test_an_error_holds_for_all_of_many_samples() -> None:
    """The search goes by few of them."""
    loud = [{"x": SAMPLES[0]["x"] * np.float32(f)} for f in (0.3, 1, 1, 0.5, 2, 1, 0.2)]
    want = np.concatenate([by_onnxruntime(net(), s) for s in loud])

    def error(made: Any) -> float:
        return off(np.concatenate([run(made, REF, s) for s in loud]), want)

    p, q = (migraphx.parse_onnx_buffer(net()) for _ in range(2))
    migraphx.quantize_int8(p, REF, loud)
    limit = 0.7 * error(p)
    found = migraphx.quantize_int8(q, REF, loud, max_error=limit)
    assert 0 < len(found.kept) < 4
    assert found.error is not None
    assert found.error <= limit
    assert error(q) <= 1.05 * limit


@pytest.mark.parametrize("kind", ["bf16", "fp16"])
def test_products_stay_in_16_bits_where_that_is_enough(kind: str) -> None:
    """The most sensitive ones; f32 where 16 bits themselves are off by more."""
    p = migraphx.parse_onnx_buffer(net())
    migraphx.quantize_int8(p, REF, SAMPLES)
    want = by_onnxruntime(net(), SAMPLES[0])
    whole = off(run(p, REF, SAMPLES[0]), want)
    for error, narrow in ((0.7 * whole, True), (1e-6, False)):
        p = migraphx.parse_onnx_buffer(net())
        found = migraphx.quantize_int8(p, REF, SAMPLES, max_error=error, kept_type=kind)
        assert found.kept
        assert off(run(p, REF, SAMPLES[0]), want) <= 1.05 * error
        name = "half_type" if kind == "fp16" else "bf16_type"
        text = str(p)
        products = [line for line in text.splitlines() if " dot(" in line or "convolution[" in line]
        assert sum(f"-> {name}" in line for line in products) == (len(found.kept) if narrow else 0)
    with pytest.raises(UsageError, match="kept_type expected fp16 or bf16, got 'f32'"):
        migraphx.quantize_int8(p, REF, SAMPLES, max_error=0.1, kept_type="f32")


def test_a_metric_of_the_users() -> None:
    wants = [by_onnxruntime(net(), s).argmax(-1) for s in SAMPLES]

    def agreement(outputs: list[list[np.ndarray]]) -> float:
        pairs = zip(outputs, wants, strict=True)
        return float(np.mean([(o[0].argmax(-1) == w).mean() for o, w in pairs]))

    p = migraphx.parse_onnx_buffer(net())
    found = migraphx.quantize_int8(p, CPU, SAMPLES, metric=agreement, least=1.0)
    assert agreement([[run(p, CPU, s)] for s in SAMPLES]) == found.error == 1.0


def test_a_metric_that_the_program_itself_misses() -> None:
    p = migraphx.parse_onnx_buffer(net())
    with pytest.raises(UsageError, match=r"the original program has a metric of 0.5, below"):
        migraphx.quantize_int8(p, REF, SAMPLES, metric=lambda _: 0.5, least=0.7)
    with pytest.raises(UsageError, match="metric of nan"):
        migraphx.quantize_int8(p, REF, SAMPLES, metric=lambda _: float("nan"))


def test_names_that_are_kept() -> None:
    p = migraphx.parse_onnx_buffer(net())
    found = migraphx.quantize_int8(p, CPU, SAMPLES, keep=["Conv_0", "MatMul_8"])
    assert found.names == ["Conv_2", "MatMul_6"]


def test_ranges_in_a_file(tmp_path: Path) -> None:
    p, q = (migraphx.parse_onnx_buffer(net()) for _ in range(2))
    found = migraphx.quantize_int8(p, CPU, SAMPLES)
    path = tmp_path / "ranges.json"
    found.ranges.save(path)
    migraphx.quantize_int8(q, CPU, ranges=KnownRanges.load(path))
    assert np.array_equal(run(p, CPU, INPUT), run(q, CPU, INPUT))
    whole = json.loads(path.read_text())
    for text, message in (
        ("", "not a file of ranges"),
        ("[" * 100_000, "not a file of ranges"),
        ("[1]", "not a file of ranges"),
        (json.dumps({**whole, "version": 7}), "expected version 1, got 7"),
        (json.dumps({**whole, "ranges": 1}), "'ranges' expected an object"),
        (json.dumps({**whole, "ranges": {"a": 3}}), "'a' expected a list of ranges"),
        (json.dumps({**whole, "ranges": {"a": [[1, "b"]]}}), "'a' expected pairs of numbers"),
        (json.dumps({**whole, "ranges": {"a": [[2, 1]]}}), "'a' has a range from 2.0 to 1.0"),
        ('{"format": "mgx_mlir ranges", "version": 1, "ranges": {"a": [[NaN, 1]]}}', "numbers"),
    ):
        path.write_text(text)
        with pytest.raises(MgxError) as caught:
            KnownRanges.load(path)
        assert message in str(caught.value)


def test_errors_leave_the_program_as_it_was() -> None:
    p = migraphx.parse_onnx_buffer(net())
    before = str(p)
    for call, message in (
        (lambda: migraphx.quantize_int8(p, CPU, [{"z": 1}]), "has no x"),
        (lambda: migraphx.quantize_int8(p, CPU, iter([])), "has no sample"),
        (lambda: migraphx.quantize_int8(p, CPU, [{"x": np.ones(3, np.float32)}]), "x"),
        (lambda: migraphx.quantize_int8(p, CPU, SAMPLES, ["relu"]), "8 bits, got relu"),
        (lambda: migraphx.quantize_int8(p, CPU, SAMPLES, "dot"), "expected a list of names"),
        (lambda: migraphx.quantize_int8(p, CPU, SAMPLES, method="best"), "unknown method"),
        (
            lambda: migraphx.quantize_int8(p, CPU, SAMPLES, keep=["Nothing"]),
            "no dots or convolutions",
        ),
        (lambda: migraphx.quantize_int8(p, CPU, SAMPLES, smooth=2.0), "smooth expected"),
        (lambda: migraphx.quantize_int8(p, CPU, smooth=0.5), "need calibration data"),
        (lambda: migraphx.quantize_int8(p, CPU, max_error=0.1), "need calibration data"),
        (lambda: migraphx.quantize_int8(p, "cpu", SAMPLES), "expected a target, got str"),
        (lambda: migraphx.quantize_int4_weights(p, group_size=-1), "group-size expected"),
    ):
        with pytest.raises(MgxError) as caught:
            call()
        assert message in str(caught.value)
        assert str(p) == before
    p.compile(REF)
    with pytest.raises(UsageError, match="the program is compiled"):
        migraphx.quantize_fp8(p, CPU, SAMPLES)


@pytest.mark.parametrize("call", ["int8", "fp8", "int4"])
def test_weights_that_no_code_stands_for_stay(call: str) -> None:
    """NaN and infinities in weights became numbers, without a word."""
    rng = np.random.default_rng(0)
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 20]> g (float[2,8] x) => (float[2,4] y, float[2,4] z) '
        "{ y = MatMul(x, bad) n = Neg(x) z = MatMul(n, good) }"
    )
    for name in ("bad", "good"):
        w = rng.standard_normal((8, 4)).astype(np.float32)
        w[3, 1] = np.nan if name == "bad" else 1
        model.graph.initializer.append(numpy_helper.from_array(w, name))
    p = migraphx.parse_onnx_buffer(model.SerializeToString())
    x = rng.standard_normal((2, 8)).astype(np.float32)
    if call == "int4":
        migraphx.quantize_int4_weights(p)
    else:
        found = getattr(migraphx, f"quantize_{call}")(p, CPU, [{"x": x}])
        assert len(found.names) == 1
        assert [left.why for left in found.left_out] == ["its weights are not all finite"]
    p.compile(CPU)
    y, z = (np.asarray(a) for a in p.run({"x": x}))
    assert np.isnan(y[:, 1]).all()
    assert np.isfinite(np.delete(y, 1, axis=1)).all()
    assert np.isfinite(z).all()
