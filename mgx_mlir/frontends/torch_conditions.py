"""Conditions on sizes under which torch traced a program, as size rules of the program.

torch.export records each comparison of sizes that selected a path of the trace. These are in the
model (`if x.shape[0] > 3`), in operators, and in the decompositions of torch.onnx and ours.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from mgx_mlir.core.errors import UnsupportedModel
from mgx_mlir.programs.size_rules import SIZE, Form, SizeRule

# functions of sympy and torch on sizes, by name -> operators of rules
_OPERATORS = {
    "Add": "+", "Mul": "*", "FloorDiv": "//", "CleanDiv": "//", "Mod": "%", "PythonMod": "%",
    "IntTrueDiv": "/", "FloatTrueDiv": "/", "Equality": "==", "Unequality": "!=",
    "StrictLessThan": "<", "LessThan": "<=", "And": "and", "Or": "or", "Not": "not", "Max": "max",
    "Min": "min", "ToFloat": "float", "FloorToInt": "floor", "CeilToInt": "ceil",
    "TruncToInt": "trunc", "RoundToInt": "round", "floor": "floor", "ceiling": "ceil",
}  # fmt: skip
# operators with dynamic length in programs; torch unrolls them to infer their shapes
_RECURRENT = {"aten.lstm.input", "aten.gru.input", "aten.rnn_tanh.input", "aten.rnn_relu.input"}
_TURNED = {"GreaterThan": "<=", "StrictGreaterThan": "<"}
_LARGEST_POWER = 8  # larger powers of sizes overflow


def size_rules(exported: Any, names: Sequence[str]) -> list[SizeRule]:
    """Return the conditions on the inputs of an ExportedProgram; `names` has them in order.

    Raises UnsupportedModel for a condition that no rule can express.
    """
    sympy: Any = importlib.import_module("sympy")  # installed with torch
    sources: dict[Any, Form] = {}
    environments: dict[int, Any] = {}
    strides: set[Any] = set()  # strides do not matter: a program takes elements in row-major order
    given = [n for n in exported.graph.nodes if n.op == "placeholder" and n.name in names]
    for node in given:
        value, at = node.meta.get("val"), names.index(node.name)
        sizes = enumerate(value.shape) if hasattr(value, "shape") else [(-1, value)]
        if hasattr(value, "stride"):
            steps = (*value.stride(), value.storage_offset())
            strides |= {s.node._expr for s in steps if hasattr(s, "node")}
        for axis, size in sizes:
            if hasattr(size, "node"):
                environments[id(size.node.shape_env)] = size.node.shape_env
                sources.setdefault(size.node._expr, (SIZE, at, axis))
    found: dict[Any, None] = {}
    loops = any(str(n.target) in _RECURRENT for n in exported.graph.nodes)
    for environment in environments.values():
        # a constant argument is no input: its symbol is the number
        known = {s: n for s, n in environment.replacements.items() if s not in sources}
        guards = (g for g in environment.guards if not (loops and _of_a_loop(g)))
        found.update(dict.fromkeys(g.expr.xreplace(known) for g in guards))
    stated = {s for c in found if len(c.free_symbols) == 1 for s in c.free_symbols}
    for symbol, limits in exported.range_constraints.items():
        # a program from a file has only these guards; others concern data
        if symbol in sources and symbol not in stated:
            found.update(dict.fromkeys(_limits(symbol, limits)))
    strides -= sources.keys()
    rules = (c for c in found if c != sympy.true and not strides & c.free_symbols)
    return [SizeRule(_form(c, sources)) for c in rules]


def _of_a_loop(guard: Any) -> bool:
    """Return whether a guard comes from the decomposition of a loop that only infers shapes."""
    return getattr(guard.sloc.framework_loc, "name", "") == "decompose"


def _limits(symbol: Any, limits: Any) -> list[Any]:
    """Return the conditions of a symbol's range; torch's minimum of 2 for dynamic dims stands for
    0.
    """
    found = [symbol >= limits.lower] if limits.lower > 2 else []
    if limits.upper.is_Integer:
        found.append(symbol <= limits.upper)
    return found


def _form(condition: Any, sources: Mapping[Any, Form]) -> Form:
    def form(e: Any) -> Form:
        if e in sources:
            return sources[e]
        name = type(e).__name__
        if e.is_number:
            return int(e) if e.is_integer else float(e)
        if name in ("BooleanTrue", "BooleanFalse"):
            return bool(e)
        if name == "Identity":
            return form(e.args[0])
        if name in ("Pow", "PowByNatural") and e.args[1].is_integer:
            base, power = e.args
            if power.is_number and 0 < power <= _LARGEST_POWER:
                return ("*", *[form(base)] * int(power))
        if name in _TURNED:
            return (_TURNED[name], form(e.args[1]), form(e.args[0]))
        if name in _OPERATORS:
            return (_OPERATORS[name], *map(form, e.args))
        raise UnsupportedModel(
            f"the program was traced for sizes with {condition}, which no check states"
        )

    return form(condition)
