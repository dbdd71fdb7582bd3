"""Routes of torch operators to ONNX: exported as is, decomposed, replaced, or refused.

They are in the table `torch_routes.json`, which `docs/torch_routes.py` writes.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mgx_mlir.core.errors import UnsupportedModel
from mgx_mlir.frontends import torch_doubles, torch_scalars, torch_scan

TABLE = Path(__file__).with_name("torch_routes.json")
_HARMLESS = "harmless: "
_UNDECIDED = "refuse"  # route for an argument that only another release of the library drops

Row = Mapping[str, Any]


def routed(model: Any) -> Any:
    """Return an ExportedProgram with only operators that torch.onnx translates correctly.

    Returns the program itself if it has no others. Raises UnsupportedModel for operators without a
    route.
    """
    if all(_stays(node) for node in operators(model)):
        return model
    return model.run_decompositions(dict(_decompositions()))


def refuse_dropped(model: Any) -> None:
    """Raise UnsupportedModel if a program has arguments that its translation drops."""
    problems = [p for n in operators(model) for p in _lost(n.target, n.args, n.kwargs)]
    _refuse(text for text, _ in problems)


def operators(model: Any) -> Iterator[Any]:
    """Return the operator nodes of an ExportedProgram, including its branches and bodies."""
    for part in model.graph_module.modules():
        for node in getattr(getattr(part, "graph", None), "nodes", ()):
            if node.op == "call_function" and hasattr(node.target, "_schema"):
                yield node


def _stays(node: Any) -> bool:
    """Return whether a node is exported as is, by the exporter's first pass."""
    row = row_of(node.target)
    if row is None or torch_scalars.is_beyond(node.target, node.args):
        return False
    if torch_doubles.is_rounded(node.target, node.args, node.kwargs):
        return False
    return row["route"] in ("export", "translate") and not any(
        True for _ in _lost(node.target, node.args, node.kwargs)
    )


@cache
def table() -> Mapping[str, Any]:
    """Return the table: `made_with`, its libraries' versions, and the rows by operator."""
    return json.loads(TABLE.read_text(encoding="utf-8"))


def row_of(target: Any) -> Row | None:
    """Return the row of an operator, None if there is none."""
    return table()["operators"].get(target.name()) if hasattr(target, "_schema") else None


@cache
def _dropped(name: str) -> Mapping[str, Any]:
    """Return the arguments of an operator that its translation drops, with the route of each.

    For releases of the libraries other than the table's, the translations are read here.
    """
    decided = table()["operators"].get(name, {}).get("drops", {})
    if table()["made_with"] == torch_scan.installed():
        return decided
    return {a: decided.get(a, _general(a)) for a in torch_scan.arguments(name)[1]}


def _general(argument: str) -> Any:
    return table()["arguments"].get(argument, _UNDECIDED)


def _lost(target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Any]:
    """Return the call's argument values that a translation drops: a message, and the route."""
    drops = _dropped(target.name())
    if not drops:
        return
    for i, a in enumerate(target._schema.arguments):
        decided = drops.get(a.name, _HARMLESS)
        if str(decided).startswith(_HARMLESS):
            continue
        if i < len(args):
            value = args[i]
        elif a.name in kwargs:
            value = kwargs[a.name]
        else:
            continue
        if not a.has_default_value() or not _same(value, a.default_value):
            yield f"{target}: torch.onnx drops its '{a.name}' ({_short(value)})", decided


def _same(value: Any, default: Any) -> bool:
    try:
        return type(value) is type(default) and bool(value == default)
    except Exception:  # a tensor of several elements
        return False


def _short(value: Any) -> str:
    plain = value is None or isinstance(value, bool | int | float | str)
    return repr(value) if plain else type(value).__name__


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Return torch's own decompositions of operators."""
    torch: Any = importlib.import_module("torch")  # already imported: the program is torch's
    known = {**torch._decomp.decomposition_table, **torch.export.default_decompositions()}
    return {t: d for t, d in known.items() if hasattr(t, "_schema")}  # without Python functions


@cache
def _decompositions() -> Mapping[Any, Callable[..., Any]]:
    """Return the decomposition table: a function for each operator that must not stay."""
    torch: Any = importlib.import_module("torch")  # already imported: the program is torch's
    known = decompositions()
    found: dict[Any, Callable[..., Any]] = {}
    for target, decomposition in known.items():
        row = row_of(target)
        if row is None or row["route"] == "decompose":
            found[target] = decomposition
    for name, row in table()["operators"].items():
        target = _target(torch, name)
        if target is None:
            continue
        if row["route"] == "write":
            found[target] = _function(row["function"])
        elif row["route"] == "refuse":
            found[target] = _refusing(f"{target}: {row['why']}")
        elif row["route"] == "export" and not _all_harmless(_dropped(name)):
            found[target] = _guarded(target, known.get(target))
        elif name in torch_scalars.OPERATORS:
            found[target] = torch_scalars.in_f32(target)
        elif name in torch_doubles.FUNCTIONS:
            found[target] = torch_doubles.in_f64(target)
    return found


def _all_harmless(drops: Mapping[str, Any]) -> bool:
    return all(str(d).startswith(_HARMLESS) for d in drops.values())


def _target(torch: Any, name: str) -> Any:
    """Return an operator by name; None if this torch lacks it, or has not loaded it."""
    space, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    try:
        return getattr(getattr(getattr(torch.ops, space), packet), overload or "default")
    except (AttributeError, RuntimeError):
        return None


def _function(place: str) -> Callable[..., Any]:
    """Return the function of a table's row: `module.name`, in a module beside this one."""
    module, _, name = place.partition(".")
    return getattr(importlib.import_module(f"mgx_mlir.frontends.{module}"), name)


def _guarded(target: Any, decomposition: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return a function that decomposes only calls whose translation drops an argument.

    For others it returns NotImplemented, which keeps the operator.
    """

    def decide(*args: Any, **kwargs: Any) -> Any:
        problems = [*_lost(target, args, kwargs)]
        if not problems:
            return NotImplemented
        if decomposition is None or any(d != "decompose" for _, d in problems):
            _refuse(text for text, _ in problems)
        return decomposition(*args, **kwargs)  # type: ignore[misc]

    return decide


def _refusing(text: str) -> Callable[..., Any]:
    def refuse(*_args: Any, **_kwargs: Any) -> Any:
        raise UnsupportedModel(text)

    return refuse


def _refuse(texts: Iterable[str]) -> None:
    found = list(dict.fromkeys(texts))
    if found:
        raise UnsupportedModel("; ".join(found))
