"""Operators that are not compiled yet, with the reasons that errors give."""

from __future__ import annotations

from mgx_mlir.core.op import OPS
from mgx_mlir.passes.lowering.registry import refuses


def _refuse(reason: str, *names: str) -> None:
    refuses(reason, *(OPS[name] for name in names))


_refuse(
    "rewrite_rnn replaces it by a loop, unless its weights have dynamic dims",
    "rnn",
    "gru",
    "lstm",
    "rnn_last_hs_output",
    "rnn_last_cell_output",
)
_refuse(
    "rewrite_rnn replaces it by gathers, unless its steps or batch are dynamic dims",
    "rnn_var_sl_last_output",
    "rnn_var_sl_shift_output",
    "rnn_var_sl_shift_sequence",
)
_refuse(
    "a program of several modules is not lowered yet: compile the wanted module alone",
    "select_module",
    "run_on_target",
)
_refuse("no target needs this part of a convolution", "im2col")
_refuse("it reads a scratch buffer, which compiled programs do not have", "load")
_refuse(  # the attribute
    "operator '{op}' has no importer (it was read with skip_unknown_operators)", "unknown"
)
