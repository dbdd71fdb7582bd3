"""Parts that every op, pass, rewrite and importer must have: each check lists missing ones.

A check takes registries and folders, so that test_completeness.py can also hand it a fault. Each
line that it returns names the thing, and the file or the command that mends it.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx
import onnx.defs
import onnx.helper

from mgx_mlir.core.op import Op
from mgx_mlir.frontends.onnx.registry import OnnxOp
from mgx_mlir.frontends.signatures import REQUIRED
from mgx_mlir.rewrite.registry import Pass, PatternPass, rewrites_of
from tests import written

ROOT = Path(__file__).resolve().parent.parent
LIT = ROOT / "lit"
SOURCES = written.script("onnx_operators")  # finds the source of an importer
# ops whose `infer` states nothing that could be wrong
NOTHING_STATED = {
    "undefined": "it has any type",
    "unknown": "nobody knows what it gives",
    "yield": "what it may hold is for the op around it",
}

Ops = Mapping[str, type[Op]]
Passes = Mapping[str, type[Pass]]
# operators by domain and name, the newest version first
Operators = Mapping[tuple[str, str], tuple[OnnxOp, ...]]


def text_of(lines: list[str]) -> str:
    """Show what is missing, one line each."""
    return f"{len(lines)} missing:\n" + "\n".join(f"  {line}" for line in lines)


def where(thing: Any) -> str:
    """`dialects/migraphx/movement.py:200`: the file and line of a class or function."""
    file = inspect.getsourcefile(thing) or "?"
    line = inspect.getsourcelines(thing)[1]
    path = Path(file).resolve()
    return f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{line}"


# ---- ops -----------------------------------------------------------------------------------------


def family(cls: type[Op]) -> str:
    """The name of an op's module, which its lit files have too."""
    return cls.__module__.rpartition(".")[2]


def documentation(ops: Ops) -> list[str]:
    """Each op's docstring has an example of its text."""
    return [
        f'{n}: write an example, "migraphx.{n}"(...), into its docstring, {where(cls)}'
        for n, cls in ops.items()
        if f'"migraphx.{n}"' not in (cls.__doc__ or "")
    ]


def stated(ops: Ops, method: str) -> list[str]:
    """Each op's class, or a base of it below Op, defines a method."""
    return [
        f"{n}: write `{method}` in its class, {where(cls)}"
        for n, cls in ops.items()
        if not any(method in vars(c) for c in cls.__mro__[: cls.__mro__.index(Op)])
    ]


def examples(ops: Ops, reasons: Mapping[str, str]) -> list[str]:
    """Each op has examples or a reason; a reason whose op has examples is stale."""
    found = [
        f"{n}: write `examples` in its class, {where(cls)}"
        for n, cls in ops.items()
        if not hasattr(cls, "examples") and n not in reasons
    ]
    stale = [n for n in reasons if n not in ops or hasattr(ops[n], "examples")]
    return found + [f"{n}: it has examples by now, take it out of NO_EXAMPLES" for n in stale]


def lowerings(ops: Ops, lowered: Callable[[str], bool], refused: Mapping[str, str]) -> list[str]:
    """Each op is lowered, or refused with a reason, not both."""
    found = [
        f"{n}: write `@lowers({cls.__name__})` in passes/lowering/ops/{family(cls)}.py, "
        "or say in passes/lowering/ops/refused.py why it has no lowering"
        for n, cls in ops.items()
        if not lowered(n) and not refused.get(n)
    ]
    both = [n for n in refused if lowered(n)]
    return found + [f"{n}: it is lowered by now, take away its `refuses`" for n in both]


def home(ops: Ops, cls: type[Op], files: Iterable[Path]) -> str:
    """The lit file that holds most ops of a family; one of its name where none does."""
    own = {n for n, c in ops.items() if c.__module__ == cls.__module__}
    held = {p.name: len(own & set(re.findall(r"\bmigraphx\.(\w+)", p.read_text()))) for p in files}
    best = max(held, key=lambda name: held[name], default="")
    prefix = "invalid_" if best.startswith("invalid_") else ""
    return f"lit/dialect/{best if held.get(best) else f'{prefix}{family(cls)}.mlir'}"


def round_trips(ops: Ops, folder: Path = LIT / "dialect") -> list[str]:
    """Each op without examples, which are printed and read back, is in a lit file that does so.

    What is in invalid_ files does not count.
    """
    files = [p for p in folder.glob("*.mlir") if not p.name.startswith("invalid_")]
    named = set(re.findall(r'"migraphx\.(\w+)"', "".join(p.read_text() for p in files)))
    return [
        f"{n}: add a case to {home(ops, cls, files)}, and run `lit -v {home(ops, cls, files)}`"
        for n, cls in ops.items()
        if n not in named and not hasattr(cls, "examples")
    ]


