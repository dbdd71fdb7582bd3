"""torch.compile with backend "mgx": what a graph may hold, weights, sizes, errors."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops.associative_scan import associative_scan
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils.checkpoint import checkpoint

import mgx_mlir
from mgx_mlir.core.errors import MgxError, RunError, UnsupportedModel, UsageError
from mgx_mlir.integrations.torch.backend import mgx
from mgx_mlir.integrations.torch.calls import Call
from mgx_mlir.integrations.torch.counters import counters
from mgx_mlir.integrations.torch.graphs import Argument, Frozen

pytestmark = pytest.mark.slow
REF = {"target": "ref"}


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(3)
    with torch.no_grad():
        yield
    torch._dynamo.reset()


def compiled(model: Any, **more: Any) -> Any:
    return torch.compile(model, backend=mgx, **{"fullgraph": True, "options": REF, **more})


def same(got: Any, want: Any) -> None:
    """Values of the same kinds, tensors within 1e-4."""
    assert type(got) is type(want)
    if isinstance(want, dict):
        assert list(got) == list(want)
        for k in want:
            same(got[k], want[k])
    elif isinstance(want, tuple | list):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            same(a, b)
    elif isinstance(want, Tensor):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    else:
        assert got == want


class Outputs(nn.Module):
    """Results of every kind."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)
        self.b.weight = self.a.weight  # tied

    def forward(self, x: Tensor, scale: Tensor, more: dict[str, Tensor]) -> dict[str, Any]:
        y = self.b(self.a(x)) * scale + more["bias"]
        return {
            "y": y, "again": y, "n": x.shape[0], "none": None, "flag": True, "view": x[1:],
            "same": x, "weight": self.a.weight, "empty": y[:0], "sum": y.sum(), "text": "t",
            "ints": y.argmax(-1), "bools": y > 0, "nested": (y.abs(), [y.neg()]),
        }  # fmt: skip


def test_results_of_every_kind_and_sizes_without_a_recompile() -> None:
    model = Outputs().eval()
    run = compiled(model, dynamic=True)
    for n in (3, 5, 11, 2, 7):
        # with gaps, with a gradient, of one number
        x = torch.randn(8, n).t().requires_grad_()
        args = (x, torch.tensor(2.0), {"bias": torch.randn(8)})
        got = run(*args)
        same(got, model(*args))
        assert got["weight"] is model.a.weight
        assert got["view"].data_ptr() == x[1:].data_ptr()
    assert (counters.graphs, counters.programs) == (1, 1)


