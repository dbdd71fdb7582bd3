"""Reduction of an MLIR module: fewer ops, results and arguments, uniform literals, small dims."""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

import mgx_mlir.dialects  # noqa: F401  (the op classes that a context is made with)
from mgx_mlir.core.context import new_context
from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import atomic, read_bytes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.mlir_text import checked_text
from mgx_mlir.core.operand_segments import asm, parse_module
from mgx_mlir.core.weight_files import read_weights, used_keys, weights_beside, write_weights
from mgx_mlir.debug.edits import (
    drop_entries,
    drop_unused,
    editable,
    erase_dead,
    function_of,
    functions,
    inline_region,
    is_used,
    kind_of,
    new_argument,
    returns_of,
)
from mgx_mlir.debug.reduce import Reduction, made
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.taps import set_kind, set_returned
from mgx_mlir.rewrite.passes import diagnostics_text
from mgx_mlir.rewrite.reproducer import is_reproducer, read_reproducer

_LITERAL = "migraphx.literal"
_DIMS = re.compile(r"(?:tensor|memref|vector)<((?:[\d?]+x)+)")
_EXTENTS = (1, 2, 3, 4)


@dataclass(frozen=True)
class Size:
    """Counts of everything that can be removed."""

    ops: int
    literals: int
    functions: int
    arguments: int
    results: int


@dataclass(frozen=True)
class MlirCandidate:
    """A module as text, its weights by key, and the text after the module (of a reproducer)."""

    text: str
    weights: Mapping[str, np.ndarray] = field(default_factory=dict)
    tail: str = ""
    weights_name: str = ""  # name of the .npz beside the file; empty: the file's own name
    unregistered: bool = False
    locations: bool = False

    @cached_property
    def size(self) -> Size:
        """Counts of the items that steps remove."""
        module = self.module()
        found, kinds = editable(module), [kind_of(f) for f in functions(module)]
        return Size(
            ops=len(found),
            literals=sum(op.name == _LITERAL for op in found),
            functions=len(kinds),
            arguments=sum(len(k.inputs) for k in kinds),
            results=sum(len(k.results) for k in kinds),
        )

    @property
    def cost(self) -> tuple[int, ...]:
        return self._cost

    @cached_property
    def _cost(self) -> tuple[int, ...]:
        """Return the cost: ops except literals; literals, arguments and results; elements of types;
        bytes.
        """
        n = self.size
        dims = (re.findall(r"\d+", m[1]) for m in _DIMS.finditer(self.text))
        elements = sum(math.prod(map(int, found)) for found in dims)
        small = n.literals + n.arguments + n.results
        return n.functions, n.ops - n.literals, small, elements, self.nbytes

    @property
    def nbytes(self) -> int:
        """Number of bytes of the text and the weights."""
        return len(self.text) + sum(a.nbytes for a in self.weights.values())

    @property
    def digest(self) -> bytes:
        return "\0".join([self.text, *sorted(self.weights)]).encode()

    @property
    def is_empty(self) -> bool:
        return self.size.ops == 0

    def describe(self) -> str:
        n = self.size
        parts = [f"{n.ops - n.literals} ops", f"{n.literals} literals", f"{n.arguments} arguments"]
        return f"{', '.join(parts)}, {n.results} results, {self.nbytes / 1e3:.1f} kB"

    def write(self, path: Path) -> None:
        beside = Path(weights_beside(path))
        if self.weights_name:
            beside = path.with_name(self.weights_name)
        if self.weights or self.weights_name or beside.exists():
            write_weights(str(beside), dict(self.weights))
        with atomic(path) as f:
            f.write((self.text + self.tail).encode())

    def module(self) -> ir.Module:
        """Parse the module. Errors: MLIRError if it is invalid."""
        context = _context(self.unregistered)
        with context, _quiet(context):
            return parse_module(self.text, context)

    def of(self, module: ir.Module) -> MlirCandidate | None:
        """Return the candidate of an edited module, None if it is invalid."""
        context = module.context
        try:
            with context, _quiet(context), WeightStore(dict(self.weights)).active():
                if not module.operation.verify():
                    return None
                text = asm(module.operation, enable_debug_info=self.locations)
                keys = used_keys(module.operation)
        except ir.MLIRError:
            return None
        kept = {k: v for k, v in self.weights.items() if k in keys}
        return replace(self, text=text, weights=kept)

    def edited(self, edit: Callable[[ir.Module], bool]) -> MlirCandidate | None:
        """Apply `edit` and return the candidate; None if `edit` found nothing to change."""
        module = self.module()
        with module.context, ir.Location.unknown():
            if not edit(module):
                return None
        return self.of(module)