def refusals(ops: Ops, reasons: Mapping[str, str], folder: Path = LIT / "dialect") -> list[str]:
    """Each op has a case that its `infer` refuses, or a reason."""
    files = list(folder.glob("invalid_*.mlir"))
    named = set(re.findall(r"'migraphx\.(\w+)' op ", "".join(p.read_text() for p in files)))
    return [
        f"{n}: add a case with `expected-error {{{{'migraphx.{n}' op ...}}}}` to "
        f"{home(ops, cls, files)}, and run "
        f"`python -m pytest tests/dialect/test_verifiers_matter.py`"
        for n, cls in ops.items()
        if n not in named and n not in reasons
    ]


# ---- passes --------------------------------------------------------------------------------------


def pass_files(name: str, cls: type[Pass], folder: Path = LIT) -> list[str]:
    """A pass is named after its file, has a summary, and a lit file runs it."""
    found = []
    file = Path(inspect.getfile(cls))
    if name not in (file.stem, file.parent.name):
        found.append(f"{name}: its class lies in {where(cls)}, expected {name}.py")
    if not cls().summary:
        found.append(f"{name}: write a docstring of its class, {where(cls)}")
    flag = f"--mgx-{name.replace('_', '-')}"
    if not any(flag in p.read_text() for p in folder.rglob("*.mlir")):
        found.append(f"{name}: no lit file runs it, write lit/{name}/{name}.mlir with {flag}")
    return found


def pattern_files(name: str, cls: type[Pass], folder: Path = LIT) -> list[str]:
    """Each pattern of a pass has a lit file of its name, and the other way round."""
    if not issubclass(cls, PatternPass):
        return []
    found = [
        f"{p.name}: write lit/{name}/{p.name}.mlir, and run `lit -v lit/{name}/{p.name}.mlir`"
        for p in cls.patterns
        if not (folder / name / f"{p.name}.mlir").exists()
    ]
    known = {p.name for p in cls.patterns} | {name}
    stray = [p.stem for p in (folder / name).glob("find_*.mlir") if p.stem not in known]
    return found + [
        f"{s}: no pattern has this name; delete lit/{name}/{s}.mlir, or put {s} into the "
        f"`patterns` of {cls.__name__}, {where(cls)}"
        for s in stray
    ]


def property_cases(name: str, cls: type[Pass], named: Iterable[str]) -> list[str]:
    """Each rewrite of a pass has a case that draws programs; `named` are those that have one."""
    missing = {r.name for r in rewrites_of(cls)} - set(named)
    return [
        f'{r}: write a case, `@case("{r}")`, in tests/passes/graphs/{name}.py, and run '
        f"`python -m pytest tests/passes/test_patterns.py -k {r}`"
        for r in sorted(missing)
    ]


def homes(rewrites: Iterable[str], passes: Passes) -> list[str]:
    """Each pattern and rule is in the list of a pass."""
    held = {r.name for cls in passes.values() for r in rewrites_of(cls)}
    return [
        f"{r}: no pass holds it; put it into the `patterns` or `rules` of its pass"
        for r in sorted(set(rewrites) - held)
    ]


# ---- importers -----------------------------------------------------------------------------------


def schemas(
    key: tuple[str, str], versions: tuple[OnnxOp, ...]
) -> Iterator[tuple[OnnxOp, onnx.defs.OpSchema]]:
    """Pair each schema of an operator with the importer that reads it, the oldest first."""
    domain, name = key
    last = onnx.defs.onnx_opset_version() if domain == "" else 5
    seen = set()
    for version in range(1, last + 1):
        op = next((v for v in versions if v.since <= version), None)
        try:
            schema = onnx.defs.get_schema(name, version, domain)
        except onnx.defs.SchemaError:
            continue  # a domain that onnx does not describe, or an older opset
        if op is not None and (op.since, schema.since_version) not in seen:
            seen.add((op.since, schema.since_version))
            yield op, schema


def title(op: OnnxOp) -> str:
    """Name an importer and its place."""
    domain = f"{op.domain}::" if op.domain else ""
    return f"{domain}{op.name} since {op.since} ({where(op.function)})"


def attribute_names(
    operators: Operators,
    unread: Mapping[str, Iterable[str]],
    never_meant: set[str],
    added: Mapping[str, Iterable[str]] | None = None,
) -> list[str]:
    """Each keyword of an importer is an attribute in some opset that it reads, and each attribute
    of those opsets is a keyword. `added`: attributes that models have and no schema, by operator.
    """
    found = []
    for key, versions in operators.items():
        known: dict[int, tuple[OnnxOp, set[str]]] = {}
        for op, schema in schemas(key, versions):
            known.setdefault(op.since, (op, set()))[1].update(schema.attributes)
        for op, attributes in known.values():
            wrong = set(op.attributes) - attributes - never_meant
            wrong -= set((added or {}).get(op.name, ()))
            left = attributes - set(op.attributes) - never_meant - set(unread.get(op.name, ()))
            found += [f"{title(op)}: rename `{k}`, the schema has no such" for k in sorted(wrong)]
            found += [f"{title(op)}: add the keyword `{k}`" for k in sorted(left)]
    return found


