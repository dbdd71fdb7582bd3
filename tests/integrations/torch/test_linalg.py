"""Factorisations and solutions of linear systems against LAPACK's, in f64; some compiled."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import mgx_mlir.torch
from mgx_mlir.core.errors import UnsupportedModel
from mgx_mlir.frontends import torch_linalg as linalg

pytestmark = pytest.mark.slow
BATCHES = [(), (2,), (0,), (2, 3)]
SIZES = (0, 1, 3, 6)
YES_AND_NO = (True, False)


def drawn(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(5))


def close(got: Any, want: Any) -> None:
    want = tuple(want) if isinstance(want, tuple) else want
    torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("batch", BATCHES)
def test_systems(batch: tuple[int, ...]) -> None:
    for n in SIZES:
        a, b = drawn(*batch, n, n), drawn(*batch, n, 4)
        close(linalg.inverse(a), torch.linalg.inv_ex(a))
        close(linalg.solution(a, b)[0], torch.linalg.solve(a, b))
        close(linalg.solution(a, b.mT, left=False)[0], torch.linalg.solve(a, b.mT, left=False))
        if n:
            close(linalg.solution(a, b[..., 0])[0], torch.linalg.solve(a, b[..., 0]))
        close(linalg.sign_and_log_of_det(a)[:2], torch.linalg.slogdet(a))
        factors = torch.linalg.lu_factor(a)
        for left in YES_AND_NO:
            for adjoint in YES_AND_NO:
                given, how = b if left else b.mT, {"left": left, "adjoint": adjoint}
                want = torch.linalg.lu_solve(*factors, given, **how)
                close(linalg.lu_solution(*factors, given, **how), want)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("upper", YES_AND_NO)
def test_triangles(batch: tuple[int, ...], upper: bool) -> None:
    for n in SIZES:
        a, b = drawn(*batch, n, n), drawn(*batch, n, 4)
        a = a @ a.mT + torch.eye(n, dtype=a.dtype)
        close(linalg.cholesky(a, upper=upper), torch.linalg.cholesky_ex(a, upper=upper))
        factor = torch.linalg.cholesky(a, upper=upper)
        close(linalg.cholesky_solution(b, factor, upper), b.cholesky_solve(factor, upper))
        close(linalg.cholesky_inverse(factor, upper), factor.cholesky_inverse(upper))
        for flag in YES_AND_NO:
            for unit in YES_AND_NO:
                given = b if flag else b.mT
                how = {"upper": upper, "left": flag, "unitriangular": unit}
                # elements beyond the diagonal are ignored
                want = torch.linalg.solve_triangular(a.triu() if upper else a.tril(), given, **how)
                close(linalg.triangular_solution(a, given, **how), want)
                old = (b, a, upper, flag, unit)
                close(linalg.old_triangular_solution(*old), torch.triangular_solve(*old))


@pytest.mark.parametrize("batch", BATCHES)
def test_factors(batch: tuple[int, ...]) -> None:
    for m in (0, 1, 4, 7):
        for n in SIZES:
            a = drawn(*batch, m, n)
            close(linalg.lu_factors(a), torch.linalg.lu_factor_ex(a))
            close(linalg.lu(a), torch.linalg.lu(a))
            factors = torch.linalg.lu_factor(a)
            close(linalg.unpacked_lu(*factors), torch.lu_unpack(*factors))
            found = torch.geqrf(a)
            close(linalg.reflections(a), found)
            for mode in ("reduced", "complete", "r"):
                close(linalg.qr(a, mode), torch.linalg.qr(a, mode))
            if m < n or not n:
                continue
            close(linalg.reflected(*found), torch.linalg.householder_product(*found))
            for left in YES_AND_NO:
                for transpose in YES_AND_NO:
                    x = drawn(*batch, m, 3) if left else drawn(*batch, 3, m)
                    want = torch.ormqr(*found, x, left, transpose)
                    close(linalg.reflected_other(*found, x, left, transpose), want)


@pytest.mark.parametrize("size", [0.01, 1.0, 30.0])
def test_exponentials(size: float) -> None:
    for shape in ((4, 4), (2, 1, 1), (0, 3, 3), (3, 0, 0)):
        a = drawn(*shape) * size
        want = torch.linalg.matrix_exp(a)
        most = want.abs().max() if want.numel() else 1
        torch.testing.assert_close(linalg.exponential(a) / most, want / most, rtol=0, atol=1e-11)


def test_singular_matrices() -> None:
    """Infinite, and LAPACK's info says where."""
    a = torch.tensor([[[1.0, 2], [2, 4]], [[0, 0], [0, 0]]])
    close(linalg.inverse(a)[1], torch.linalg.inv_ex(a)[1])
    assert linalg.inverse(a[0])[0].isinf().all()
    close(linalg.lu_factors(a), torch.linalg.lu_factor_ex(a))
    close(linalg.sign_and_log_of_det(a)[1], torch.linalg.slogdet(a)[1])
    close(linalg.cholesky(-a)[1], torch.linalg.cholesky_ex(-a)[1])


class Systems(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> list[Tensor]:
        spd = a @ a.mT + torch.eye(4)
        return [
            a.inverse(), torch.linalg.solve(a, b), torch.linalg.cholesky(spd), a.det(),
            *torch.linalg.qr(a), *torch.linalg.slogdet(a), torch.linalg.matrix_power(a, -2),
            torch.linalg.matrix_exp(a),
        ]  # fmt: skip


def test_compiled_with_a_dynamic_batch() -> None:
    batch = torch.export.Dim("batch", min=2)
    inputs = (drawn(3, 4, 4).float(), drawn(3, 4, 2).float())
    model = Systems()
    run = mgx_mlir.torch.compile(
        model, inputs, dynamic_shapes=({0: batch}, {0: batch}), target="ref"
    )
    for n in (3, 5):
        given = drawn(n, 4, 4).float(), drawn(n, 4, 2).float()
        torch.testing.assert_close(run(*given), model(*given), rtol=1e-3, atol=1e-4)


def test_sizes_that_are_refused() -> None:
    size = torch.export.Dim("size", min=2)
    large = torch.zeros(65, 65)
    for shapes, text in (
        (({0: size, 1: size},), "linalg_inv_ex: matrices of dynamic size"),
        (None, "linalg_inv_ex: matrices of more than 64 rows or columns"),
    ):
        with pytest.raises(UnsupportedModel, match=text):
            mgx_mlir.torch.compile(Inverse(), (large,), dynamic_shapes=shapes, target="ref")


class Inverse(nn.Module):
    def forward(self, a: Tensor) -> Tensor:
        return a.inverse()
