"""The steps of recurrent networks whose products of the input with W are computed already."""

from __future__ import annotations

from typing import Any

import numpy as np

from mgx_mlir.core import attrs as attr
from mgx_mlir.core.op import InferView, Op, Operand, Result
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.rnn import (
    DIRECTIONS,
    Gru,
    Lstm,
    Rnn,
    infer_cells,
    infer_states,
)
from mgx_mlir.dialects.migraphx.samples import Example, example

Array = np.ndarray


def _examples(cls: type[Rnn] | type[Gru] | type[Lstm]) -> list[Example]:
    """Return the examples of the network, its products computed."""
    found: list[Example] = []
    for (x, w, *rest), attributes in cls.examples():
        products = np.concatenate([np.asarray(x) @ own.T for own in np.asarray(w)], axis=2)
        found.append(example(products, *rest, **attributes))
    return found


class Steps(Op):
    """Base of the steps: the operands of the networks without W."""

    input: Operand
    recurrence: Operand
    bias: Operand | None
    sequence_lens: Operand | None
    initial_h: Operand | None


class RnnSteps(Steps, name="rnn_steps"):
    """h' = f(x_t + h R^T + bias), step by step.

    `input` {sequence, batch, directions hidden} holds x W^T of all steps, one direction behind the
    other; the rest as `rnn`. rewrite_rnn makes it where a processor runs all steps as one kernel.

    ```mlir
    %0 = "migraphx.rnn_steps"(%x, %r) {hidden_size = 4 : i64, actv_func = ["tanh"]}
           : (tensor<5x2x4xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
    ```
    """

    out: Result
    hidden_size = attr.int_(1)
    actv_func = attr.strs(("tanh", "tanh"))
    direction = attr.enum(DIRECTIONS, "forward")
    clip = attr.float_(0.0)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        return infer_states(o, 1, 1, None)

    @staticmethod
    def reference(
        x: Array,
        r: Array,
        bias: Array | None = None,
        sequence_lens: Array | None = None,
        initial_h: Array | None = None,
        **attributes: Any,
    ) -> Array:
        return Rnn.reference(x, None, r, bias, sequence_lens, initial_h, **attributes)

    @staticmethod
    def examples() -> list[Example]:
        return _examples(Rnn)


class GruSteps(Steps, name="gru_steps"):
    """Gated recurrent units over x W^T of all steps: h' = (1 - z) g + z h.

    `input` {sequence, batch, directions 3 hidden} holds the products, one direction behind the
    other; the rest as `gru`.

    ```mlir
    %0 = "migraphx.gru_steps"(%x, %r) {hidden_size = 4 : i64}
           : (tensor<5x2x12xf32>, tensor<1x12x4xf32>) -> tensor<5x1x2x4xf32>
    ```
    """

    out: Result
    hidden_size = attr.int_(1)
    actv_func = attr.strs(("sigmoid", "tanh"))
    direction = attr.enum(DIRECTIONS, "forward")
    clip = attr.float_(0.0)
    linear_before_reset = attr.int_(0)

    @staticmethod
    def infer(o: InferView) -> TensorType:
        return infer_states(o, 3, 2, None)

    @staticmethod
    def reference(
        x: Array,
        r: Array,
        bias: Array | None = None,
        sequence_lens: Array | None = None,
        initial_h: Array | None = None,
        **attributes: Any,
    ) -> Array:
        return Gru.reference(x, None, r, bias, sequence_lens, initial_h, **attributes)

    @staticmethod
    def examples() -> list[Example]:
        return _examples(Gru)


class LstmSteps(Steps, name="lstm_steps"):
    """Long short-term memory over x W^T of all steps: c' = f c + i g, h' = o tanh(c').

    `input` {sequence, batch, directions 4 hidden} holds the products, one direction behind the
    other; the rest as `lstm`.

    ```mlir
    %h, %c = "migraphx.lstm_steps"(%x, %r) {hidden_size = 4 : i64}
           : (tensor<5x2x16xf32>, tensor<1x16x4xf32>)
           -> (tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>)
    ```
    """

    initial_c: Operand | None
    peephole: Operand | None
    out: Result
    cells: Result
    hidden_size = attr.int_(1)
    actv_func = attr.strs(("sigmoid", "tanh", "tanh"))
    direction = attr.enum(DIRECTIONS, "forward")
    clip = attr.float_(0.0)
    input_forget = attr.int_(0)

    @staticmethod
    def infer(o: InferView) -> list[TensorType]:
        return infer_cells(o, infer_states(o, 4, 3, None))

    @staticmethod
    def reference(
        x: Array,
        r: Array,
        bias: Array | None = None,
        sequence_lens: Array | None = None,
        initial_h: Array | None = None,
        initial_c: Array | None = None,
        peephole: Array | None = None,
        **attributes: Any,
    ) -> tuple[Array, Array]:
        return Lstm.reference(
            x, None, r, bias, sequence_lens, initial_h, initial_c, peephole, **attributes
        )

    @staticmethod
    def examples() -> list[Example]:
        return _examples(Lstm)
