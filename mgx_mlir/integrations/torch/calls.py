"""A compiled graph as a function of tensors, which may write to its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_, itemgetter
from typing import Any

import numpy as np
import torch

from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import RunError, SizesRefused
from mgx_mlir.integrations.torch.device_calls import device_runner
from mgx_mlir.integrations.torch.graphs import (
    Again,
    Argument,
    Constant,
    Frozen,
    Layout,
    Output,
    Result,
)
from mgx_mlir.integrations.torch.memory import array_of, crosses_as_integers, tensor_of

Run = Callable[[Sequence[Any]], list[Any]]


class Weights:
    """Tensors that a program holds as constants, as they were when it was compiled.

    `tracked` are the tensors with a version counter, and `version` is the sum of the counters.
    """

    def __init__(self, places: Sequence[int], tensors: Sequence[torch.Tensor]) -> None:
        self.places, self.tensors = tuple(places), tuple(tensors)
        self.tracked = tuple(t for t in self.tensors if not t.is_inference())
        self._versions = [t._version for t in self.tracked]
        self.version = sum(self._versions)

    def are(self, args: Sequence[Any]) -> bool:
        """Return whether a call passes these tensors."""
        return all(map(is_, [args[i] for i in self.places], self.tensors))

    def given(self) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """Return a function that takes a call's arguments and returns those at the weights'
        indices.
        """
        if len(self.places) > 1:
            return itemgetter(*self.places)
        if not self.places:
            return lambda args: ()
        [only] = self.places
        return lambda args: (args[only],)

    def changed(self) -> tuple[int, ...]:
        """Return the indices of tensors that were written to."""
        versions = dict(zip(map(id, self.tracked), self._versions, strict=True))
        return tuple(
            i
            for i, t in zip(self.places, self.tensors, strict=True)
            if id(t) in versions and t._version != versions[id(t)]
        )


class Call:
    """Runs a program on the arguments of a graph.

    Contiguous inputs pass without a copy; results own their memory. Writes of the graph to its
    arguments reach the caller's tensors. A result that eager makes a view of an argument, or of
    another result, is a view here too. Strides are those of eager.
    """

    def __init__(self, frozen: Frozen, run: Run | None) -> None:
        self._inputs, self._outputs = tuple(frozen.inputs), tuple(frozen.outputs)
        self._written = tuple(frozen.written)
        self._results = len({o.index for o in self._outputs if isinstance(o, Result)})
        self._symbols, self._fixed = frozen.symbols, frozen.fixed
        self._run = run
        results = [o for o in self._outputs if isinstance(o, Result)]
        self._plain = (
            len(results) == len(self._outputs)
            and not self._written
            and not self._fixed
            and all(o == Result(i) for i, o in enumerate(results))
        )

    def __call__(self, args: Sequence[Any]) -> list[Any]:
        """Return the results of the graph, in order. Errors: RunError."""
        if any(args[i] != n for i, n in self._fixed.items()):
            raise SizesRefused("the graph was compiled for other values of its number arguments")
        if self._run is None:
            return self._all(args, ())
        given = [args[i] for i in self._inputs]
        if self._plain:
            return self._run(given)
        if self._written:
            self._refuse_overlap(given)
        found = self._run(given)
        written = found[self._results :] if self._written else ()
        for i, value in zip(self._written, written, strict=True):
            with torch.no_grad():
                args[i].copy_(value)
        return self._all(args, found)

    def function(self) -> Callable[[Sequence[Any]], list[Any]]:
        """Return the call as a function, a short one if the program does all of it."""
        run, inputs = self._run, self._inputs
        if run is None or not self._plain:
            return self
        if len(inputs) == 1:
            [only] = inputs
            return lambda args: run((args[only],))
        pick = itemgetter(*inputs) if inputs else lambda _: ()
        return lambda args: run(pick(args))

    def _all(self, args: Sequence[Any], found: Sequence[Any]) -> list[Any]:
        made: list[Any] = []
        for o in self._outputs:
            made.append(made[o.position] if isinstance(o, Again) else self._output(o, args, found))
        return made

    def _output(self, o: Output, args: Sequence[Any], found: Sequence[Any]) -> Any:
        if isinstance(o, Result):
            value = found[o.index]
            if o.layout is not None:
                return self._laid_out(value, o, args)
            return value.item() if o.number else value
        if isinstance(o, Argument):
            return args[o.position]
        if isinstance(o, Constant):
            return o.value
        # view of the argument that the graph returns
        return torch.as_strided(args[o.position].detach(), *self._numbers(o.layout, args))

    def _laid_out(self, value: torch.Tensor, o: Result, args: Sequence[Any]) -> torch.Tensor:
        """Return a result with the strides that eager gives it."""
        assert o.layout is not None
        sizes, strides, offset = self._numbers(o.layout, args)
        if o.view:
            return torch.as_strided(value, sizes, strides, offset)
        steps = zip(sizes, strides, value.stride(), strict=True)
        if all(n < 2 or wanted == given for n, wanted, given in steps):
            return torch.as_strided(value, sizes, strides)
        # along a stride of 0 all elements share one address
        once = [1 if s == 0 else n for n, s in zip(sizes, strides, strict=True)]
        made = torch.empty_strided(once, strides, dtype=value.dtype, device=value.device)
        made.copy_(value[tuple(slice(n) for n in once)])
        return torch.as_strided(made, sizes, strides)

    def _numbers(self, layout: Layout, args: Sequence[Any]) -> tuple[list[int], list[int], int]:
        """Return sizes, strides and offset for the arguments of a call."""
        known = {
            symbol: args[i] if dim is None else args[i].shape[dim]
            for symbol, (i, dim) in self._symbols.items()
        }

        def number(n: Any) -> int:
            return int(n.node.expr.xreplace(known)) if isinstance(n, torch.SymInt) else int(n)

        return [*map(number, layout.sizes)], [*map(number, layout.strides)], number(layout.offset)

    def _refuse_overlap(self, given: Sequence[Any]) -> None:
        """Raise RunError if an input that is written to overlaps another one in memory."""
        places: dict[int, int] = {}
        for n, (i, t) in enumerate(zip(self._inputs, given, strict=True)):
            if not isinstance(t, torch.Tensor) or not t.numel():
                continue
            other = places.setdefault(t.untyped_storage().data_ptr(), n)
            if other != n and (i in self._written or self._inputs[other] in self._written):
                raise RunError(
                    f"inputs {other} and {n} share memory, and one of them is written to",
                    notes=["pass clones, or move the write out of the compiled function"],
                )


def runner(made: CompiledProgram) -> Run:
    """Return the function that runs a program on tensors in the order of its inputs."""
    if made.target == "gpu" and isinstance(made, IreeProgram):
        return device_runner(made)
    signature = made.signature
    stated = None if signature.gives_plain_arrays else signature.stated
    # tensors of types that numpy has pass in one step
    ports = [dtypes.from_name(p.dtype).np for p in (*signature.inputs, *signature.outputs)]
    short = stated is None and not any(crosses_as_integers(kind) for kind in ports)
    to_tensor = torch.from_numpy if short else tensor_of
    names, known, tensor, int64 = made.input_names, made.run_known, torch.Tensor, np.int64

    def arrays_of(given: Sequence[Any]) -> list[np.ndarray]:
        return [array_of(t) if isinstance(t, tensor) else np.asarray(t, int64) for t in given]

    def run(given: Sequence[Any]) -> list[Any]:
        if short:
            try:
                arrays = [
                    t.numpy() if isinstance(t, tensor) else np.asarray(t, int64) for t in given
                ]
            # for tensors with a gradient, and lazily negated ones
            except (TypeError, RuntimeError):
                arrays = arrays_of(given)
        else:
            arrays = arrays_of(given)
        by_name = dict(zip(names, arrays, strict=True))
        found = known(by_name)
        if found is None:
            return [to_tensor(a) for a in made.run(by_name)]
        return [to_tensor(a) for a in (found if stated is None else stated(found))]

    return run
