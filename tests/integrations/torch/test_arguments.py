"""Arguments that torch.onnx drops, or takes wrong: each against eager, beside values it takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.ao.quantization.fx._decomposed
from torch import Tensor
from torch.nn import functional as F

import mgx_mlir.torch
from mgx_mlir.core.errors import UnsupportedModel

pytestmark = pytest.mark.slow
Q = torch.ops.quantized_decomposed


@pytest.fixture(autouse=True)
def _inference() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield
    torch._dynamo.reset()


def check(f: Callable[..., Any], *args: Any, tol: float = 2e-5, **how: Any) -> None:
    """All results of a function against eager's: kinds, shapes, numbers."""
    want = f(*[a.clone() for a in args])
    run = torch.compile(f, backend="mgx", fullgraph=True, options={"target": "ref"}, **how)
    got = run(*[a.clone() for a in args])
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        assert (g.dtype, g.shape) == (w.dtype, w.shape), i
        torch.testing.assert_close(
            g, w, rtol=tol, atol=tol, equal_nan=True, msg=lambda m, i=i: f"{i}: {m}"
        )


# ---- attention ----------------------------------------------------------------------------------


def test_attention_rows_that_see_no_key_are_0() -> None:
    mask = torch.ones(1, 1, 3, 5, dtype=torch.bool)
    mask[..., 1, :] = False
    shown = torch.zeros(3, 5)
    shown[1] = -math.inf

    def f(q: Tensor, k: Tensor, v: Tensor, m: Tensor, n: Tensor) -> list[Tensor]:
        sdpa = F.scaled_dot_product_attention
        return [
            sdpa(q, k, v, m),
            sdpa(q, k, v, n),
            sdpa(q[0], k[0], v[0], m[0]),
            sdpa(q, k, v, m[0, 0], scale=0.3),
        ]

    check(f, torch.randn(2, 2, 3, 4), torch.randn(2, 2, 5, 4), torch.randn(2, 2, 5, 6), mask, shown)


def test_attention_of_every_form() -> None:
    """Causal of unequal lengths, scales, groups of heads, two and three dims, broadcast ones."""

    def f(q: Tensor, k: Tensor, v: Tensor, k2: Tensor, m: Tensor) -> list[Tensor]:
        sdpa = F.scaled_dot_product_attention
        return [
            sdpa(q, k, v, is_causal=True),
            sdpa(k, q, q, is_causal=True),
            sdpa(q, k, v, scale=2.0),
            sdpa(q, k2, k2, enable_gqa=True),
            sdpa(q, k, v, enable_gqa=True),
            sdpa(q, k2, k2, m, enable_gqa=True),
            sdpa(q[0], k2[0], k2[0], enable_gqa=True),
            sdpa(q[0], k[0], v[0], is_causal=True),
            sdpa(q[0, 0], k[0, 0], v[0, 0]),
            sdpa(q, k[:1], v[:1], m),
            sdpa(q[None], k[None], v[None], m),
            sdpa(q, k, v, m[0, 0]),
        ]

    q, k, v = torch.randn(2, 4, 3, 4), torch.randn(2, 4, 5, 4), torch.randn(2, 4, 5, 4)
    check(f, q, k, v, torch.randn(2, 2, 5, 4), torch.randn(1, 1, 3, 5))


def test_attention_that_was_decomposed_before() -> None:
    class Decomposed(torch.nn.Module):
        def forward(self, q: Tensor, k: Tensor, m: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, k, k, m)

    mask = torch.zeros(1, 1, 3, 5)
    mask[..., 1, :] = -math.inf
    args = (torch.randn(1, 2, 3, 4), torch.randn(1, 2, 5, 4), mask)
    exported = torch.export.export(Decomposed(), args).run_decompositions()
    run = mgx_mlir.torch.compile(exported, target="ref")
    torch.testing.assert_close(run(*args), Decomposed()(*args), rtol=2e-5, atol=2e-5)


