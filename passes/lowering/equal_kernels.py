"""Equal kernels share code: code is built once for each description of a kernel.

Layers of a network often differ only in their weights. Of two kernels with equal descriptions, the
second launches the code of the first: its code is neither built nor compiled.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Generator, Hashable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

import numpy as np

from mgx_mlir.core import literals
from mgx_mlir.core.dtypes import FLOAT
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import is_literal
from mgx_mlir.core.op import BroadcastOp, Kernel, is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.linear import Convolution, Dot
from mgx_mlir.dialects.migraphx.movement import Slice
from mgx_mlir.dialects.migraphx.pointwise_binary import Add, Mul
from mgx_mlir.passes.lowering.expr import Expr, Leaf, Splat, View
from mgx_mlir.passes.lowering.options import Apart

# code number of a dispatch, where others may share that. The first in the program has
# the code, the others have none
CODE = "mgx.code"
# name under which a dispatch's code is compiled apart from its module
APART = "mgx.apart"
_NAMED_DIM = re.compile(r"(?<![\d.])\d{16,}")  # an extent that means another size elsewhere


class Codes:
    """The code of dispatches, by the descriptions of their kernels."""

    def __init__(
        self,
        apart: Apart | None = None,
        alone: Callable[[ir.Operation], bytes] | None = None,
        salt: str = "",
    ) -> None:
        """Begin without code.

        apart: takes code that has been built, which `alone` writes as a module of its own. salt:
        what code follows from beside descriptions.
        """
        self._apart, self._alone, self._salt = apart, alone, salt
        self._texts: dict[Hashable, str] = {}
        self._built: dict[Hashable, int] = {}
        self._kernel: Hashable | None = None
        self._made = 0  # dispatches of the kernel so far

    @contextmanager
    def of(self, kernel: Hashable | None) -> Generator[None]:
        """Set the description of the kernel that is lowered inside; None: its code is not
        shared.
        """
        self._kernel, self._made = kernel, 0
        token = _CODES.set(self)
        try:
            yield
        finally:
            _CODES.reset(token)

    def key(self, launched: Hashable) -> Hashable | None:
        """Return the key of the next dispatch's code; None where it is not shared.

        launched: the dispatch's operands and results.
        """
        self._made += 1
        return None if self._kernel is None else (self._kernel, self._made, launched)

    def number(self, key: Hashable | None) -> int | None:
        """Return the number of the code of a key, None where none was built."""
        return None if key is None else self._built.get(key)

    def name(self, key: Hashable | None) -> str:
        """Return the name of a key's code in all programs; empty where it has none."""
        if self._apart is None or key is None:
            return ""
        try:
            text = self._text(key)
        except TypeError:
            return ""
        if _NAMED_DIM.search(text):
            return ""
        whole = f"{self._apart.salt}\0{self._salt}\0{text}"
        return hashlib.sha256(whole.encode()).hexdigest()[:40]

    def known(self, name: str) -> bool:
        """Say whether code of a name is compiled already."""
        return bool(name) and self._apart is not None and self._apart.known(name)

    def _text(self, part: Hashable) -> str:
        """Write a part of a key. Errors: TypeError for one that has no text."""
        if isinstance(part, tuple):
            return f"({','.join(map(self._text, cast(tuple[Hashable, ...], part)))})"
        if part is None or type(part) in (str, int, bool, float):
            return repr(part)
        found = self._texts.get(part)
        if found is None:
            if isinstance(part, TensorType):
                found = f"{part.dtype.name}{self._text(part.dims)}"
            elif isinstance(part, ir.Attribute | ir.Type):
                found = str(part)
            else:
                raise TypeError(f"{type(part).__name__} has no text")
            self._texts[part] = found
        return found

    def built(
        self, key: Hashable | None, dispatch: ir.Operation, name: str, *, known: bool
    ) -> int | None:
        """Return a number for the code of a key, which has been built in a dispatch.

        known: code of this name is compiled already, and none was built.
        """
        if self._apart is not None and self._alone is not None:
            if not known:
                module = self._alone(dispatch)
                name = name or hashlib.sha256(module).hexdigest()[:40]
                self._apart.add(name, module)
            dispatch.attributes[APART] = ir.StringAttr.get(name)
        return None if key is None else self._built.setdefault(key, len(self._built))


_CODES: ContextVar[Codes | None] = ContextVar("mgx_codes", default=None)


def codes() -> Codes:
    """Return the codes of the kernel that is being lowered; outside of one there are none."""
    return _CODES.get() or Codes()


