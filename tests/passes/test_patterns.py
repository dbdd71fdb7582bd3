"""Every rewrite alone, on random programs round its root: values are kept, it fires, it ends.

pytest tests/passes/test_patterns.py -k find_transpose
MGX_DRAWS=200 pytest tests/passes/test_patterns.py -k find_transpose     # search harder
"""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest
from evaluate import CONTEXT, assert_same
from pattern_graphs import Case, Graph, load

from mgx_mlir.core.ir import ir
from mgx_mlir.core.operand_segments import asm
from mgx_mlir.passes import PASSES
from mgx_mlir.programs.interpreter import Interpreter
from mgx_mlir.rewrite.passes import verify_module
from mgx_mlir.rewrite.pattern import Pattern, PatternSet, disabled, observing
from mgx_mlir.rewrite.registry import PatternPass, rewrites_of

DRAWS = int(os.environ.get("MGX_DRAWS", "12"))
CASES = load()


def assert_identical(before: np.ndarray, after: np.ndarray) -> None:
    """Bit for bit, but for the payload of NaN."""
    assert (before.shape, before.dtype) == (after.shape, after.dtype)
    whole = before.dtype.kind in "biu"
    nan = np.zeros(before.shape, bool) if whole else np.isnan(before.astype(np.float64))
    if not whole:
        np.testing.assert_array_equal(nan, np.isnan(after.astype(np.float64)))
    bits = f"u{before.dtype.itemsize}"
    a, b = (np.ascontiguousarray(x).view(bits).reshape(x.shape)[~nan] for x in (before, after))
    if not np.array_equal(a, b):
        np.testing.assert_array_equal(before[~nan], after[~nan])  # says where
        raise AssertionError("zeros of another sign")


def apply(c: Case, module: ir.Module) -> bool:
    """Run the one pattern or rule (or the pass itself); whether it did anything."""
    options = PASSES[c.pass_name](**c.options)
    operation = module.operation
    if c.name == c.pass_name:
        before = asm(operation)
        options.run(operation)
        return asm(operation) != before
    (found,) = [r for r in rewrites_of(PASSES[c.pass_name]) if r.name == c.name]
    others = {r.name for r in rewrites_of(PASSES[c.pass_name])} - {c.name, *c.beside}
    with observing() as seen, disabled(others):
        if isinstance(found, Pattern):
            PatternSet([found]).apply(operation, options)
        else:
            options.run(operation)
    return seen.counts[c.name] > 0


def check(c: Case, seed: int) -> bool:
    """One draw; whether the rewrite did something."""
    g = Graph(c.draw, seed, CONTEXT)
    verify_module(g.module.operation)
    trials = [g.inputs]
    if c.special and seed % 4 == 3:
        trials.append(g.hostile_inputs())
    before = asm(g.module.operation)
    try:
        want = [Interpreter(g.module, g.store).run(inputs) for inputs in trials]
        with CONTEXT, ir.Location.unknown(), g.store.active(), np.errstate(all="ignore"):
            fired = apply(c, g.module)
            verify_module(g.module.operation)
        for inputs, expected in zip(trials, want, strict=True):
            got = Interpreter(g.module, g.store).run(inputs)
            if c.rtol:
                assert_same(expected, got, c.rtol)
            else:
                for a, b in zip(expected, got, strict=True):
                    assert_identical(a, b)
        after = asm(g.module.operation)
        with CONTEXT, ir.Location.unknown(), g.store.active(), np.errstate(all="ignore"):
            assert not apply(c, g.module), "applied once more, it changes something again"
        assert asm(g.module.operation) == after
    except Exception as e:
        now = asm(g.module.operation)
        raise AssertionError(f"{c.id}, draw {seed}: {e}\n\nbefore:\n{before}\nnow:\n{now}") from e
    return fired


@pytest.mark.parametrize("c", CASES, ids=lambda c: c.id)
def test_the_rewrite_keeps_the_values(c: Case) -> None:
    draws, fired = DRAWS, sum(check(c, seed) for seed in range(DRAWS))
    if fired < c.fires * DRAWS:  # few draws say little of the share: draw more
        draws = 6 * DRAWS
        fired += sum(check(c, seed) for seed in range(DRAWS, draws))
    assert fired >= c.fires * draws, f"applied in {fired} of {draws} draws"


def neg_away(op, rw):
    """neg(x) -> x"""
    return op.input


def zero_away(op, rw):
    """add(x, 0) -> x"""
    return op.a


@pytest.mark.parametrize(
    ("wrong", "root", "draw"),
    [
        (neg_away, "neg", lambda g: g.b.op("neg", g.argument((3,)))),
        (zero_away, "add", lambda g: g.b.op("add", g.argument((9,)), g.constant((9,), value=0))),
    ],
)
def test_a_wrong_rewrite_is_found(wrong, root, draw, monkeypatch) -> None:
    class Wrong(PatternPass):
        patterns = (Pattern(wrong.__name__, (root,), 1, wrong),)

    monkeypatch.setattr(sys.modules[__name__], "PASSES", {"wrong": Wrong})
    c = Case(wrong.__name__, "wrong", draw, 0.0, 0.5, True)
    with pytest.raises(AssertionError, match=rf"{wrong.__name__}.*, draw \d"):
        test_the_rewrite_keeps_the_values(c)


@pytest.mark.parametrize("name", PASSES)
def test_every_rewrite_has_a_case(name: str) -> None:
    rewrites = {r.name for r in rewrites_of(PASSES[name])}
    named = {c.name for c in CASES if c.pass_name == name}
    assert not rewrites - named, f"no case for {', '.join(sorted(rewrites - named))}"
    assert not named - rewrites - {name}, "cases of no pattern"


def test_every_file_of_cases_is_named_after_a_pass() -> None:
    stray = {c.pass_name for c in CASES} - set(PASSES)
    assert not stray, f"no pass is named {', '.join(sorted(stray))}"
