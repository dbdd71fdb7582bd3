"""Operators that torch.onnx lacks, or writes in another type: one program of all, against eager."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import mgx_mlir.torch
from mgx_mlir.core.errors import UnsupportedModel, UsageError
from mgx_mlir.frontends import torch_formulas as formulas

pytestmark = pytest.mark.slow


class Types(nn.Module):
    """Integers and 16-bit floats beside numbers and results of another type."""

    def forward(self, mask: Tensor, x: Tensor) -> list[Tensor]:
        half = (8 * x).half()
        return [
            1.0 - mask, torch.rsub(mask, 1.5, alpha=2), 3 - mask, mask // 1.5, -mask // 0.75,
            mask.softmax(-1, dtype=torch.float32), half.softmax(-1, dtype=torch.float32),
            half.log_softmax(-1, dtype=torch.float32), torch.isin(mask, torch.tensor([1, 2])),
            torch.isin(mask, torch.tensor([1, 2]), invert=True),
            torch.divide(x, mask), torch.divide(mask, 2), torch.multiply(mask, x), mask**x.abs(),
            torch.subtract(mask, half), torch.greater(mask, x), torch.less_equal(x, mask),
            torch.concat([mask, x]), torch.special.erf(mask), torch.special.expm1(mask),
            half ** mask.int(), torch.cat([x.new_zeros(0), x, mask]),
            torch.cat([x.new_zeros(0), x.new_zeros(0)]), torch.cat([x.new_zeros(0), mask]),
            torch.masked.var(x, 1, mask=mask > 0),
        ]  # fmt: skip


class Orders(nn.Module):
    """Sorts, medians and running products, with ties."""

    def forward(self, mask: Tensor, x: Tensor) -> list[Tensor]:
        edges = x.sort(1).values
        found: list[Any] = [
            *mask.sort(dim=1, stable=True), *mask.sort(stable=True, dim=0, descending=True),
            mask.argsort(dim=1, stable=True), x.median(), *x.median(0, keepdim=True),
            *x.kthvalue(3, 1), *x.kthvalue(2, 0, keepdim=True),
            torch.searchsorted(edges, x), torch.searchsorted(edges, edges, right=True),
            torch.searchsorted(edges[0], x, side="right", out_int32=True),
            x.cumprod(1), mask.cumprod(0), *x.cummax(1), *mask.cummax(0), *mask.cummin(1),
            x[0, 0].cumprod(0), *x[0, 0].cummax(0), *x[0, 0].kthvalue(1), x.nanmedian(),
            *x.nanmedian(1), *mask.mode(1), *mask.mode(0, keepdim=True),
        ]  # fmt: skip
        return found


class Formulas(nn.Module):
    """Operators that are written as formulas of others."""

    def forward(self, mask: Tensor, x: Tensor) -> list[Tensor]:
        return [
            torch.hypot(x, x + 1), torch.hypot(x * 1e30, x * 1e30), torch.copysign(x, -x),
            torch.nn.functional.rrelu(x), torch.cdist(x, x + 1), torch.cdist(x, x, p=1.0),
            torch.masked_select(x, mask > 0),
        ]  # fmt: skip


@pytest.mark.parametrize("model", [Types(), Orders(), Formulas()], ids=lambda m: type(m).__name__)
def test_like_eager(model: nn.Module) -> None:
    torch.manual_seed(3)
    mask, x = torch.randint(0, 3, (4, 7)), torch.randn(4, 7)
    model.eval()
    # eager takes another way for the distances of more rows
    dims = {0: torch.export.Dim("b", min=2, max=25), 1: torch.export.Dim("n", min=4)}
    run = mgx_mlir.torch.compile(model, (mask, x), dynamic_shapes=(dims, dims), target="ref")
    for size in ((4, 7), (3, 11)):
        mask, x = torch.randint(0, 3, size), torch.randn(size)
        for got, want in zip(run(mask, x), model(mask, x), strict=True):
            torch.testing.assert_close(got, want)


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_a_batch_norm_without_statistics(rank: int) -> None:
    """In inference, too, the batch's statistics are used: this is not training."""
    torch.manual_seed(3)
    kind = nn.BatchNorm2d if rank == 4 else nn.BatchNorm1d
    model = kind(3, track_running_stats=False).eval()
    with torch.no_grad():
        model.weight.uniform_(1, 2)
        model.bias.normal_()
        x = torch.randn([5, 3, 4, 6][:rank])
        run = torch.compile(model, backend="mgx", fullgraph=True, options={"target": "ref"})
        torch.testing.assert_close(run(x), model(x))


