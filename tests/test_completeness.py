"""Walks the registries: what an op, a pass, a pattern or an importer must have, each has."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import onnx.defs
import pytest

import mgx_mlir.passes  # noqa: F401  (declares the passes)
from mgx_mlir.core.op import OPS, Kernel, Op
from mgx_mlir.core.passes import PASSES, PatternPass
from mgx_mlir.dialects import load
from mgx_mlir.frontends.onnx import ops, registry
from mgx_mlir.passes.lower import families
from mgx_mlir.passes.lower.registry import LOWERINGS, REFUSED
from mgx_mlir.passes.lower.views import VIEWS
from tests import peers

ROOT = Path(__file__).resolve().parent.parent
LIT = ROOT / "lit"

load()
families.load()
ops.load()

# ops that the lowering of a module or of a block handles itself
STRUCTURE = {"literal": "a constant or a parameter", "yield": "the end of a region",
             "dimensions_of": "always followed on the host"}  # fmt: skip
# ops whose operands or regions the examples, arrays and attributes alone, cannot state
NO_EXAMPLES = {
    "unknown": "it has no reference",
    "yield": "it ends a region",
    "if": "it has regions",
    "loop": "it has a region",
    "select_module": "it names other modules",
    "run_on_target": "it names another module",
    "literal": "it has no operands",
    **dict.fromkeys(
        ("pointwise", "fused_reduce", "group", "fused_concat", "split_fused_reduce"),
        "it has a region",
    ),
}
# attributes that importers leave out (a node that has them is refused), with the reason
UNREAD = {
    "Constant": {"sparse_value": "there are no sparse tensors", "value_string": "nor strings",
                 "value_strings": "nor strings"},
    "Range": {"stash_type": "of the newest opset: sums of 16-bit steps are kept in f64 or exactly"},
}  # fmt: skip
# opset 1's hint about memory, which some operators took and others did not
NEVER_MEANT = {"consumed_inputs"}


def missing(found: list[str]) -> str:
    return f"{len(found)} missing: {', '.join(found)}"


def states(cls: type[Op], method: str) -> bool:
    """Whether a class, or a base of it below Op, defines a method."""
    return any(method in vars(c) for c in cls.__mro__[: cls.__mro__.index(Op)])


# ---- ops -----------------------------------------------------------------------------------------


def test_every_op_documents_itself_with_an_example():
    found = [n for n, cls in OPS.items() if f'"migraphx.{n}"' not in (cls.__doc__ or "")]
    assert not found, missing(found)


@pytest.mark.parametrize("method", ["infer", "reference"])
def test_every_op_states(method):
    found = [n for n, cls in OPS.items() if not states(cls, method)]
    assert not found, missing(found)


def test_every_op_has_examples_or_a_reason():
    found = [n for n, cls in OPS.items() if not hasattr(cls, "examples") and n not in NO_EXAMPLES]
    assert not found, missing(found)
    stale = [n for n in NO_EXAMPLES if n not in OPS or hasattr(OPS[n], "examples")]
    assert not stale, f"these have examples by now: {', '.join(stale)}"


def lowered(name: str) -> bool:
    return (
        name in LOWERINGS
        or name in VIEWS
        or issubclass(OPS[name], Kernel)
        or name in STRUCTURE
        or getattr(OPS[name], "scalar", None) is not None
    )


def test_every_op_is_lowered_or_refused():
    found = [n for n in OPS if not lowered(n) and not REFUSED.get(n)]
    assert not found, missing(found)
    both = [n for n in REFUSED if lowered(n)]
    assert not both, f"these are lowered by now: {', '.join(both)}"


def test_every_op_is_in_a_lit_file_of_the_dialect():
    text = "".join(p.read_text() for p in (LIT / "dialect").glob("*.mlir"))
    named = set(re.findall(r'"migraphx\.(\w+)"', text))
    found = [n for n in OPS if n not in named]
    assert not found, missing(found)


# ---- passes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_is_named_after_its_file(name):
    cls = PASSES[name]  # imports it; PASSES checks the name
    assert Path(inspect.getfile(cls)).stem == name
    assert cls().summary
    text = "".join(p.read_text() for p in LIT.rglob("*.mlir"))
    assert f"--mgx-{name.replace('_', '-')}" in text, "no lit file runs it"


@pytest.mark.parametrize("name", PASSES)
def test_every_pattern_has_its_lit_file(name):
    cls = PASSES[name]
    if not issubclass(cls, PatternPass):
        return
    found = [p.name for p in cls.patterns if not (LIT / name / f"{p.name}.mlir").exists()]
    assert not found, missing(found)
    known = {p.name for p in cls.patterns} | {name}
    stray = [p.stem for p in (LIT / name).glob("find_*.mlir") if p.stem not in known]
    assert not stray, f"lit files of no pattern: {', '.join(stray)}"


# ---- importers -----------------------------------------------------------------------------------


def versions_of(domain: str, name: str) -> dict[int, registry.OnnxOp]:
    """The importer that reads each opset of an operator."""
    last = onnx.defs.onnx_opset_version() if domain == "" else 5
    found = {v: registry.find(domain, name, v) for v in range(1, last + 1)}
    return {v: op for v, op in found.items() if op is not None}


def test_the_attributes_of_every_importer_are_those_of_its_schemas():
    """Each keyword of an importer is an attribute in some opset that it reads, and each
    attribute of those opsets is a keyword."""
    problems = []
    for domain, name in registry.operators():
        known: dict[int, set[str]] = {}
        read: dict[int, set[str]] = {}
        for version, op in versions_of(domain, name).items():
            try:
                schema = onnx.defs.get_schema(name, version, domain)
            except onnx.defs.SchemaError:
                continue  # of a domain that onnx does not describe, or older than the operator
            known.setdefault(op.since, set()).update(schema.attributes)
            read[op.since] = set(op.attributes)
        for since, attributes in known.items():
            wrong = sorted(read[since] - attributes - NEVER_MEANT)
            unread = sorted(attributes - read[since] - NEVER_MEANT - set(UNREAD.get(name, ())))
            if wrong:
                problems.append(f"{name} since {since}: the schema has no {', '.join(wrong)}")
            if unread:
                problems.append(f"{name} since {since}: does not read {', '.join(unread)}")
    assert len(registry.operators()) > 150
    peers.differs("onnx", problems)
