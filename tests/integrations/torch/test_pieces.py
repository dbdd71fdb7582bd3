"""Adaptive pools, writes into parts, pairs, projected LSTMs, against eager."""

from __future__ import annotations

import importlib.util
import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import mgx_mlir.torch
from mgx_mlir.core.errors import UnsupportedModel
from mgx_mlir.frontends import torch_pieces as pieces
from mgx_mlir.frontends import torch_windows as windows

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(3)


@pytest.mark.parametrize(
    ("shape", "out"),
    [((2, 3, 7, 6), (3, 2)), ((3, 8, 4), (4, 2)), ((2, 3, 5, 5), (7, 3)), ((1, 2, 9, 9), (1, 1)),
     ((2, 3, 5, 7, 6), (3, 2, 4)), ((0, 3, 5, 7), (2, 2))],
)  # fmt: skip
def test_adaptive_pools(shape: tuple[int, ...], out: tuple[int, ...]) -> None:
    x = torch.randint(0, 9, shape).float()
    n = len(out)
    most = getattr(F, f"adaptive_max_pool{n}d")(x, out, return_indices=True)
    mean = getattr(F, f"adaptive_avg_pool{n}d")(x, out)
    torch.testing.assert_close(windows.adaptive_max(x, out), most, rtol=0, atol=0)
    torch.testing.assert_close(windows.adaptive_mean(x, out), mean)


@pytest.mark.parametrize("p", [2.0, 1.0, 0.0, 3.5, math.inf])
def test_distances_of_pairs(p: float) -> None:
    for n in (0, 1, 2, 3, 10, 131):
        x = torch.randn(n, 4)
        torch.testing.assert_close(pieces.distances_of_pairs(x, p), torch.pdist(x, p))


@pytest.mark.parametrize(
    "at", [(0, 0, 1), (1, 1, 3), (-2, 3, 1), (2, -1, 0), (3, 0, 2), (-4, 1, 2), (9, 0, 1)]
)
def test_a_diagonal_is_written(at: tuple[int, int, int]) -> None:
    x = torch.randn(3, 5, 4, 6)
    diagonal = torch.randn(x.diagonal(*at).shape)
    assert torch.equal(pieces.with_diagonal(x, diagonal, *at), x.diagonal_scatter(diagonal, *at))


def test_elements_of_the_flat_order_are_written() -> None:
    x, at = torch.randn(3, 4), torch.tensor([[0, 5, -1], [7, -12, 5]])
    for source in (torch.randn(2, 3), torch.randn(6)):
        assert torch.equal(pieces.put(x, at[:1, :2], source.flatten()[:2].reshape(1, 2)),
                           x.put(at[:1, :2], source.flatten()[:2].reshape(1, 2)))  # fmt: skip
        torch.testing.assert_close(pieces.put(x, at, source, True), x.put(at, source, True))
    one, zero = torch.tensor(2.0), torch.tensor(0)
    assert torch.equal(pieces.put(one, zero, one + 1, True), one.put(zero, one + 1, True))


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 0, 3), (2, 3, 4)])
def test_a_number_of_places_that_are_not_0(shape: tuple[int, ...]) -> None:
    x = (torch.rand(shape) > 0.4).float()
    for size, fill in ((0, -1), (1, 7), (4, -1), (40, 5)):
        got = pieces.first_places(x, size=size, fill_value=fill)
        assert torch.equal(got, torch.nonzero_static(x, size=size, fill_value=fill))


def test_a_strided_view_is_written() -> None:
    x = torch.randn(4, 5)
    for size, stride, offset in (((2, 3), (7, 2), 1), ((), (), None), ((3,), (5,), 4)):
        source = torch.randn(size)
        want = torch.as_strided_scatter(x, source, size, stride, offset)
        assert torch.equal(pieces.with_strided(x, source, size, stride, offset), want)
    with pytest.raises(UnsupportedModel, match="is not row-major"):
        pieces.with_strided(x.T, torch.randn(2), (2,), (1,))