def description(
    op: ir.Operation,
    body: ir.Block,
    exprs: Mapping[ir.Value, Expr],
    elements: Mapping[ir.Value, np.ndarray],
) -> Hashable | None:
    """Return a description of a kernel's loops, without the numbers of its weights.

    exprs, elements: those of the arguments and literals of its body. None where a part has no
    description. Attributes are compared by identity in their context.
    """
    known = _Numbers()
    parts: list[Hashable] = [op.name, _attributes(op), tuple(r.type for r in op.results)]
    for argument, operand in zip(body.arguments, op.operands, strict=True):
        parts += [argument.type, _origin(operand), known.of(argument)]
        parts.append(_content(argument, exprs, elements, known))
    for view in body.operations:
        inner = view.operation
        if len(inner.regions):
            return None
        parts.append(inner.name)
        parts += [known.of(v) for v in inner.operands]
        for r in inner.results:
            parts += [r.type, known.of(r)]
        if is_literal(inner):
            parts.append(_content(inner.results[0], exprs, elements, known))
        else:
            parts.append(_attributes(inner))
    return None if None in parts else tuple(parts)


def own_scalars(block: ir.Block) -> set[ir.Value]:
    """Return the scalar factors and summands in which otherwise equal kernels of a block differ.

    They become inputs of the kernels, as weights are. Scalars common to all kernels, such as 0.5,
    stay in the code.
    """
    groups: dict[Hashable, list[list[ir.Value]]] = {}
    for view in block.operations:
        if is_a(view, Kernel):
            skeleton, scalars = _without_scalars(view.operation)
            groups.setdefault(skeleton, []).append(scalars)
    found: set[ir.Value] = set()
    for alike in groups.values():
        for same in zip(*alike, strict=True):
            if len({literals.array_of(v.owner).tobytes() for v in same}) > 1:
                found.update(same)
    return found


def _without_scalars(op: ir.Operation) -> tuple[Hashable, list[ir.Value]]:
    """Describe a kernel of a matmul, without the scalars in it, which are returned as well."""
    known = _Numbers()
    scalars: list[ir.Value] = []
    body = op.regions[0].blocks[0]
    parts: list[Hashable] = [op.name, _attributes(op), tuple(r.type for r in op.results)]
    parts += [(v.type, known.of(a)) for v, a in zip(op.operands, body.arguments, strict=True)]
    product = False
    for view in body.operations:
        inner = view.operation
        product = product or is_a(inner, (Convolution, Dot))
        scalar = is_literal(inner) and _is_scalar(inner.results[0])
        scalars += inner.results if scalar else ()
        parts += [inner.name, None if scalar else _attributes(inner)]
        parts += [tuple(known.of(v) for v in [*inner.operands, *inner.results])]
        parts.append(tuple(r.type for r in inner.results))
    return (tuple(parts), scalars) if product else (op, [])


def _is_scalar(v: ir.Value) -> bool:
    """Return whether v is an f32 scalar that is a summand or factor."""
    t = TensorType.of(v)
    if t.dtype != FLOAT or t.dims not in ((), (1,)):
        return False
    users: list[Any] = []
    for use in v.uses:
        op = use.owner
        users += [x.owner for x in op.results[0].uses] if is_a(op, BroadcastOp) else [op]
    return all(is_a(u, (Add, Mul)) for u in users)


class _Numbers:
    """Numbers for values and expressions, in order of appearance."""

    def __init__(self) -> None:
        self._met: dict[Any, int] = {}

    def of(self, met: Hashable) -> int:
        return self._met.setdefault(met, len(self._met))


def _attributes(op: ir.Operation) -> Hashable:
    return tuple((name, op.attributes[name]) for name in op.attributes)


def _origin(v: ir.Value) -> Hashable:
    """Return through which broadcasts and slices an operand reads, and whether a literal."""
    through: list[Hashable] = []
    while not isinstance(v.owner, ir.Block) and is_a(v.owner, (BroadcastOp, Slice)):
        owner = v.owner.operation
        through += [owner.name, _attributes(owner), v.type]
        v = owner.operands[0]
    return (*through, v.type, is_literal(v))


def _content(
    v: ir.Value,
    exprs: Mapping[ir.Value, Expr],
    elements: Mapping[ir.Value, np.ndarray],
    known: _Numbers,
) -> Hashable | None:
    """Describe a value; None where it has no description."""
    found = elements.get(v)
    numbers: Hashable = ()
    if found is not None:
        if not all(isinstance(n, int | float | np.number) for n in found.flat):
            return None
        numbers = (found.shape, *map(repr, found.flat))
    described = _described(exprs.get(v), known)
    return None if described is None else (numbers, described)


def _described(x: Expr | None, known: _Numbers) -> Hashable | None:
    if isinstance(x, Splat):
        return ("splat", x.type, repr(x.number), _fixed(x.extents))
    if isinstance(x, View):
        source = _described(x.source, known)
        if source is None:
            return None
        return ("view", x.type, x.map, _fixed(x.extents), x.make is None, source)
    if isinstance(x, Leaf):
        return ("leaf", x.type, x.value.type, known.of(x.value))  # the elements are an input
    return None


def _fixed(extents: list[int | ir.Value]) -> Hashable:
    return tuple(d if isinstance(d, int) else "?" for d in extents)
