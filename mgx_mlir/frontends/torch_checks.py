"""Value checks in exported torch programs: assertions of a model, and limits of indices.

torch.onnx drops assertions, and its Gather reads a negative index from the end. Each check becomes
an operator of this package, which our ONNX importer supports.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mgx_mlir.core.errors import UnsupportedModel
from mgx_mlir.frontends.torch_check_operators import NO_LIMIT, check_operators

_ANY = NO_LIMIT  # also the index of an absent argument


@dataclass(frozen=True)
class Limits:
    """Limits of an integer operand: [low, n), with n a dim of another operand."""

    index: int  # index of the operand
    of: int = 0  # index of the operand with the dim
    dim: int | None = None  # the dim; None: argument 1 has it
    low: int = 0
    wraps: bool = False  # negative values count from the end
    number: int = _ANY  # index of an argument that is n itself
    open: bool = False  # no upper limit
    what: str = "indices"


_ALONG = Limits(2)
_WRAPPING = Limits(2, wraps=True)
# names without overload, and without the `_` of in-place versions
_LIMITS: Mapping[str, Limits] = {
    "aten::embedding": Limits(1, dim=0),
    "aten::embedding_bag": Limits(1, dim=0),
    "aten::gather": _ALONG,
    "aten::index_select": _ALONG,
    "aten::index_add": _ALONG,
    "aten::index_copy": _ALONG,
    "aten::index_reduce": _ALONG,
    "aten::index_fill": _WRAPPING,
    "aten::scatter": _ALONG,
    "aten::scatter_add": _ALONG,
    "aten::scatter_reduce": _ALONG,
    "aten::one_hot": Limits(0, number=1, what="classes"),
    "aten::multi_margin_loss": Limits(1, dim=-1, what="classes"),
    "aten::multilabel_margin_loss": Limits(1, dim=-1, low=-1, what="classes"),
    "aten::bincount": Limits(0, open=True, what="numbers to count"),
}
_REPEATS = Limits(1, open=True, what="repeats")
_OVERLOADS: Mapping[str, Limits] = {
    "aten::repeat_interleave.self_Tensor": _REPEATS,
    "aten::repeat_interleave.Tensor": Limits(0, open=True, what="repeats"),
}
_INDEXED = {"aten::index", "aten::index_put"}  # operators with a list of indices, some None or bool
_ASSERTIONS = {
    "aten::_assert_async", "aten::_assert_async.msg", "aten::_assert_scalar",
}  # fmt: skip
# text of an assertion from torch's trace
_OF_TRACE = re.compile(r"Runtime assertion failed for expression (.*) on node ")
# operators that return sizes: 0 or more
_SIZES = {"aten::sym_size.int", "aten::sym_numel"}


def with_index_checks(model: Any) -> Any:
    """Return an ExportedProgram with checked indices; the same one if there are none."""
    if not any(_indices(n) for g in _graphs(model.graph_module) for n in g.nodes):
        return model
    model = _copied(model)
    for graph in _graphs(model.graph_module):
        for node in list(graph.nodes):
            for limits, path in _indices(node):
                _check(graph, node, limits, path)
        graph.owning_module.recompile()
    return model


def stated_bounds(model: Any) -> frozenset[int]:
    """Return the numbers that a program asserts as bounds of dynamic sizes.

    Bounds of at least the operator's number of elements are left out: torch adds these itself, and
    uses the mask's number when masked_select broadcasts.
    """
    return frozenset(
        n.args[1]
        for graph in _graphs(model.graph_module)
        for n in graph.nodes
        if _bounds_size(n) and n.args[1] < _most_elements(n.args[0].args[0])
    )


def with_assertions(model: Any, bounds: frozenset[int]) -> Any:
    """Return an ExportedProgram whose results depend on its assertions; the same one without any.

    bounds: `stated_bounds` of the program before torch decomposed it. Raises UnsupportedModel for
    an assertion in a graph without tensors as results.
    """
    if not any(_assertions(g, bounds) for g in _graphs(model.graph_module)):
        return model
    model = _copied(model)
    renamed: dict[str, str] = {}
    for graph in _graphs(model.graph_module):
        conditions = _assertions(graph, bounds)
        if conditions:
            before, after = _require(graph, conditions)
            if graph is model.graph:
                renamed[before.name] = after.name
        graph.owning_module.recompile()
    for spec in model.graph_signature.output_specs:
        if getattr(spec.arg, "name", None) in renamed:
            spec.arg.name = renamed[spec.arg.name]
    return model


def _graphs(module: Any) -> Iterator[Any]:
    """Return the graphs of a module, including those of its branches and bodies."""
    for part in module.modules():
        if hasattr(part, "graph"):
            yield part.graph


def _copied(model: Any) -> Any:
    """Return an ExportedProgram with copied graphs: the given ones may be shared."""
    copy = importlib.import_module("copy")
    signature = copy.deepcopy(model.graph_signature)
    return model._update(_copied_module(model.graph_module), signature)


def _copied_module(module: Any) -> Any:
    fx: Any = importlib.import_module("torch.fx")  # already imported: the program is torch's
    graph = fx.Graph()
    (output,) = (n for n in module.graph.nodes if n.op == "output")
    made: dict[Any, Any] = {}
    results = graph.graph_copy(module.graph, made)
    graph.output(results).meta = dict(output.meta)
    for before, after in made.items():
        after.name = before.name  # signatures refer to names, which a copy may change ('input')
    graph.set_codegen(module.graph._codegen)
    copy = fx.GraphModule(module, graph)
    copy.meta = dict(module.meta)
    for name, child in list(copy.named_children()):
        if hasattr(child, "graph"):
            setattr(copy, name, _copied_module(child))
    return copy


def _indices(node: Any) -> Iterator[tuple[Limits, int | None]]:
    """Return the checks of a node's operands: limits, and the index in a list of indices."""
    if node.op != "call_function" or not hasattr(node.target, "_schema"):
        return
    full = node.target.name()
    name = full.partition(".")[0]
    name = name.removesuffix("_") if node.target._schema.is_mutable else name
    if name in _INDEXED and len(node.args) > 1:
        data = _rank(node.args[0])
        dim = 0
        for i, index in enumerate(node.args[1] or ()):
            kind = _value(index)
            if hasattr(kind, "dtype") and str(kind.dtype) in ("torch.bool", "torch.uint8"):
                dim += kind.ndim
                continue
            if hasattr(kind, "dtype") and dim < data:
                yield Limits(1, dim=dim, wraps=True), i
            dim += 1
        return
    limits = _OVERLOADS.get(full) or _LIMITS.get(name)
    if limits is None or limits.index >= len(node.args):
        return
    if not hasattr(_value(node.args[limits.index]), "dtype"):
        return
    if limits.number != _ANY and node.args[limits.number] == _ANY:
        return  # number of classes is that of the values
    if not limits.open and limits.number == _ANY and not _rank(node.args[limits.of]):
        return
    yield limits, None


