"""`torch.compile(model, backend="mgx")`: what Dynamo calls with each graph.

Dynamo finds `mgx` through the entry point group `torch_dynamo_backends`.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from mgx_mlir.core.errors import MgxError, UsageError
from mgx_mlir.integrations.torch.build import TRAINING, Writes, build
from mgx_mlir.integrations.torch.calls import Call, Weights, runner
from mgx_mlir.integrations.torch.counters import counters
from mgx_mlir.integrations.torch.graphs import Frozen, freeze, is_weight, wrapped_floats
from mgx_mlir.integrations.torch.options import TorchOptions

log = logging.getLogger(__name__)

# without it Dynamo leaves every LSTM, GRU and RNN out of its graphs
torch._dynamo.config.allow_rnn = True


def mgx(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Sequence[Any]]:
    """Compile a graph of Dynamo's for inference.

    options: the fields of TorchOptions. Errors: UsageError for wrong options and for models in
    training; UnsupportedModel that lists the operators which cannot be compiled.
    """
    chosen = TorchOptions.of(options, mode)
    refuse_gradients(example_inputs)
    specialise_floats(gm)
    counters.graphs += 1
    return Graph(gm, example_inputs, chosen)


def refuse_gradients(examples: Sequence[Any]) -> None:
    """Raise UsageError where a gradient could be asked for."""
    if not torch.is_grad_enabled():
        return
    if any(isinstance(x, torch.Tensor) and x.requires_grad for x in examples):
        raise UsageError(
            "the graph is of a model in training: gradients are on, and are not computed here",
            notes=[TRAINING],
        )


def specialise_floats(gm: fx.GraphModule) -> None:
    """Have Dynamo make constants of Python floats, which it guards: a trace begins again."""
    names = wrapped_floats(gm)
    if not names:
        return
    from torch._dynamo.exc import TensorifyScalarRestartAnalysis
    from torch._dynamo.symbolic_convert import TensorifyState

    for name in names:
        TensorifyState.specialize(name)
    raise TensorifyScalarRestartAnalysis


class Graph:
    """A graph of Dynamo's: compiled with its weights as constants.

    Another module of the same code comes with other weights, and weights may be changed in place:
    then the graph is compiled again, once for each set. A weight that changed twice, and one that
    the graph writes to, is an input from then on.
    """

    def __init__(self, gm: fx.GraphModule, examples: Sequence[Any], options: TorchOptions) -> None:
        self._gm, self._options = gm, options
        self._target = options.target or _target_of(examples)
        self._loose: set[int] = set()
        self._written: set[int] = set()
        self._seen: set[int] = set()
        self._made: list[tuple[Weights, Call]] = []
        self._use(*self._compile(examples))

    def __call__(self, *args: Any) -> Sequence[Any]:
        """Run on the graph's arguments, weights among them. Errors: RunError."""
        return self._call(args) if self._holds(args) else self._other(args)(args)

    def _use(self, weights: Weights, call: Call) -> Call:
        self._holds, self._call = weights.check(), call.function()
        return call

    def _other(self, args: Sequence[Any]) -> Call:
        """Return the call for other weights than those of the last one."""
        for weights, call in self._made:
            if weights.are(args):
                changed = weights.changed()
                if changed:
                    warnings.warn(
                        f"{len(changed)} weights were changed after the model was compiled: "
                        "it is compiled again",
                        stacklevel=4,
                    )
                    self._loose |= set(changed) & self._seen
                    self._seen |= set(changed)
                    self._made.remove((weights, call))
                    break
                return self._use(weights, call)
        return self._use(*self._compile(args))

    def _compile(self, args: Sequence[Any]) -> tuple[Weights, Call]:
        frozen = self._frozen(args)
        try:
            call = self._built(frozen)
        except Writes as e:
            self._written |= e.places
            frozen = self._frozen(args)
            call = self._built(frozen)
        weights = Weights(frozen.held, [args[i] for i in frozen.held])
        self._made.append((weights, call))
        return weights, call

    def _frozen(self, args: Sequence[Any]) -> Frozen:
        return freeze(
            self._gm, args, weights=lambda n, _: is_weight(n), loose=self._loose,
            written=self._written,
        )  # fmt: skip

    def _built(self, frozen: Frozen) -> Call:
        if not frozen.computes:
            return Call(frozen, None)
        try:
            return Call(frozen, runner(build(frozen, self._options, self._target)))
        except UsageError:
            raise
        except MgxError as e:
            # what it takes is needed where something is wrong, and not before
            from mgx_mlir.integrations.torch.fallback import with_eager

            return with_eager(frozen, self._options, self._target, e)


def _target_of(examples: Sequence[Any]) -> str:
    on_gpu = any(isinstance(x, torch.Tensor) and x.is_cuda for x in examples)
    return "gpu" if on_gpu else "cpu"


__all__ = ["Graph", "mgx"]
