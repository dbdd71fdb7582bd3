"""Norms over groups of channels in channels-last order: patterns of layout_convolution."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core.dynamic_dims import is_named
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import BroadcastOp, Pointwise, is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.reduce import NumberReduction
from mgx_mlir.dialects.migraphx.views import Reshape
from mgx_mlir.passes.analysis.channels_last import from_last, to_first
from mgx_mlir.passes.analysis.rebuild import rebuild
from mgx_mlir.passes.analysis.repeated import repeated_dims
from mgx_mlir.rewrite.pattern import Replacement, Rewriter, defined_by, no_match, pattern

_DEPTH = 48  # most ops between a reduction and the readers of its norm


class _Groups:
    """The ops between two reshapes, {N,C,s..} to {N,G,rest..} and back, and their channels-last
    form.

    There a per-element value is {N,s..,G,C/G}, a per-group value {N,1..,G,1}; N may be 1 where a
    value is the same for all.
    """

    def __init__(self, rw: Rewriter, image: tuple[int, ...], inner: tuple[int, ...]) -> None:
        self.rw, self.inner = rw, inner
        n, self.channels, *self.spatial = image
        self.groups, self.each = inner[1], self.channels // inner[1]
        self.last = (n, *self.spatial, self.channels)
        self.rows = (self.groups, *[1] * (len(inner) - 2))
        self.reduced = False
        self.seen: dict[ir.Value, bool] = {}
        self.made: dict[ir.Value, ir.Value] = {}

    def split_dims(self, dims: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the channels-last dims of a per-element or per-group value; None for others."""
        if not dims or dims[0] not in (1, self.inner[0]):
            return None
        if dims[1:] == self.inner[1:]:
            return (dims[0], *self.spatial, self.groups, self.each)
        if dims[1:] == self.rows:
            return (dims[0], *[1] * len(self.spatial), self.groups, 1)
        return None

    # ---- whether it can be built -------------------------------------------------------------

    def fits(self, v: ir.Value) -> bool:
        """Return whether a value has a channels-last form."""
        if v not in self.seen:
            self.seen[v] = self._fits(v)
        return self.seen[v]

    def _fits(self, v: ir.Value) -> bool:
        dims = TensorType.of(v).dims
        if self.split_dims(dims) is None:
            return False
        if self.source(v) is not None:
            return True
        view = defined_by(v)
        if view is None:
            return False
        operands = list(view.operation.operands)
        if is_a(view, BroadcastOp) and len(operands) == 1 and self.fits(operands[0]):
            return True
        if self.repeated(v) is not None:
            return True
        if is_a(view, Pointwise) and len(view.operation.results) == 1:
            return all(self.fits(x) for x in operands)
        if is_a(view, NumberReduction) and len(operands) == 1:
            rank = len(self.inner)
            axes = sorted(a % rank for a in view.axes)
            self.reduced = True
            return axes == list(range(2, rank)) and self.fits(operands[0])
        return False

    def source(self, v: ir.Value) -> ir.Value | None:
        """Return the channels-last image that `v` is a reshape of."""
        view = defined_by(v, Reshape)
        if view is None or view.dims_tensor is not None or TensorType.of(v).dims != self.inner:
            return None
        x = from_last(self.rw, view.input)
        return x if x is not None and TensorType.of(x).dims == self.last else None

    def repeated(self, v: ir.Value) -> tuple[ir.Value, tuple[int, ...]] | None:
        """Return the source of a broadcast `v`, and its dims in channels-last order."""
        shape = defined_by(v, Reshape)
        if shape is not None and shape.dims_tensor is not None:
            return None
        found = repeated_dims(shape.input if shape is not None else v)
        if found is None:
            return None
        base, dims = found
        whole = TensorType.of(shape.input).dims if shape is not None else self.inner
        if all(d == 1 for d in dims):
            return base, (1,) * (len(self.spatial) + 3)
        if len(dims) < 3 or dims[0] not in (1, self.inner[0]):
            return None
        if shape is not None and whole[1] == self.channels:
            own = (self.groups, self.each) if dims[1] == self.channels else (1, 1)
            behind = dims[2:]
        elif whole[1] != self.groups:
            return None
        elif len(whole) > 3 and whole[2] == self.each:
            own, behind = dims[1:3], dims[3:]
        else:
            own, behind = (dims[1], 1), dims[2:]
        if any(d != 1 for d in behind):
            return None
        return base, (dims[0], *[1] * len(self.spatial), *own)

    # ---- building ----------------------------------------------------------------------------

    def build(self, v: ir.Value) -> ir.Value:
        """Return a value in channels-last order."""
        if v not in self.made:
            self.made[v] = self._build(v)
        return self.made[v]

    def _build(self, v: ir.Value) -> ir.Value:
        rw, t = self.rw, TensorType.of(v)
        dims = self.split_dims(t.dims)
        assert dims is not None, "fits() was asked first"
        x = self.source(v)
        if x is not None:
            return rw.op("reshape", x, dims=list(dims))
        view = defined_by(v)
        operands = list(view.operation.operands)
        rw.merge_location(view)
        if is_a(view, BroadcastOp) and self.fits(operands[0]):
            return rw.op("multibroadcast", [self.build(operands[0])], out_lens=list(dims))
        found = self.repeated(v)
        if found is not None:
            base = rw.op("reshape", found[0], dims=list(found[1]))
            return rw.op("multibroadcast", [base], out_lens=list(dims))
        if is_a(view, NumberReduction):
            axes = [*range(1, len(dims) - 2), len(dims) - 1]
            return rw.op(view.mnemonic, self.build(operands[0]), axes=axes)
        return rebuild(view, [self.build(x) for x in operands], t.with_dims(dims))


