"""Checks of values in torch programs: assertions, and indices that torch raises for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import mgx_mlir
import mgx_mlir.torch
from mgx_mlir.core.errors import RunError, UnsupportedModel
from tests.integrations.torch.test_sizes import Of

pytestmark = pytest.mark.slow
F, aten = torch.nn.functional, torch.ops.aten
TABLE = torch.arange(12.0).reshape(4, 3)
ROWS = torch.ones(2, 3)


def compiled(function: Callable[..., Any], target: str = "ref") -> Callable[..., Any]:
    torch._dynamo.reset()
    return torch.compile(function, backend="mgx", fullgraph=True, options={"target": target})


def ahead(function: Callable[..., Any], *given: Tensor, target: str = "ref") -> Any:
    return mgx_mlir.torch.compile(torch.export.export(Of(function), given), target=target)


def asynchronous(x: Tensor) -> Tensor:
    aten._assert_async((x > 0).all(), "all above 0")
    return x * 2


def of_a_number(x: Tensor) -> Tensor:
    n = x.sum().to(torch.int64).item()
    torch._check(n < 9)
    return x * 2


def of_a_size(x: Tensor) -> Tensor:
    chosen = x[x > 0]
    torch._check(chosen.shape[0] >= 3)
    return chosen * 2


def of_another_size(x: Tensor) -> Tensor:
    chosen = x[x > 5]
    torch._check(chosen.shape[0] <= 1)
    return chosen * 2


ASSERTIONS = [
    (asynchronous, "the model's assertion to hold: all above 0"),
    (of_a_number, "the model's assertion to hold: u"),
    (of_a_size, "the model's assertion to hold: u"),
    (of_another_size, "the model's assertion to hold: u"),
]
RIGHT = torch.tensor([1.0, 2.0, 3.0])
WRONG = {asynchronous: -1.0, of_a_number: 30.0, of_a_size: -1.0, of_another_size: 6.0}


@pytest.mark.parametrize(("function", "text"), ASSERTIONS)
@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_an_assertion_about_values_is_kept(function: Any, text: str, target: str) -> None:
    wrong = torch.tensor([1.0, WRONG[function], 7.0])
    with torch.no_grad():
        run = compiled(function, target)
        torch.testing.assert_close(run(RIGHT), function(RIGHT))
        with pytest.raises(RunError) as e:
            run(wrong)
        torch.testing.assert_close(run(RIGHT), function(RIGHT))
    assert text in str(e.value)


# torch.export makes a bound of 1 a bound of 2
@pytest.mark.parametrize(("function", "text"), ASSERTIONS[:-1])
def test_a_file_keeps_assertions(function: Any, text: str, tmp_path: Path) -> None:
    run = ahead(function, RIGHT)
    torch.testing.assert_close(run(RIGHT), function(RIGHT))
    run.save(tmp_path / "model.mxr")
    loaded = mgx_mlir.load(tmp_path / "model.mxr")
    for call in (lambda x: run(x), lambda x: loaded.run([x.numpy()])):
        with pytest.raises(RunError) as e:
            call(torch.tensor([1.0, WRONG[function], 7.0]))
        assert text in str(e.value)


def test_a_program_that_is_given_stays_as_it_was() -> None:
    made = torch.export.export(Of(asynchronous), (RIGHT,))
    before = made.graph_module.code
    for _ in range(2):
        mgx_mlir.compile(made, target="ref")
    assert made.graph_module.code == before


def test_an_assertion_without_a_tensor_as_result_is_refused() -> None:
    def function(x: Tensor) -> int:
        aten._assert_async((x > 0).all(), "all above 0")
        return x.shape[0]

    with pytest.raises(UnsupportedModel, match="asserts 'all above 0', and no result of it is a"):
        ahead(function, RIGHT)


def test_an_assertion_beside_a_view_alone_is_kept() -> None:
    def function(x: Tensor) -> Tensor:
        aten._assert_async((x > 0).all(), "all above 0")
        return x[1:]

    with torch.no_grad():
        run = compiled(function)
        assert run(RIGHT).tolist() == [2.0, 3.0]
        with pytest.raises(RunError, match="all above 0"):
            run(-RIGHT)


def test_an_assertion_of_a_branch_is_kept() -> None:
    def checked(x: Tensor) -> Tensor:
        aten._assert_async((x > 0).all(), "all above 0")
        return x * 2

    def function(x: Tensor) -> Tensor:
        return torch.cond(x.sum() < 5, checked, lambda x: x * 3, (x,))

    run = ahead(function, RIGHT)
    assert run(RIGHT).tolist() == [3.0, 6.0, 9.0]
    assert run(RIGHT / 3).tolist() == pytest.approx([2 / 3, 4 / 3, 2.0])
    with pytest.raises(RunError, match="all above 0"):
        run(-RIGHT)


# function of indices, right ones, and ones for which torch raises
INDEXED: list[tuple[Callable[[Tensor], Tensor], list[Any], list[list[Any]]]] = [
    (lambda i: F.embedding(i, TABLE), [0, 3], [[0, -1], [4, 0]]),
    (lambda i: F.embedding_bag(i, TABLE, torch.tensor([0, 1])), [0, 3], [[0, -1], [4, 0]]),
    (lambda i: torch.gather(TABLE, 0, i), [[0, 3, 2]], [[[0, -1, 2]], [[0, 4, 2]]]),
    (lambda i: torch.index_select(TABLE, 0, i), [0, 3], [[0, -1], [4, 0]]),
    (lambda i: torch.index_select(TABLE, 1, i), [0, 2], [[0, -1], [3, 0]]),
    (lambda i: TABLE[i], [0, -4], [[0, -5], [4, 0]]),
    (lambda i: TABLE[:, i], [0, -3], [[0, -4], [3, 0]]),
    (lambda i: TABLE.index_put((i,), ROWS), [0, -4], [[0, -5], [4, 0]]),
    (lambda i: TABLE.clone().index_add_(0, i, ROWS), [0, 3], [[0, -1], [4, 0]]),
    (lambda i: torch.index_copy(TABLE, 0, i, ROWS), [0, 3], [[0, -1], [4, 0]]),
    (lambda i: torch.index_fill(TABLE, 0, i, 7.0), [0, -4], [[0, -5], [4, 0]]),
    (lambda i: torch.index_reduce(TABLE, 0, i, ROWS, "prod"), [0, 3], [[0, -1], [4, 0]]),
    (lambda i: torch.scatter(TABLE, 0, i, ROWS), [[0, 3, 2]], [[[0, -1, 2]], [[0, 4, 2]]]),
    (lambda i: torch.scatter(TABLE, 0, i, 5.0), [[0, 3, 2]], [[[0, -1, 2]], [[0, 4, 2]]]),
    (lambda i: TABLE.clone().scatter_add_(0, i, ROWS), [[0, 3, 2]], [[[0, -1, 2]], [[0, 4, 2]]]),
    (lambda i: torch.scatter_reduce(TABLE, 0, i, ROWS, "amax"), [[0, 3, 2]], [[[0, -1, 2]]]),
    (lambda i: F.one_hot(i, 4), [0, 3], [[0, -1], [4, 0]]),
    (lambda i: F.multi_margin_loss(TABLE[:2], i), [0, 2], [[0, -1], [3, 0]]),
    (lambda i: F.cross_entropy(TABLE[:2], i), [0, 2], [[0, -1], [3, 0]]),
    (lambda i: torch.bincount(i, minlength=4), [0, 2], [[0, -1]]),
    (lambda i: torch.repeat_interleave(TABLE[:2], i, dim=0), [0, 2], [[0, -1]]),
]  # fmt: skip


@pytest.mark.parametrize(("function", "right", "wrong"), INDEXED)
@pytest.mark.parametrize("computed", [False, True])
def test_indices_that_torch_raises_for_are_errors(
    function: Callable[[Tensor], Tensor], right: list[Any], wrong: list[list[Any]], computed: bool
) -> None:
    def whole(i: Tensor) -> Tensor:
        return function(i * 3 - 2 * i if computed else i)

    with torch.no_grad():
        run = compiled(whole)
        torch.testing.assert_close(run(torch.tensor(right)), whole(torch.tensor(right)))
        for values in wrong:
            i = torch.tensor(values)
            with pytest.raises((IndexError, RuntimeError)):
                whole(i)
            with pytest.raises(RunError, match="expected"):
                run(i)


def test_positions_beyond_a_table_are_errors() -> None:
    """A sequence longer than a table of positions: no number of the input is wrong."""

    def function(x: Tensor) -> Tensor:
        return x + F.embedding(torch.arange(x.shape[0]), TABLE[:, 0:1])[:, 0]

    dims = ({0: torch.export.Dim("n", min=2, max=64)},)
    made = torch.export.export(Of(function), (torch.ones(3),), dynamic_shapes=(dims,))
    for target in ("ref", "cpu"):
        run = mgx_mlir.torch.compile(made, target=target)
        assert run(torch.ones(4)).tolist() == [1.0, 4.0, 7.0, 10.0]
        with pytest.raises(RunError, match=r"aten.embedding"):
            run(torch.ones(5))


def test_a_bound_that_a_trace_gets_wrong_is_none_of_the_model_s() -> None:
    """torch states the mask's number of elements; what is selected from is larger."""

    def function(x: Tensor) -> Tensor:
        return torch.masked_select(x, torch.ones(10, 10, dtype=torch.bool))

    x = torch.randn(10, 1, 10)
    torch.testing.assert_close(ahead(function, x)(x), function(x))


def test_gradients_and_programs_without_tensors_are_refused_by_name() -> None:
    def gradient(x: Tensor) -> Tensor:
        return torch.func.grad(lambda y: (y**3).sum())(x)

    with pytest.raises(UnsupportedModel, match=r"takes a gradient \(torch.func.grad\): compute it"):
        ahead(gradient, RIGHT)
    with pytest.raises(UnsupportedModel, match="has no tensors, so there is nothing to compute"):
        ahead(lambda: torch.broadcast_shapes((5, 1), (5,)))
