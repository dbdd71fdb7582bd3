"""Views of torch's prims, which its decompositions make, as views of aten.

torch.onnx traces a program again, and that trace supports only views of aten.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def broadcast_in_dim(x: Any, shape: Sequence[Any], broadcast_dimensions: Sequence[int]) -> Any:
    """Return x expanded to a shape; broadcast_dimensions: indices of x's dims in it."""
    for dim in range(len(shape)):
        if dim not in broadcast_dimensions:
            x = x.unsqueeze(dim)
    return x.expand(shape)


def transpose(x: Any, permutation: Sequence[int]) -> Any:
    """Return x with its dims permuted."""
    return x.permute(permutation)


def squeeze(x: Any, dimensions: Sequence[int]) -> Any:
    """Return x without dims of one element."""
    return x.squeeze(tuple(dimensions))


def split_dim(x: Any, dim: int, outer_length: Any) -> Any:
    """Return x with a dim split in two; `outer_length` is the outer one's."""
    return x.unflatten(dim, (outer_length, x.shape[dim] // outer_length))


def collapse_view(x: Any, start: int, end: int) -> Any:
    """Return x with the dims from start to end merged."""
    return x.reshape(*x.shape[:start], math.prod(x.shape[start : end + 1]), *x.shape[end + 1 :])


def view_of(x: Any) -> Any:
    """Return x."""
    return x.view(x.shape)
