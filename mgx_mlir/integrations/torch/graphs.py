"""Dynamo's graphs as modules for torch.export: weights held, sizes read from the inputs."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx, nn

from mgx_mlir.core.errors import UnsupportedModel


@dataclass(frozen=True)
class Layout:
    """Sizes, strides and offset of a tensor, some of them symbolic."""

    sizes: tuple[Any, ...]
    strides: tuple[Any, ...]
    offset: Any

    @staticmethod
    def of(value: torch.Tensor) -> Layout:
        """Return the layout of a tensor of a trace."""
        return Layout(tuple(value.shape), tuple(value.stride()), value.storage_offset())

    @property
    def symbols(self) -> set[Any]:
        """Return the symbols in its sizes, strides and offset."""
        each = (n for n in (*self.sizes, *self.strides, self.offset) if isinstance(n, torch.SymInt))
        return {s for n in each for s in n.node.expr.free_symbols}

    @property
    def in_order(self) -> bool:
        """Return whether elements are known to be in row-major order, without gaps."""
        return self._follows(lone=False)

    @property
    def is_contiguous(self) -> bool:
        """Return whether strides are known to be a new tensor's, also for dims of size 1."""
        return self._follows(lone=True)

    def _follows(self, *, lone: bool) -> bool:
        step: Any = 1
        for size, stride in zip(reversed(self.sizes), reversed(self.strides), strict=True):
            counts = lone or isinstance(size, torch.SymInt) or size != 1
            if counts and _expression(stride) != step:
                return False
            step = step * _expression(size)
        return True


def _expression(n: Any) -> Any:
    """Return a size as a sympy expression: comparing SymInts would add guards."""
    return n.node.expr if isinstance(n, torch.SymInt) else n


@dataclass(frozen=True)
class Alias:
    """A result that is a view of an argument."""

    position: int
    layout: Layout


@dataclass(frozen=True)
class Argument:
    """A result that is an argument itself."""

    position: int


@dataclass(frozen=True)
class Constant:
    """A constant result: None or a number."""

    value: Any


@dataclass(frozen=True)
class Result:
    """A result that the program computes."""

    index: int  # index among the program's results
    number: bool = False  # graph gives a Python number
    layout: Layout | None = None  # layout in eager; None for a row-major tensor without gaps
    # true: the result is a view of a computed tensor whose memory others may share; else a copy
    view: bool = False


@dataclass(frozen=True)
class Again:
    """A result that is an earlier result itself."""

    position: int  # index among the graph's results


Output = Again | Alias | Argument | Constant | Result


@dataclass
class Frozen:
    """A graph whose weights are attributes."""

    module: fx.GraphModule
    inputs: list[int]  # indices of the graph's arguments that are passed at each call
    held: list[int]  # indices of the graph's arguments that are weights
    # indices of inputs that the graph writes to; their new values follow the results
    written: list[int]
    examples: tuple[Any, ...]  # inputs of the trace
    dynamic_shapes: tuple[Any, ...]  # dynamic dims of each input, for torch.export
    outputs: list[Output]
    # symbol -> source of its size: (argument, dim) of a tensor, or (argument, None) of a number
    symbols: dict[Any, tuple[int, int | None]] = field(default_factory=dict)
    results: tuple[Any, ...] = ()  # values of the results in the trace
    fixed: dict[int, int] = field(default_factory=dict)  # index of an argument -> its only value

    @property
    def computes(self) -> bool:
        """Return whether the graph computes a result or writes to an input."""
        return bool(self.written or self.results) or any(map(_may_write, self.module.graph.nodes))


# methods and functions that return views, sizes and types, and do not write
_READS = {
    "_check", "as_strided", "chunk", "detach", "diagonal", "dim", "eq", "expand", "expand_as",
    "flatten", "getattr", "getitem", "movedim", "narrow", "numel", "permute", "reshape", "select",
    "size", "split", "squeeze", "stride", "swapaxes", "t", "to", "transpose", "type", "unbind",
    "unflatten", "unfold", "unsqueeze", "view", "view_as",
}  # fmt: skip


def _may_write(node: fx.Node) -> bool:
    """Return whether a node may write to an operand, as far as its target shows."""
    if node.op not in ("call_method", "call_function", "call_module"):
        return False
    if hasattr(node.target, "_schema"):
        return node.target._schema.is_mutable  # type: ignore[union-attr]
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    return name not in _READS


