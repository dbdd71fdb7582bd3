"""verify of outputs that one ulp throws about: said, never passed, and no cover for faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from mgx_mlir.compiler.models import read_model
from mgx_mlir.core.op import OPS
from mgx_mlir.debug.compare import compare
from mgx_mlir.debug.conditioning import conditioning, redrawn
from mgx_mlir.debug.tolerances import FULL_PRECISION, output_tolerances
from mgx_mlir.passes import pipelines
from mgx_mlir.passes.lowering.module import ModuleLowering
from mgx_mlir.rewrite.registry import PASSES
from tests.driver.conftest import Driver
from tests.support.models import model_of

N = 6000


@pytest.fixture(scope="module")
def cancelling(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same products summed in two orders, and the difference: 0 but for rounding.

    Beside it lies an output that is not: `sums`.
    """
    rng = np.random.default_rng(1)
    order = rng.permutation(N)
    w = rng.uniform(0.5, 100, (1, N)).astype(np.float32)
    held = {"w": w, "v": w[:, order], "order": order.astype(np.int64), "axes": np.array([1])}
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Mul", ["r", "w"], ["a"]),
        helper.make_node("ReduceSum", ["a", "axes"], ["sums"]),
        helper.make_node("Gather", ["r", "order"], ["g"], axis=1),
        helper.make_node("Mul", ["g", "v"], ["b"]),
        helper.make_node("ReduceSum", ["b", "axes"], ["others"]),
        helper.make_node("Sub", ["sums", "others"], ["y"]),
    ]
    f32 = TensorProto.FLOAT
    model = model_of(nodes, [("x", f32, [8, N])], [("sums", f32, [8, 1]), ("y", f32, [8, 1])], held)
    path = tmp_path_factory.mktemp("cancelling") / "cancelling.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def report(driver: Driver, *options: object) -> tuple[int, dict[str, Any]]:
    ran = driver("verify", "--cpu", "--no-cache", "--json", *options)
    assert ran.out.startswith("{"), ran.err
    return ran.status, json.loads(ran.out)


def test_it_is_said_and_not_passed(driver: Driver, cancelling: Path) -> None:
    ran = driver("verify", "--cpu", cancelling)
    assert ran.status == 2
    assert ran.lines[-1].startswith(f"ill-conditioned: {cancelling}: cpu and ref differ in y (")
    row = next(i for i, line in enumerate(ran.lines) if line.startswith("y: "))
    assert ran.lines[row].endswith(": ill-conditioned")
    assert ran.lines[row + 1].startswith(
        "  one ulp of inputs, weights and results moves it by rms "
    )
    assert any(line.startswith("sums: ") and line.endswith(": pass") for line in ran.lines)
    assert not any(line.startswith("FAILED") for line in ran.lines)
    assert "Every instruction is right" in ran.err


def test_the_report(driver: Driver, cancelling: Path) -> None:
    status, found = report(driver, cancelling)
    assert (status, found["passed"]) == (2, False)
    [moved] = found["ill_conditioned"]
    assert moved["name"] == "y"
    assert moved["moved_rms"] > 0.1
    assert moved["moved_max_abs"] > 0
    assert not next(o for o in found["outputs"] if o["name"] == "y")["passed"]


def test_a_stated_limit_is_held(driver: Driver, cancelling: Path) -> None:
    assert driver("verify", "--cpu", cancelling, "--rms-tol", 1e-5).status == 1
    assert driver("verify", "--cpu", cancelling, "--rms-tol", 2, "--atol", 1).status == 0


def test_the_details_say_the_same(driver: Driver, cancelling: Path) -> None:
    ran = driver("verify", "--cpu", "--no-cache", cancelling, "-i")
    assert ran.status == 2
    assert ran.lines[-1].startswith("ill-conditioned: ")


