"""Option `check`: the first call of a graph beside eager's, and ahead of time the examples."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import mgx_mlir.torch
from mgx_mlir.core.errors import RunError
from mgx_mlir.integrations.torch import ahead, backend
from mgx_mlir.integrations.torch.calls import Call

pytestmark = pytest.mark.slow
CHECK = {"target": "ref", "check": True}


@pytest.fixture(autouse=True)
def _inference() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield
    torch._dynamo.reset()


class Model(nn.Module):
    """Two results, and a buffer that is written to."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 3)
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.a(x)
        self.count += y[0]
        return y.softmax(-1), y.t()


def test_a_right_graph_passes_and_later_calls_are_not_compared() -> None:
    model = Model().eval()
    plain = Model().eval()
    plain.load_state_dict(model.state_dict())
    run = torch.compile(model, backend="mgx", options=CHECK)
    for _ in range(3):
        x = torch.randn(5, 4)
        for got, want in zip(run(x), plain(x), strict=True):
            torch.testing.assert_close(got, want)
        torch.testing.assert_close(model.count, plain.count)  # written to once a call


def _failure(run: Any, *args: Any) -> RunError:
    with pytest.raises(RunError) as e:
        run(*args)
    return e.value


def test_a_wrong_result_is_named_with_its_error_and_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = Call.__call__

    def wrong(self: Call, args: Any) -> Any:
        found = before(self, args)
        found[1][2, 1] += 0.25
        return found

    monkeypatch.setattr(Call, "__call__", wrong)
    run = torch.compile(lambda x: (x.exp(), x.neg()), backend="mgx", options=CHECK, fullgraph=True)
    text = str(_failure(run, torch.rand(4, 3)))
    assert "result 1 ('neg')" in text
    assert "1 of 12 element differs" in text
    assert "the largest error is 0.25, at {2, 1}" in text
    assert "rms-tol 1e-05, atol 5e-05, rtol 5e-05" in text
    assert "result 0" not in text


def test_another_shape_and_a_write_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Call.__call__
    monkeypatch.setattr(Call, "__call__", lambda self, args: [before(self, args)[0].reshape(1)])
    run = torch.compile(lambda x: x.sum(), backend="mgx", options=CHECK)
    text = str(_failure(run, torch.rand(4)))
    assert "float32 {1}, eager gives float32 {}" in text

    torch._dynamo.reset()
    monkeypatch.setattr(Call, "__call__", lambda self, args: [args[0] * 2])

    def writes(x: Tensor) -> Tensor:
        x.add_(1)
        return x * 2

    text = str(_failure(torch.compile(writes, backend="mgx", options=CHECK), torch.rand(4)))
    assert "argument 0 after the call" in text


def test_what_eager_draws_is_not_compared_and_said_so() -> None:
    run = torch.compile(lambda x: (torch.rand_like(x), x + 1), backend="mgx", options=CHECK)
    torch.manual_seed(3)
    with pytest.warns(UserWarning, match=r"two runs of eager differ: result 0"):
        (found, _) = run(torch.zeros(3))
    state = torch.random.get_rng_state()
    torch.manual_seed(3)
    assert torch.equal(found, torch.rand(3))
    assert torch.equal(torch.random.get_rng_state(), state)  # the comparison took no numbers


def test_infinite_and_undefined_results_that_agree_pass() -> None:
    run = torch.compile(lambda x: x / 0, backend="mgx", options=CHECK)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(torch.tensor([1.0, 0.0, -1.0]))


def test_ahead_of_time_the_examples_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.Linear(4, 3).eval()
    example = (torch.randn(2, 4),)
    mgx_mlir.torch.compile(model, example, target="ref", check=True)
    before = ahead.CompiledModule._on_host
    monkeypatch.setattr(
        ahead.CompiledModule, "_on_host", lambda self, given: [t + 1 for t in before(self, given)]
    )
    with pytest.raises(RunError, match=r"result 0: 6 of 6 elements differ"):
        mgx_mlir.torch.compile(model, example, target="ref", check=True)


def test_short_floats_have_wider_limits() -> None:
    model = nn.Linear(64, 8).eval()
    run = torch.compile(model, backend=backend.mgx, options={**CHECK, "fp16": True})
    run(torch.randn(4, 64))
