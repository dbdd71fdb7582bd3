"""Recurrent networks: RNN, GRU, LSTM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends.bounds import Dim, within
from mgx_mlir.frontends.helpers import known_extent, transpose, zeros
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.signatures import Attributes
from mgx_mlir.frontends.values import Value
from mgx_mlir.programs.build import Builder

# ONNX's activation functions: our names, and the parameters of each from the node's lists
ACTIVATIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "affine": ("affine", ("alpha", "beta")),
    "elu": ("elu", ("alpha",)),
    "hardsigmoid": ("hard_sigmoid", ("alpha", "beta")),
    "leakyrelu": ("leaky_relu", ("alpha",)),
    "relu": ("relu", ()),
    "scaledtanh": ("scaled_tanh", ("alpha", "beta")),
    "sigmoid": ("sigmoid", ()),
    "softplus": ("softplus", ()),
    "softsign": ("softsign", ()),
    "tanh": ("tanh", ()),
    "thresholdedrelu": ("thresholded_relu", ("alpha",)),
}


def _functions(
    names: Sequence[str] | None,
    alphas: Sequence[float],
    betas: Sequence[float],
    defaults: Sequence[str],
    directions: int,
) -> list[str]:
    """Return the activations in our form; each takes its parameters from the lists in order."""
    given = list(names) if names else list(defaults) * directions
    if len(given) != len(defaults) * directions:
        raise ModelError(
            f"attribute 'activations' expected {len(defaults) * directions} names, got {len(given)}"
        )
    left = {"alpha": list(alphas), "beta": list(betas)}
    out = []
    for name in given:
        found = ACTIVATIONS.get(name.lower())
        if found is None:
            raise ModelError(f"attribute 'activations' names '{name}', which is no activation")
        ours, parameters = found
        values = [f"{p}={left[p].pop(0)!r}" for p in parameters if left[p]]
        out.append(f"{ours}{{{','.join(values)}}}" if values else ours)
    return out


@dataclass(frozen=True)
class RecurrentAttributes(Attributes):
    """Attributes of RNN, GRU and LSTM."""

    activations: Sequence[str] | None = None
    activation_alpha: Sequence[float] | None = None
    activation_beta: Sequence[float] | None = None
    clip: float | None = None
    direction: str = "forward"
    hidden_size: int | None = None
    layout: int = 0


_BATCH_AXES = (("sequence_lens", 1, 0), ("initial_h", 2, 1), ("initial_c", 3, 1))


def _of_one_batch(
    b: Builder, x: Value, rest: Sequence[Value | None]
) -> tuple[Value, list[Value | None]]:
    """Return X and the operands behind R; where one has a known batch, all of them have it."""
    out, sizes = list(rest), [b.dims(x)[1]]
    for what, i, axis in _BATCH_AXES:
        if i < len(out) and (v := out[i]) is not None:
            if len(b.dims(v)) <= axis:
                raise ModelError(
                    f"{what} expected rank {1 if axis == 0 else 3}, got {len(b.dims(v))}"
                )
            sizes.append(b.dims(v)[axis])
    size = max(sizes)  # DYN is below every extent
    if size == DYN:
        return x, out
    for what, i, axis in _BATCH_AXES:
        if i < len(out) and (v := out[i]) is not None:
            out[i] = known_extent(b, v, axis, size, what)
    return known_extent(b, x, 1, size, "a batch"), out


def _recurrent(
    b: Builder,
    name: str,
    operands: Sequence[Value | None],
    defaults: Sequence[str],
    a: RecurrentAttributes,
    **attributes: int,
) -> tuple[Value, ...]:
    """Import a recurrent network: return all states, then the last ones."""
    direction, layout = a.direction, a.layout
    if direction not in ("forward", "reverse", "bidirectional"):
        raise ModelError(f"attribute 'direction' expected a direction, got '{direction}'")
    if layout not in (0, 1):
        raise ModelError(f"attribute 'layout' expected 0 or 1, got {layout}")
    x, w, r, *rest = operands
    assert x is not None
    assert w is not None
    assert r is not None
    for v, what, rank in ((x, "X", 3), (w, "W", 3), (r, "R", 3)):
        if len(b.dims(v)) != rank:
            raise ModelError(f"{what} expected rank {rank}, got {len(b.dims(v))}")
    hidden = b.dims(r)[2] if a.hidden_size is None else a.hidden_size
    if hidden == DYN:
        raise NotSupported("a hidden size that is known at run time only")
    lens = rest[1]
    if lens is not None:
        steps = Dim(x, 1 if layout else 0, "the number of steps", 1)
        rest[1] = lens = within(b, lens, "sequence_lens", 0, steps)
    if layout:  # batch first
        x = transpose(b, x, (1, 0, 2))
        rest = [
            transpose(b, v, (1, 0, 2)) if i in (2, 3) and v is not None else v
            for i, v in enumerate(rest)
        ]
    x, rest = _of_one_batch(b, x, rest)
    lens = rest[1]
    directions = 2 if direction == "bidirectional" else 1
    found = b.op(
        name,
        x,
        w,
        r,
        *rest,
        hidden_size=hidden,
        direction=direction,
        clip=a.clip or 0.0,
        actv_func=_functions(
            a.activations, a.activation_alpha or (), a.activation_beta or (), defaults, directions
        ),
        **attributes,
    )
    states = list(found) if isinstance(found, tuple) else [found]
    if b.dims(x)[1] == 0:  # without sequences there is nothing to compute
        states = [zeros(b, b.dims(s), b.dtype(s)) for s in states]
    if lens is None:
        reads = ("rnn_last_hs_output", "rnn_last_cell_output")
        last = [b.op(n, v, direction=direction) for n, v in zip(reads, states, strict=False)]
    else:
        last = [b.op("rnn_var_sl_last_output", v, lens, direction=direction) for v in states]
    first = states[0]
    if layout:
        first = transpose(b, first, (2, 0, 1, 3))
        last = [transpose(b, v, (1, 0, 2)) for v in last]
    return first, *last


@onnx_op("RNN", since=7)
def rnn(
    b: Builder,
    node: Node,
    x: Value,
    w: Value,
    r: Value,
    bias: Value | None = None,
    sequence_lens: Value | None = None,
    initial_h: Value | None = None,
    *,
    recurrence: RecurrentAttributes,
) -> tuple[Value, ...]:
    """Import RNN."""
    return _recurrent(
        b, "rnn", (x, w, r, bias, sequence_lens, initial_h), ("Tanh",),
        recurrence,
    )  # fmt: skip


@onnx_op("GRU", since=7)
def gru(
    b: Builder,
    node: Node,
    x: Value,
    w: Value,
    r: Value,
    bias: Value | None = None,
    sequence_lens: Value | None = None,
    initial_h: Value | None = None,
    *,
    recurrence: RecurrentAttributes,
    linear_before_reset: int = 0,
) -> tuple[Value, ...]:
    """Import GRU."""
    return _recurrent(
        b, "gru", (x, w, r, bias, sequence_lens, initial_h), ("Sigmoid", "Tanh"),
        recurrence, linear_before_reset=linear_before_reset,
    )  # fmt: skip


@onnx_op("LSTM", since=7)
def lstm(
    b: Builder,
    node: Node,
    x: Value,
    w: Value,
    r: Value,
    bias: Value | None = None,
    sequence_lens: Value | None = None,
    initial_h: Value | None = None,
    initial_c: Value | None = None,
    peephole: Value | None = None,
    *,
    recurrence: RecurrentAttributes,
    input_forget: int = 0,
) -> tuple[Value, ...]:
    """Import LSTM, with peepholes."""
    return _recurrent(
        b, "lstm", (x, w, r, bias, sequence_lens, initial_h, initial_c, peephole),
        ("Sigmoid", "Tanh", "Tanh"),
        recurrence, input_forget=input_forget,
    )  # fmt: skip
