"""The base class of the dialect's ops, with registry, building and verifying."""

from __future__ import annotations

import functools
import inspect
import io
import itertools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np

from mgx_mlir.core import defined_again, forks, literals
from mgx_mlir.core.attrs import REQUIRED, AttrDef, Attributes
from mgx_mlir.core.errors import MgxError, ShapeError
from mgx_mlir.core.inference import inferred
from mgx_mlir.core.ir import ext, ir, irdl
from mgx_mlir.core.op_fields import (
    EXT_FIELDS,
    MAX_VARIADIC,
    OpField,
    is_segmented,
    read_annotation,
    segment_sizes,
    spread,
)
from mgx_mlir.core.shapes import TensorType, compatible

Operand = ir.Value
Result = ir.OpResult
Region = ir.Region
Callables = Sequence[Callable[..., list[np.ndarray]]]  # regions as functions, for `reference`
# a value, or an op with one result; a ShapeError where it is absent
ValueLike: TypeAlias = "ir.Value | ir.Operation | None"

PREFIX = "migraphx."
YIELD = "migraphx.yield"
_TERMINATORS = ("func.return", YIELD)

OPS: dict[str, type[Op]] = {}
_BY_NAME: dict[str, type[Op]] = {}  # the same classes by the whole name

_loading = forks.lock()


class Migraphx(ext.Dialect, name="migraphx"):
    """MIGraphX's operators on builtin tensors."""

    # number of operators, and their definitions as bytecode
    _emitted: ClassVar[tuple[int, bytes]] = (0, b"")

    @classmethod
    def load(cls) -> None:
        """Load every operator class defined so far into the current context.

        One thread at a time: the bindings keep the module of definitions in a class attribute, and
        using another context's module kills the process.
        """
        with _loading:
            count, data = cls._emitted
            if count == len(cls.operations):
                # each compile has a context, but the bindings' other work is needed once per
                # process
                irdl.load_dialects(ir.Module.parse(data))
                for op in cls.operations:
                    op._attach_traits()
                return
            super().load()
            stream = io.BytesIO()
            cast(ir.Module, cls._mlir_module).operation.write_bytecode(stream)
            cls._emitted = (len(cls.operations), stream.getvalue())
            # otherwise its context stays alive until the next load frees it on another thread
            cls._mlir_module = None

    @classmethod
    def emitted(cls) -> bytes:
        """Return the definitions of the last context, as IRDL bytecode."""
        return cls._emitted[1]


def check(condition: object, message: str | Callable[[], str]) -> None:
    """Raise ShapeError(message) unless `condition` holds; `message` may be a function."""
    if not condition:
        raise ShapeError(message() if callable(message) else message)


class InferView(SimpleNamespace):
    """View of an op in `infer` and `strides`: types of operands, values of attributes, by name.

    `o.x` is the TensorType of operand `x`: None of an absent one, a list of a variadic one.
    `o.axis` is the Python value of attribute `axis`.
    """

    regions: Sequence[ir.Region]
    results: Sequence[TensorType] | None  # declared result types, when an existing op is verified
    operands: dict[str, Sequence[ir.Value]]  # the values, by the name of their operand
    const: Callable[[str], np.ndarray | None]  # the array of an operand that is a small literal


_NO_GROUPS: tuple[OpField, ...] = ()
_NO_NAMES: tuple[str, ...] = ()
_NO_ATTRS: dict[str, AttrDef] = {}


