"""Kernel rules: each has a name, a lit file that needs it, and a match that builds nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lit_files import LIT, run, run_lines

import mgx_mlir
from mgx_mlir.core.ir import ir
from mgx_mlir.passes.lowering import lower, select
from mgx_mlir.passes.lowering.cpu import rules as cpu
from mgx_mlir.passes.lowering.gpu import rules as gpu
from mgx_mlir.passes.lowering.gpu.matmul import compilation_info
from mgx_mlir.passes.lowering.module import ModuleLowering
from mgx_mlir.passes.lowering.select import KernelRule, Refusal, rules_of

RULES = [(target, rule.name) for target in ("cpu", "gpu") for rule in rules_of(target)]
STORED = Path(__file__).parents[1] / "families" / "stored"
# index arithmetic and checks of sizes, which a match may leave behind
SCALARS = ("arith.", "tensor.dim", "cf.assert", "util.optimization_barrier", "hal.buffer_view")


def ids(case: tuple[str, str]) -> str:
    return "/".join(case)


@pytest.mark.parametrize("case", RULES, ids=ids)
def test_the_lit_file_of_a_rule_fails_without_it(case: tuple[str, str]) -> None:
    _, rule = case
    file = LIT / "kernel_rules" / f"{rule}.mlir"
    assert file.exists(), f"no lit/kernel_rules/{rule}.mlir"
    assert run_lines(file), f"no `RUN: mgx-opt ... | filecheck ...` in lit/kernel_rules/{rule}.mlir"
    off = run(file, [f"--disable-kernel-rule={rule}"])
    for outcome in off:
        assert outcome.status == 0, f"mgx-opt fails without the rule:\n{outcome.errors}"
    assert not all(o.matches for o in off), f"nothing in it checks that {rule} takes its kernel"


def test_an_unknown_rule_is_named_with_those_there_are() -> None:
    with pytest.raises(mgx_mlir.MgxError, match="unknown kernel rules: matmull") as found:
        select.check_names(["matmul", "matmull"])
    assert "matmul" in str(found.value.notes)


def every_op(block: ir.Block) -> Iterator[str]:
    """The names of all ops in a function, those in regions too."""
    names: list[str] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        names.append(op.name)
        return ir.WalkResult.ADVANCE

    block.owner.operation.walk(visit)
    return iter(names)


class Counting:
    """Rules whose refusals must leave no tensor, dispatch or parameter behind."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.refused: Counter[str] = Counter()
        self.left: list[str] = []
        for module in (cpu, gpu, compilation_info):
            for name in {"KERNELS", "OPS", "VIEWS", "EXPRESSIONS", "ATTENTION", "MATMULS"} & set(
                vars(module)
            ):
                rules = getattr(module, name)
                monkeypatch.setattr(module, name, tuple(map(self.watched, rules)))

    def watched(self, rule: KernelRule) -> KernelRule:
        def match(e: ModuleLowering, site: Any) -> Any:
            before, weights = Counter(every_op(e.entry)), len(e.weights.arrays)
            plan = rule.match(e, site)
            if isinstance(plan, Refusal):
                assert plan.reason, f"{rule.name} refuses without a reason"
                self.refused[rule.name] += 1
                new = Counter(every_op(e.entry)) - before
                built = [n for n in new if not n.startswith(SCALARS)]
                if built or len(e.weights.arrays) > weights:
                    self.left.append(f"{rule.name}: {built}, {plan.reason}")
            return plan

        return replace(rule, match=match)


@pytest.mark.parametrize("target", ["cpu", "gpu"])
@pytest.mark.parametrize(
    "model", ["bert.dynamo.18.dynamic", "yolo.script.17.dynamic", "resnet.qdq.17.dynamic"]
)
def test_a_match_that_refuses_builds_nothing(
    monkeypatch: pytest.MonkeyPatch, model: str, target: str
) -> None:
    counting = Counting(monkeypatch)

    class Lowered(Exception):
        """The lowering is done."""

    def stop(*args: object) -> None:
        lower.lower_to_linalg(*args)  # type: ignore[arg-type]  # as it was called
        raise Lowered

    monkeypatch.setattr("mgx_mlir.compiler.compilation.lower_to_linalg", stop)
    arch = {"arch": "gfx942"} if target == "gpu" else {}
    with pytest.raises(Lowered):
        mgx_mlir.compile(str(STORED / f"{model}.onnx"), target=target, cache=False, **arch)
    assert counting.refused, "no rule refused anything: nothing was tested"
    assert counting.left == []
