"""MIGraphX's spelling of operators: names, attributes and operand lists, to and from the dialect's.

Printers and writers convert out of the dialect, readers and the Python API into it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.attrs import AttrDef
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import ShapeError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, Op, mnemonic
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.programs.layout import Dim, DimRange, Shape

# former names of operators and attributes, which files and scripts still use
OLDER_NAMES = {
    "round": "nearbyint",
    "deconvolution": "convolution_backwards",
    "get_tuple_element": "get_tuple_elem",
}
OLDER_ATTRIBUTES = {
    ("multibroadcast", "output_lens"): "out_lens",
    ("multibroadcast", "dims"): "out_lens",
    ("broadcast", "dims"): "out_lens",
    ("broadcast", "output_lens"): "out_lens",
    ("broadcast", "broadcast_lens"): "out_lens",
    ("transpose", "dims"): "permutation",
}
# attributes that MIGraphX dropped: accepted if they change nothing
NEUTRAL = {
    **{(op, "alpha"): (1.0,) for op in ("dot", "quant_dot")},
    **{(op, "beta"): (0.0, 1.0) for op in ("dot", "quant_dot")},
    **{(op, "use_dynamic_same_auto_pad"): (False,)
       for op in ("convolution", "quant_convolution", "convolution_backwards", "pooling")},
}  # fmt: skip

# attributes that MIGraphX does not have: shown only if they are set
OWN_ATTRIBUTES = frozenset(
    {"channels_last", "padded", "max_dims", "exclude_outside", "antialias", "roi",
     "extrapolation_value", "callees", "overflow", "allowzero"}
)  # fmt: skip
# operators whose result is a tuple in MIGraphX even when it has one element
TUPLES = frozenset({"if", "loop", "topk", "unique", "select_module", "run_on_target"})
# enumerations that MIGraphX prints by name; the others are printed as numbers
NAMED_ENUMS = frozenset({("pooling", "mode"), ("roialign", "mode")}) | {
    (op, "direction")
    for op in ("rnn", "gru", "lstm", "rnn_var_sl_last_output", "rnn_var_sl_shift_output",
               "rnn_last_hs_output", "rnn_last_cell_output")
}  # fmt: skip
# attributes that are enumerations in the dialect and strings in MIGraphX
STRING_CHOICES = frozenset(
    {"nearest_mode", "coordinate_transformation_mode", "output_name", "assign"}
)
NOT_FINITE = ("inf", "-inf", "nan")


@dataclass(frozen=True)
class Enum:
    """A value of an enumeration: `number` in files, in text the name or the number."""

    number: int
    name: str
    named: bool

    def __str__(self) -> str:
        return self.name if self.named else str(self.number)


@dataclass(frozen=True)
class NestedOp:
    """An operator as an attribute of another (the activations of rnn, gru, lstm)."""

    name: str
    attributes: tuple[tuple[str, float], ...] = ()

    @staticmethod
    def parse(text: str) -> NestedOp:
        """Return the operator of the dialect's `leaky_relu{alpha=0.1}`, defaults included."""
        name, _, inside = text.partition("{")
        pairs = (part.partition("=") for part in inside.rstrip("} ").split(",") if part.strip())
        given = {key.strip(): float(number) for key, _, number in pairs}
        values = {**_defaults(name.strip()), **given}
        return NestedOp(name.strip(), tuple(values.items()))

    def stated(self) -> str:
        """Return the dialect's text: attributes that differ from the defaults."""
        defaults = _defaults(self.name)
        inside = ",".join(
            f"{k}={v!r}"
            for k, v in self.attributes
            # files hold the default rounded to f32
            if k not in defaults or np.float32(v) != np.float32(defaults[k])
        )
        return f"{self.name}{{{inside}}}" if inside else self.name

    def __str__(self) -> str:
        inside = ",".join(f"{k}={v:g}" for k, v in self.attributes)
        return f"{self.name}[{inside}]" if inside else self.name


def _defaults(name: str) -> dict[str, float]:
    """Return the default attributes of an activation."""
    cls = OPS.get(name)
    found = {} if cls is None else {k: d.default for k, d in cls.ATTRS.items()}
    return {k: v for k, v in found.items() if isinstance(v, float)}


def class_of(name: str) -> type[Op]:
    """Return the operator class of a MIGraphX name, former names included; ShapeError with a
    hint.
    """
    found = OPS.get(OLDER_NAMES.get(name, name))
    if found is None or name in ("literal", "yield"):
        near = difflib.get_close_matches(name, OPS, n=1)
        raise ShapeError(
            f"unknown operator '{name}'", notes=[f"did you mean '{near[0]}'?"] if near else []
        )
    return found


