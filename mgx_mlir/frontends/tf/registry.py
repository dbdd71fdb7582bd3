"""The registry of TensorFlow operators: one function per operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mgx_mlir.core import defined_again
from mgx_mlir.frontends.signatures import Importer, ImporterT, Operator, signature_of


@dataclass(frozen=True)
class TfOp(Operator):
    """One registered operator: its function, and the facts of the function's signature.

    Operands are the positional parameters after (b, node): those without a default are required,
    `*rest` takes any number. Keyword parameters are the attributes it reads, by their names in
    TensorFlow (with a `_` behind where that is a word of Python's), with TensorFlow's defaults;
    attributes that only state element types need not be taken. `kinds` are their annotations, which
    the values in files are checked against. `outputs` are the names of the outputs in order, where
    there are several.
    """

    outputs: tuple[str, ...]


_OPS: dict[str, TfOp] = {}
_COMPLEX: dict[str, Importer] = {}


def tf_op(
    *names: str, outputs: Sequence[str] = (), raw: bool = False
) -> Callable[[ImporterT], ImporterT]:
    """Register `f(b, node, *operands, **attributes)` for operators.

    `f` returns the result value, or a tuple with one entry per output (None for an output that is
    not computed). It raises MgxError if operands or attributes do not fit; the importer adds the
    location. `raw` operators also take values that are no tensors: resources, lists, strings.
    """

    def register(function: ImporterT) -> ImporterT:
        stated = vars(signature_of(function))
        for name in names:
            if defined_again.again("TensorFlow operator", name, function.__module__):
                _OPS.pop(name, None)
            if name in _OPS:
                raise TypeError(f"TensorFlow operator {name} is registered twice")
            _OPS[name] = TfOp(
                name=name, function=function, structures=raw, outputs=tuple(outputs), **stated
            )
        return function

    return register


def complex_op(*names: str) -> Callable[[ImporterT], ImporterT]:
    """Register the function of operators with a complex operand: `f(b, node, *operands)`.

    Other operands are tensors. The function for real operands is registered by `tf_op`.
    """

    def register(function: ImporterT) -> ImporterT:
        _COMPLEX.update(dict.fromkeys(names, function))
        return function

    return register


def find_complex(name: str) -> Importer | None:
    """Return an operator's function of complex operands, None if there is none."""
    return _COMPLEX.get(name)


def find(name: str) -> TfOp | None:
    """Return the operator of this name, None if unknown."""
    return _OPS.get(name)


def operators() -> list[str]:
    """Return every registered name, sorted."""
    return sorted(_OPS)
