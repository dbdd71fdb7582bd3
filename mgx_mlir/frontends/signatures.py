"""Signature of an operator's function: its operands and attributes."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

REQUIRED = inspect.Parameter.empty
Importer = Callable[..., Any]
ImporterT = TypeVar("ImporterT", bound=Importer)


@dataclass(frozen=True)
class Attributes:
    """Base of frozen dataclasses whose fields are attributes shared by several operators."""


@dataclass(frozen=True)
class Signature:
    """Signature of `f(b, node, *operands, **attributes)`.

    `required` is the number of operands without a default, `most` the largest number, None for a
    variadic one. `attributes` are the keyword parameters with their defaults (REQUIRED: none),
    without a trailing `_`; `kinds` are their annotations. `parameters` maps attributes to the
    parameters that take them. A parameter annotated with a subclass of Attributes, in `groups`,
    takes the attributes in its fields. An attribute without a parameter is ignored.
    """

    required: int
    most: int | None
    attributes: dict[str, Any]
    parameters: dict[str, str]
    kinds: dict[str, str]
    groups: dict[str, type[Attributes]]

    def arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keyword arguments of the function for the attributes' values."""
        out: dict[str, Any] = {}
        fields: dict[str, dict[str, Any]] = {name: {} for name in self.groups}
        for name, value in values.items():
            parameter = self.parameters.get(name)
            if parameter in fields:
                fields[parameter][name] = value
            elif parameter is not None:
                out[parameter] = value
        return out | {name: group(**fields[name]) for name, group in self.groups.items()}


@dataclass(frozen=True)
class Operator(Signature):
    """One registered operator: its function, and the facts of the function's signature."""

    name: str
    function: Importer
    structures: bool  # operands may be sequences, maps and strings as well as tensors


def signature_of(function: Importer) -> Signature:
    """Return the signature of an operator's function; its first two parameters are not operands."""
    required, most = 0, 0
    attributes: dict[str, Any] = {}
    parameters: dict[str, str] = {}
    kinds: dict[str, str] = {}
    groups: dict[str, type[Attributes]] = {}
    for i, p in enumerate(inspect.signature(function).parameters.values()):
        if p.kind is p.KEYWORD_ONLY:
            group = _group(function, p.annotation)
            if group is not None:
                groups[p.name] = group
                for f in dataclasses.fields(group):
                    missing = f.default is dataclasses.MISSING
                    attributes[f.name] = REQUIRED if missing else f.default
                    parameters[f.name], kinds[f.name] = p.name, str(f.type)
                continue
            name = p.name.rstrip("_")
            attributes[name], parameters[name], kinds[name] = p.default, p.name, str(p.annotation)
        elif i < 2:
            continue
        elif p.kind is p.VAR_POSITIONAL:
            most = None
        elif most is not None:
            most += 1
            required += p.default is REQUIRED
    return Signature(required, most, attributes, parameters, kinds, groups)


def _group(function: Importer, annotation: object) -> type[Attributes] | None:
    """Return the group of attributes in a parameter's annotation."""
    # annotations are strings under `from __future__ import annotations`
    if isinstance(annotation, str):
        annotation = getattr(inspect.unwrap(function), "__globals__", {}).get(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Attributes):
        return annotation
    return None