def value_of(node: fx.Node) -> Any:
    """Return a node's value in the trace: a fake tensor, a symbol, a number."""
    return node.meta["example_value"] if "example_value" in node.meta else node.meta.get("val")


def is_weight(node: fx.Node) -> bool:
    """Return whether Dynamo marks an input as a parameter or buffer of a module."""
    return bool((node.meta.get("tensor_dict") or {}).get("_dynamo_static_input_type"))


def wrapped_floats(gm: fx.GraphModule) -> list[str]:
    """Return the symbols of Python floats that Dynamo passes as tensors, so that any value fits."""
    found: list[str] = []
    for node in gm.graph.nodes:
        if node.op != "placeholder" or not getattr(
            node.meta.get("grapharg"), "pass_arg_as_tensor", False
        ):
            continue
        memo = getattr(value_of(node), "item_memo", None)
        name = getattr(getattr(getattr(memo, "node", None), "_expr", None), "name", None)
        if isinstance(memo, torch.SymFloat) and name is not None:
            found.append(name)
    return found


def freeze(
    gm: fx.GraphModule, examples: Sequence[Any], *, weights: Callable[[fx.Node, Any], bool],
    written: Collection[int] = (), loose: Collection[int] = (), fix_numbers: bool = False,
) -> Frozen:  # fmt: skip
    """Rebuild a graph on its tensor inputs alone.

    `weights` returns whether a placeholder, with its example, is a weight. `loose` and `written`
    are indices of weights that stay inputs; `written` ones are written to. Sizes come from the
    inputs' dims. With `fix_numbers` integers are constants.
    """
    root, graph = nn.Module(), fx.Graph()
    places = [n for n in gm.graph.nodes if n.op == "placeholder"]
    made: dict[fx.Node, Any] = {}  # value of each node: a new node, or a known number
    inputs: list[int] = []
    held: list[int] = []
    shapes: list[Any] = []
    symbols: dict[Any, tuple[int, int | None]] = {}
    equal: list[tuple[fx.Node, int, fx.Node, int]] = []
    sources: dict[Any, tuple[fx.Node, int]] = {}
    numbers: list[int] = []
    fixed: dict[int, int] = {}
    for i, (node, example) in enumerate(zip(places, examples, strict=True)):
        value = value_of(node)
        if not isinstance(value, torch.Tensor):
            numbers.append(i)
            continue
        if value.layout != torch.strided:
            raise UnsupportedModel(f"graph input '{node.name}' is a tensor of {value.layout}: "
                                   "give it as x.to_dense()")  # fmt: skip
        if weights(node, example) and i not in loose and i not in written:
            name = f"weight_{i}"
            if isinstance(example, nn.Parameter):
                root.register_parameter(name, example)
            else:
                root.register_buffer(name, example)
            held.append(i)
            continue
        made[node] = graph.placeholder(node.name)
        inputs.append(i)
        dynamic_dims: dict[int, Any] = {}
        for dim, size in enumerate(value.shape):
            if not isinstance(size, torch.SymInt):
                continue
            dynamic_dims[dim] = torch.export.Dim.AUTO
            symbol = size.node.expr
            if symbol in sources:
                equal.append((*sources[symbol], made[node], dim))
            else:
                sources[symbol] = (made[node], dim)
                symbols[symbol] = (i, dim)
        shapes.append(dynamic_dims)
    given = [examples[i] for i in inputs]
    for i in numbers:
        node, value = places[i], value_of(places[i])
        symbol = value.node.expr if isinstance(value, torch.SymInt) else None
        if symbol is None or symbol in sources:
            continue
        if fix_numbers:
            made[node] = fixed[i] = hint_of(examples[i])
            symbols[symbol] = (i, None)
            continue
        made[node] = graph.placeholder(node.name)
        inputs.append(i)
        symbols[symbol] = (i, None)
        shapes.append(torch.export.Dim.AUTO)
        given.append(hint_of(examples[i]))
    for i in held:
        made[places[i]] = graph.get_attr(f"weight_{i}")
    size_of = torch.ops.aten.sym_size.int
    # dims that the trace proved equal share a symbol, which makes its expressions simpler
    for a, d, b, e in equal:
        same = graph.call_function(
            operator.eq,
            (graph.call_function(size_of, (a, d)), graph.call_function(size_of, (b, e))),
        )
        graph.call_function(torch._check, (same,))
    for i in numbers:
        node, value = places[i], value_of(places[i])
        if node in made:
            continue
        if isinstance(value, torch.SymInt) and value.node.expr in sources:
            made[node] = graph.call_function(size_of, sources[value.node.expr])
        elif not node.users:
            continue
        else:
            raise UnsupportedModel(f"graph input '{node.name}' is a {type(value).__name__}")
    # values of written inputs are copies, which the graph returns: it has no other effect
    order = [i for i in inputs if i in written]
    copies = [graph.call_function(torch.clone, (made[places[i]],)) for i in order]
    made.update({places[i]: copy for i, copy in zip(order, copies, strict=True)})
    outputs: list[Output] = []
    results: tuple[Any, ...] = ()
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            continue
        if node.op == "output":
            outputs, results = _finish(graph, node, places, made, symbols, copies)
            continue
        if node.op in ("get_attr", "call_module"):
            name = f"own_{str(node.target).replace('.', '_')}"
            own: Any = gm
            for part in str(node.target).split("."):
                own = getattr(own, part)
            if isinstance(own, nn.Module):
                root.add_module(name, own)
            elif isinstance(own, nn.Parameter):
                root.register_parameter(name, own)
            elif isinstance(own, torch.Tensor):
                root.register_buffer(name, own)
            else:
                setattr(root, name, own)
            made[node] = graph.node_copy(node, made.__getitem__)
            made[node].target = name
            continue
        known = [made[n] for n in node.all_input_nodes]
        if _is_number(value_of(node)) and not any(isinstance(n, fx.Node) for n in known):
            made[node] = _computed(node, made)  # Dynamo made constants of the node's operands
            continue
        made[node] = graph.node_copy(node, made.__getitem__)
        made[node].target = _FOR_REAL.get(node.target, node.target)
    return Frozen(
        fx.GraphModule(root, graph), inputs, held, order, tuple(_example(x) for x in given),
        tuple(s or None for s in shapes), outputs, symbols, results, fixed,
    )  # fmt: skip