@functools.lru_cache(maxsize=2)
def _context(unregistered: bool) -> ir.Context:
    """Return the context of all candidates: making one takes longer than a small parse."""
    context = new_context()
    context.allow_unregistered_dialects = unregistered
    context.emit_error_diagnostics = False
    return context


@contextmanager
def _quiet(context: ir.Context) -> Iterator[None]:
    """Swallow diagnostics inside the block: most candidates are invalid."""
    handler = context.attach_diagnostic_handler(lambda _: True)
    try:
        yield
    finally:
        handler.detach()


def read_candidate(
    path: Path, weights: str | None = None, *, unregistered: bool = False
) -> MlirCandidate:
    """Read the module of a file, and its weights.

    Errors: FileError for a file that cannot be read or is invalid.
    """
    text = checked_text(bytes(read_bytes(path)), str(path))
    tail = name = ""
    if is_reproducer(text):
        how, text = read_reproducer(text)
        tail, name = f"\n{how.text()}", how.weights
        if name and weights is None:
            weights = str(path.parent / name)
    elif weights is None and os.path.lexists(weights_beside(path)):
        weights = weights_beside(path)
    arrays = dict(read_weights(weights).items()) if weights is not None else {}
    found = MlirCandidate(text, arrays, tail, name, unregistered, "loc(" in text)
    try:
        found.module()
    except ir.MLIRError as e:
        raise FileError(f"cannot be reduced: {diagnostics_text(e)}", location=str(path)) from None
    return found


def candidate_of(program: ProgramIR) -> MlirCandidate:
    """Convert a program to a candidate, without locations."""
    with program.ctx:
        keys = used_keys(program.module.operation)
        text = asm(program.module.operation)
    arrays = {k: v for k, v in program.store.items() if k in keys}
    return MlirCandidate(text, arrays)


def program_of(candidate: MlirCandidate) -> ProgramIR:
    """Convert a candidate to a program. Errors: MLIRError where it is invalid."""
    store = WeightStore(dict(candidate.weights))
    with store.active():
        module = candidate.module()
    return ProgramIR(module.context, module, store)


def reduce_module(run: Reduction[MlirCandidate]) -> None:
    """Reduce the best candidate until no step makes it smaller."""

    def once(edit: Callable[[ir.Module], bool], how: str) -> bool:
        return run.offer(made(run.best.edited, edit), how)

    def ops(c: MlirCandidate) -> range:
        return range(c.size.ops)

    run.offer(made(made_plain, run.best), "no locations")
    improved = True
    while improved:
        improved = False
        for step in (
            lambda: run.halve(lambda c: c.size.functions, without_functions, "functions erased"),
            lambda: once(erase_dead, "dead ops erased"),
            lambda: run.halve(lambda c: c.size.results, without_results, "results dropped"),
            lambda: once(erase_dead, "dead ops erased"),
            lambda: run.halve(lambda c: c.size.ops, without_ops, "ops became arguments"),
            lambda: once(drop_unused, "unused arguments dropped"),
            lambda: run.halve(lambda c: c.size.arguments, without_arguments, "arguments dropped"),
            lambda: run.each(ops, bypassed, "an op became its operand"),
            lambda: run.each(ops, returned, "an op became a result"),
            lambda: run.each(ops, inlined, "a region inlined"),
            lambda: run.each(ops, constant, "an op became a literal"),
            lambda: run.each(ops, splat, "a literal became uniform"),
            lambda: run.each(lambda c: extents(c.text), with_extent, "dims shrunk"),
            lambda: run.each(lambda _: [0], without_unit_dims, "dims of one dropped"),
        ):
            improved |= step()


