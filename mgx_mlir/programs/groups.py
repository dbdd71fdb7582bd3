"""Lists and optionals at a program's interface, and the parameters and results that form them.

A program has only tensors. The elements of a model's list `x` are the parameters or results `x[0]`,
`x[1]`, ... An optional is its content, or absent. A list whose length is known only at run time is
one result, whose rows are the elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from mgx_mlir.core.ir import ir
from mgx_mlir.programs.program_ir import GROUPS

TENSOR = -1
ROWS = -2
Value = TypeVar("Value")


@dataclass(frozen=True)
class TensorGroup:
    """An input or output as the user sees it. It is a list of `count` tensors, one tensor (TENSOR),
    one tensor's rows as a list (ROWS), or nothing (None: an optional without content).

    With `keys` each row of an output's tensor is shown as a map from these keys to the row's
    numbers.
    """

    name: str
    count: int | None = TENSOR
    keys: tuple[str | int, ...] = ()

    @property
    def is_tensor(self) -> bool:
        """Return whether the user sees the tensor itself."""
        return self.count == TENSOR and not self.keys

    def mapped(self, value: Any) -> Any:
        """Convert an output to a list of maps or rows if it is one; return other values as they
        are.
        """
        if self.count == ROWS:
            return [value[i, ...] for i in range(len(value))]
        if not self.keys:
            return value
        return [dict(zip(self.keys, row, strict=True)) for row in value.tolist()]

    def __str__(self) -> str:
        if self.count is None:
            return "None"
        if self.count == ROWS:
            return "a list of tensors"
        return "a tensor" if self.count == TENSOR else f"a list of {self.count} tensors"

    def split(self, value: object) -> tuple[dict[str, object], str]:
        """Return a value's tensors by name, and a list of errors."""
        if self.count == TENSOR:
            return {self.name: value}, ""
        listed = cast(Sequence[object], value) if isinstance(value, list | tuple) else None
        if value is None and self.count is None:
            return {}, ""
        if listed is not None and len(listed) == self.count:
            return {f"{self.name}[{i}]": v for i, v in enumerate(listed)}, ""
        size = "no list" if listed is None else f"a list of {len(listed)}"
        got = "None" if value is None else size
        return {}, f"input '{self.name}' expected {self}, got {got}"

    def joined(self, values: Iterable[Value]) -> Value | list[Value] | None:
        """Return the user's value, from the next tensors of `values`."""
        source = iter(values)
        if self.count is None:
            return None
        return next(source) if self.count < 0 else [next(source) for _ in range(self.count)]


def split(
    groups: Sequence[TensorGroup], given: Mapping[str, object]
) -> tuple[dict[str, object], list[str]]:
    """Split the user's values into tensors by name; return them and a list of errors.

    Absent optionals may be missing. Other names stay, so elements may also be passed one by one.
    """
    known = {g.name: g for g in groups}
    out: dict[str, object] = {}
    problems: list[str] = []
    for name, value in given.items():
        if name not in known:
            out[name] = value
            continue
        tensors, wrong = known[name].split(value)
        out |= tensors
        problems += [wrong] if wrong else []
    return out, problems


def set_groups(
    function: ir.OpView, inputs: Sequence[TensorGroup], outputs: Sequence[TensorGroup]
) -> None:
    """Set the groups of an entry function; do nothing if all of them are tensors."""
    if all(g.is_tensor for g in (*inputs, *outputs)):
        return
    rows = [ir.ArrayAttr.get([_attribute(g) for g in groups]) for groups in (inputs, outputs)]
    function.attributes[GROUPS] = ir.ArrayAttr.get(rows)


def groups_of(function: ir.OpView) -> tuple[tuple[TensorGroup, ...], tuple[TensorGroup, ...]]:
    """Return the groups of inputs and of outputs; none if all of them are tensors."""
    if GROUPS not in function.attributes:
        return (), ()
    inputs, outputs = (
        tuple(_group(ir.DictAttr(entry)) for entry in ir.ArrayAttr(row))
        for row in ir.ArrayAttr(function.attributes[GROUPS])
    )
    return inputs, outputs


def _attribute(g: TensorGroup) -> ir.Attribute:
    entries: dict[str, ir.Attribute] = {"name": ir.StringAttr.get(g.name)}
    if g.count is None:
        entries["absent"] = ir.UnitAttr.get()
    elif g.count == ROWS:
        entries["rows"] = ir.UnitAttr.get()
    elif g.count != TENSOR:
        entries["count"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), g.count)
    if g.keys:
        entries["keys"] = ir.ArrayAttr.get([_key(k) for k in g.keys])
    return ir.DictAttr.get(entries)


def _key(key: str | int) -> ir.Attribute:
    i64 = ir.IntegerType.get_signless(64)
    return ir.StringAttr.get(key) if isinstance(key, str) else ir.IntegerAttr.get(i64, key)


def _group(d: ir.DictAttr) -> TensorGroup:
    name = ir.StringAttr(d["name"]).value
    if "absent" in d:
        return TensorGroup(name, None)
    if "rows" in d:
        return TensorGroup(name, ROWS)
    keys = tuple(a.value for a in ir.ArrayAttr(d["keys"])) if "keys" in d else ()
    return TensorGroup(name, ir.IntegerAttr(d["count"]).value if "count" in d else TENSOR, keys)
