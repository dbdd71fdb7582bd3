"""If: the branches become regions; if the condition is known, its branch is imported in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx

from mgx_mlir.core.errors import ModelError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.frontends.branches import joined_types, same_count
from mgx_mlir.frontends.helpers import require, reshape, single
from mgx_mlir.frontends.onnx.alternatives import Choice
from mgx_mlir.frontends.onnx.node import Node
from mgx_mlir.frontends.onnx.ranks import (
    Axes,
    axes_left_out,
    checked_extents,
    keep_axes,
    outside,
    passed_on,
    sizes_in,
)
from mgx_mlir.frontends.onnx.registry import onnx_op
from mgx_mlir.frontends.onnx.structures import Texts, build, describe, form_of, tensors
from mgx_mlir.frontends.onnx.texts import numbered
from mgx_mlir.frontends.problems import NotSupported
from mgx_mlir.frontends.values import Value, has_failed
from mgx_mlir.programs.build import Builder


@onnx_op("If", since=1)
def if_op(
    b: Builder,
    node: Node,
    cond: Value,
    *,
    then_branch: onnx.GraphProto,
    else_branch: onnx.GraphProto,
) -> tuple[Any, ...]:
    """Import If; a branch chosen by a known condition is imported in place.

    Of branches that differ in rank, the one that keeps the model valid is imported
    (alternatives.py). Strings leave a branch as indices into the program's table of strings.
    """
    known = b.const(single(b, cond, "condition"))
    if known is not None:
        return tuple(node.inline(then_branch if bool(known) else else_branch))
    texts: dict[int, int] = {}
    found = _of_tensors(b, node, cond, (then_branch, else_branch), texts)
    if has_failed(found):
        return found
    table = node.importer.text_table
    return tuple(Texts(v, table) if i in texts else v for i, v in enumerate(found))


def _branch(b: Builder, node: Node, graph: onnx.GraphProto, texts: dict[int, int]) -> list[Any]:
    """Import a branch, with strings as indices; count in `texts` the branches that yield
    strings.
    """
    found, strings = numbered(b, node.inline(graph), node.importer.text_table)
    for i in strings:
        texts[i] = texts.get(i, 0) + 1
    return found


def _of_tensors(
    b: Builder,
    node: Node,
    cond: Value,
    graphs: tuple[onnx.GraphProto, onnx.GraphProto],
    texts: dict[int, int],
) -> tuple[Any, ...]:
    """Return the results of an If, with indices in place of strings."""
    if not all(node.settle(g) for g in graphs):
        return node.failed()
    mark = b.remembered()
    draft = OPS["if"](cond, [], results=[]).operation
    found: list[list[Any]] = []
    yields: list[list[Any]] = []
    problems = node.importer.problems
    for i, (graph, region) in enumerate(zip(graphs, draft.regions, strict=True)):
        noted = problems.noted()
        with ir.InsertionPoint(region.blocks.append()):
            found.append(_branch(b, node, graph, texts))
            if not has_failed(found[-1]):
                yields.append(tensors(found[-1]))
                OPS["yield"](yields[-1])
                continue
        wrong = problems.of_the_model_since(noted)
        draft.erase()
        node.importer.has_wrong_branch |= wrong
        if not (wrong and node.importer.branches_may_fail):
            return node.failed()
        b.forget(mark)
        texts.clear()
        return _without(b, node, cond, graphs[1 - i], i == 1, noted, texts)
    same_count(found)
    for i, count in texts.items():
        if count < len(graphs):
            draft.erase()
            raise ModelError(f"output {i} expected strings of both branches, got numbers of one")
    forms = [form_of(v) for v in found[0]]
    for i, (form, other) in enumerate(zip(forms, map(form_of, found[1]), strict=True)):
        if form != other:
            raise NotSupported(f"output {i} that is {describe(form)} or {describe(other)}")
    axes: list[Axes] = []
    yields = _one_element(b, draft, graphs, yields)
    if any(TensorType.of(a).rank != TensorType.of(c).rank for a, c in zip(*yields, strict=True)):
        choice = node.taken()
        if choice in (Choice.THEN, Choice.ELSE):
            draft.erase()
            b.forget(mark)  # drop facts about erased values: new values may reuse their addresses
            holds = choice is Choice.THEN
            return _only(b, node, single(b, cond, "condition"), graphs[0 if holds else 1], holds)
        left_out = axes_left_out(yields)
        if left_out is None:
            problem = _ranks_differ(b, single(b, cond, "condition"), yields)
            draft.erase()
            b.forget(mark)
            raise problem
        node.importer.ones.strict |= choice is Choice.BOTH
        low, axes = left_out
        if passed_on(yields[low], yields[1 - low], axes):
            whole = [outside(v) for v in yields[1 - low]]
            draft.erase()
            b.forget(mark)
            said = single(b, cond, "condition")
            said = b.not_(said) if low else said
            # values separate from the branches': marks belong to the result
            kept = [
                checked_extents(b, b.identity(v), a, said) for v, a in zip(whole, axes, strict=True)
            ]
            return tuple(node.without_ones(v, a) for v, a in zip(kept, axes, strict=True))
        keep_axes(b, draft.regions, low, axes)
        yields = [list(r.blocks[0].operations[-1].operands) for r in draft.regions]
    types = joined_types(yields)
    made = OPS["if"](cond, [], results=types).operation
    for old, new in zip(draft.regions, made.regions, strict=True):
        old.blocks[0].append_to(new)
    draft.erase()
    for result, value in zip(made.results, yields[0], strict=True):
        node.mark(result, node.kind(value))
    results = list(made.results)
    if axes:
        results = [node.without_ones(v, a) if a else v for v, a in zip(results, axes, strict=True)]
    return tuple(build(forms, results))


def _one_element(
    b: Builder,
    draft: ir.Operation,
    graphs: Sequence[onnx.GraphProto],
    yields: list[list[Value]],
) -> list[list[Value]]:
    """Unify the branches' results; one element has the rank that they state, else the lower
    rank.
    """
    made = [list(found) for found in yields]
    for i, pair in enumerate(zip(*yields, strict=True)):
        dims = [b.dims(v) for v in pair]
        if len(dims[0]) == len(dims[1]) or not set(dims[0]) | set(dims[1]) <= {1}:
            continue
        stated = {
            len(g.output[i].type.tensor_type.shape.dim)
            for g in graphs
            if i < len(g.output) and g.output[i].type.tensor_type.HasField("shape")
        }
        rank = stated.pop() if len(stated) == 1 else min(map(len, dims))
        for found, v, region in zip(made, pair, draft.regions, strict=True):
            with ir.InsertionPoint(region.blocks[0].operations[-1]):
                found[i] = reshape(b, v, [1] * rank)
    for found, region in zip(made, draft.regions, strict=True):
        end = region.blocks[0].operations[-1]
        for i, v in enumerate(found):
            end.operands[i] = v
    return made


def _without(
    b: Builder,
    node: Node,
    cond: Value,
    graph: onnx.GraphProto,
    holds: bool,
    noted: int,
    texts: dict[int, int],
) -> tuple[Any, ...]:
    """Return the branches' results without the wrong branch, which may be for other sizes.

    The errors of the wrong branch, recorded since `noted`, become errors of a run that takes it.
    """
    problems = node.importer.problems
    first = problems.take_since(noted)
    where = str(first[0].location).removeprefix(f"{problems.source}: ")
    why = f"in the other branch {where}: {first[0].message}"
    found = _only(b, node, single(b, cond, "condition"), graph, holds, why, texts)
    if has_failed(found):
        problems.errors.extend(first)
    return found


def _ranks_differ(b: Builder, cond: Value, yields: Sequence[Sequence[Value]]) -> NotSupported:
    ranks = [[TensorType.of(v).rank for v in found] for found in yields]
    output = next(i for i, (a, c) in enumerate(zip(*ranks, strict=True)) if a != c)
    text = f"output {output} of rank {ranks[0][output]} or {ranks[1][output]}"
    names = sizes_in(b, cond)
    if names:
        text += f", which dim {names} of the inputs decides: give it a size"
    return NotSupported(text)


def _only(
    b: Builder,
    node: Node,
    cond: Value,
    graph: onnx.GraphProto,
    holds: bool,
    why: str = "the other branch's result has another rank",
    texts: dict[int, int] | None = None,
) -> tuple[Any, ...]:
    """Return the results of one branch; a run whose condition selects the other one fails."""
    found = _branch(b, node, graph, {} if texts is None else texts)
    if has_failed(found):
        return node.failed()
    said = cond if holds else b.op("not", cond)
    word = "true" if holds else "false"
    expected = f"a condition that is {word}: {why}"
    made = [require(b, v, said, expected) for v in tensors(found)]
    return tuple(build([form_of(v) for v in found], made))
