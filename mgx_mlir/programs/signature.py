"""The signature of a program: names, types and ranges of inputs and outputs, and checks on them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes, interrupts
from mgx_mlir.core.errors import NamesDisagree, RunError, SizesRefused
from mgx_mlir.core.given import NotOfType, native, plain_array
from mgx_mlir.core.ir import ir
from mgx_mlir.core.records import dataclass
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.core.subbyte_types import BY_NAME, ELEMENT, held_array, stated_array
from mgx_mlir.programs.groups import TensorGroup, groups_of, split
from mgx_mlir.programs.program_ir import (
    DIMS,
    SIZES,
    VALUES,
    argument_attributes,
    argument_names,
    argument_types,
    result_attributes,
    result_names,
    result_types,
)
from mgx_mlir.programs.shown import Shown, shown_from_json, shown_of
from mgx_mlir.programs.size_rules import SizeRule, size_rule_of, size_rules_of
from mgx_mlir.programs.text_steps import TextStep, run_steps, sources, steps_of
from mgx_mlir.programs.texts import TEXT, CallTexts, shown_table, strings_at, texts_of
from mgx_mlir.programs.value_rules import ValueRule, rule_from_json, rules_of


@dataclass(frozen=True)
class DimRange:
    """Range of a dimension: `max` None is unbounded; equal `symbol`s have equal sizes."""

    min: int = 0
    max: int | None = None
    optimals: tuple[int, ...] = ()
    symbol: str | None = None

    @property
    def is_fixed(self) -> bool:
        """Return whether only one size is allowed."""
        return self.min == self.max

    def __str__(self) -> str:
        if self.is_fixed:
            return str(self.min)
        return f"[{self.min}..{'' if self.max is None else self.max}]"


@dataclass(frozen=True)
class Port:
    """An input or output: `dtype` is MIGraphX's name, a dynamic dim is -1 in `dims`.

    `element` names the type that `dtype` only stores (core/subbyte_types.py). `shown` is the user's
    view of an output's tensor. With `text` the user passes and receives strings, and elements are
    indices into the signature's table.
    """

    name: str
    dtype: str
    dims: tuple[int, ...]
    ranges: tuple[DimRange, ...] = ()
    element: str = ""
    shown: Shown | None = None
    text: bool = False

    def stated(self, found: np.ndarray) -> np.ndarray:
        """Return an output as the user's array."""
        if self.element:
            found = stated_array(found, BY_NAME[self.element])
        return found if self.shown is None else self.shown.array(found)

    @property
    def is_static(self) -> bool:
        """Return whether all dims are known."""
        return all(d >= 0 for d in self.dims)

    def __str__(self) -> str:
        ranges = self.ranges or tuple(DimRange(d, d) if d >= 0 else DimRange() for d in self.dims)
        kind = "string" if self.text else self.dtype
        return f"{kind} {{{', '.join(str(r) for r in ranges)}}}"


@dataclass(frozen=True)
class Variant:
    """Function of a compiled program for certain sizes of its inputs."""

    function: str
    sizes: tuple[tuple[int, int, int], ...]  # fixed dims: (input, dim, size)
    # groups of dims, each (input, dim), with one common size, whatever it is
    alike: tuple[tuple[tuple[int, int], ...], ...] = ()


