"""Calls of programs on the processor: inputs of every layout, results that own their memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

import mgx_mlir.torch
from mgx_mlir.core.errors import UnsupportedModel
from mgx_mlir.integrations.torch.backend import mgx
from mgx_mlir.integrations.torch.counters import counters

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(6)
    with torch.no_grad():
        yield
    torch._dynamo.reset()


class Net(nn.Module):
    """A product and a sum: one result large, one small."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(64, 64)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        z = self.a(x) + y
        return z, z.mean(0)


def test_inputs_of_every_layout_and_results_that_stay() -> None:
    model = Net().eval()
    run = torch.compile(model, backend=mgx, fullgraph=True, dynamic=True)
    kept = []
    for n in (3, 5, 700, 701):  # small ones are copied, large ones are read in place
        inputs = [
            torch.randn(n, 64),
            torch.randn(64, n).t(),
            torch.randn(n, 2, 64)[:, 1],
            torch.randn(n, 64, requires_grad=True),
            torch.randn(n, 64, dtype=torch.complex64).conj().imag,
        ]
        for x in inputs:
            got, want = run(x, inputs[0]), model(x, inputs[0])
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
            kept.append((got, want))
    for got, want in kept:  # later calls wrote to none of them
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
        got[0].add_(1)  # results may be written to
    # layouts and gradients are Dynamo's to tell apart; sizes are one program
    assert counters.programs == counters.graphs


def test_a_dim_that_is_marked_is_open_and_no_other() -> None:
    model = Net().eval()
    run = torch.compile(model, backend=mgx, fullgraph=True)
    for n in (3, 5, 8, 2, 13):
        x, y = torch.randn(n, 64), torch.randn(64)
        torch._dynamo.mark_dynamic(x, 0)
        torch.testing.assert_close(run(x, y), model(x, y), rtol=1e-4, atol=1e-4)
    assert (counters.graphs, counters.programs) == (1, 1)


def test_two_modules_of_one_code_from_several_threads() -> None:
    models = [nn.Linear(8, 8).eval() for _ in range(2)]
    run, x = torch.compile(lambda m, x: m(x), backend=mgx, fullgraph=True), torch.randn(4, 8)
    wants = [m(x) for m in models]
    for m in models:
        run(m, x)
    wrong: list[float] = []

    def many(k: int) -> None:
        with torch.no_grad():
            for i in range(200):
                at = (i + k) % 2
                wrong.append(float((run(models[at], x) - wants[at]).abs().max()))

    threads = [threading.Thread(target=many, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(wrong) == 600
    assert max(wrong) < 1e-5


def test_random_numbers_are_drawn_by_torch_in_each_call() -> None:
    layer = nn.Linear(4, 4).eval()

    def f(x: Tensor) -> list[Tensor]:
        weights = layer(x + torch.rand_like(x)).softmax(-1)
        return [weights, torch.multinomial(weights, 2), weights[torch.randperm(3)] * 2]

    x = torch.randn(3, 4)
    run = torch.compile(f, backend=mgx, fullgraph=True)
    torch.manual_seed(1)
    got = [run(x), run(x)]
    torch.manual_seed(1)
    for found, want in zip(got, [f(x), f(x)], strict=True):
        torch.testing.assert_close(found, want)
    assert not torch.equal(got[0][0], got[1][0])
    assert counters.programs == 2
    assert not counters.eager  # nothing is left to torch that could be compiled


def test_a_program_that_is_compiled_ahead_draws_nothing() -> None:
    class Noisy(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + torch.randn_like(x)

    with pytest.raises(UnsupportedModel, match=r"aten\.randn_like\.default: random numbers differ"):
        mgx_mlir.torch.compile(Noisy(), (torch.zeros(3),), target="ref")
