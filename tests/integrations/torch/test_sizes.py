"""Arithmetic on dynamic sizes, as Python does it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import mgx_mlir

pytestmark = pytest.mark.slow
F = nn.functional


class Of(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *given: Tensor) -> Any:
        return self.function(*given)


def exported(function: Callable[..., Any], *given: Tensor) -> torch.export.ExportedProgram:
    """The program of a function whose every dim is dynamic."""
    dims = tuple(dict.fromkeys(range(x.ndim), Dim.AUTO) for x in given)
    return torch.export.export(Of(function), given, dynamic_shapes=(dims,), strict=False)


def ahead(function: Callable[..., Any], *given: Tensor) -> Any:
    return mgx_mlir.torch.compile(exported(function, *given), target="ref")


@pytest.mark.parametrize("function", [
    lambda n: (4 - n) // 3, lambda n: -n // 2, lambda n: n // -3, lambda n: (2 - n) // (1 - n),
    lambda n: (n - 9) // 4, lambda n: n // 3, lambda n: (4 - n) % 3, lambda n: n % -3,
    lambda n: math.floor(n * 0.29), lambda n: math.ceil(n * 0.1), lambda n: math.floor(n * 0.7 + 1),
    lambda n: math.trunc((4 - n) / 3), lambda n: math.floor((4 - n) / 3), lambda n: n**2,
    lambda n: math.ceil(n / 3 - 0.5), lambda n: torch.sym_max(n, 7) - torch.sym_min(n, 12),
])  # fmt: skip
def test_sizes_are_computed_as_python_does(function: Callable[[int], int]) -> None:
    def of(x: Tensor) -> Tensor:
        return x.new_zeros((), dtype=torch.int64) + function(x.shape[0])

    run = ahead(of, torch.zeros(5))
    for n in (5, 6, 9, 10, 12, 30, 100):
        assert run(torch.zeros(n)).item() == function(n), n


@pytest.mark.parametrize(("mode", "scale"), [
    ("nearest", 0.29), ("nearest", 1.7), ("linear", 0.29), ("bilinear", 0.29), ("bilinear", 1.7),
    ("bicubic", 0.29), ("trilinear", 0.29), ("nearest-exact", 0.29), ("bilinear", 1.5),
])  # fmt: skip
@pytest.mark.parametrize("fixed", [True, False])
def test_resizes_have_sizes_of_f64(mode: str, scale: float, fixed: bool) -> None:
    """100 * 0.29 is 28.999999999999996, and 29 in f32."""
    wide = {"trilinear": 2, "bilinear": 1, "bicubic": 1}.get(mode, 0)

    def of(x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=scale, mode=mode)

    x = torch.randn(1, 1, *[4] * wide, 100)
    example = x if fixed else torch.randn(1, 1, *[5] * wide, 90)
    run = mgx_mlir.torch.compile(Of(of), (x,), target="ref") if fixed else ahead(of, example)
    torch.testing.assert_close(run(x), of(x), rtol=1e-4, atol=1e-4)


def test_pads_that_are_floors_of_negative_sizes() -> None:
    """A mean with a divisor pads as far as windows reach beyond."""

    def of(x: Tensor) -> Tensor:
        return F.avg_pool2d(x, (6, 6), (3, 3), (2, 3), True, True, 2)

    run = ahead(of, torch.randn(2, 3, 9, 9))
    for shape in ((9, 9), (11, 10), (12, 9)):
        x = torch.randn(2, 3, *shape)
        torch.testing.assert_close(run(x), of(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("of", [
    torch.fft.fftshift, lambda x: torch.fft.ifftshift(x, (1,)), lambda x: x.roll(x.shape[0] // 2),
    lambda x: x.roll((-x.shape[1], x.shape[0] - 2), (0, 1)),
])  # fmt: skip
def test_rolls_by_sizes(of: Callable[[Tensor], Tensor]) -> None:
    run = ahead(of, torch.randn(4, 7))
    for shape in ((4, 7), (5, 8), (9, 3)):
        x = torch.randn(shape)
        assert torch.equal(run(x), of(x))


@pytest.mark.parametrize("function", [
    lambda x: torch.arange(0, x.shape[0], x.shape[0] / 7),
    lambda x: torch.arange(0, x.shape[0] * 0.1, 0.1),
    lambda x: torch.arange(0.5, x.shape[0], 0.7, dtype=torch.float16),
    lambda x: torch.arange(0.1, x.shape[0], 0.7, dtype=torch.float64),
    lambda x: torch.arange(x.shape[0], dtype=torch.int32),
    lambda x: torch.arange(x.shape[0], x.shape[0] + 2**24 + 5, dtype=torch.float32)[-3:],
])  # fmt: skip
def test_ranges_have_lengths_of_f64(function: Callable[..., Any]) -> None:
    """torch.onnx computes lengths and elements in f32; eager rounds by its width of vectors."""
    run = ahead(function, torch.zeros(5))
    for n in (5, 6, 11, 28, 49, 97, 490):
        x = torch.zeros(n)
        torch.testing.assert_close(run(x), function(x))
