"""Unsupported functions: a table of them, and graphs of which torch runs a part."""

from __future__ import annotations

import itertools
import operator
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition
from torch.fx.passes.operator_support import OperatorSupport

from mgx_mlir.core.errors import MgxError, UnsupportedModel
from mgx_mlir.frontends.objects import onnx_of_exported, program_of_export
from mgx_mlir.frontends.torch_training import DRAWS, draws
from mgx_mlir.integrations.torch.build import alone, build, exported
from mgx_mlir.integrations.torch.calls import Call, runner
from mgx_mlir.integrations.torch.counters import counters
from mgx_mlir.integrations.torch.graphs import Frozen, freeze, hint_of
from mgx_mlir.integrations.torch.options import TorchOptions

_Kind = tuple[Any, ...]


@dataclass(frozen=True)
class Row:
    """An unsupported operator: its number of nodes, and its share of eager's time."""

    operator: str
    count: int
    share: float
    reason: str


def with_eager(frozen: Frozen, options: TorchOptions, target: str, failed: MgxError) -> Call:
    """Return the call of a graph whose unsupported operators torch runs.

    torch always runs the operators that draw random numbers. For others option `fallback` has to
    say so; without it the error has a table of them. Raises `failed` if no operator is the cause.
    """
    graph = _decomposed(frozen, failed)
    drawn = _drawn(graph)
    if drawn:
        with suppress(MgxError):  # the search below names the operators
            return Call(frozen, _partitioned(graph, drawn, options, target))
        # partitioning has consumed the nodes of the first graph
        graph = _decomposed(frozen, failed)
        drawn = _drawn(graph)
    bad = _unsupported(graph)
    if bad.keys() <= drawn.keys():
        raise failed
    bad |= drawn
    rows = _rows(graph, frozen.examples, bad)
    table = table_of(rows)
    count = sum(r.count for r in rows)
    what = f"{count} {'node' if count == 1 else 'nodes'} of torch cannot be compiled"
    if options.fallback != "eager":
        raise UnsupportedModel(
            f"{what}:\n{table}",
            notes=["options={'fallback': 'eager'} leaves them to torch", failed.message],
        )
    warnings.warn(f"{what}, and torch runs them:\n{table}", stacklevel=2)
    counters.eager += count
    return Call(frozen, _partitioned(graph, bad, options, target))


def _decomposed(frozen: Frozen, failed: MgxError) -> fx.GraphModule:
    """Return a graph of core operators. Raises `failed` if it cannot be exported."""
    try:
        made = exported(frozen)
        with alone():
            graph = made.run_decompositions({}).module()
    except Exception:  # a graph that cannot be exported has no operators to name
        raise failed from None
    if not isinstance(graph, fx.GraphModule):
        raise failed
    return graph


def _drawn(graph: fx.GraphModule) -> dict[fx.Node, str]:
    """Return the nodes that draw random numbers, each with the reason that torch runs it."""
    return {n: DRAWS for n in graph.graph.nodes if _is_operator(n) and draws(n)}


def table_of(rows: Sequence[Row]) -> str:
    """Return the operators as lines of text, the slowest first."""
    width = max(len(r.operator) for r in rows)
    return "\n".join(
        f"  {r.operator:<{width}}  {r.count:>4}  {100 * r.share:>5.1f} % of the time  {r.reason}"
        for r in sorted(rows, key=lambda r: (-r.share, r.operator))
    )


def _unsupported(graph: fx.GraphModule) -> dict[fx.Node, str]:
    """Return the nodes that cannot be compiled, each tried alone, with the reason."""
    known: dict[_Kind, str] = {}
    found: dict[fx.Node, str] = {}
    for node in graph.graph.nodes:
        if not _is_operator(node) or node.meta.get("val") is None:
            continue  # a check of the trace has no result
        kind = _kind(node)
        if kind not in known:
            known[kind] = _problem(graph, node)
        if known[kind]:
            found[node] = known[kind]
    return found


def _is_operator(node: fx.Node) -> bool:
    return node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)


def _kind(node: fx.Node) -> _Kind:
    """Return the key of equal nodes: the operator, types and ranks, and plain arguments."""

    def part(value: Any) -> Any:
        if isinstance(value, fx.Node):
            known = value.meta.get("val")
            if isinstance(known, torch.Tensor):
                return (known.dtype, known.ndim)
            return type(known).__name__
        if isinstance(value, list | tuple):
            return tuple(part(v) for v in value)
        return value if isinstance(value, bool | str | None) else type(value).__name__

    return (node.target, part(node.args), tuple((k, part(v)) for k, v in node.kwargs.items()))


def _problem(graph: fx.GraphModule, node: fx.Node) -> str:
    """Return why a node alone cannot be read, "" if it can."""
    single, made = fx.Graph(), dict[fx.Node, fx.Node]()
    for source in node.all_input_nodes:
        made[source] = single.placeholder(source.name)
        made[source].meta = dict(source.meta)
        if source.op == "get_attr":
            made[source].meta["val"] = _attribute(graph, source)
    result = single.node_copy(node, made.__getitem__)
    result.meta = dict(node.meta)
    single.output((result,))
    module = fx.GraphModule(torch.nn.Module(), single)
    try:
        frozen = freeze(module, [_sample(n) for n in made.values()], weights=lambda *_: False)
        if not frozen.computes:
            return ""  # a view of its operand, which every program supports
        with alone():
            program_of_export(onnx_of_exported(exported(frozen)))
    except MgxError as e:
        return e.message.splitlines()[-1].strip()[:120]
    except Exception as e:  # any exception: the node is left to torch
        return f"{type(e).__name__}: {e}".splitlines()[0][:120]
    return ""


