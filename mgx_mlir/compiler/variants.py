"""Variants of a program with dynamic dims: the program specialised for their optimal sizes.

The compiled program is general. Each optimal of a dim adds a function whose dims are that size, so
that its kernels are those of a static program; the runtime calls it for inputs of the size.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mgx_mlir.core.errors import RunError, UsageError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import WeightStore, array_of, create, is_literal
from mgx_mlir.core.op import OPS, attributes_of, is_a
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.random import DynamicRange, range_count
from mgx_mlir.passes.simplify_dyn_ops import refine
from mgx_mlir.programs.program_ir import (
    DIMS,
    ProgramIR,
    argument_attributes,
    argument_types,
    entry_block,
)
from mgx_mlir.programs.signature import DimRange, Pair, Signature, Variant
from mgx_mlir.rewrite.passes import run_pipeline

LONGEST = 1 << 20  # elements of a range that becomes a constant
MOST = 16  # variants of one program; each costs a whole compile


class _Extent(NamedTuple):
    """Dims of equal size: those with one symbol, or with one range and no symbol."""

    optimals: tuple[int, ...]
    places: tuple[tuple[int, int], ...]


def variants_of(signature: Signature) -> tuple[Variant, ...]:
    """Return one variant for each combination of the optimal sizes of the inputs' dims.

    Dims of one symbol have one size, and so have dims of one range without a symbol (where they
    differ at run time the general function is called). Errors: UsageError for too many.
    """
    extents = _extents(signature)
    if not extents:
        return ()
    choices = list(itertools.islice(itertools.product(*(e.optimals for e in extents)), MOST + 1))
    if len(choices) > MOST:
        raise UsageError(
            f"expected optimals that make {MOST} variants of the program at most, got more",
            notes=["each choice of a size for every dim with optimals is compiled by itself"],
        )
    found = []
    for sizes in choices:
        places = [(i, d, n) for e, n in zip(extents, sizes, strict=True) for i, d in e.places]
        found.append(Variant("main_" + "x".join(map(str, sizes)), tuple(sorted(places))))
    return tuple(found)


def _extents(signature: Signature) -> list[_Extent]:
    groups: dict[str | DimRange, tuple[list[int], list[tuple[int, int]]]] = {}
    for i, port in enumerate(signature.inputs):
        for d, (r, size) in enumerate(zip(port.ranges, port.dims, strict=False)):
            if size == -1 and r.optimals:
                optimals, places = groups.setdefault(r.symbol or r, ([], []))
                optimals += [n for n in r.optimals if n not in optimals]
                places.append((i, d))
    # all dims of a symbol have one size
    for i, port in enumerate(signature.inputs):
        for d, r in enumerate(port.ranges):
            if r.symbol in groups and port.dims[d] == -1 and (i, d) not in groups[r.symbol][1]:
                groups[r.symbol][1].append((i, d))
    return [_Extent(tuple(sorted(o)), tuple(p)) for o, p in groups.values()]


def specialised(program: ProgramIR, variant: Variant) -> ProgramIR:
    """Copy a program, with its inputs at a variant's sizes."""
    copy = program.clone()
    with copy.ctx, ir.Location.unknown(), copy.store.active():
        main = copy.main()
        dims = [list(t.dims) for t in argument_types(main)]
        attributes = argument_attributes(main)
        _name_alike(attributes, variant)
        for i, d, n in variant.sizes:
            dims[i][d] = n
            _state(attributes[i], d, n, is_static=DYN not in dims[i])
        arguments = entry_block(main).arguments
        types = [t.with_dims(d) for t, d in zip(argument_types(main), dims, strict=True)]
        for argument, t in zip(arguments, types, strict=True):
            argument.set_type(t.mlir())
        kind = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
        new = ir.FunctionType.get([t.mlir() for t in types], kind.results)
        main.attributes["function_type"] = ir.TypeAttr.get(new)
        main.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(a) for a in attributes])
        refine(copy.module.operation)
    settle(copy)
    return copy


_ROUNDS = 8  # rounds of propagating sizes to values computed from them
# sizes are small literals; quantised weights stay packed, as later passes let matmuls read them
_STEPS = ("simplify_dyn_ops", "propagate_constant{max-growth=4096}", "dead_code_elimination")


