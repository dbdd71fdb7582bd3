"""DynamicQuantizeLSTM: products of 8-bit codes, which inputs and each state are quantized to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import parser

from mgx_mlir.core.errors import ModelError
from mgx_mlir.frontends.helpers import slice_, squeeze, unsqueeze, zeros
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ops.contrib_fused import NEEDED
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.onnx.structures import tensors
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Held, Value, has_failed
from mgx_mlir.programs.build import Builder

MS = "com.microsoft"
# x W for all steps at once, h R in each; W and R have the columns of i, o, f, c side by side
_DIRECTION = """direction (x, w, ws, wz, r, rs, rz, bias{given}) => (y, ht, ct) {{
  {states}
  xw = com.microsoft.DynamicQuantizeMatMul(x, w, ws, wz, bias)
  ht, ct, y = Scan <num_scan_inputs = 1, scan_input_directions = [{back}],
                    scan_output_directions = [{back}], body = step (h0, c0, g) => (h1, c1, y1) {{
    hr = com.microsoft.DynamicQuantizeMatMul(h0, r, rs, rz)
    s = Add(g, hr)
    sizes = Constant <value_ints = [{size}, {size}, {size}, {size}]> ()
    si, so, sf, sc = Split <axis = -1> (s, sizes)
    i = Sigmoid(si) o = Sigmoid(so) f = Sigmoid(sf) n = Tanh(sc)
    kept = Mul(f, c0) new = Mul(i, n) c1 = Add(kept, new)
    t = Tanh(c1) h1 = Mul(o, t) y1 = Identity(h1)
  }}> (h, c, xw)
}}"""
_ZEROS = """batch = Shape <start = 1, end = 2> (x) width = Constant <value_ints = [{size}]> ()
  dims = Concat <axis = 0> (batch, width) {names}"""
_OPSETS = {"": 18, "com.microsoft": 1}
_FUNCTIONS = ("sigmoid", "tanh", "tanh")


@onnx_op("DynamicQuantizeLSTM", domain=MS)
def dynamic_quantize_lstm(
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
    w_scale: Value = NEEDED,
    w_zero: Value = NEEDED,
    r_scale: Value = NEEDED,
    r_zero: Value = NEEDED,
    *,
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
) -> tuple[Any, ...]:
    """Import a loop over the steps for each direction."""
    if sequence_lens is not None or peephole is not None:
        raise NotSupported("sequence_lens or P")
    functions = tuple(f.lower() for f in activations or ())
    if functions not in ((), _FUNCTIONS, _FUNCTIONS * 2) or clip or input_forget:
        raise NotSupported("other activations, clip or input_forget")
    ways = {"forward": (0,), "reverse": (1,), "bidirectional": (0, 1)}.get(direction)
    if ways is None:
        raise ModelError(f"attribute 'direction' expected a direction, got '{direction}'")
    if any(len(b.dims(v)) != 3 for v in (x, w, r)):
        raise ModelError("X, W and R expected rank 3")
    size = b.dims(r)[1]
    if hidden_size not in (None, size):
        raise ModelError(f"attribute 'hidden_size' expected {size} as in R, got {hidden_size}")
    states = {"h": initial_h, "c": initial_c}
    absent = [f"{name} = ConstantOfShape(dims)" for name, v in states.items() if v is None]
    made = _ZEROS.format(size=size, names=" ".join(absent)) if absent else ""
    present = [(name, v) for name, v in states.items() if v is not None]
    names = "".join(f", {name}" for name, _ in present)
    found: list[tuple[Held, ...]] = []
    for number, back in enumerate(ways):
        weights = [_part(b, v, number) for v in (w, w_scale, w_zero, r, r_scale, r_zero)]
        operands = [x, *weights, _bias(b, bias, number, size, x)]
        operands += [_part(b, v, number) for _, v in present]
        text = _DIRECTION.format(back=back, size=size, given=names, states=made)
        found.append(tuple(node.inline(parser.parse_graph(text), operands, _OPSETS)))
        if has_failed(found[-1]):
            return node.failed()
    y, ht, ct = (
        b.concat([unsqueeze(b, v, [axis]) for v in tensors(parts)], axis=axis)
        for parts, axis in zip(zip(*found, strict=True), (1, 0, 0), strict=True)
    )
    return y, ht, ct


def _part(b: Builder, v: Value, number: int) -> Value:
    """Return a direction's part of an operand; a scale for each column stays a row."""
    return squeeze(b, slice_(b, v, [0], [number], [number + 1]), [0])


def _bias(b: Builder, bias: Value | None, number: int, size: int, x: Value) -> Value:
    """Return the sum of the two biases of a direction: of the products with x and with h."""
    if bias is None:
        return zeros(b, (4 * size,), b.dtype(x))
    own = _part(b, bias, number)
    parts: Sequence[Value] = [slice_(b, own, [0], [at], [at + 4 * size]) for at in (0, 4 * size)]
    return b.add(*parts)
