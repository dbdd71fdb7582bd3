"""Every lowered operator on its own examples, against its numpy reference, on the cpu target.

python -m pytest tests/lowering/test_conformance.py --op slice       # one operator (or a,b)
python -m pytest tests/lowering/test_conformance.py -k slice         # the same
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mgx_mlir.core.op import OPS, Op, Pointwise
from mgx_mlir.rewrite.pipeline import did_you_mean
from tests.lowering import harness
from tests.lowering.harness import Case

harness.load_dialect()

# Ops whose results need no lowering of their own, or that stand only inside of others.
STRUCTURE = {"literal", "yield", "dimensions_of", "pointwise", "fused_reduce", "group"}
# Dynamic extents of these mean something else than the same extents static: broadcasts take
# dynamic extents to be equal, and a squeeze without axes drops static extents of 1 only.
# Steps of recurrent networks are made where the dims of the weights are known; their other dims are
# dynamic in test_vector_recurrent.py.
NOT_DYNAMIC = {
    "multibroadcast", "broadcast", "squeeze", "rnn_steps", "gru_steps", "lstm_steps",
}  # fmt: skip
# Ops that a fusion may put into a kernel besides pointwise ops and reductions.
IN_KERNELS = ("slice", "concat", "pad", "reverse", "step", "gather", "softmax", "reduce_sum")
CASES = 24  # examples of one operator in one run
CHUNK = 160  # cases in one test


def lowered(cls: type[Op]) -> bool:
    """Return whether the lowering takes the op by itself."""
    from mgx_mlir.passes.lowering import families
    from mgx_mlir.passes.lowering.registry import LOWERINGS
    from mgx_mlir.passes.lowering.views import VIEWS

    families.load()
    name = cls.mnemonic
    scalar = getattr(cls, "scalar", None) is not None
    return name not in STRUCTURE and (name in LOWERINGS or name in VIEWS or scalar)


def spread(cases: list[Case], count: int) -> list[Case]:
    """At most `count` of the cases, from all over the list."""
    if len(cases) <= count:
        return cases
    return [cases[i * len(cases) // count] for i in range(count)]


def chunks() -> Iterator[tuple[str, list[Case]]]:
    """Neighbouring operators together, until there are enough for one compile."""
    names: list[str] = []
    cases: list[Case] = []
    for name in sorted(OPS):
        if not lowered(OPS[name]):
            continue
        names, cases = [*names, name], [*cases, *own_cases(name)]
        if len(cases) >= CHUNK:
            yield f"{names[0]}-{names[-1]}", cases
            names, cases = [], []
    if cases:
        yield f"{names[0]}-{names[-1]}", cases


def own_cases(name: str) -> list[Case]:
    """Examples of one operator; those of a pointwise one that differ in values alone are joined."""
    found = harness.examples_of(OPS[name])
    return spread(joined(found) if issubclass(OPS[name], Pointwise) else found, CASES)


def joined(cases: list[Case]) -> list[Case]:
    """Cases of a pointwise operator, one for all elements of equal types and attributes.

    A kernel for each is what a case costs. Scalars and operands of several dims stay as they are.
    """
    groups: dict[object, list[Case]] = {}
    for case in cases:
        arrays = case.arrays()
        alone = len({a.shape for a in arrays}) > 1 or not arrays[0].ndim
        types = tuple(a.dtype for a in arrays)
        groups.setdefault(case if alone else (types, repr(case.attributes)), []).append(case)
    found = []
    for first, *others in groups.values():
        columns = zip(*(case.arrays() for case in (first, *others)), strict=True)
        flat = tuple(np.concatenate([a.ravel() for a in column]) for column in columns)
        found.append(replace(first, operands=flat) if others else first)
    return found


def dynamic_cases(name: str) -> list[Case]:
    """Some examples of an operator that can be built with all dims dynamic."""
    cls = OPS[name]
    if not lowered(cls) or name in NOT_DYNAMIC:
        return []
    wanted = 1 if issubclass(cls, Pointwise) else 3
    own: list[Case] = []
    for case in spread(harness.examples_of(cls), 8):
        found = harness.as_dynamic(case) if len(own) < wanted else None
        own += [found] if found is not None else []
    return own


def kernel_cases(name: str) -> list[Case]:
    """Some examples of an operator inside of a kernel."""
    found = [harness.in_kernel(c) for c in spread(harness.examples_of(OPS[name]), 6)]
    return [c for c in found if c is not None]


def asked(config: Any) -> list[str]:
    """The operators that `--op a,b` or `-k a` names; none: all are run, in few compiles."""
    names = [n for n in (config.getoption("--op") or "").split(",") if n]
    keyword = config.getoption("keyword")
    if keyword in OPS and lowered(OPS[keyword]) and not names:
        return [keyword]  # other keywords select tests of other files
    for name in names:
        if name not in OPS:
            raise pytest.UsageError(
                f"--op: unknown operator '{name}'; {'; '.join(did_you_mean(name, OPS))}"
            )
        if not lowered(OPS[name]):
            raise pytest.UsageError(f"--op: '{name}' has no lowering that it could be run with")
    return names


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A case list for each operator that is asked for, else for each range of operators."""
    names = asked(metafunc.config)
    if "examples" in metafunc.fixturenames:
        few = ((n, own_cases(n)) for n in names)
        every = [pytest.param(c, id=n) for n, c in (few if names else chunks())]
        metafunc.parametrize("examples", every)
    elif "operators" in metafunc.fixturenames:
        halves = [sorted(OPS)[part::2] for part in range(2)]
        ids = names or ["first", "second"]
        metafunc.parametrize("operators", [[n] for n in names] or halves, ids=ids)
    elif "inside" in metafunc.fixturenames:
        if names:
            held = [n for n in names if n in IN_KERNELS]
            metafunc.parametrize("inside", [[n] for n in held], ids=held)
        else:
            metafunc.parametrize("inside", [list(IN_KERNELS)], ids=["all"])


def test_examples(examples: list[Case]) -> None:
    harness.check_cases(examples)


def test_dynamic(operators: list[str]) -> None:
    """All operand dims dynamic: some examples of each operator that can be built so."""
    harness.check_cases([c for n in operators for c in dynamic_cases(n)])


def test_inside_kernels(inside: list[str]) -> None:
    harness.check_cases([c for n in inside for c in kernel_cases(n)])


@pytest.mark.parametrize(
    ("op", "keyword", "names"),
    [
        (None, "", []),
        ("slice", "", ["slice"]),
        ("abs,relu", "", ["abs", "relu"]),
        (None, "slice", ["slice"]),
        (None, "slice or abs", []),
        (None, "yield", []),
    ],
)
def test_operators_that_are_asked_for(op: str | None, keyword: str, names: list[str]) -> None:
    assert asked(Asked(op, keyword)) == names


@pytest.mark.parametrize(
    ("op", "said"), [("slce", "did you mean 'slice'"), ("yield", "has no lowering")]
)
def test_operators_that_cannot_be_asked_for(op: str, said: str) -> None:
    with pytest.raises(pytest.UsageError, match=said):
        asked(Asked(op, ""))


class Asked:
    """The options of a command line."""

    def __init__(self, op: str | None, keyword: str) -> None:
        self.options = {"--op": op, "keyword": keyword}

    def getoption(self, name: str) -> Any:
        return self.options[name]
