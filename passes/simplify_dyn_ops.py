"""simplify_dyn_ops: ops with extents as operands become ops with constant extents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from mgx_mlir.core.errors import MgxError, ShapeError
from mgx_mlir.core.inference import inferred
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import Op, attributes_of, is_a, op_class
from mgx_mlir.core.shapes import DYN, TensorType, broadcast_dims, merge_dims
from mgx_mlir.dialects.migraphx.broadcasts import (
    Broadcast,
    BroadcastForDot,
    BroadcastWithDims,
    DimensionsOf,
    Multibroadcast,
)
from mgx_mlir.dialects.migraphx.control import SelectModule
from mgx_mlir.dialects.migraphx.indexing import OneHot
from mgx_mlir.dialects.migraphx.movement import Slice
from mgx_mlir.dialects.migraphx.random import Allocate, Fill
from mgx_mlir.dialects.migraphx.resize import Resize
from mgx_mlir.dialects.migraphx.views import Reshape
from mgx_mlir.programs.program_ir import entry_block, functions
from mgx_mlir.rewrite.passes import PatternPass
from mgx_mlir.rewrite.pattern import NoMatch, Pattern, Replacement, Rewriter, no_match, pattern

# ops whose static form has fewer operands, and ops that only dynamic extents need
_EXTRA_OPERANDS = (Slice, Reshape, Resize, Broadcast, Multibroadcast)
_RUN_TIME = (BroadcastWithDims, BroadcastForDot, DimensionsOf, OneHot, Fill, SelectModule)


def _static(
    rw: Rewriter, op: ir.Operation, name: str, *operands: Any, **attributes: Any
) -> ir.Value | NoMatch:
    """Build the static form of `op`; its type stays the root's until `refine`."""
    try:
        value = rw.op(name, *operands, **attributes)
    except ShapeError as e:
        return no_match("the constant operands do not fit: {}", e.message)
    have, want = TensorType.of(value), TensorType.of(op.results[0])
    if have.dtype is not want.dtype or merge_dims(have.dims, want.dims) is None:
        return no_match("{} becomes {}", want, have)
    value.set_type(op.results[0].type)
    return value


def _integers(rw: Rewriter, value: ir.Value) -> list[int] | None:
    """Return the elements of a constant integer list."""
    found = rw.const(value)
    return None if found is None else [int(v) for v in found.reshape(-1)]


# ---- extents and broadcasts ---------------------------------------------------------------------


@pattern(DimensionsOf)
def find_static_dimensions_of(op: DimensionsOf, rw: Rewriter) -> Replacement:
    """dimensions_of(x) -> literal where the extents are known"""
    dims = TensorType.of(op.input).dims
    found = dims[op.start : op.end or len(dims)]
    if not TensorType.of(op.input).with_dims(found).is_known:
        return no_match("{} has unknown extents there", op.input.type)
    return rw.ints(found)


@pattern(BroadcastWithDims)
def find_broadcast_with_dims_static(op: BroadcastWithDims, rw: Rewriter) -> Replacement:
    """broadcast_with_dims(x, constant) -> multibroadcast(x), x of known extents"""
    own = TensorType.of(op.input).dims
    wanted = _integers(rw, op.dims)
    if wanted is None or DYN in own:
        return no_match("the dims are not constant, or {} has unknown extents", op.input.type)
    try:
        out = broadcast_dims(own, wanted)
    except ShapeError as e:
        return no_match("{}", e.message)
    return _static(rw, op, "multibroadcast", [op.input], out_lens=out)


@pattern(Multibroadcast, Broadcast)
def find_static_2in_broadcasts(op: Multibroadcast | Broadcast, rw: Rewriter) -> Replacement:
    """multibroadcast(x, y), broadcast(x, y) -> the form of x alone where all extents are known"""
    if len(op.operands) < 2:
        return no_match("it has its dims as an attribute")
    types = [TensorType.of(v) for v in op.operands]
    if not all(t.is_static for t in types):
        return no_match("an operand has unknown extents")
    if is_a(op, Broadcast):
        dims = types[1].dims
        return _static(rw, op, "broadcast", op.operands[0], axis=op.axis, out_lens=dims)
    dims = broadcast_dims(*(t.dims for t in types))
    return _static(rw, op, "multibroadcast", [op.operands[0]], out_lens=dims)


@pattern(BroadcastForDot)
def find_static_broadcast_for_dot(op: BroadcastForDot, rw: Rewriter) -> Replacement:
    """broadcast_for_dot(x, y) -> multibroadcast(x) where all extents are known"""
    own, ref = TensorType.of(op.input), TensorType.of(op.ref)
    if not (own.is_static and ref.is_static):
        return no_match("an operand has unknown extents")
    dims = (*broadcast_dims(own.dims[:-2], ref.dims[:-2]), *own.dims[-2:])
    return _static(rw, op, "multibroadcast", [op.input], out_lens=dims)


