"""SavedModels: signatures, variables of every kind, what is missing or damaged."""

from __future__ import annotations

import contextlib
import random
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from google.protobuf.message import DecodeError

import mgx_mlir
from mgx_mlir.core.errors import FileError, MgxError, ModelError, UsageError
from mgx_mlir.frontends.tf import schema
from mgx_mlir.frontends.tf.bundle import Bundle, checksum
from mgx_mlir.frontends.tf.options import TfOptions
from mgx_mlir.frontends.tf.program import parse_tf
from tests.frontends.tf import mutations

DATA = Path(__file__).parent / "data" / "saved"


@pytest.fixture
def model(tmp_path):
    """Unpacks a stored SavedModel; its folder, inputs and outputs."""

    def unpack(name):
        folder = tmp_path / name
        with zipfile.ZipFile(DATA / f"{name}.zip") as z:
            z.extractall(folder)
        stored = np.load(DATA / f"{name}.npz")
        inputs = {k[2:]: stored[k] for k in stored if k.startswith("i_")}
        outputs = [stored[k] for k in sorted(stored) if k.startswith("o")]
        return folder, inputs, outputs

    return unpack


def run(folder, inputs, **options):
    compiled = mgx_mlir.compile(parse_tf(folder, TfOptions(**options)), "ref")
    given = {k: v for k, v in inputs.items() if k in compiled.input_names}
    return dict(zip(compiled.output_names, compiled.run(given), strict=True))


def test_layers_of_keras(model):
    folder, inputs, [wanted] = model("keras_lstm")
    for options in ({"batch_size": 3}, {"batch_size": None}):
        found = run(folder, inputs, **options)
        np.testing.assert_allclose(found["output_0"], wanted, rtol=1e-5, atol=1e-6)


def test_each_signature_of_a_module(model):
    folder, inputs, [y, z, count, rows] = model("module")
    found = run(folder, inputs)
    np.testing.assert_allclose(found["y"], y, rtol=1e-6)
    np.testing.assert_allclose(found["z"], z, rtol=1e-6)
    found = run(folder, inputs, signature="rows", batch_size=4)
    np.testing.assert_array_equal(found["rows"], rows)
    np.testing.assert_array_equal(found["count"], count)


def test_outputs_by_name(model):
    folder, inputs, [_, z, *_] = model("module")
    found = run(folder, inputs, output_names=["z"])
    assert list(found) == ["z"]
    np.testing.assert_allclose(found["z"], z, rtol=1e-6)


@pytest.mark.parametrize("name", ["version1", "version1_resources"])
def test_graphs_of_version_1(model, name):
    folder, inputs, [wanted] = model(name)
    found = run(folder, inputs, batch_size=4)
    np.testing.assert_allclose(found["scores"], wanted, rtol=1e-5)


def test_variables_in_parts(model):
    """Slices of a checkpoint, whose offsets take one and two bytes in their keys."""
    folder, inputs, [wanted] = model("partitioned")
    found = run(folder, inputs, batch_size=4)
    np.testing.assert_allclose(found["scores"], wanted, rtol=1e-4, atol=1e-4)  # |scores| to 90


def test_a_part_that_the_checkpoint_does_not_hold(model):
    folder, _, _ = model("partitioned")
    path = folder / "saved_model.pb"
    saved = schema.SavedModel.FromString(path.read_bytes())
    for node in saved.meta_graphs[0].graph_def.node:
        if node.name.endswith("RestoreV2/shape_and_slices"):
            texts = node.attr["value"].tensor.string_val
            texts[:] = [t.replace(b"140 7 0,70", b"140 7 90,70") for t in texts]
    path.write_bytes(saved.SerializeToString())
    refused(folder, "which goes beyond 140", ModelError)


