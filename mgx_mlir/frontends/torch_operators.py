"""Operators in exported torch programs that torch.onnx lacks, or writes with lengths of a run."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mgx_mlir.frontends import torch_formulas as formulas
from mgx_mlir.frontends.torch_bags import written_bag
from mgx_mlir.frontends.torch_fast_paths import attention, encoder_layer

# what takes the place of a node: a function of tensors, its arguments
_Written = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def written_out(model: Any) -> Any:
    """Return an ExportedProgram with such operators as others; itself where it has none."""
    found = {n: w for n in model.graph.nodes if (w := _of(n)) is not None}
    if not found:
        return model
    with _replaced(found):
        return model.run_decompositions({})


def _of(node: Any) -> _Written | None:
    write = _WAYS.get(str(getattr(node.target, "overloadpacket", "")))
    return None if write is None else write(node)


@contextmanager
def _replaced(found: dict[Any, _Written]) -> Iterator[None]:
    """Have nodes call functions meanwhile, which a trace goes through."""
    before = [(n, n.target, n.args, n.kwargs) for n in found]
    try:
        for node, (function, args, kwargs) in found.items():
            node.target, node.args, node.kwargs = function, args, kwargs
        yield
    finally:
        for node, target, args, kwargs in before:
            node.target, node.args, node.kwargs = target, args, kwargs


def _grouped(node: Any) -> _Written | None:
    """Write out a product of rows, sorted by group, with the matrix of each group."""
    if len(node.args) != 3 or node.kwargs:
        return None
    values = [getattr(a, "meta", {}).get("val") for a in node.args]
    ranks = [getattr(v, "ndim", None) for v in values]
    return (grouped_product, tuple(node.args), {}) if ranks == [2, 3, 1] else None


def grouped_product(rows: Any, matrices: Any, ends: Any) -> Any:
    """Return rows times the matrices of their groups; ends: where each group of rows ends.

    Rows after the last group are 0. Every row is multiplied with every matrix: groups have sizes
    that only a run knows.
    """
    torch: Any = importlib.import_module("torch")  # the maker of the program has it
    place = torch.arange(rows.shape[0]).unsqueeze(0)
    end = ends.to(torch.int64).unsqueeze(1)
    begin = torch.cat([torch.zeros_like(end[:1]), end[:-1]])
    mine = ((place >= begin) & (place < end)).unsqueeze(-1)
    return torch.where(mine, torch.matmul(rows.unsqueeze(0), matrices), 0).sum(0)


def _reversed(node: Any) -> _Written | None:
    """Write out a difference `number - tensor` whose type is not the tensor's.

    torch.onnx has none for a number of another kind: `1.0 - mask` of integers (torch 2.13).
    """
    torch: Any = importlib.import_module("torch")  # the maker of the program has it
    x, other, *alpha = node.args
    tensor, value = (getattr(a, "meta", {}).get("val", a) for a in (x, other))
    kind = torch.result_type(tensor, value)
    if kind == tensor.dtype:
        return None
    return (formulas.reversed_difference, (x, other, kind, *alpha), dict(node.kwargs))


def _floored(node: Any) -> _Written | None:
    """Write out a quotient `tensor // number` whose type is not the tensor's."""
    torch: Any = importlib.import_module("torch")
    values = [getattr(a, "meta", {}).get("val", a) for a in node.args]
    kind = torch.result_type(*values)
    if all(getattr(v, "dtype", kind) == kind for v in values):
        return None
    return formulas.floored_quotient, (*node.args, kind), {}


def _converted(node: Any) -> _Written | None:
    """Convert what a softmax of another type takes: torch.onnx converts what it gives."""
    x, dim, *rest = node.args
    kind = rest[0] if rest else node.kwargs.get("dtype")
    if kind is None or kind == x.meta["val"].dtype:
        return None
    name = "log_softmax" if "log" in str(node.target) else "softmax"
    return formulas.converted_softmax, (name, x, dim, kind), {}


def _of_the_batch(node: Any) -> _Written | None:
    """Write out a batch norm that keeps no statistics: it takes those of its input."""
    x, scale, shift, mean, _, training, _, epsilon = node.args[:8]
    if mean is not None or not training:
        return None
    return formulas.norm_of_batch, (x, scale, shift, epsilon), {}