# ---- operands that are constants ----------------------------------------------------------------


@pattern(Reshape)
def find_const_alloc_reshapes(op: Reshape, rw: Rewriter) -> Replacement:
    """reshape(x, constant dims) -> reshape{dims}(x)

    MIGraphX reshapes into an allocated buffer whose dims are constant; here a reshape takes the
    dims directly.
    """
    if op.dims_tensor is None:
        return no_match("it has its dims as an attribute")
    dims = _integers(rw, op.dims_tensor)
    if dims is None:
        return no_match("the dims are not constant")
    source = TensorType.of(op.input).dims
    if 0 in dims and (op.allowzero or (0 in source and -1 not in dims)):
        return no_match("a 0 of the dims {} may be an extent", dims)
    return _static(rw, op, "reshape", op.input, dims=dims)


@pattern(Resize)
def find_resize_static(op: Resize, rw: Rewriter) -> Replacement:
    """resize(x, constant) -> resize{sizes}(x), or {scales} of floats"""
    if op.target is None:
        return no_match("it has its extents as an attribute")
    found = rw.const(op.target)
    if found is None or not found.size:
        return no_match("the extents are not constant, or none")
    attributes = attributes_of(op)
    if found.dtype.kind in "iu":
        if 0 in found:
            return no_match("it has no elements: in the attribute 0 keeps an extent")
        attributes["sizes"] = [max(int(v), 0) for v in found]
    else:
        attributes["scales"] = [float(v) for v in found]
    return _static(rw, op, "resize", op.input, **attributes)


def _const_slice(op: Op, rw: Rewriter, operands: int) -> ir.Value | NoMatch:
    """Rewrite a slice of that many operands with all but the first constant."""
    if len(op.operands) != operands:
        return no_match("it has {} operands", len(op.operands))
    attributes = {}
    for name in ("starts", "ends", "axes"):
        operand = getattr(op, f"input_{name}")
        values = getattr(op, name) if operand is None else _integers(rw, operand)
        if values is None:
            return no_match("the {} are not constant", name)
        attributes[name] = values
    return _static(rw, op, "slice", op.input, **attributes)


@pattern(Slice)
def find_const_2in_slice(op: Slice, rw: Rewriter) -> Replacement:
    """slice(x, constant) -> slice{starts, ends, axes}(x), one of the three an operand"""
    return _const_slice(op, rw, 2)


@pattern(Slice)
def find_const_3in_slice(op: Slice, rw: Rewriter) -> Replacement:
    """slice(x, constant, constant) -> slice{starts, ends, axes}(x), two of the three operands"""
    return _const_slice(op, rw, 3)


@pattern(Slice)
def find_const_4in_slice(op: Slice, rw: Rewriter) -> Replacement:
    """slice(x, constant starts, ends, axes) -> slice{starts, ends, axes}(x)"""
    return _const_slice(op, rw, 4)


@pattern(Fill)
def find_const_alloc_fill(op: Fill, rw: Rewriter) -> Replacement:
    """fill(constant, buffer) -> broadcast of a literal, the buffer's extents known or constant"""
    value = rw.const(op.value)
    if value is None:
        return no_match("the value is not constant")
    buffer = op.operands[1]
    dims: Sequence[int] | None = TensorType.of(buffer).dims
    if DYN in TensorType.of(buffer).dims:
        allocated = rw.defining(buffer, Allocate)
        if allocated is None or allocated.dims is None:
            return no_match("the buffer has unknown extents")
        dims = _integers(rw, allocated.dims)
        if dims is None:
            return no_match("the buffer's dims are not constant")
    assert dims is not None
    if not len(dims):
        return rw.literal(value.reshape(()))
    return _static(rw, op, "multibroadcast", [rw.literal(value.reshape(1))], out_lens=dims)


@pattern(OneHot)
def find_static_onehot(op: OneHot, rw: Rewriter) -> Replacement:
    """onehot(indices, constant depth, values) -> onehot{depth}(indices, values)

    MIGraphX scatters into a literal, as its onehot has no kernel; here the static onehot is one
    comparison that can be fused.
    """
    if op.depth_input is None:
        return no_match("it has its depth as an attribute")
    depth = _integers(rw, op.depth_input)
    if depth is None or len(depth) != 1 or depth[0] < 0:
        return no_match("the depth is not one constant number, 0 or more")
    return _static(rw, op, "onehot", op.indices, None, op.values, axis=op.axis, depth=depth[0])