def test_variables_by_their_objects(model):
    """Layers of Keras 3 in a module: the restore step fills copies of what is read."""
    folder, inputs, [wanted] = model("keras_objects")
    found = run(folder, inputs, batch_size=None)
    np.testing.assert_allclose(found["y"], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", ["ref", pytest.param("cpu", marks=pytest.mark.slow)])
def test_a_detector(model, target):
    """Nested loops of fixed sizes behind a dynamic image (hazard 48)."""
    folder, inputs, [boxes, keep, n] = model("detector")
    compiled = mgx_mlir.compile(parse_tf(folder, TfOptions(batch_size=None)), target, cache=False)
    found = dict(zip(compiled.output_names, compiled.run(inputs), strict=True))
    np.testing.assert_array_equal(found["n"], n)
    np.testing.assert_array_equal(found["keep"], keep)
    np.testing.assert_allclose(found["boxes"], boxes, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["ref", "cpu"])
def test_tables_of_integers(model, target):
    folder, inputs, wanted = model("tables")
    compiled = mgx_mlir.compile(parse_tf(folder, TfOptions(batch_size=None)), target, cache=False)
    assert compiled.output_names == ["a", "b", "c", "n"]
    for found, want in zip(compiled.run(inputs), wanted, strict=True):
        assert found.dtype == want.dtype
        np.testing.assert_array_equal(found, want)


def test_a_table_that_nothing_fills(model):
    folder, _, _ = model("tables")
    path = folder / "saved_model.pb"
    saved = schema.SavedModel.FromString(path.read_bytes())
    del saved.meta_graphs[0].signature_def["__saved_model_init_op"]
    path.write_bytes(saved.SerializeToString())
    with pytest.raises(MgxError, match="the table has no contents"):
        parse_tf(folder)


def test_variables_by_their_oldest_name(model):
    folder, inputs, [wanted] = model("version1")
    path = folder / "saved_model.pb"
    saved = schema.SavedModel.FromString(path.read_bytes())
    renamed = [n for n in saved.meta_graphs[0].graph_def.node if n.op == "VariableV2"]
    assert renamed
    for node in renamed:
        node.op = "Variable"
    path.write_bytes(saved.SerializeToString())
    found = run(folder, inputs, batch_size=4)
    np.testing.assert_allclose(found["scores"], wanted, rtol=1e-5)


def test_keys_of_variables_that_are_no_text(model):
    folder, _, _ = model("version1")
    path = folder / "saved_model.pb"
    saved = schema.SavedModel.FromString(path.read_bytes())
    for node in saved.meta_graphs[0].graph_def.node:
        if node.name.endswith("/tensor_names"):
            del node.attr["value"].tensor.string_val[:]
            node.attr["value"].tensor.dtype = 3
    path.write_bytes(saved.SerializeToString())
    with contextlib.suppress(MgxError):  # the variables' own names may be the keys
        parse_tf(folder)


def test_the_shape_of_a_variable(model):
    folder, inputs, _ = model("version1_resources")
    path = folder / "saved_model.pb"
    saved = schema.SavedModel.FromString(path.read_bytes())
    graph = saved.meta_graphs[0].graph_def
    handle = next(n.name for n in graph.node if n.op == "VarHandleOp" and n.name == "w")
    graph.node.add(name="dims", op="VariableShape", input=[handle]).attr["out_type"].type = 9
    path.write_bytes(saved.SerializeToString())
    found = run(folder, inputs, output_names=["dims"], batch_size=4)["dims"]
    np.testing.assert_array_equal(found, np.array([6, 2], np.int64))


def test_inputs_have_the_names_of_the_signature(model):
    folder, _, _ = model("version1")
    program = parse_tf(folder)
    assert mgx_mlir.compile(program, "ref").input_names == ["features"]


def refused(folder, message, kind=MgxError, **options):
    with pytest.raises(kind, match=message) as found:
        parse_tf(folder, TfOptions(**options))
    return str(found.value)


def test_an_unknown_signature_lists_those_there_are(model):
    folder, _, _ = model("module")
    text = refused(folder, "no signature 'sum'", UsageError, signature="sum")
    assert "rows, serving_default" in text


def test_unknown_tags_list_those_there_are(model):
    folder, _, _ = model("module")
    assert "serve" in refused(folder, "no graph of tags train", UsageError, tags=("train",))


def test_an_unknown_output(model):
    folder, _, _ = model("module")
    refused(folder, "output 'sum' is no node", UsageError, output_names=["sum"])


def test_a_folder_without_a_model(tmp_path):
    refused(tmp_path, "holds no saved_model.pb", FileError)


def test_a_model_without_its_variables(model):
    folder, _, _ = model("module")
    (folder / "variables" / "variables.index").unlink()
    refused(folder, "holds no variables/variables.index", FileError)
    folder, _, _ = model("version1")
    next((folder / "variables").glob("*.data*")).unlink()
    refused(folder, "no such file")


def test_data_that_is_cut_short(model):
    folder, _, _ = model("version1")
    path = next((folder / "variables").glob("*.data*"))
    path.write_bytes(path.read_bytes()[:-9])
    refused(folder, "bytes at offset")


def test_a_variable_of_other_dims_than_its_bytes(model):
    """The index states the dims; the file has a byte changed, which the checksum tells."""
    folder, _, _ = model("version1")
    path = folder / "variables" / "variables.index"
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    refused(folder, "checksum", FileError)


def test_a_flipped_bit_of_a_tensor(model):
    folder, _, _ = model("version1")
    path = next((folder / "variables").glob("*.data*"))
    data = path.read_bytes()
    for at in (0, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        refused(folder, "is damaged: its checksum does not fit", FileError)


def _number(data, at):
    value = shift = 0
    while data[at] & 0x80:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift, at + 1


def _blocks(data):
    """Offset and size of the blocks of an index: the one about blocks, and those it names."""
    at = len(data) - 48
    for _ in range(2):
        _, at = _number(data, at)
    start, at = _number(data, at)
    size, _ = _number(data, at)
    out, at = [(start, size)], start
    _, at = _number(data, at)  # number of its one entry
    own, at = _number(data, at)
    _, at = _number(data, at)
    first, at = _number(data, at + own)
    length, _ = _number(data, at)
    return [*out, (first, length)]


def test_damaged_indices_with_checksums_that_fit(model):
    """Keys, offsets, sizes, dims and types of any number: read, or one error."""
    folder, _, _ = model("version1")
    prefix = folder / "variables" / "variables"
    path = prefix.with_suffix(".index")
    data = path.read_bytes()
    blocks = _blocks(data)
    r = np.random.RandomState(11)
    errors = 0
    for _ in range(400):
        changed = bytearray(data)
        start, size = blocks[r.randint(2)]
        for _ in range(r.randint(1, 4)):
            changed[start + r.randint(size)] = r.choice([0, 1, 127, 128, 255, 8, 64])
        for offset, length in blocks:
            end = offset + length
            struct.pack_into("<I", changed, end + 1, checksum(bytes(changed[offset : end + 1])))
        path.write_bytes(changed)
        try:
            bundle = Bundle(prefix)
            for key in bundle.keys():  # noqa: SIM118  not a mapping
                with contextlib.suppress(KeyError):
                    bundle.read(key, "variable")
        except MgxError:
            errors += 1
    assert errors > 100


def test_a_damaged_graph_of_a_saved_model(model):
    folder, _, _ = model("module")
    path = folder / "saved_model.pb"
    saved = schema.SavedModel.FromString(path.read_bytes())
    for seed in range(60):
        r = random.Random(seed)
        changed = schema.SavedModel()
        changed.CopyFrom(saved)
        graph = changed.meta_graphs[0].graph_def
        with contextlib.suppress(DecodeError):
            graph.ParseFromString(mutations.damaged(r, saved.meta_graphs[0].graph_def))
        path.write_bytes(changed.SerializeToString())
        with contextlib.suppress(MgxError):
            parse_tf(folder, TfOptions(signature=r.choice(("", "rows"))))


def test_every_cut_of_an_index_is_one_error(model):
    folder, _, _ = model("version1")
    path = folder / "variables" / "variables.index"
    data = path.read_bytes()
    for n in range(0, len(data), 3):
        path.write_bytes(data[:n])
        with pytest.raises(FileError):
            Bundle(folder / "variables" / "variables")


def test_damaged_graphs_are_one_error(model):
    folder, _, _ = model("version1")
    path = folder / "saved_model.pb"
    data = path.read_bytes()
    r = np.random.RandomState(0)
    for i in range(150):
        if i % 2:
            changed = data[: r.randint(len(data))]
        else:
            changed = bytearray(data)
            changed[r.randint(len(data))] ^= 1 << r.randint(8)
        path.write_bytes(changed)
        with contextlib.suppress(MgxError):
            parse_tf(folder)


def test_keras_files_need_tensorflow(tmp_path, monkeypatch):
    import importlib.util

    path = tmp_path / "model.keras"
    path.write_bytes(b"PK")
    found = importlib.util.find_spec

    def without(name, *args):
        return None if name == "tensorflow" else found(name, *args)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    assert "export" in refused(path, "TensorFlow, which is not installed", FileError)


def test_a_model_error_names_the_folder(model):
    folder, _, _ = model("version1")
    path = folder / "saved_model.pb"
    path.write_bytes(path.read_bytes().replace(b"MatMul", b"MotMul"))
    text = refused(folder, "1 node is not supported", ModelError)
    assert str(folder) in text
    assert "MotMul" in text
