"""Every lowered operator on its own examples, against its numpy reference, on the cpu target."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mgx_mlir.core.op import OPS, Op, Pointwise
from tests.lower import harness
from tests.lower.harness import Case

harness.load_dialect()

# Ops whose results need no lowering of their own, or that stand only inside of others.
STRUCTURE = {"literal", "yield", "dimensions_of", "pointwise", "fused_reduce", "group"}
# Dynamic extents of these mean something else than the same extents static: broadcasts take
# dynamic extents to be equal, and a squeeze without axes drops static extents of 1 only.
NOT_DYNAMIC = {"multibroadcast", "broadcast", "squeeze"}
# What a fusion may put into a kernel besides pointwise ops and reductions.
IN_KERNELS = ("slice", "concat", "pad", "reverse", "step", "gather", "softmax", "reduce_sum")
CASES = 24  # examples of one operator in one run
CHUNK = 160  # cases in one compile


def lowered(cls: type[Op]) -> bool:
    """Whether the lowering takes the op by itself."""
    from mgx_mlir.passes.lower import families
    from mgx_mlir.passes.lower.registry import LOWERINGS
    from mgx_mlir.passes.lower.views import VIEWS

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
        own = spread(harness.examples_of(OPS[name]), CASES)
        names, cases = [*names, name], [*cases, *own]
        if len(cases) >= CHUNK:
            yield f"{names[0]}-{names[-1]}", cases
            names, cases = [], []
    if cases:
        yield f"{names[0]}-{names[-1]}", cases


@pytest.mark.parametrize("cases", [pytest.param(c, id=n) for n, c in chunks()])
def test_examples(cases: list[Case]) -> None:
    harness.check_cases(cases, batch=CHUNK * 2)


@pytest.mark.parametrize("part", range(2))
def test_dynamic(part: int) -> None:
    """All operand dims dynamic: some examples of each operator that can be built so."""
    cases = []
    for name in sorted(OPS)[part::2]:
        cls = OPS[name]
        if not lowered(cls) or name in NOT_DYNAMIC:
            continue
        wanted = 1 if issubclass(cls, Pointwise) else 3
        own: list[Case] = []
        for case in spread(harness.examples_of(cls), 8):
            found = harness.as_dynamic(case) if len(own) < wanted else None
            own += [found] if found is not None else []
        cases += own
    harness.check_cases(cases, batch=CHUNK * 2)


def test_inside_kernels() -> None:
    cases = []
    for name in IN_KERNELS:
        found = [harness.in_kernel(c) for c in spread(harness.examples_of(OPS[name]), 6)]
        cases += [c for c in found if c is not None]
    harness.check_cases(cases, batch=CHUNK)
