"""Cross-layer equalisation: scale one layer's output channels, and the next layer's weights
inversely.

Two dots or convolutions may have only homogeneous ops between them (ReLU, poolings, biases). Then
channel i can be divided by a number, and the second one's weights of that channel multiplied: the
result is the same (Nagel et al., Data-Free Quantization Through Weight Equalization and Bias
Correction, 2019). The number makes both weights of a channel equally large, so that one scale fits
the activations of all channels, and all inputs of a weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mgx_mlir.core import literals
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a, mnemonic
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.linear import Convolution, Dot
from mgx_mlir.programs.build import Builder
from mgx_mlir.programs.program_ir import ProgramIR, entry_block

_ROUNDS = 50
_SETTLED = 1e-3  # change of a factor's logarithm in an iteration, below which it has converged
# homogeneous ops of one operand: a positive multiple of the operand gives that multiple of the
# result
_IN_PROPORTION = ("relu", "leaky_relu", "identity", "abs", "neg")
# ops with constants, which are divided like their channel
_WITH_LIMITS = ("add", "sub", "max", "min", "clip")
_BY_FACTORS = ("mul", "prelu")  # ops whose constants stay


@dataclass
class _Product:
    """A dot or convolution with constant weights, which are changed until `write` stores them."""

    op: ir.Operation
    weights: np.ndarray

    @property
    def groups(self) -> int:
        return int(self.op.opview.group) if is_a(self.op, Convolution) else 1

    def outputs(self) -> np.ndarray:
        """Return the largest weight magnitude of each output channel."""
        if is_a(self.op, Dot):
            return np.abs(self.weights).max(0)
        return np.abs(self.weights).reshape(self.weights.shape[0], -1).max(1)

    def inputs(self) -> np.ndarray:
        """Return the largest weight magnitude of each input channel."""
        if is_a(self.op, Dot):
            return np.abs(self.weights).max(1)
        return np.abs(self._by_group()).max((1, 3)).reshape(-1)

    def scale_outputs(self, factors: np.ndarray) -> None:
        shape = (1, -1) if is_a(self.op, Dot) else (-1, *[1] * (self.weights.ndim - 1))
        self.weights = self.weights * factors.reshape(shape)

    def scale_inputs(self, factors: np.ndarray) -> None:
        if is_a(self.op, Dot):
            self.weights = self.weights * factors[:, None]
            return
        parts = self._by_group()
        each = factors.reshape(parts.shape[0], 1, parts.shape[2], 1)
        self.weights = (parts * each).reshape(self.weights.shape)

    def _by_group(self) -> np.ndarray:
        """Return the weights as {groups, outputs of one, inputs of one, window}."""
        w = self.weights
        return w.reshape(self.groups, w.shape[0] // self.groups, w.shape[1], -1)

    def write(self, b: Builder) -> None:
        old = TensorType.of(self.op.operands[1]).dtype.np
        with ir.InsertionPoint(self.op), self.op.location:
            self.op.operands[1] = b.literal(self.weights.astype(old))


@dataclass
class _Pair:
    """Two consecutive dots or convolutions."""

    first: _Product
    second: _Product
    # constant operands in between: (op, operand index, axis of the channels)
    constants: list[tuple[ir.Operation, int, int]]
    # factor of each channel, which divides the first weights and multiplies the second
    factors: np.ndarray = field(default_factory=lambda: np.ones(1))


def equalise(program: ProgramIR) -> int:
    """Equalise consecutive dots and convolutions of a prepared program; return the number of pairs.

    It covers convolutions whose channels are the second axis, and dots with a matrix, with weights
    that are literals of f32 or f64. Results change only by rounding.
    """
    with program.ctx, program.store.active():
        pairs = _pairs(entry_block(program.main()))
        for p in pairs:
            p.factors = np.ones(p.second.inputs().size)
        for _ in range(_ROUNDS):
            if max((_balance(p) for p in pairs), default=0.0) < _SETTLED:
                break
        b = Builder()
        for product in {id(q): q for p in pairs for q in (p.first, p.second)}.values():
            product.write(b)
        for p in pairs:
            for op, k, axis in p.constants:
                _divide(b, op, k, axis, p.factors)
    return len(pairs)


def _balance(pair: _Pair) -> float:
    """Balance both weights of each channel; return the largest change."""
    first, second = pair.first.outputs(), pair.second.inputs()
    used = (first > 0) & (second > 0)
    step = np.ones_like(first)
    step[used] = np.sqrt(first[used] / second[used])
    pair.first.scale_outputs(1 / step)
    pair.second.scale_inputs(step)
    pair.factors = pair.factors * step
    return float(np.abs(np.log(step)).max(initial=0.0))


def _pairs(block: ir.Block) -> list[_Pair]:
    products: dict[ir.Operation, _Product] = {}
    for view in block.operations:
        op = view.operation
        w = op.operands[1] if is_a(op, (Dot, Convolution)) else None
        if w is None or not literals.is_literal(w) or TensorType.of(w).dtype.size < 4:
            continue
        t = TensorType.of(w)
        plain = t.rank == 2 if is_a(op, Dot) else not op.opview.channels_last
        if t.dtype.is_float and plain and t.elements:
            products[op] = _Product(op, literals.array_of(w.owner).astype(np.float64))
    found: list[_Pair] = []
    for op, first in products.items():
        pair = _next(op, first, products)
        if pair is not None:
            found.append(pair)
    return found


def _next(
    op: ir.Operation, first: _Product, products: dict[ir.Operation, _Product]
) -> _Pair | None:
    """Return the pair of a dot or convolution with the one that reads its channels, None without
    one.
    """
    value = op.results[0]
    axis = TensorType.of(value).rank - 1 if is_a(op, Dot) else 1
    count = first.outputs().size
    constants: list[tuple[ir.Operation, int, int]] = []
    while True:
        uses = [u for u in value.uses if not _reads_dims(u)]
        if len(uses) != 1:
            return None
        user, place = uses[0].owner.operation, uses[0].operand_number
        if user in products:
            second = products[user]
            along = TensorType.of(value).rank - 1 if is_a(user, Dot) else 1
            fits = place == 0 and along == axis and second.inputs().size == count
            return _Pair(first, second, constants) if fits else None
        moved = _through(user, place, axis)
        if moved is None:
            return None
        constants += [(user, k, moved) for k in _limits(user, place)]
        value, axis = user.results[0], moved


def _reads_dims(use: ir.OpOperand) -> bool:
    """Return whether an operand only provides extents of a result."""
    name = mnemonic(use.owner.operation)
    return name == "dimensions_of" or (name == "multibroadcast" and use.operand_number > 0)


def _through(op: ir.Operation, place: int, axis: int) -> int | None:
    """Return the channel axis after an op that keeps channels proportional, None for others."""
    name = mnemonic(op)
    others = [v for i, v in enumerate(op.operands) if i != place]
    if name in _IN_PROPORTION:
        return axis
    if name in (*_WITH_LIMITS, *_BY_FACTORS):
        same_place = place == 0 or name in ("add", "sub", "mul", "max", "min")
        return axis if same_place and all(_constant(v) is not None for v in others) else None
    if name == "pooling" and not op.opview.channels_last:
        return axis if op.opview.mode in ("max", "average") else None
    if name == "reshape" and len(op.operands) == 1:  # reshape of a 1x1 map to its channels
        own, out = TensorType.of(op.operands[0]).dims, TensorType.of(op.results[0]).dims
        if axis == 1 and len(out) == 2 and DYN not in own[1:] and own[1:2] == out[1:]:
            return axis if all(d == 1 for d in own[2:]) else None
    return None


def _limits(op: ir.Operation, place: int) -> list[int]:
    """Return the operands of an op that are divided like its result."""
    if mnemonic(op) not in _WITH_LIMITS:
        return []
    return [i for i in range(len(op.operands)) if i != place]


def _constant(value: ir.Value) -> np.ndarray | None:
    """Return a constant with as many axes as its value, broadcast or not."""
    rank = TensorType.of(value).rank
    steps: list[ir.Operation] = []
    while not literals.is_literal(value):
        if isinstance(value.owner, ir.Block):
            return None
        op = value.owner.operation
        if mnemonic(op) not in ("broadcast", "multibroadcast"):
            return None
        steps.append(op)
        value = op.operands[0]
    found = literals.array_of(value.owner)
    for op in reversed(steps):
        wide = TensorType.of(op.results[0]).rank
        before = op.opview.axis if mnemonic(op) == "broadcast" else wide - found.ndim
        after = wide - before - found.ndim
        found = found.reshape(*[1] * before, *found.shape, *[1] * after)
    return found.reshape(*[1] * (rank - found.ndim), *found.shape)


def _divide(b: Builder, op: ir.Operation, k: int, axis: int, factors: np.ndarray) -> None:
    """Divide a constant operand by the factors of its channels."""
    value = op.operands[k]
    t, array = TensorType.of(value), _constant(value)
    assert array is not None
    shape: Sequence[int] = [-1 if i == axis else 1 for i in range(t.rank)]
    with np.errstate(over="ignore"):  # an infinite limit stays infinite
        made = (array.astype(np.float64) / factors.reshape(shape)).astype(array.dtype)
    with ir.InsertionPoint(op), op.location:
        literal = b.literal(made)
        if t.is_static:
            op.operands[k] = b.multibroadcast(literal, t.dims)
        else:
            like = next(v for i, v in enumerate(op.operands) if i != k)
            op.operands[k] = b.op("multibroadcast", [literal, like])