def test_the_most_frequent() -> None:
    """Torch gives the last place for up to 16 elements; more it sorts without order of equals."""
    x = torch.randint(0, 3, (4, 5, 6), generator=torch.Generator().manual_seed(1))
    for dim in range(3):
        for y in (x, x.float()):
            torch.testing.assert_close(formulas.most_frequent(y, dim), tuple(y.mode(dim)))


def test_norms_that_write_to_statistics_are_refused() -> None:
    """Torch's schemas say that these operators write to nothing."""

    class Batches(nn.Module):
        def forward(self, x: Tensor, mean: Tensor, variance: Tensor) -> Any:
            return torch.native_batch_norm(x, None, None, mean, variance, True, 0.5, 1e-5)

    class Instances(nn.Module):
        def forward(self, x: Tensor, mean: Tensor, variance: Tensor) -> Any:
            return torch.instance_norm(x, None, None, mean, variance, True, 0.5, 1e-5, False)

    inputs = (torch.randn(2, 3, 4), torch.zeros(3), torch.ones(3))
    for module, name in ((Batches(), "native_batch_norm"), (Instances(), "instance_norm")):
        with pytest.raises(UsageError, match=f"it has {name} as in training"):
            mgx_mlir.compile(torch.export.export(module, inputs), target="ref")
        run = torch.compile(module, backend="mgx", options={"target": "ref"})
        with torch.no_grad(), pytest.raises(Exception, match="model in training"):
            run(*inputs)


def test_a_native_batch_norm() -> None:
    x, mean, variance = torch.randn(4, 3, 5), torch.randn(3), torch.rand(3)
    for training, given in ((True, (None, None)), (False, (mean, variance))):
        arguments = (x, variance, mean, *given, training, 0.5, 1e-3)
        got = formulas.native_batch_norm(*arguments)
        torch.testing.assert_close(got, torch.native_batch_norm(*arguments))


def test_special_values() -> None:
    x = torch.tensor([[1.0, float("nan"), 3.0], [float("-inf"), 2.0, float("inf")]])
    for got, want in (
        (formulas.median(x), x.median()),
        (formulas.median(x, 1)[0], x.median(1)[0]),
        (formulas.running_maximum(x, 1), x.cummax(1)),
        (formulas.running_minimum(x, 1), x.cummin(1)),
        (formulas.hypotenuse(x, x), torch.hypot(x, x)),
        (formulas.hypotenuse(x * 0, x * 0), torch.hypot(x * 0, x * 0)),
        (formulas.with_sign(x, torch.tensor(-0.0)), x.copysign(torch.tensor(-0.0))),
    ):
        torch.testing.assert_close(got, tuple(want) if isinstance(want, tuple) else want,
                                   equal_nan=True)  # fmt: skip


def test_a_result_of_another_type_is_refused() -> None:
    """A program has complex numbers as pairs, which torch gives as one."""

    class Spectrum(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.stft(x, 8, window=torch.ones(8), return_complex=True)

    with pytest.raises(UnsupportedModel, match="result of the torch program is complex"):
        mgx_mlir.torch.compile(Spectrum(), (torch.randn(1, 40),), target="ref")


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_a_matmul_of_8_bits(target: str) -> None:
    class Matmul(nn.Module):
        def forward(self, x: Tensor, w: Tensor) -> Tensor:
            return torch._int_mm(x, w)

    x, w = (torch.randint(-128, 128, (24, 16 * n), dtype=torch.int8) for n in (1, 2))
    given = (x, w[:16].contiguous())
    found = mgx_mlir.torch.compile(Matmul(), given, target=target)(*given)
    assert found.dtype == torch.int32
    assert torch.equal(found, x.int() @ given[1].int())
