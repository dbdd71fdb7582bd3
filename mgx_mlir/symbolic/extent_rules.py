"""Dims of the few ops whose `infer` cannot compute them from symbolic extents.

Their bounds, dims or sizes are operands or fractions, or their clamps have a simpler form than the
two cases of a comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

import numpy as np

from mgx_mlir.symbolic.expressions import Int
from mgx_mlir.symbolic.space import Space

Dims = tuple[Int, ...]
Known = Sequence[Int] | None  # elements of a vector, if known
Rule = Callable[["Operands"], Sequence[Int | None] | None]

_FAR = 1 << 62  # slice bound beyond every extent


class Operands:
    """Operands of an op by name: `dims[name]`, and the elements of known integer tensors."""

    def __init__(
        self,
        space: Space,
        dims: Mapping[str, Dims],
        elements: Mapping[str, np.ndarray | None],
        attributes: Mapping[str, Any],
    ) -> None:
        self.space, self.dims, self._elements, self.attributes = space, dims, elements, attributes

    def has(self, name: str) -> bool:
        """Return whether the op has the operand `name`."""
        return name in self.dims

    def elements(self, name: str) -> list[Int] | None:
        """Return the elements of an operand in order; None if unknown."""
        found = self._elements.get(name)
        return None if found is None else list(found.reshape(-1))

    def listed(self, name: str) -> list[Int] | None:
        """Return the numbers of attribute `name`, or of the operand input_<name>."""
        if self.has(f"input_{name}"):
            return self.elements(f"input_{name}")
        return list(self.attributes[name])


def broadcast(space: Space, extents: Sequence[Int]) -> Int:
    """Return the common broadcast of extents; an extent of 1 adapts to the next."""
    numbers = [d for d in extents if isinstance(d, int) and d != 1]
    if numbers:
        return numbers[0]  # the others are 1 or equal
    out: Int = 1
    for d in extents:
        if d is not out and d != 1:
            if out != 1:
                space.tell_broadcast(out, d)
            if out != 1 and space.nonnegative(out - d) and space.nonnegative(d - out):
                continue  # equal in another form
            if out == 1 or space.is_joined(d, out):
                out = d
            elif not space.is_joined(out, d):
                out = space.select(space.equal(out, 1), d, out)
    return out


def _slice(o: Operands) -> Sequence[Int | None]:
    out: list[Int | None] = list(o.dims["input"])
    axes, starts, ends = (o.listed(n) for n in ("axes", "starts", "ends"))
    if axes is None or any(not isinstance(a, int) for a in axes):
        return [None] * len(out)
    for i, axis in enumerate(cast("list[int]", axes)):
        d = out[axis]
        out[axis] = None
        if starts is not None and ends is not None and d is not None:
            out[axis] = _sliced(o.space, d, starts[i], ends[i])
    return out


def _sliced(space: Space, d: Int, start: Int, end: Int) -> Int:
    low, high = _bound(space, start, d), _bound(space, end, d)
    return space.pos(high - low)


def _bound(space: Space, at: Int, d: Int) -> Int:
    """Return a slice's bound clamped to [0, d]; a negative one counts from the end."""
    if isinstance(at, int):
        if abs(at) >= _FAR:
            return d if at > 0 else 0
        return space.minimum(at, d) if at >= 0 else space.pos(d + at)
    if not space.nonnegative(at):
        at = space.pos(space.select(space.at_least(at), at, at + d))
    return space.minimum(at, d)


def _reshape(o: Operands) -> Sequence[Int | None] | None:
    """Apply reshape: 0 copies, -1 is inferred. An extent that could be 0 is literal with
    `allowzero`, or if the number of elements is a multiple of it (the tensor is then empty).
    """
    source, space = o.dims["input"], o.space
    if not o.has("dims_tensor"):
        stated: Sequence[int] = o.attributes["dims"]
        if -1 in stated or len(stated) > len(source):
            return None
        return [d if d else source[i] for i, d in enumerate(stated)]
    wanted = o.elements("dims_tensor")
    if wanted is None:
        return None
    total: Int = 1
    for d in source:
        total = total * d
    out: list[Int | None] = []
    rest: Int | None = 1
    for i, w in enumerate(wanted):
        d: Int | None = w
        own = source[i] if i < len(source) else None
        if isinstance(w, int):
            d = own if w == 0 and not o.attributes["allowzero"] else w
        elif not space.nonnegative(w):
            d = None
        elif o.attributes["allowzero"]:
            pass
        elif w is not own and not space.nonnegative(w - 1) and space.exact(total, w) is None:
            d = None if own is None else space.select(space.is_zero(w), own, w)
        out.append(d)
        if w != -1:
            rest = None if rest is None or d is None else rest * d
    if -1 in wanted:
        left = None if rest is None or rest == 0 else space.floordiv(total, rest)
        out[wanted.index(-1)] = left
    return out