def _sorted(node: Any) -> _Written | None:
    """Write a stable sort as a plain one: ONNX keeps the order of equals in every one."""
    if str(node.target).rpartition(".")[2] != "stable":
        return None
    torch: Any = importlib.import_module("torch")
    rest = {k: v for k, v in node.kwargs.items() if k != "stable"}
    # where it is no keyword it comes first
    args = (node.args[0], *node.args[2:])
    return (torch.argsort if "argsort" in str(node.target) else torch.sort), args, rest


def _whole(function: Callable[..., Any]) -> Callable[[Any], _Written | None]:
    """Write out an operator as a function of the same arguments."""
    return lambda node: (function, tuple(node.args), dict(node.kwargs))


_WAYS: dict[str, Callable[[Any], _Written | None]] = {
    "aten._transformer_encoder_layer_fwd": _whole(encoder_layer),
    "aten._native_multi_head_attention": _whole(attention),
    "aten.embedding_bag": written_bag,
    "aten._embedding_bag": written_bag,
    "aten._embedding_bag_forward_only": written_bag,
    "aten._grouped_mm": _grouped,
    "aten.rsub": _reversed,
    "aten.floor_divide": _floored,
    "aten.softmax": _converted,
    "aten.log_softmax": _converted,
    "aten.batch_norm": _of_the_batch,
    "aten.sort": _sorted,
    "aten.argsort": _sorted,
    "aten.isin": _whole(formulas.is_in),
    "aten.searchsorted": _whole(formulas.search_sorted),
    "aten.hypot": _whole(formulas.hypotenuse),
    "aten.copysign": _whole(formulas.with_sign),
    "aten.rrelu": _whole(formulas.leaky_mean),
    "aten.cdist": _whole(formulas.distances),
    "aten.masked_select": _whole(formulas.selected),
    "aten.kthvalue": _whole(formulas.kth_value),
    "aten.median": _whole(formulas.median),
    "aten.cumprod": _whole(formulas.running_product),
    "aten.cummax": _whole(formulas.running_maximum),
    "aten.cummin": _whole(formulas.running_minimum),
    "transformers.grouped_mm_fallback": _grouped,
}


def translations() -> dict[Any, Callable[..., Any]]:
    """Return how torch.onnx is to write operators that it would unroll over their length."""
    torch: Any = importlib.import_module("torch")  # the maker of the program has it
    aten = torch.ops.aten
    return {aten.rnn_tanh.input: _rnn("Tanh"), aten.rnn_relu.input: _rnn("Relu")}


def _rnn(activation: str) -> Callable[..., Any]:
    op: Any = importlib.import_module("onnxscript").opset18  # who exports has it

    def joined(parts: Sequence[Any]) -> Any:
        return parts[0] if len(parts) == 1 else op.Concat(*parts, axis=0)

    def rnn(
        input,
        hx,
        params,
        has_biases,
        num_layers,
        dropout,
        train,
        bidirectional,
        batch_first,
    ):
        ways, each = 1 + bool(bidirectional), 4 if has_biases else 2
        x = op.Transpose(input, perm=[1, 0, 2]) if batch_first else input
        ends: list[Any] = []
        for layer in range(num_layers):
            first = layer * ways
            h = op.Slice(hx, [first], [first + ways], [0])
            sets = [params[i * each : (i + 1) * each] for i in range(first, first + ways)]
            w, r = (joined([op.Unsqueeze(s[k], [0]) for s in sets]) for k in (0, 1))
            b = None
            if has_biases:
                b = joined([op.Unsqueeze(op.Concat(s[2], s[3], axis=0), [0]) for s in sets])
            y, end = op.RNN(
                x, w, r, b, None, h, direction="bidirectional" if ways == 2 else "forward",
                hidden_size=hx.shape[2], activations=[activation] * ways,
            )  # fmt: skip
            ends.append(end)
            # of (length, ways, batch, width)
            x = op.Reshape(op.Transpose(y, perm=[0, 2, 1, 3]), [0, 0, -1])
        return (op.Transpose(x, perm=[1, 0, 2]) if batch_first else x), joined(ends)

    return rnn