@pattern(Reshape)
def find_group_norm_layout(op: Reshape, rw: Rewriter) -> Replacement:
    """reshape(norm(reshape(transpose(x)))) -> transpose(reshape(norm(reshape(x)))), by groups

    A group norm of a channels-last image, written over {N,G,rest} between transposes, becomes one
    over {N,s..,G,C/G}, without them. GroupNormalization.
    """
    if not rw.options.groups:
        return no_match("the target reads rows of groups (groups is off)")
    image, inner = TensorType.of(op.out), TensorType.of(op.input)
    if op.dims_tensor is not None or image.rank < 3 or inner.rank < 3:
        return no_match("it does not join groups of channels")
    if not image.is_static or not inner.is_static or 0 in image.dims:
        return no_match("an extent is unknown, or 0")
    channels, groups = image.dims[1], inner.dims[1]
    known = not is_named(channels) and not is_named(groups)
    if inner.dims[0] != image.dims[0] or not known or channels % groups:
        return no_match("{} channels do not divide into {} groups", channels, groups)
    if inner.rank > 3 and inner.dims[2] != channels // groups:
        return no_match("the dims after the groups are not the channels of one")
    region = _Groups(rw, image.dims, inner.dims)
    if not region.fits(op.input) or not region.reduced:
        return no_match("it is no norm over groups of a channels-last image's channels")
    y = rw.op("reshape", region.build(op.input), dims=list(region.last))
    return rw.op("transpose", y, permutation=to_first(image.rank))


@pattern(Pointwise)
def find_group_pointwise_layout(op: Pointwise, rw: Rewriter) -> Replacement:
    """f(reshape(norm), y) -> reshape(f(norm, reshape(y))), norm over groups of the last dim"""
    if not rw.options.groups:
        return no_match("the target reads rows of groups (groups is off)")
    operands = list(op.operation.operands)
    out = TensorType.of(op.operation.results[0])
    norms = [_joined_norm(v, out.dims) for v in operands]
    found = next((v for v in norms if v is not None), None)
    if found is None or len(op.operation.results) != 1:
        return no_match("no operand is a norm over groups whose dims are joined")
    full = TensorType.of(found).dims
    bases: list[tuple[ir.Value, Sequence[int] | None]] = []
    for v, inner in zip(operands, norms, strict=True):
        if inner is not None and TensorType.of(inner).dims == full:
            bases.append((inner, None))
            continue
        repeated = repeated_dims(v)
        if repeated is None:
            return no_match("another operand has each element, too")
        base, dims = repeated
        bases.append((base, [*dims[:-1], *((1, 1) if dims[-1] == 1 else full[-2:])]))
    moved = [v if dims is None else _repeated(rw, v, dims, full) for v, dims in bases]
    return rw.op("reshape", rebuild(op, moved, out.with_dims(full)), dims=list(out.dims))


def _repeated(rw: Rewriter, v: ir.Value, dims: Sequence[int], full: Sequence[int]) -> ir.Value:
    return rw.op("multibroadcast", [rw.op("reshape", v, dims=list(dims))], out_lens=list(full))


def _joined_norm(v: ir.Value, dims: tuple[int, ...]) -> ir.Value | None:
    """Return the norm {.., G, C/G} that `v` is, {.., C}."""
    view = defined_by(v, Reshape)
    if view is None or view.dims_tensor is not None:
        return None
    t = TensorType.of(view.input)
    if not t.is_static or t.rank != len(dims) + 1 or t.dims[:-2] != dims[:-1]:
        return None
    return view.input if _reduces_groups(view.input, t.rank) else None


def _reduces_groups(v: ir.Value, rank: int) -> bool:
    """Return whether a pointwise value depends on a reduction over the last dim, but not over G."""
    if not is_a(v.owner, Pointwise):
        return False
    left, seen = [v], 0
    while left and seen < _DEPTH:
        view = defined_by(left.pop())
        seen += 1
        if is_a(view, NumberReduction):
            axes = {a % rank for a in view.axes}
            if TensorType.of(view.operation.operands[0]).rank == rank and rank - 1 in axes:
                return rank - 2 not in axes
        elif is_a(view, (Pointwise, BroadcastOp)):
            left.extend(view.operation.operands)
    return False
