"""The registry of ONNX operators: one function per operator, found by domain, name and opset."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mgx_mlir.core import defined_again, plugins
from mgx_mlir.frontends.signatures import ImporterT, Operator, signature_of


@dataclass(frozen=True)
class OnnxOp(Operator):
    """One registered operator: its function, and the facts of the function's signature.

    Operands are the positional parameters after (b, node): those without a default are required,
    a default of None marks an optional one, `*rest` takes any number. Keyword parameters are the
    attributes with the schema's defaults.
    """

    domain: str
    since: int


CONSUMED: Mapping[str, Any] = {
    "consumed_inputs": None
}  # attribute of opset 1, a permission to reuse memory
# versions, newest first; threads may read while another one registers
_OPS: dict[tuple[str, str], tuple[OnnxOp, ...]] = {}


def onnx_op(
    *names: str,
    since: int = 1,
    domain: str = "",
    structures: bool = False,
    legacy: Mapping[str, Any] | None = None,
) -> Callable[[ImporterT], ImporterT]:
    """Register `f(b, node, *operands, **attributes)` for operators from opset `since` on.

    `f` returns the result value, or a tuple with one entry per output (None for an output that is
    not computed). It raises MgxError if operands or attributes do not fit; the importer adds the
    location. With `structures` operands may be sequences and optionals (structures.py) as well as
    tensors. `legacy` are additional attributes of opset 1 without effect, with their defaults; `f`
    is registered for opset 1 too.
    """

    def register(function: ImporterT) -> ImporterT:
        stated = vars(signature_of(function))
        for name in names:
            entry = OnnxOp(
                name=name, domain=domain, since=since, function=function, structures=structures,
                **stated,
            )  # fmt: skip
            entries = [entry]
            if legacy is not None:
                entries.append(replace(entry, since=1, attributes={**entry.attributes, **legacy}))
            before = _OPS.get((domain, name), ())
            key = (domain, name, since)
            if defined_again.again("ONNX operator", key, function.__module__):
                made = {e.since for e in entries}
                before = tuple(v for v in before if v.since not in made)
            versions = (*entries, *before)
            if len({v.since for v in versions}) < len(versions):
                raise TypeError(f"ONNX operator {domain}::{name} since {since} is registered twice")
            _OPS[domain, name] = tuple(sorted(versions, key=lambda v: -v.since))
        return function

    return register


def onnx_table(
    functions: Mapping[str, Callable[..., Any]],
    *,
    since: int = 1,
    domain: str = "",
    legacy: Mapping[str, Any] | None = None,
) -> None:
    """Register operators given by one expression: `{"Elu": lambda b, x, *, alpha=1.0: b.elu(x,
    alpha)}`.

    Such a function has no `node`. The types of its attributes are those of their defaults.
    """
    for name, function in functions.items():
        onnx_op(name, since=since, domain=domain, legacy=legacy)(_with_node(function))


def _with_node(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with an unused parameter `node` after the builder."""

    @functools.wraps(function)
    def importer(b: Any, node: Any, *operands: Any, **attributes: Any) -> Any:
        return function(b, *operands, **attributes)

    builder, *rest = inspect.signature(function).parameters.values()
    typed = [
        p.replace(annotation=type(p.default).__name__) if p.kind is p.KEYWORD_ONLY else p
        for p in rest
    ]
    parameters = [builder, inspect.Parameter("node", builder.kind), *typed]
    vars(importer)["__signature__"] = inspect.Signature(parameters)
    return importer


def find(domain: str, name: str, opset: int) -> OnnxOp | None:
    """Return the operator's version for a model of this opset: the largest `since` not above it."""
    return next((v for v in _OPS.get((domain, name), ()) if v.since <= opset), None)


def oldest(domain: str, name: str) -> int | None:
    """Return the first opset with the operator; None for an unknown operator."""
    versions = _OPS.get((domain, name))
    return versions[-1].since if versions else None


_REFUSED: dict[tuple[str, str], str] = {}


def refuse(*names: str, domain: str, why: str) -> None:
    """Register reasons why operators are not supported, for errors."""
    _REFUSED.update({(domain, name): why for name in names})


def refused(domain: str, name: str) -> str:
    """Return why an operator is not supported; empty without a reason."""
    return _REFUSED.get((domain, name), "")


def refusals() -> list[tuple[str, str, str]]:
    """Return every refused operator with its reason, sorted."""
    return sorted((*key, why) for key, why in _REFUSED.items())


def versions(domain: str, name: str) -> list[OnnxOp]:
    """Return the registered versions of an operator, the newest first."""
    return list(_OPS.get((domain, name), ()))


def has_foreign() -> bool:
    """Return whether an importer is neither of this package nor of a plugin.

    Its code may change at any time. Cache keys include the versions and the files of plugins.
    """
    return any(
        not v.function.__module__.startswith("mgx_mlir.")
        and plugins.owner(v.function.__module__) is None
        for found in list(_OPS.values())
        for v in found
    )


def operators() -> list[tuple[str, str]]:
    """Return every registered (domain, name), sorted."""
    return sorted(_OPS)
