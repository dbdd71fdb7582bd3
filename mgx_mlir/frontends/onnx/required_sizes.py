"""Static sizes of dynamic input dims that operators require: dims with only one valid size.

A layer norm whose scale has 768 numbers needs rows of 768, whatever the file says of its input. The
graph is read again with such sizes. Then weights need no broadcast at run time, rows have a static
length, and an input of another size is refused before the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mgx_mlir.core.ir import ir
from mgx_mlir.frontends.dims import Dim, DynamicDim
from mgx_mlir.frontends.onnx.options import OnnxOptions
from mgx_mlir.frontends.onnx.registry import OnnxOp
from mgx_mlir.frontends.program import Parameter
from mgx_mlir.frontends.values import Held
from mgx_mlir.programs.dim_probe import DimProbe, Dims
from mgx_mlir.symbolic.expressions import Int

Sizes = Mapping[tuple[str, int], int]  # sizes by the name of an input and the dim
Pairs = Iterator[tuple[Int, Int]]


class RequiredSizes:
    """Sizes found in one reading. `known`: sizes of earlier readings."""

    def __init__(self, options: OnnxOptions, known: Sizes) -> None:
        self._options = options
        self.known = dict(known)
        self._places: dict[Int, list[tuple[str, int]]] = {}
        self._found: dict[tuple[str, int], int] = {}
        self._doubtful: set[tuple[str, int]] = set()

    def parameter(self, p: Parameter) -> Parameter:
        """Return an input with the sizes of earlier readings."""
        if not any(name == p.name for name, _ in self.known):
            return p
        dims: list[Dim] = [self.known.get((p.name, i), d) for i, d in enumerate(p.dims)]
        return replace(p, dims=dims)

    def argument(self, p: Parameter, dims: Dims) -> None:
        """Record the input dims that dynamic dims of a value stand for.

        A dim with a range from the caller keeps it.
        """
        if self._options.given_dims(p.name, len(p.dims)) is not None:
            return
        for axis, (stated, size) in enumerate(zip(p.dims, dims, strict=True)):
            if isinstance(stated, DynamicDim) and (stated.min, stated.max) == (0, None):
                self._places.setdefault(size, []).append((p.name, axis))

    def read(
        self, probe: DimProbe, op: OnnxOp, inputs: Sequence[Held | None], given: Mapping[str, Any]
    ) -> None:
        """Record the sizes that an operator requires, if it always runs."""
        rule = _RULES.get((op.domain, op.name))
        if rule is None or not self._places:
            return
        dims = [probe.dims(v) if isinstance(v, ir.Value) else None for v in inputs]
        for one, other in rule(dims, given):
            size, number = (other, one) if isinstance(one, int) else (one, other)
            places = self._places.get(size, [])
            # some files use one name for unrelated dims
            if not isinstance(number, int) or number < 1 or len(places) != 1:
                continue
            if self._found.setdefault(places[0], number) != number:
                self._doubtful.add(places[0])  # the run reports the error

    def more(self) -> Sizes | None:
        """Return the sizes for another reading, None if it would add none."""
        new = {p: n for p, n in self._found.items() if p not in self._doubtful}
        return {**self.known, **new} if new else None


Operand = Dims | None
Rule = Callable[[Sequence[Operand], Mapping[str, Any]], Pairs]


def _channels(dims: Sequence[Operand], given: Mapping[str, Any]) -> Pairs:
    """Match vectors with one number per channel to dim 1."""
    x, *vectors = dims
    for v in vectors:
        if x is not None and len(x) > 1 and v is not None and len(v) == 1:
            yield x[1], v[0]


def _rows(dims: Sequence[Operand], given: Mapping[str, Any]) -> Pairs:
    """Match scales and biases, which are broadcast to the input, to its last dim."""
    x, *others = dims
    for v in others:
        if x is None or v is None or len(v) > len(x):
            continue
        for size, own in zip(x[len(x) - len(v) :], v, strict=True):
            if own != 1:
                yield size, own


def _last(at: Sequence[int]) -> Rule:
    """Return the rule for operands at indices `at` that are vectors of the input's last dim."""

    def rule(dims: Sequence[Operand], given: Mapping[str, Any]) -> Pairs:
        for v in (dims[i] for i in at if i < len(dims)):
            x = list(dims[0] or ())
            if x and v is not None and len(v) == 1:
                yield x[-1], v[0]

    return rule


def _product(a: int = 0, b: int = 1) -> Rule:
    """Return the rule for a matmul of operands `a` and `b`."""

    def rule(dims: Sequence[Operand], given: Mapping[str, Any]) -> Pairs:
        x, w = (list(dims[i] or ()) if i < len(dims) else [] for i in (a, b))
        if x and w:
            yield x[-1], w[-2] if len(w) > 1 else w[-1]

    return rule


def _gemm(dims: Sequence[Operand], given: Mapping[str, Any]) -> Pairs:
    a, b = dims[:2]
    if a is not None and b is not None and len(a) == len(b) == 2:
        yield a[0 if given.get("transA") else 1], b[1 if given.get("transB") else 0]


def _convolution(weights: int = 1) -> Rule:
    """Return the rule for a convolution: its weights have all channels of a group."""

    def rule(dims: Sequence[Operand], given: Mapping[str, Any]) -> Pairs:
        x, w = dims[0], dims[weights] if weights < len(dims) else None
        if x and w and len(x) == len(w) > 1:
            yield x[1], w[1] * given["window"].group

    return rule


def _transposed(dims: Sequence[Operand], given: Mapping[str, Any]) -> Pairs:
    x, w = dims[:2]
    if x and w and len(x) == len(w) > 1:
        yield x[1], w[0]


def _recurrent(dims: Sequence[Operand], given: Mapping[str, Any]) -> Pairs:
    x, w = dims[:2]
    if x and w and len(x) == len(w) == 3:
        yield x[2], w[2]


_RULES: dict[tuple[str, str], Rule] = {
    ("", "BatchNormalization"): _channels,
    ("", "InstanceNormalization"): _channels,
    ("", "LayerNormalization"): _rows,
    ("", "RMSNormalization"): _rows,
    ("", "SimplifiedLayerNormalization"): _rows,
    ("com.microsoft", "SkipLayerNormalization"): _last((2, 3, 4)),
    ("com.microsoft", "SkipSimplifiedLayerNormalization"): _last((2, 3)),
    ("", "Conv"): _convolution(),
    ("", "ConvInteger"): _convolution(),
    ("", "QLinearConv"): _convolution(3),
    ("", "ConvTranspose"): _transposed,
    ("", "Gemm"): _gemm,
    ("", "MatMul"): _product(),
    ("", "MatMulInteger"): _product(),
    ("", "QLinearMatMul"): _product(0, 3),
    ("", "LSTM"): _recurrent,
    ("", "GRU"): _recurrent,
    ("", "RNN"): _recurrent,
}
