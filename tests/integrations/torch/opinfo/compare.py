"""Compares results of a compiled sample with eager's: values, NaN, shapes, types, strides."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

# two f32 programs that add in other orders: relative to the largest element
TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float64: 1e-6}
TOLERANCE_F32 = 5e-5
# a result that eager's own rounding moves is judged by the f64 result: this many times its error
TIMES_EAGER = 10.0


def difference(got: Any, want: Any, exact: Any = None, *, values: bool = True) -> str:
    """The fault of a result, an empty text where there is none.

    exact: the result in f64, None where there is none. values: False compares kinds and shapes.
    """
    mine, given = pytree.tree_leaves(got), pytree.tree_leaves(want)
    if len(mine) != len(given):
        return f"{len(mine)} results, expected {len(given)}"
    sharp = pytree.tree_leaves(exact)
    if len(sharp) != len(given):
        sharp = [None] * len(given)
    for i, (g, w, e) in enumerate(zip(mine, given, sharp, strict=True)):
        found = _of_leaf(g, w, e, values)
        if found:
            return f"result {i}: {found}" if len(given) > 1 else found
    return ""


def strides_differ(got: Any, want: Any) -> bool:
    """True where a result's elements lie otherwise than in eager."""
    return any(
        isinstance(g, torch.Tensor) and isinstance(w, torch.Tensor) and w.numel() > 0
        and _strides(g) != _strides(w)
        for g, w in zip(pytree.tree_leaves(got), pytree.tree_leaves(want), strict=True)
    )  # fmt: skip


def _strides(t: torch.Tensor) -> list[int]:
    return [s for s, n in zip(t.stride(), t.shape, strict=True) if n > 1]


def _of_leaf(got: Any, want: Any, exact: Any, values: bool) -> str:
    if not isinstance(want, torch.Tensor):
        if isinstance(got, torch.Tensor):
            return f"a tensor, expected {want!r}"
        return _of_number(got, want, values)
    if not isinstance(got, torch.Tensor):
        return f"a {type(got).__name__}, expected a tensor"
    if got.shape != want.shape:
        return f"shape {list(got.shape)}, expected {list(want.shape)}"
    if got.dtype != want.dtype:
        return f"type {got.dtype}, expected {want.dtype}"
    if not values or want.numel() == 0:
        return ""
    if want.dtype.is_complex:
        got, want = (torch.view_as_real(t.resolve_conj()) for t in (got, want))
        exact = None
    if not want.dtype.is_floating_point:
        count = int((got != want).sum())
        return f"{count} of {want.numel()} elements differ" if count else ""
    return _of_floats(got.double(), want.double(), exact, _tolerance(want.dtype))


def _of_number(got: Any, want: Any, values: bool) -> str:
    if isinstance(want, float) and isinstance(got, float):
        near = abs(got - want) <= TOLERANCE_F32 * abs(want) or (got != got and want != want)
        return "" if near or not values else f"{got!r}, expected {want!r}"
    return "" if got == want or not values else f"{got!r}, expected {want!r}"


def _tolerance(kind: torch.dtype) -> float:
    return TOLERANCE.get(kind, TOLERANCE_F32)


def _of_floats(got: torch.Tensor, want: torch.Tensor, exact: Any, tolerance: float) -> str:
    if not torch.equal(got.isnan(), want.isnan()):
        return f"NaN at {int(got.isnan().sum())} places, expected {int(want.isnan().sum())}"
    finite = want.isfinite()
    rest = ~finite & ~want.isnan()
    if not torch.equal(got[rest], want[rest]) or not bool(got[finite].isfinite().all()):
        return "infinite at other places"
    if not bool(finite.any()):
        return ""
    off, size = (got - want)[finite].abs(), want[finite].abs()
    # each element by its own size, but for those that are small beside the largest
    bound = tolerance * torch.maximum(size, size.max() * 0.1)
    if isinstance(exact, torch.Tensor) and exact.shape == want.shape:
        own = (want - exact.double())[finite].abs()
        bound = torch.maximum(bound, TIMES_EAGER * own.nan_to_num(0.0).max())
    if bool((off <= bound + 1e-37).all()):
        return ""
    worst = int((off - bound).argmax())
    return f"{got[finite][worst]:.8g}, expected {want[finite][worst]:.8g} (off by {off[worst]:.3g})"
