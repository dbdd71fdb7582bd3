"""Option `check`: comparison of a compiled graph's results with eager."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from mgx_mlir.core.errors import RunError
from mgx_mlir.debug.compare import Comparison, compare
from mgx_mlir.debug.tolerances import FULL_PRECISION, LOW_PRECISION, Tolerances
from mgx_mlir.integrations.torch.graphs import value_of
from mgx_mlir.integrations.torch.memory import array_of

_SIDES = ("mgx", "eager")


class Checked:
    """A call whose results are compared with eager's until they agree once."""

    def __init__(self, call: Any, eager: fx.GraphModule, low: bool) -> None:
        self._call, self._eager, self._open = call, eager, True
        self._limits = limits_of(low or computes_in_short_floats(eager.graph))
        (output,) = (n for n in eager.graph.nodes if n.op == "output")
        self._names = [getattr(n, "name", "a constant") for n in output.args[0]]

    def __call__(self, args: Sequence[Any]) -> Sequence[Any]:
        """Return the results of the graph. RunError if they differ from eager."""
        if not self._open:
            return self._call(args)
        with torch.no_grad():
            with torch.random.fork_rng(devices=[]):
                wanted, again = (_run(self._eager, args) for _ in range(2))
            found = self._call(args)
        names = [f"result {i} ('{n}')" for i, n in enumerate(self._names)]
        names += [f"argument {i} after the call" for i, _ in _tensors(args)]
        now = [*found, *(t for _, t in _tensors(args))]
        refuse_difference(names, now, wanted, again, self._limits)
        self._open = False
        return found

    def function(self) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """Return the call as a function."""
        return self


def refuse_difference(
    names: Iterable[str], found: Iterable[Any], wanted: Iterable[Any], again: Iterable[Any],
    limits: Tolerances, *, strides: bool = True,
) -> None:  # fmt: skip
    """Raise RunError that names the values which differ; warn of random ones."""
    problems: list[str] = []
    drawn: list[str] = []
    for name, value, want, other in zip(names, found, wanted, again, strict=True):
        if _problems(other, want, limits, strides):
            drawn.append(name)
            continue
        problems += [f"{name}: {p}" for p in _problems(value, want, limits, strides)]
    if drawn:
        warnings.warn(
            f"not checked, because two runs of eager differ: {', '.join(drawn)}", stacklevel=3
        )
    if problems:
        raise RunError(
            "the compiled graph differs from eager:\n  " + "\n  ".join(problems),
            notes=["options={'check': False} skips the comparison"],
        )


def limits_of(low: bool) -> Tolerances:
    """Return the limits of a comparison; `low`: for values computed in floats of 16 or 8 bits."""
    return LOW_PRECISION if low else FULL_PRECISION


def _problems(value: Any, want: Any, limits: Tolerances, strides: bool) -> list[str]:
    if not isinstance(want, torch.Tensor):
        return [] if value == want else [f"is {value!r}, eager gives {want!r}"]
    if not isinstance(value, torch.Tensor):
        return [f"is a {type(value).__name__}, eager gives a tensor"]
    if (value.dtype, value.shape) != (want.dtype, want.shape):
        return [f"is {_kind(value)}, eager gives {_kind(want)}"]
    if strides and value.numel() and value.stride() != want.stride():
        return [f"has strides {value.stride()}, eager gives {want.stride()}"]
    if value.is_complex():
        value, want = torch.view_as_real(value), torch.view_as_real(want)
    if want.is_floating_point() and want.element_size() < 4:
        limits = LOW_PRECISION
    made = compare("", array_of(value), array_of(want), limits, _SIDES)
    if made.passed or _all_undefined(value, want):
        return []
    return [_text(made, limits)]


def _all_undefined(value: torch.Tensor, want: torch.Tensor) -> bool:
    """Return whether no element is finite and all are equal: nothing can be compared then."""
    if not want.is_floating_point() or torch.isfinite(want).any():
        return False
    return torch.equal(value.nan_to_num(2.0, 1.0, -1.0), want.nan_to_num(2.0, 1.0, -1.0))


def _text(made: Comparison, limits: Tolerances) -> str:
    where = ", ".join(map(str, made.worst))
    return (
        f"{', '.join(made.problems)}; the largest error is {made.max_abs:.3g}, at {{{where}}} "
        f"(limits: {limits}, in parts of eager's largest element)"
    )


def _kind(t: torch.Tensor) -> str:
    return f"{str(t.dtype).removeprefix('torch.')} {{{', '.join(map(str, t.shape))}}}"


def _run(eager: fx.GraphModule, args: Sequence[Any]) -> list[Any]:
    """Run eager on copies; return its results, and its tensor arguments after the run."""
    given = pytree.tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, list(args))
    given = [_like(a, g) for a, g in zip(args, given, strict=True)]
    return [*eager(*given), *(t for _, t in _tensors(given))]


def _like(value: Any, copy: Any) -> Any:
    """Return a copy with a value's strides: some operators depend on them."""
    if not isinstance(value, torch.Tensor) or copy.stride() == value.stride():
        return copy
    span = 1 + sum((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True))
    if not value.numel() or value.layout != torch.strided:
        return copy
    held = value.detach().as_strided((span,), (1,), value.storage_offset()).clone()
    return held.as_strided(value.shape, value.stride())


def _tensors(values: Sequence[Any]) -> list[tuple[int, torch.Tensor]]:
    return [(i, t) for i, t in enumerate(values) if isinstance(t, torch.Tensor)]


def computes_in_short_floats(graph: fx.Graph) -> bool:
    """Return whether a value of a graph is a float of 16 or 8 bits."""
    values = map(value_of, graph.nodes)
    return any(
        isinstance(v, torch.Tensor) and v.is_floating_point() and v.element_size() < 4
        for v in values
    )
