"""Modules and exported programs that are compiled ahead of time."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import mgx_mlir
from mgx_mlir.core.errors import FileError, MgxError, RunError, UnsupportedModel, UsageError

pytestmark = pytest.mark.slow


class Nested(nn.Module):
    """Arguments and results that are nested, some of them no tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(8, 4)

    def forward(self, x: Tensor, k: int, *, more: dict[str, Tensor]) -> dict[str, Any]:
        y = self.a(x) + more["bias"] * k
        return {"y": y, "none": None, "n": x.shape[0], "k": k, "pair": (y, y.argmax(-1))}


@pytest.fixture(scope="module")
def made() -> tuple[nn.Module, Any]:
    torch.manual_seed(1)
    model = Nested().eval()
    shapes = {"x": {0: Dim("n", min=2, max=64)}, "k": None, "more": {"bias": None}}
    example = {"more": {"bias": torch.randn(4)}}
    return model, mgx_mlir.torch.compile(
        model, (torch.randn(3, 8), 5), example, dynamic_shapes=shapes
    )


def check(model: nn.Module, run: Any, n: int) -> None:
    x, more = torch.randn(n, 8, requires_grad=True), {"bias": torch.randn(4)}
    got, want = run(x, 5, more=more), model(x, 5, more=more)
    torch.testing.assert_close(got["y"], want["y"].detach(), rtol=1e-5, atol=1e-5)
    assert torch.equal(got["pair"][1], want["pair"][1])
    assert (got["none"], got["n"], got["k"]) == (None, n, 5)


def test_one_program_takes_all_sizes(made: tuple[nn.Module, Any]) -> None:
    for n in (3, 2, 50):
        check(*made, n)


def test_it_is_saved_loaded_and_pickled(made: tuple[nn.Module, Any], tmp_path: Path) -> None:
    model, run = made
    path = tmp_path / "m.mxr"
    run.save(path)
    check(model, mgx_mlir.torch.load(path), 7)
    check(model, pickle.loads(pickle.dumps(run)), 7)
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import numpy as np, mgx_mlir\n"
        f"p = mgx_mlir.load({str(path)!r})\n"
        "print(p.run([np.ones((6, 8), np.float32), np.ones(4, np.float32)])[0].shape)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(6, 4)"
    Path(f"{path}.nesting.json").write_text("[1]")
    with pytest.raises(FileError, match="damaged"):
        mgx_mlir.torch.load(path)


def test_wrong_arguments_are_errors(made: tuple[nn.Module, Any]) -> None:
    _, run = made
    x, more = torch.randn(3, 8), {"bias": torch.randn(4)}
    for args, kwargs, text in (
        ((x, 6), {"more": more}, "compiled for 5"),
        ((x, 5), {}, "the arguments are"),
        ((x.double(), 5), {"more": more}, "expected float32, got float64"),
        ((torch.randn(3, 9), 5), {"more": more}, "got {3, 9}"),
    ):
        with pytest.raises(RunError) as e:
            run(*args, **kwargs)
        assert text in str(e.value)


def test_programs_of_torch_are_compiled_as_they_are() -> None:
    model, x = nn.Linear(40, 30).eval(), torch.randn(3, 40)
    exported = torch.export.export(model, (x,))
    program = torch.onnx.export(exported, dynamo=True, verbose=False)
    assert program is not None
    for each in (exported, program, program.model, program.model_proto):
        [y] = mgx_mlir.compile(each, "ref").run([x.numpy()])
        np.testing.assert_allclose(y, model(x).detach().numpy(), rtol=1e-5, atol=1e-5)


def test_arrays_of_an_onnx_model_stay_the_callers() -> None:
    import onnx_ir as ir  # part of the torch extra

    exported = torch.export.export(nn.Linear(40, 30).eval(), (torch.randn(3, 40),))
    program = torch.onnx.export(exported, dynamo=True, verbose=False)
    assert program is not None
    mine = np.ones((30, 40), np.float32)
    for value in program.model.graph.initializers.values():
        if value.const_value.shape == (30, 40):
            value.const_value = ir.tensor(mine, name=value.name)
    made = mgx_mlir.compile(program.model, "ref")
    before = made.run([np.ones((3, 40), np.float32)])[0]
    mine[:] = 0  # neither read-only now, nor the program's
    np.testing.assert_array_equal(made.run([np.ones((3, 40), np.float32)])[0], before)


def test_what_is_no_model_ahead_of_time_is_an_error() -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("n", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.n += 1
            return x + self.n

    x = torch.randn(2, 2)
    cases: list[tuple[Any, type[MgxError], str]] = [
        (lambda: mgx_mlir.compile(nn.ReLU(), "ref"), UsageError, "mgx_mlir.torch.compile"),
        (lambda: mgx_mlir.torch.compile(nn.ReLU()), UsageError, "expected example_inputs"),
        (lambda: mgx_mlir.torch.compile("m.onnx", x), UsageError, "expected a torch module"),
        (lambda: mgx_mlir.torch.compile(nn.Linear(2, 2), x), UsageError, "in training"),
        (lambda: mgx_mlir.torch.compile(Counts().eval(), x), UnsupportedModel, "writes to n"),
    ]
    for call, kind, text in cases:
        with pytest.raises(kind) as e:
            call()
        assert text in str(e.value)


def test_the_module_of_an_exported_program() -> None:
    """The flag `training` is always set there; the operators say if the graph trains."""
    model, x = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout()), torch.randn(2, 3)
    training = torch.export.export(model, (x,)).module()
    with pytest.raises(UsageError, match="batch_norm as in training"):
        mgx_mlir.torch.compile(training, x, target="ref")
    exported = torch.export.export(model.eval(), (x,)).module()
    assert exported.training
    run = mgx_mlir.torch.compile(exported, x, target="ref")
    torch.testing.assert_close(run(x), model(x))


class Writes(nn.Module):
    """A module that writes to one of what it has or is given."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place
        self.register_buffer("cache", torch.zeros(4, 2))
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        if self.place == "cache":
            self.cache[1:2].copy_(x[:1])
        elif self.place == "weight":
            self.weight.add_(1)
        else:
            x.mul_(2)
        return self.cache.sum(0) + self.weight + x


@pytest.mark.parametrize("place", ["cache", "weight", "x"])
def test_an_exported_program_that_writes_is_refused(place: str) -> None:
    """torch.onnx leaves writes out of what it exports."""
    with torch.no_grad():
        exported = torch.export.export(Writes(place).eval(), (torch.randn(3, 2),))
        for call in (mgx_mlir.compile, mgx_mlir.torch.compile):
            with pytest.raises(
                UnsupportedModel, match=f"writes to {place}: a program has no state"
            ):
                call(exported, target="ref")


def test_numbers_stay_numbers() -> None:
    class Totals(nn.Module):
        def forward(self, x: Tensor) -> tuple[float, int, Tensor]:
            return x.sum().item(), x.argmax().item(), x * 2

    x = torch.tensor([1.0, 5.0, 2.5])
    found = mgx_mlir.torch.compile(Totals(), (x,), target="ref")(x)
    assert found[:2] == (8.5, 1)
    assert [type(n) for n in found[:2]] == [float, int]
    torch.testing.assert_close(found[2], x * 2)
