"""Attribute descriptors of the dialect: a default, a coercion to MLIR, a Python value back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast, overload

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dynamic_dims import all_named, named
from mgx_mlir.core.errors import ShapeError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.core.type_cache import MEMO

REQUIRED = object()
Attributes: TypeAlias = "Mapping[str, ir.Attribute] | ir.OpAttributeMap"


class AttrDef:
    """One attribute of an operator: reads as a Python value on an op, as itself on the class.

    `default` REQUIRED: the builder must get a value. `optional`: it may be absent, and reads as
    None. `what` names the kind in messages.
    """

    name: str

    def __init__(
        self,
        what: str,
        to_mlir: Callable[[Any], ir.Attribute],
        from_mlir: Callable[[ir.Attribute], Any],
        default: object = REQUIRED,
        *,
        optional: bool = False,
        choices: tuple[str, ...] = (),
    ) -> None:
        self.what, self.to_mlir, self._from_mlir = what, to_mlir, from_mlir
        self.default: Any = None if optional and default is REQUIRED else default
        self.optional, self.choices = optional, choices

    def __set_name__(self, owner: type, name: str) -> None:
        # MLIR's Operation owns `name`, and Python keywords cannot be fields: a trailing
        # underscore is not part of the attribute's name.
        self.field, self.name = name, name.rstrip("_")

    @overload
    def __get__(self, op: None, owner: type) -> AttrDef: ...
    @overload
    def __get__(self, op: ir.Operation, owner: type) -> Any: ...
    def __get__(self, op: ir.Operation | None, owner: type) -> Any:
        return self if op is None else self.read(op.attributes)

    def __set__(self, op: ir.Operation, value: object) -> None:
        op.attributes[self.name] = self.coerce(value)

    def read(self, attributes: Attributes) -> Any:
        """Read the Python value in an op's attributes; the default where it is absent."""
        if self.name not in attributes:
            if self.default is REQUIRED:
                raise ShapeError(f"requires attribute '{self.name}'")
            return self.default
        return self.value_of(attributes[self.name])

    def value_of(self, attribute: ir.Attribute) -> Any:
        """Return the Python value of an MLIR attribute; ShapeError where it is of another form."""
        try:
            value = self._from_mlir(attribute)
        except (ValueError, TypeError, AttributeError):
            raise ShapeError(
                f"attribute '{self.name}' expected {self.what}, got {attribute}"
            ) from None
        if self.choices and value not in self.choices:
            raise ShapeError(
                f"attribute '{self.name}' expected one of {', '.join(self.choices)}, got {value}"
            )
        return value

    def coerce(self, value: object) -> ir.Attribute:
        """Return the MLIR attribute of a Python value; ShapeError where it is not one of these."""
        if isinstance(value, ir.Attribute):
            self.value_of(value)
            return value
        try:
            attribute = self.to_mlir(value)
        except (ValueError, TypeError, KeyError, OverflowError, RuntimeError):
            # RuntimeError: std::bad_cast, for a number beyond 64 bits
            raise ShapeError(
                f"attribute '{self.name}' expected {self.what}, got {value!r}"
            ) from None
        self.value_of(attribute)
        return attribute


def _ints_back(a: ir.Attribute) -> tuple[int, ...]:
    memo = MEMO.get()
    if memo is None:
        return all_named(ir.DenseI64ArrayAttr(a))
    found = memo.ints.get(a)
    if found is None:
        found = memo.ints[a] = all_named(ir.DenseI64ArrayAttr(a))
    return found


def int_(default: object = REQUIRED, *, optional: bool = False) -> AttrDef:
    """Return a 64-bit integer."""
    return AttrDef(
        "an i64 integer",
        lambda v: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), int(v)),
        lambda a: named(ir.IntegerAttr(a).value),
        default,
        optional=optional,
    )


def ints(default: object = REQUIRED, *, optional: bool = False) -> AttrDef:
    """Return a list of 64-bit integers."""
    return AttrDef(
        "an array<i64: ...>",
        lambda v: ir.DenseI64ArrayAttr.get([int(x) for x in v]),
        _ints_back,
        default,
        optional=optional,
    )


def float_(default: object = REQUIRED, *, optional: bool = False) -> AttrDef:
    """Return a 64-bit float (MIGraphX stores f32; wider here, so that f64 models lose no
    precision).
    """
    return AttrDef(
        "an f64 float",
        lambda v: ir.FloatAttr.get(ir.F64Type.get(), float(v)),
        lambda a: ir.FloatAttr(a).value,
        default,
        optional=optional,
    )


def floats(default: object = REQUIRED, *, optional: bool = False) -> AttrDef:
    """Return a list of 64-bit floats."""
    return AttrDef(
        "an array<f64: ...>",
        lambda v: ir.DenseF64ArrayAttr.get([float(x) for x in v]),
        lambda a: tuple(ir.DenseF64ArrayAttr(a)),
        default,
        optional=optional,
    )


def bool_(default: object = REQUIRED, *, optional: bool = False) -> AttrDef:
    """Return a boolean."""
    return AttrDef(
        "a bool",
        lambda v: ir.BoolAttr.get(bool(v)),
        lambda a: ir.BoolAttr(a).value,
        default,
        optional=optional,
    )


def str_(default: object = REQUIRED, *, optional: bool = False) -> AttrDef:
    """Return a string."""
    return AttrDef(
        "a string",
        lambda v: ir.StringAttr.get(v),
        lambda a: ir.StringAttr(a).value,
        default,
        optional=optional,
    )


