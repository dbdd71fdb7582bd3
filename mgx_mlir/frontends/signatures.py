"""What the signature of an operator's function says: its operands and attributes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

REQUIRED = inspect.Parameter.empty
Importer = Callable[..., Any]


@dataclass(frozen=True)
class Signature:
    """Of `f(b, node, *operands, **attributes)`.

    `required` operands have no default; there are `most` of them at the most, None where one takes
    the rest. `attributes` are the keyword parameters with their defaults (REQUIRED: none), a `_`
    behind the name left out; `parameters` their names in the function, `kinds` the annotations.
    """

    required: int
    most: int | None
    attributes: dict[str, Any]
    parameters: dict[str, str]
    kinds: dict[str, str]


def signature_of(function: Importer) -> Signature:
    """The signature of an operator's function; its first two parameters are no operands."""
    required, most = 0, 0
    attributes: dict[str, Any] = {}
    parameters: dict[str, str] = {}
    kinds: dict[str, str] = {}
    for i, p in enumerate(inspect.signature(function).parameters.values()):
        if p.kind is p.KEYWORD_ONLY:
            attributes[p.name.rstrip("_")] = p.default
            parameters[p.name.rstrip("_")] = p.name
            kinds[p.name.rstrip("_")] = str(p.annotation)
        elif i < 2:
            continue
        elif p.kind is p.VAR_POSITIONAL:
            most = None
        elif most is not None:
            most += 1
            required += p.default is REQUIRED
    return Signature(required, most, attributes, parameters, kinds)
