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
    """Base of the frozen dataclasses whose fields are attributes that several operators have."""


@dataclass(frozen=True)
class Signature:
    """Signature of `f(b, node, *operands, **attributes)`.

    `required` operands have no default; there are `most` of them at the most, None where one takes
    the rest. `attributes` are the keyword parameters with their defaults (REQUIRED: none), a `_`
    behind the name left out, `kinds` their annotations. `parameters` are the names of the
    parameters that take them: one that is annotated with a subclass of Attributes, in `groups`,
    takes those of its fields. An attribute without a parameter is read and means nothing.
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
    """One registered operator: its function and what the function's signature says."""

    name: str
    function: Importer
    structures: bool  # operands may be other than tensors: sequences, maps, strings


def signature_of(function: Importer) -> Signature:
    """Return the signature of an operator's function; its first two parameters are no operands."""
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
    """Return the group of attributes that a parameter is annotated with."""
    if isinstance(annotation, str):  # a string under `from __future__ import annotations`
        annotation = getattr(inspect.unwrap(function), "__globals__", {}).get(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Attributes):
        return annotation
    return None