def _value(node: Any) -> Any:
    return getattr(node, "meta", {}).get("val")


def _of_value(node: Any) -> dict[str, Any]:
    """Return a node's value in the trace; its sizes are new symbols of this node alone."""
    return {k: v for k, v in node.meta.items() if k != "unbacked_bindings"}


def _rank(node: Any) -> int:
    return getattr(_value(node), "ndim", 0)


def _check(graph: Any, node: Any, limits: Limits, part: int | None) -> None:
    """Make a node read an operand through its check."""
    operand = node.args[limits.index]
    index = operand if part is None else operand[part]
    of, dim, below = None, 0, _ANY
    if limits.number != _ANY:
        below = node.args[limits.number]
    elif not limits.open:
        of = node.args[limits.of]
        dim = node.args[1] if limits.dim is None else limits.dim
        dim %= _rank(of)
    named = (limits.what, node.target.name().partition(".")[0].replace("::", "."))
    with graph.inserting_before(node):
        made = graph.call_function(
            check_operators().within, (index, of, dim, limits.low, below, limits.wraps, *named)
        )
    made.meta = _of_value(index)
    if part is not None:
        made = [made if i == part else v for i, v in enumerate(operand)]
    args = list(node.args)
    args[limits.index] = made
    node.args = tuple(args)


