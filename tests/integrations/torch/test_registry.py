"""torch.onnx's library and composite operators are read once; torch's own readers stay in place."""

from __future__ import annotations

import importlib

import pytest
import torch

import mgx_mlir
from mgx_mlir.frontends import torch_registry

pytestmark = pytest.mark.slow
REGISTRY = importlib.import_module("torch.onnx._internal.exporter._registration").ONNXRegistry
UTILS = importlib.import_module("torch._export.utils")


class Twice(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.softplus(x) * 2


def test_exports_share_one_reading() -> None:
    own = vars(REGISTRY)["from_torchlib"], UTILS._materialize_cpp_cia_ops
    read = torch_registry._library
    before = read.cache_info().misses
    for width in (3, 5):
        x = torch.linspace(-9, 9, width)
        program = mgx_mlir.compile(torch.export.export(Twice(), (x,)), target="ref")
        [y] = program.run([x.numpy()])
        torch.testing.assert_close(torch.from_numpy(y), Twice()(x))
    info = read.cache_info()
    assert info.misses - before <= 1
    assert info.hits, "the export reads the library in another way: nothing is shared"
    assert own == (vars(REGISTRY)["from_torchlib"], UTILS._materialize_cpp_cia_ops)


def test_an_export_lists_composite_operators_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for what routes operators, once for torch.onnx; one between is known to neither."""
    listed: list[int] = []
    own = UTILS._materialize_cpp_cia_ops
    monkeypatch.setattr(UTILS, "_materialize_cpp_cia_ops", lambda: listed.append(1) or own())
    x = torch.linspace(-9, 9, 3)
    mgx_mlir.compile(torch.export.export(Twice(), (x,)), target="ref")
    assert 1 <= len(listed) <= 2
