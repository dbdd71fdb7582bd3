"""Functions that torch.onnx writes with overflow, lost digits or other quotients, against torch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import mgx_mlir.torch
from mgx_mlir.frontends import torch_arguments as arguments
from mgx_mlir.frontends import torch_formulas as formulas
from mgx_mlir.frontends import torch_numbers as numbers
from mgx_mlir.frontends import torch_pieces as pieces

NUMBERS = [0.0, 1e-40, 1e-30, 1e-8, 1e-3, 0.1, 0.3, 0.5, 0.999, 1.0, 1.1, 2.0, 3.0, 5.5, 8.0, 16.5,
           20.0, 60.0, 88.0, 89.0, 104.0, 200.0, 1e4, 1e10, 1e20, 3e38, math.inf]  # fmt: skip
EACH = torch.tensor([*NUMBERS, *(-x for x in NUMBERS), math.nan])
PAIRS = torch.tensor([*itertools.product(EACH.tolist(), repeat=2)])
INTEGERS = torch.tensor([0, 1, -1, 7, -7, 16777217, -123456789, 2**31 - 1, 1 - 2**31])
LONG = torch.tensor([2**53 + 1, -(2**53) - 1, 10**18 + 7, 2**63 - 1])


def same(got: Any, want: Any) -> None:
    """Each element within 1e-6 of its own size, signs of 0 among them."""
    torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-44, equal_nan=True)
    if want.is_floating_point():
        assert torch.equal(torch.signbit(got) | got.isnan(), torch.signbit(want) | want.isnan())


@pytest.mark.parametrize(
    ("function", "operator"),
    [(numbers.log1p, torch.log1p), (numbers.expm1, torch.expm1), (numbers.angle, torch.angle),
     (numbers.log2, torch.log2), (numbers.log10, torch.log10)],
)  # fmt: skip
def test_one_number(function: Callable[..., Any], operator: Callable[..., Any]) -> None:
    same(function(EACH), operator(EACH.double()).float())
    half = EACH.half()
    same(function(half), operator(half.double()).half())


@pytest.mark.parametrize("kind", [torch.int64, torch.int8, torch.uint8, torch.bool])
def test_an_angle_of_integers_is_a_float(kind: torch.dtype) -> None:
    x = torch.tensor([0, 1, -1, 7]).to(kind)
    same(numbers.angle(x), x.angle())


@pytest.mark.parametrize(
    ("function", "operator"),
    [(numbers.angle_of, torch.atan2), (numbers.remainder, torch.remainder),
     (numbers.floored_quotient, torch.floor_divide)],
)  # fmt: skip
def test_two_numbers(function: Callable[..., Any], operator: Callable[..., Any]) -> None:
    same(function(*PAIRS.T), operator(*PAIRS.T))


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_norms_of_16_bit_floats_do_not_overflow(kind: torch.dtype) -> None:
    """Powers are of f32: 300 cubed is above the largest f16, and 0.001 cubed below the least."""
    for size in (1e-3, 300.0):
        x = (torch.arange(1, 13) * size).reshape(3, 4).to(kind)
        for order in (3, 4.0, 0.5):
            want = torch.linalg.vector_norm(x.double(), order, -1).to(kind)
            torch.testing.assert_close(pieces.vector_norm(x, order, [-1]), want)
    assert pieces.vector_norm(x.float(), 3) is NotImplemented


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_numbers_beyond_a_short_type_are_used_in_f32(kind: torch.dtype) -> None:
    """Ones that f16 has as infinity or 0, where torch's result is an ordinary number."""
    x = torch.tensor([1e-3, -2e-3, 3e-4]).to(kind)

    def graph(x: Tensor) -> list[Tensor]:
        y = x * 1e7
        return [y, y * 1e-8, x / 1e-6, y / 1e6, x * 0.1, x + 1e-8, torch.add(x, y, alpha=1e-8)]

    with torch.no_grad():
        found = torch.compile(graph, backend="mgx", options={"target": "ref"})(x)
    torch._dynamo.reset()
    for got, want in zip(found, graph(x), strict=True):
        torch.testing.assert_close(got, want, rtol=2e-2, atol=0)


