"""EmbeddingBag in exported torch programs: as gathers and sums, which any sizes have.

torch.onnx writes a loop over the bags, with slices of lengths that only a run knows.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# its modes, by number
_SUM, _MEAN = 0, 1


def without_bags(model: Any) -> Any:
    """Return an ExportedProgram without EmbeddingBag; the program itself where it has none."""
    nodes = [n for n in model.graph.nodes if _is_bag(n)]
    if not nodes:
        return model
    with _written_out(nodes):
        return model.run_decompositions({})


def _is_bag(node: Any) -> bool:
    packet = getattr(node.target, "overloadpacket", None)
    return str(packet) in ("aten.embedding_bag", "aten._embedding_bag_forward_only",
                           "aten._embedding_bag")  # fmt: skip


@contextmanager
def _written_out(nodes: list[Any]) -> Iterator[None]:
    """Have nodes call `bags` or `equal_bags` meanwhile, which a trace goes through."""
    before = [(n, n.target, n.args, n.kwargs) for n in nodes]
    try:
        for node in nodes:
            given = dict(zip(_NAMES, node.args, strict=False)) | dict(node.kwargs)
            weight, indices = given.pop("weight"), given.pop("indices")
            offsets = given.pop("offsets")
            size = None if given.get("include_last_offset") else _size(indices, offsets)
            node.target = bags if size is None else equal_bags
            node.args = (weight, indices, offsets if size is None else size)
            node.kwargs = {k: given[k] for k in _KEPT if k in given}
        yield
    finally:
        for node, target, args, kwargs in before:
            node.target, node.args, node.kwargs = target, args, kwargs


_NAMES = ("weight", "indices", "offsets", "scale_grad_by_freq", "mode", "sparse",
          "per_sample_weights", "include_last_offset", "padding_idx")  # fmt: skip
_KEPT = ("mode", "per_sample_weights", "include_last_offset", "padding_idx")


def _size(indices: Any, offsets: Any) -> int | None:
    """Return the size of bags that are all equal: those of a matrix of indices."""
    if getattr(offsets, "op", "") != "call_function" or "arange" not in str(offsets.target):
        return None
    if len(offsets.args) != 3 or offsets.args[0] != 0 or not isinstance(offsets.args[2], int):
        return None
    end, flat = (getattr(a, "meta", {}).get("val", a) for a in (offsets.args[1], indices))
    count = getattr(flat, "shape", (None,))[0]
    known = end == count
    return offsets.args[2] if isinstance(known, bool) and known else _same(end, count, offsets)


def _same(end: Any, count: Any, offsets: Any) -> int | None:
    """Return the step where two symbolic sizes are one expression."""
    parts = [getattr(getattr(n, "node", None), "expr", n) for n in (end, count)]
    return offsets.args[2] if parts[0] == parts[1] else None


def equal_bags(
    weight: Any, indices: Any, size: int, *, mode: int = _SUM, per_sample_weights: Any = None,
    include_last_offset: bool = False, padding_idx: int | None = -1,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Return what EmbeddingBag gives for bags of `size` indices each."""
    torch: Any = importlib.import_module("torch")  # the maker of the program has it
    rows = torch.nn.functional.embedding(indices.reshape(-1, size), weight)
    kept = _kept(weight, indices, padding_idx)
    if kept is not None:
        kept = kept.reshape(-1, size, 1)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, size, 1)
    if mode in (_SUM, _MEAN):
        found = (rows if kept is None else torch.where(kept, rows, 0)).sum(1)
        if mode == _MEAN:
            count = size if kept is None else kept.sum(1).clamp(min=1)
            found = found / count
    else:
        if kept is not None:
            rows = torch.where(kept, rows, -torch.inf)
        found = rows.amax(1)
        if kept is not None:
            found = torch.where(kept.any(1), found, 0)
    return found, indices, indices, indices  # the others are for gradients


def bags(
    weight: Any, indices: Any, offsets: Any, *, mode: int = _SUM, per_sample_weights: Any = None,
    include_last_offset: bool = False, padding_idx: int | None = -1,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Return what EmbeddingBag gives for bags that begin at `offsets`."""
    torch: Any = importlib.import_module("torch")  # the maker of the program has it
    count = offsets.shape[0] - bool(include_last_offset)
    begins = offsets[:count].to(torch.int64)
    # a bag begins at each mark, several where some are empty: the sum of marks numbers the bags
    marks = torch.zeros(indices.shape[0] + 1, dtype=torch.int64)
    marks = marks.index_add(0, begins, torch.ones_like(begins))
    bag = marks.cumsum(0)[:-1] - 1
    kept = _kept(weight, indices, padding_idx)
    if kept is not None:  # what does not count goes into one more bag
        bag = torch.where(kept, bag, count)
    rows = torch.nn.functional.embedding(indices, weight)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    found = weight.new_zeros((count + 1, weight.shape[1]))
    if mode in (_SUM, _MEAN):
        found = found.index_add(0, bag, rows)[:count]
        if mode == _MEAN:
            sizes = torch.zeros(count + 1, dtype=torch.int64).index_add(
                0, bag, torch.ones_like(bag)
            )
            found = found / sizes[:count].clamp(min=1).unsqueeze(-1)
    else:
        places = bag.unsqueeze(-1).expand_as(rows)
        found = found.scatter_reduce(0, places, rows, "amax", include_self=False)[:count]
    return found, indices, indices, indices  # the others are for gradients


def _kept(weight: Any, indices: Any, padding_idx: int | None) -> Any:
    """Return which indices count, None where all do."""
    if padding_idx is None or padding_idx == -1:
        return None
    return indices != (padding_idx + weight.shape[0] if padding_idx < 0 else padding_idx)
