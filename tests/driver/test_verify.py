"""verify: what passes, what fails, and what cannot be compared."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from onnx import TensorProto, helper, parser

from tests.driver.conftest import Driver


def test_against_onnxruntime(driver: Driver, models: Path) -> None:
    ran = driver("verify", "--cpu", "--ort", models / "mnist.onnx")
    assert ran.status == 0
    assert ran.lines[-1].startswith("verification passed: cpu and onnxruntime agree in 1 output")
    assert not any("ref::" in line for line in ran.lines)


@pytest.mark.parametrize("reference", [(), ("--ort",)])
def test_one_changed_weight_is_found_and_its_output_named(
    driver: Driver, models: Path, reference: tuple[str, ...]
) -> None:
    ran = driver(
        "verify", "--cpu", models / "mnist.onnx", "--against", models / "flipped.onnx", *reference
    )
    assert ran.status == 1
    row = next(line for line in ran.lines if line.startswith("y: "))
    assert row.endswith(": FAIL")
    name = "onnxruntime" if reference else "ref"
    assert ran.lines[-1].startswith(
        f"FAILED: {models / 'mnist.onnx'}: cpu and {name} of flipped.onnx differ in y ("
    )


def test_tolerances_decide(driver: Driver, models: Path) -> None:
    both = ("verify", "--cpu", models / "mnist.onnx", "--against", models / "flipped.onnx")
    loose = driver(*both, "--atol", 1, "--rms-tol", 1)
    assert loose.status == 0
    assert loose.lines[-1].endswith("(rms-tol 1, atol 1, rtol 5e-05)")
    assert driver(*both, "--atol", 1).status == 1  # rms fails
    assert driver(*both, "--rms-tol", 1).status == 1  # elements fail
    exact = driver("verify", "--cpu", models / "mnist.onnx", "--atol", 0, "--rtol", 0)
    assert exact.status == 1


def test_integers_and_several_outputs(driver: Driver, models: Path) -> None:
    ran = driver("verify", "--cpu", models / "tokens.onnx", "--ort")
    assert ran.status == 0
    assert [line.split(":")[0] for line in ran.lines[-3:]] == [
        "masked", "sums", "verification passed",
    ]  # fmt: skip


def test_half_has_wider_limits(driver: Driver, models: Path) -> None:
    ran = driver("verify", "--cpu", models / "half.onnx")
    assert ran.lines[-1].endswith("(rms-tol 0.08, atol 0.04, rtol 0.04)")


def test_other_shapes_and_types_differ(driver: Driver, models: Path) -> None:
    ran = driver("verify", "--cpu", models / "wider.onnx", "--against", models / "half.onnx")
    assert ran.status == 2  # the inputs do not fit the other model
    assert "input 'x' expected float16, got float32" in ran.err


def test_outputs_that_show_nothing_are_not_passed_over(driver: Driver, models: Path) -> None:
    ran = driver("verify", "--cpu", models / "logs.onnx")
    assert ran.status == 1
    assert "  no element is finite on both sides: there is nothing to compare" in ran.lines
    assert "  warning: ref: all elements are 0" in ran.lines
    assert "differ in y (" in ran.lines[-1]


def test_seeds_draw_other_inputs(driver: Driver, models: Path) -> None:
    rows = {
        driver("verify", "--cpu", models / "mnist.onnx", "--seed", seed).lines[-2]
        for seed in (0, 1)
    }
    assert len(rows) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--ref",), "the target is ref, and so is the reference"),
        (("--cpu", "--ort", "--ref-use-double"), "expected one of --ort and --ref-use-double"),
        (("--cpu", "--gpu"), "expected one of --gpu, --cpu, --ref, got --gpu and --cpu"),
        (("--cpu", "--arch", "znver4,znver5"), "expected one architecture to run on"),
    ],
)
def test_what_cannot_be_compared(
    driver: Driver, models: Path, options: tuple[str, ...], message: str
) -> None:
    ran = driver("verify", models / "mnist.onnx", *options)
    assert (ran.status, ran.out) == (2, "")
    assert message in ran.err


def test_the_reference_in_double(driver: Driver, models: Path) -> None:
    assert driver("verify", "--cpu", models / "mnist.onnx", "--ref-use-double").status == 0


def test_onnxruntime_is_optional(
    driver: Driver, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    ran = driver("verify", "--cpu", "--ort", models / "mnist.onnx")
    assert ran.status == 2
    assert ran.errors[-2:] == [
        "error: onnxruntime is not installed", "note: pip install onnxruntime",
    ]  # fmt: skip
    assert driver("verify", "--cpu", "--ort", "--test").status == 2


LABELS = """<ir_version: 8, opset_import: ["":18, "ai.onnx.ml":3]>
g (string[N] word, float[N,2] x) => (string[N] colour, string[N] same, float[N,2] y) {
  colour = ai.onnx.ml.LabelEncoder<keys_strings = ["a", "b"], values_strings = ["COLOUR", "blue"],
                                   default_string = "none">(word)
  same = Identity(word)
  y = Relu(x)
}"""


@pytest.mark.parametrize("reference", [(), ("--ort",)])
def test_strings_are_compared(driver: Driver, tmp_path: Path, reference: tuple[str, ...]) -> None:
    """Inputs are drawn from the strings that the model knows, and some that it does not know."""
    paths = {}
    for colour in ("red", "green"):
        paths[colour] = tmp_path / f"{colour}.onnx"
        model = parser.parse_model(LABELS.replace("COLOUR", colour))
        paths[colour].write_bytes(model.SerializeToString())
    given = ("verify", "--cpu", "--batch", 8, *reference)
    ran = driver(*given, paths["red"])
    assert ran.status == 0
    assert "colour: 0 of 8 strings differ: pass" in ran.lines
    ran = driver(*given, paths["red"], "--against", paths["green"])
    assert ran.status == 1
    assert any("cpu has 'red'" in line and "'green'" in line for line in ran.lines)
    assert any(line == "same: 0 of 8 strings differ: pass" for line in ran.lines)


def zip_map() -> bytes:
    """Return a model that ends as skl2onnx's classifiers do; onnx's text has no type for it."""
    kind = helper.make_map_type_proto(
        TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    )
    nodes = [
        helper.make_node("Softmax", ["x"], ["y"]),
        helper.make_node(
            "ZipMap", ["y"], ["z"], domain="ai.onnx.ml", classlabels_strings=["no", "yes"]
        ),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2])
    z = helper.make_value_info("z", helper.make_sequence_type_proto(kind))
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    graph = helper.make_graph(nodes, "g", [x], [z])
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


@pytest.mark.parametrize("reference", [(), ("--ort",)])
def test_maps_are_compared(driver: Driver, tmp_path: Path, reference: tuple[str, ...]) -> None:
    path = tmp_path / "maps.onnx"
    path.write_bytes(zip_map())
    ran = driver("verify", "--cpu", "--batch", 3, *reference, path)
    assert ran.status == 0
    assert any(line.startswith("z: max abs diff") and line.endswith("pass") for line in ran.lines)
