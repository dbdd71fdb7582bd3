"""`op`: an operator with its attributes, and its enumerations."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import mgx_mlir.dialects  # noqa: F401  (defines the operators)
from mgx_mlir.api.shape import dynamic_dimension, shape
from mgx_mlir.core.attrs import REQUIRED
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import ShapeError
from mgx_mlir.printers.text import value_text
from mgx_mlir.programs.layout import Shape, TupleShape
from mgx_mlir.programs.migraphx_names import Enum, NestedOp, attributes_in, attributes_out, class_of
from mgx_mlir.programs.signature import DimRange

BUILTINS = ("@param", "@literal", "@return", "get_tuple_elem")


class pooling_mode(enum.IntEnum):
    """The modes of `pooling`."""

    average = 0
    max = 1
    lpnorm = 2


class rnn_direction(enum.IntEnum):
    """The directions of `rnn`, `gru` and `lstm`."""

    forward = 0
    reverse = 1
    bidirectional = 2


class op:
    """An operator by MIGraphX's name, with its attributes as keywords.

    Raises ShapeError for an unknown operator or attribute, or a value of the wrong kind.
    """

    pooling_mode = pooling_mode
    rnn_direction = rnn_direction

    def __init__(self, name: str, **attributes: Any) -> None:
        self._name = name
        self._attributes = {k: plain(v) for k, v in attributes.items()}
        if name in BUILTINS or name.startswith("unknown:"):
            return
        cls = class_of(name)
        attributes_in(cls, self._attributes)
        self._name = cls.mnemonic

    @staticmethod
    def of(name: str, attributes: Mapping[str, Any]) -> op:
        """Return the operator of an existing instruction."""
        made = op.__new__(op)
        made._name, made._attributes = name, dict(attributes)
        return made

    def name(self) -> str:
        """Return the operator's name."""
        return self._name

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that were given."""
        return dict(self._attributes)

    def values(self) -> dict[str, Any]:
        """Return all attributes, defaults included, as numbers, strings, lists and dicts."""
        if self._name in BUILTINS or self._name.startswith("unknown:"):
            return {k: simple(v) for k, v in self._attributes.items()}
        cls = class_of(self._name)
        given = attributes_in(cls, self._attributes)
        found = {d.field: None if d.default is REQUIRED else d.default for d in cls.ATTRS.values()}
        for key, definition in cls.ATTRS.items():
            if key in given:
                value = given[key]
                found[definition.field] = tuple(value) if isinstance(value, list) else value
        return {k: simple(v) for k, v in attributes_out(cls, found).items()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, op):
            return NotImplemented
        return self._name == other._name and self.values() == other.values()

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        inside = ",".join(f"{k}={value_text(v)}" for k, v in self.values().items())
        return f"{self._name}[{inside}]" if inside else self._name


def plain(value: object) -> Any:
    """Convert an attribute value of the API to the dialect's."""
    if isinstance(value, shape):
        return value.core
    if isinstance(value, dynamic_dimension):
        return value.dim()
    if isinstance(value, op):
        return NestedOp(value.name(), tuple(value.values().items()))
    if isinstance(value, enum.IntEnum):
        return int(value)
    if isinstance(value, list | tuple | set):
        return [plain(v) for v in value]
    if isinstance(value, Mapping):
        if "name" in value and "operator" in value:
            return NestedOp(str(value["name"]), tuple(dict(value["operator"] or {}).items()))
        raise ShapeError(f"expected an attribute value, got {value!r}")
    return value


def simple(value: object) -> Any:
    """Convert an attribute value to Python's own types, as `op.values` shows it."""
    if isinstance(value, Enum):
        return value.number
    if isinstance(value, DType):
        return value.number
    if isinstance(value, NestedOp):
        return {"name": value.name, "operator": dict(value.attributes)}
    if isinstance(value, DimRange):
        return {"min": value.min, "max": value.max, "optimals": list(value.optimals)}
    if isinstance(value, Shape | TupleShape):
        return str(value)
    if isinstance(value, list | tuple):
        return [simple(v) for v in value]
    return value
