"""Walks the registries: what an op, a pass, a rewrite or an importer must have, each has.

`python -m pytest tests/test_completeness.py` names each thing that is missing, and the file or the
command that mends it. The checks are those of completeness.py; planted faults prove each of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import mgx_mlir.passes  # noqa: F401  (declares the passes)
from mgx_mlir.core.op import OPS, Kernel, Op
from mgx_mlir.dialects import load
from mgx_mlir.frontends.onnx import ops, registry
from mgx_mlir.frontends.onnx.registry import OnnxOp
from mgx_mlir.frontends.signatures import signature_of
from mgx_mlir.passes.lowering import families
from mgx_mlir.passes.lowering.registry import LOWERINGS, REFUSED
from mgx_mlir.passes.lowering.views import VIEWS
from mgx_mlir.rewrite.passes import PASSES, PatternPass
from mgx_mlir.rewrite.pattern import PATTERNS, RULES, Pattern
from tests import completeness, peers

load()
families.load()
ops.load()
OPERATORS = {key: tuple(registry.versions(*key)) for key in registry.operators()}
GRAPHS = completeness.ROOT / "tests" / "passes" / "graphs"

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
}  # fmt: skip
# opset 1's hint about memory, which some operators took and others did not
NEVER_MEANT = {"consumed_inputs"}
# attributes that exporters write and no schema has, with the reason
ADDED = {
    "NonMaxSuppression": {"use_dyn_output": "MIGraphX's own"},
    "ReverseSequence": {"sequence_lens": "an operand that some exporters write as an attribute"},
    "Slice": {"axes": "an attribute until opset 9, which some exporters write later"},
}
# attributes whose default is spelled otherwise than in the schema and means the same
EQUAL = {
    ("", "BatchNormalization"): {"consumed_inputs": "opset 1's hint about memory"},
    ("", "Constant"): {"value": "required in opsets without the other spellings of a value"},
    ("", "GridSample"): {"mode": "bilinear until opset 20, linear since then"},
    ("", "RNN"): {"activations": "None: Tanh in each direction"},
}
ML, MS = "ai.onnx.ml", completeness.CONTRIB
_SPEED = "a hint about speed"
_TREES = "how often a node is met: a hint about speed"
_ROUNDING = "allows a result that is rounded more"
# attributes that importers take and do not read, with the reason
IGNORED = {
    ("", "ATen"): {
        "overload_name": "the operands say it",
        "scale_grad_by_freq": "of training",
        "sparse": "of training",
    },
    ("", "BatchNormalization"): {"momentum": "of training"},
    ("", "Dropout"): {"ratio": "of training"},
    ("", "NonMaxSuppression"): {
        "use_dyn_output": "there 0 fills up the result, which ONNX has not"
    },
    ("", "Optional"): {"type": "of what is absent"},
    ("", "SequenceEmpty"): {"dtype": "of what is absent"},
    ("", "TopK"): {"sorted": "results are sorted in every case"},
    (ML, "LinearClassifier"): {"multi_class": "onnxruntime does not read it"},
    (ML, "TreeEnsemble"): {"nodes_hitrates": _TREES},
    (MS, "Attention"): {"rotary_embedding_dim": "of do_rotary, which is refused"},
    (MS, "BiasDropout"): {"seed": "of training, which is refused"},
    (MS, "BitmaskBiasDropout"): {"seed": "of training, which is refused"},
    (MS, "BitmaskDropout"): {"seed": "of training, which is refused"},
    (MS, "DecoderMaskedMultiHeadAttention"): {"output_qk": "the node's outputs say it"},
    (MS, "DynamicQuantizeLSTM"): {
        "activation_alpha": "of other activations, which are refused",
        "activation_beta": "of other activations, which are refused",
    },
    (MS, "EmbedLayerNormalization"): {"mask_index_type": "the node's outputs say it"},
    (MS, "GatedDeltaNet"): {"chunk_size": _SPEED},
    (MS, "LinearAttention"): {"chunk_size": _SPEED},
    (MS, "MRotaryEmbedding"): {"is_packed_batching": "the dims say it"},
    (MS, "MatMulBnb4"): {"training_mode": "of the gradient"},
    (MS, "PackedMultiHeadAttention"): {"mask_filter_value": "there is no mask"},
    (MS, "QMoE"): {"accuracy_level": _ROUNDING, "block_size": "the dims of the scales say it"},
    (MS, "RotaryEmbedding"): {"is_packed_batching": "the dims say it"},
    (MS, "WordConvEmbedding"): {
        "char_embedding_size": "the weights' dims say it",
        "conv_window_size": "the weights' dims say it",
        "embedding_size": "the weights' dims say it",
    },
}
# operators without a case, with the reason
NO_CASE: dict[tuple[str, str], str] = {}


def fail(found: list[str]) -> None:
    """Fail with each thing that is missing and what mends it, and no more."""
    if found:
        pytest.fail(completeness.text_of(found), pytrace=False)


# ---- ops -----------------------------------------------------------------------------------------


def lowered(name: str) -> bool:
    return (
        name in LOWERINGS
        or name in VIEWS
        or issubclass(OPS[name], Kernel)
        or name in STRUCTURE
        or getattr(OPS[name], "scalar", None) is not None
    )


def test_every_op_documents_itself_with_an_example():
    fail(completeness.documentation(OPS))


@pytest.mark.parametrize("method", ["infer", "reference"])
def test_every_op_states(method):
    fail(completeness.stated(OPS, method))


def test_every_op_has_examples_or_a_reason():
    fail(completeness.examples(OPS, NO_EXAMPLES))


def test_every_op_is_lowered_or_refused():
    fail(completeness.lowerings(OPS, lowered, REFUSED))


def test_every_op_has_examples_or_is_in_a_lit_file_of_the_dialect():
    fail(completeness.round_trips(OPS))


def test_every_op_has_a_case_that_its_verifier_refuses():
    fail(completeness.refusals(OPS, completeness.NOTHING_STATED))


# ---- passes --------------------------------------------------------------------------------------


def cases_of(name: str) -> set[str]:
    """The rewrites that tests/passes/graphs/<pass>.py, or a file of that folder, has a case of."""
    files = [GRAPHS / f"{name}.py", *(GRAPHS / name).glob("*.py")]
    text = "".join(f.read_text() for f in files if f.exists())
    return set(re.findall(r'@case\(\s*"(\w+)"', text))


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_is_named_after_its_file(name):
    fail(completeness.pass_files(name, PASSES[name]))


@pytest.mark.parametrize("name", PASSES)
def test_every_pattern_has_its_lit_file(name):
    fail(completeness.pattern_files(name, PASSES[name]))


@pytest.mark.parametrize("name", PASSES)
def test_every_rewrite_has_a_property_case(name):
    fail(completeness.property_cases(name, PASSES[name], cases_of(name)))


def test_every_rewrite_belongs_to_a_pass():
    # tests of passes of a user's own leave theirs in the process
    own = {n for n, p in PATTERNS.items() if p.function.__module__.startswith("mgx_mlir.")}
    fail(completeness.homes({*own, *RULES}, PASSES))


# ---- importers -----------------------------------------------------------------------------------


def test_the_attributes_of_every_importer_are_those_of_its_schemas():
    assert len(OPERATORS) > 150
    peers.differs("onnx", completeness.attribute_names(OPERATORS, UNREAD, NEVER_MEANT, ADDED))


def test_the_defaults_of_every_importer_are_those_of_its_schemas():
    """Importers of com.microsoft are checked in tests/frontends/test_contrib_schemas.py."""
    peers.differs("onnx", completeness.attribute_defaults(OPERATORS, EQUAL))


def test_every_importer_reads_its_attributes_or_says_why_not():
    fail(completeness.ignored_attributes(OPERATORS, IGNORED, NEVER_MEANT))


def test_every_operator_has_a_case_or_a_reason():
    texts = completeness.case_texts({domain for domain, _ in OPERATORS})
    fail(completeness.operator_cases(OPERATORS, NO_CASE, texts))


# ---- planted faults ------------------------------------------------------------------------------


class Bare(Op):
    """An op without anything that one must have; it has no name, so that no registry holds it."""


def only(found: list[str], name: str, mend: str) -> None:
    """One line, which begins with the name and says what mends it."""
    assert len(found) == 1, found
    assert found[0].startswith(f"{name}: ")
    assert mend in found[0]


# complete ops, so that only the planted faults are found
SOUND = {name: OPS[name] for name in ("relu", "reverse", "slice")}


def test_an_op_without_anything_is_named():
    assert not completeness.documentation(SOUND)
    fake = {**SOUND, "bare": Bare}
    here = "tests/test_completeness.py:"
    only(completeness.documentation(fake), "bare", here)
    for method in ("infer", "reference"):
        only(completeness.stated(fake, method), "bare", f"write `{method}` in its class, {here}")
    only(completeness.examples(fake, {}), "bare", f"write `examples` in its class, {here}")
    found = completeness.lowerings(fake, lambda n: n != "bare", {})
    only(found, "bare", "write `@lowers(Bare)` in passes/lowering/ops/")
    only(completeness.round_trips(fake), "bare", "`lit -v lit/dialect/")
    found = completeness.refusals(fake, completeness.NOTHING_STATED)
    only(found, "bare", "expected-error {{'migraphx.bare' op")


def test_stale_reasons_of_ops_are_named():
    only(completeness.examples(SOUND, {"relu": "?"}), "relu", "NO_EXAMPLES")
    only(completeness.lowerings(SOUND, lowered, {"relu": "?"}), "relu", "`refuses`")


@pytest.mark.parametrize(
    ("prefix", "name", "home"), [("", "loop", "control"), ("invalid_", "reverse", "movement")]
)
def test_a_case_of_the_verifier_is_no_round_trip_and_the_other_way_round(
    prefix, name, home, tmp_path
):
    sound = {**SOUND, "loop": OPS["loop"]}
    for file in (completeness.LIT / "dialect").glob("*.mlir"):
        text = file.read_text()
        if file.name.startswith("invalid_") == bool(prefix):
            text = text.replace(f"migraphx.{name}", "migraphx.relu")
        (tmp_path / file.name).write_text(text)
    trips = completeness.round_trips(sound, tmp_path)
    refused = completeness.refusals(sound, {}, tmp_path)
    assert not (trips if prefix else refused)
    mend = f"lit/dialect/{prefix}{home}.mlir"
    only(refused if prefix else trips, name, mend)


def find_nothing(op: Any, rw: Any) -> Any:
    """x -> x"""


NOTHING = Pattern("find_nothing", ("relu",), 1, find_nothing)


@dataclass(frozen=True)
class Forgetful(PatternPass):
    """A pass whose pattern has no files."""

    name: ClassVar[str] = "forgetful"
    patterns: ClassVar[tuple[Pattern, ...]] = (NOTHING,)


@dataclass(frozen=True)
class Other(PatternPass):
    """A pass that holds a pattern."""

    name: ClassVar[str] = "other"
    patterns: ClassVar[tuple[Pattern, ...]] = (Pattern("find_other", ("relu",), 1, find_nothing),)


def test_what_a_pass_lacks_is_named(tmp_path):
    found = completeness.pass_files("forgetful", Forgetful, tmp_path)
    assert "expected forgetful.py" in found[0]
    only(found[1:], "forgetful", "write lit/forgetful/forgetful.mlir with --mgx-forgetful")
    found = completeness.pattern_files("forgetful", Forgetful, tmp_path)
    only(found, "find_nothing", "`lit -v lit/forgetful/find_nothing.mlir`")
    (tmp_path / "forgetful").mkdir()
    for name in ("find_nothing", "find_gone"):
        (tmp_path / "forgetful" / f"{name}.mlir").touch()
    found = completeness.pattern_files("forgetful", Forgetful, tmp_path)
    only(found, "find_gone", "delete lit/forgetful/find_gone.mlir")
    found = completeness.property_cases("forgetful", Forgetful, [])
    only(found, "find_nothing", "tests/passes/graphs/forgetful.py")


def test_a_rewrite_of_no_pass_is_named_alone():
    found = completeness.homes({"find_nothing", "find_other"}, {"other": Other})
    only(found, "find_nothing", "`patterns`")


def test_property_cases_are_found_as_they_are_written():
    assert "find_tanh_fast_gelu" in cases_of("rewrite_gelu")
    assert not cases_of("no_such_pass")


def importer(name: str, since: int, function: Any, domain: str = "") -> dict[Any, Any]:
    """A registry of one operator."""
    op = OnnxOp(
        name=name, domain=domain, since=since, function=function, structures=False,
        **vars(signature_of(function)),
    )  # fmt: skip
    return {(domain, name): (op,)}


def celu_of_two(b, node, x, *, alpha=2.0):
    return b.elu(x, alpha=alpha)


def celu_of_another_name(b, node, x, *, beta=1.0):
    return b.elu(x, alpha=beta)


def celu_of_any(b, node, x, *, alpha):
    return b.elu(x, alpha=alpha)


def celu_of_one(b, node, x, *, alpha=1.0):
    return b.elu(x)


def cast_to_float(b, node, x, *, saturate=1, round_mode="up", to=1):
    return b.convert(x, (saturate, round_mode, to))


def test_wrong_defaults_are_named():
    for function, mend in (
        (celu_of_two, "not `alpha = 2.0`"),
        (celu_of_any, "not `alpha` without"),
    ):
        line = completeness.attribute_defaults(importer("Celu", 12, function), {})[0]
        assert line.startswith("Celu since 12 (tests/test_completeness.py:")
        assert "write `alpha = 1.0`, as the schema of opset 12" in line
        assert mend in line
    found = completeness.attribute_defaults(importer("Cast", 25, cast_to_float), {})
    assert found
    assert all("write `to` without a default" in line for line in found)
    registry_of_one = importer("Celu", 12, celu_of_two)
    assert not completeness.attribute_defaults(registry_of_one, {("", "Celu"): {"alpha": "?"}})
    assert not completeness.attribute_defaults(importer("Celu", 12, celu_of_one), {})


def test_wrong_names_of_attributes_are_named():
    found = completeness.attribute_names(importer("Celu", 12, celu_of_another_name), {}, set())
    assert ["rename `beta`" in found[0], "add the keyword `alpha`" in found[1]] == [True, True]


def test_ignored_attributes_are_named():
    [line] = completeness.ignored_attributes(importer("Celu", 12, celu_of_one), {}, set())
    assert "read `alpha`, or say in IGNORED" in line
    reasons = {("", "Celu"): {"alpha": "a reason"}}
    assert not completeness.ignored_attributes(importer("Celu", 12, celu_of_one), reasons, set())
    [line] = completeness.ignored_attributes(importer("Celu", 12, celu_of_two), reasons, set())
    assert "it reads `alpha`; delete its reason" in line
    gone = completeness.ignored_attributes({}, reasons, set())
    only(gone, "Celu", "no such operator")


def test_operators_without_a_case_are_named():
    texts = completeness.case_texts({domain for domain, _ in OPERATORS})
    asked = [("", "Celu"), ("", "NoSuch"), (ML, "Celu"), (MS, "Gelu"), (MS, "NoSuch")]
    found = completeness.operator_cases(asked, {}, texts)
    assert [line.partition(": ")[0] for line in found] == [
        "ai.onnx::NoSuch", f"{ML}::Celu", f"{MS}::NoSuch"
    ]  # fmt: skip
    assert 'check([Case("NoSuch", [inputs], {attributes}, domain="")])' in found[0]
    assert not completeness.operator_cases([("", "NoSuch")], {("", "NoSuch"): "a reason"}, texts)
    for text in ('make_node("NoSuch", [])', "y = NoSuch (x)", "y = NoSuch <a = 1> (x)"):
        assert not completeness.operator_cases([("", "NoSuch")], {}, [("", text)])
