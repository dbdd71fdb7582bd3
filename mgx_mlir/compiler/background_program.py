"""A program that compiles in the background: until then another program answers its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mgx_mlir.compiler.behind import Behind
from mgx_mlir.compiler.compiled import CompiledProgram, Placement
from mgx_mlir.core.errors import UsageError
from mgx_mlir.programs.program_ir import ProgramIR


class StandIn(CompiledProgram):
    """A program that forwards its calls to the program that `_now` returns."""

    def now(self) -> CompiledProgram:
        """Return the program that answers a call."""
        raise NotImplementedError

    def alone(self) -> CompiledProgram:
        """Wait for the compiled program and return it, for files.

        Errors: UsageError where there are several; the error of the compile.
        """
        raise NotImplementedError

    @property
    def program(self) -> ProgramIR:
        """The program after the passes, of the program that answers now."""
        return self.now().program

    def run(
        self,
        inputs: Mapping[str, Any] | None = None,
        /,
        *args: object,
        out: Any = None,
        max_run_seconds: float | None = None,
        **named: object,
    ) -> list[Any]:
        """Run as `CompiledProgram.run` does. Raises the error of a compile that failed too."""
        now = self.now()
        return now.run(inputs, *args, out=out, max_run_seconds=max_run_seconds, **named)

    __call__ = run

    def run_limited(self, *args: Any, **named: Any) -> list[Any]:
        """Run within limits."""
        return self.now().run_limited(*args, **named)

    def run_like_earlier(self, given: dict[str, Any]) -> list[Any] | None:
        """Run on inputs of the same types and shapes as earlier ones; None where they need
        checks.
        """
        return self.now().run_like_earlier(given)

    def run_known(self, given: dict[str, Any]) -> list[np.ndarray] | None:
        """Run on inputs of the same types and shapes as earlier ones; None where they need
        checks.
        """
        return self.now().run_known(given)

    def check_inputs(self, given: Mapping[str, object]) -> list[np.ndarray]:
        """Return the inputs in order, as checked arrays."""
        return self.now().check_inputs(given)

    def execute(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run on checked arrays in order of the inputs."""
        return self.now().execute(arrays)

    def least_bytes(self, arrays: Sequence[np.ndarray]) -> int:
        """Return a lower bound of the bytes of a run, without the weights."""
        return self.now().least_bytes(arrays)


class BackgroundProgram(StandIn):
    """A program that compiles in the background; `first` answers calls until it is compiled.

    Where the compile fails, each call raises its error. Saving, pickling and copying wait for the
    compiled program.
    """

    def __init__(
        self, placement: Placement, first: CompiledProgram, behind: Behind[CompiledProgram]
    ) -> None:
        super().__init__(placement, first.signature, first.kernels, first.stats)
        self._first: CompiledProgram | None = first
        self._made: CompiledProgram | None = None
        self._behind = behind

    @property
    def is_ready(self) -> bool:
        """Return whether the compile has ended, with code or an error."""
        return self._behind.is_done

    def wait(self, seconds: float | None = None) -> CompiledProgram | None:
        """Wait for the compiled program, and return it; None at the timeout.

        seconds: None waits as long as it takes. Raises the error of the compile.
        """
        found = self._behind.wait(seconds)
        return None if found is None else self._take(found)

    def alone(self) -> CompiledProgram:
        """Wait for the compiled program, and return it. Raises the error of the compile."""
        found = self.wait()
        if found is None:
            raise UsageError("the program is closed")
        return found

    def now(self) -> CompiledProgram:
        """Return the compiled program, or `first` until then. Raises the compile's error."""
        if self._made is not None:
            return self._made
        found = self._behind.found()
        if found is not None:
            return self._take(found)
        assert self._first is not None
        return self._first

    def _take(self, found: CompiledProgram) -> CompiledProgram:
        if self._made is None:
            self.signature, self.kernels, self.stats = found.signature, found.kernels, found.stats
            self._made, self._first = found, None
        return self._made

    def close(self) -> None:
        """End the compile, and close the program that answers."""
        self._behind.stop()
        for each in (self._made, self._first):
            if each is not None:
                each.close()
        super().close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (self.alone(),)


def _itself(made: CompiledProgram) -> CompiledProgram:
    return made


__all__ = ["BackgroundProgram", "StandIn"]