def test_memory_is_read_with_other_strides() -> None:
    """The strides of as_strided count in the memory of a tensor, whatever its own strides are."""
    x = torch.arange(48.0).reshape(6, 8)
    assert pieces.strided(x, (2, 2), (1, 2), 1) is NotImplemented
    for y in (x.T, x[1:], x.reshape(2, 3, 8).permute(2, 0, 1), x[2:].T):
        offset = y.storage_offset()
        for more in ((), (offset + 3,)):
            want = torch.as_strided(y, (2, 3), (1, 9), *more)
            assert torch.equal(pieces.strided(y, (2, 3), (1, 9), *more), want)
    for y, offset in ((x[:, ::2], None), (x[:, 1:3], None), (x[1:], 0), (x[:2], 15)):
        with pytest.raises(UnsupportedModel, match="as_strided: the tensor does not lie in order"):
            pieces.strided(y, (2, 2), (1, 2), offset)


def test_a_mask_is_written() -> None:
    x = torch.randn(3, 5, 4, 6)
    line, plane = torch.tensor([True, False, True, True, False]), torch.rand(5, 4) > 0.5
    count = int(plane.sum())
    for mask, shapes in (
        (line, [(), (3, 1, 1), (3, 4, 6), (3, 3, 4, 6), (4, 6), (6,), (3, 1, 4, 6)]),
        (plane, [(), (6,), (3, count, 6), (count, 1)]),
    ):
        for shape in shapes:
            for add in (False, True):
                values = torch.randn(shape)
                want = torch.ops.aten.index_put(x, [None, mask], values, add)
                assert torch.equal(pieces.put_where(x, [None, mask], values, add), want), shape


def test_numbers_beside_nan_and_signs() -> None:
    nan = math.nan
    a, b = torch.tensor([1, nan, 2, nan, 3, -0.0]), torch.tensor([nan, 1, 3, nan, 2, 0.0])
    for mine, theirs in (
        (pieces.larger_number(a, b), torch.fmax(a, b)),
        (pieces.smaller_number(a, b), torch.fmin(a, b)),
        (pieces.sign_bit(a), torch.signbit(a)),
        (pieces.sign_bit(torch.tensor([-1, 0, 1])), torch.signbit(torch.tensor([-1, 0, 1]))),
        (pieces.larger_number(torch.tensor(2), torch.tensor(1.5)), torch.tensor(2.0)),
    ):
        torch.testing.assert_close(mine, theirs, equal_nan=True)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_a_projected_lstm(bidirectional: bool, bias: bool, batch_first: bool) -> None:
    net = nn.LSTM(4, 6, 2, bias=bias, batch_first=batch_first, bidirectional=bidirectional,
                  proj_size=3).eval()  # fmt: skip
    x, layers = torch.randn(5, 2, 4), 4 if bidirectional else 2
    batch = 5 if batch_first else 2
    state = (torch.randn(layers, batch, 3), torch.randn(layers, batch, 6))
    with torch.no_grad():
        y, ends = net(x, state)
        got = pieces.projected_lstm(
            x, state, net._flat_weights, bias, 2, 0.0, False, bidirectional, batch_first
        )
    torch.testing.assert_close(got, (y, *ends))


