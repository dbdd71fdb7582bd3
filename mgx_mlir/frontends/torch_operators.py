"""Translations to ONNX of operators that torch.onnx unrolls, or whose arguments it drops."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from mgx_mlir.frontends.torch_check_operators import check_translations
from mgx_mlir.frontends.torch_doubles import scalar_tensor_translations
from mgx_mlir.frontends.torch_sizes import size_translations

_INT64 = 7  # number of ONNX's TensorProto


def translations() -> dict[Any, Callable[..., Any]]:
    """Return our translations of such operators, for torch.onnx."""
    torch: Any = importlib.import_module("torch")  # already imported: the program is torch's
    aten = torch.ops.aten
    return {
        aten.cat.default: _joined(),
        aten._int_mm.default: _integer_matmul(),
        aten.rnn_tanh.input: _rnn("Tanh"),
        aten.rnn_relu.input: _rnn("Relu"),
        aten._upsample_bilinear2d_aa.default: _antialiased("linear", -0.75),
        aten._upsample_bicubic2d_aa.default: _antialiased("cubic", -0.5),
        **check_translations(),
        **scalar_tensor_translations(),
        **size_translations(),
    }


def _joined() -> Callable[..., Any]:
    """Return the translation of cat: 1-D tensors of length 0 are accepted beside any rank.

    torch.onnx passes them to ONNX's Concat, which needs equal ranks, and fails if all are empty.
    """
    op: Any = importlib.import_module("onnxscript").opset18  # installed with the exporter

    def cat(tensors: Sequence[Any], dim: int = 0):
        kept = [t for t in tensors if t.shape != (0,)] or [tensors[0]]
        return op.Identity(kept[0]) if len(kept) == 1 else op.Concat(*kept, axis=dim)

    return cat


def _integer_matmul() -> Callable[..., Any]:
    """Return the translation of a matmul of int8 with results of int32."""
    op: Any = importlib.import_module("onnxscript").opset18  # installed with the exporter
    return lambda self, mat2: op.MatMulInteger(self, mat2)


def _antialiased(mode: str, a: float) -> Callable[..., Any]:
    """Return the translation of an antialiased resize, with the scales that torch.onnx drops."""
    op: Any = importlib.import_module("onnxscript").opset18  # installed with the exporter

    def resize(self, output_size, align_corners, scales_h=None, scales_w=None):
        sizes = scales = None
        if scales_h is None or scales_w is None or align_corners:
            sizes = op.Concat(op.Shape(self, end=2), op.Cast(output_size, to=_INT64), axis=0)
        else:
            scales = op.Constant(value_floats=[1.0, 1.0, scales_h, scales_w])
        return op.Resize(
            self, None, scales, sizes, mode=mode, antialias=1, cubic_coeff_a=a, exclude_outside=1,
            coordinate_transformation_mode="align_corners" if align_corners else "half_pixel",
        )  # fmt: skip

    return resize


def _rnn(activation: str) -> Callable[..., Any]:
    op: Any = importlib.import_module("onnxscript").opset18  # installed with the exporter

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
            # dims (length, directions, batch, width)
            x = op.Reshape(op.Transpose(y, perm=[0, 2, 1, 3]), [0, 0, -1])
        return (op.Transpose(x, perm=[1, 0, 2]) if batch_first else x), joined(ends)

    return rnn