def attribute_defaults(
    operators: Operators, equal: Mapping[tuple[str, str], Mapping[str, str]]
) -> list[str]:
    """The default of each keyword is the schema's; required attributes have none.

    `equal` names, with a reason, the attributes whose two defaults mean the same.
    """
    found: dict[tuple[str, str, str], str] = {}  # the first of several opsets is enough
    for key, versions in operators.items():
        for op, schema in schemas(key, versions):
            for name, attribute in schema.attributes.items():
                if name not in op.attributes or name in equal.get(key, ()):
                    continue
                mine, theirs = op.attributes[name], default_of(attribute)
                if not same_default(mine, theirs):
                    found.setdefault(
                        (title(op), name, repr(theirs)),
                        f"{title(op)}: write {shown(name, theirs)}, as the schema of opset "
                        f"{schema.since_version} has it, not {shown(name, mine)}",
                    )
    return list(found.values())


def default_of(attribute: Any) -> Any:
    """A schema's default: REQUIRED for none at all, None for an undefined one."""
    if attribute.required:
        return REQUIRED
    if attribute.default_value.type == onnx.AttributeProto.UNDEFINED:
        return None
    return plain(onnx.helper.get_attribute_value(attribute.default_value))


def plain(value: Any) -> Any:
    """An attribute's value with text for bytes, and lists for every sequence."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return value
    return [plain(v) for v in value]


def same_default(mine: Any, theirs: Any) -> bool:
    """Compare defaults; for one that the schema leaves undefined, the importer chooses."""
    if theirs is None or mine is REQUIRED or theirs is REQUIRED:
        return mine is theirs or (theirs is None and mine is not REQUIRED)
    if isinstance(theirs, float) and isinstance(mine, int | float):
        return math.isclose(mine, theirs, rel_tol=1e-6)
    return plain(mine) == theirs


def shown(name: str, default: Any) -> str:
    return f"`{name}` without a default" if default is REQUIRED else f"`{name} = {default!r}`"


def ignored_attributes(
    operators: Operators,
    reasons: Mapping[tuple[str, str], Mapping[str, str]],
    never_meant: set[str],
) -> list[str]:
    """Each keyword is read in the importer's body, or a reason says why it changes nothing."""
    found = []
    for key, versions in operators.items():
        left = {k for op in versions for k in unread_keywords(op.function)} - never_meant
        stated = set(reasons.get(key, ()))
        found += [
            f"{title(op)}: read `{k}`, or say in IGNORED of tests/test_completeness.py why not"
            for op in versions
            for k in unread_keywords(op.function)
            if k not in stated and k not in never_meant
        ]
        name = "::".join(filter(None, key))
        found += [f"{name}: it reads `{k}`; delete its reason" for k in sorted(stated - left)]
    gone = [key for key in reasons if key not in operators]
    return found + [f"{k[1]}: no such operator in '{k[0]}'; delete its reasons" for k in gone]


def unread_keywords(function: Callable[..., Any]) -> list[str]:
    """The keyword parameters that a function's body does not mention."""
    tree = SOURCES.tree(inspect.unwrap(function))
    body = tree.body if isinstance(tree.body, list) else [tree.body]  # a lambda has one expression
    names = {n.id for b in body for n in ast.walk(b) if isinstance(n, ast.Name)}
    if "locals" in names:  # passes all of them on
        return []
    return [a.arg.rstrip("_") for a in tree.args.kwonlyargs if a.arg not in names]


NODE_CASES = Path(onnx.__file__).parent / "backend" / "test" / "case" / "node"
OWN_CASES = ROOT / "tests" / "frontends"
CONTRIB = "com.microsoft"


def case_texts(domains: Iterable[str]) -> list[tuple[str, str]]:
    """The sources of cases with each domain that they name: onnx's, then those of tests/frontends.

    Sources that use contrib_cases.py are of com.microsoft too; those in ai_onnx_ml of that alone.
    """
    texts = []
    for file in [*sorted(NODE_CASES.rglob("*.py")), *sorted(OWN_CASES.glob("*.py"))]:
        text = file.read_text()
        own = {d for d in domains if d and (d in text or d.upper().replace(".", "_") in text)}
        own |= {CONTRIB} if "contrib_cases" in text else set()
        own |= {"ai.onnx.ml"} if file.parent.name == "ai_onnx_ml" else {""}
        texts += [(domain, text) for domain in sorted(own)]
    return texts


def operator_cases(
    operators: Iterable[tuple[str, str]],
    reasons: Mapping[tuple[str, str], str],
    texts: Iterable[tuple[str, str]],
) -> list[str]:
    """Each operator has a case, or a reason.

    A case names the operator, as `"Celu"`, `Celu(...)` or `Celu <...>`, in a source of its domain.
    """
    named: dict[str, set[str]] = {}
    for domain, text in texts:
        words = re.findall(r'"(\w+)"|\b(\w+) ?[<(]', text)
        named.setdefault(domain, set()).update(w for pair in words for w in pair)
    found = []
    for domain, name in operators:
        if name in named.get(domain, ()) or (domain, name) in reasons:
            continue
        argument = "" if domain == CONTRIB else f', domain="{domain}"'
        found.append(
            f'{domain or "ai.onnx"}::{name}: write `check([Case("{name}", [inputs], '
            f"{{attributes}}{argument})])` in a test of tests/frontends (contrib_cases.py says "
            f"more), and run it"
        )
    return found
