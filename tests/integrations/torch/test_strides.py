"""Strides and shared memory of results: those of eager."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mgx_mlir.core.errors import UnsupportedModel
from mgx_mlir.integrations.torch.counters import counters

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _inference() -> Iterator[None]:
    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(0)
    with torch.no_grad():
        yield
    torch._dynamo.reset()


def check(f: Callable[..., Any], args: list[tuple[Tensor, ...]], **how: Any) -> None:
    """Numbers, strides, and which results share memory at which offset."""
    run = torch.compile(f, backend="mgx", fullgraph=True, options={"target": "ref"}, **how)
    for given in args:
        want, got = f(*given), run(*given)
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            assert (g.shape, g.stride()) == (w.shape, w.stride()), i
            torch.testing.assert_close(g, w)
        for (g, w), (g2, w2) in zip(_pairs(got, want), _pairs(got, want)[1:], strict=False):
            if _memory(w) == _memory(w2):
                assert _memory(g) == _memory(g2)
                assert g.storage_offset() - g2.storage_offset() == (
                    w.storage_offset() - w2.storage_offset()
                )


def _pairs(got: Any, want: Any) -> list[tuple[Tensor, Tensor]]:
    return list(zip(got, want, strict=True))


def _memory(t: Tensor) -> int:
    return t.untyped_storage().data_ptr()


def test_views_of_a_result() -> None:
    def f(x: Tensor) -> list[Tensor]:
        y = x * 2
        return [y, y.t(), y[1:], y[:, 1], y[:, ::2], y.unsqueeze(0).expand(3, -1, -1), y.flatten()]

    check(f, [(torch.randn(4, 6),)])


def test_views_of_what_is_not_returned() -> None:
    def f(x: Tensor) -> list[Tensor]:
        y = x * 2
        z = x + 1
        return [*y.chunk(2, 1), z.t(), (x - 1)[:, -1], (x - 2).unsqueeze(1).expand(-1, 5, -1),
                (x * 3)[1], (x * 4)[1:2, 2:4]]  # fmt: skip

    check(f, [(torch.randn(4, 6),)])


def test_views_of_other_types_and_unfolded_ones() -> None:
    def f(x: Tensor) -> list[Tensor]:
        y = x * 2
        return [y.t(), y.unfold(1, 3, 1), x.t() + 1, x.unfold(1, 3, 2), x.t()]

    check(f, [(torch.randn(4, 6),)])


def test_sizes_that_stay_dynamic() -> None:
    def f(x: Tensor) -> list[Tensor]:
        y = x * 2
        return [y, y.t(), y[1:], (x + 1).t(), (x + 2)[:, 1:], x[1:].t()]

    check(f, [(torch.randn(n, m),) for n, m in ((4, 6), (3, 5), (7, 9))], dynamic=True)
    assert counters.programs == 1


def test_channels_last() -> None:
    model = nn.Conv2d(3, 4, 3).eval().to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    check(lambda x: [model(x), model(x).relu().contiguous()], [(x,)])


def test_results_that_are_one_tensor() -> None:
    """An operator returns the tensor that it writes to, also if this is an argument."""

    def f(x: Tensor, y: Tensor) -> list[Tensor]:
        z = x.t() + 1
        return [z, y.add_(1), z, z.relu_(), y, y.view(-1).mul_(2), z.contiguous(), x.to(x.dtype)]

    run = torch.compile(f, backend="mgx", fullgraph=True, options={"target": "ref"})
    args = [(torch.randn(4, 6), torch.randn(2, 3)) for _ in range(2)]
    for x, y in args:
        theirs = y.clone()
        want, got = f(x, theirs), run(x, y)
        torch.testing.assert_close([*got, y], [*want, theirs])
        assert [t.stride() for t in got] == [t.stride() for t in want]
        assert got[0] is got[2] is got[3]
        assert got[1] is got[4] is y
        assert got[7] is x
        assert _memory(got[5]) == _memory(y)
        assert _memory(got[6]) != _memory(got[0])


@pytest.mark.parametrize(
    "write",
    [
        lambda x: nn.functional.relu(x, inplace=True),
        lambda x: nn.functional.silu(x[1:], inplace=True),
        lambda x: torch.clamp(x, 0, 1, out=x),
        lambda x: x.view(-1).__imul__(2),
    ],
)
def test_a_graph_that_only_writes(write: Callable[..., Any]) -> None:
    """The operator's result is an argument, and it was not run."""
    x = torch.randn(3, 4)
    theirs = x.clone()
    run = torch.compile(write, backend="mgx", fullgraph=True, options={"target": "ref"})
    want, got = write(theirs), run(x)
    torch.testing.assert_close([got, x], [want, theirs])
    assert _memory(got) == _memory(x)


def test_new_results_lie_in_order_on_the_reference() -> None:
    """numpy's transposed views came out as they were."""

    def f(x: Tensor) -> list[Tensor]:
        return [x.t().contiguous(), x.expand(2, 4, 6).clone(), x.t().clone().contiguous()]

    check(f, [(torch.randn(4, 6),)])


def test_a_write_to_a_result_is_seen_in_its_view() -> None:
    def f(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2
        return y, y[0]

    y, row = torch.compile(f, backend="mgx", options={"target": "ref"})(torch.ones(2, 3))
    y.zero_()
    assert row.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("view", "name"),
    [(torch.view_as_complex, "view_as_complex"), (lambda t: t.view(torch.int32), "view.dtype")],
)
def test_a_view_of_an_argument_in_another_type_is_refused(view: Any, name: str) -> None:
    """The result of as_strided had the argument's type, not the view's."""
    run = torch.compile(view, backend="mgx", fullgraph=True, options={"target": "ref"})
    with pytest.raises(Exception, match=f"aten.{name}") as failed:
        run(torch.randn(3, 2))
    assert isinstance(failed.value.inner_exception, UnsupportedModel)
