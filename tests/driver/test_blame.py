"""verify --per-instruction, --bisect and --reduce: planted faults are found, and only these."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mgx_mlir.compiler.models import read_model
from mgx_mlir.core.errors import CompileError
from mgx_mlir.core.op import OPS
from mgx_mlir.debug.blame import Case
from mgx_mlir.debug.intermediates import SteppedRun
from mgx_mlir.passes import pipelines
from mgx_mlir.programs.program_ir import entry_block
from mgx_mlir.rewrite.registry import PASSES
from tests.driver.conftest import Driver


@pytest.fixture
def broken_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("break_relu", "break_lone_relu"):
        monkeypatch.setitem(PASSES._modules, name, f"tests.driver.passes.{name}")


@pytest.fixture
def broken_relu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every target computes relu(x) + 1/4; the reference does not."""
    whole = OPS["relu"].scalar
    monkeypatch.setattr(OPS["relu"], "scalar", staticmethod(lambda b, x: b.add(whole(b, x), 0.25)))


def report(driver: Driver, *options: object) -> tuple[int, dict[str, Any]]:
    ran = driver("verify", "--cpu", "--no-cache", "--json", *options)
    assert ran.out.startswith("{"), ran.err
    return ran.status, json.loads(ran.out)


def verdicts(found: dict[str, Any], level: str = "instructions") -> dict[str, str]:
    return {row["op"]: row["verdict"] for row in found[level] if row["verdict"] != "right"}


def operators(path: Path) -> list[str]:
    program = read_model(path)
    ops = [view.operation.name for view in entry_block(program.main()).operations]
    assert ops.pop() == "func.return"
    return [name.removeprefix("migraphx.") for name in ops]


@pytest.mark.usefixtures("broken_passes")
def test_a_pass_that_changes_one_operator(driver: Driver, models: Path) -> None:
    status, found = report(driver, models / "mnist.onnx", "-i", "--apply-pass", "break_relu")
    assert status == 1
    assert not found["passed"]
    assert verdicts(found) == {
        "relu": "wrong", "dot": "inherited", "add": "inherited", "softmax": "inherited",
    }  # fmt: skip
    # the first dot and add come before it
    assert [row["verdict"] for row in found["instructions"]][:3] == ["right", "right", "wrong"]
    relu = found["instructions"][2]["own"][0]
    assert relu["max_abs"] > 0.1
    assert relu["limits"]["rms"] == 1e-5