class Op(Migraphx.Operation):
    """Base of every `migraphx` operation.

    A subclass states operands, results and regions as annotations (`x: Operand`,
    `Sequence[Operand]`, `Operand | None`, `out: Result`, `body: Region`), attributes as
    descriptors (`axis = attr.int_(0)`), and the static methods below. Every attribute is written
    by the builder, defaults included; on reading, an absent one takes its default.
    """

    # unannotated, as the bindings read every annotation of this class as a field
    raw = False  # True: reference takes 16- and 8-bit floats as they are
    discontinuous = False  # True: a discontinuous op, whose operands are rounded to their types
    OPERANDS = RESULTS = _NO_GROUPS
    REGIONS = _NO_NAMES
    ATTRS = _NO_ATTRS
    mnemonic = ""
    segmented_operands = segmented_results = False

    def __init_subclass__(
        cls,
        *,
        name: str | None = None,
        pure: bool = True,
        traits: Sequence[type] = (),
        **kwargs: Any,
    ) -> None:
        own = inspect.get_annotations(cls)
        fields: dict[str, Any] = {}
        groups: dict[str, list[OpField]] = {"Operand": [], "Result": [], "Region": []}
        for field, hint in own.items():
            found = read_annotation(hint if isinstance(hint, str) else repr(hint))
            if found is not None:
                groups[found[0]].append(OpField(field, found[1]))
                fields[field] = EXT_FIELDS[found]
                if found[1] == "variadic":
                    for k in range(1, MAX_VARIADIC):
                        fields[f"{field}_{k}"] = EXT_FIELDS[found]
        cls.__annotations__ = fields
        # constants from here on
        cls.OPERANDS += tuple(groups["Operand"])  # pyright: ignore[reportConstantRedefinition]
        cls.RESULTS += tuple(groups["Result"])  # pyright: ignore[reportConstantRedefinition]
        regions = tuple(g.name for g in groups["Region"])
        cls.REGIONS += regions  # pyright: ignore[reportConstantRedefinition]
        own_attributes = {v.name: v for v in vars(cls).values() if isinstance(v, AttrDef)}
        cls.ATTRS = cls.ATTRS | own_attributes  # pyright: ignore[reportConstantRedefinition]
        if name is None:
            super().__init_subclass__(**kwargs)
            return
        if defined_again.again("operator", name, cls.__module__):
            OPS.pop(name, None)
            whole = PREFIX + name
            Migraphx.operations[:] = [o for o in Migraphx.operations if whole != o.OPERATION_NAME]
        if name in OPS:
            raise TypeError(f"operator '{name}' is defined twice")
        cls.mnemonic = name
        # pure: no side effects, so that upstream cse and canonicalize may merge and drop it
        super().__init_subclass__(
            name=name, traits=[*([ext.Pure] if pure else []), *traits], **kwargs
        )
        cls._ODS_OPERAND_SEGMENTS = cls._ODS_RESULT_SEGMENTS = None
        cls.segmented_operands = is_segmented(cls.OPERANDS)
        cls.segmented_results = is_segmented(cls.RESULTS)
        cls.__init__ = Op._build
        for index, group in enumerate(cls.OPERANDS):
            setattr(cls, group.name, property(_operand_getter(cls, index)))
            setattr(cls.Adaptor, group.name, property(_operand_getter(cls, index)))
        for group in cls.RESULTS:
            if group.arity == "variadic":
                setattr(cls, group.name, property(lambda self: list(self.operation.results)))
        OPS[name] = _BY_NAME[cls.OPERATION_NAME] = cls

    @classmethod
    def is_pure(cls) -> bool:
        """Return whether the op has no side effects: the same results for the same operands."""
        return ext.Pure in (cls._traits or ())

    def _build(
        self,
        *operands: object,
        results: Sequence[TensorType | ir.Type] | None = None,
        loc: ir.Location | None = None,
        ip: ir.InsertionPoint | None = None,
        **attributes: object,
    ) -> None:
        """Build the op: results are inferred, defaults written.

        A variadic operand is a sequence, an absent optional one None; trailing absent ones may be
        omitted. `results` overrides or supplies inferred types. Raises
        ShapeError, naming the op, where operands or attributes do not fit.
        """
        cls = type(self)
        groups = cls.grouped_operands(operands)
        attrs: dict[str, ir.Attribute] = {}
        for key, definition in cls.ATTRS.items():
            value = attributes.pop(key, definition.default)
            if value is None and definition.optional:
                continue
            if value is None or value is REQUIRED:
                raise ShapeError(f"'{cls.OPERATION_NAME}' op requires attribute '{key}'")
            attrs[key] = definition.coerce(value)
        if attributes:
            known = ", ".join(cls.ATTRS) or "none"
            raise ShapeError(
                f"'{cls.OPERATION_NAME}' op has no attribute '{next(iter(attributes))}', "
                f"it has: {known}"
            )
        types = [
            r.mlir() if isinstance(r, TensorType) else r
            for r in (results if results is not None else cls.infer_types(groups, attrs))
        ]
        flat = [v for group in groups for v in group]
        if cls.segmented_operands:
            held = [[v.type for v in g] for g in groups]
            attrs["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(
                segment_sizes(cls.OPERANDS, held)
            )
        if cls.segmented_results:
            attrs["resultSegmentSizes"] = ir.DenseI32ArrayAttr.get(spread(types))
        if len(cls.RESULTS) > 1 and any(g.arity == "variadic" for g in cls.RESULTS):
            raise TypeError("an op has one variadic result group or single results")
        ir.OpView.__init__(
            self,
            cls.OPERATION_NAME,
            (len(cls.REGIONS), True),
            None,
            None,
            attributes=attrs,
            results=types,
            operands=flat,
            successors=None,
            regions=len(cls.REGIONS) or None,
            loc=loc,
            ip=ip,
        )

    @classmethod
    def grouped_operands(cls, operands: Sequence[object]) -> list[list[ir.Value]]:
        """Operands as one list per declared group."""
        if len(operands) > len(cls.OPERANDS):
            raise ShapeError(
                f"'{cls.OPERATION_NAME}' op expected {len(cls.OPERANDS)} operands, "
                f"got {len(operands)}"
            )
        out: list[list[ir.Value]] = []
        for i, group in enumerate(cls.OPERANDS):
            given = operands[i] if i < len(operands) else None
            if group.arity == "variadic":
                out.append([as_value(v) for v in cast(Sequence[object], given or ())])
            elif given is None:
                check(
                    group.arity == "optional",
                    f"'{cls.OPERATION_NAME}' op requires operand '{group.name}'",
                )
                out.append([])
            else:
                out.append([as_value(given)])
        return out

    @classmethod
    def infer_types(
        cls,
        groups: Sequence[Sequence[ir.Value]],
        attributes: Attributes,
        regions: Sequence[ir.Region] = (),
    ) -> list[TensorType]:
        """Infer result types from operands and MLIR attributes. ShapeError where impossible."""
        try:
            found = inferred(cls, cls.view(groups, attributes, regions))
        except MgxError as e:
            raise ShapeError(f"'{cls.OPERATION_NAME}' op {e.message}", notes=e.notes) from None
        if found is None:
            raise ShapeError(f"'{cls.OPERATION_NAME}' op needs its result types given")
        return [found] if isinstance(found, TensorType) else list(found)

    @classmethod
    def view(
        cls,
        groups: Sequence[Sequence[ir.Value]],
        attributes: Attributes,
        regions: Sequence[ir.Region] = (),
    ) -> InferView:
        """Return the InferView of operands and MLIR attributes; `results` is None."""
        o = InferView(regions=regions, results=None, operands={})
        for group, values in zip(cls.OPERANDS, groups, strict=True):
            types = [TensorType.of(v) for v in values]
            o.operands[group.name] = values
            if group.arity == "variadic":
                setattr(o, group.name, types)
            else:
                setattr(o, group.name, types[0] if types else None)
        for definition in cls.ATTRS.values():
            setattr(o, definition.field, definition.read(attributes))
        o.const = lambda field: _literal_of(o.operands[field])
        return o

    # ---- what an op class states -------------------------------------------------------------

    @staticmethod
    def infer(o: InferView) -> TensorType | Sequence[TensorType] | None:
        """Infer result types; raise through `check`. None: the builder has to give them."""
        raise NotImplementedError

    @staticmethod
    def reference(*inputs: Any, **attributes: Any) -> Any:
        """Return the op in numpy: arrays in, one array or a tuple out."""
        raise NotImplementedError

    @staticmethod
    def strides(o: InferView, ins: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """Return the strides of a view's result from those of its operands (views override)."""
        raise NotImplementedError

    # ---- verification ------------------------------------------------------------------------

    @classmethod
    def split_operands(cls, op: ir.Operation) -> list[list[ir.Value]]:
        """Return an existing op's operands by group; raise ShapeError on a wrong count."""
        operands = list(op.operands)
        arities = [g.arity for g in cls.OPERANDS]
        flexible = [i for i, a in enumerate(arities) if a != "single"]
        if len(flexible) <= 1:
            rest = len(operands) - (len(arities) - len(flexible))
            sizes = [rest if i in flexible else 1 for i in range(len(arities))]
            ok = rest >= 0 if flexible else rest == 0
            if flexible and arities[flexible[0]] == "optional":
                ok = rest in (0, 1)
        else:
            if "operandSegmentSizes" not in op.attributes:
                raise ShapeError("requires attribute 'operandSegmentSizes'")
            stated = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
            widths = [MAX_VARIADIC if a == "variadic" else 1 for a in arities]
            ok = len(stated) == sum(widths) and sum(stated) == len(operands)
            ok = ok and all(s >= 0 for s in stated)
            ends = list(itertools.accumulate(widths))
            sizes = [sum(stated[e - w : e]) for e, w in zip(ends, widths, strict=True)]
        if not ok:
            raise ShapeError(
                f"expected {len(arities)}{' or fewer' if flexible else ''} operands, "
                f"got {len(operands)}"
            )
        out: list[list[ir.Value]] = []
        at = 0
        for size in sizes:
            out.append(operands[at : at + size])
            at += size
        return out

    @classmethod
    def verify_invariants(cls, op: ir.Operation) -> bool:
        """MLIR's verifier hook: the op's own inference against its result types."""
        operation = op.operation
        try:
            if not all(isinstance(v.type, ir.RankedTensorType) for v in operation.operands):
                return True  # IRDL reports it
            if len(operation.regions) != len(cls.REGIONS):
                return True
            groups = cls.split_operands(operation)
            o = cls.view(groups, operation.attributes, list(operation.regions))
            o.results = [TensorType.of(r.type) for r in operation.results]
            found = inferred(cls, o)
            if found is not None:
                types = [found] if isinstance(found, TensorType) else list(found)
                _check_results(types, [r.type for r in operation.results])
        except MgxError as e:
            operation.location.emit_error(f"'{operation.name}' op {e.message}")
            return False
        except Exception as e:  # a malformed op must give a diagnostic, never a traceback
            operation.location.emit_error(f"'{operation.name}' op is malformed: {e}")
            return False
        return True


class Pointwise(Op):
    """Base of the ops that compute each element from the operands' elements at the same index."""


class ViewOp(Op):
    """Base of the ops whose result has the first operand's elements with other dims or strides.

    Their references accept every dtype.
    """

    raw = True


class BroadcastOp(ViewOp):
    """Base of the broadcasts with constant dims, which passes look through.

    `simplify_dyn_ops` converts broadcasts with computed dims to these.
    """


class ReduceOp(Op):
    """Base of the reductions over axes; the result keeps the axes with extent 1."""


class HostOp(Op):
    """Base of the ops that no device runs: terminators, queries of dims, inputs."""


class Kernel(Op):
    """Base of the ops whose body becomes one dispatch.

    The block's arguments are the operands, `migraphx.yield` gives the results. Patterns for whole
    tensors are not applied inside the body.
    """

    inputs: Sequence[Operand]
    outs: Sequence[Result]
    body: Region

    @staticmethod
    def infer(o: InferView) -> Sequence[TensorType] | None:
        if not o.regions or not len(o.regions[0].blocks):
            return None
        block = o.regions[0].blocks[0]
        arguments = [TensorType.of(a) for a in block.arguments]
        check(
            len(arguments) == len(o.inputs),
            lambda: f"expected {len(o.inputs)} block arguments, got {len(arguments)}",
        )
        for i, (have, want) in enumerate(zip(arguments, o.inputs, strict=True)):
            check(
                have.dtype is want.dtype and have.rank == want.rank,
                lambda i=i, have=have, want=want: f"block argument {i} expected {want}, got {have}",
            )
        operations = list(block.operations)
        last = operations[-1].operation if operations else None
        check(
            last is not None and last.name == YIELD,
            f"expected a region that ends with {YIELD}",
        )
        assert last is not None
        return [TensorType.of(v) for v in last.operands]

    @staticmethod
    def reference(
        inputs: Sequence[np.ndarray],
        *,
        regions: Sequence[Callable[..., Sequence[np.ndarray]]],
        **_: object,
    ) -> tuple[np.ndarray, ...]:
        return tuple(regions[0](*inputs))


def _check_results(inferred: Sequence[TensorType], actual: Sequence[ir.Type]) -> None:
    check(
        len(inferred) == len(actual),
        lambda: f"expected {len(inferred)} results, got {len(actual)}",
    )
    for i, (want, have) in enumerate(zip(inferred, actual, strict=True)):
        got = TensorType.of(have)
        same = (
            want.dtype is got.dtype
            and want.rank == got.rank
            and all(compatible(a, b) for a, b in zip(want.dims, got.dims, strict=True))
        )
        check(same, lambda i=i, want=want, got=got: f"result {i} expected {want}, got {got}")


def _operand_getter(cls: type[Op], index: int) -> Callable[[Op], ir.Value | list[ir.Value] | None]:
    if all(g.arity == "single" for g in cls.OPERANDS):
        return lambda self: self.operands[index]

    def get(self: Op) -> ir.Value | list[ir.Value] | None:
        values = cls.split_operands(self)[index]
        if cls.OPERANDS[index].arity == "variadic":
            return values
        return values[0] if values else None

    return get


def _literal_of(values: Sequence[ir.Value]) -> np.ndarray | None:
    """Return the array of an operand that is an inline literal, for `infer`."""
    if len(values) != 1 or not literals.is_literal(values[0]):
        return None
    attributes = values[0].owner.attributes
    return literals.array_of(values[0]) if "value" in attributes else None


def as_value(x: object) -> ir.Value:
    """Return an ir.Value from a value, or from an op with one result."""
    if isinstance(x, ir.OpView | ir.Operation):
        return x.result
    if isinstance(x, ir.Value):
        return x
    raise ShapeError(f"expected a value, got {x!r}")


def op_class(op: ir.Operation | ir.Block) -> type[Op] | None:
    """Return the class of an operation, by its name.

    None for an op of another dialect, and for a block, which owns its arguments.
    """
    return _BY_NAME.get(getattr(op, "name", None))  # type: ignore[arg-type]


def is_a(op: ir.Operation | ir.Block, kinds: type[Op] | tuple[type[Op], ...]) -> bool:
    """Return whether an operation is of one of `kinds`: op classes or their bases.

    False for a block. It compares names, as making the op's view takes three times as long.
    """
    cls = _BY_NAME.get(getattr(op, "name", None))  # type: ignore[arg-type]
    return cls is not None and issubclass(cls, kinds)


def names_of(*kinds: type[Op]) -> list[str]:
    """Return the names of the ops of `kinds`; a base stands for every op class below it."""
    return list(_names_of(kinds, len(_BY_NAME)))


@functools.cache
def _names_of(kinds: tuple[type[Op], ...], count: int) -> tuple[str, ...]:
    """Return the names of the ops of `kinds`; `count` is the number of ops, for the cache."""
    return tuple(name for name, cls in _BY_NAME.items() if issubclass(cls, kinds))


def mnemonic(op: ir.Operation) -> str:
    """Return an operation's name without `migraphx.`; the full name in another dialect."""
    return op.operation.name.removeprefix(PREFIX)


def is_terminator(op: ir.Operation) -> bool:
    """Return whether an op terminates a function or a region of the dialect's ops."""
    return op.name in _TERMINATORS


def attributes_of(op: ir.Operation) -> dict[str, Any]:
    """Return all attributes of a migraphx operation as Python values, defaults included."""
    operation = op.operation
    cls = _BY_NAME[operation.name]
    attributes = operation.attributes
    return {d.field: d.read(attributes) for d in cls.ATTRS.values()}


__all__ = [
    "OPS",
    "BroadcastOp",
    "Callables",
    "HostOp",
    "InferView",
    "Kernel",
    "Migraphx",
    "Op",
    "Operand",
    "Pointwise",
    "ReduceOp",
    "Region",
    "Result",
    "ValueLike",
    "ViewOp",
    "as_value",
    "attributes_of",
    "check",
    "is_a",
    "is_terminator",
    "mnemonic",
    "names_of",
    "op_class",
]