def is_tuple(op: ir.Operation) -> bool:
    """Return whether MIGraphX returns the results of `op` as one tuple.

    lstm does not: there rnn_last_cell_output reads the cells from the instruction itself.
    """
    name = mnemonic(op)
    return (len(op.results) > 1 or name in TUPLES) and name != "lstm"


# ---- from the dialect -------------------------------------------------------------------------


def attributes_out(cls: type[Op], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return attribute values in MIGraphX's terms and order; ours only if they are set.

    Values are None, bool, int, float, str, lists of these, Enum, NestedOp, DType, Shape and
    dims (int or DimRange).
    """
    out: dict[str, Any] = {}
    for key, definition in cls.ATTRS.items():
        value = values[definition.field]
        own = key in OWN_ATTRIBUTES or _is_own(cls.mnemonic, key)
        if own and value == definition.default:
            continue
        if key == "callees":
            continue
        out[key] = _value_out(cls.mnemonic, key, definition, value)
    return out


def _is_own(op: str, key: str) -> bool:
    return key == "direction" and op in ("rnn_last_hs_output", "rnn_last_cell_output")


def _value_out(op: str, key: str, definition: AttrDef, value: Any) -> object:
    if value is None or isinstance(value, bool | float | DType):
        return value
    if key == "out_dyn_dims":
        pairs = zip(value[::2], value[1::2], strict=True)
        return [_dim_out(low, high) for low, high in pairs]
    if isinstance(value, TensorType):
        return Shape.standard(value.dtype, [DimRange() if d == DYN else d for d in value.dims])
    if definition.choices and not _is_string(op, key):
        return Enum(definition.choices.index(value), value, (op, key) in NAMED_ENUMS)
    if key == "actv_func":
        return [NestedOp.parse(v) for v in value]
    if isinstance(value, tuple):
        return list(cast(Sequence[object], value))
    return value


def _is_string(op: str, key: str) -> bool:
    return key in STRING_CHOICES or (op, key) == ("resize", "mode")


def _dim_out(low: int, high: int) -> Dim:
    if low == high:
        return low
    return DimRange(low, None if high < 0 or high >= 2**62 else high)


# ---- to the dialect ---------------------------------------------------------------------------


def attributes_in(cls: type[Op], values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert attribute values to those of the dialect's class.

    Takes the results of `attributes_out`, and values of files and scripts: numbers for enums and
    element types, objects for nested operators and shapes. Raises ShapeError for an unknown
    attribute or a value of the wrong kind.
    """
    out: dict[str, Any] = {}
    name = cls.mnemonic
    for key, value in values.items():
        if (name, key) == ("select_module", "output_dyn_shapes"):
            continue  # the functions of `if` and loops have these
        known = OLDER_ATTRIBUTES.get((name, key), key)
        if (name, known) in NEUTRAL and known not in cls.ATTRS:
            if value not in NEUTRAL[name, known]:
                wanted = NEUTRAL[name, known][-1]
                raise ShapeError(
                    f"'{name}' with {known}={value!r} is not supported, expected {wanted}"
                )
            continue
        definition = cls.ATTRS.get(known)
        if definition is None:
            near = difflib.get_close_matches(known, cls.ATTRS, n=1)
            listed = ", ".join(k for k in cls.ATTRS if k not in OWN_ATTRIBUTES) or "none"
            hint = f"did you mean '{near[0]}'?" if near else f"it has: {listed}"
            raise ShapeError(f"operator '{name}' has no attribute '{key}'", notes=[hint])
        found = _value_in(known, definition, value)
        if found is not None or definition.optional:
            out[known] = found
    return out


def _value_in(key: str, definition: AttrDef, value: object) -> object:
    if value is None:
        return None
    what = definition.what
    if isinstance(value, Enum):
        return value.name
    if definition.choices:
        # an IntEnum of a script is an int with a name; a plain int is an index
        if isinstance(value, int) and not isinstance(value, bool):
            if not 0 <= int(value) < len(definition.choices):
                raise ShapeError(
                    f"attribute '{key}' expected 0 to {len(definition.choices) - 1}, got {value}"
                )
            return definition.choices[int(value)]
        return value
    if what == "an element type":
        return _dtype_in(key, value)
    if what == "a tensor type":
        return _shape_in(key, value)
    if key == "out_dyn_dims":
        return [end for d in _list(key, value) for end in _dim_in(d)]
    if what == "a list of strings":
        return [_name_in(key, v) for v in _list(key, value)]
    if what == "a bool":
        if not isinstance(value, int):
            raise ShapeError(f"attribute '{key}' expected a bool, got {value!r}")
        return bool(value)
    if what.startswith("an array"):
        found = _list(key, value)
        kinds = int if "i64" in what else (int, float)
        if kinds is int:
            found = [int(v) if isinstance(v, float) and v.is_integer() else v for v in found]
        for v in found:
            if not hasattr(v, "__index__") and not isinstance(v, kinds):
                raise ShapeError(f"attribute '{key}' expected {what}, got {value!r}")
        return found
    if what == "an i64 integer" and not hasattr(value, "__index__"):
        # a writer may store an integer as a double of the same value
        if not isinstance(value, float) or not value.is_integer():
            raise ShapeError(f"attribute '{key}' expected an integer, got {value!r}")
        return int(value)
    if what == "a string" and not isinstance(value, str):
        raise ShapeError(f"attribute '{key}' expected a string, got {value!r}")
    if what == "an f64 float" and value in NOT_FINITE:
        return float(value)  # strings for infinity and NaN, which JSON lacks
    if what == "an f64 float" and not isinstance(value, int | float):
        raise ShapeError(f"attribute '{key}' expected a number, got {value!r}")
    return value


def _list(key: str, value: object) -> list[Any]:
    of_numpy = getattr(value, "tolist", None)
    if isinstance(value, Mapping) and not value:
        return []
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return list(cast(Sequence[object], value))
    if of_numpy is None:
        raise ShapeError(f"attribute '{key}' expected a list, got {value!r}")
    return list(of_numpy())


def _dtype_in(key: str, value: object) -> DType:
    found = value if isinstance(value, DType) else None
    if isinstance(value, str):
        found = dtypes.from_name(value)
    elif isinstance(value, int):
        found = dtypes.from_number(value)
    if found is dtypes.FP4X2:
        raise ShapeError(f"attribute '{key}' is fp4x2, a storage type: use pack_fp4 and unpack_fp4")
    if found is not None:
        return found
    raise ShapeError(f"attribute '{key}' expected an element type, got {value!r}")


def _shape_in(key: str, value: object) -> TensorType:
    if isinstance(value, TensorType):
        return value
    if isinstance(value, Shape):
        return value.tensor_type()
    raise ShapeError(f"attribute '{key}' expected a shape, got {value!r}")


def _dim_in(d: object) -> tuple[int, int]:
    if isinstance(d, DimRange):
        return d.min, 2**62 if d.max is None else d.max
    if isinstance(d, int):
        return d, d
    raise ShapeError(f"attribute 'out_dyn_dims' expected dynamic dimensions, got {d!r}")


def _name_in(key: str, value: object) -> str:
    name = value.stated() if isinstance(value, NestedOp) else value
    if not isinstance(name, str):
        raise ShapeError(f"attribute '{key}' expected operators, got {value!r}")
    return name


def group_operands(
    cls: type[Op], values: Sequence[Any], attributes: Mapping[str, Any]
) -> list[Any]:
    """Assign MIGraphX's flat inputs to the operands of the dialect's class.

    `None` in `values` is an absent input. Raises ShapeError for a wrong count.
    """
    given = list(values)
    name = cls.mnemonic
    if name == "reshape" and attributes.get("dims") and len(given) == 2:
        given.pop()  # MIGraphX's second input is the output buffer
    if name == "slice":
        return _slice_operands(given, attributes)
    arities = [g.arity for g in cls.OPERANDS]
    singles = arities.count("single")
    spare = len(given) - singles
    if spare < 0 or ("variadic" not in arities and spare > arities.count("optional")):
        most = "" if "variadic" not in arities else " or more"
        wanted = str(singles) if len(arities) == singles else f"{singles} to {len(arities)}"
        raise ShapeError(
            f"operator '{name}' expected {wanted if not most else str(singles) + most} inputs, "
            f"got {len(given)}"
        )
    out: list[Any] = []
    for arity in arities:
        if arity == "single":
            out.append(given.pop(0))
        elif arity == "optional":
            out.append(given.pop(0) if spare > 0 else None)
            spare -= 1
        else:
            out.append([given.pop(0) for _ in range(max(spare, 0))])
            spare = 0
    return out


def _slice_operands(given: list[Any], attributes: Mapping[str, Any]) -> list[Any]:
    """Assign slice's inputs to its unset attributes, in order."""
    given = [x for x in given if x is not None]
    if not given:
        raise ShapeError("operator 'slice' expected 1 to 4 inputs, got 0")
    out, rest = [given[0]], given[1:]
    open_ = [k for k in ("starts", "ends", "axes") if not attributes.get(k)]
    if len(rest) == 3:
        open_ = ["starts", "ends", "axes"]
    if len(rest) > len(open_):
        raise ShapeError(
            f"operator 'slice' expected at most {1 + len(open_)} inputs, got {len(given)}"
        )
    taken = dict(zip(open_, rest, strict=False))
    return out + [taken.get(k) for k in ("starts", "ends", "axes")]
