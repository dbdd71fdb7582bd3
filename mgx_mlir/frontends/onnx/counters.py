"""Loops that count up to a bound: the number of iterations follows from the condition.

    while_loop(i, bound, ..): i' = i + 1; continue while i' < bound

Frameworks write most loops this way. With a known number of iterations, no condition is evaluated
after each one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx.external_data_helper
import onnx.numpy_helper

from mgx_mlir.core.records import dataclass

_SAME = ("Identity", "Cast")  # ops that keep a counter's value


@dataclass(frozen=True)
class Counter:
    """A loop continues while a number is below a bound, or equal to it (`inclusive`).

    After the first iteration the number is `first` if it is the body's own count, else the carried
    value `state` plus `first`. It grows by one in each iteration. The bound is a constant carried
    value, the name of an outer value, or a number.
    """

    state: int | None
    first: int
    bound: int | str
    bound_is_state: bool
    inclusive: bool


def counters(
    body: onnx.GraphProto, known: Callable[[str], int | None] = lambda name: None
) -> list[Counter] | None:
    """Return the counters that must all continue for the condition to hold; None for other loops.

    known: gives the whole number that an outer value is, where that is known.
    """
    return _Body(body, known).conditions(body.output[0].name) if body.output else None


class _Body:
    def __init__(self, body: onnx.GraphProto, known: Callable[[str], int | None]) -> None:
        self.known = known
        self.made: dict[str, onnx.NodeProto] = {o: n for n in body.node for o in n.output if o}
        self.held = {t.name: t for t in body.initializer}
        self.inputs = {v.name: i for i, v in enumerate(body.input)}
        self.outputs = [o.name for o in body.output]

    def conditions(self, name: str) -> list[Counter] | None:
        """Return the comparisons of a condition that must all hold, each value once.

        A file may have any nodes: chains without end, cycles, other numbers of inputs.
        """
        found: list[Counter] = []
        left, seen = [name], set[str]()
        while left:
            name = left.pop()
            if name in seen:
                continue
            seen.add(name)
            node = self.made.get(name)
            if node is None:
                if self.inputs.get(name) != 1:
                    return None
                continue  # the incoming condition: the loop continues
            if node.op_type in ("And", "Identity"):
                left.extend(node.input)
                continue
            counter = self.compared(node)
            if counter is None:
                return None
            found.append(counter)
        return found

    def compared(self, node: onnx.NodeProto) -> Counter | None:
        """Return the counter and bound of a comparison."""
        kind, inputs = node.op_type, list(node.input)
        if kind.startswith("Greater"):
            kind, inputs = kind.replace("Greater", "Less"), inputs[::-1]
        if kind not in ("Less", "LessOrEqual") or len(inputs) != 2:
            return None
        return self.counter(*inputs, inclusive=kind == "LessOrEqual")

    def counter(self, number: str, bound: str, *, inclusive: bool) -> Counter | None:
        counted = self.counted(self.source(number))
        until = self.until(self.source(bound))
        if counted is None or until is None:
            return None
        return Counter(*counted, *until, inclusive)

    def source(self, name: str) -> str:
        """Return the value that a number is a copy or an exact conversion of."""
        seen = set[str]()
        while (node := self.made.get(name)) is not None and node.op_type in _SAME:
            if len(node.input) != 1 or name in seen:
                break
            if node.op_type == "Cast" and not _keeps_counts(node):
                break
            seen.add(name)
            name = node.input[0]
        return name

    def counted(self, name: str) -> tuple[int | None, int] | None:
        """Return the carried value (None for the body's count), and the number added to it."""
        step = self.added(name)
        if step is None:
            return None
        start, number = step
        at = self.inputs.get(start)
        if at == 0:
            return None, number
        if at is None or at < 2 or at - 1 >= len(self.outputs):
            return None
        again = self.added(self.source(self.outputs[at - 1]))
        if again != (start, 1):
            return None  # the counter does not grow by one
        return at - 2, number

    def added(self, name: str) -> tuple[str, int] | None:
        """Return a sum's body input and known addend."""
        node = self.made.get(name)
        if node is None:
            return (name, 0) if name in self.inputs else None
        if node.op_type != "Add" or len(node.input) != 2:
            return None
        for value, number in (node.input, reversed(node.input)):
            known = self.number(self.source(number))
            start = self.source(value)
            if known is not None and start in self.inputs:
                return start, known
        return None

    def number(self, name: str) -> int | None:
        """Return an integer constant of the body."""
        tensor = self.held.get(name)
        node = self.made.get(name)
        if tensor is None and node is not None and node.op_type == "Constant":
            tensor = next((a.t for a in node.attribute if a.name == "value"), None)
        if tensor is None and node is None and name not in self.inputs:
            return self.known(name)
        if tensor is None or onnx.external_data_helper.uses_external_data(tensor):
            return None
        if any(d != 1 for d in tensor.dims):
            return None
        try:
            known = onnx.numpy_helper.to_array(tensor).reshape(-1)
        except (TypeError, ValueError):
            return None  # reading the node reports the error
        if known.dtype.kind not in "iuf" or not np.isfinite(known[0]) or known[0] % 1:
            return None
        return int(known[0])

    def until(self, name: str) -> tuple[int | str, bool] | None:
        known = self.number(name)
        if known is not None:
            return known, False
        at = self.inputs.get(name)
        if at is None:
            return None if name in self.made or name in self.held else (name, False)
        if at < 2 or at - 1 >= len(self.outputs) or self.source(self.outputs[at - 1]) != name:
            return None
        return at - 2, True


def _keeps_counts(node: onnx.NodeProto) -> bool:
    """Return whether a conversion keeps iteration counts exact: to i32, i64, f32 or f64.

    An f32 is exact up to 2^24, more iterations than such a loop has.
    """
    to = next((a.i for a in node.attribute if a.name == "to"), 0)
    kinds = onnx.TensorProto
    return to in (kinds.INT32, kinds.INT64, kinds.FLOAT, kinds.DOUBLE)