def test_dropout_of_attention_is_refused_by_name() -> None:
    class Dropped(torch.nn.Module):
        def forward(self, q: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, q, q, dropout_p=0.25)

    with pytest.raises(UnsupportedModel, match=r"dropout_p is 0.25, not 0"):
        mgx_mlir.torch.compile(Dropped().eval(), (torch.randn(1, 2, 3, 4),), target="ref")


# ---- reductions into places ---------------------------------------------------------------------


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_scatter_reduce(reduce: str) -> None:
    def f(x: Tensor, i: Tensor, s: Tensor) -> list[Tensor]:
        found = [
            x.scatter_reduce(d, i, s, reduce, include_self=b) for d in (0, 1) for b in (True, False)
        ]
        found += [x.scatter(0, i, s), x.scatter_add(1, i % 3, s)]
        return [*found, x.clone().scatter_reduce_(0, i, s, reduce, include_self=False)]

    x, i, s = torch.randn(4, 4), torch.randint(0, 4, (4, 3)), torch.randn(6, 3)
    check(f, x, i, s)
    s[:4] = -math.inf
    check(f, x, i, s)
    check(f, torch.randint(-9, 9, (4, 4)), i, torch.randint(-9, 9, (6, 3)))


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_scatter_reduce_of_one_number(reduce: str) -> None:
    def f(x: Tensor, i: Tensor, s: Tensor) -> list[Tensor]:
        return [x.scatter_reduce(0, i, s, reduce, include_self=b) for b in (True, False)]

    check(f, torch.tensor(2.0), torch.tensor(0), torch.tensor(3.0))


@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
def test_index_reduce(reduce: str) -> None:
    def f(x: Tensor, i: Tensor, s: Tensor) -> list[Tensor]:
        return [x.index_reduce(0, i, s, reduce, include_self=b) for b in (True, False)] + [
            x.index_reduce(1, i[:3], x, reduce)
        ]

    check(f, torch.randn(4, 3), torch.tensor([0, 2, 2, 1, 0]), torch.randn(5, 3))


# ---- losses -------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_cross_entropy(reduction: str) -> None:
    def f(x: Tensor, t: Tensor, w: Tensor, p: Tensor, image: Tensor, at: Tensor) -> list[Tensor]:
        how: dict[str, Any] = {"reduction": reduction}
        found = [
            F.cross_entropy(x, t, weight, ignore_index=i, label_smoothing=s, **how)
            for weight in (None, w)
            for i in (-100, 2)
            for s in (0.0, 0.2)
        ]
        found += [
            F.cross_entropy(x, p, weight, label_smoothing=s, **how)
            for weight in (None, w)
            for s in (0.0, 0.2)
        ]
        found += [F.cross_entropy(x[0], t[0], label_smoothing=0.1, **how)]
        found += [F.cross_entropy(image, at, w, label_smoothing=s, **how) for s in (0.0, 0.3)]
        found += [F.cross_entropy(image, image.softmax(1), label_smoothing=0.3, **how)]
        return found

    x, t = torch.randn(4, 5), torch.tensor([0, 1, 4, 2])
    check(
        f,
        x,
        t,
        torch.rand(5) + 0.5,
        x.softmax(1),
        torch.randn(2, 5, 3, 2),
        torch.randint(0, 5, (2, 3, 2)),
    )