# ---- calls --------------------------------------------------------------------------------------


@pattern(SelectModule)
def simplify_select_module_output_shape(op: SelectModule, rw: Rewriter) -> Replacement:
    """select_module : unknown extents -> the extents that all its functions return"""
    table = _symbols(op)
    results: list[list[TensorType]] = []
    for name in op.callees:
        if name not in table:
            return no_match("there is no function {}", name)
        kind = ir.FunctionType(ir.TypeAttr(table[name].attributes["function_type"]).value)
        results.append([TensorType.of(t) for t in kind.results])
    changed = False
    for i, value in enumerate(op.operation.results):
        stated = TensorType.of(value)
        types = [r[i] for r in results if len(r) == len(op.operation.results)]
        if len(types) != len(results) or any(t.rank != stated.rank for t in types):
            return no_match("the functions return other results")
        same = [
            d[0] if len(set(d)) == 1 else DYN for d in zip(*(t.dims for t in types), strict=True)
        ]
        dims = merge_dims(stated.dims, same)
        if dims is not None and dims != stated.dims:
            value.set_type(stated.with_dims(dims).mlir())
            changed = True
    if not changed:
        return no_match("the functions' results are not more precise than its type")
    if op.operation.parent.name == "func.func":
        restate_results(op.operation.parent)
    return rw.updated()


def _symbols(op: Op) -> ir.SymbolTable:
    parent = op.operation.parent
    while parent.name != "builtin.module":
        parent = parent.operation.parent
    return ir.SymbolTable(parent.operation)


# ---- types --------------------------------------------------------------------------------------


def refine(module: ir.Operation) -> bool:
    """Infer all result types again; return whether any changed."""
    changed = False

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal changed
        if any(not TensorType.of(r).is_static for r in op.results):
            changed |= _refine(op)
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    for function in functions(module):
        changed |= restate_results(function)
    return changed


def restate_results(function: ir.OpView) -> bool:
    """Update a function's type from its arguments and results; return whether it changed."""
    kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    block = entry_block(function)
    returned = [v.type for v in block.operations[len(block.operations) - 1].operands]
    taken = [a.type for a in block.arguments]
    if returned == list(kind.results) and taken == list(kind.inputs):
        return False
    new = ir.FunctionType.get(taken, returned)
    function.attributes["function_type"] = ir.TypeAttr.get(new)
    return True


def _refine(op: ir.Operation) -> bool:
    cls = op_class(op)
    if cls is None:
        return False
    try:
        groups = cls.split_operands(op)
        found = inferred(cls, cls.view(groups, op.attributes, list(op.regions)))
    except MgxError:
        return False  # given by the builder only
    if found is None:
        return False
    changed = False
    types = [found] if isinstance(found, TensorType) else found
    for value, told in zip(op.results, types, strict=True):
        stated = TensorType.of(value)
        dims = merge_dims(stated.dims, told.dims)
        if dims is not None and dims != stated.dims:
            value.set_type(stated.with_dims(dims).mlir())
            changed = True
    return changed


@dataclass(frozen=True)
class SimplifyDynOps(PatternPass):
    """Replace computed extents that are known by constants.

    Then types are inferred again, up to the results of functions; a replaced op keeps its type
    until then. MIGraphX's pattern names are kept where forms differ. It resizes and reshapes by a
    second input that is a buffer; here that operand is the extents. A slice takes each of starts,
    ends and axes as an operand or an attribute. Types are inferred, so only select_module states
    its output shapes, as result types.
    """

    name: ClassVar[str] = "simplify_dyn_ops"
    patterns: ClassVar[tuple[Pattern, ...]] = (
        find_broadcast_with_dims_static,
        find_resize_static,
        find_static_dimensions_of,
        find_const_alloc_reshapes,
        find_static_2in_broadcasts,
        find_const_2in_slice,
        find_const_3in_slice,
        find_const_4in_slice,
        find_const_alloc_fill,
        find_static_broadcast_for_dot,
        find_static_onehot,
        simplify_select_module_output_shape,
    )

    def run(self, module: ir.Operation) -> bool:
        changed = False
        while _has_candidates(module) and super().run(module):
            changed = True
            if not refine(module):
                break
        return changed


def _has_candidates(module: ir.Operation) -> bool:
    """Return whether an op of the module has a form with dynamic extents; most programs have
    none.
    """
    found = False

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal found
        if is_a(op, _RUN_TIME) or (is_a(op, _EXTRA_OPERANDS) and len(op.operands) > 1):
            found = True
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    module.walk(visit)
    return found
