"""Steps of recurrent networks after the matmul of the input with W."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mgx_mlir.core.op import InferView, Operand, Result, check
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.axes import check_same_dtype
from mgx_mlir.dialects.migraphx.rnn import (
    Gru,
    Lstm,
    RecurrentAttributes,
    Rnn,
    direction_count,
    expect_dims,
    infer_cells,
    infer_states,
)
from mgx_mlir.dialects.migraphx.samples import Example, example

Array = np.ndarray


class Steps(RecurrentAttributes):
    """Base of the steps: a network's operands except W, its dims and its examples."""

    NETWORK: ClassVar[type[Rnn] | type[Gru] | type[Lstm]]
    input: Operand
    recurrence: Operand
    bias: Operand | None
    sequence_lens: Operand | None
    initial_h: Operand | None

    @classmethod
    def reference(
        cls, x: Array, r: Array, *others: Array | None, **attributes: Any
    ) -> Array | tuple[Array, Array]:
        return cls.NETWORK.reference(x, None, r, *others, **attributes)

    @classmethod
    def examples(cls) -> list[Example]:
        found: list[Example] = []
        for (x, w, *rest), attributes in cls.NETWORK.examples():
            products = np.concatenate([np.asarray(x) @ own.T for own in np.asarray(w)], axis=2)
            found.append(example(products, *rest, **attributes))
        return found


class RnnSteps(Steps, name="rnn_steps"):
    """h' = f(x_t + h R^T + bias), step by step.

    `input` {sequence, batch, directions hidden} holds x W^T of all steps, one direction behind the
    other; the rest as `rnn`. rewrite_rnn makes it if a CPU runs all steps as one kernel.

    ```mlir
    %0 = "migraphx.rnn_steps"(%x, %r) {hidden_size = 4 : i64, actv_func = ["tanh"]}
           : (tensor<5x2x4xf32>, tensor<1x4x4xf32>) -> tensor<5x1x2x4xf32>
    ```
    """

    NETWORK = Rnn
    out: Result

    @staticmethod
    def infer(o: InferView) -> TensorType:
        return infer_states(o, 1, 1, None)


class GruSteps(Steps, name="gru_steps"):
    """Gated recurrent units over x W^T of all steps: h' = (1 - z) g + z h.

    `input` {sequence, batch, directions 3 hidden} holds x W^T of the directions, one after the
    other; the rest is as in `gru`.

    ```mlir
    %0 = "migraphx.gru_steps"(%x, %r) {hidden_size = 4 : i64}
           : (tensor<5x2x12xf32>, tensor<1x12x4xf32>) -> tensor<5x1x2x4xf32>
    ```
    """

    NETWORK = Gru
    out: Result
    actv_func = Gru.ATTRS["actv_func"]
    linear_before_reset = Gru.ATTRS["linear_before_reset"]

    @staticmethod
    def infer(o: InferView) -> TensorType:
        return infer_states(o, 3, 2, None)


class LstmSteps(Steps, name="lstm_steps"):
    """Long short-term memory over x W^T of all steps: c' = f c + i g, h' = o tanh(c').

    `input` {sequence, batch, directions 4 hidden} holds x W^T, one direction behind the
    other; the rest as `lstm`. With `recurrence_scale` {directions, 4 hidden} R holds integers, and
    each step multiplies them by h in 8 bits: unsigned codes over the range of all rows of a
    direction, which includes 0 (onnxruntime's DynamicQuantizeLSTM). The scales of h and of R
    multiply the sums. The resulting states are not quantised. Errors: `recurrence_scale` with
    `sequence_lens`.

    ```mlir
    %h, %c = "migraphx.lstm_steps"(%x, %r) {hidden_size = 4 : i64}
           : (tensor<5x2x16xf32>, tensor<1x16x4xf32>)
           -> (tensor<5x1x2x4xf32>, tensor<5x1x2x4xf32>)
    ```
    """

    NETWORK = Lstm
    initial_c: Operand | None
    peephole: Operand | None
    recurrence_scale: Operand | None
    out: Result
    cells: Result
    actv_func = Lstm.ATTRS["actv_func"]
    input_forget = Lstm.ATTRS["input_forget"]

    @staticmethod
    def infer(o: InferView) -> list[TensorType]:
        check(
            o.recurrence_scale is None or o.sequence_lens is None,
            "recurrence_scale expected no sequence_lens",
        )
        if o.recurrence_scale is not None:
            check_same_dtype([o.input, o.recurrence_scale])
            rows = (direction_count(o.direction), 4 * o.hidden_size)
            expect_dims(o.recurrence_scale, "recurrence_scale", rows)
        return infer_cells(o, infer_states(o, 4, 3, None))

    @classmethod
    def examples(cls) -> list[Example]:
        found = super().examples()
        operands, attributes = found[0]
        x, r, *rest = operands
        whole = np.rint(np.asarray(r) * 50)
        scale = np.full(whole.shape[:2], 0.02, np.float32)
        given = [x, whole, *rest, *[None] * (5 - len(rest)), scale]
        return [*found, example(*given, **attributes)]
