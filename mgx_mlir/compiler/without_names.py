"""A model whose dims of one name differ in a call: compiled again, without that name.

Files say by names which dims are equal, and the code relies on it. Nothing else enforces names, so
that some files use one name for dims that have nothing to do with each other.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mgx_mlir.core import forks
from mgx_mlir.core.errors import MgxError, NamesDisagree, RunError

if TYPE_CHECKING:
    from mgx_mlir.compiler.compiled import CompiledProgram


class WithoutNames:
    """The program for calls in which names disagree; `compile` makes it without some of them."""

    def __init__(self, compile: Callable[[Sequence[str]], CompiledProgram]) -> None:
        self._compile = compile
        self._found: CompiledProgram | None = None
        self._names: tuple[str, ...] = ()
        self._lock = forks.lock()

    def program(self, why: NamesDisagree) -> CompiledProgram:
        """Return the program without the names that disagree, now or in an earlier call.

        Raises RunError where there is none: the model is wrong unless the dims are equal.
        """
        with self._lock:
            if self._found is None or not set(why.names) <= set(self._names):
                names = tuple(dict.fromkeys([*self._names, *why.names]))
                self._found, self._names = self._compiled(why, names), names
            return self._found

    def run_like_earlier(self, given: dict[str, Any]) -> list[Any] | None:
        """Run on inputs that are like earlier ones of the program, None where there are none."""
        found = self._found
        return None if found is None else found.run_like_earlier(given)

    def _compiled(self, why: NamesDisagree, names: Sequence[str]) -> CompiledProgram:
        listed = ", ".join(f"'{n}'" for n in names)
        try:
            found = self._compile(names)
        except MgxError as e:
            note = f"without the name {listed}: {e.message}"
            raise RunError(why.message, notes=[*why.notes, note]) from None
        warnings.warn(
            f"{why.message}; the model is compiled again, for dims {listed} that differ",
            stacklevel=4,
        )
        return found