def _attribute(graph: fx.GraphModule, node: fx.Node) -> Any:
    value: Any = graph
    for part in str(node.target).split("."):
        value = getattr(value, part)
    return value


def _sample(node: fx.Node) -> Any:
    """Return a sample value of a node, with the sizes of the trace."""
    known = node.meta.get("val")
    if isinstance(known, torch.Tensor):
        return torch.zeros([*map(hint_of, known.shape)], dtype=known.dtype)
    return hint_of(known) if isinstance(known, torch.SymInt) else known


class _Timed(fx.Interpreter):
    """Interpreter of a graph that records the seconds of each node."""

    def __init__(self, graph: fx.GraphModule) -> None:
        super().__init__(graph)
        self.seconds: Counter[fx.Node] = Counter()

    def run_node(self, n: fx.Node) -> Any:
        start = time.perf_counter()
        try:
            return super().run_node(n)
        finally:
            self.seconds[n] += time.perf_counter() - start  # type: ignore[assignment]


def _rows(graph: fx.GraphModule, examples: Sequence[Any], bad: dict[fx.Node, str]) -> list[Row]:
    timed = _Timed(graph)
    with torch.no_grad():
        timed.run(*examples)
        timed.seconds.clear()
        timed.run(*examples)
    total = sum(timed.seconds.values()) or 1.0
    counts, shares, reasons = Counter[str](), Counter[str](), dict[str, str]()
    for node, reason in bad.items():
        name = str(node.target)
        counts[name] += 1
        shares[name] += timed.seconds[node] / total  # type: ignore[assignment]
        reasons.setdefault(name, reason)
    return [Row(n, c, float(shares[n]), reasons[n]) for n, c in counts.items()]


def _partitioned(
    graph: fx.GraphModule, bad: dict[fx.Node, str], options: TorchOptions, target: str
) -> Callable[[Sequence[Any]], list[Any]]:
    """Return a graph's function, with each part without unsupported nodes compiled."""

    class Support(OperatorSupport):
        def is_node_supported(self, submodules: Any, node: fx.Node) -> bool:
            return node not in bad and node.op == "call_function"

    # each part lies between two random draws: these keep their order, and so their values
    spans = _spans(graph)
    partitioner = CapabilityBasedPartitioner(graph, Support(), allows_single_node_partition=True)
    parts = [
        Partition(id=None, nodes=[*nodes])
        for p in partitioner.propose_partitions()
        for _, nodes in itertools.groupby(sorted(p.nodes, key=spans.__getitem__), spans.get)
    ]
    fused = partitioner.fuse_partitions([p for p in parts if any(map(_computes, p.nodes))])
    _in_spans(fused.graph, spans)
    for node in list(fused.graph.nodes):
        if node.op == "call_module" and str(node.target).startswith("fused_"):
            part = getattr(fused, str(node.target))
            setattr(fused, str(node.target), _Part(fused, node, part, options, target))

    def run(given: Sequence[Any]) -> list[Any]:
        with torch.no_grad():
            found = fused(*given)
        return list(found) if isinstance(found, tuple | list) else [found]

    return run


def _spans(graph: fx.GraphModule) -> dict[fx.Node, int]:
    """Return the number of random draws before each node, counting the node itself."""
    spans, count = dict[fx.Node, int](), 0
    for node in graph.graph.nodes:
        count += _is_operator(node) and draws(node)
        spans[node] = count
    return spans


def _in_spans(graph: fx.Graph, spans: dict[fx.Node, int]) -> None:
    """Sort the nodes of a graph with fused parts by the draws before them.

    A node depends on none of a later span: a stable sort keeps operands ahead of their users.
    """
    known = dict(spans)
    for node in graph.nodes:  # a fused part, and results taken from it
        inside = [known[n] for n in node.all_input_nodes]
        known.setdefault(node, max(inside, default=0))
    nodes = [n for n in graph.nodes if n.op not in ("placeholder", "output")]
    for node in sorted(nodes, key=known.__getitem__):
        next(iter(reversed(graph.nodes))).prepend(node)


def _computes(node: fx.Node) -> bool:
    """Return whether a node computes on tensors, and not only on sizes."""
    return node.target is not operator.getitem and isinstance(node.meta.get("val"), torch.Tensor)


class _Part(torch.nn.Module):
    """A compiled part of a graph."""

    def __init__(
        self, whole: fx.GraphModule, node: fx.Node, part: fx.GraphModule, options: TorchOptions,
        target: str,
    ) -> None:  # fmt: skip
        super().__init__()
        places = [n for n in part.graph.nodes if n.op == "placeholder"]
        sources = [a for a in node.args if isinstance(a, fx.Node)]
        examples: list[Any] = []
        weights: set[fx.Node] = set()
        for place, source in zip(places, sources, strict=True):
            if source.op == "get_attr":
                weights.add(place)
                examples.append(_attribute(whole, source))
                place.meta["val"] = examples[-1]
            else:
                place.meta.update(source.meta)
                examples.append(_sample(source))
        frozen = freeze(part, examples, weights=lambda n, _: n in weights)
        made = build(frozen, options, target) if frozen.computes else None
        self._call = Call(frozen, None if made is None else runner(made))
        outputs = next(n for n in part.graph.nodes if n.op == "output").args[0]
        self._several = isinstance(outputs, tuple | list)

    def forward(self, *args: Any) -> Any:
        found = self._call(args)
        return tuple(found) if self._several else found[0]