@pytest.fixture
def broken_relu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every target computes relu(x) + 1/4: the difference that y is takes it out again."""
    whole = OPS["relu"].scalar
    monkeypatch.setattr(OPS["relu"], "scalar", staticmethod(lambda b, x: b.add(whole(b, x), 0.25)))


@pytest.mark.usefixtures("broken_relu")
def test_an_operator_that_is_lowered_wrong_is_a_fault(driver: Driver, cancelling: Path) -> None:
    status, found = report(driver, cancelling)
    assert status == 1
    assert found["ill_conditioned"] is None


@pytest.fixture(params=["break_relu", "break_lone_relu"])
def broken_pass(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """tanh in place of relu, which moves y no more than one ulp does."""
    name = request.param
    monkeypatch.setitem(PASSES._modules, name, f"tests.driver.passes.{name}")
    monkeypatch.setitem(pipelines.PIPELINES, "cpu", lambda o: (name, *pipelines.cpu(o)))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A variant of `cancelling`: each relu has one reader, and y, the only output, hides it."""
    rng = np.random.default_rng(2)
    order = rng.permutation(N)
    w = rng.uniform(0.5, 100, (1, N)).astype(np.float32)
    held = {"w": w, "v": w[:, order], "order": order.astype(np.int64), "axes": np.array([1])}
    nodes = [
        helper.make_node("Gather", ["x", "order"], ["g"], axis=1),
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Relu", ["g"], ["s"]),
        helper.make_node("Mul", ["r", "w"], ["a"]),
        helper.make_node("Mul", ["s", "v"], ["b"]),
        helper.make_node("ReduceSum", ["a", "axes"], ["c"]),
        helper.make_node("ReduceSum", ["b", "axes"], ["d"]),
        helper.make_node("Sub", ["c", "d"], ["y"]),
    ]
    f32 = TensorProto.FLOAT
    model = model_of(nodes, [("x", f32, [8, N])], [("y", f32, [8, 1])], held)
    path = tmp_path_factory.mktemp("alone") / "alone.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_a_model_without_another_output(driver: Driver, alone: Path) -> None:
    assert driver("verify", "--cpu", alone).status == 2


@pytest.mark.usefixtures("broken_pass")
def test_a_pass_that_changes_the_model_is_a_fault(driver: Driver, alone: Path) -> None:
    """Nothing of it shows in y, nor in any kernel: other weights show it."""
    status, found = report(driver, alone)
    assert status == 1
    assert found["ill_conditioned"] is None


@pytest.fixture
def broken_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels with one result compute relu(x) + 1/4; those of single instructions do not."""
    lower, whole = ModuleLowering._kernel, OPS["relu"].scalar

    def wrong(self: Any, op: Any) -> None:
        inside = [v.operation.name for r in op.regions for b in r.blocks for v in b.operations]
        with monkeypatch.context() as m:
            if len(op.results) == 1 and len(inside) > 2:
                scalar = staticmethod(lambda b, x: b.add(whole(b, x), 0.25))
                m.setattr(OPS["relu"], "scalar", scalar)
            lower(self, op)

    monkeypatch.setattr(ModuleLowering, "_kernel", wrong)


@pytest.mark.usefixtures("broken_kernel")
def test_a_kernel_that_is_lowered_wrong_is_a_fault(driver: Driver, alone: Path) -> None:
    """The kernel's own error is as small as rounding; verify finds it alone, with other weights."""
    status, found = report(driver, alone)
    assert status == 1
    assert found["ill_conditioned"] is None


def test_well_conditioned_outputs_hide_nothing(models: Path) -> None:
    program = read_model(models / "mnist.onnx")
    x = np.random.default_rng(0).random((1, 28, 28)).astype(np.float32)
    limits = output_tolerances(program)
    with program.ctx:
        from mgx_mlir.programs.interpreter import Interpreter

        wanted = Interpreter(program.module, program.store).run({"x": x})
    [found] = conditioning(program, [x], wanted, limits)
    assert not found.beyond
    assert 0 < found.moved_rms < 1e-5
    assert not found.explains(compare("y", wanted[0] * np.float32(1.001), wanted[0], limits[0]))


def test_dims_and_nan_are_never_a_matter_of_conditioning(cancelling: Path) -> None:
    program = read_model(cancelling)
    x = np.random.default_rng(0).random((8, N)).astype(np.float32)
    from mgx_mlir.programs.interpreter import Interpreter

    with program.ctx:
        wanted = Interpreter(program.module, program.store).run({"x": x})
    found = conditioning(program, [x], wanted, output_tolerances(program))[1]
    y = wanted[1]
    assert found.beyond
    assert found.explains(compare("y", y + np.float32(found.moved_max), y, FULL_PRECISION))
    assert not found.explains(compare("y", y.reshape(-1), y, FULL_PRECISION))
    assert not found.explains(compare("y", np.full_like(y, np.nan), y, FULL_PRECISION))
    assert not found.explains(compare("y", y + np.float32(99 * found.moved_max), y, FULL_PRECISION))


def test_other_weights(cancelling: Path) -> None:
    program = read_model(cancelling)
    before = program.text()
    other = redrawn(program)
    assert program.text() == before
    assert other.text() != before
    assert redrawn(program).text() == other.text()
    assert redrawn(program, 1).text() != other.text()
