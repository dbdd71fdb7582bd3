"""The registry of TensorFlow operators: one function per operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mgx_mlir.frontends.signatures import Importer, signature_of


@dataclass(frozen=True)
class TfOp:
    """One registered operator: its function and what the function's signature says.

    Operands are the positional parameters after (b, node): those without a default are required,
    `*rest` takes any number. Keyword parameters are the attributes it reads, by their names in
    TensorFlow (with a `_` behind where that is a word of Python's), with TensorFlow's defaults;
    attributes that only state element types need not be taken. `kinds` are their annotations, which
    the values in files are checked against. `outputs` are the names of the outputs in order, where
    there are several; `raw` operators take values that are not tensors too: resources, lists,
    strings.
    """

    name: str
    function: Importer
    required: int
    most: int | None
    attributes: dict[str, Any]
    parameters: dict[str, str]
    kinds: dict[str, str]
    outputs: tuple[str, ...]
    raw: bool


_OPS: dict[str, TfOp] = {}


def tf_op(
    *names: str, outputs: Sequence[str] = (), raw: bool = False
) -> Callable[[Importer], Importer]:
    """Register `f(b, node, *operands, **attributes)` for operators.

    `f` returns the result value, or a tuple with one entry per output (None where it is not
    made). It raises MgxError where operands or attributes do not fit; the importer adds where.
    """

    def register(function: Importer) -> Importer:
        s = signature_of(function)
        for name in names:
            if name in _OPS:
                raise TypeError(f"TensorFlow operator {name} is registered twice")
            _OPS[name] = TfOp(
                name, function, s.required, s.most, s.attributes, s.parameters, s.kinds,
                tuple(outputs), raw,
            )  # fmt: skip
        return function

    return register


def find(name: str) -> TfOp | None:
    return _OPS.get(name)


def operators() -> list[str]:
    """Every registered name, sorted."""
    return sorted(_OPS)
