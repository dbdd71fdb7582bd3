"""Generated inputs: MIGraphX's numbers by name, and integers kept to what they are for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from mgx_mlir.compiler.compile import compile as compile_program
from mgx_mlir.compiler.models import read_model
from mgx_mlir.core.errors import UsageError
from mgx_mlir.debug.draws import draws
from mgx_mlir.debug.inputs import make_inputs, name_hash
from mgx_mlir.debug.purposes import Draw
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.programs.signature import Signature
from tests.support.models import model_of

F32, I64, I32, U8, BOOL = (
    TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8, TensorProto.BOOL
)  # fmt: skip


def program(nodes: list, inputs: list, outputs: list, held: dict | None = None) -> ProgramIR:
    return read_model(model_of(nodes, inputs, outputs, held).SerializeToString())


def signature_of(path: Path) -> Signature:
    p = read_model(path)
    return Signature.of(p.main())


# printed by a C++ program with libstdc++'s std::hash<std::string>
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("", 6142509188972423790),
        ("x", 13272411544345499535),
        ("input_ids", 18209771281420382359),
        ("0123456789abcdef", 10613591747391057286),
    ],
)
def test_the_hash_of_a_name(name: str, wanted: int) -> None:
    assert name_hash(name) == wanted


def test_what_integers_are_for(models: Path) -> None:
    found = draws(read_model(models / "tokens.onnx"))
    assert found == {"ids": Draw("index", 11), "mask": Draw("mask")}


def test_through_casts_and_shapes_to_the_smallest_table() -> None:
    nodes = [
        helper.make_node("Cast", ["i"], ["w"], to=I64),
        helper.make_node("Reshape", ["w", "dims"], ["r"]),
        helper.make_node("Gather", ["t", "r"], ["a"]),
        helper.make_node("Gather", ["u", "r"], ["b"], axis=1),
    ]
    held = {
        "dims": np.array([6]),
        "t": np.ones((9, 2), np.float32),
        "u": np.ones((2, 5), np.float32),
    }
    p = program(nodes, [("i", I32, [2, 3])], [("a", F32, [6, 2]), ("b", F32, [2, 6])], held)
    assert draws(p) == {"i": Draw("index", 5)}


def test_sizes_masks_and_others() -> None:
    nodes = [
        helper.make_node("Expand", ["x", "n"], ["e"]),
        helper.make_node("Add", ["k", "k"], ["s"]),
        helper.make_node("Greater", ["g", "zero"], ["t"]),
        helper.make_node("Cast", ["p"], ["q"], to=F32),
    ]
    inputs = [("x", F32, [1]), ("n", I64, [1]), ("k", I64, [2]), ("g", I64, [4]), ("p", U8, [2])]
    outputs = [("e", F32, ["d"]), ("s", I64, [2]), ("t", BOOL, [4]), ("q", F32, [2])]
    found = draws(program(nodes, inputs, outputs, {"zero": np.array(0)}))
    assert found == {
        "x": Draw(), "n": Draw("size"), "k": Draw(), "g": Draw("mask"), "p": Draw(),
    }  # fmt: skip


def test_a_compiled_program_tells_the_same(models: Path) -> None:
    compiled = compile_program(str(models / "tokens.onnx"), "cpu")
    assert draws(compiled.program) == draws(read_model(models / "tokens.onnx"))


def test_values(models: Path) -> None:
    p = read_model(models / "tokens.onnx")
    signature = Signature.of(p.main())
    made = make_inputs(signature, draws(p))
    assert made["ids"].shape == (2, 6)
    assert set(np.unique(made["ids"])) <= set(range(11))
    assert len(np.unique(made["ids"])) > 3
    rows = made["mask"]
    assert (rows[:, :3] == 1).all()
    assert (np.diff(rows, axis=1) <= 0).all()
    again = make_inputs(signature, draws(p))
    other = make_inputs(signature, draws(p), seed=1)
    assert all((made[k] == again[k]).all() for k in made)
    assert (made["ids"] != other["ids"]).any()


def test_floats_spread_over_their_range(models: Path) -> None:
    p = read_model(models / "mnist.onnx")
    x = make_inputs(Signature.of(p.main()), {})["x"]
    assert x.dtype == np.float32
    assert -1 <= x.min() < -0.99
    assert 0.99 < x.max() < 1
    assert abs(x.mean()) < 0.1


def test_fills_and_dims(models: Path) -> None:
    signature = signature_of(models / "open.onnx")
    assert make_inputs(signature, {})["x"].shape == (1, 3)
    assert make_inputs(signature, {}, batch=4)["x"].shape == (4, 3)
    made = make_inputs(signature, {}, dims={"x": (2, 3)}, fill1=["x"])
    assert made["x"].tolist() == [[1, 1, 1], [1, 1, 1]]
    assert not make_inputs(signature, {}, fill0=["x"])["x"].any()
    for wrong in (
        {"fill0": ["xx"]},
        {"dims": {"z": (1,)}},
        {"dims": {"x": (2, 4)}},
        {"dims": {"x": (2,)}},
        {"fill0": ["x"], "fill1": ["x"]},
    ):
        with pytest.raises(UsageError):
            make_inputs(signature, {}, **wrong)


def test_equal_symbols_get_equal_sizes(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["a", "b"], ["c"])]
    model = model_of(nodes, [("a", F32, ["n", 2]), ("b", F32, ["n", 2])], [("c", F32, ["n", 2])])
    onnx.save(model, tmp_path / "m.onnx")
    signature = signature_of(tmp_path / "m.onnx")
    made = make_inputs(signature, {}, dims={"a": (5, 2)})
    assert made["b"].shape == (5, 2)