class Writes(nn.Module):
    """A buffer and an argument that are written to."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(2, 6, 4))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        self.cache.index_copy_(1, at, x)
        self.count += 1
        x.mul_(2)
        return self.cache.sum(1) + x[:, 0] + self.count


def test_what_is_written_to_is_written_back() -> None:
    model = Writes()
    run, plain = compiled(model), copy.deepcopy(model)
    for i in range(4):
        x = torch.randn(2, 1, 4)
        y = x.clone()
        same(run(x, torch.tensor([i])), plain(y, torch.tensor([i])))
        same([x, model.cache, model.count], [y, plain.cache, plain.count])
    assert counters.graphs == 1


def test_inputs_in_one_memory_are_refused_where_one_is_written_to() -> None:
    x = torch.zeros(4)
    frozen = Frozen(torch.fx.GraphModule(nn.Module(), torch.fx.Graph()), [0, 1], [], [0], (), (),
                    [Argument(0)])  # fmt: skip
    call = Call(frozen, lambda given: [given[0]])
    call([x, torch.zeros(4)])
    with pytest.raises(RunError, match="share memory"):
        call([x, x[1:]])


def test_a_graph_break_leaves_graphs_on_both_sides() -> None:
    class Broken(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            y = x * 2
            torch._dynamo.graph_break()
            return y.view(-1) + 1

    same(compiled(Broken(), fullgraph=False)(torch.ones(2, 3)), torch.full((6,), 3.0))
    assert counters.graphs == 2


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_a_module_of_a_short_type(kind: torch.dtype) -> None:
    model = nn.Sequential(nn.Linear(16, 8), nn.GELU(), nn.Linear(8, 4)).to(kind).eval()
    x = torch.randn(3, 16).to(kind)
    got = compiled(model)(x)
    assert got.dtype is kind
    # two roundings of results of about 1: 2 ** -8 and 2 ** -11 of them
    torch.testing.assert_close(got.float(), model(x).float(), rtol=2e-2, atol=2e-2)


def test_autocast_inside_of_a_graph() -> None:
    """torch.export noted it down, and computed in f32."""

    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = self.a(x)
                with torch.autocast("cpu", enabled=False):
                    z = self.a(x)
            return y, z, y.float(), self.a(x)

    model, x = Mixed().eval(), torch.randn(3, 4)
    for got, want in zip(compiled(model)(x), model(x), strict=True):
        assert got.dtype is want.dtype
        # two roundings to bf16 of results of about 1: 2 ** -8 of them
        torch.testing.assert_close(got, want, rtol=1e-2, atol=1e-2)


def vectorised(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.vmap(lambda row: (row.softmax(0), row.sum() * row))(x)


def summed(x: Tensor) -> Tensor:
    return associative_scan(lambda a, b: a + b, x, 0, combine_mode="generic")


def directional(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.func.jvp(torch.sin, (x,), (x * 2,))


def recomputed(x: Tensor) -> Tensor:
    return checkpoint(lambda x: x.relu() * 2, x, use_reentrant=False) + 1


@pytest.mark.parametrize("f", [vectorised, summed, directional, recomputed])
def test_functions_of_functions(f: Any) -> None:
    """Dynamo's tensors inside of vmap and jvp have no memory that a trace can ask for."""
    x = torch.randn(5, 3)
    same(compiled(f)(x), f(x))


def test_a_number_of_an_earlier_graph_that_became_a_constant() -> None:
    def f(x: Tensor) -> tuple[Tensor, int]:
        n = int(x.sum().item())
        return x.repeat(n, 1), n

    run = compiled(f, fullgraph=False)
    for rows in (1, 2, 3):
        same(run(torch.ones(rows, 2)), f(torch.ones(rows, 2)))


def test_integers_bools_and_numbers_as_inputs() -> None:
    class Mixed(nn.Module):
        def forward(self, i: Tensor, m: Tensor, start: int, scale: float) -> Tensor:
            return torch.where(m, i + start, -i).float() * scale

    run = compiled(Mixed(), dynamic=True)
    i, m = torch.arange(6).view(2, 3), torch.tensor([[True, False, True]] * 2)
    for start in (4, 9):
        same(run(i, m, start, 0.5), Mixed()(i, m, start, 0.5))


def test_inference_mode_and_a_pickled_model() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).eval()
    again = pickle.loads(pickle.dumps(model))
    x = torch.randn(2, 4)
    with torch.inference_mode():
        same(compiled(again)(x), model(x))


def test_other_weights_and_changed_ones_are_seen() -> None:
    model = nn.Linear(4, 4).eval()
    run, x = compiled(model), torch.randn(2, 4)
    same(run(x), model(x))
    model.weight.mul_(2)
    with pytest.warns(UserWarning, match="1 weights were changed"):
        same(run(x), model(x))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(run(x), model(x))
    model.weight = nn.Parameter(torch.randn(4, 4))
    same(run(x), model(x))


def test_weights_lie_in_the_memory_of_torch() -> None:
    model = nn.Linear(64, 64).eval()
    from mgx_mlir.integrations.torch import build

    seen: list[Any] = []
    before = build.compile

    def compile(source: Any, *args: Any, **more: Any) -> Any:
        seen.append(source)
        return before(source, *args, **more)

    build.compile = compile
    try:
        compiled(model)(torch.randn(2, 64))
    finally:
        build.compile = before
    places = {a.ctypes.data for _, a in seen[0].store.items()}
    assert model.weight.data_ptr() in places


# ---- errors ------------------------------------------------------------------------------------


def failure(run: Any, *args: Any) -> MgxError:
    """The error of the backend inside of Dynamo's."""
    with pytest.raises(Exception, match="mgx") as e:
        run(*args)
    inner = getattr(e.value, "inner_exception", e.value)
    assert isinstance(inner, MgxError), inner
    return inner