def _broadcast_with_dims(o: Operands) -> Sequence[Int | None] | None:
    wanted, own = o.elements("dims"), list(o.dims["input"])
    if wanted is None:
        return None
    rank = max(len(wanted), len(own))
    own, wanted = [1] * (rank - len(own)) + own, [1] * (rank - len(wanted)) + wanted
    return [broadcast(o.space, pair) for pair in zip(own, wanted, strict=True)]


def _multibroadcast(o: Operands) -> Sequence[Int | None] | None:
    if o.attributes["out_lens"] or o.attributes["out_dyn_dims"]:
        return None
    shapes = [d for name, d in o.dims.items() if name.startswith("inputs")]
    rank = max(map(len, shapes))
    rows = [[1] * (rank - len(s)) + list(s) for s in shapes]
    return [broadcast(o.space, column) for column in zip(*rows, strict=True)]


def _broadcast_for_dot(o: Operands) -> Sequence[Int | None] | None:
    own, other = (list(o.dims[name]) for name in ("input", "ref"))
    rank = max(len(own), len(other)) - 2
    rows = [[1] * (rank + 2 - len(d)) + d[:-2] for d in (own, other)]
    return [*(broadcast(o.space, pair) for pair in zip(*rows, strict=True)), *own[-2:]]


def _dynamic_range(o: Operands) -> Sequence[Int | None] | None:
    given = [o.elements(name) for name in ("start", "limit", "delta")]
    if any(g is None for g in given):
        return None
    start, limit, step = (g[0] for g in given if g)
    if not isinstance(step, int) or step == 0:
        return None
    away = limit - start if step > 0 else start - limit
    return [o.space.pos(o.space.floordiv(away + abs(step) - 1, abs(step)))]


def _topk(o: Operands) -> Sequence[Int | None] | None:
    count, dims = o.elements("count") if o.has("count") else None, list(o.dims["input"])
    if count is None:
        return None
    dims[o.attributes["axis"] % len(dims)] = count[0]
    return dims


def _resize(o: Operands) -> Sequence[Int | None] | None:
    dims, scales = o.dims["input"], o.attributes["scales"]
    if o.has("target"):
        wanted = o.elements("target")  # a negative size keeps the extent
        if wanted is None:
            return None
        sizes = zip(wanted, dims, strict=True)
        return [d if o.space.nonnegative(-1 - w) else w if o.space.nonnegative(w) else None
                for w, d in sizes]  # fmt: skip
    if not scales:
        return None
    return [_scaled(o.space, d, float(s)) for d, s in zip(dims, scales, strict=True)]


def _scaled(space: Space, d: Int, scale: float) -> Int | None:
    """Return floor(d * scale) in f32, exact for a scale with few binary digits.

    This holds for extents up to 2^20, more than resized tensors have.
    """
    exact = Fraction(scale)
    if isinstance(d, int):
        return None
    if exact.numerator > 16 or exact.denominator > 256:
        return space.function("scaled", (d, repr(scale)), 0)
    return space.floordiv(d * exact.numerator, exact.denominator)


def _concat_past_present(o: Operands) -> Sequence[Int | None] | None:
    if not o.has("rows"):
        return None
    wanted, dims = o.elements("rows"), list(o.dims["past"])
    have = dims[2]
    return [*dims[:2], None if wanted is None else have + o.space.pos(wanted[0] - have), dims[3]]


def _of_dims(o: Operands) -> Sequence[Int | None] | None:
    return o.elements("dims") if o.has("dims") else None


RULES: dict[str, Rule] = {
    "slice": _slice,
    "reshape": _reshape,
    "broadcast_for_dot": _broadcast_for_dot,
    "broadcast_with_dims": _broadcast_with_dims,
    "multibroadcast": _multibroadcast,
    "dynamic_range": _dynamic_range,
    "topk": _topk,
    "resize": _resize,
    "allocate": _of_dims,
    "concat_past_present": _concat_past_present,
}