# ---- poolings -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_average_pools(ceil_mode: bool) -> None:
    def f(x: Tensor, y: Tensor) -> list[Tensor]:
        found = []
        for include in (True, False):
            for divisor in (None, 5):
                how: dict[str, Any] = {
                    "ceil_mode": ceil_mode,
                    "count_include_pad": include,
                    "divisor_override": divisor,
                }
                found += [
                    F.avg_pool2d(x, 3, 2, 1, **how),
                    F.avg_pool2d(x, (2, 3), (3, 2), **how),
                    F.avg_pool3d(y, 2, 2, 1, **how),
                    F.avg_pool2d(x[0], 3, **how),
                ]
        return found

    check(f, torch.randn(2, 2, 7, 6), torch.randn(1, 2, 5, 4, 3))


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_maximum_pools(ceil_mode: bool) -> None:
    def f(x: Tensor, y: Tensor) -> list[Tensor]:
        how: dict[str, Any] = {"ceil_mode": ceil_mode}
        return [
            F.max_pool2d(x, 2, 2, dilation=2, **how),
            F.max_pool1d(x[0], 3, 2, 1, **how),
            *F.max_pool2d(x, 3, 2, 1, dilation=(1, 2), return_indices=True, **how),
            *F.max_pool1d(x[0], 3, 2, 1, return_indices=True, **how),
            *F.max_pool3d(y, 2, 2, return_indices=True, **how),
            F.lp_pool2d(x.abs(), 2.0, 3, 2, **how),
        ]

    check(f, torch.randn(2, 2, 9, 8), torch.randn(1, 2, 5, 4, 3))


# ---- sizes of images ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiased_resizes(mode: str) -> None:
    def f(x: Tensor) -> list[Tensor]:
        how: dict[str, Any] = {"mode": mode, "antialias": True}
        found = [F.interpolate(x, scale_factor=s, **how) for s in (0.7, (0.45, 1.3), 2.0)]
        return [
            *found,
            F.interpolate(x, size=(4, 6), **how),
            F.interpolate(x, scale_factor=0.7, recompute_scale_factor=True, **how),
        ]

    check(f, torch.randn(1, 2, 7, 5), tol=2e-4)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiased_resizes_between_corners(mode: str) -> None:
    def f(x: Tensor) -> list[Tensor]:
        how: dict[str, Any] = {"mode": mode, "antialias": True, "align_corners": True}
        sizes = [F.interpolate(x, size=size, **how) for size in ((4, 6), (1, 9), (7, 5))]
        return [*sizes, F.interpolate(x, scale_factor=(0.45, 1.3), **how)]

    check(f, torch.randn(1, 2, 7, 5))


def test_resizes_by_a_factor() -> None:
    def f(x: Tensor, line: Tensor, cube: Tensor) -> list[Tensor]:
        resize, aten = F.interpolate, torch.ops.aten
        return [
            resize(line, scale_factor=1.7, mode="linear"),
            resize(cube, scale_factor=1.7, mode="trilinear"),
            resize(x, scale_factor=1.7, mode="bilinear"),
            resize(x, scale_factor=0.6, mode="bicubic"),
            resize(x, scale_factor=1.7),
            resize(x, scale_factor=1.7, mode="nearest-exact"),
            resize(line, scale_factor=0.7),
            resize(cube, scale_factor=0.7),
            resize(x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=True),
            aten.upsample_bilinear2d(x, [11, 8], False, 1.7, 1.7),
            aten.upsample_bicubic2d(x, [11, 8], False, 1.7, 1.7),
        ]

    check(f, torch.randn(1, 2, 7, 5), torch.randn(1, 2, 7), torch.randn(1, 1, 4, 3, 5), tol=2e-4)


# ---- quantisation -------------------------------------------------------------------------------


def test_quantised_numbers_keep_their_limits() -> None:
    def f(x: Tensor, scale: Tensor, zero: Tensor) -> list[Tensor]:
        found = []
        for low, high, kind in (
            (-8, 7, torch.int8),
            (-127, 127, torch.int8),
            (-128, 127, torch.int8),
            (0, 15, torch.uint8),
            (0, 255, torch.uint8),
        ):
            at = max(low, 0) + 3
            q = Q.quantize_per_tensor(x, 0.1, at, low, high, kind)
            found += [q, Q.dequantize_per_tensor(q, 0.1, at, low, high, kind)]
            q = Q.quantize_per_channel(x, scale, zero + at, 0, low, high, kind)
            found += [q, Q.dequantize_per_channel(q, scale, zero + at, 0, low, high, kind)]
        q = Q.quantize_per_tensor(x, 1e-4, 0, -(2**31), 2**31 - 1, torch.int32)
        return [*found, q, Q.dequantize_per_tensor(q, 1e-4, 0, -(2**31), 2**31 - 1, torch.int32)]

    check(f, torch.randn(3, 40) * 3, torch.tensor([0.1, 0.03, 0.5]), torch.tensor([0, 1, 2]))


