"""Products of groups of rows with a matrix each: experts of a mixture."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import mgx_mlir.torch
from mgx_mlir.frontends.torch_formulas import grouped_product

pytestmark = pytest.mark.slow


@torch.library.custom_op("transformers::grouped_mm_fallback", mutates_args=())
def grouped_mm_fallback(rows: Tensor, matrices: Tensor, ends: Tensor) -> Tensor:
    """An operator of the name and meaning of one that transformers makes."""
    return by_loop(rows, matrices, ends)


@grouped_mm_fallback.register_fake
def _(rows: Tensor, matrices: Tensor, ends: Tensor) -> Tensor:
    return rows.new_empty(rows.shape[0], matrices.shape[2])


def by_loop(rows: Tensor, matrices: Tensor, ends: Tensor) -> Tensor:
    found, begin = rows.new_zeros(rows.shape[0], matrices.shape[2]), 0
    for i, end in enumerate(ends.tolist()):
        found[begin:end] = rows[begin:end] @ matrices[i]
        begin = end
    return found


def test_every_row_meets_the_matrix_of_its_group() -> None:
    torch.manual_seed(4)
    rows, matrices = torch.randn(7, 3), torch.randn(4, 3, 2)
    for at in ([2, 2, 6, 7], [0, 0, 0, 3], [7, 7, 7, 7]):
        ends = torch.tensor(at, dtype=torch.int32)
        torch.testing.assert_close(
            grouped_product(rows, matrices, ends), by_loop(rows, matrices, ends)
        )


class Experts(nn.Module):
    """Rows that one of several matrices is chosen for."""

    def __init__(self) -> None:
        super().__init__()
        self.matrices = nn.Parameter(torch.randn(4, 3, 2))

    def forward(self, x: Tensor, ends: Tensor) -> Tensor:
        return torch.ops.transformers.grouped_mm_fallback(x, self.matrices, ends)


def test_it_compiles() -> None:
    torch.manual_seed(4)
    model, x, ends = Experts().eval(), torch.randn(7, 3), torch.tensor([1, 4, 4, 7])
    run = mgx_mlir.torch.compile(model, (x, ends), target="ref")
    torch.testing.assert_close(run(x, ends), model(x, ends).detach())