class Many(nn.Module):
    """All of them, of any batch: torch's trace makes sizes of adaptive pools constants."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.LSTM(6, 8, batch_first=True, proj_size=3)

    def forward(self, x: Tensor, mask: Tensor) -> list[Tensor]:
        masked = x.clone()
        masked[:, mask] = 7.0
        y, (h, c) = self.net(x)
        return [
            F.adaptive_max_pool2d(x.unsqueeze(1), (3, 4)), F.adaptive_max_pool1d(x, 4),
            F.adaptive_avg_pool3d(x[None, None], (1, 3, 4)), masked, y, h, c,
            torch.fmax(x, x.flip(0)), torch.fmin(x, x.flip(0)), F.pdist(x[0, :3]),
            x.diagonal_scatter(x[:, :, 0], 0, 1, 2), torch.copysign(x, -x),
            torch.signbit(-x), x.amax(()), x.amin((), keepdim=True), x[0, 0, 0].amax(0),
            F.unfold(x[:, None], (2, 3), padding=1), F.unfold(x[:1], 2, stride=2),
            x.put(torch.tensor([0, -1]), torch.ones(2), True), x[0, 0, 0].prod(0, keepdim=True),
            x.scatter(1, torch.zeros(2, 3, 6, dtype=torch.int64), x, reduce="add"),
            x.scatter(1, torch.zeros(2, 3, 6, dtype=torch.int64), 2.0, reduce="multiply"),
            x.repeat_interleave(torch.tensor([1, 0, 2, 0, 3, 0]), -1, output_size=6),
            *x[0, 0, 0].topk(1), torch.nonzero_static(mask, size=4), x.diagonal(1, 1, 2) * 2,
            torch.as_strided_scatter(x[0, :3], torch.ones(2, 2), (2, 2), (3, 1), 1),
        ]  # fmt: skip


def test_compiled_like_eager() -> None:
    model = Many().eval()
    shapes: Any = ({0: torch.export.Dim("b", min=2)}, None)

    def inputs(b: int, t: int) -> tuple[Tensor, Tensor]:
        return torch.randn(b, t, 6), torch.rand(t) > 0.5

    run = mgx_mlir.torch.compile(model, inputs(3, 5), dynamic_shapes=shapes, target="ref")
    for b, t in ((3, 5), (4, 5)):
        x, mask = inputs(b, t)
        with torch.no_grad():
            want = model(x, mask)
        for got, w in zip(run(x, mask), want, strict=True):
            torch.testing.assert_close(got, w, rtol=1e-5, atol=1e-5)


def test_empty_batches() -> None:
    """Random tensors, too, may be empty: only their dims are compared."""

    def given(x: Tensor) -> tuple[Tensor, ...]:
        drawn = (torch.rand_like(x), torch.randn(0, 3), torch.randint(5, (2, 0)))
        return F.unfold(x, 2), *drawn, x.new_empty(x.shape)

    x = torch.randn(0, 2, 5, 6)
    run = torch.compile(given, backend="mgx", fullgraph=True, options={"target": "ref"})
    for got, want in zip(run(x), given(x), strict=True):
        torch.testing.assert_close(got, want)


def test_a_missing_translation_and_slopes_of_training_are_named() -> None:
    x = torch.randn(4, 4)
    with pytest.raises(UnsupportedModel, match=r"no translation of prims\.bessel_j0"):
        mgx_mlir.torch.compile(Calls(torch.special.bessel_j0), (x,), target="ref")
    with pytest.raises(UnsupportedModel, match="slopes as in training"):
        mgx_mlir.torch.compile(Calls(lambda y: F.rrelu(y, training=True)), (x,), target="ref")


@pytest.mark.skipif(bool(importlib.util.find_spec("torchvision")), reason="it has the operators")
def test_operators_of_torchvision_are_named() -> None:
    library = torch.library.Library("torchvision", "FRAGMENT")
    library.define("roi_pool(Tensor x, Tensor boxes) -> Tensor")
    library.impl("roi_pool", lambda x, boxes: x.clone(), "CompositeExplicitAutograd")
    library.impl("roi_pool", lambda x, boxes: torch.empty_like(x), "Meta")
    x = torch.randn(4, 4)
    with pytest.raises(UnsupportedModel, match=r"no translation of torchvision\.roi_pool"):
        mgx_mlir.torch.compile(
            Calls(lambda y: torch.ops.torchvision.roi_pool(y, y)), (x,), target="ref"
        )


def test_a_complex_result_and_the_norm_of_training_are_refused() -> None:
    """The first would be a pair of reals, the second has other numbers in inference."""
    x = torch.randn(4, 3)
    with pytest.raises(UnsupportedModel, match="complex: return its real"):
        mgx_mlir.torch.compile(Calls(torch.fft.ifft), (x,), target="ref")
    ones = (torch.ones(3), torch.ones(3), torch.zeros(3), torch.ones(3))
    with pytest.raises(UnsupportedModel, match="statistics of training"):
        mgx_mlir.torch.compile(
            Calls(lambda y: torch.ops.aten._native_batch_norm_legit_functional(
                y, *ones, True, 0.1, 1e-5)[0]), (x,), target="ref",
        )  # fmt: skip


class Calls(nn.Module):
    """A function of one tensor."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def test_0_d_tensors() -> None:
    def signs(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        norms = [torch.linalg.vector_norm(y, p, d) for p, d in ((1, -1), (0, 0), (2.0, None))]
        total = x.scatter_add(0, torch.tensor(0), y)
        return torch.copysign(x, y), torch.signbit(y), total, *norms

    x = torch.tensor(2.0)
    with torch.no_grad():
        run = torch.compile(signs, backend="mgx", options={"target": "ref"})
        for y in (-x, x, -0 * x):
            torch.testing.assert_close(run(x, y), signs(x, y))