def _is_number(value: Any) -> bool:
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool)


def _computed(node: fx.Node, made: dict[fx.Node, Any]) -> Any:
    """Compute a node whose operands are numbers."""
    args, kwargs = fx.map_arg((node.args, node.kwargs), made.__getitem__)
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    return node.target(*args, **kwargs)  # type: ignore[operator]


def _enter_autocast(*how: Any) -> torch.autocast:
    """Turn autocast on: torch.export only records torch's function for it."""
    return torch.autocast(*how).__enter__()


def _exit_autocast(mode: torch.autocast) -> None:
    mode.__exit__(None, None, None)


def _checkpointed(body: Callable[..., Any], *args: Any, **_: Any) -> Any:
    """Run a checkpointed function, which only a gradient would recompute."""
    return body(*args)


# functions of Dynamo's graphs, and the form of each that torch.export accepts
_FOR_REAL: dict[Any, Callable[..., Any]] = {
    torch.ops.higher_order.tag_activation_checkpoint: _checkpointed,
    torch.amp.autocast_mode._enter_autocast: _enter_autocast,
    torch.amp.autocast_mode._exit_autocast: _exit_autocast,
}


def hint_of(size: Any) -> int:
    """Return a size's value in the trace. `int` of a symbol would make Dynamo guard it."""
    return int(size.node.hint) if isinstance(size, torch.SymInt) else int(size)


def _example(value: Any) -> Any:
    """Return an example input without a gradient, as a real tensor."""
    if not isinstance(value, torch.Tensor):
        return value
    if type(value).__name__ == "FakeTensor":
        return torch.zeros([*map(hint_of, value.shape)], dtype=value.dtype)
    return value.detach()


