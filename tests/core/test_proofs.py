"""Expressions in sizes against brute force: what is proved holds, and what must be proved is."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgx_mlir.core.errors import ShapeError
from mgx_mlir.symbolic.expressions import Int, value_at
from mgx_mlir.symbolic.extent_rules import broadcast
from mgx_mlir.symbolic.extents import Runs, UndecidedError
from mgx_mlir.symbolic.proofs import Prover
from mgx_mlir.symbolic.space import Space

SIZES = ("a", "b", "c")
RANGES = {"a": (0, None), "b": (1, None), "c": (2, 6)}
TRIED = {"a": range(0, 13), "b": (1, 2, 3, 5, 8, 9, 12), "c": range(2, 7)}
POINTS = [dict(zip(SIZES, v, strict=True)) for v in itertools.product(*TRIED.values())]

Numbers = Callable[[dict[str, int]], "int | None"]  # the value at a point; None: a division by 0


class Pair:
    """An expression, and the same computed with numbers."""

    def __init__(self, e: Int, number: Numbers) -> None:
        self.e, self.number = e, number


def _with(f: Callable[..., int | None], *parts: Pair) -> Numbers:
    def number(point: dict[str, int]) -> int | None:
        values = [p.number(point) for p in parts]
        return None if any(v is None for v in values) else f(*values)

    return number


def _operations(s: Space) -> dict[str, tuple[int, Callable[..., Int], Callable[..., int | None]]]:
    return {
        "add": (2, lambda x, y: x + y, lambda x, y: x + y),
        "sub": (2, lambda x, y: x - y, lambda x, y: x - y),
        "mul": (2, lambda x, y: x * y, lambda x, y: x * y),
        "min": (2, s.minimum, min),
        "max": (2, s.maximum, max),
        "floordiv": (2, s.floordiv, lambda x, y: x // y if y else None),
        "mod": (2, lambda x, y: x - y * s.floordiv(x, y), lambda x, y: x % y if y else None),
        "pos": (1, s.pos, lambda x: max(x, 0)),
        "not_less": (2, s.not_less, lambda x, y: int(x >= y)),
        "equal": (2, s.equal, lambda x, y: int(x == y)),
        "truth": (1, s.truth, lambda x: int(x != 0)),
        "select": (
            3,
            lambda c, x, y: s.select(s.truth(c), x, y),
            lambda c, x, y: x if c else y,
        ),
    }


@st.composite
def expressions(draw: Any) -> tuple[Prover, list[Pair]]:
    """A prover and what a few random operations made, the sizes and constants first."""
    prover = Prover()
    space = prover.space
    made = [Pair(space.size(n, *RANGES[n]), lambda p, n=n: p[n]) for n in SIZES]
    made += [Pair(k, lambda p, k=k: k) for k in (0, 1, 2, 3, 8, -1, -4)]
    table = _operations(space)
    for name in draw(st.lists(st.sampled_from(sorted(table)), min_size=1, max_size=7)):
        count, symbolic, number = table[name]
        parts = [made[draw(st.integers(0, len(made) - 1))] for _ in range(count)]
        made.append(Pair(symbolic(*(p.e for p in parts)), _with(number, *parts)))
    return prover, made


def at(e: Int, point: dict[str, int]) -> int | None:
    return value_at(e, lambda a: point[str(a.arguments[0])])


def check_forms(prover: Prover, made: list[Pair]) -> None:
    """Each form has the value that its operations give, and its bounds hold it."""
    for pair in made[-4:]:
        low, high = prover.range_of(pair.e)
        for point in POINTS:
            want = pair.number(point)
            if want is None:
                continue
            got = at(pair.e, point)
            # a form may have lost a division by 0, or keep one that its value does not need
            assert got is None or got == want, (str(pair.e), point)
            assert low is None or low <= want
            assert high is None or want <= high


def check_proofs(prover: Prover, made: list[Pair]) -> None:
    """Facts that are proved of the newest expressions hold at every point."""
    for x, y in itertools.combinations(made[-5:], 2):
        values = [(x.number(p), y.number(p)) for p in POINTS]
        values = [v for v in values if None not in v]
        if prover.are_equal(x.e, y.e):
            assert all(u == v for u, v in values), (str(x.e), str(y.e))
        if prover.is_nonnegative(x.e - y.e):
            assert all(u >= v for u, v in values), (str(x.e), str(y.e))


@given(expressions())
@settings(max_examples=120, deadline=None)
def test_nothing_false_is_proved(drawn: tuple[Prover, list[Pair]]) -> None:
    check_forms(*drawn)
    check_proofs(*drawn)


@pytest.mark.slow
@given(expressions())
@settings(max_examples=20_000, deadline=None)
def test_nothing_false_is_proved_of_many(drawn: tuple[Prover, list[Pair]]) -> None:
    check_forms(*drawn)
    check_proofs(*drawn)


# ---- what must be proved -------------------------------------------------------------------------

EQUAL: dict[str, Callable[..., tuple[Int, Int]]] = {
    "the order of sums": lambda s, a, b, c: (a + b * c, c * b + a),
    "a factor divides": lambda s, a, b, c: (s.floordiv(a * b * 64, b * 8), a * 8),
    "a sum divides": lambda s, a, b, c: (s.floordiv((a + b) * c * 4, a + b), c * 4),
    "a division of a division": lambda s, a, b, c: (
        s.floordiv(s.floordiv(a, 2), 3),
        s.floordiv(a, 6),
    ),
    "halves make the whole": lambda s, a, b, c: (s.floordiv(a + 1, 2) + s.floordiv(a, 2), a),
    "rounding up in two ways": lambda s, a, b, c: (
        -s.floordiv(-a, 2),
        s.floordiv(a + 1, 2),
    ),
    "quotient and remainder": lambda s, a, b, c: (
        s.floordiv(a, b) * b + (a - b * s.floordiv(a, b)),
        a,
    ),
    "a clamp of a clamp": lambda s, a, b, c: (s.minimum(s.minimum(a, 8), 8), s.minimum(a, 8)),
    "clamps in any order": lambda s, a, b, c: (
        s.minimum(a, s.minimum(b, 8)),
        s.minimum(s.minimum(8, b), a),
    ),
    "min and max share": lambda s, a, b, c: (s.minimum(a, b) + s.maximum(a, b), a + b),
    "a window is a clamp": lambda s, a, b, c: (a - s.pos(a - 8), s.minimum(8, a)),
    "a select is a clamp": lambda s, a, b, c: (
        s.select(1 - s.not_less(a, 8), a, 8),
        s.minimum(a, 8),
    ),
    "a clamp above its range": lambda s, a, b, c: (s.minimum(c, 6), c),
    "the largest integer": lambda s, a, b, c: (s.minimum(a, 2**63 - 1), a),
    "twice a half of twice": lambda s, a, b, c: (s.floordiv(a * 2, 2), a),
    "a broadcast again": lambda s, a, b, c: (
        broadcast(s, [b, broadcast(s, [a, b])]),
        broadcast(s, [a, b]),
    ),
    "a broadcast of three again": lambda s, a, b, c: (
        broadcast(s, [broadcast(s, [a, c, b]), c, a, broadcast(s, [c, b])]),
        broadcast(s, [a, c, b]),
    ),
    "a choice that is a broadcast": lambda s, a, b, c: (
        s.select(s.equal(broadcast(s, [a, b]), 1), b, broadcast(s, [a, b])),
        broadcast(s, [a, b]),
    ),
    "a truth of a truth": lambda s, a, b, c: (s.truth(s.equal(a, 3)), s.equal(a, 3)),
}
NONNEGATIVE: dict[str, Callable[..., Int]] = {
    "a clamp is below": lambda s, a, b, c: 8 - s.minimum(a, 8),
    "and below what it clamps": lambda s, a, b, c: a - s.minimum(a, 8),
    "a clamp times a size": lambda s, a, b, c: 8 * b - b * s.minimum(a, 8),
    "clamps of both": lambda s, a, b, c: a * b - s.minimum(a, 4) * s.minimum(b, 4),
    "a part": lambda s, a, b, c: a - s.floordiv(a * 3, 4),
    "a product of what is at least 1": lambda s, a, b, c: a * b * c - 2 * a,
    "a range": lambda s, a, b, c: (6 - c) * a,
}


def _sizes() -> tuple[Prover, list[Int]]:
    prover = Prover()
    return prover, [prover.space.size(n, *RANGES[n]) for n in SIZES]


@pytest.mark.parametrize("name", EQUAL)
def test_must_be_equal(name: str) -> None:
    prover, sizes = _sizes()
    assert prover.are_equal(*EQUAL[name](prover.space, *sizes))


@pytest.mark.parametrize("name", NONNEGATIVE)
def test_must_not_be_negative(name: str) -> None:
    prover, sizes = _sizes()
    assert prover.is_nonnegative(NONNEGATIVE[name](prover.space, *sizes))


def test_a_symbol_of_other_places_is_another() -> None:
    prover, (a, b, _c) = _sizes()
    for x, y in ((a, b), (prover.space.minimum(a, 8), 8), (prover.space.floordiv(a, 2) * 2, a)):
        assert not prover.are_equal(x, y)


def test_forms_are_one_object() -> None:
    prover, (a, b, _c) = _sizes()
    s = prover.space
    assert s.minimum(a, 8) is s.minimum(8, a)
    assert (a + b) * (a - b) is a * a - b * b  # type: ignore[operator]
    assert s.floordiv(a * 6 + 4, 4) is s.floordiv(a * 3, 2) + 1


def test_work_is_bounded() -> None:
    """A hard expression ends unproved, soon."""
    prover = Prover()
    s = prover.space
    x: Int = 0
    for i in range(60):
        n = s.size(f"n{i}")
        x = s.maximum(s.floordiv(x * 3 + n, i + 2), s.minimum(n, x + i))
    assert isinstance(prover.is_nonnegative(x - 1), bool)


def test_text_is_bounded() -> None:
    """Parts that are shared are written once for each reader: the text would double each time."""
    s = Prover().space
    x: Int = s.size("n")
    for i in range(64):
        x = s.floordiv(x * (i + 2) + 1, 3) + s.pos(x - 5)
    assert "n" in str(x)
    assert len(str(x)) < 400


# ---- code that computes with extents -------------------------------------------------------------


def _run(prover: Prover, code: Callable[..., int], *sizes: Int) -> Int | None:
    runs = Runs(prover)
    found = runs.rows(lambda: [(code(*runs.extents(sizes)),)])
    return found and found[0][0]


def test_branches_of_code_are_joined() -> None:
    prover, (a, b, _c) = _sizes()
    s = prover.space
    assert _run(prover, lambda x, y: min(x, 8), a, b) is s.minimum(a, 8)
    assert _run(prover, lambda x, y: x // 2 if x > y else 0, a, a + 1) == 0

    def agree(x: int, y: int) -> int:
        if x != y:
            raise ShapeError("they differ")
        return x

    assert _run(prover, agree, a, b) in (a, b)
    with pytest.raises(UndecidedError):
        _run(prover, lambda x, y: len(range(x)), a, b)


def test_answers_decide_later_questions() -> None:
    prover, (a, _b, _c) = _sizes()

    def nested(x: int) -> int:
        if x < 4:
            return 1 if x > 9 else 2  # x > 9 has one answer here
        return 2

    assert _run(prover, nested, a) == 2