def test_quantisation_whose_scale_is_computed() -> None:
    def f(x: Tensor) -> list[Tensor]:
        found = []
        for choose in (Q.choose_qparams.tensor, Q.choose_qparams_symmetric.tensor):
            scale, zero = choose(x, -100, 120, 1e-5, torch.int8)
            q = Q.quantize_per_tensor.tensor(x, scale, zero, -100, 120, torch.int8)
            found += [
                scale,
                zero,
                q,
                Q.dequantize_per_tensor.tensor(q, scale, zero, -100, 120, torch.int8),
            ]
        return found

    check(f, torch.randn(3, 40) * 3)


# ---- sorts, runs of equals -----------------------------------------------------------------------


def test_unique_consecutive() -> None:
    def f(x: Tensor, y: Tensor) -> list[Tensor]:
        all_of = {"return_inverse": True, "return_counts": True}
        return [
            torch.unique_consecutive(x),
            *torch.unique_consecutive(x, **all_of),
            *torch.unique_consecutive(y, **all_of, dim=0),
            torch.unique_consecutive(y, dim=1),
            *torch.unique_consecutive(y, return_counts=True),
        ]

    x = torch.tensor([2.5, 2.5, 1.0, 3.0, 3.0, 3.0, 1.0])
    check(f, x, torch.tensor([[1, 1, 2], [1, 1, 2], [0, 0, 2]]))


def test_sorts_keep_the_order_of_equals() -> None:
    def f(x: Tensor) -> list[Tensor]:
        return [*x.sort(dim=1, stable=True), *x.sort(dim=0, stable=True, descending=True)]

    check(f, torch.randint(0, 3, (5, 20)))


def test_factors_of_sums_that_only_a_run_knows() -> None:
    """Python integers of dynamic=True are inputs, which ONNX's Gemm has no room for."""

    def f(m: Tensor, alpha: int, beta: int) -> list[Tensor]:
        how = {"alpha": alpha, "beta": beta}
        return [
            torch.addmm(m, m, m, **how), torch.addmv(m[0], m, m[0], **how),
            torch.addbmm(m, m[None], m[None], **how),
            torch.baddbmm(m[None], m[None], m[None], **how),
        ]  # fmt: skip

    run = torch.compile(f, backend="mgx", dynamic=True, options={"target": "ref"})
    for size, alpha, beta in ((3, 2, 3), (4, -5, 7)):
        m = torch.randn(size, size)
        torch.testing.assert_close(run(m, alpha, beta), f(m, alpha, beta), rtol=2e-5, atol=2e-5)


class Buckets(torch.nn.Module):
    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        return torch.bucketize(x, edges, right=True)


def test_buckets_between_edges_of_a_number_that_a_run_knows() -> None:
    """A search of 5 edges has 3 steps; 40 edges need more."""
    x, edges = torch.linspace(-9, 9, 30), torch.linspace(-5, 5, 40)
    auto = torch.export.Dim.AUTO
    run = mgx_mlir.torch.compile(
        Buckets(), (x[:6], edges[:5]), dynamic_shapes=({0: auto}, {0: auto}), target="ref"
    )
    assert torch.equal(run(x, edges), Buckets()(x, edges))


# ---- what cannot be said ------------------------------------------------------------------------


def test_a_refused_argument_is_named() -> None:
    class Spectrum(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.stft(x, 8, center=False, return_complex=True, align_to_window=True).real

    with pytest.raises(UnsupportedModel, match=r"aten.stft.default.* 'align_to_window' \(True\)"):
        mgx_mlir.torch.compile(Spectrum(), (torch.randn(1, 40),), target="ref")