def strs(default: object = REQUIRED, *, optional: bool = False) -> AttrDef:
    """Return a list of strings."""
    return AttrDef(
        "a list of strings",
        lambda v: ir.ArrayAttr.get([ir.StringAttr.get(x) for x in v]),
        lambda a: tuple(ir.StringAttr(x).value for x in ir.ArrayAttr(a)),
        default,
        optional=optional,
    )


def enum(choices: tuple[str, ...], default: object = REQUIRED) -> AttrDef:
    """Return one of `choices`; MIGraphX's number of a choice is its position."""
    return AttrDef(
        f"one of {', '.join(choices)}",
        lambda v: ir.StringAttr.get(choices[v] if isinstance(v, int) else v),
        lambda a: ir.StringAttr(a).value,
        default,
        choices=choices,
    )


def type_(default: object = REQUIRED, *, optional: bool = False) -> AttrDef:
    """Return an element type; reads as a DType, takes a DType or any spelling of its name."""
    return AttrDef(
        "an element type",
        lambda v: ir.TypeAttr.get((dtypes.from_name(v) if isinstance(v, str) else v).ir_type()),
        lambda a: dtypes.from_mlir(ir.TypeAttr(a).value),
        dtypes.from_name(default) if isinstance(default, str) else default,
        optional=optional,
    )


def tensor_type(default: object = REQUIRED, *, optional: bool = False) -> AttrDef:
    """Return a tensor type; reads as a TensorType."""
    return AttrDef(
        "a tensor type",
        lambda v: ir.TypeAttr.get(v.mlir() if isinstance(v, TensorType) else v),
        lambda a: TensorType.of(ir.RankedTensorType(ir.TypeAttr(a).value)),
        default,
        optional=optional,
    )


def symbols(default: object = REQUIRED) -> AttrDef:
    """Return a list of symbol names."""
    return AttrDef(
        "a list of symbols",
        lambda v: ir.ArrayAttr.get([ir.FlatSymbolRefAttr.get(x) for x in v]),
        lambda a: tuple(ir.FlatSymbolRefAttr(x).value for x in ir.ArrayAttr(a)),
        default,
    )


def elements(*, optional: bool = False) -> AttrDef:
    """Return a dense tensor constant; takes a numpy array, reads as the MLIR attribute."""
    return AttrDef(
        "a dense elements attribute",
        dense,
        lambda a: ir.DenseElementsAttr(a),
        optional=optional,
    )


def dense(array: np.ndarray) -> ir.Attribute:
    """Return a DenseElementsAttr of any supported dtype, splat where all elements are equal."""
    array = np.asarray(array)
    dtype = dtypes.from_numpy(array.dtype)
    kind = ir.RankedTensorType.get(array.shape, dtype.ir_type())
    if array.size and not any(array.strides):  # one number, broadcast
        array = array[(slice(0, 1),) * array.ndim]
    raw = np.ascontiguousarray(array).reshape(-1).view(f"u{dtype.size}")
    if raw.size > 1 and (raw == raw[0]).all():
        raw = raw[:1]
    if dtype.is_bool and raw.size == 1:
        return ir.DenseElementsAttr.get_splat(kind, ir.BoolAttr.get(bool(raw[0])))
    return ir.DenseElementsAttr.get(cast(Any, raw), type=kind)


LARGE_SPLAT = 1 << 16  # elements from which a splat is a broadcast, not repeated numbers


def array_of(attribute: ir.Attribute) -> np.ndarray:
    """Return the numpy array of a dense attribute (DenseElementsAttr or a dense resource).

    A large splat is a broadcast of one number, and read-only.
    """
    kind = ir.RankedTensorType(attribute.type)
    dtype, shape = dtypes.from_mlir(kind.element_type), tuple(kind.shape)
    try:
        view = np.asarray(memoryview(cast(Any, attribute)))
    except (ValueError, TypeError, BufferError):
        return _array_of_text(str(attribute), dtype, shape)
    splat = view.size >= LARGE_SPLAT and not any(view.strides)
    found = view[(slice(0, 1),) * view.ndim].copy() if splat else view.copy()
    if found.dtype != dtype.np:
        same = found.dtype.itemsize == dtype.size and not dtype.is_bool
        found = found.view(dtype.np) if same else found.astype(dtype.np)
    return np.broadcast_to(found.reshape(()), shape) if splat else found.reshape(shape)


_NUMBER = re.compile(r"0x[0-9A-Fa-f]+|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def _array_of_text(text: str, dtype: dtypes.DType, shape: tuple[int, ...]) -> np.ndarray:
    """Return the values of a bf16 or f8 constant: the bindings give no buffer for these types."""
    body = text[text.index("dense<") + 6 : text.rindex("> :")]
    bits = f"u{dtype.size}"
    if body.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(body[3:-1]), bits).view(dtype.np).reshape(shape)
    flat = np.zeros(len(numbers := _NUMBER.findall(body)), dtype.np)
    for i, number in enumerate(numbers):
        if number.startswith("0x"):
            flat.view(bits)[i] = int(number, 16)
        else:
            flat[i] = float(number)
    if flat.size == 1:
        splat = np.broadcast_to(flat[0], shape)
        return splat if splat.size >= LARGE_SPLAT else splat.copy()
    return flat.reshape(shape)
