"""A generated function for calls with the shapes of earlier ones.

It checks, copies, calls and takes results as `LoadedModule.run` does, with few loops, attribute
lookups and Python calls. After a kernel has evicted the interpreter's data from the caches, each of
these costs three times as much. The function is generated for the number of inputs and the types
and shapes of the outputs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mgx_mlir.core import forks, interrupts
from mgx_mlir.runtime.device import IREE_ERRORS
from mgx_mlir.runtime.prepared_calls import COPY_BELOW, PreparedCall, Shapes

if TYPE_CHECKING:
    from mgx_mlir.runtime.iree_runtime import LoadedModule
    from mgx_mlir.runtime.ports import Port

_MOST_SHAPES = 16
_MOST_INPUTS = 64
Check = Callable[[Sequence[np.ndarray]], None]


def can_be_direct(module: LoadedModule) -> bool:
    """Return whether a module's calls can be made by such a function."""
    return module.prepared is not None and len(module.inputs) <= _MOST_INPUTS


class DirectCalls:
    """The function, and the shapes that it accepts.

    names: of the inputs, in order. check: raises RunError for input values that the code cannot
    take; None without such a check. The module must run on this machine's CPU.
    """

    def __init__(self, module: LoadedModule, names: Sequence[str], check: Check | None) -> None:
        self.module = module
        self._known: dict[Shapes, list[PreparedCall]] = {}
        # `call(given)` returns the results, or None for unknown shapes
        self.call = _made(module, names, check, self._known)

    def add(self, shapes: Shapes) -> None:
        """Record that inputs of these shapes passed all checks."""
        calls = self.module.prepared
        free = None if calls is None else calls.free_at(shapes)
        if free is not None:
            if len(self._known) >= _MOST_SHAPES:
                self._known.clear()
            self._known[shapes] = free


def _made(
    module: LoadedModule, names: Sequence[str], check: Check | None,
    known: dict[Shapes, list[PreparedCall]],
) -> Callable[[dict[str, Any]], list[np.ndarray] | None]:  # fmt: skip
    outputs = module.outputs
    values: dict[str, Any] = {
        "module": module, "known": known, "check": check, "ndarray": np.ndarray,
        "char": ctypes.c_char.from_buffer, "addressof": ctypes.addressof, "errors": IREE_ERRORS,
        "is_callers": interrupts.is_callers,
        "variants": module.list_type, "view": module.view_type, "count": forks.count,
        "forked": module.device.fork, "outputs": outputs,
    }  # fmt: skip
    for i, (name, port) in enumerate(zip(names, module.inputs, strict=True)):
        values[f"name{i}"], values[f"type{i}"] = name, port.np
    for i, port in enumerate(outputs):
        values[f"kind{i}"], values[f"raw{i}"], values[f"shape{i}"] = port.np, port.raw, port.static
    lines = [
        *_checks(len(names), check is not None, module.may_be_lost),
        *_arguments(module.inputs),
        *_invocation(len(outputs)),
        *_results(outputs),
        "free.append(call)",
        "return found",
    ]
    body = "\n".join(f"  {line}" for line in lines)
    text = f"def factory({', '.join(values)}):\n def call(given):\n{body}\n return call\n"
    space: dict[str, Any] = {"__name__": __name__}
    # the text depends on numbers of ports; names, types and shapes are values of its variables
    exec(text, space)
    return space["factory"](**values)


def _each(text: str, count: int, between: str = ", ") -> str:
    return between.join(text.format(i=i) for i in range(count))


def _checks(count: int, has_check: bool, may_be_lost: bool) -> list[str]:
    """Check inputs as `KnownInputs` does, and take the arguments of a call of their shapes."""
    wrong = _each("type(a{i}) is not ndarray or a{i}.dtype is not type{i}", count, " or ")
    lines = [
        f"if len(given) != {count}: return None",
        *(f"a{i} = given.get(name{i})" for i in range(count)),
        f"if {wrong}: return None",
        # read before `lanes`: keeps the weights during a concurrent `close`
        "held, lanes = module.held, module.lanes",
        f"free = known.get(({_each('a{i}.shape', count)},))",
        "if not free or lanes is None: return None",
    ]
    if may_be_lost:
        lines.append("if count() != forked: return None")
    if has_check:
        lines.append(f"check(({_each('a{i}', count)},))")
    # another thread may have taken the last one
    return [
        *(*lines, "try: call = free.pop()", "except IndexError as e:"),
        *(" if is_callers(e): raise", " return None"),
    ]


def _arguments(ports: Sequence[Port]) -> list[str]:
    """Copy small inputs, and reuse arguments of large ones whose addresses are unchanged."""
    count = len(ports)
    # address -1: an array of a special type
    at = [f"addressof(char(a{i}))" if p.as_is else "-1" for i, p in enumerate(ports)]
    return [
        f"({_each('own{i}', count)},) = call.own",
        "arguments, spans = call.arguments, call.spans",
        "if arguments is not None:",
        *(f" own{i}[...] = a{i}" for i in range(count)),
        "else:",
        " placed = call.placed",
        f" try: places = ({_each('0 if own{i} is not None else {{}}', count)},)".format(*at),
        " except (TypeError, ValueError) as e:",
        "  if is_callers(e): raise",
        "  placed = None",  # with gaps, or read-only
        " if placed is None or places != call.places:",
        f"  found = module.make(call, ({_each('a{i}', count)},))",
        "  free.append(call)",
        "  return found",
        *(f" if own{i} is not None: own{i}[...] = a{i}" for i in range(count)),
        " arguments, spans = placed",
    ]


def _invocation(count: int) -> list[str]:
    """Call the code in the first context, or by `Lanes` if there are several."""
    return [
        f"results = variants({count})",
        "context, lock = lanes.first",
        # `acquire` in a condition would leak the lock where a signal handler raises after it
        "if not lock.locked():",
        " try:",
        "  with lock: context.invoke(call.entry.function, arguments, results)",
        " except errors as e: module.fail(call.entry, arguments, tuple(given.values()), held, e)",
        "else:",
        " results = module.call(call.entry, arguments, tuple(given.values()))",
    ]


def _results(outputs: Sequence[Port]) -> list[str]:
    """Take results as `LoadedModule.take` does."""
    small = [p.static is not None and 0 < p.size < COPY_BELOW for p in outputs]
    made = "ndarray(shape{i}, kind{i}, results.get_as_object({i}, view).map())"
    if all(small):
        return [f"found = [{_each(made + '.copy()', len(outputs))}]"]
    if len(outputs) > 1 or outputs[0].size == 0:
        return ["found = module.take(outputs, results, spans)"]
    raw = "" if outputs[0].as_is else ".view(raw0)"
    own = [
        f"begin = addressof(char(out{raw}))",
        "if module.is_used(begin, begin + out.nbytes, spans): out = out.copy()",
        "found = [out]",
    ]
    if outputs[0].static is not None:
        return [f"out = {made.format(i=0)}", *own]
    return [
        "of = results.get_as_object(0, view)",
        "shape = tuple(of.shape)",
        "if 0 in shape:",
        " found = module.take(outputs, results, spans)",
        "else:",
        " out = ndarray(shape, kind0, of.map())",
        f" if out.nbytes < {COPY_BELOW}:",
        "  found = [out.copy()]",
        " else:",
        *(f"  {line}" for line in own),
    ]
