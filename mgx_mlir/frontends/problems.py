"""Collects all errors of a model, to raise them at once."""

from __future__ import annotations

import re
from collections import Counter

from mgx_mlir.core.errors import MgxError, ModelError, ShapeError, UnsupportedModel
from mgx_mlir.core.names import safe_name

SHOWN = 50  # problems listed in one message


class NotSupported(ModelError):
    """A valid node that this importer does not support; `message` is the reason, or empty."""


class Refused(NotSupported):
    """A node of an operator without importer; `message` says why it has none, or is empty."""


# exceptions of an importer's function for damage that it does not check, and those of the MLIR
# bindings
UNFORESEEN = (
    ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, TypeError,
    ValueError,
)  # fmt: skip
DIMS = re.compile(r"\bdynamic|run time only")  # matches reasons that only concern dynamic dims
UNCHECKED = "it cannot be imported"  # start of the messages of such exceptions


def unforeseen(e: BaseException) -> ModelError:
    """Convert an unexpected exception of a node to an error of the model."""
    detail = str(e).splitlines()[0][:200] if str(e) else "no message"
    return ModelError(f"{UNCHECKED}: {type(e).__name__}: {detail}")


class Problems:
    """Unsupported nodes by operator, and all other errors by node."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.errors: list[MgxError] = []
        self._unsupported: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._advice: dict[str, None] = {}  # advice on unsupported nodes

    def __bool__(self) -> bool:
        return bool(self.errors or self._unsupported)

    def unsupported(self, operator: str, reason: str, node: str, *, known: bool = False) -> None:
        """Count a node of `operator` (domain and opset included) that cannot be imported.

        known: the operator is supported, but not in the form that `reason` states.
        """
        if not known:
            self._advice[
                "--skip-unknown-operators of mgx-driver, skip_unknown_operators in Python, imports "
                "them as 'migraphx.unknown'"
            ] = None
        elif DIMS.search(reason):
            self._advice[
                "fixed dims are read: --input-dim and --dim-param of mgx-driver, map_input_dims "
                "and dim_params in Python state them"
            ] = None
        key = safe_name(f"{operator}: {reason}" if reason else operator)
        self._unsupported[key] += 1
        self._first.setdefault(key, safe_name(node))

    def error(self, e: MgxError, node: str) -> None:
        """Record an error of a node; `node` is empty for an error of the whole model."""
        where = f"{self.source}: {safe_name(node)}" if node else self.source
        # names from the file are in the message, which must stay one line
        self.errors.append(
            type(e)(safe_name(e.message), location=where, notes=map(safe_name, e.notes))
        )

    def noted(self) -> int:
        """Return the number of errors so far, for the functions below."""
        return len(self.errors) + sum(self._unsupported.values())

    def of_the_model_since(self, noted: int) -> bool:
        """Return whether all errors since `noted` are the model's, and none is ours."""
        count = self.noted() - noted
        last = self.errors[len(self.errors) - count :] if count else []
        return len(last) == count > 0 and all(
            type(e) in (ModelError, ShapeError) and not e.message.startswith(UNCHECKED)
            for e in last
        )

    def take_since(self, noted: int) -> list[MgxError]:
        """Remove and return the errors since `noted`, which are all the model's."""
        count = self.noted() - noted
        taken = self.errors[len(self.errors) - count :]
        del self.errors[len(self.errors) - count :]
        return taken

    def raise_all(self) -> None:
        """Raise all errors as one; do nothing without errors."""
        texts = [str(e) for e in self.errors[:SHOWN]]
        if len(self.errors) > SHOWN:
            texts.append(f"and {len(self.errors) - SHOWN} more problems")
        if self._unsupported:
            nodes, kinds = sum(self._unsupported.values()), len(self._unsupported)
            width = max(len(k) for k in self._unsupported)
            rows = [
                f"{key:<{width}}  {count:>4} {'node' if count == 1 else 'nodes'}, first "
                f"{self._first[key]}"
                for key, count in sorted(self._unsupported.items(), key=lambda i: (-i[1], i[0]))
            ]
            raise UnsupportedModel(
                f"{nodes} {'node is' if nodes == 1 else 'nodes are'} not supported, of {kinds} "
                f"{'kind' if kinds == 1 else 'kinds'}:\n  " + "\n  ".join(rows),
                location=self.source,
                notes=[*texts, *self._advice],
            )
        if len(self.errors) == 1:
            raise self.errors[0]
        if self.errors:
            unsupported = all(isinstance(e, UnsupportedModel) for e in self.errors)
            kind = UnsupportedModel if unsupported else ModelError
            raise kind(
                f"the model has {len(self.errors)} problems", location=self.source, notes=texts
            )