def _finish(
    graph: fx.Graph,
    node: fx.Node,
    places: Sequence[fx.Node],
    made: dict[fx.Node, Any],
    symbols: dict[Any, tuple[int, int | None]],
    copies: Sequence[fx.Node],
) -> tuple[list[Output], tuple[Any, ...]]:
    """Make the output node of the computed values.

    Returns the results of the whole graph, in order, and the computed values.
    """
    at = {p: i for i, p in enumerate(places)}
    # an operator that writes to a tensor returns it: both nodes are one tensor
    first: dict[int, fx.Node] = {}
    for p in places:
        first.setdefault(id(value_of(p)), p)
    memory: dict[int, int] = {}
    for i, p in enumerate(places):
        storage = _storage(value_of(p))
        if storage is not None:
            memory.setdefault(storage, i)
    computed: dict[fx.Node, int] = {}
    given: dict[fx.Node, int] = {}
    found: list[Output] = []
    results = node.args[0] if isinstance(node.args[0], tuple | list) else (node.args[0],)
    owners = _owners(node.graph, [r for r in results if isinstance(r, fx.Node)], symbols)
    for out in results:
        if not isinstance(out, fx.Node):
            found.append(Constant(out))
            continue
        if not isinstance(made[out], fx.Node):
            found.append(Constant(made[out]))
            continue
        value = value_of(out)
        if isinstance(value, torch.Tensor):
            out = first.setdefault(id(value), out)
        if out in at:
            found.append(Argument(at[out]))
            continue
        if out in given:
            found.append(Again(given[out]))
            continue
        given[out] = len(found)
        alias = _alias(value, memory, symbols)
        # a view of another type is computed: as_strided would keep the argument's type
        if alias is not None and value_of(places[alias.position]).dtype == value.dtype:
            found.append(alias)
            continue
        layout = _layout(value, symbols)
        owner = None if layout is None else owners.get(_storage(value))
        if owner is out or (owner is not None and value_of(owner).dtype != value.dtype):
            owner = None
        if owner is None and layout is not None and layout.is_contiguous:
            layout = None
        index = computed.setdefault(out if owner is None else owner, len(computed))
        number = not isinstance(value, torch.Tensor)
        found.append(Result(index, number, layout, owner is not None))
    if not computed and not copies and any(map(_asserts, node.graph.nodes)):
        # an assertion needs a result to depend on
        waits = graph.call_function(torch.ones, (1,))
        graph.output((waits,))
        return found, (torch.ones(1),)
    graph.output((*(made[n] for n in computed), *copies))
    return found, tuple(map(value_of, computed))


def _asserts(node: fx.Node) -> bool:
    """Return whether a node asserts something about values; torch guards sizes itself."""
    name = getattr(node.target, "__name__", "").partition(".")[0]
    if name in ("_assert_async", "_assert_scalar"):
        return True
    if name != "_check" or not node.args or not isinstance(node.args[0], fx.Node):
        return False
    value = value_of(node.args[0])
    return isinstance(value, torch.SymBool) and any(
        str(s).startswith("u") for s in value.node.expr.free_symbols
    )


def _storage(value: Any) -> int | None:
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return None
    try:
        return value.untyped_storage()._cdata
    except NotImplementedError:  # raised inside of torch.vmap and torch.func
        return None


def _alias(
    value: Any, memory: dict[int, int], symbols: dict[Any, tuple[int, int | None]]
) -> Alias | None:
    storage = _storage(value)
    if storage is None or storage not in memory:
        return None
    layout = Layout.of(value)
    return Alias(memory[storage], layout) if layout.symbols <= symbols.keys() else None


def _layout(value: Any, symbols: dict[Any, Any]) -> Layout | None:
    """Return a result's memory layout, None if it is unknown before a call."""
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return None
    layout = Layout.of(value)
    return layout if layout.symbols <= symbols.keys() else None


def _owners(
    graph: fx.Graph, results: Sequence[fx.Node], symbols: dict[Any, Any]
) -> dict[int | None, fx.Node]:
    """Return the values whose memory results are views of, by storage.

    These are results, or values with no more elements than the results in their memory. A larger
    value would be computed for only a part of it.
    """
    shown: dict[int | None, int] = {}
    for value in map(value_of, results):
        if _layout(value, symbols) is not None:
            storage = _storage(value)
            shown[storage] = shown.get(storage, 0) + _elements(value)
    found: dict[int | None, fx.Node] = {}
    for node in (*results, *graph.nodes):
        value = value_of(node)
        storage = _storage(value)
        if storage is None or storage in found or node.op == "placeholder":
            continue
        if storage not in shown or _layout(value, symbols) is None:
            continue
        used = node in results or shown.get(storage, 0) >= _elements(value)
        if used and Layout.of(value).in_order and _covers(value):
            found[storage] = node
    return found


def _elements(value: torch.Tensor) -> int:
    return math.prod(map(hint_of, value.shape))


def _covers(value: torch.Tensor) -> bool:
    """Return whether a row-major tensor covers its whole storage."""
    size = value.untyped_storage().nbytes()
    return hint_of(size) == _elements(value) * value.element_size()
