"""Relations that `infer` assumes of dynamic extents are those it checks of static ones."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from mgx_mlir.core.context import new_context
from mgx_mlir.core.errors import MgxError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, Op
from mgx_mlir.core.relations import Comparison, Relation, Size, heard
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.passes.lowering.symbols import Symbols
from mgx_mlir.symbolic.expressions import value_at
from tests.lowering.harness import Case, examples_of, load_dialect

load_dialect()

# Whose dims are checked where they are read: views and what the builder states besides.
LOWERED = {"multibroadcast", "broadcast", "broadcast_with_dims", "broadcast_for_dot"}
CASES = 12  # cases of one operator


def view(case: Case, types: list[TensorType]) -> SimpleNamespace:
    """Return the view of operands of these types that `infer` gets."""
    o = SimpleNamespace(regions=(), results=None, operands={}, const=lambda _: None)
    for key, definition in case.cls.ATTRS.items():
        value = case.attributes.get(key, definition.default)
        held = {} if value is None else {key: definition.coerce(value)}
        setattr(o, definition.field, definition.read(held))
    rest = list(types)
    for group, operand in zip(case.cls.OPERANDS, [*case.operands, *[None] * 9], strict=False):
        if group.arity == "variadic":
            setattr(o, group.name, [rest.pop(0) for _ in operand or ()])
        else:
            setattr(o, group.name, None if operand is None else rest.pop(0))
    return o


def accepts(case: Case, types: list[TensorType]) -> bool:
    try:
        case.cls.infer(view(case, types))
    except MgxError:
        return False
    return True


def holds(relation: Relation, sizes: list[tuple[int, ...]]) -> bool:
    def number(x: int) -> int:
        if not isinstance(x, Size):
            return int(x)
        found = value_at(x.form, lambda a: sizes[a.arguments[0].number][a.arguments[0].axis])
        assert found is not None
        return found

    def true(c: Comparison) -> bool:
        a, b = number(c.left), number(c.right)
        return {"eq": a == b, "ne": a != b, "le": a <= b}[c.predicate]

    return any(map(true, relation))


def perturbed(types: list[TensorType]) -> Iterator[list[tuple[int, ...]]]:
    """The dims, each in turn another number, then every dim one larger."""
    dims = [t.dims for t in types]
    yield dims
    for i, own in enumerate(dims):
        for axis, d in enumerate(own):
            for other in {0, 1, d - 1, d + 1, 2 * d} - {d, -1}:
                yield [*dims[:i], (*own[:axis], other, *own[axis + 1 :]), *dims[i + 1 :]]
    yield [tuple(d + 1 for d in own) for own in dims]


def relations(case: Case, types: list[TensorType]) -> tuple[list[Relation], set[tuple[int, int]]]:
    """Return the relations that `infer` assumes, and the dims that may be dynamic."""
    free = {(i, axis) for i, t in enumerate(types) for axis in range(t.rank)}
    for dynamic in (free, *({place} for place in sorted(free))):
        symbols = Symbols()
        sized = [
            t.with_dims(
                Size(DYN, symbols.input(i, axis)) if (i, axis) in dynamic else d
                for axis, d in enumerate(t.dims)
            )
            for i, t in enumerate(types)
        ]
        with heard() as found:
            try:
                case.cls.infer(view(case, sized))
            except MgxError:
                continue
        return found, dynamic
    return [], set()


def cases(cls: type[Op]) -> list[Case]:
    found = [c for c in examples_of(cls) if not any(x is None for x in c.arrays())]
    seen: dict[Any, Case] = {}
    for c in found:
        seen.setdefault((str([a.shape for a in c.arrays()]), str(c.attributes)), c)
    return list(seen.values())[:CASES]


@pytest.fixture(scope="module")
def context() -> Iterator[None]:
    with new_context(), ir.Location.unknown():
        yield


@pytest.mark.parametrize("name", sorted(OPS))
def test_infer(name: str, context: None) -> None:
    cls = OPS[name]
    if name in LOWERED or cls.REGIONS or not cls.OPERANDS:
        pytest.skip("has no relations of its own")
    for case in cases(cls):
        types = case.types()
        assert accepts(case, types), f"{case}"
        found, dynamic = relations(case, types)
        for sizes in perturbed(types):
            changed = {
                (i, axis)
                for i, t in enumerate(types)
                for axis, d in enumerate(t.dims)
                if sizes[i][axis] != d
            }
            if not changed <= dynamic:
                continue
            now = [t.with_dims(s) for t, s in zip(types, sizes, strict=True)]
            said = all(holds(r, sizes) for r in found)
            assert said == accepts(case, now), f"{case}: with {sizes}: {found}"
