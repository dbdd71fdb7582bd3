"""Torch operators for value checks in graphs, and their translations to ONNX.

They are in a domain of this package, which `onnx/ops/torch_checks.py` imports.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

DOMAIN = "mgx_mlir.torch"  # domain in ONNX
NO_LIMIT = -1  # stands for an unlimited number of values
_SPACE = "mgx_mlir"  # namespace in torch
_HELD: list[Any] = []  # libraries, kept alive: torch drops operators with their library


@dataclass(frozen=True)
class CheckOperators:
    """Torch operators that represent checks."""

    within: Any
    require: Any
    require_number: Any


@cache
def check_operators() -> CheckOperators:
    """Return the operators, defined at the first call and for the life of the process."""
    torch: Any = importlib.import_module("torch")  # already imported: the program is torch's
    library = torch.library.Library(_SPACE, "FRAGMENT")
    library.define(
        "within(Tensor x, Tensor? of, int dim, int low, SymInt below, bool wraps, str what, "
        "str operator) -> Tensor"
    )
    library.define("require(Tensor x, Tensor condition, str expected) -> Tensor")
    library.define("require.number(Tensor x, Scalar condition, str expected) -> Tensor")
    for name in ("within", "require", "require.number"):
        library.impl(name, lambda x, *_: x.clone(), "CompositeExplicitAutograd")
    _HELD.append(library)
    made = getattr(torch.ops, _SPACE)
    return CheckOperators(made.within.default, made.require.default, made.require.number)


def check_translations() -> dict[Any, Callable[..., Any]]:
    """Return torch.onnx's translations of the operators."""
    kinds = check_operators()

    def within(x, of, dim, low, below, wraps, what, operator):
        n = None if isinstance(below, int) and below == NO_LIMIT else below
        named = {"dim": dim, "low": low, "wraps": int(wraps), "what": what, "operator": operator}
        return _onnx("Within")(x, of, n, **named)

    def require(x, condition, expected):
        return _onnx("Require")(x, condition, expected=expected)

    return {kinds.within: within, kinds.require: require, kinds.require_number: require}


@cache
def _onnx(name: str) -> Any:
    """Return an operator of the domain in the form that onnxscript calls."""
    defs: Any = importlib.import_module("onnx").defs  # installed with the exporter
    values: Any = importlib.import_module("onnxscript").values  # installed with the exporter
    schema = defs.OpSchema
    kinds = defs.get_schema("Identity").type_constraints[0].allowed_type_strs  # any type
    if name == "Within":
        operands, attributes = ("x", "of", "below"), ("dim", "low", "wraps", "what", "operator")
    else:
        operands, attributes = ("x", "condition"), ("expected",)
    texts = ("what", "operator", "expected")
    optional = schema.FormalParameterOption.Optional
    made = schema(
        name, DOMAIN, 1,
        inputs=[
            schema.FormalParameter(o, f"T{i}", param_option=optional)
            if o in ("of", "below")
            else schema.FormalParameter(o, f"T{i}")
            for i, o in enumerate(operands)
        ],
        outputs=[schema.FormalParameter("y", "T0")],
        type_constraints=[(f"T{i}", kinds, "") for i in range(len(operands))],
        attributes=[
            schema.Attribute(a, schema.AttrType.STRING if a in texts else schema.AttrType.INT)
            for a in attributes
        ],
    )  # fmt: skip
    return values.Op(values.Opset(DOMAIN, 1), name, made)
