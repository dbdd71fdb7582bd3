"""`macro`: a name for several operators, expanded when it is added."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgx_mlir.api.op import plain
from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import ShapeError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import DYN
from mgx_mlir.frontends.onnx import ops as onnx_ops
from mgx_mlir.frontends.onnx.registry import find
from mgx_mlir.programs.build import Builder
from mgx_mlir.programs.instructions import Instruction, as_value
from mgx_mlir.programs.module_builder import ModuleBuilder

OPSET = 23
Value = Any


@dataclass(frozen=True)
class Rule:
    """Expansion of a macro: its options with defaults, the counts of inputs, the function."""

    function: Callable[..., Any]
    options: dict[str, Any]
    least: int
    most: int


_RULES: dict[str, Rule] = {}


def _rule(name: str, least: int, most: int | None = None, **options: Any) -> Callable[..., Any]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _RULES[name] = Rule(function, options, least, most or least)
        return function

    return register


class macro:
    """A macro with its options. ShapeError for an unknown name or option."""

    def __init__(self, name: str, **options: Any) -> None:
        rule = _RULES.get(name)
        if rule is None:
            near = difflib.get_close_matches(name, _RULES, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(sorted(_RULES))}"
            raise ShapeError(f"unknown macro '{name}'", notes=[hint])
        for key in options:
            if key not in rule.options:
                known = ", ".join(rule.options) or "none"
                raise ShapeError(
                    f"macro '{name}' has no option '{key}'", notes=[f"it has: {known}"]
                )
        self._name = name
        self._options = {k: plain(v) for k, v in options.items()}

    def name(self) -> str:
        """Return the macro's name."""
        return self._name

    def options(self) -> dict[str, Any]:
        """Return the options that were given."""
        return dict(self._options)

    def __repr__(self) -> str:
        inside = ",".join(f"{k}={v}" for k, v in self._options.items())
        return f"{self._name}[{inside}]" if inside else self._name


def macros() -> list[str]:
    """Return the names of all macros."""
    return sorted(_RULES)


def expand(
    builder: ModuleBuilder,
    what: macro,
    inputs: Sequence[Instruction],
    before: ir.Operation | None = None,
) -> list[ir.Value]:
    """Build a macro's operators at the end of a module, or ahead of `before`."""
    if not isinstance(what, macro):
        raise ShapeError(f"expected a macro, got {type(what).__name__}")
    rule = _RULES[what.name()]
    if not rule.least <= len(inputs) <= rule.most:
        span = str(rule.least) if rule.least == rule.most else f"{rule.least} to {rule.most}"
        raise ShapeError(f"macro '{what.name()}' expected {span} inputs, got {len(inputs)}")
    end = builder.open()
    with builder.program.building(), ir.InsertionPoint(before or end or builder.block):
        found = rule.function(
            Builder(), *map(as_value, inputs), **{**rule.options, **what.options()}
        )
    return list(found) if isinstance(found, tuple | list) else [found]


class _Node:
    """Node interface that the importer's operator functions use."""

    opset = OPSET
    name = "macro"
    output_count = 1

    def __init__(self, b: Builder, op_type: str) -> None:
        self.builder, self.op_type = b, op_type

    def wants(self, output: int) -> bool:
        return output == 0

    def kind(self, value: object) -> int:
        """Return 0, since no file gives the type a number."""
        return 0

    def const(self, value: Any, what: str) -> np.ndarray:
        found = self.builder.const(value)
        if found is None:
            raise ShapeError(f"'{what}' expected a value that is known when the macro is added")
        return found

    def ints(self, value: Any, what: str) -> list[int]:
        return [int(x) for x in self.const(value, what).reshape(-1)]


def _onnx(b: Builder, op_type: str, *values: Any, **attributes: Any) -> Any:
    """Build an ONNX operator with the importer's function."""
    onnx_ops.load()
    found = find("", op_type, OPSET)
    assert found is not None
    made = found.function(b, _Node(b, op_type), *values, **found.arguments(attributes))
    return made[0] if isinstance(made, tuple | list) else made


@_rule("batchnorm", 5, epsilon=1e-5)
def _batchnorm(b: Builder, *xs: Value, epsilon: float) -> Value:
    return _onnx(b, "BatchNormalization", *xs, epsilon=epsilon)