def f64_numbers(x: Tensor, y: Tensor, s: Tensor) -> dict[str, Tensor]:
    """Calls with numbers that f32 rounds."""
    fn = torch.nn.functional
    return {
        "mul": x * 0.3, "add": x + 0.1, "div": 0.7 / x, "pow": x.abs() ** 0.3, "less": x < 0.1,
        "where": torch.where(x > 0, x, 0.1), "fill": x.masked_fill(x > 0, 0.1),
        "clamp": x.clamp(-0.3, 0.1), "low": x.clamp_min(0.1), "high": x.clamp_max(0.1),
        "hardtanh": fn.hardtanh(x, -0.3, 0.1), "full": x + torch.full_like(x, 0.1),
        "filled": torch.full((2,), 0.1, dtype=x.dtype), "new": x.new_full((2,), 0.1),
        "celu": fn.celu(x, 0.3), "selu": fn.selu(x), "elu": fn.elu(x, 0.3),
        "leaky": fn.leaky_relu(x, 0.3), "softplus": fn.softplus(x, 0.3),
        "hardsigmoid": fn.hardsigmoid(x), "softshrink": fn.softshrink(x, 0.3),
        "threshold": fn.threshold(x, 0.3, 0.1), "huber": fn.huber_loss(x, y, delta=0.3),
        "alpha": torch.add(x, y, alpha=0.3), "minus": torch.sub(x, y, alpha=0.3),
        "addmm": torch.addmm(s, x, y.t(), beta=0.3, alpha=0.1),
        "addcmul": torch.addcmul(x, x, y, value=0.3),
        "addr": torch.addr(s, x[:, 0], y[:, 0], beta=0.3),
        "norm": torch.linalg.vector_norm(x, 1.3), "cube": torch.linalg.vector_norm(x, 3, 1),
        "linspace": x + torch.linspace(0.1, 0.7, 4, dtype=x.dtype), "quantile": x.quantile(0.3),
    }  # fmt: skip


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_numbers_beside_f64_keep_their_digits(target: str) -> None:
    x, y, s = (torch.randn(n, dtype=torch.float64) for n in ((3, 4), (3, 4), (3, 3)))
    with torch.no_grad():
        found = torch.compile(f64_numbers, backend="mgx", options={"target": target})(x, y, s)
    torch._dynamo.reset()
    for name, want in f64_numbers(x, y, s).items():
        torch.testing.assert_close(found[name], want, rtol=1e-13, atol=1e-13, msg=name)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_numbers_beside_complex_numbers(kind: torch.dtype) -> None:
    def graph(x: Tensor) -> list[Tensor]:
        z = torch.complex(x, x + 1)
        return [torch.view_as_real(z * (2 + 0.1j) + 0.3), (z * 0.3).imag]

    x = torch.randn(5, dtype=kind)
    with torch.no_grad():
        found = torch.compile(graph, backend="mgx", options={"target": "ref"})(x)
    torch._dynamo.reset()
    for got, want in zip(found, graph(x), strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_sums_of_16_bit_floats_whose_addends_are_infinite(kind: torch.dtype) -> None:
    most = torch.finfo(kind).max * 0.75

    def graph(x: Tensor, left: Tensor, right: Tensor) -> list[Tensor]:
        factors = {"beta": 2, "alpha": -1}
        return [
            torch.addmm(x, left, right, **factors),
            torch.addbmm(x, left[None], right[None], **factors),
            torch.baddbmm(x[None], left[None], right[None], **factors),
            torch.addr(x, left[:, 0], right[0], **factors),
        ]

    x = torch.full((2, 2), most, dtype=kind)
    left, right = torch.full((2, 1), 1.25 * most, dtype=kind), torch.full((1, 2), 1.0, dtype=kind)
    with torch.no_grad():
        found = torch.compile(graph, backend="mgx", options={"target": "ref"})(x, left, right)
    torch._dynamo.reset()
    for got in found:
        assert torch.equal(
            got, (2 * x.float() - left.float() * right.float()).to(kind).reshape(got.shape)
        )


def test_a_sine_over_its_angle() -> None:
    for x in (torch.linspace(-9, 9, 37), torch.linspace(-9, 9, 37).half(), torch.arange(-3, 4)):
        torch.testing.assert_close(numbers.sine_over_angle(x), torch.sinc(x))


@pytest.mark.parametrize("kind", [torch.int64, torch.uint8, torch.bool, torch.float16])
def test_sizes_with_other_signs_are_floats(kind: torch.dtype) -> None:
    x = torch.tensor([3, 0, 1]).to(kind)
    for y in (torch.tensor([-1, 1, -2]), torch.tensor([-0.0, 1.0, -2.0]), x, -2, -2.0):
        same(formulas.with_sign(x, y), torch.copysign(x, y))


@pytest.mark.parametrize("kind", [torch.int64, torch.uint8, torch.bool])
def test_every_integer_is_finite(kind: torch.dtype) -> None:
    x = torch.tensor([0, 1, 1]).to(kind)
    assert torch.equal(numbers.true_of_integers(x), torch.isfinite(x))
    for test in (torch.isnan, torch.isinf, torch.isposinf, torch.isneginf):
        assert torch.equal(numbers.false_of_integers(x), test(x))
    for function in (numbers.true_of_integers, numbers.false_of_integers):
        assert function(x.float()) is function(x.to(torch.complex64)) is NotImplemented


def test_means_of_windows_of_integers_are_cut() -> None:
    x = torch.randint(-9, 10, (1, 3, 9, 9))
    for ceil_mode in (False, True):
        given = ([3, 2], [2], [1], ceil_mode, True, 2)
        want = F.avg_pool2d(x, *given)
        assert torch.equal(arguments.avg_pool(x, *given), want)
        assert want.dtype == torch.int64


def test_between_numbers_that_lie_far_apart() -> None:
    x = torch.tensor([-6e4, 1.0, 6e4]).half()
    for weight in (0.25, torch.tensor([0.5, 0.1, 0.75]).half()):
        same(numbers.blended(x, -x, weight), torch.lerp(x, -x, weight))
    assert numbers.blended(x.float(), -x.float(), 0.25) is NotImplemented


def test_bools_in_order() -> None:
    x = torch.tensor([[True, False, True, False], [False, False, False, True]])
    for descending in (False, True):
        got, want = (
            f(x, dim=1, descending=descending)
            for f in (formulas.bools_in_order, lambda y, **a: torch.sort(y, stable=True, **a))
        )
        assert all(map(torch.equal, got, want))
    assert formulas.bools_in_order(x.to(torch.uint8)) is NotImplemented
    assert all(map(torch.equal, formulas.running_maximum(x, 1), x.cummax(1)))
    assert all(map(torch.equal, formulas.running_minimum(x, 1), x.cummin(1)))


def test_a_sigmoid_s_logarithm() -> None:
    for x in (EACH, EACH.half()):
        want = nn.functional.logsigmoid(x.double()).to(x.dtype)
        torch.testing.assert_close(
            numbers.log_sigmoid(x), want, rtol=1e-6, atol=1e-44, equal_nan=True
        )


@pytest.mark.parametrize(
    ("function", "operator"),
    [(numbers.log_of_sum, torch.logaddexp), (numbers.log2_of_sum, torch.logaddexp2)],
)
def test_sums_of_two_exponentials(function: Callable[..., Any], operator: Any) -> None:
    """Near 0 the error is that of the larger one, which is added."""
    got, want = function(*PAIRS.T), operator(*PAIRS.T.double()).float()
    torch.testing.assert_close(got, want, rtol=1e-6, atol=2e-7, equal_nan=True)


def test_signs_of_numbers_and_nan() -> None:
    assert torch.equal(numbers.sign(EACH), EACH.sign())
    assert torch.equal(numbers.step(EACH, torch.tensor(0.3)), EACH.heaviside(torch.tensor(0.3)))


@pytest.mark.parametrize("base", [2, 10])
def test_logarithms_of_powers_are_whole(base: int) -> None:
    powers = torch.arange(-37, 38) if base == 10 else torch.arange(-126, 128)
    x = torch.tensor([float(base) ** k for k in powers.tolist()])
    assert torch.equal(getattr(numbers, f"log{base}")(x), powers.float())


def test_whether_one_is_not_0() -> None:
    for shape in ((0,), (0, 3), (2, 0, 3)):
        x = torch.zeros(shape)
        assert torch.equal(arguments.any_of_all(x), x.any())
        assert torch.equal(arguments.any_of_dim(x, 0, True), x.any(0, True))
        assert torch.equal(arguments.any_of_dims(x, [0], True), x.any([0], True))
        assert torch.equal(arguments.any_of_dims(x, None, True), x.any(None, True))


def test_products_that_do_not_read_what_they_are_added_to() -> None:
    x, y = (torch.randint(-8, 9, dims).float() for dims in ((2, 3, 4), (2, 4, 3)))  # exact sums
    none = torch.full((2, 3, 3), math.nan)
    for alpha in (1, 0.5):
        how = {"beta": 0, "alpha": alpha}
        same(arguments.baddbmm(none, x, y, **how), torch.baddbmm(none, x, y, **how))
        same(arguments.addbmm(none[0], x, y, **how), torch.addbmm(none[0], x, y, **how))
        same(arguments.addmv(none[0, 0], x[0], y[0, :, 0], **how), alpha * x[0] @ y[0, :, 0])


def test_sums_of_exponentials_up_to_each() -> None:
    x = torch.tensor([[-1000.0, 0.0, 1000.0, -math.inf], [-math.inf, -math.inf, 5.0, 100.0]])
    same(numbers.running_log_of_sum(x, 1), x.logcumsumexp(1))
    same(numbers.running_log_of_sum(x, 0), x.logcumsumexp(0))
    same(numbers.running_log_of_sum(x[0, 0], 0), x[0, 0])


@pytest.mark.parametrize("kind", [torch.int32, torch.int64, torch.uint8])
def test_integers(kind: torch.dtype) -> None:
    all_of = torch.cat([INTEGERS, LONG]) if kind == torch.int64 else INTEGERS
    x = all_of.to(kind).unsqueeze(1)
    y = x[x != 0].unsqueeze(0)
    for mode in ("floor", "trunc"):
        want = torch.div(x, y, rounding_mode=mode)
        assert torch.equal(numbers.quotient(x, y, mode), want)
    by = torch.arange(-1, 70).to(kind if kind.is_signed else torch.int64)
    assert torch.equal(numbers.shifted_left(x, by.to(kind)), x << by.to(kind))
    assert torch.equal(numbers.shifted_right(x, by.to(kind)), x >> by.to(kind))


def test_rounding_to_decimals() -> None:
    x = torch.tensor([0.125, 2.675, -0.005, 12345.678, 1.5e6, 3e38, math.inf, math.nan])
    for decimals in (-6, -3, -1, 0, 1, 2, 3):
        same(numbers.rounded(x, decimals=decimals), x.round(decimals=decimals))


def test_fake_quantisation_within_any_limits() -> None:
    x, scale = 5 * torch.randn(4, 6), torch.tensor([0.1, 0.2, 0.3, 0.4])
    zero = torch.tensor([0, 1, -2, 3], dtype=torch.int32)
    for low, high in ((-8, 7), (0, 15), (-128, 127)):
        got = arguments.fake_quantized(x, 0.1, 3, low, high)
        same(got, torch.fake_quantize_per_tensor_affine(x, 0.1, 3, low, high))
        at = zero.clamp(low, high)
        got = arguments.fake_quantized_channels(x, scale, at, 0, low, high)
        same(got, torch.fake_quantize_per_channel_affine(x, scale, at, 0, low, high))


def test_diagonals_of_infinite_elements() -> None:
    x = torch.full((2, 3, 4), -math.inf)
    x[:, :, 1] = torch.arange(6.0).reshape(2, 3)
    for at in ((0, 0, 1), (1, 1, 2), (-1, 2, 0), (-2, 1, 2), (9, 0, 1), (0, -1, -2)):
        assert torch.equal(pieces.diagonal(x, *at), x.diagonal(*at))


def test_medians_of_numbers_beside_nan() -> None:
    x = torch.tensor([[1.0, math.nan, 3.0, 2.0], [math.nan] * 3 + [0.5], [5.0, -1.0, 7.0, 6.0]])
    same(formulas.median_of_numbers(x), x.nanmedian())
    assert formulas.median_of_numbers(x * math.nan).isnan()
    same(formulas.median_of_numbers(x[0, 0], 0, True)[0], x[0, 0])
    for dim, keep in ((0, False), (1, True)):
        for got, want in zip(
            formulas.median_of_numbers(x, dim, keep), x.nanmedian(dim, keep), strict=True
        ):
            same(got, want)


@pytest.mark.parametrize("limits", [(0, 0), (-1, 1), (0.3, 0.9)])
def test_histograms(limits: tuple[float, float]) -> None:
    for x in (torch.randn(4, 50), torch.full((3,), 2.0), torch.zeros(0), torch.arange(0, 1, 0.1)):
        for bins in (1, 7, 100):
            assert torch.equal(pieces.histogram(x, bins, *limits), torch.histc(x, bins, *limits))


class All(nn.Module):
    """Each operator once, on tensors and on numbers."""

    def forward(self, x: Tensor, y: Tensor, i: Tensor, u: Tensor, m: Tensor) -> list[Tensor]:
        return [
            x.log1p(), x.expm1(), torch.special.log1p(y), nn.functional.logsigmoid(x), x.angle(),
            torch.logaddexp(x, y), torch.logaddexp2(x, y), torch.atan2(x, y), x.arctan2(y),
            nn.functional.soft_margin_loss(x, y, reduction="none").nan_to_num(),
            x % y, x % 0.1, 5.5 % x, x // y, torch.div(x, y, rounding_mode="floor"), i % 2.5,
            torch.div(i, 10, rounding_mode="trunc"), torch.div(i, 10, rounding_mode="floor"),
            x.round(decimals=2), (100 * x).round(decimals=-2), u << 1, u >> 1, i << 3, i >> 40,
            x.logcumsumexp(0), x.abs().log2(), x.abs().log10(), x.sign(), m.sign(), m.sgn(),
            torch.heaviside(m, torch.ones(3)), torch.zeros(0).any(), torch.zeros(0, 3).any(0),
            torch.baddbmm(m[None], m[None], m[None], beta=0), torch.addmv(m[0], m, m[0], beta=0),
            torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 15),
            m.std(1, keepdim=True), *torch.std_mean(m[2:], 1), torch.block_diag(m, m[:1]),
            m.nanmedian(), *m.nanmedian(1), torch.diag(m), m.trace(), m.diagonal(1) + 0,
            m[2].histc(5), i.angle(), (i > 0).angle(),
            torch.cat([torch.zeros(0), m, m]), i.reshape(3, 3).mean(1, dtype=torch.float32),
        ]  # fmt: skip


