"""Functions, their samples that are run, and a sample as a function of tensors."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

LOOKED_AT = 150  # samples of a function, the first ones: some have thousands
KEPT = 4  # the most unlike ones; one of 0-d tensors and an empty one come on top
LARGEST = 20_000  # elements of a tensor: larger samples repeat what small ones say


@dataclass(frozen=True)
class Sample:
    """A call of a function: its tensors are arguments, everything else is a constant."""

    label: str
    call: Callable[[Sequence[torch.Tensor]], Any]
    tensors: tuple[torch.Tensor, ...]

    def inputs(self) -> list[torch.Tensor]:
        """The tensors, in memory of their own, with their strides."""
        return [_copied(t) for t in self.tensors]

    def larger(self) -> Sample:
        """The sample with every extent of 2 and more one larger."""
        return replace(self, tensors=tuple(map(_larger, self.tensors)))


def functions() -> dict[str, Any]:
    """The OpInfo of each function that takes f32."""
    return {o.full_name: o for o in op_db if torch.float32 in o.dtypes}


def drawn(count: int, seed: int) -> list[str]:
    """Names of functions, drawn without repetition."""
    return sorted(random.Random(seed).sample(sorted(functions()), count))


def samples(info: Any) -> list[Sample]:
    """A spread of a function's samples: the first, then those that differ most from them."""
    found: list[tuple[Sample, frozenset[Any]]] = []
    with torch.no_grad():
        given = info.sample_inputs("cpu", torch.float32, requires_grad=False)
        for i, s in enumerate(itertools.islice(given, LOOKED_AT)):
            made = _sample(i, info, s)
            if made is not None:
                found.append((made, _features(s)))
    return _spread(found)


def _sample(index: int, info: Any, s: Any) -> Sample | None:
    leaves, spec = pytree.tree_flatten((s.input, tuple(s.args), dict(s.kwargs)))
    at = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
    tensors = tuple(leaves[i] for i in at)
    if any(not _plain(t) for t in tensors):
        return None
    constants = [None if i in at else x for i, x in enumerate(leaves)]
    function = info.op

    def call(given: Sequence[torch.Tensor]) -> Any:
        values = list(constants)
        for i, t in zip(at, given, strict=True):
            values[i] = t
        first, args, kwargs = pytree.tree_unflatten(values, spec)
        return function(first, *args, **kwargs)

    return Sample(f"{index}: {_text(s)}", call, tensors)


def _plain(t: torch.Tensor) -> bool:
    return (
        t.layout == torch.strided and not t.is_nested and not t.is_quantized
        and t.numel() <= LARGEST and t.device.type == "cpu"
    )  # fmt: skip


def _copied(t: torch.Tensor) -> torch.Tensor:
    if t.is_contiguous() or t.is_conj() or t.is_neg():
        return t.clone()
    if 0 in t.stride():  # expanded: along such a dim all elements are one
        once = tuple(slice(None) if s else slice(1) for s in t.stride())
        return t[once].clone().expand(t.shape)
    return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype).copy_(t)


def _larger(t: torch.Tensor) -> torch.Tensor:
    """The tensor with every extent of 2 and more one larger.

    Sorted floats stay sorted, and no float is there twice; indices stay in range.
    """
    step = 0.125 if t.is_floating_point() else 0
    for dim, n in enumerate(t.shape):
        if n > 1:
            t = torch.cat([t, t.narrow(dim, n - 1, 1) + step], dim)
    return t


def _text(s: Any) -> str:
    """The sample's arguments on one line: tensors by their types and shapes."""

    def part(x: Any) -> str:
        if isinstance(x, torch.Tensor):
            kind = "" if x.dtype == torch.float32 else str(x.dtype).removeprefix("torch.")
            return f"{kind}{list(x.shape)}"
        if isinstance(x, list | tuple):
            return "(" + ", ".join(map(part, x)) + ")"
        return getattr(x, "__name__", None) or repr(x)

    args = [part(a) for a in (s.input, *s.args)]
    return ", ".join(args + [f"{k}={part(v)}" for k, v in s.kwargs.items()])[:160]


def _features(s: Any) -> frozenset[Any]:
    """The traits that tell samples apart: arguments, ranks, types, sizes of 0."""
    found: set[Any] = set()
    named = [*enumerate((s.input, *s.args)), *s.kwargs.items()]
    for name, value in named:
        found.add(name)
        for x in _leaves(value):
            if isinstance(x, torch.Tensor):
                found |= {(name, x.ndim), (name, str(x.dtype)), (name, x.is_contiguous())}
                if x.ndim == 0:
                    found.add("0-d")
                if x.numel() == 0:
                    found.add("empty")
                if 1 in x.shape:
                    found.add((name, "extent 1"))
            else:
                found.add((name, repr(x)))
    return frozenset(found)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        yield (type(value).__name__, len(value))
        for v in value:
            yield from _leaves(v)
    else:
        yield value


def _spread(found: list[tuple[Sample, frozenset[Any]]]) -> list[Sample]:
    """The first, then in turn the one with most that is new; then 0-d tensors and an empty one."""
    if not found:
        return []
    chosen = [found[0]]
    seen = set(found[0][1])
    while len(chosen) < KEPT:
        best = max(found, key=lambda f: len(f[1] - seen))
        if not best[1] - seen:
            break
        chosen.append(best)
        seen |= best[1]
    for wanted in ("0-d", "empty"):
        if not any(wanted in f for _, f in chosen):
            chosen += [f for f in found if wanted in f[1]][:1]
    return [s for s, _ in chosen]
