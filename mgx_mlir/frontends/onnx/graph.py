"""Order and names of a graph's nodes: what each reads, a topological order, cycles."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import onnx

from mgx_mlir.core.errors import ModelError


def label(node: onnx.NodeProto, index: int) -> str:
    """Return a node's name for messages: its own, or operator and index."""
    return node.name or f"{node.op_type}_{index}"


def reads(node: onnx.NodeProto) -> set[str]:
    """Return every outer value that a node depends on, including captures of its subgraphs."""
    names = {x for x in node.input if x}
    for attribute in node.attribute:
        if attribute.HasField("g"):
            names |= captured(attribute.g)
        for graph in attribute.graphs:
            names |= captured(graph)
    return names


def readers(nodes: Iterable[onnx.NodeProto], name: str) -> list[onnx.NodeProto]:
    """Return the nodes that read a value, directly or in their subgraphs."""
    return [n for n in nodes if name in reads(n)]


def captured(graph: onnx.GraphProto) -> set[str]:
    """Return the outer values that a subgraph captures."""
    own = {i.name for i in graph.input} | {i.name for i in graph.initializer}
    own |= {s.values.name for s in graph.sparse_initializer}
    for node in graph.node:
        own.update(node.output)
    used = {o.name for o in graph.output}
    for node in graph.node:
        used |= reads(node)
    return used - own


def topological(
    nodes: Sequence[onnx.NodeProto], given: Iterable[str]
) -> tuple[list[tuple[int, onnx.NodeProto]], bool]:
    """Return the nodes with their file positions, producers first, and whether the order changed.

    Nodes keep the file's order where possible. Raises ModelError for a cycle, and for two nodes
    with the same output.
    """
    producer: dict[str, int] = {}
    for i, node in enumerate(nodes):
        for name in node.output:
            if not name:
                continue
            if name in producer:
                first, second = label(nodes[producer[name]], producer[name]), label(node, i)
                by = f"two nodes, '{first}' and '{second}'"
                if producer[name] == i:
                    by = f"node '{first}' twice"
                raise ModelError(f"value '{name}' is the output of {by}")
            producer[name] = i
    for name in given:
        if name in producer:
            i = producer[name]
            raise ModelError(
                f"value '{name}' is an output of node '{label(nodes[i], i)}', and an input or "
                f"initializer too"
            )
    needs = [{producer[x] for x in reads(node) if x in producer} for node in nodes]
    if all(max(n, default=-1) < i for i, n in enumerate(needs)):
        return list(enumerate(nodes)), False
    users: list[list[int]] = [[] for _ in nodes]
    missing = [len(n) for n in needs]
    for i, n in enumerate(needs):
        for p in n:
            users[p].append(i)
    ready = [i for i, count in enumerate(missing) if count == 0]
    heapq.heapify(ready)
    order: list[tuple[int, onnx.NodeProto]] = []
    while ready:
        i = heapq.heappop(ready)
        order.append((i, nodes[i]))
        for user in users[i]:
            missing[user] -= 1
            if missing[user] == 0:
                heapq.heappush(ready, user)
    if len(order) < len(nodes):
        raise ModelError(f"the graph has a cycle: {_cycle(nodes, needs, missing)}")
    return order, True


def _cycle(nodes: Sequence[onnx.NodeProto], needs: list[set[int]], missing: list[int]) -> str:
    stuck = {i for i, count in enumerate(missing) if count > 0}
    at, path = min(stuck), []
    while at not in path:
        path.append(at)
        at = min(needs[at] & stuck)
    loop = [*path[path.index(at) :], at][::-1]
    names = [f"'{label(nodes[i], i)}'" for i in loop]
    return " -> ".join(names if len(names) < 12 else [*names[:10], "...", names[-1]])