def test_training_is_an_error_that_says_so() -> None:
    x = torch.randn(2, 4)
    with torch.enable_grad():
        e = failure(compiled(nn.Linear(4, 4).eval()), x)
    assert isinstance(e, UsageError)
    assert "training" in e.message
    assert "model.eval()" in str(e)
    for model in (nn.Dropout(0.5, inplace=True), nn.BatchNorm1d(4)):
        torch._dynamo.reset()
        assert "training" in failure(compiled(model.train()), x).message


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_dropout_between_layers_is_training(kind: Any) -> None:
    """Dropout between layers was ignored."""
    model, x = kind(4, 4, num_layers=2, dropout=0.5).train(), torch.randn(3, 2, 4)
    assert "dropout of" in failure(compiled(model), x).message
    torch._dynamo.reset()
    same(compiled(model.eval())(x), model(x))


def test_dropout_inside_of_a_branch_is_training() -> None:
    def f(x: Tensor) -> Tensor:
        drop = nn.functional.dropout
        return torch.cond(x.sum() > 0, lambda x: drop(x, 0.5), lambda x: x + 1, (x,))

    assert "dropout" in failure(compiled(f), torch.ones(3)).message
    with torch.no_grad():
        module = type("Drops", (nn.Module,), {"forward": lambda _, x: f(x)})()
        exported = torch.export.export(module, (torch.ones(3),))
    with pytest.raises(UsageError, match="dropout"):
        mgx_mlir.compile(exported, "ref")


def test_gradients_inside_of_a_graph_are_training() -> None:
    """The result came without its gradient."""

    def differentiated(x: Tensor) -> Tensor:
        with torch.enable_grad():
            return x * 2

    e = failure(compiled(differentiated), torch.ones(3, requires_grad=True))
    assert isinstance(e, UsageError)
    assert "gradients are on" in e.message
    same(compiled(differentiated)(torch.ones(3)), torch.full((3,), 2.0))


def test_a_complex_argument_is_an_error_of_the_compile() -> None:
    e = failure(compiled(lambda x: x.real + x.imag), torch.ones(3, dtype=torch.complex64))
    assert isinstance(e, UnsupportedModel)
    assert "an argument of the torch program is complex" in str(e)


def test_a_tensor_of_no_device_of_ours_is_an_error() -> None:
    e = failure(compiled(lambda x: x * 2), torch.ones(3, device="meta"))
    assert "got device meta" in e.message


def test_a_result_of_several_tensors_is_an_error() -> None:
    """The result was taken for one tensor."""
    model = nn.Linear(2, 2, bias=False).eval()
    model.weight = nn.Parameter(TwoTensor(torch.randn(2, 2), torch.randn(2, 2)))
    assert "a result of the torch program is a TwoTensor" in str(
        failure(compiled(model), torch.ones(3, 2))
    )


def test_an_unknown_option_is_an_error() -> None:
    e = failure(compiled(nn.ReLU(), options={"treads": 1}), torch.ones(2))
    assert "did you mean 'threads'?" in str(e)


class Partly(nn.Module):
    """An operator that no program has, among others."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.a(x))
        z = torch.linalg.svdvals(y)
        return self.a(y) + z.sum()


def test_what_cannot_be_compiled_is_an_error_with_a_table() -> None:
    e = failure(compiled(Partly().eval()), torch.randn(4, 4))
    assert isinstance(e, UnsupportedModel)
    assert "svd" in e.message
    assert "% of the time" in e.message
    assert "'fallback': 'eager'" in str(e)


def test_fallback_to_eager_warns_once_and_gives_what_torch_gives() -> None:
    model, x = Partly().eval(), torch.randn(4, 4)
    run = compiled(model, options={**REF, "fallback": "eager"})
    with pytest.warns(UserWarning, match="and torch runs them") as seen:
        same(run(x), model(x))
    assert sum("torch runs them" in str(w.message) for w in seen) == 1
    same(run(2 * x), model(2 * x))
    assert counters.eager == 1
    assert counters.programs == 2