@_rule("bias_uint8", 2, has_bias=False)
def _bias_uint8(b: Builder, x: Value, bias: Value, *, has_bias: bool) -> tuple[Value, Value]:
    """Shift uint8 to int8, and subtract the bias from it."""
    if b.dtype(x) is dtypes.UINT8:
        x = _to_int8(b, x)
        bias = _to_int8(b, bias) if has_bias else x
    return x, b.sub(x, bias) if has_bias else bias


def _to_int8(b: Builder, x: Value) -> Value:
    half = b.op("convert", x, target_type=dtypes.HALF)
    return b.op("convert", b.add(half, -128.0), target_type=dtypes.INT8)


@_rule("celu", 1, alpha=1.0)
def _celu(b: Builder, x: Value, *, alpha: float) -> Value:
    return _onnx(b, "Celu", x, alpha=alpha)


@_rule("clip", 1, 3)
def _clip(b: Builder, *xs: Value) -> Value:
    return _onnx(b, "Clip", *xs)


_CONVOLUTION: dict[str, Any] = {
    "auto_pad": "NOTSET", "paddings": (), "strides": (), "dilations": (), "group": 1,
    "padding_mode": 0,
}  # fmt: skip


@_rule("convolution", 2, 3, **_CONVOLUTION)
def _convolution(b: Builder, *xs: Value, **options: Any) -> Value:
    return _onnx(b, "Conv", *xs, **_windows(b, xs[0], options))


@_rule("convolution_integer", 2, 4, **_CONVOLUTION)
def _convolution_integer(b: Builder, *xs: Value, **options: Any) -> Value:
    return _onnx(b, "ConvInteger", *xs, **_windows(b, xs[0], options))


def _windows(b: Builder, x: Value, options: dict[str, Any]) -> dict[str, Any]:
    """Convert the options of a convolution to ONNX's attributes."""
    axes = len(b.dims(x)) - 2
    pads = list(options["paddings"])
    auto = options["auto_pad"]
    if options["padding_mode"] in (1, 2, "same_lower", "same_upper"):
        lower = options["padding_mode"] in (1, "same_lower")
        auto = "SAME_LOWER" if lower else "SAME_UPPER"
    if len(pads) == axes:
        pads = pads * 2
    if pads and len(pads) != 2 * axes:
        raise ShapeError(f"paddings expected {axes} or {2 * axes} numbers, got {len(pads)}")
    found: dict[str, Any] = {"auto_pad": auto, "group": options["group"]}
    if pads and auto == "NOTSET":
        found["pads"] = pads
    for key in ("strides", "dilations"):
        if options[key]:
            found[key] = list(options[key])
    return found


@_rule("dot", 2)
def _dot(b: Builder, x: Value, y: Value) -> Value:
    return _onnx(b, "MatMul", x, y)


@_rule("quant_dot", 2, 4)
def _quant_dot(b: Builder, *xs: Value) -> Value:
    return _onnx(b, "MatMulInteger", *xs)


@_rule("einsum", 1, 16, equation="")
def _einsum(b: Builder, *xs: Value, equation: str) -> Value:
    return _onnx(b, "Einsum", *xs, equation=equation)


@_rule("gelu_quick", 1, alpha=1.0)
def _gelu_quick(b: Builder, x: Value, *, alpha: float) -> Value:
    return b.mul(x, b.sigmoid(b.mul(x, alpha)))


@_rule("gelu_erf", 1)
def _gelu_erf(b: Builder, x: Value) -> Value:
    return b.mul(b.mul(x, 0.5), b.add(b.erf(b.div(x, math.sqrt(2))), 1.0))


@_rule("gelu_tanh", 1, fast=False)
def _gelu_tanh(b: Builder, x: Value, *, fast: bool) -> Value:
    """Build x/2 (1 + tanh(c (x + d x^3))); `fast` rounds c and c d."""
    cube = b.mul(b.mul(x, x), x)
    if fast:
        inner = b.add(b.mul(cube, 0.035677), b.mul(x, 0.797885))
    else:
        inner = b.mul(b.add(b.mul(cube, 0.044715), x), math.sqrt(2 / math.pi))
    return b.mul(b.add(b.tanh(inner), 1.0), b.mul(x, 0.5))