@pytest.mark.usefixtures("broken_passes")
def test_the_command_that_shows_it_again(driver: Driver, models: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.json"
    status, found = report(
        driver, models / "mnist.onnx", "-b", "--minimal", small, "--apply-pass", "break_relu"
    )
    assert status == 1
    assert found["minimal"] == str(small)
    assert found["minimal_command"] == f"mgx-driver verify {small} --cpu --apply-pass break_relu"
    assert operators(small) == ["relu"]
    assert driver(*shlex.split(found["minimal_command"])[1:]).status == 1
    assert driver("verify", "--cpu", small).status == 0


@pytest.mark.usefixtures("broken_relu")
def test_an_operator_that_is_lowered_wrong(driver: Driver, models: Path) -> None:
    ran = driver("verify", "--cpu", "--no-cache", models / "mnist.onnx", "--per-instruction")
    assert ran.status == 1
    at = next(i for i, line in enumerate(ran.lines) if line.startswith("  wrong by itself: "))
    assert " = relu(" in ran.lines[at - 1]
    assert "max abs diff 0.25," in ran.lines[at]
    assert sum(line.startswith("  wrong by itself") for line in ran.lines) == 1
    assert any(line.startswith("  wrong because of its operands: ") for line in ran.lines)
    assert "6 instructions in one run: 2 right, 1 wrong by itself, " in ran.out


def test_nothing_is_wrong(driver: Driver, models: Path) -> None:
    ran = driver("verify", "--cpu", models / "mnist.onnx", "-i")
    assert ran.status == 0
    assert "6 instructions in one run: 6 right" in ran.lines
    status, found = report(driver, models / "tokens.onnx", "-i")
    assert status == 0
    assert verdicts(found) == {}
    ran = driver("verify", "--cpu", models / "mnist.onnx", "--bisect")
    assert ran.status == 0
    assert "Nothing fails: there is nothing to find" in ran.lines


@pytest.mark.usefixtures("broken_relu")
def test_bisect_leaves_a_model_that_fails_alone(
    driver: Driver, models: Path, tmp_path: Path
) -> None:
    small = tmp_path / "small.mxr"
    ran = driver("verify", "--cpu", "--no-cache", models / "mnist.onnx", "-b", "--minimal", small)
    assert ran.status == 1
    line = next(line for line in ran.lines if line.startswith("Failure starts at: "))
    number = line.removeprefix("Failure starts at: ")
    assert f"@{number} = relu(" in ran.out
    assert operators(small) == ["relu"]
    again = driver("verify", "--cpu", "--no-cache", small)
    assert again.status == 1
    assert "differ in" in again.lines[-1]


@pytest.mark.usefixtures("broken_relu")
def test_reduce_leaves_the_smallest_model(driver: Driver, tmp_path: Path) -> None:
    t, small = "tensor<2x8xf32>", tmp_path / "small.mlir"
    (tmp_path / "m.mlir").write_text(
        f"func.func @main(%x: {t}, %y: {t}) -> {t} {{\n"
        f'  %0 = "migraphx.add"(%x, %y) : ({t}, {t}) -> {t}\n'
        f'  %1 = "migraphx.relu"(%0) : ({t}) -> {t}\n'
        f'  %2 = "migraphx.mul"(%1, %y) : ({t}, {t}) -> {t}\n'
        f"  return %2 : {t}\n}}\n"
    )
    ran = driver("verify", "--cpu", "--no-cache", tmp_path / "m.mlir", "-r", "--minimal", small)
    assert ran.status == 1
    line = f"Wrote: {small}, which fails by itself: mgx-driver verify {small} --cpu"
    assert line in ran.lines
    assert operators(small) == ["relu"]
    assert driver("verify", "--cpu", "--no-cache", small).status == 1


@pytest.mark.usefixtures("broken_passes")
def test_a_pass_of_the_target_that_spares_what_is_looked_at(
    driver: Driver, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # with every result an output, relu has two uses and the pass leaves it alone
    broken = "break_lone_relu"
    monkeypatch.setitem(pipelines.PIPELINES, "cpu", lambda o: (broken, *pipelines.cpu(o)))
    status, found = report(driver, models / "mnist.onnx", "-i")
    assert status == 1
    assert verdicts(found) == {}
    assert verdicts(found, "kernels") == {}
    assert found["wrong_pass"] == "break_lone_relu"


@pytest.fixture
def broken_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that give only a relu are wrong: with every result given back there are none."""
    from mgx_mlir.passes.lowering.module import ModuleLowering

    lower, scalar = ModuleLowering._kernel, OPS["relu"].scalar

    def wrong(self: Any, op: Any) -> None:
        with monkeypatch.context() as m:
            if len(op.results) == 1:
                m.setattr(OPS["relu"], "scalar", staticmethod(lambda b, x: b.neg(scalar(b, x))))
            lower(self, op)

    monkeypatch.setattr(ModuleLowering, "_kernel", wrong)


@pytest.mark.usefixtures("broken_kernel")
def test_a_kernel_that_is_lowered_wrong(driver: Driver, models: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.mxr"
    ran = driver("verify", "--cpu", "--no-cache", models / "mnist.onnx", "-b", "--minimal", small)
    assert ran.status == 1
    assert "3 kernels in one run: 1 wrong by itself, 2 wrong because of their operands" in ran.lines
    line = next(line for line in ran.lines if line.startswith("Failure starts at: "))
    assert f"@{line.removeprefix('Failure starts at: ')} = cpu::dot_add_relu(" in ran.out
    assert operators(small)[-3:] == ["dot", "add", "relu"]
    assert driver("verify", "--cpu", "--no-cache", small).status == 1


def test_where_not_all_can_be_given_back(
    driver: Driver, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(case: Case) -> None:
        raise CompileError("too many results")

    monkeypatch.setattr(Case, "instructions", refuse)
    ran = driver("verify", "--cpu", models / "mnist.onnx", "-i")
    assert ran.status == 0
    assert "3 kernels in one run: 3 right" in ran.lines
    assert any(
        "cannot build the program" in line and line.endswith("too many results")
        for line in ran.errors
    )


def test_in_halves(driver: Driver, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SteppedRun.__init__, "__kwdefaults__", {"budget": 600})
    ran = driver("verify", "--cpu", models / "mnist.onnx", "-i")
    assert ran.status == 0
    assert "6 instructions in 4 runs: 6 right" in ran.lines


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-i", "--ort"), "expected one of --per-instruction and --ort, got both"),
        (("-i", "-b"), "expected one of --per-instruction, --bisect, --reduce, got"),
        (("-r", "--against", "x.onnx"), "expected one of --reduce and --against, got both"),
        (("--minimal", "x.mxr"), "option '--minimal' is for --bisect and --reduce"),
    ],
)
def test_what_does_not_go_together(
    driver: Driver, models: Path, options: tuple[str, ...], message: str
) -> None:
    ran = driver("verify", "--cpu", models / "mnist.onnx", *options)
    assert (ran.status, ran.out) == (2, "")
    assert message in ran.err


def test_findings_with_given_inputs(driver: Driver, models: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.full((1, 28, 28), 0.5, np.float32))
    status, found = report(
        driver, models / "mnist.onnx", "-i", "--load-arg", "@x", tmp_path / "x.npy"
    )
    assert (status, found["passed"]) == (0, True)
