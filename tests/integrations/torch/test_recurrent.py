"""LSTM, GRU and RNN: one program for all lengths, ahead of time too; other backends as before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import mgx_mlir.torch
from mgx_mlir.integrations.torch.backend import mgx
from mgx_mlir.integrations.torch.counters import counters

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(5)
    with torch.no_grad():
        yield
    torch._dynamo.reset()


class Net(nn.Module):
    """A recurrence with what it gives at the end."""

    def __init__(self, cell: Any, **more: Any) -> None:
        super().__init__()
        self.cell = cell(6, 5, **more)

    def forward(self, x: Tensor) -> Any:
        return self.cell(x)


CASES = {
    "gru": (nn.GRU, {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    "gru_plain": (nn.GRU, {"bias": False}),
    "rnn": (nn.RNN, {"num_layers": 2, "bidirectional": True}),
    "rnn_relu": (nn.RNN, {"nonlinearity": "relu", "batch_first": True, "bias": False}),
    "lstm": (nn.LSTM, {"batch_first": True}),
}


@pytest.mark.parametrize("name", CASES)
def test_all_lengths_are_one_program(name: str) -> None:
    kind, more = CASES[name]
    model = Net(kind, **more).eval()
    run = torch.compile(model, backend=mgx, fullgraph=True, dynamic=True, options={"target": "ref"})
    for b, n in ((3, 7), (2, 4), (5, 9)):
        x = torch.randn(b, n, 6)
        torch.testing.assert_close(run(x), model(x), rtol=1e-5, atol=1e-5)
    assert (counters.graphs, counters.programs) == (1, 1)


def test_ahead_of_time_too() -> None:
    model = Net(nn.GRU, batch_first=True).eval()
    shapes = ({0: Dim("b", min=2, max=64), 1: Dim("n", min=2, max=64)},)
    run = mgx_mlir.torch.compile(
        model, (torch.randn(3, 7, 6),), dynamic_shapes=shapes, target="ref"
    )
    for b, n in ((3, 7), (5, 4)):
        x = torch.randn(b, n, 6)
        torch.testing.assert_close(run(x), model(x), rtol=1e-5, atol=1e-5)


def test_other_backends_see_the_loop() -> None:
    kinds: list[str] = []

    def seen(gm: Any, examples: Any) -> Any:
        kinds.extend(str(n.target) for n in gm.graph.nodes if n.op == "call_function")
        return gm.forward

    from torch._dynamo.backends.common import aot_autograd

    model, x = Net(nn.GRU).eval(), torch.randn(3, 2, 6)
    run = torch.compile(model, backend=aot_autograd(fw_compiler=seen))
    torch.testing.assert_close(run(x), model(x))
    assert sum("mm" in k for k in kinds) > 3
