"""Recompile a model without a dim name where a call gives that name two sizes.

The code relies on dims of one name being equal. No other engine enforces that, so some files give
one name to unrelated dims.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mgx_mlir.core import forks, interrupts
from mgx_mlir.core.errors import MgxError, NamesDisagree, RunError, UsageError

if TYPE_CHECKING:
    from mgx_mlir.compiler.compiled import CompiledProgram
    from mgx_mlir.compiler.models import ModelSource


_MOST_REFUSED = 64
Judge = Callable[[Mapping[str, Sequence[int]], Sequence[str]], None]


def judge(model: ModelSource, options: Mapping[str, Any]) -> Judge:
    """Return a function that reads an ONNX model for a call's shapes, without some names of dims.

    It raises MgxError where the shapes are wrong for the model; a compile would take a hundred
    times as long.
    """

    def read(shapes: Mapping[str, Sequence[int]], names: Sequence[str]) -> None:
        # start-up: a loaded program needs no importer
        from mgx_mlir.compiler.models import program_of

        dims = {name: list(shape) for name, shape in shapes.items()}
        program_of(model, {**options, "loose_names": names, "map_input_dims": dims})

    return read


class WithoutNames:
    """The program for calls that give one dim name two sizes; `compile` makes it without those
    names.

    judge: reads the model for a call's shapes; raises MgxError where they are wrong. shared: the
    names that several dims have.
    """

    def __init__(
        self,
        compile: Callable[[Sequence[str]], CompiledProgram],
        judge: Judge,
        shared: Sequence[str],
    ) -> None:
        self._compile, self._judge, self._shared = compile, judge, tuple(shared)
        self._found: CompiledProgram | None = None
        self._names: tuple[str, ...] = ()
        self._refused: dict[object, RunError] = {}  # errors by the shapes of a call
        self._lock = forks.lock()

    @interrupts.held
    def program(self, why: NamesDisagree) -> CompiledProgram:
        """Return the program without the names that have two sizes, now or in an earlier call.

        The first such call compiles without these names, another one without any: two compiles at
        most. Raises RunError, before it compiles, where the call's shapes are wrong for the model.
        """
        with interrupts.waiting(self._lock):
            if self._found is None or not set(why.names) <= set(self._names):
                names = why.names if self._found is None else self._shared
                self._check(why, names)
                self._found, self._names = self._compiled(why, names), names
            return self._found

    def _check(self, why: NamesDisagree, names: Sequence[str]) -> None:
        """Raise RunError where the model cannot take the shapes of a call."""
        key = tuple(why.shapes.items())
        if key not in self._refused:
            try:
                self._judge(why.shapes, names)
            except UsageError:
                return  # the options cannot express these shapes: the run checks them
            except MgxError as e:
                if len(self._refused) >= _MOST_REFUSED:
                    self._refused.clear()
                self._refused[key] = _refusal(why, names, e)
        if key in self._refused:
            e = self._refused[key]
            raise RunError(e.message, notes=e.notes) from None

    def run_like_earlier(self, given: dict[str, Any]) -> list[Any] | None:
        """Run on inputs of the same shapes as earlier ones of this program; None where there
        are none.
        """
        found = self._found
        return None if found is None else found.run_like_earlier(given)

    def _compiled(self, why: NamesDisagree, names: Sequence[str]) -> CompiledProgram:
        try:
            found = self._compile(names)
        except MgxError as e:
            raise _refusal(why, names, e) from None
        warnings.warn(
            f"{why.message}; the model is compiled again, for dims {_listed(names)} that differ",
            stacklevel=5,
        )
        return found


def _refusal(why: NamesDisagree, names: Sequence[str], e: MgxError) -> RunError:
    note = f"without the name {_listed(names)}: {e.message}"
    return RunError(why.message, notes=[*why.notes, note])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{n}'" for n in names)
