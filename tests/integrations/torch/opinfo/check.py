"""A function's samples through torch.compile, or ahead of time, and how each ended."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from unittest.mock import patch

import torch
from torch.utils import _pytree as pytree

import mgx_mlir.torch
from mgx_mlir.core.errors import MgxError
from mgx_mlir.integrations.torch.counters import counters
from tests.integrations.torch.opinfo.compare import difference, strides_differ
from tests.integrations.torch.opinfo.samples import Sample

MODES = ("fixed", "dynamic")
# results without defined values: memory as it was
UNSET = {
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided",
    "resize_", "resize_as_",
}  # fmt: skip

# errors of Dynamo for graphs that it cannot trace
UNTRACED = (
    torch._dynamo.exc.Unsupported, torch._dynamo.exc.UserError,
    torch._dynamo.exc.InternalTorchDynamoError, torch._dynamo.exc.TorchRuntimeError,
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """The outcome of a sample.

    kind: right; strides (right, elements lie otherwise); refused (an error of ours that says why);
    dynamo (neither Dynamo nor torch.export gives a graph); wrong; crash (any other error); skipped
    (eager itself raises).
    """

    sample: str
    kind: str
    text: str = ""

    def row(self) -> dict[str, str]:
        return asdict(self)


@dataclass
class _Case:
    sample: Sample
    want: Any
    exact: Any
    after: list[torch.Tensor]
    values: bool
    larger: _Case | str | None = None  # the sample of other sizes, or why eager has none


def check(name: str, given: Sequence[Sample], mode: str, target: str) -> list[Outcome]:
    """Run samples: all as one graph, each alone where that fails.

    Of dynamic dims those that eager takes in larger sizes are one graph, and the others another.
    """
    fixed: list[_Case] = []
    growing: list[_Case] = []
    found: list[Outcome] = []
    for s in given:
        made = _case(name, s)
        if not isinstance(made, _Case):
            found.append(Outcome(s.label, "skipped", made))
            continue
        made.larger = _case(name, s.larger()) if mode == "dynamic" else None
        (growing if isinstance(made.larger, _Case) else fixed).append(made)
    for cases in (fixed, growing):
        together = _outcomes(cases, mode, target) if len(cases) > 1 else []
        if not together or any(o.kind not in ("right", "strides") for o in together):
            together = [o for c in cases for o in _outcomes([c], mode, target)]
        found += together
    return found


def _refused_as_it_is(_frozen: Any, _options: Any, _target: str, failed: MgxError) -> Any:
    raise failed


def _case(name: str, s: Sample) -> _Case | str:
    """A sample with eager's results, or why eager has none."""
    try:
        results, inputs = [], []
        for seed in (0, 1):
            torch.manual_seed(seed)
            inputs = s.inputs()
            with patch("torch.manual_seed"):  # functions that draw are wrapped in one seed
                results.append(s.call(inputs))
        if any(_foreign(x) for x in pytree.tree_leaves(results[0])):
            return "the result is no plain tensor"
        drawn = bool(difference(results[1], results[0]))
        values = name not in UNSET and not drawn
        return _Case(s, results[1], _exact(s) if values else None, inputs, values)
    except Exception as e:
        return _line(e)


def _foreign(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and (x.layout != torch.strided or x.is_nested)


def _exact(s: Sample) -> Any:
    """The result in f64, None where a function has none."""
    wide = [t.double() if t.dtype == torch.float32 else t for t in s.inputs()]
    try:
        return s.call(wide)
    except Exception:
        return None


def _outcomes(cases: Sequence[_Case], mode: str, target: str) -> list[Outcome]:
    """Compile samples as one graph and compare; for several samples an error is one of all."""
    calls = [c.sample.call for c in cases]
    counts = [len(c.sample.tensors) for c in cases]

    def graph(*given: torch.Tensor) -> list[Any]:
        rest, found = list(given), []
        for call, n in zip(calls, counts, strict=True):
            found.append(call(rest[:n]))
            rest = rest[n:]
        return found

    torch._dynamo.reset()
    inputs = [c.sample.inputs() for c in cases]
    flat = [t for part in inputs for t in part]
    try:
        # a sample has few operators: to try each alone, for the table, would take most of the time
        table = patch("mgx_mlir.integrations.torch.fallback.with_eager", _refused_as_it_is)
        with warnings.catch_warnings(), torch.no_grad(), table:
            warnings.simplefilter("ignore")
            run = _compiled(graph, flat, mode, target)
            got = run(*flat)
            found = [_judged(c, g, after) for c, g, after in zip(cases, got, inputs, strict=True)]
            larger = [c.larger for c in cases if isinstance(c.larger, _Case)]
            if not larger or any(o.kind == "wrong" for o in found):
                return found
            inputs = [c.sample.inputs() for c in larger]
            programs = counters.programs
            got = run(*[t for part in inputs for t in part])
            again = "compiled again for other sizes" if counters.programs > programs else ""
            found = [_judged(c, g, after) for c, g, after in zip(larger, got, inputs, strict=True)]
            return [
                replace(o, text=(o.text and f"of other sizes: {o.text}") or again) for o in found
            ]
    except Exception as e:
        kind, text = _failed(e)
        return [Outcome(c.sample.label, kind, text) for c in cases]


def _failed(e: Exception) -> tuple[str, str]:
    """The kind of an error, and its text."""
    e = getattr(e, "inner_exception", None) or e  # wrapped in Dynamo's BackendCompilerFailed
    kinds = ((MgxError, "refused"), (UNTRACED, "dynamo"), (Exception, "crash"))
    return next(name for kind, name in kinds if isinstance(e, kind)), _line(e)


def _compiled(
    graph: Callable[..., Any], flat: Sequence[torch.Tensor], mode: str, target: str
) -> Callable[..., Any]:
    """The compiled function: torch.compile's, ahead of time where Dynamo gives no whole graph."""
    options = {"threads": 1, "target": target}
    made = torch.compile(
        graph, backend="mgx", fullgraph=True, dynamic=mode == "dynamic", options=options
    )
    try:
        made(*[t.clone() for t in flat])
    except UNTRACED as unsupported:
        module = _Module(graph)
        auto = torch.export.Dim.AUTO
        dims = tuple(dict.fromkeys(range(t.ndim), auto) or None for t in flat)
        try:
            return mgx_mlir.torch.compile(
                module, tuple(flat), dynamic_shapes=(dims,) if mode == "dynamic" else None,
                target=target, threads=1,
            )  # fmt: skip
        except MgxError as e:
            if "torch.export cannot export" in e.message:
                raise unsupported from None
            raise
    return made


class _Module(torch.nn.Module):
    def __init__(self, graph: Callable[..., Any]) -> None:
        super().__init__()
        self._graph = graph

    def forward(self, *given: torch.Tensor) -> Any:
        return self._graph(*given)


def _judged(c: _Case, got: Any, after: Sequence[torch.Tensor]) -> Outcome:
    text = difference(got, c.want, c.exact, values=c.values)
    if not text:
        text = difference(list(after), c.after, values=c.values)
        text = text and f"an input after the call: {text}"
    if text:
        return Outcome(c.sample.label, "wrong", text)
    return Outcome(c.sample.label, "strides" if strides_differ(got, c.want) else "right")


def _line(e: BaseException) -> str:
    """An error on one line."""
    text = getattr(e, "message", None) or str(e)
    lines = [" ".join(x.split()) for x in text.splitlines() if x.strip()]
    return f"{type(e).__name__}: {' | '.join(lines[:3])}"[:300]