@pytest.mark.slow
def test_compiled() -> None:
    x, y = torch.tensor([*itertools.product([*NUMBERS[::3], -0.0, -1.0, -200.0], repeat=2)]).T
    u = torch.tensor([1, 127, 128, 255], dtype=torch.uint8)
    m = torch.tensor([[1.0, -math.inf, 3.0], [5.0, 6.0, math.nan], [7.0, 8.0, 9.0]])
    i = INTEGERS.int()
    model = All()
    run = mgx_mlir.torch.compile(model, (x, y, i, u, m), target="ref")
    for k, (got, want) in enumerate(zip(run(x, y, i, u, m), model(x, y, i, u, m), strict=True)):
        # sums of two exponentials near 0: the error is that of the larger one
        atol = 2e-7 if k in (5, 6) else 1e-37
        torch.testing.assert_close(
            got, want, rtol=1e-5, atol=atol, equal_nan=True, msg=lambda t, k=k: f"result {k}: {t}"
        )


@pytest.mark.slow
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_magnitudes_keep_their_type(kind: torch.dtype) -> None:
    class Magnitude(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.abs()

    x = torch.tensor([-2.5, -0.0, 3.0, -math.inf, math.nan], dtype=kind)
    same(mgx_mlir.torch.compile(Magnitude(), (x,), target="ref")(x), x.abs())


# ---- 16-bit floats -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_reductions_of_16_bits_keep_their_type(dtype: torch.dtype) -> None:
    """torch.onnx exports them with results in f32."""

    def f(x: Tensor) -> list[Tensor]:
        return [
            x.sum(), x.sum((0, 2), keepdim=True), x.sum(dim=1), x.nansum(1), x.cumsum(1),
            x.float().sum(1, dtype=dtype), x.sum(1, dtype=torch.float32), x.amax(), x.amin(1),
            *x.aminmax(dim=2), (x / 4).prod(), x.prod(1), F.mse_loss(x, x * 2),
        ]  # fmt: skip

    torch.manual_seed(0)
    x = torch.randn(2, 3, 4, dtype=dtype)
    run = torch.compile(f, backend="mgx", fullgraph=True, options={"target": "ref"})
    with torch.no_grad():
        for got, want in zip(run(x), f(x), strict=True):
            assert got.dtype == want.dtype
            # one rounding of another order of sums
            torch.testing.assert_close(got, want, rtol=torch.finfo(dtype).eps, atol=1e-6)


def test_normalizations_of_16_bits_behind_what_they_can_be_folded_into() -> None:
    """torch.onnx folds them into weights in f32, which are no operands beside bf16 ones."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ConvTranspose2d(3, 2, 2), nn.BatchNorm2d(2),
        nn.Flatten(1), nn.Linear(18, 4), nn.BatchNorm1d(4),
    ).eval()  # fmt: skip
    x = torch.randn(5, 2, 4, 4)
    run = torch.compile(model.bfloat16(), backend="mgx", fullgraph=True, options={"target": "ref"})
    with torch.no_grad():
        got, want = run(x.bfloat16()), model(x.bfloat16())
        exact = model.double()(x.bfloat16().double())
    assert got.dtype == want.dtype
    # six layers round once each, by half of eps at most, and the last one's rounding is whole
    assert (got - exact).abs().max() <= torch.finfo(torch.bfloat16).eps * exact.abs().max()
