"""Conditions on sizes under which a graph was traced: kept, compiled again for, or refused."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import mgx_mlir
from mgx_mlir.core.errors import SizesRefused
from mgx_mlir.integrations.torch.counters import counters
from tests.integrations.torch.test_sizes import ahead, exported

pytestmark = pytest.mark.slow
F = nn.functional


def branched(x: Tensor) -> Tensor:
    return x * 2 if x.shape[0] > 3 else x * 3


def of_parity(x: Tensor) -> Tensor:
    return x * 2 if x.shape[0] % 2 else x * 3


@pytest.mark.parametrize(("function", "taken", "refused", "text"), [
    (branched, (4, 9), (2, 3), "expected 3 < given_0.shape[0], got given_0.shape[0] = "),
    (of_parity, (3, 9), (2, 4), "expected (given_0.shape[0] % 2) != 0, got given_0.shape[0] = "),
    (lambda x: x.repeat(int(x.shape[0] / 3)), (4, 5), (2, 6), "trunc(given_0.shape[0] / 3) == 1"),
    (lambda x: F.adaptive_avg_pool1d(x[None], 2), (6,), (5, 8), "given_0.shape[0] // 2) == 3"),
])  # fmt: skip
def test_other_ways_of_a_trace_are_refused(
    function: Any, taken: tuple[int, ...], refused: tuple[int, ...], text: str, tmp_path: Path
) -> None:
    """The program that was saved refuses them too, and so does one in MIGraphX's format."""
    run = ahead(function, torch.randn(taken[-1]))
    run.save(tmp_path / "own.mxr")
    loaded = mgx_mlir.load(tmp_path / "own.mxr")
    for n in taken:
        x = torch.randn(n)
        torch.testing.assert_close(run(x), function(x))
        torch.testing.assert_close(torch.from_numpy(loaded.run([x.numpy()])[0]), function(x))
    for n in refused:
        for call in (lambda x: run(x), lambda x: loaded.run([x.numpy()])):
            with pytest.raises(SizesRefused) as e:
                call(torch.randn(n))
            assert text.replace("given_0", run.program.signature.inputs[0].name) in str(e.value)


def test_of_a_file_the_ranges_are_known() -> None:
    file = io.BytesIO()
    torch.export.save(exported(branched, torch.randn(5)), file)
    file.seek(0)
    run = mgx_mlir.torch.compile(torch.export.load(file), target="ref")
    torch.testing.assert_close(run(torch.ones(4)), torch.full((4,), 2.0))
    with pytest.raises(SizesRefused, match=r"expected 4 <= .*shape\[0\], got .*shape\[0\] = 3"):
        run(torch.ones(3))


def test_a_jit_compiles_again_for_another_way() -> None:
    counters.clear()
    torch._dynamo.reset()
    options = {"target": "ref"}
    run = torch.compile(
        lambda x: F.adaptive_avg_pool2d(x, (2, 3)), backend="mgx", dynamic=True, options=options
    )
    for shape in ((6, 9), (8, 9), (5, 7), (8, 9), (5, 7), (10, 12)):
        x = torch.randn(2, 3, *shape)
        torch.testing.assert_close(run(x), F.adaptive_avg_pool2d(x, (2, 3)))
    assert counters.graphs == 1  # Dynamo sees one way
    assert 3 <= counters.programs <= 4


def test_sizes_of_data_are_no_conditions() -> None:
    run = ahead(lambda x: torch.unique(x), torch.randn(5))
    assert torch.equal(run(torch.tensor([2.0, 1.0, 2.0])), torch.tensor([1.0, 2.0]))


def test_integers_are_constants_where_an_operator_takes_no_others() -> None:
    def of(x: Tensor, p: int, size: tuple[int, int]) -> list[Tensor]:
        pooled = F.adaptive_max_pool2d(x[None], size)
        return [torch.norm(x, p), pooled, F.softplus(x, beta=p), x.repeat(p, 1, 1)]

    counters.clear()
    torch._dynamo.reset()
    run = torch.compile(of, backend="mgx", dynamic=True, options={"target": "ref"})
    for p, size, shape in ((4, (2, 3), (3, 6, 7)), (4, (2, 3), (3, 9, 7)), (5, (2, 3), (3, 9, 8)),
                           (6, (1, 2), (3, 9, 7)), (4, (2, 3), (3, 6, 7))):  # fmt: skip
        x = torch.randn(shape)
        for got, want in zip(run(x, p, size), of(x, p, size), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
    assert counters.programs <= 6
