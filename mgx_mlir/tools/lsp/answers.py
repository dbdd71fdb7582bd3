"""Answers of the server, without the protocol: docs of ops, types of values, diagnostics."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass

import mgx_mlir.dialects  # noqa: F401  (the op classes that a context is made with)
from mgx_mlir.core.attrs import REQUIRED, AttrDef
from mgx_mlir.core.context import new_context
from mgx_mlir.core.errors import MgxError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.mlir_text import checked_text
from mgx_mlir.core.op import OPS, PREFIX, Op
from mgx_mlir.core.operand_segments import parse_module
from mgx_mlir.core.parse_errors import find_fault
from mgx_mlir.tools.lsp.text import BORDER, Source
from mgx_mlir.tools.opt.diagnostics import Diagnostic, collecting, of_error, of_fault, position

_STATED = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)")
_VALUE = re.compile(r"([A-Za-z_]\w*)\s*=\s*\"?(\w*)$")


@dataclass
class Checked:
    """Parse of a text: diagnostics, and the types of results by position.

    Lines and columns count from 1, columns in bytes, as MLIR's do.
    """

    diagnostics: list[Diagnostic]
    types: dict[tuple[int, int], list[str]]


def check(text: str, name: str) -> Checked:
    """Parse and verify a text; each input of a split file on its own."""
    found = Checked([], {})
    try:
        checked_text(text.encode(errors="surrogatepass"), name)
    except MgxError as e:
        found.diagnostics += of_error(e)
        return found
    for piece in _pieces(text):
        _check_piece(piece, found)
    return found


def _pieces(text: str) -> Iterator[str]:
    start = 0
    for border in [*BORDER.finditer(text), None]:
        end = len(text) if border is None else border.start()
        yield "\n" * text.count("\n", 0, start) + text[start:end]
        start = end if border is None else border.end()


def _check_piece(text: str, found: Checked) -> None:
    context = new_context()
    with context, collecting(context) as seen:
        try:
            with WeightStore().active():
                module = parse_module(text, context)

                def visit(op: ir.Operation) -> ir.WalkResult:
                    _, line, column = position(op.location)
                    if line:
                        found.types[line, column] = [str(r.type) for r in op.results]
                    return ir.WalkResult.ADVANCE

                module.operation.walk(visit)
        except ir.MLIRError:
            if not any(d.severity == "error" for d in seen):
                seen.extend(of_fault(find_fault(text)))
        except MgxError as e:
            seen.extend(of_error(e))
    found.diagnostics += [d for d in seen if not d.message.startswith("see current operation")]


# ---- hover ---------------------------------------------------------------------------------------


def hover(source: Source, checked: Checked, offset: int) -> str | None:
    """Return markdown about the name at an offset; None where nothing is known."""
    token = source.at(offset)
    if token is None:
        return None
    if token.kind == "op":
        cls = OPS.get(token.name.removeprefix(PREFIX)) if token.name.startswith(PREFIX) else None
        return None if cls is None else op_text(cls)
    if token.kind == "value":
        where = source.definition(token)
        if where is None:
            return None
        found = source.stated_type(where)
        if found is None:
            op, first, count = source.op_of(where)
            types = [] if op is None else checked.types.get(place(source.text, op.start), [])
            found = ", ".join(types[first : first + count])
        return f"```mlir\n{token.name} : {found}\n```" if found else None
    if token.kind == "alias":
        where = source.definition(token)
        if where is None:
            return None
        end = source.text.find("\n", where.start)
        return f"```mlir\n{source.text[where.start : end if end >= 0 else None]}\n```"
    return None


def place(text: str, offset: int) -> tuple[int, int]:
    """Return the line and column of an offset as MLIR counts: from 1, columns in bytes."""
    begin = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, len(text[begin:offset].encode()) + 1


def op_text(cls: type[Op]) -> str:
    """Write an op's signature, its documentation, and its attributes with their defaults."""
    operands = ", ".join(_field(g.name, g.arity) for g in cls.OPERANDS)
    results = ", ".join(_field(g.name, g.arity) for g in cls.RESULTS)
    lines = [f"**{cls.OPERATION_NAME}**({operands}) → {results or 'nothing'}", ""]
    lines.append(inspect.cleandoc(cls.__doc__ or ""))
    if cls.ATTRS:
        lines += ["", "| attribute | | default |", "|---|---|---|"]
        lines += [
            f"| `{name}` | {a.what.replace('|', chr(92) + '|')} | {_default(a)} |"
            for name, a in sorted(cls.ATTRS.items())
        ]
    return "\n".join(lines)


def _field(name: str, arity: str) -> str:
    return {"variadic": f"{name}...", "optional": f"[{name}]"}.get(arity, name)


def _default(a: AttrDef) -> str:
    if a.default is REQUIRED:
        return "required"
    return "absent" if a.default is None else f"`{a.default}`"


# ---- completion ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Proposal:
    """A word to put in: what is shown beside it, and its documentation."""

    label: str
    text: str
    detail: str = ""
    documentation: str = ""


def proposals(source: Source, offset: int) -> list[Proposal]:
    """Return completions at an offset: ops inside `"migraphx.`, attributes inside `{`."""
    begin = source.text.rfind("\n", 0, offset) + 1
    line = source.text[begin:offset]
    opened = re.search(r'"(migraphx\.\w*)$', line)
    if opened is not None:
        return [
            Proposal(name, name, _summary(cls), op_text(cls))
            for name, cls in sorted(OPS.items())
            if f"{PREFIX}{name}".startswith(opened[1])
        ]
    inside = source.attributes_at(offset)
    if inside is None or not inside[0].startswith(PREFIX):
        return []
    cls = OPS.get(inside[0].removeprefix(PREFIX))
    if cls is None:
        return []
    value = _VALUE.search(inside[1])
    if value is not None:
        a = cls.ATTRS.get(value[1])
        quoted = inside[1].rstrip(value[2]).endswith('"') if a else False
        words = a.choices if a else ()
        return [Proposal(w, w if quoted else f'"{w}"') for w in words if w.startswith(value[2])]
    given = set(_STATED.findall(inside[1]))
    return [
        Proposal(name, f"{name} = {_example(a)}", f"{a.what}, default {_default(a).strip('`')}")
        for name, a in sorted(cls.ATTRS.items())
        if name not in given
    ]


def _summary(cls: type[Op]) -> str:
    return (cls.__doc__ or "").strip().split("\n", 1)[0]


def _example(a: AttrDef) -> str:
    """Return an attribute's default as text, nothing where it has none that can be written."""
    if a.default is REQUIRED or a.default is None:
        return ""
    with new_context():
        try:
            return str(a.coerce(a.default))
        except MgxError:
            return ""