def settle(program: ProgramIR) -> None:
    """Propagate known sizes through a program until nothing changes."""
    before = -1
    for _ in range(_ROUNDS):
        run_pipeline(program.module, _STEPS, store=program.store)
        with program.ctx, ir.Location.unknown(), program.store.active():
            block = entry_block(program.main())
            for view in list(block.operations):
                if is_a(view, DynamicRange):
                    _fold_range(view.operation)
            refine(program.module.operation)
            results = [r for view in block.operations for r in view.operation.results]
            left = sum(not TensorType.of(r).is_static for r in results)
        if left in (0, before):
            return
        before = left


def _fold_range(op: ir.Operation) -> None:
    """Replace a range by a literal where its limits are literals."""
    owners = [v.owner for v in op.operands]
    if any(not is_literal(o) for o in owners):
        return
    start, limit, delta = (array_of(o.operation) for o in owners)
    attributes = attributes_of(op)
    try:
        if range_count(start, limit, delta, attributes["max_output"]) > LONGEST:
            return
    except RunError:  # the run reports it
        return
    made = OPS["dynamic_range"].reference(start, limit, delta, **attributes)
    with ir.InsertionPoint(op), op.location:
        op.result.replace_all_uses_with(create(made))
    op.erase()


def _state(attributes: dict[str, ir.Attribute], d: int, n: int, *, is_static: bool) -> None:
    """Set dim `d` of an argument's ranges to `n`; a static argument has none."""
    if DIMS not in attributes:
        return
    entries = list(ir.ArrayAttr(attributes[DIMS]))
    entries[d] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), n)
    attributes[DIMS] = ir.ArrayAttr.get(entries)
    if is_static:
        del attributes[DIMS]


def _name_alike(attributes: list[dict[str, ir.Attribute]], variant: Variant) -> None:
    """Give dims that a variant assumes equal one name, and the intersection of their ranges."""
    for group in variant.alike:
        i, d = group[0]
        stated = [_fields(attributes[i], d) for i, d in group]
        name = stated[0].get("symbol", ir.StringAttr.get(f"alike_{i}_{d}"))
        low = max(ir.IntegerAttr(f["min"]).value for f in stated)
        highs = [ir.IntegerAttr(f["max"]).value for f in stated if "max" in f]
        limits = {"min": low, **({"max": min(highs)} if highs else {})}
        kind = ir.IntegerType.get_signless(64)
        for (i, d), fields in zip(group, stated, strict=True):
            numbers = {k: ir.IntegerAttr.get(kind, n) for k, n in limits.items()}
            entries = list(ir.ArrayAttr(attributes[i][DIMS]))
            entries[d] = ir.DictAttr.get({**fields, **numbers, "symbol": name})
            attributes[i][DIMS] = ir.ArrayAttr.get(entries)


def _fields(attributes: dict[str, ir.Attribute], d: int) -> dict[str, ir.Attribute]:
    """Return an argument's attributes of a dim."""
    stated = ir.DictAttr(list(ir.ArrayAttr(attributes[DIMS]))[d])
    return {stated[i].name: stated[i].attr for i in range(len(stated))}


def share_weights(programs: Sequence[ProgramIR]) -> None:
    """Give programs one weight store, in which equal weights are one array.

    A weight that has the elements of another in another order stays without a copy.
    """
    arrays: dict[str, np.ndarray] = {}
    for program in programs:
        for key in program.store:
            arrays.setdefault(key, program.store.seen(key))
    store = WeightStore(arrays)
    for program in programs:
        program.store = store


def adopt(program: ProgramIR, variants: Mapping[str, ProgramIR]) -> None:
    """Add the entry functions of variants to a program, to be seen under their names."""
    with program.ctx:
        for name, variant in variants.items():
            copy = variant.main().operation.clone(ir.InsertionPoint(program.module.body)).operation
            copy.attributes["sym_name"] = ir.StringAttr.get(name)
            copy.attributes["sym_visibility"] = ir.StringAttr.get("private")


def with_variants(
    signature: Signature, variants: Sequence[Variant], in_place: Sequence[Pair] = ()
) -> Signature:
    """Return the signature with its variants, and the results that can use inputs' memory."""
    return replace(signature, variants=tuple(variants), in_place=tuple(in_place))


__all__ = [
    "MOST",
    "adopt",
    "settle",
    "share_weights",
    "specialised",
    "variants_of",
    "with_variants",
]
