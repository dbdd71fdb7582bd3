"""Names, element types and lists of the user's inputs and outputs, from our entry of a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.core.subbyte_types import BY_NAME, ELEMENT
from mgx_mlir.frontends.mxr.checks import Tree, as_list, as_map, as_text
from mgx_mlir.programs.groups import TENSOR, TensorGroup, set_groups
from mgx_mlir.programs.program_ir import NAME, SIZES, VALUES, argument_attributes, entry_block
from mgx_mlir.programs.shown import SHOWN, shown_from_json
from mgx_mlir.programs.size_rules import as_text as sizes_as_text
from mgx_mlir.programs.size_rules import size_rules_of
from mgx_mlir.programs.text_steps import TextStep, set_steps
from mgx_mlir.programs.texts import TEXT, TEXTS
from mgx_mlir.programs.value_rules import as_text as rules_as_text
from mgx_mlir.programs.value_rules import rules_of_named

# conversions of rules between files and function attributes
_Kind = tuple[Callable[..., Any], Callable[..., str]]
_VALUE_RULES: _Kind = (rules_of_named, rules_as_text)
_SIZE_RULES: _Kind = (size_rules_of, sizes_as_text)


def state_interface(main: Any, own: Mapping[str, Tree]) -> None:
    """Set the attributes of the entry function from `own`. FileError if they do not fit."""
    elements = as_map(own.get("elements", {}), "'elements'")
    block = entry_block(main)
    results = [v for op in _last(block) for v in op.operands]
    entries: list[dict[str, ir.Attribute]] = [{} for _ in results]
    names = [as_text(n, "'outputs'") for n in as_list(own.get("outputs"), "'outputs'")]
    if names:
        _check_count("outputs", names, results)
        for entry, name in zip(entries, names, strict=True):
            entry[NAME] = ir.StringAttr.get(name)
    _elements(entries, elements.get("outputs"), results)
    inputs = argument_attributes(main)
    _strings(main, own, inputs, entries)
    if any(entries):
        main.attributes["res_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(e) for e in entries])
    _elements(inputs, elements.get("inputs"), list(block.arguments))
    if elements or any(TEXT in e for e in inputs):
        main.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(e) for e in inputs])
    names_in = [ir.StringAttr(e[NAME]).value for e in inputs]
    _values(main, own, names_in, block)
    groups = as_map(own.get("groups", {}), "'groups'")
    if groups:
        given = _groups(groups.get("inputs"), names_in)
        set_groups(main, given, _groups(groups.get("outputs"), names or [""] * len(results)))


def _values(main: Any, own: Mapping[str, Tree], names: Sequence[str], block: Any) -> None:
    """Set the rules for the values and the sizes of inputs."""
    dims = {n: TensorType.of(a).dims for n, a in zip(names, block.arguments, strict=True)}
    for key, attribute, kind in (("values", VALUES, _VALUE_RULES), ("sizes", SIZES, _SIZE_RULES)):
        if key not in own:
            continue
        read, write = kind
        try:
            text = write(read(as_text(own[key], f"'{key}'"), dims))
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
            raise FileError(f"'{key}' is malformed") from None
        main.attributes[attribute] = ir.StringAttr.get(text)


def _strings(
    main: Any,
    own: Mapping[str, Tree],
    inputs: Sequence[dict[str, ir.Attribute]],
    results: Sequence[dict[str, ir.Attribute]],
) -> None:
    """Set the strings that elements index."""
    if "strings" not in own:
        return
    try:
        stated = json.loads(as_text(own["strings"], "'strings'"))
        main.attributes[TEXTS] = ir.ArrayAttr.get(
            [ir.StringAttr.get(str(t)) for t in stated["table"]]
        )
        for i in stated["inputs"]:
            inputs[i][TEXT] = ir.UnitAttr.get()
        for i in stated["outputs"]:
            results[i][TEXT] = ir.UnitAttr.get()
        for i, row in stated["shown"]:
            shown = shown_from_json(row)
            if shown is not None:
                results[i][SHOWN] = shown.attribute()
        set_steps(main, list(map(TextStep.from_json, stated["steps"])))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        raise FileError("'strings' is malformed") from None


def _last(block: ir.Block) -> list[ir.Operation]:
    operations = block.operations
    return [operations[len(operations) - 1].operation] if len(operations) else []


def _check_count(what: str, listed: Sequence[Any], there: Sequence[Any]) -> None:
    if len(listed) != len(there):
        raise FileError(f"'{what}' expected {len(there)} entries, got {len(listed)}")


def _elements(entries: list[dict[str, ir.Attribute]], tree: Tree, values: Sequence[Any]) -> None:
    """Set the narrow types that elements stand for."""
    listed = [as_text(n, "'elements'") for n in as_list(tree, "'elements'")]
    if not listed:
        return
    _check_count("elements", listed, values)
    for entry, name, value in zip(entries, listed, values, strict=True):
        kind = BY_NAME.get(name)
        if kind is None and name:
            raise FileError(f"'elements' has the unknown type '{name[:40]}'")
        if kind is not None and kind.held is TensorType.of(value).dtype:
            entry[ELEMENT] = ir.StringAttr.get(name)


def _groups(tree: Tree, names: Sequence[str]) -> list[TensorGroup]:
    """Return the groups formed by the tensors of these names."""
    found: list[TensorGroup] = []
    for row in as_list(tree, "'groups'"):
        pair = as_list(row, "a group")
        if len(pair) != 2:
            raise FileError(f"a group expected a name and a count, got {len(pair)} entries")
        count = pair[1]
        if count is not None and (isinstance(count, bool) or not isinstance(count, int)):
            raise FileError("a group expected a count")
        found.append(TensorGroup(as_text(pair[0], "a group"), count))
    counts = [0 if g.count is None else 1 if g.count == TENSOR else g.count for g in found]
    if any(c < 0 for c in counts) or sum(counts) != len(names):
        raise FileError(f"'groups' expected {len(names)} tensors in all")
    return found
