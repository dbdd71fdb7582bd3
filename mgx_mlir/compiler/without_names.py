"""A model whose dims of one name differ in a call: compiled again, without that name.

Files say by names which dims are equal, and the code relies on it. Nothing else enforces names, so
that some files use one name for dims that have nothing to do with each other.
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
    """Return a reader of an ONNX model for a call's shapes that drops some names of dims.

    It raises MgxError where the model is wrong for them; a compile takes a hundred times as long.
    """

    def read(shapes: Mapping[str, Sequence[int]], names: Sequence[str]) -> None:
        # start-up: a program that is loaded needs no importer
        from mgx_mlir.compiler.models import program_of

        dims = {name: list(shape) for name, shape in shapes.items()}
        program_of(model, {**options, "loose_names": names, "map_input_dims": dims})

    return read


class WithoutNames:
    """The program for calls in which names disagree; `compile` makes it without some of them.

    judge: reads the model for a call's shapes, which raises MgxError where it is wrong for them.
    shared: the names that a call can give two sizes.
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
        """Return the program without the names that disagree, now or in an earlier call.

        It is compiled for the first such call without these names, and for another one without
        any: twice at most. Raises RunError, before it compiles, where the model is wrong for the
        call's shapes.
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
                return  # the options have no place for these shapes: the run judges
            except MgxError as e:
                if len(self._refused) >= _MOST_REFUSED:
                    self._refused.clear()
                self._refused[key] = _refusal(why, names, e)
        if key in self._refused:
            e = self._refused[key]
            raise RunError(e.message, notes=e.notes) from None

    def run_like_earlier(self, given: dict[str, Any]) -> list[Any] | None:
        """Run on inputs that are like earlier ones of the program, None where there are none."""
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
