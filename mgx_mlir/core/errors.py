"""The classes of user errors; all derive from MgxError."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mgx_mlir.core.names import safe_text


class MgxError(Exception):
    """A user error, worded as MLIR's diagnostics are.

    `message` is lower case and says expected and got; `location` names the op, node or file;
    `notes` hold the fix. `exit_code` is that of commands: 1 for the answer "no", 2 for "could not
    be done". Control characters are escaped when it is shown.
    """

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        location: str | None = None,
        notes: Iterable[str] = (),
    ) -> None:
        self.message = message
        self.location = location
        self.notes = tuple(notes)
        super().__init__(message)

    def __str__(self) -> str:
        head = f"{self.location}: error: {self.message}" if self.location else self.message
        return safe_text("\n".join([head, *(f"note: {n}" for n in self.notes)]))


class ModelError(MgxError):
    """A model file that cannot be read."""


class UnsupportedModel(ModelError):
    """A model with nodes that no importer takes; lists every one of them with counts."""


class ShapeError(MgxError):
    """Wrong operands or attributes of an operator."""


class PassError(MgxError):
    """A pass that failed."""


class PipelineError(MgxError):
    """A pass pipeline that cannot be parsed, or names an unknown pass or option."""


class CompileError(MgxError):
    """A program that the target cannot compile."""


class TargetError(MgxError):
    """An unknown target, architecture, or a missing device."""


class RunError(MgxError):
    """Wrong names, shapes or dtypes given to a compiled program, or a failed run."""


class RunLimitError(RunError):
    """A run that reached its limit of time or memory, and was ended."""


class NamesDisagree(RunError):
    """Inputs that give one dim name two sizes, and are right otherwise.

    names: those of the dims. shapes: the inputs' shapes by name.
    """

    def __init__(
        self,
        message: str,
        names: Iterable[str],
        shapes: Mapping[str, tuple[int, ...]],
        *,
        notes: Iterable[str] = (),
    ) -> None:
        super().__init__(message, notes=notes)
        self.names, self.shapes = tuple(names), dict(shapes)


class SizesRefused(RunError):
    """Inputs of sizes that a program was not compiled for, and right otherwise."""


class FileError(MgxError):
    """A file that is missing, damaged, or of another kind."""


class PluginError(MgxError):
    """A plugin, a package from outside, that cannot be loaded."""


class UsageError(MgxError):
    """A wrong command line or a wrong call."""
