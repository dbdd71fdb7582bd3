"""Moves at branches: lists put in order keep what is meant, and so does compiled code."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from mgx_mlir import compile as compile_model
from mgx_mlir.targets.branch_moves import Move, Register, ordered
from tests.support.models import model_of, node, ports, tensors
from tests.support.oracle import ort_session

Moves = tuple[Move, ...]


def pieces(widths: list[tuple[int, int, int]]) -> Moves:
    """Moves of (source, destination, words) as moves of 32 bits."""
    return tuple((("i", s + k), ("i", d + k)) for s, d, n in widths for k in range(n))


@st.composite
def meant_moves(draw: st.DrawFn) -> Moves:
    """Moves of values of one and two registers, in any order, to different registers."""
    found: list[tuple[int, int, int]] = []
    free = draw(st.permutations(range(8)))
    for pair in free:
        if draw(st.booleans()):
            found.append((2 * draw(st.integers(0, 7)), 2 * pair, 2))
        else:
            found += [
                (draw(st.integers(0, 15)), 2 * pair + k, 1) for k in range(2) if draw(st.booleans())
            ]
    return pieces(draw(st.permutations(found)))


def after(moves: Moves) -> dict[Register, Register]:
    """Return the contents of the registers after moves in sequence."""
    value: dict[Register, Register] = {}
    for source, destination in moves:
        value[destination] = value.get(source, source)
    return value


@given(meant_moves())
def test_an_order_does_what_is_meant(moves: Moves) -> None:
    try:
        found = ordered(moves, frozenset())
    except ValueError:
        # only moves in a circle have no order
        left = {d: s for s, d in moves if s != d}
        while ready := [d for d in left if d not in left.values()]:
            for d in ready:
                del left[d]
        assert left
        return
    assert len(found) == len(moves)
    assert {d: after(found).get(d, d) for _, d in moves} == {d: s for s, d in moves}


@given(meant_moves(), st.randoms(use_true_random=False))
def test_scratch_registers_hold_a_value_on_its_way(moves: Moves, random) -> None:
    """Some moves through scratch registers, first and last, as the compiler writes them."""
    through = [m for m in moves if random.random() < 0.4 and m[0] != m[1]]
    spare = [("i", 100 + n) for n in range(len(through))]
    given_list = (
        *[(s, k) for (s, _), k in zip(through, spare, strict=True)],
        *[m for m in moves if m not in through],
        *[(k, d) for (_, d), k in zip(through, spare, strict=True)],
    )
    try:
        found = ordered(given_list, frozenset(spare))
    except ValueError:
        assert len(through) < 9
        return
    assert len(found) == len(given_list)
    assert {d: after(found).get(d, d) for _, d in moves} == {d: s for s, d in moves}


def test_an_order_that_is_right_is_kept() -> None:
    swap = pieces([(0, 9, 1), (1, 0, 1), (9, 1, 1)])
    assert ordered(swap, frozenset({("i", 9)})) == swap
    shift = pieces([(2, 4, 2), (0, 2, 2)])
    assert ordered(shift, frozenset()) == shift


def test_a_circle_of_both_widths_has_no_order() -> None:
    with pytest.raises(ValueError, match="cycle"):
        ordered(pieces([(0, 2, 2), (2, 0, 1), (3, 1, 1)]), frozenset())


def branches_of_convolutions(channels: int) -> onnx.ModelProto:
    """An If whose branches are convolutions with stride 2 over a dynamic length."""
    rng = np.random.default_rng(0)

    def branch(name: str, inputs: int) -> onnx.GraphProto:
        x, nodes, weights = "x", [], {}
        if inputs > 2:
            nodes.append(node("Concat", "x x", x := f"{name}c", axis=1))
        for i, c in enumerate((inputs, channels)):
            weights[f"{name}w{i}"] = 0.3 * rng.standard_normal((channels, c, 3))
            nodes.append(node("Conv", f"{x} {name}w{i}", f"{name}v{i}", strides=[2], pads=[1, 1]))
            nodes.append(node("Relu", f"{name}v{i}", x := f"{name}r{i}"))
        return helper.make_graph(nodes, name, [], ports(x), tensors(weights))

    choice = node("If", "k", "o", then_branch=branch("t", 2), else_branch=branch("e", 4))
    inputs = {"k": (TensorProto.BOOL, []), "x": ["b", 2, "n"]}
    return model_of([choice], inputs, "o", opset=18)


def test_branches_over_a_dynamic_length() -> None:
    """The size of a result was 0: it was written over whatever came behind.

    Whether the compiler orders these moves wrongly depends on how it numbers registers;
    tests/test_contract.py has a program where it does.
    """
    model = branches_of_convolutions(64).SerializeToString()
    compiled = compile_model(model, "cpu", threads=1, cache=False)
    session = ort_session(model)
    for b, n in ((1, 5), (2, 33), (3, 8)):
        x = np.random.default_rng(n).standard_normal((b, 2, n)).astype(np.float32)
        for k in (np.array(True), np.array(False)):
            (got,), (want,) = compiled.run(k=k, x=x), session.run(None, {"k": k, "x": x})
            np.testing.assert_allclose(got, want, atol=2e-5)
