"""GRU and RNN in traces: their result shapes come from a formula, so that the length stays dynamic.

torch runs a loop over the length to infer the result shapes of nn.GRU and nn.RNN, which makes the
length a constant of the trace. nn.LSTM has an operator with a shape function.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode

log = logging.getLogger(__name__)
_aten = torch.ops.aten
_KINDS = (_aten.gru.input, _aten.rnn_tanh.input, _aten.rnn_relu.input)


def keep_lengths_dynamic() -> None:
    """Register result shapes of GRU and RNN for traces of inference.

    Traces of other backends, which decompose the operators, still get torch's loop.
    """
    for kind in _KINDS:
        for key, loop in list(getattr(kind, "py_kernels", {}).items()):
            if callable(loop) and not hasattr(loop, "mgx_loop"):
                kind.py_kernels[key] = _by_shapes(loop)
        getattr(kind, "_dispatch_cache", {}).clear()
        loop = decomposition_table.get(kind)  # for traces that keep the operator whole
        if loop is not None and not hasattr(loop, "mgx_loop"):
            decomposition_table[kind] = _by_shapes(loop)


def _by_shapes(loop: Callable[..., Any]) -> Callable[..., Any]:
    def found(given: Any, *more: Any, **named: Any) -> Any:
        plain = isinstance(given, FakeTensor) and len(more) == 8 and not named
        if not plain or torch.is_grad_enabled() or get_proxy_mode() is not None:
            return loop(given, *more, **named)
        return _results(given, *more)

    found.mgx_loop = loop  # type: ignore[attr-defined]
    return found


def _results(given: Any, hx: Any, _params: Any, *rest: Any) -> tuple[Any, Any]:
    """Return empty tensors of the results' shapes and types."""
    *_, bidirectional, batch_first = rest
    torch._check(given.shape[0 if batch_first else 1] == hx.shape[1])
    width = hx.shape[2] * (2 if bidirectional else 1)
    return given.new_empty((*given.shape[:2], width)), hx.new_empty(hx.shape)
