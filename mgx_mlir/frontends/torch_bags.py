"""EmbeddingBag of exported torch programs, as gathers and sums that allow dynamic sizes.

torch.onnx writes a loop over the bags, with slices of dynamic length.
"""

from __future__ import annotations

import importlib
from typing import Any

# modes, by number
_SUM, _MEAN = 0, 1


def bag(
    weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool = False, mode: int = 0,
    sparse: bool = False, per_sample_weights: Any = None, include_last_offset: bool = False,
    padding_idx: int | None = -1,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Return the results of aten::embedding_bag."""
    more: dict[str, Any] = {"mode": mode, "per_sample_weights": per_sample_weights}
    size = None if include_last_offset else _size(indices, offsets)
    if size is not None:
        return equal_bags(weight, indices, size, padding_idx=padding_idx, **more)
    return bags(
        weight, indices, offsets, include_last_offset=include_last_offset,
        padding_idx=padding_idx, **more,
    )  # fmt: skip


def _size(indices: Any, offsets: Any) -> int | None:
    """Return the size of equal bags, which are rows of a matrix of indices."""
    node = _node_of(offsets)
    if node is None or "arange" not in str(node.target):
        return None
    if len(node.args) != 3 or node.args[0] != 0 or not isinstance(node.args[2], int):
        return None
    end = getattr(node.args[1], "meta", {}).get("val", node.args[1])
    # sympy expressions: comparing symbols would add a guard
    sizes = (getattr(getattr(n, "node", None), "expr", n) for n in (end, indices.shape[0]))
    return node.args[2] if len({*sizes}) == 1 else None


def _node_of(tensor: Any) -> Any:
    """Return the node of a tensor in the running trace, None if it has none."""
    tracing: Any = importlib.import_module("torch.fx.experimental.proxy_tensor")
    functional: Any = importlib.import_module("torch._subclasses.functional_tensor")
    if isinstance(tensor, functional.FunctionalTensor):
        tensor = tensor.from_functional()
    mode = tracing.get_proxy_mode()
    found = None if mode is None else tracing.get_proxy_slot(tensor, mode.tracer, None)
    return None if found is None else found.proxy.node


def equal_bags(
    weight: Any, indices: Any, size: int, *, mode: int = _SUM, per_sample_weights: Any = None,
    include_last_offset: bool = False, padding_idx: int | None = -1,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Return the results of EmbeddingBag for bags of `size` indices each."""
    torch: Any = importlib.import_module("torch")  # already imported: the program is torch's
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
    return found, indices, indices, indices  # the others are only for gradients


def bags(
    weight: Any, indices: Any, offsets: Any, *, mode: int = _SUM, per_sample_weights: Any = None,
    include_last_offset: bool = False, padding_idx: int | None = -1,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """Return the results of EmbeddingBag for bags that begin at `offsets`."""
    torch: Any = importlib.import_module("torch")  # already imported: the program is torch's
    count = offsets.shape[0] - bool(include_last_offset)
    begins = offsets[:count].to(torch.int64)
    # marks at the begins of bags (several for empty ones): their cumulative sum numbers the bags
    marks = torch.zeros(indices.shape[0] + 1, dtype=torch.int64)
    marks = marks.index_add(0, begins, torch.ones_like(begins))
    bag = marks.cumsum(0)[:-1] - 1
    kept = _kept(weight, indices, padding_idx)
    if kept is not None:  # ignored elements go into an additional bag
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
    return found, indices, indices, indices  # the others are only for gradients


def _kept(weight: Any, indices: Any, padding_idx: int | None) -> Any:
    """Return the mask of counted indices, None if all count."""
    if padding_idx is None or padding_idx == -1:
        return None
    return indices != (padding_idx + weight.shape[0] if padding_idx < 0 else padding_idx)
