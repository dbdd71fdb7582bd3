"""Values computed for symbolic extents."""

from __future__ import annotations

from collections.abc import Callable

from mgx_mlir.core.dtypes import BOOL, INT64
from mgx_mlir.core.ir import ir
from mgx_mlir.programs.build import Builder
from mgx_mlir.symbolic.expressions import Atom, Expr, Int

# the value of an expression that some value has as an extent, None where none has
Held = Callable[[Expr], ir.Value | None]


class UnknownExtent(Exception):
    """No value has the extent."""


def extent_of(b: Builder, value: ir.Value, axis: int) -> ir.Value:
    """Return an extent of a value as a 0-d i64 tensor."""
    return b.op("squeeze", b.op("dimensions_of", value, start=axis, end=axis + 1), axes=[0])


def value_of(b: Builder, e: Int, held: Held) -> ir.Value:
    """Return an expression as a 0-d i64 tensor. Raises UnknownExtent."""
    if isinstance(e, int):
        return b.literal(e, INT64)
    total: ir.Value | None = None
    for m, c in e.terms.items():
        term = b.literal(c, INT64) if c != 1 or not m else None
        for atom in m:
            part = _value_of_atom(b, atom, e, held)
            term = part if term is None else b.op("mul", term, part)
        assert term is not None
        total = term if total is None else b.op("add", total, term)
    assert total is not None
    return total


def _value_of_atom(b: Builder, atom: Atom, e: Expr, held: Held) -> ir.Value:
    alone = e.space.polynomial({(atom,): 1})
    assert isinstance(alone, Expr)
    found = held(alone)
    if found is not None:
        return found
    if atom.kind not in ("floordiv", "pos", "ge", "eq"):
        raise UnknownExtent(f"nothing has the extent {atom}")
    parts = [x for x in atom.arguments if isinstance(x, Expr | int)]
    p = value_of(b, parts[0], held)
    zero = b.literal(0, INT64)
    if atom.kind == "floordiv":
        q = value_of(b, parts[1], held)
        return b.op("div", b.op("sub", p, b.op("mod", p, q)), q)
    if atom.kind == "pos":
        return b.op("max", p, zero)
    is_zero = b.op("equal", p, zero)
    if atom.kind == "ge":
        truth = b.op("not", b.op("convert", b.op("less", p, zero), target_type=BOOL))
    else:
        truth = b.op("convert", is_zero, target_type=BOOL)
    return b.op("convert", truth, target_type=INT64)