def extents(text: str) -> list[tuple[int, int]]:
    """Return (extent, smaller one) for the dims in types, the largest first."""
    found = {int(d) for m in _DIMS.finditer(text) for d in re.findall(r"\d+", m[1])}
    return [(old, new) for old in sorted(found, reverse=True) for new in _EXTENTS if new < old]


# ---- edits --------------------------------------------------------------------------------------


def made_plain(c: MlirCandidate) -> MlirCandidate | None:
    """Drop all locations."""
    return replace(c, locations=False).of(c.module())


def without_functions(c: MlirCandidate, indices: Sequence[int]) -> MlirCandidate | None:
    """Drop functions, unless none would be left."""

    def edit(module: ir.Module) -> bool:
        found = functions(module)
        if len(indices) == len(found):
            return False
        for i in indices:
            found[i].erase()
        return True

    return c.edited(edit)


def without_ops(c: MlirCandidate, indices: Sequence[int]) -> MlirCandidate | None:
    """Erase these ops; results with remaining uses become function arguments."""

    def edit(module: ir.Module) -> bool:
        found = editable(module)
        gone = [found[i] for i in indices]
        for op in reversed(gone):
            for result in op.results:
                # users in the erased part are gone: remaining users are outside
                if next(iter(result.uses), None) is not None:
                    function = function_of(op.parent)
                    if function is None:
                        return False
                    result.replace_all_uses_with(new_argument(function, result.type))
            op.erase()
        return True

    return c.edited(edit)


def _split(indices: Sequence[int], counts: Sequence[int]) -> list[list[int]]:
    """Convert indices that count over all functions to indices in each function."""
    out, start = [], 0
    for n in counts:
        out.append([i - start for i in indices if start <= i < start + n])
        start += n
    return out


def without_arguments(c: MlirCandidate, indices: Sequence[int]) -> MlirCandidate | None:
    """Drop function arguments without uses."""

    def edit(module: ir.Module) -> bool:
        found = functions(module)
        parts = _split(indices, [len(kind_of(f).inputs) for f in found])
        for function, gone in zip(found, parts, strict=True):
            old = kind_of(function)
            for i in reversed(gone):
                block = function.regions[0].blocks[0]
                if next(iter(block.arguments[i].uses), None) is not None:
                    return False
                block.erase_argument(i)
            kept = [t for i, t in enumerate(old.inputs) if i not in gone]
            set_kind(function, kept, list(old.results))
            drop_entries(function, "arg_attrs", gone)
        return True

    return c.edited(edit)


def without_results(c: MlirCandidate, indices: Sequence[int]) -> MlirCandidate | None:
    """Drop results of functions."""

    def edit(module: ir.Module) -> bool:
        found = functions(module)
        parts = _split(indices, [len(kind_of(f).results) for f in found])
        for function, gone in zip(found, parts, strict=True):
            if not gone:
                continue
            old = kind_of(function)
            for end in list(returns_of(function)):
                kept = [v for i, v in enumerate(end.operands) if i not in gone]
                set_returned(end, kept)
            kept_types = [t for i, t in enumerate(old.results) if i not in gone]
            set_kind(function, list(old.inputs), kept_types)
            drop_entries(function, "res_attrs", gone)
        return True

    return c.edited(edit)


def bypassed(c: MlirCandidate, index: int) -> MlirCandidate | None:
    """f(x) -> x, where the types are equal."""

    def edit(module: ir.Module) -> bool:
        op = editable(module)[index]
        for result in op.results:
            same = [v for v in op.operands if v.type == result.type]
            if not same:
                return False
            result.replace_all_uses_with(same[0])
        op.erase()
        return True

    return c.edited(edit)


