"""The backend of `torch.compile(model, backend="mgx")`, which Dynamo calls with each graph.

Dynamo finds `mgx` through the entry point group `torch_dynamo_backends`.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter, is_
from typing import Any

import torch
from torch import fx

from mgx_mlir.compiler.stats import summary
from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import MgxError, SizesRefused, UnsupportedModel, UsageError
from mgx_mlir.frontends.torch_training import TRAINING
from mgx_mlir.integrations.torch.build import Writes, compiled, read
from mgx_mlir.integrations.torch.calls import Call, Weights, runner
from mgx_mlir.integrations.torch.check import Checked
from mgx_mlir.integrations.torch.counters import counters
from mgx_mlir.integrations.torch.graphs import (
    Frozen,
    Result,
    freeze,
    is_weight,
    value_of,
    wrapped_floats,
)
from mgx_mlir.integrations.torch.later import Later
from mgx_mlir.integrations.torch.options import TorchOptions
from mgx_mlir.integrations.torch.recurrent import keep_lengths_dynamic
from mgx_mlir.targets.child import shared_compiler

log = logging.getLogger(__name__)
AnyCall = Call | Checked | Later
# programs of a graph for different integers; Dynamo's recompile_limit is the same
_MOST_NUMBERS = 8
_version = attrgetter("_version")

# default False: Dynamo would leave every LSTM, GRU and RNN out of its graphs
torch._dynamo.config.allow_rnn = True
keep_lengths_dynamic()


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
    refuse_gradients(gm, example_inputs)
    _refuse_devices(example_inputs)
    specialise_floats(gm)
    counters.graphs += 1
    return Graph(gm, example_inputs, chosen).function()


def refuse_gradients(gm: fx.GraphModule, examples: Sequence[Any]) -> None:
    """Raise UsageError if a gradient could be requested."""
    on = torch.is_grad_enabled()
    asked = on and any(isinstance(x, torch.Tensor) and x.requires_grad for x in examples)
    (output,) = (n for n in gm.graph.nodes if n.op == "output")
    results = [n for n in output.all_input_nodes if n.op != "placeholder"]
    if asked or any(getattr(value_of(n), "requires_grad", False) for n in results):
        raise UsageError(
            "the graph is of a model in training: gradients are on, and are not computed here",
            notes=[TRAINING],
        )


def _refuse_devices(examples: Sequence[Any]) -> None:
    """Raise UnsupportedModel for tensors on a device that no program can read."""
    kinds = {x.device.type for x in examples if isinstance(x, torch.Tensor)}
    strange = sorted(kinds - {"cpu", "cuda"})
    if strange:
        raise UnsupportedModel(
            f"expected tensors on the CPU or a CUDA or ROCm device, got device {', '.join(strange)}"
        )


def specialise_floats(gm: fx.GraphModule) -> None:
    """Make Dynamo treat Python floats as guarded constants: the trace starts again."""
    names = wrapped_floats(gm)
    if not names:
        return
    from torch._dynamo.exc import TensorifyScalarRestartAnalysis
    from torch._dynamo.symbolic_convert import TensorifyState

    for name in names:
        TensorifyState.specialize(name)
    raise TensorifyScalarRestartAnalysis


class Graph:
    """A graph of Dynamo's, compiled with its weights as constants.

    Another module of the same code has other weights, and weights may be changed in place. Then the
    graph is compiled again, once for each set of weights. A weight that changed twice, or that the
    graph writes to, becomes an input. Sizes for which a trace takes another path get a program too.
    """

    def __init__(self, gm: fx.GraphModule, examples: Sequence[Any], options: TorchOptions) -> None:
        self._gm, self._options = gm, options
        self._target = options.target or _target_of(examples)
        self._number = counters.graphs
        self._loose: set[int] = set()
        self._written: set[int] = set()
        self._seen: set[int] = set()
        self._made: list[tuple[Weights, AnyCall]] = []
        self._compile(examples)

    def function(self) -> Callable[..., Sequence[Any]]:
        """Return the function of the graph's arguments, weights among them. Errors: RunError.

        A call is one Python frame if the weights are those of the last call: each frame adds to the
        time of every call of the model.
        """
        now = _short(*self._made[-1])

        def mgx_graph(*args: Any) -> Sequence[Any]:
            nonlocal now
            # one read of the whole state: other threads may replace it
            pick, tensors, tracked, version, run = now
            # versions only grow, so that their sum shows any change
            if all(map(is_, pick(args), tensors)) and sum(map(_version, tracked)) == version:
                try:
                    return run(args)
                except SizesRefused:
                    pass
            weights, call, found = self._other(args)
            now = _short(weights, call)
            return found

        return mgx_graph

    def _other(self, args: Sequence[Any]) -> tuple[Weights, AnyCall, Sequence[Any]]:
        """Run with other weights than the last call's, or sizes that have no program yet.

        Return the weights, the call, and its results.
        """
        for weights, call in list(self._made):
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
                try:
                    return weights, call, call(args)
                except SizesRefused:
                    continue
        weights, call = self._compile(args)
        return weights, call, call(args)

    def _compile(self, args: Sequence[Any]) -> tuple[Weights, AnyCall]:
        try:
            frozen, call = self._built(args)
        except Writes as e:
            self._written |= e.places
            frozen, call = self._built(args)
        if not isinstance(call, Later):
            call = self._checked(call)
        weights = Weights(frozen.held, [args[i] for i in frozen.held])
        self._made.append((weights, call))
        return weights, call

    def _checked(self, call: Call) -> Call | Checked:
        if not self._options.check:
            return call
        return Checked(call, self._gm, self._options.fp16 or self._options.bf16)

    def _frozen(self, args: Sequence[Any], fix_numbers: bool = False) -> Frozen:
        return freeze(
            self._gm, args, weights=lambda n, _: is_weight(n), loose=self._loose,
            written=self._written, fix_numbers=fix_numbers,
        )  # fmt: skip

    @interrupts.held
    def _built(self, args: Sequence[Any]) -> tuple[Frozen, Call | Later]:
        """Compile for arguments; integers are constants if an operator needs them so."""
        frozen = self._frozen(args)
        if not frozen.computes:
            return frozen, Call(frozen, None)
        try:
            return frozen, self._call(frozen)
        except UsageError:
            raise
        except MgxError as e:
            failed = e
        if len(self._made) < _MOST_NUMBERS:
            with suppress(MgxError):
                again = self._frozen(args, fix_numbers=True)
                numbers = any(isinstance(o, Result) and o.number for o in again.outputs)
                if again.fixed and not numbers:
                    return again, self._call(again)
        # imported late: needed only after an error
        from mgx_mlir.integrations.torch.fallback import with_eager

        return frozen, with_eager(frozen, self._options, self._target, failed)

    def _call(self, frozen: Frozen) -> Call | Later:
        """Read a graph, and compile it, in the background if the options say so."""
        found = read(frozen)  # torch can trace only in the caller's thread
        if found is None:
            return Call(frozen, None)

        def work() -> Call:
            made = compiled(found, self._options, self._target)
            log.info("graph %d of torch: %s", self._number, summary(made.stats))
            return Call(frozen, runner(made))

        if not self._options.background:
            return work()
        shared_compiler()  # shut down after the threads that need it
        return Later(self._gm, lambda: self._checked(work()), self._options.fallback == "eager")


def _short(weights: Weights, call: AnyCall) -> tuple[Any, ...]:
    """Return the fields that a call compares and runs."""
    return weights.given(), weights.tensors, weights.tracked, weights.version, call.function()


def _target_of(examples: Sequence[Any]) -> str:
    on_gpu = any(isinstance(x, torch.Tensor) and x.is_cuda for x in examples)
    return "gpu" if on_gpu else "cpu"


__all__ = ["Graph", "mgx"]