@_rule("gelu_split", 1)
def _gelu_split(b: Builder, x: Value) -> Value:
    """Build the first half of the last axis times the gelu of the second half."""
    n, axis = b.dims(x)[-1], len(b.dims(x)) - 1
    if n == DYN or n < 2 or n % 2:
        raise ShapeError(f"macro 'gelu_split' expected an even last extent, got {n}")
    left = b.op("slice", x, axes=[axis], starts=[0], ends=[n // 2])
    right = b.op("slice", x, axes=[axis], starts=[n // 2], ends=[n])
    return b.mul(left, _gelu_erf(b, right))


@_rule("gemm", 2, 3, alpha=1.0, beta=1.0, transA=False, transB=False)
def _gemm(b: Builder, *xs: Value, **options: Any) -> Value:
    return _onnx(b, "Gemm", *xs, **{k: int(v) if "trans" in k else v for k, v in options.items()})


@_rule("mean_variance_normalization", 1, axes=(0, 2, 3))
def _normalization(b: Builder, x: Value, *, axes: Sequence[int]) -> Value:
    if len(axes) != len(b.dims(x)) - 1:
        raise ShapeError(f"axes expected {len(b.dims(x)) - 1} numbers (rank - 1), got {len(axes)}")
    # E((x - mean)^2): E(x^2) - mean^2 cancels
    centred = b.sub(x, b.op("reduce_mean", x, axes=list(axes)))
    variance = b.op("reduce_mean", b.mul(centred, centred), axes=list(axes))
    tiny = 1e-7 if b.dtype(x) is dtypes.HALF else 1e-9
    return b.div(centred, b.add(b.sqrt(variance), tiny))


def _binary(name: str) -> None:
    @_rule(name, 2, broadcasted=0, axis=0, is_broadcasted=False)
    def function(
        b: Builder, x: Value, y: Value, *, broadcasted: int, axis: int, is_broadcasted: bool
    ) -> Value:
        if not is_broadcasted:
            return getattr(b, name)(x, y)
        if broadcasted:
            dims = b.dims(x)
            if DYN in dims:
                raise ShapeError("option 'broadcasted' expected static dims")
            y = b.op("broadcast", y, axis=axis, out_lens=list(dims))
        return b.op(name, x, y)


for _name in ("add", "sub", "mul", "div", "prelu", "logical_and", "logical_or", "logical_xor",
              "bitwise_and"):  # fmt: skip
    _binary(_name)


@_rule("quantizelinear", 2, 3, axis=1, block_size=0, output_type=None)
def _quantizelinear(
    b: Builder, *xs: Value, axis: int, block_size: int, output_type: str | int | None
) -> Value:
    more = {} if output_type is None else {"output_dtype": _dtype(output_type).onnx}
    return _onnx(b, "QuantizeLinear", *xs, axis=axis, block_size=block_size, **more)


@_rule("dequantizelinear", 2, 3, axis=1, block_size=0)
def _dequantizelinear(b: Builder, *xs: Value, axis: int, block_size: int) -> Value:
    return _onnx(b, "DequantizeLinear", *xs, axis=axis, block_size=block_size)


def _dtype(value: str | int) -> dtypes.DType:
    return dtypes.from_name(value) if isinstance(value, str) else dtypes.from_number(value)


@_rule("rotary_embedding", 4, interleaved=False)
def _rotary_embedding(
    b: Builder, x: Value, positions: Value, cos: Value, sin: Value, *, interleaved: bool
) -> Value:
    """Rotate {batch, heads, sequence, head size}; a single position per batch is that of its first
    token.
    """
    dims = b.dims(x)
    if len(dims) != 4 or DYN in dims:
        raise ShapeError("macro 'rotary_embedding' expected static dims of rank 4")
    batch, length = dims[0], dims[2]
    given = b.type(positions)
    if given.elements == batch * length and length > 1:
        at = b.op("reshape", positions, dims=[batch, length])
    else:
        at = b.op("reshape", positions, dims=[1 if given.elements == 1 else batch, 1])
        at = b.multibroadcast(at, [batch, length])
        if length > 1:
            at = b.add(at, np.arange(length).reshape(1, length).astype(given.dtype.np))
    return _onnx(b, "RotaryEmbedding", x, cos, sin, at, interleaved=int(interleaved))


@_rule("tile", 1, repeats=())
def _tile(b: Builder, x: Value, *, repeats: Sequence[int]) -> Value:
    dims = b.dims(x)
    if len(repeats) != len(dims):
        raise ShapeError(f"repeats expected {len(dims)} numbers, got {len(repeats)}")
    return _onnx(b, "Tile", x, b.ints(repeats))
