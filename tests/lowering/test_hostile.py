"""Inputs that no well-behaved model gives: the host process survives, results are defined."""

from __future__ import annotations

import numpy as np
import pytest

from mgx_mlir.core.errors import RunError
from mgx_mlir.programs.interpreter import Interpreter
from tests.lowering import harness
from tests.lowering.harness import OPS, Case

harness.load_dialect()

EXTREMES = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max, -1, 2**40], np.int64)
BEYOND = np.array([2**64 - 1, 2**63, 0, 7], np.uint64)
X = np.arange(20, dtype=np.float32).reshape(5, 4)


def test_indices_far_out_of_range() -> None:
    cases = []
    for at in (EXTREMES, BEYOND):
        column, rows = at.reshape(4, 1), np.broadcast_to(at, (2, 4)).copy()
        cases += [
            Case(OPS["gather"], (X, at), {"axis": 0}),
            Case(OPS["gather"], (X, at), {"axis": 1}),
            Case(OPS["gather"], (np.zeros((5, 64), np.float32), at), {"axis": 0}),
            Case(OPS["gathernd"], (X, column)),
            Case(OPS["onehot"], (at, None, np.array([0, 1], np.float32)), {"depth": 3}),
            Case(OPS["scatter_none"], (X, rows, X[:2]), {"axis": 0}),
            Case(OPS["scatter_none"], (X, rows, X[:2]), {"axis": 1, "skip_out_of_bounds": True}),
            Case(OPS["scatter_add"], (X, rows, X[:2]), {"axis": 0}),
            Case(OPS["scatternd_none"], (X, column, X[:4])),
        ]
    cases += [d for c in cases if (d := harness.as_dynamic(c))]
    harness.check_cases(cases, batch=100)


@pytest.mark.parametrize("dynamic", [frozenset(), frozenset({0})], ids=["static", "dynamic"])
def test_slice_bounds_far_out_of_range(dynamic: frozenset[int]) -> None:
    cases = []
    for start in EXTREMES:
        for end in EXTREMES:
            starts, ends = (np.array([v], np.int64) for v in (start, end))
            cases.append(Case(OPS["slice"], (X, starts, ends), {"axes": [1]}, dynamic=dynamic))
    harness.check_cases(cases, batch=100)


def test_an_axis_that_is_empty_at_run_time() -> None:
    """Something gathered from nothing is refused, as it is for static dims; nothing is nothing."""
    empty, at = np.zeros((0, 4), np.float32), np.array([0, 1], np.int64)
    case = Case(OPS["gather"], (X, at), {"axis": 0}, dynamic=True)
    program, _, _ = harness.build([case])
    lowered = harness.lower(program)
    with pytest.raises(RunError, match="dim 0 of input 'x0' != 0"):
        harness.execute(lowered, [empty, at])
    assert harness.execute(lowered, [empty, at[:0]])[0].shape == (0, 4)


def test_topk_of_fewer_elements_than_k() -> None:
    case = Case(OPS["topk"], (X, None), {"k": 3, "axis": 1}, dynamic=True)
    program, _, _ = harness.build([case])
    with pytest.raises(RunError, match="3 <= dim 1 of input 'x0', got 2"):
        harness.execute(harness.lower(program), [X[:, :2].copy()])


def test_repeated_runs_of_data_dependent_extents() -> None:
    """Extents read back from the device: results of the right size, also of several at once."""
    from mgx_mlir.runtime.iree_runtime import LoadedModule
    from mgx_mlir.targets.child import IreeCompiler

    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, (64, 3)).astype(np.float32)
    cases = [Case(OPS[n], (x,), dynamic=d) for n in ("nonzero", "unique") for d in (False, True)]
    program, inputs, _ = harness.build(cases)
    lowered = harness.lower(program)
    want = Interpreter(program.module, program.store).run(
        {f"x{i}": a for i, a in enumerate(inputs)}
    )
    vmfb = IreeCompiler(use_worker=False).compile(lowered.bytecode, harness.compile_flags())
    module = LoadedModule(vmfb, inputs=lowered.inputs, outputs=lowered.outputs, device="local-task")
    for _ in range(30):
        for got, expected in zip(module.run(inputs), want, strict=True):
            assert not harness.difference(got, expected)