def _assertions(graph: Any, bounds: frozenset[int]) -> list[tuple[Any, str]]:
    """Return a graph's assertions about values: conditions, and their messages."""
    found: list[tuple[Any, str]] = []
    for node in graph.nodes:
        if node.op != "call_function" or not hasattr(node.target, "_schema"):
            continue
        if node.target.name() not in _ASSERTIONS or not hasattr(node.args[0], "op"):
            continue
        condition = node.args[0]
        if not _of_sizes(condition, bounds):
            told = str(node.args[1]) if len(node.args) > 1 and node.args[1] else str(condition)
            short = _OF_TRACE.match(told)
            found.append((condition, " ".join((short[1] if short else told).split())[:200]))
    return found


def _of_sizes(condition: Any, bounds: frozenset[int]) -> bool:
    """Return whether a condition only concerns sizes of inputs, or facts that operators guarantee.

    Conditions on sizes of inputs are rules of the program (torch_conditions.py).
    """
    if hasattr(_value(condition), "dtype"):
        return False
    sizes = [n for n in _numbers(condition) if not _made_of_numbers(n)]
    if all(_is_size(n) and n.args[0].op == "placeholder" for n in sizes):
        return True
    if _bounds_size(condition):
        return condition.args[1] not in bounds
    least = getattr(condition.target, "__name__", "") == "ge" and condition.args[1:] == (0,)
    return least and _is_size(condition.args[0])


def _bounds_size(node: Any) -> bool:
    """Return whether a node asserts that a size is at most a known number."""
    if getattr(node.target, "__name__", "") != "le" or len(node.args) != 2:
        return False
    return isinstance(node.args[1], int) and _is_size(node.args[0])


def _most_elements(node: Any) -> float:
    """Return the element count of the largest operand of known dims; infinity without one."""
    shapes = (_value(n).shape for n in node.all_input_nodes if hasattr(_value(n), "dtype"))
    return max((math.prod(s) for s in shapes if all(type(d) is int for d in s)), default=math.inf)


def _numbers(node: Any) -> set[Any]:
    """Return the symbols in a number, itself included; a trace has no values of them."""
    found, left = set[Any](), [node]
    while left:
        n = left.pop()
        if n not in found:
            found.add(n)
            left += n.all_input_nodes if _made_of_numbers(n) else ()
    return found


def _made_of_numbers(node: Any) -> bool:
    tensors = any(hasattr(_value(n), "dtype") for n in node.all_input_nodes)
    return node.op == "call_function" and bool(node.all_input_nodes) and not tensors


def _is_size(node: Any) -> bool:
    return getattr(getattr(node, "target", None), "name", str)() in _SIZES


def _require(graph: Any, conditions: Sequence[tuple[Any, str]]) -> tuple[Any, Any]:
    """Make a result depend on conditions; return the former and the new result."""
    (output,) = (n for n in graph.nodes if n.op == "output")
    flat = output.args[0] if isinstance(output.args[0], tuple | list) else (output.args[0],)
    tensors = [n for n in flat if hasattr(_value(n), "dtype")]
    if not tensors:
        raise UnsupportedModel(
            f"the torch program asserts '{conditions[0][1]}', and no result of it is a tensor: "
            "return one, or leave the assertion out"
        )
    before = made = tensors[0]
    for condition, told in conditions:
        kinds = check_operators()
        target = kinds.require if hasattr(_value(condition), "dtype") else kinds.require_number
        with graph.inserting_before(output):
            made = graph.call_function(target, (made, condition, told))
        made.meta = _of_value(before)
    results = tuple(made if n is before else n for n in flat)
    output.args = (results if isinstance(output.args[0], tuple | list) else results[0],)
    return before, made
