"""Weights of the stored models: numbers drawn by position, so that no file need hold them.

`take_out` replaces large constants of a graph by how they were drawn, `put_back` undoes it on a
parsed graph. Both sides use numpy's frozen legacy generator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LARGE = 64  # elements from which a constant is drawn, not stored


def draw(index: int, path: str, dims: tuple[int, ...]) -> np.ndarray:
    """The weight number `index` of a model, of a size that keeps activations near 1."""
    random = np.random.RandomState(1000 + index)
    name = path.rsplit("/", 1)[-1]
    if "variance" in name:
        return random.uniform(0.5, 1.5, dims).astype(np.float32)
    if "gamma" in name:
        scale = 0.3 if "layer_scale" in path else 1.0
        return (scale * random.uniform(0.7, 1.3, dims)).astype(np.float32)
    if "embeddings" in name:
        return random.standard_normal(dims).astype(np.float32)
    if len(dims) < 2:
        return (0.1 * random.standard_normal(dims)).astype(np.float32)
    fan = int(np.prod(dims[:2])) if "depthwise" in path else int(np.prod(dims[:-1]))
    gain = 1.0 if "recurrent" in name else 1.4
    return (random.standard_normal(dims) * (gain / max(fan, 1) ** 0.5)).astype(np.float32)


def _constants(graph: Any) -> list[Any]:
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    return [n for n in nodes if n.op == "Const"]


def take_out(graph: Any, index: dict[str, int], weights: Any) -> list[dict[str, Any]]:
    """Empty the constants that `draw` can make again, and say how."""
    known = {}
    for w in weights:
        array = np.asarray(w)
        if array.size >= LARGE:
            key = array.astype(np.float32).tobytes()
            known[key] = {"index": index[w.path], "path": w.path, "dims": list(array.shape)}
    out = []
    for node in _constants(graph):
        tensor = node.attr["value"].tensor
        found = known.get(bytes(tensor.tensor_content))
        if found is not None:
            tensor.tensor_content = b""
            out.append({"node": node.name, **found})
    return out


def put_back(graph: Any, drawn: list[dict[str, Any]]) -> None:
    """Draw the constants that were taken out."""
    nodes: dict[str, list[Any]] = {}
    for node in _constants(graph):
        nodes.setdefault(node.name, []).append(node)
    for entry in drawn:
        values = draw(entry["index"], entry["path"], tuple(entry["dims"]))
        for node in nodes[entry["node"]]:
            node.attr["value"].tensor.tensor_content = values.tobytes()