def returned(c: MlirCandidate, index: int) -> MlirCandidate | None:
    """f(g(x)) -> g(x) as a result: f is no longer needed."""

    def edit(module: ir.Module) -> bool:
        op = editable(module)[index]
        function = function_of(op)
        if is_used(op) or function is None or op.parent.operation != function:
            return False
        fed = [v for v in op.operands if not isinstance(v.owner, ir.Block)]
        ends = list(returns_of(function))
        if not fed or len(ends) != 1:
            return False
        set_returned(ends[0], [*ends[0].operands, *fed])
        old = kind_of(function)
        set_kind(function, list(old.inputs), [*old.results, *(v.type for v in fed)])
        if "res_attrs" in function.attributes:
            held = list(ir.ArrayAttr(function.attributes["res_attrs"]))
            held += [ir.DictAttr.get({}) for _ in fed]
            function.attributes["res_attrs"] = ir.ArrayAttr.get(held)
        op.erase()
        return True

    return c.edited(edit)


def constant(c: MlirCandidate, index: int) -> MlirCandidate | None:
    """f(x) -> a uniform literal."""

    def edit(module: ir.Module) -> bool:
        op = editable(module)[index]
        if op.name == _LITERAL or not len(op.results):
            return False
        with ir.InsertionPoint(op):
            for result in op.results:
                result.replace_all_uses_with(_uniform(result.type))
        op.erase()
        return True

    return c.edited(edit)


def splat(c: MlirCandidate, index: int) -> MlirCandidate | None:
    """Replace a literal of many values by one of a single value."""

    def edit(module: ir.Module) -> bool:
        op = editable(module)[index]
        if op.name != _LITERAL:
            return False
        if "value" in op.attributes and ir.DenseElementsAttr(op.attributes["value"]).is_splat:
            return False
        with ir.InsertionPoint(op):
            op.results[0].replace_all_uses_with(_uniform(op.results[0].type))
        op.erase()
        return True

    return c.edited(edit)


def _uniform(kind: ir.Type) -> ir.Value:
    """Build a literal of ones."""
    shaped = ir.RankedTensorType(kind)
    element = shaped.element_type
    one: ir.Attribute
    if isinstance(element, ir.IntegerType):
        one = ir.IntegerAttr.get(element, 1)
    else:
        one = ir.FloatAttr.get(element, 1.0)
    value = ir.DenseElementsAttr.get_splat(shaped, one)
    return ir.Operation.create(_LITERAL, results=[kind], attributes={"value": value}).result


def inlined(c: MlirCandidate, index: int) -> MlirCandidate | None:
    """Replace an op with a region by the ops of its first region of a matching form."""

    def edit(module: ir.Module) -> bool:
        return inline_region(editable(module)[index])

    return c.edited(edit)


def with_extent(c: MlirCandidate, change: tuple[int, int]) -> MlirCandidate | None:
    """Replace one extent by a smaller one, in every type and list of integers.

    The module must still verify, which is likely if the extent is one of the model's sizes.
    """
    old, new = (str(n) for n in change)
    text = re.sub(rf"(?<=[<x]){old}(?=x)", new, c.text)
    text = re.sub(
        r"array<i64: [^>]*>", lambda m: re.sub(rf"(?<![\d-]){old}(?!\d)", new, m[0]), text
    )
    return _reparsed(c, text)


def without_unit_dims(c: MlirCandidate, _: int) -> MlirCandidate | None:
    """Drop every leading dim of size 1."""
    text = re.sub(r"tensor<1x(?=(?:[\d?]+x)*[a-z])", "tensor<", c.text)
    return _reparsed(c, text)


def _reparsed(c: MlirCandidate, text: str) -> MlirCandidate | None:
    if text == c.text:
        return None
    module = replace(c, text=text).module()
    for op in editable(module):
        if op.name == _LITERAL and "key" in op.attributes:
            kept = c.weights.get(ir.StringAttr(op.attributes["key"]).value)
            shape = list(ir.RankedTensorType(op.results[0].type).shape)
            if kept is not None and list(kept.shape) != shape:
                return None  # the stored array has the old dims
    return replace(c, text=text).of(module)
