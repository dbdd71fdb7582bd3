"""One model compiled for several sizes of a dynamic dim, in parallel.

A call runs the program of its size. Where rows along the dim are proved to be independent
(`passes/analysis/row_independence.py`), a call of another size runs the next larger program. Its
inputs are padded with copies of the last row, and the results of these rows are dropped.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from mgx_mlir.compiler.background_program import StandIn
from mgx_mlir.compiler.behind import Behind
from mgx_mlir.compiler.compiled import CompiledProgram, Placement
from mgx_mlir.compiler.given_outputs import Places
from mgx_mlir.compiler.models import in_own_context
from mgx_mlir.compiler.stats import CompileStats
from mgx_mlir.compiler.variants import specialised
from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import RunError, UsageError
from mgx_mlir.hardware.machine import available_cpus
from mgx_mlir.passes.analysis.row_independence import Mixed, RowProof, prove
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.signature import Signature, Variant

log = logging.getLogger(__name__)
Place = tuple[int, int]  # an input, and which of its dims
Sizes = Sequence[int] | Mapping[str, Sequence[int]]


class SizedProgram(StandIn):
    """Programs of one model by the size of a dynamic dim, which `dim` names.

    `independent` says whether rows along it are proved to be independent; `why_not` has the reason
    where they are not. `first` answers calls while a size compiles; without it they wait.
    """

    def __init__(
        self, placement: Placement, signature: Signature, dim: str, places: Sequence[Place],
        programs: Mapping[int, Behind[CompiledProgram]], proof: RowProof | str,
        first: CompiledProgram | None,
    ) -> None:  # fmt: skip
        super().__init__(placement, signature, [], CompileStats())
        self.dim, self._places, self._first = dim, tuple(places), first
        self._programs = dict(sorted(programs.items()))
        self._proof = proof

    @property
    def sizes(self) -> list[int]:
        """The sizes that are compiled or being compiled."""
        return list(self._programs)

    @property
    def independent(self) -> bool:
        """Return whether rows are proved to be independent, so that a call may be padded."""
        return isinstance(self._proof, RowProof)

    @property
    def why_not(self) -> str:
        """The reason why a call is not padded; empty where it may be."""
        return self._proof if isinstance(self._proof, str) else ""

    @property
    def is_ready(self) -> bool:
        """Return whether all sizes are compiled, or have failed."""
        return all(b.is_done for b in self._programs.values())

    def wait(self, seconds: float | None = None) -> SizedProgram | None:
        """Wait for all sizes. None at the timeout; raises a compile's error.

        seconds: for each size; None waits as long as it takes.
        """
        made = [b.wait(seconds) for b in self._programs.values()]
        if any(m is None for m in made):
            return None
        self._first = None
        return self

    def alone(self) -> CompiledProgram:
        """Errors: UsageError."""
        raise UsageError(
            f"a program of several sizes of {self.dim} is no single file",
            notes=[f"program_for({self.sizes[-1]}) is the program of one size, and so on",
                   "mgx-driver bundle writes several batch sizes into a folder"],
        )  # fmt: skip

    def __reduce__(self) -> tuple[Any, ...]:
        made = {n: self.program_for(n) for n in self._programs}
        return _restored, (self.placement, self.signature, self.dim, self._places, made,
                           self._proof)  # fmt: skip

    def program_for(self, size: int) -> CompiledProgram:
        """Return the program of one of `sizes`, waiting for it. Raises the compile's error."""
        found = self._programs[size].wait()
        assert found is not None
        return found

    def now(self) -> CompiledProgram:
        """Return the program of the largest size, for queries that concern no call."""
        return self.program_for(self.sizes[-1])

    def run(
        self,
        inputs: Mapping[str, Any] | None = None,
        /,
        *args: object,
        out: Any = None,
        max_run_seconds: float | None = None,
        **named: object,
    ) -> list[Any]:
        """Run as `CompiledProgram.run` does, with the program of the call's size or a larger one.

        Errors: RunError for a size that no program takes; the error of a compile that failed.
        """
        given = self._named(inputs, args, named)
        arrays = self.signature.check_inputs(given)
        size = arrays[self._places[0][0]].shape[self._places[0][1]]
        if not size:
            raise RunError(f"expected at least 1 row of {self.dim}, got 0")
        run, at = self._chosen(size)
        if at == size:
            return run.run(given, out=out, max_run_seconds=max_run_seconds)
        places = None if out is None else Places(self.signature, out)
        padded = self._padded(arrays, at - size)
        found = run.run(padded, max_run_seconds=max_run_seconds)
        cut = self._cut(found, size)
        return cut if places is None else places.filled(cut)

    __call__ = run

    def run_known(self, given: dict[str, Any]) -> list[np.ndarray] | None:
        """Return None: each call's size chooses its program, which checks its inputs."""
        return None

    run_like_earlier = run_known

    def check_inputs(self, given: Mapping[str, object]) -> list[np.ndarray]:
        """Return inputs in order as arrays that a run takes."""
        return self.signature.check_inputs(given)

    def execute(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run on checked arrays in order of the inputs."""
        names = [p.name for p in self.signature.inputs]
        return self.run(dict(zip(names, arrays, strict=True)))

    def _chosen(self, size: int) -> tuple[CompiledProgram, int]:
        """Return the program for a call's size, and the size that the program has."""
        larger = [n for n in self._programs if n >= size]
        usable = larger if self.independent else [n for n in larger if n == size]
        if not usable:
            listed = ", ".join(map(str, self._programs))
            why = [f"it is not padded: {self.why_not}"] if larger else []
            raise RunError(
                f"size {size} of {self.dim} is not compiled, compiled are {listed}",
                notes=[*why, f"add {size} to the sizes of compile"],
            )
        for n in usable:
            found = self._programs[n].found()
            if found is not None:
                return found, n
        if self._first is not None:
            return self._first, size
        return self.program_for(usable[0]), usable[0]

    def _padded(self, arrays: Sequence[np.ndarray], more: int) -> dict[str, np.ndarray]:
        """Return inputs padded with copies of their last row, which the program accepts."""
        padded: dict[str, np.ndarray] = {}
        axes = dict(self._places)
        for i, (port, a) in enumerate(zip(self.signature.inputs, arrays, strict=True)):
            if i in axes:
                last = np.take(a, [-1] * more, axes[i])
                a = np.concatenate([a, last], axes[i])
            padded[port.name] = a
        return padded

    def _cut(self, results: Sequence[np.ndarray], size: int) -> list[np.ndarray]:
        assert isinstance(self._proof, RowProof)
        found: list[np.ndarray] = []
        for a, place in zip(results, self._proof.results, strict=True):
            if place is not None:
                axis, each = place
                a = np.ascontiguousarray(a[(slice(None),) * axis + (slice(size * each),)])
            found.append(a)
        return found

    def close(self) -> None:
        """Stop running compiles, and close all programs."""
        for each in self._programs.values():
            each.stop()
            if each.result is not None:
                each.result.close()
        if self._first is not None:
            self._first.close()
        super().close()


def _restored(
    placement: Placement, signature: Signature, dim: str, places: Sequence[Place],
    programs: Mapping[int, CompiledProgram], proof: RowProof | str,
) -> SizedProgram:  # fmt: skip
    ready = {n: Behind.of(p) for n, p in programs.items()}
    return SizedProgram(placement, signature, dim, places, ready, proof, None)


def compile_sizes(
    read: ProgramIR,
    sizes: Sizes,
    placement: Placement,
    compile_one: Callable[[ProgramIR], CompiledProgram],
    first: CompiledProgram | None,
) -> SizedProgram:
    """Start a compile for each size; they share the CPU's cores.

    compile_one: compiles a program of one size. Errors: UsageError for sizes of no dynamic dim.
    """
    signature = Signature.of(read.main())
    dim, counts = _dim_of(signature, sizes)
    places = _places(signature, dim)
    try:
        proof: RowProof | str = prove(read, places)
    except Mixed as e:
        proof = str(e)
        log.info("calls are not padded along %s: %s", dim, proof)
    turns = threading.Semaphore(available_cpus())

    def work(own: ProgramIR) -> CompiledProgram:
        with interrupts.waiting(turns):
            return compile_one(own)

    variants = [Variant(f"main_{n}", tuple((i, d, n) for i, d in places)) for n in counts]
    each = [specialised(in_own_context(read), v) for v in variants]
    programs = {n: Behind(partial(work, own)) for n, own in zip(counts, each, strict=True)}
    return SizedProgram(placement, signature, dim, places, programs, proof, first)


def _dim_of(signature: Signature, sizes: Sizes) -> tuple[str, list[int]]:
    """Return the name of the dynamic dim, and its sizes in order. Errors: UsageError."""
    if signature.input_groups or signature.takes_texts:
        raise UsageError("`sizes` is for models whose inputs are tensors of numbers")
    known = {_name(signature, p): None for p in _dynamic(signature)}
    listed = ", ".join(known) or "none"
    if isinstance(sizes, Mapping):
        if len(sizes) != 1:
            raise UsageError(f"sizes expected one dim, got {len(sizes)}: {', '.join(sizes)}")
        [(dim, counts)] = sizes.items()
        if dim not in known:
            raise UsageError(f"sizes: the model has no dynamic dim '{dim}', it has {listed}")
        return dim, sorted(counts)
    if len(known) != 1:
        raise UsageError(
            f"sizes expected a model with one dynamic dim, got {listed}",
            notes=["sizes={'NAME': [1, 8]} says which dim is meant"],
        )
    return next(iter(known)), sorted(sizes)


def _dynamic(signature: Signature) -> list[Place]:
    return [(i, d) for i, p in enumerate(signature.inputs) for d, n in enumerate(p.dims) if n == -1]


def _name(signature: Signature, place: Place) -> str:
    """Return the symbol of a dim, or its input and number where it has none."""
    i, d = place
    port = signature.inputs[i]
    symbol = port.ranges[d].symbol if port.ranges else None
    return symbol or f"{port.name}[{d}]"


def _places(signature: Signature, dim: str) -> list[Place]:
    return [p for p in _dynamic(signature) if _name(signature, p) == dim]


__all__ = ["SizedProgram", "Sizes", "compile_sizes"]
