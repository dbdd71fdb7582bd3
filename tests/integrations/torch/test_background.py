"""Option `background`: eager answers until the program of a graph is there."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from mgx_mlir.core.errors import CompileError, UsageError
from mgx_mlir.integrations.torch import backend
from mgx_mlir.integrations.torch.backend import Graph, mgx
from mgx_mlir.integrations.torch.later import Later

X = torch.tensor([[1.0, -2.0], [3.0, -4.0]])


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Later]]:
    """Return the calls that are compiled in the background."""
    made: list[Later] = []
    call = Graph._call

    def noted(self: Graph, frozen: Any) -> Any:
        found = call(self, frozen)
        assert isinstance(found, Later)
        made.append(found)
        return found

    monkeypatch.setattr(Graph, "_call", noted)
    torch._dynamo.reset()
    with torch.no_grad():
        yield made
    torch._dynamo.reset()


def double(x: Tensor) -> Tensor:
    return x.relu() * 2


def compiled(**more: Any) -> Any:
    options = {"target": "ref", "background": True, **more}
    return torch.compile(double, backend=mgx, options=options)


@pytest.mark.slow
def test_eager_answers_until_the_program_is_there(
    later: list[Later], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mgx_mlir.integrations.torch")
    opened, original = threading.Event(), backend.compiled

    def held(*args: Any) -> Any:
        assert opened.wait(60)
        return original(*args)

    monkeypatch.setattr(backend, "compiled", held)
    f = compiled(check=True)
    torch.testing.assert_close(f(X), double(X))
    [call] = later
    assert not call.is_ready
    opened.set()
    call.wait()
    assert re.search(r"graph \d+ of torch: Compiled in \d+\.\d\d s", caplog.text)
    # the graph module is not called any more but by the check
    monkeypatch.setattr(call, "_by_eager", None)
    torch.testing.assert_close(f(X), double(X))
    torch.testing.assert_close(f(X), double(X))
    assert len(later) == 1


@pytest.mark.slow
@pytest.mark.parametrize("fallback", ["error", "eager"])
def test_an_error_comes_at_the_next_call(
    later: list[Later], monkeypatch: pytest.MonkeyPatch, fallback: str
) -> None:
    failed = threading.Event()

    def failing(*_: Any) -> Any:
        assert failed.wait(60)
        raise CompileError("no code for node 'relu'")

    monkeypatch.setattr(backend, "compiled", failing)
    f = compiled(fallback=fallback)
    torch.testing.assert_close(f(X), double(X))
    failed.set()
    with pytest.raises(CompileError, match="no code for node 'relu'"):
        later[0].wait()
    if fallback == "error":
        with pytest.raises(CompileError, match="no code for node 'relu'"):
            f(X)
        return
    with pytest.warns(UserWarning, match="torch keeps running the graph: no code for node 'relu'"):
        torch.testing.assert_close(f(X), double(X))
    torch.testing.assert_close(f(X), double(X))


def test_wrong_values() -> None:
    with pytest.raises(UsageError, match="background expected True or False"):
        backend.TorchOptions.of({"background": 1})