Pair = tuple[int, int]  # indices of an input and an output


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs of a program.

    The groups map the user's lists and optionals to ports; they are empty if all are tensors.
    `variants` are functions for certain sizes of the inputs, chosen at run time. `texts` is the
    table of strings, which ports of strings index. `in_place` are results that may use an input's
    memory, if the caller passes that memory for them.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    input_groups: tuple[TensorGroup, ...] = ()
    output_groups: tuple[TensorGroup, ...] = ()
    variants: tuple[Variant, ...] = ()
    values: tuple[ValueRule, ...] = ()
    texts: tuple[str, ...] = ()
    in_place: tuple[Pair, ...] = ()
    steps: tuple[TextStep, ...] = ()
    sizes: tuple[SizeRule, ...] = ()

    @property
    def input_names(self) -> list[str]:
        """Names of the user's inputs."""
        return [g.name for g in self.input_groups or self.inputs if g.name not in self.made_ahead]

    @cached_property
    def made_ahead(self) -> frozenset[str]:
        """Inputs that steps compute from the user's inputs."""
        made = {o for s in self.steps for o in s.outputs}
        return frozenset(p.name for p in self.inputs if p.name in made)

    @property
    def given_inputs(self) -> tuple[Port, ...]:
        """Inputs that the user passes: those that no step computes."""
        return tuple(p for p in self.inputs if p.name not in self.made_ahead)

    @property
    def output_names(self) -> list[str]:
        """Names of the user's outputs."""
        return [g.name for g in self.output_groups or self.outputs]

    @staticmethod
    def of(main: ir.OpView) -> Signature:
        """Return the signature of an entry function."""
        ins: list[Port] = []
        for name, t, attributes in zip(
            argument_names(main), argument_types(main), argument_attributes(main), strict=True
        ):
            ranges = _ranges(attributes.get(DIMS), t)
            ins.append(
                Port(
                    name,
                    t.dtype.name,
                    _dims(t),
                    ranges,
                    element=_element(attributes, t),
                    text=TEXT in attributes,
                )
            )
        outs = [
            Port(
                name,
                t.dtype.name,
                _dims(t),
                element=_element(attributes, t),
                shown=shown_of(attributes),
                text=TEXT in attributes,
            )
            for name, t, attributes in zip(
                result_names(main), result_types(main), result_attributes(main), strict=True
            )
        ]
        rules = ()
        if VALUES in main.attributes:
            rules = rules_of(ir.StringAttr(main.attributes[VALUES]).value)
        sizes = ()
        if SIZES in main.attributes:
            text = ir.StringAttr(main.attributes[SIZES]).value
            sizes = size_rules_of(text, {i: p.dims for i, p in enumerate(ins)})
        return Signature(
            tuple(ins),
            tuple(outs),
            *groups_of(main),
            (),
            rules,
            texts_of(main),
            steps=steps_of(main),
            sizes=sizes,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON value that from_json reads."""
        ports = ("inputs", "outputs", "input_groups", "output_groups")
        rows: dict[str, Any] = {key: [asdict(p) for p in getattr(self, key)] for key in ports}
        if self.variants:
            rows["variants"] = [[v.function, *map(list, v.sizes)] for v in self.variants]
            rows["alike"] = [
                [v.function, [list(map(list, g)) for g in v.alike]]
                for v in self.variants
                if v.alike
            ]
        if self.values:
            rows["values"] = [asdict(r) for r in self.values]
        if self.texts:
            rows["texts"] = list(self.texts)
        if self.in_place:
            rows["in_place"] = [list(pair) for pair in self.in_place]
        if self.steps:
            rows["steps"] = [asdict(s) for s in self.steps]
        if self.sizes:
            rows["sizes"] = [s.condition for s in self.sizes]
        return rows

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Signature:
        """Return the signature that to_json wrote."""

        def port(row: Mapping[str, Any]) -> Port:
            ranges = tuple(
                DimRange(r["min"], r["max"], tuple(r["optimals"]), r["symbol"])
                for r in row["ranges"]
            )
            element = row.get("element", "")
            shown = shown_from_json(row.get("shown"))
            dims, text = tuple(row["dims"]), bool(row.get("text", False))
            return Port(row["name"], row["dtype"], dims, ranges, element, shown, text)

        def groups(key: str) -> tuple[TensorGroup, ...]:
            rows = value.get(key, ())
            return tuple(TensorGroup(r["name"], r["count"], tuple(r.get("keys", ()))) for r in rows)

        def alike(name: str) -> tuple[tuple[tuple[int, int], ...], ...]:
            found = dict(value.get("alike", ())).get(name, ())
            return tuple(tuple((int(i), int(d)) for i, d in group) for group in found)

        inputs = tuple(port(r) for r in value["inputs"])
        dims = {i: p.dims for i, p in enumerate(inputs)}
        return Signature(
            inputs,
            tuple(port(r) for r in value["outputs"]),
            groups("input_groups"),
            groups("output_groups"),
            tuple(
                Variant(
                    str(name), tuple((int(i), int(d), int(n)) for i, d, n in sizes), alike(name)
                )
                for name, *sizes in value.get("variants", ())
            ),
            tuple(map(rule_from_json, value.get("values", ()))),
            tuple(value.get("texts", ())),
            tuple((int(i), int(k)) for i, k in value.get("in_place", ())),
            tuple(map(TextStep.from_json, value.get("steps", ()))),
            tuple(size_rule_of(row, dims) for row in value.get("sizes", ())),
        )

    def shared_names(self) -> list[str]:
        """Return the names of dims that a call can assign two sizes."""
        names = [r.symbol for p in self.inputs for r in p.ranges if r.symbol is not None]
        return [n for n in dict.fromkeys(names) if names.count(n) > 1]

    @cached_property
    def _text_numbers(self) -> dict[str, int]:
        return {s: i for i, s in enumerate(self.texts)}

    @cached_property
    def _shown_texts(self) -> np.ndarray:
        return shown_table(self.texts)

    @cached_property
    def _text_inputs(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.inputs if p.text)

    @cached_property
    def takes_texts(self) -> bool:
        """Return whether an input has strings, or is computed from them."""
        return bool(self.steps) or any(p.text for p in self.inputs)

    @interrupts.held
    def numbered(self, given: Mapping[str, object]) -> tuple[dict[str, object], CallTexts]:
        """Return inputs with indices in place of strings, and the strings of the call.

        Raises RunError for values that should be strings and are not.
        """
        call, found = CallTexts(self._text_numbers, self._shown_texts), dict(given)
        unmade = bool(self.steps) and not self.made_ahead <= found.keys()
        if unmade and self._sources <= found.keys():
            made = run_steps(self.steps, found)
            found.update((n, made[n]) for n in self.made_ahead)
        for name in self._text_inputs:
            if name in found:
                found[name] = call.numbers(name, found[name])
        return found, call

    @cached_property
    def _sources(self) -> frozenset[str]:
        return frozenset(sources(self.steps))

    def strings_for(self, drawn: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return inputs with strings in place of drawn numbers: the table's strings, and two
        others.
        """
        words = shown_table([*self.texts, "", "\N{SNOWMAN} none of the table"])
        found = {n: a for n, a in drawn.items() if n not in self.made_ahead}
        for p in self.inputs:
            if p.text and p.name in found:
                found[p.name] = strings_at(words, found[p.name] % (words.size - 2))
        return found

    @cached_property
    def gives_plain_arrays(self) -> bool:
        """Return whether outputs reach the user exactly as the code computes them."""
        stated = any(p.element or p.shown or p.text for p in self.outputs)
        return not self.output_groups and not stated

    def stated(self, outputs: Sequence[np.ndarray], call: CallTexts | None = None) -> list[Any]:
        """Return outputs as arrays of the user's types, or lists of them.

        `call` has the strings of the call, None if it had none.
        """
        if self.gives_plain_arrays:
            return list(outputs)
        texts = call or CallTexts(self._text_numbers, self._shown_texts)
        found: list[Any] = []
        for p, a in zip(self.outputs, outputs, strict=True):
            shown = p.stated(a)
            found.append(texts.strings(shown) if p.text else shown)
        if not self.output_groups:
            return found
        found = self.grouped(found)
        return [g.mapped(v) for g, v in zip(self.output_groups, found, strict=True)]

    def grouped(self, outputs: Iterable[Any]) -> list[Any]:
        """Return one value for each of the user's outputs, with lists joined."""
        if not self.output_groups:
            return list(outputs)
        source = iter(outputs)
        return [g.joined(source) for g in self.output_groups]

    def check_values(self, arrays: Sequence[np.ndarray], unread: Collection[str] = ()) -> None:
        """Raise RunError for a value that the operator that reads it does not accept.

        unread: inputs whose values are not known on the host; they are not checked.
        """
        for rule in self.values:
            read = [rule.input, *(i for i, axis, _ in rule.terms if axis < 0)]
            if unread and any(self.inputs[i].name in unread for i in read):
                continue
            problem = rule.problem(arrays, self.inputs[rule.input].name)
            if problem:
                raise RunError(problem, location=rule.where)

    def check_sizes(self, given: Sequence[Any]) -> None:
        """Raise SizesRefused for inputs of sizes that the program was not made for.

        given: arrays or tensors of the right ranks, or numbers, in order of the inputs.
        """
        if all(rule.holds(given) for rule in self.sizes):
            return
        names = [p.name for p in self.inputs]
        problems = filter(None, (rule.problem(given, names) for rule in self.sizes))
        raise SizesRefused(
            f"the program was traced for other sizes: {'; '.join(problems)}",
            notes=["export the model again with example inputs of such sizes"],
        )

    def value_check(self) -> Callable[[Sequence[np.ndarray]], None] | None:
        """Return `check_values` for arrays of the inputs' types; None if no values need checks."""
        if not self.values:
            return None
        # the layers of a model have the same rule
        distinct = dict.fromkeys(replace(r, where="") for r in self.values)
        rules = [r.quick(dtypes.from_name(self.inputs[r.input].dtype).np) for r in distinct]

        def check(arrays: Sequence[np.ndarray]) -> None:
            for is_right in rules:
                if not is_right(arrays):
                    return self.check_values(arrays)

        return check

    @interrupts.held
    def check_inputs(
        self, given: Mapping[str, object], unread: Collection[str] = ()
    ) -> list[np.ndarray]:
        """Return the arrays of `given` in order of the inputs.

        Plain Python values take the input's dtype; arrays must have it. unread: inputs in a
        device's memory, whose arrays have types and dims alone. Raises one RunError that lists
        every wrong name, dtype and shape.
        """
        if self.takes_texts:
            given, _ = self.numbered(given)
        given, problems = split(self.input_groups, given)
        known = {p.name for p in self.inputs}
        unknown = sorted(str(n) for n in given if n not in known)
        missing = [p.name for p in self.given_inputs if p.name not in given and not problems]
        if missing:
            problems.append(f"missing inputs: {', '.join(missing)}")
        if unknown:
            problems.append(f"unknown inputs: {', '.join(unknown)}")
        arrays: list[np.ndarray] = []
        sizes = _Sizes()
        for p in self.inputs:
            if p.name not in given:
                continue
            array, wrong = _as_array(p, given[p.name])
            problems += wrong
            if array is not None:
                problems += _check_dims(p, array, sizes)
                arrays.append(array)
        if not problems:
            self.check_values(arrays, unread)
        if problems or sizes.disagree:
            names = ", ".join(f"{p.name}: {p}" for p in self.given_inputs)
            text, notes = "; ".join([*problems, *sizes.problems]), [f"the inputs are {names}"]
            if problems:
                raise RunError(text, notes=notes)
            pairs = zip(self.inputs, arrays, strict=True)
            shapes = {p.name: a.shape for p, a in pairs if p.name not in self.made_ahead}
            raise NamesDisagree(text, sizes.disagree, shapes, notes=notes)
        self.check_sizes(arrays)
        return arrays


class _Sizes:
    """Sizes of named dims in a call, and the names that got two."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[int, str]] = {}
        self.disagree: list[str] = []
        self.problems: list[str] = []

    def add(self, symbol: str, size: int, name: str, dim: int) -> None:
        """Record the symbol's size in dim `dim` of input `name`."""
        first, where = self._first.setdefault(symbol, (size, name))
        if first != size:
            self.disagree += [] if symbol in self.disagree else [symbol]
            self.problems.append(
                f"input '{name}' dim {dim} is {size}, but '{symbol}' is {first} in '{where}'"
            )


def _as_array(p: Port, value: object) -> tuple[np.ndarray | None, list[str]]:
    dtype = dtypes.from_name(p.dtype)
    if not hasattr(value, "__array__") and not isinstance(value, memoryview):
        try:
            return plain_array(value, dtype), []
        except NotOfType as e:
            return None, [f"input '{p.name}' {e}"]
        except (ValueError, TypeError, OverflowError):
            return None, [f"input '{p.name}' expected {p}, got {type(value).__name__}"]
    array = native(np.asarray(value))
    if p.element:
        return _as_held(p, array)
    if array.dtype != dtype.np:
        return None, [f"input '{p.name}' expected {dtype.np.name}, got {array.dtype.name}"]
    return array, []


def _as_held(p: Port, array: np.ndarray) -> tuple[np.ndarray | None, list[str]]:
    """Return an array of the input's user type, or of its storage type."""
    kind = BY_NAME[p.element]
    if array.dtype == kind.np:
        return held_array(array, kind), []
    if array.dtype != kind.held.np:
        names = f"{kind.np.name} or {kind.held.np.name}"
        return None, [f"input '{p.name}' expected {names}, got {array.dtype.name}"]
    same = held_array(stated_array(array, kind), kind) == array
    if not np.all(same | (array != array)):
        return None, [f"input '{p.name}' expected values of {p.element}, got others"]
    return array, []


def _element(attributes: Mapping[str, ir.Attribute], t: TensorType) -> str:
    """Return the narrow type that an argument or result stands for, "" if it is the stored one."""
    if ELEMENT not in attributes:
        return ""
    kind = BY_NAME.get(ir.StringAttr(attributes[ELEMENT]).value)
    return kind.name if kind is not None and kind.held is t.dtype else ""


def _check_dims(p: Port, array: np.ndarray, sizes: _Sizes) -> list[str]:
    have = "{" + ", ".join(map(str, array.shape)) + "}"
    if array.ndim != len(p.dims) or any(
        d not in (-1, n) for d, n in zip(p.dims, array.shape, strict=True)
    ):
        return [f"input '{p.name}' expected {p}, got {have}"]
    problems: list[str] = []
    for i, (r, n) in enumerate(zip(p.ranges, array.shape, strict=False)):
        if n < r.min or (r.max is not None and n > r.max):
            problems.append(f"input '{p.name}' dim {i} expected {r}, got {n}")
        elif r.symbol is not None:
            sizes.add(r.symbol, n, p.name, i)
    return problems


def _dims(t: TensorType) -> tuple[int, ...]:
    return tuple(-1 if d == DYN else d for d in t.dims)


def _ranges(attribute: ir.Attribute | None, t: TensorType) -> tuple[DimRange, ...]:
    if attribute is None:
        return tuple(DimRange(d, d) if d != DYN else DimRange() for d in t.dims)
    return tuple(_range(entry) for entry in ir.ArrayAttr(attribute))


def _range(entry: ir.Attribute) -> DimRange:
    if isinstance(entry, ir.IntegerAttr):
        return DimRange(entry.value, entry.value)
    d = ir.DictAttr(entry)
    fields: dict[str, Any] = {d[i].name: d[i].attr for i in range(len(d))}
    return DimRange(
        ir.IntegerAttr(fields["min"]).value if "min" in fields else 0,
        ir.IntegerAttr(fields["max"]).value if "max" in fields else None,
        tuple(ir.DenseI64ArrayAttr(fields["optimals"])) if "optimals" in fields else (),
        ir.StringAttr(fields["symbol"]).value if "symbol" in fields else None,
    )
