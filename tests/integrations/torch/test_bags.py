"""EmbeddingBag: every mode, bags of equal sizes and of any, empty ones, padding, weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional as F

import mgx_mlir.torch
from mgx_mlir.frontends.torch_bags import bags, equal_bags

pytestmark = pytest.mark.slow
MODES = {"sum": 0, "mean": 1, "max": 2}


@pytest.mark.parametrize("padding", [None, 3, -2])
@pytest.mark.parametrize("mode", MODES)
def test_they_give_what_torch_gives(mode: str, padding: int | None) -> None:
    torch.manual_seed(1)
    table = torch.randn(9, 4)
    flat = torch.tensor([3, 1, 7, 7, 3, 3, 0, 8, 2, 3])
    weights: list[Tensor | None] = [None, torch.randn(10)] if mode == "sum" else [None]
    place = -1 if padding is None else padding
    for w in weights:
        more = {"mode": mode, "padding_idx": padding, "per_sample_weights": w}
        numbers = {"mode": MODES[mode], "padding_idx": place, "per_sample_weights": w}
        for at in ([0, 2, 2, 5], [0, 4, 6, 10], [0]):  # empty bags within, and at the end
            for last in (False, True):
                offsets = torch.tensor([*at, 10] if last else at)
                want = F.embedding_bag(flat, table, offsets, include_last_offset=last, **more)
                got = bags(table, flat, offsets, include_last_offset=last, **numbers)[0]
                torch.testing.assert_close(got, want)
        matrix = flat.view(5, 2)
        more["per_sample_weights"] = None if w is None else w.view(5, 2)
        want = F.embedding_bag(matrix, table, **more)
        torch.testing.assert_close(equal_bags(table, flat, 2, **numbers)[0], want)


class Bags(nn.Module):
    """A matrix of indices, and bags that begin at offsets."""

    def __init__(self) -> None:
        super().__init__()
        self.mean, self.sum = nn.EmbeddingBag(20, 4), nn.EmbeddingBag(20, 4, mode="sum")
        self.max = nn.EmbeddingBag(20, 4, mode="max", padding_idx=2)

    def forward(self, ids: Tensor, flat: Tensor, offsets: Tensor) -> Any:
        return self.sum(ids) + self.max(ids), self.mean(flat, offsets)


def test_they_compile_for_all_sizes() -> None:
    torch.manual_seed(2)
    model, b, n, m = Bags().eval(), *(Dim(name, min=2, max=64) for name in "bnm")
    example = (torch.randint(0, 20, (3, 4)), torch.randint(0, 20, (11,)), torch.tensor([0, 2, 5]))
    exported = torch.export.export(
        model, example, dynamic_shapes=({0: b}, {0: n}, {0: m}), strict=False
    )
    before = str(exported.graph)
    run = mgx_mlir.torch.compile(exported, target="ref")
    assert str(exported.graph) == before
    for rows, length, at in ((3, 11, [0, 2, 5]), (7, 6, [0, 0, 3, 6]), (2, 20, [0, 19])):
        args = (torch.randint(0, 20, (rows, 4)), torch.randint(0, 20, (length,)), torch.tensor(at))
        for got, want in zip(run(*args), model(*args), strict=True):
            torch.testing.assert_close(got, want.detach(), rtol=1e-5, atol=1e-5)
