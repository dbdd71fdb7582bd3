"""Reading model files: hostile and damaged ones, external data, memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import mgx_mlir
from mgx_mlir.core.errors import FileError, MgxError, ModelError
from mgx_mlir.frontends.onnx.importer import parse_onnx, parse_onnx_buffer
from mgx_mlir.frontends.onnx.load import load_bytes, load_file
from mgx_mlir.frontends.onnx.options import OnnxOptions
from mgx_mlir.programs.interpreter import Interpreter
from tests.support.models import model_of, node


def model(weight: np.ndarray | TensorProto, *, opset: int = 17) -> onnx.ModelProto:
    """y = x + w."""
    tensor = weight if isinstance(weight, TensorProto) else numpy_helper.from_array(weight, "w")
    like = (tensor.data_type, list(tensor.dims))
    nodes = [node("Add", "x w", "y", name="add")]
    return model_of(nodes, {"x": like}, {"y": like}, [tensor], opset=opset, ir_version=8)


def ran(program, x: np.ndarray) -> np.ndarray:
    return Interpreter(program.module, program.store).run({"x": x})[0]


BIG = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)


@pytest.mark.parametrize(
    "weight",
    [
        BIG,
        BIG.astype(np.float64),
        BIG.astype(np.float16),
        BIG.astype(np.int64),
        BIG.astype(np.int32),
        BIG.astype(np.uint8),
        np.float32(3).reshape(()),
        np.zeros((0, 4), np.float32),
    ],
    ids=lambda w: f"{w.dtype}{w.shape}",
)
def test_raw_weights(tmp_path: Path, weight: np.ndarray) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model(weight), path)
    x = np.ones(weight.shape, weight.dtype)
    assert np.array_equal(ran(parse_onnx(path), x), weight + x)
    assert np.array_equal(ran(parse_onnx_buffer(path.read_bytes()), x), weight + x)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (TensorProto.FLOAT, [float(v) for v in range(2000)]),
        (TensorProto.DOUBLE, [float(v) for v in range(2000)]),
        (TensorProto.INT64, list(range(2000))),
        (TensorProto.INT8, [v % 120 - 60 for v in range(2000)]),
        (TensorProto.UINT64, list(range(2000))),
        (TensorProto.FLOAT16, [float(v) for v in range(2000)]),
        (TensorProto.BFLOAT16, [float(v % 100) for v in range(2000)]),
    ],
)
def test_typed_weights(kind: int, values: list[float]) -> None:
    tensor = helper.make_tensor("w", kind, [2000], values)
    assert not tensor.HasField("raw_data")
    want = numpy_helper.to_array(tensor)
    got = ran(parse_onnx_buffer(model(tensor).SerializeToString()), np.zeros_like(want))
    assert got.dtype == want.dtype
    assert np.array_equal(got, want)


def test_large_weights_are_aligned_and_read_only(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model(BIG), path)
    (array,) = dict(parse_onnx(path).store.items()).values()
    assert array.ctypes.data % 64 == 0
    assert not array.flags.writeable


def test_doc_string_cannot_name_an_extent() -> None:
    proto = model(np.float32([1, 2]))
    proto.graph.initializer[0].doc_string = "0" * 32 + ":0"
    got = ran(parse_onnx_buffer(proto.SerializeToString()), np.zeros(2, np.float32))
    assert np.array_equal(got, [1, 2])


# ---- files that are no models ------------------------------------------------------------------


def refused(path: str | Path, text: str, kind: type[MgxError] = FileError) -> None:
    with pytest.raises(kind) as e:
        parse_onnx(path)
    assert text in str(e.value)
    assert str(path) in str(e.value)


def test_missing_directory_empty(tmp_path: Path) -> None:
    refused(tmp_path / "none.onnx", "no such file")
    refused(tmp_path, "expected a model, got a folder")
    (tmp_path / "empty.onnx").write_bytes(b"")
    refused(tmp_path / "empty.onnx", "empty")


def test_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")
    refused(tmp_path / "pipe.onnx", "not a regular file")


def test_name_with_nul() -> None:
    with pytest.raises(FileError):
        load_file("a\0b.onnx")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_no_permission(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model(BIG), path)
    path.chmod(0)
    refused(path, "no permission")


@pytest.mark.parametrize(
    "data",
    [b"hello, this is text\n" * 100, b"\x00" * 64, b"\xff" * 64],
    ids=["text", "zeros", "ones"],
)
def test_other_files(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    with pytest.raises((FileError, ModelError)) as e:
        parse_onnx(path)
    assert "ONNX" in str(e.value)


def test_ort_format_is_refused_by_name(tmp_path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "m.ort")
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(
        model(BIG).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    data = (tmp_path / "m.ort").read_bytes()
    (tmp_path / "m.onnx").write_bytes(data)
    for given in (str(tmp_path / "m.ort"), tmp_path / "m.onnx", data):
        with pytest.raises(FileError, match=r"ORT format(.|\n)*the .onnx file that it was"):
            mgx_mlir.compile(given, "ref")


def test_truncated_everywhere() -> None:
    data = model(BIG).SerializeToString()
    for end in [*range(1, 60), len(data) // 2, len(data) - 1]:
        with pytest.raises((FileError, ModelError)):
            parse_onnx_buffer(data[:end])


def test_random_damage_is_an_error_or_a_model() -> None:
    data = bytearray(model(BIG).SerializeToString())
    random = np.random.default_rng(5)
    head = len(data) - BIG.nbytes
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(3):
            # the weights are numbers: only damage to what lies around them can be noticed
            at = (
                int(random.integers(0, 40))
                if random.random() < 0.5
                else -int(random.integers(1, max(head - 40, 2)))
            )
            damaged[at] = int(random.integers(0, 256))
        try:
            parse_onnx_buffer(bytes(damaged))
        except MgxError as e:
            assert str(e)  # noqa: PT017


def test_deep_nesting_ends() -> None:
    inner = b""
    for _ in range(3000):
        # a graph holding a node holding an attribute holding a graph ...
        attribute = b"\x32" + _varint(len(inner)) + inner + b"x" * 0
        node = b"\x2a" + _varint(len(attribute)) + attribute
        inner = b"\x0a" + _varint(len(node)) + node
    data = b"\x08\x08\x3a" + _varint(len(inner)) + inner
    with pytest.raises(MgxError):
        parse_onnx_buffer(data)


def _varint(n: int) -> bytes:
    out = b""
    while n >= 0x80:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


# ---- versions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [(0, 1 << 62), ((1 << 63) - 1, 0), (1 << 40, 1 << 40)])
def test_dims_that_no_array_has(dims: tuple[int, ...]) -> None:
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims, raw_data=b"")
    _says(model_of([node("Relu", "x", "y")], {"x": list(dims)}, "y"), "of dims")
    _says(model_of([node("Add", "z w", "y")], {"z": [1]}, "y", [weight]), "of dims")


def test_two_values_of_one_initializer() -> None:
    """onnxruntime warns, and takes the last one."""
    proto = model(np.ones(3, np.float32))
    proto.graph.initializer.append(proto.graph.initializer[0])
    parse_onnx_buffer(proto.SerializeToString())  # the same twice
    proto.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.zeros(3, np.float32), "w"))
    _says(proto, "initializer 'w' is stated twice, with two values")


def test_versions() -> None:
    proto = model(BIG)
    proto.ir_version = 999
    _says(proto, "ir_version 999 is newer than supported")
    proto.ir_version = 8
    proto.opset_import[0].version = 999
    _says(proto, "opset 999 is not supported")
    del proto.opset_import[:]
    _says(proto, "opset_import is missing")
    proto = model(BIG)
    proto.ClearField("ir_version")
    _says(proto, "ir_version is missing")


def _says(proto: onnx.ModelProto, text: str) -> None:
    with pytest.raises(ModelError) as e:
        parse_onnx_buffer(proto.SerializeToString())
    assert text in str(e.value)


# ---- tensors that lie --------------------------------------------------------------------------


def test_wrong_sizes() -> None:
    proto = model(BIG)
    proto.graph.initializer[0].dims[0] = 63
    _says(proto, "initializer 'w' expected 16128 bytes for dims [63, 64], got 16384")
    proto.graph.initializer[0].dims[0] = -64
    _says(proto, "negative dimension")
    proto.graph.initializer[0].dims[0] = 1 << 60
    _says(proto, "too large")
    proto = model(np.float32([1, 2]))
    proto.graph.initializer[0].data_type = 99
    _says(proto, "unsupported element type")


# ---- external data -----------------------------------------------------------------------------


def external(tmp_path: Path, **entries: str) -> Path:
    """A model whose weight lies in entries['location']."""
    tensor = numpy_helper.from_array(BIG, "w")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    path = tmp_path / "m.onnx"
    onnx.save(model(tensor), path)
    return path


def test_external_data_by_key(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"\0" * 128 + BIG.tobytes())
    # the order of the entries means nothing
    path = external(tmp_path, length=str(BIG.nbytes), offset="128", location="w.bin")
    assert np.array_equal(ran(parse_onnx(path), np.zeros_like(BIG)), BIG)
    data = path.read_bytes()
    with pytest.raises(ModelError, match="the model has no folder"):
        parse_onnx_buffer(data)
    found = parse_onnx_buffer(data, OnnxOptions(external_data_path=str(tmp_path)))
    assert np.array_equal(ran(found, np.zeros_like(BIG)), BIG)


def test_external_data_of_several_files(tmp_path: Path) -> None:
    """At odd offsets, in a folder below, without a length, empty at the very end."""
    rng = np.random.default_rng(5)
    arrays = {n: rng.standard_normal(d).astype(np.float32) for n, d in
              {"a": (3, 5), "b": (2, 5), "c": (4, 5), "d": (0, 5)}.items()}  # fmt: skip
    (tmp_path / "sub").mkdir()
    raw = {n: a.tobytes() for n, a in arrays.items()}
    (tmp_path / "one.bin").write_bytes(b"xyz" + raw["a"] + b"?" + raw["b"])
    (tmp_path / "sub/two.bin").write_bytes(raw["c"])
    places = {
        "a": ("one.bin", 3, len(raw["a"])), "b": ("one.bin", 4 + len(raw["a"]), None),
        "c": ("sub/two.bin", None, None), "d": ("sub/two.bin", len(raw["c"]), 0),
    }  # fmt: skip
    tensors: list[TensorProto] = []
    for name, (location, offset, length) in places.items():
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=arrays[name].shape)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", offset), ("length", length)):
            if value is not None:
                tensor.external_data.add(key=key, value=str(value))
        tensors.append(tensor)
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 5]) for n in "xy")
    node = helper.make_node("Concat", ["x", *arrays], ["y"], axis=0)
    graph = helper.make_graph([node], "g", [x], [y], tensors)
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    first = np.zeros((2, 5), np.float32)
    assert np.array_equal(ran(parse_onnx(path), first), np.concatenate([first, *arrays.values()]))


@pytest.mark.parametrize(
    "location", ["../w.bin", "/etc/passwd", "sub/../../w.bin", "link", "linked/w.bin"]
)
def test_external_data_stays_inside(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(BIG.tobytes())
    (folder / "link").symlink_to(tmp_path / "w.bin")
    (folder / "linked").symlink_to(tmp_path)
    path = external(folder, location=location, length=str(BIG.nbytes))
    with pytest.raises(ModelError, match="outside the model's folder"):
        parse_onnx(path)


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ({"location": "none.bin"}, "no such external data file"),
        ({"location": ""}, "without a location"),
        ({"location": "w.bin", "offset": "-1"}, "expected a number of bytes"),
        ({"location": "w.bin", "offset": "1"}, "expected 16384 bytes at offset 1"),
        ({"location": "w.bin", "offset": "9" * 30}, "expected a number of bytes"),
        ({"location": "w.bin", "length": "12"}, "expected 16384 bytes for dims"),
        ({"location": "folder"}, "directory"),
    ],
)
def test_external_data_errors(tmp_path: Path, entries: dict[str, str], text: str) -> None:
    (tmp_path / "w.bin").write_bytes(BIG.tobytes())
    (tmp_path / "folder").mkdir()
    with pytest.raises(MgxError) as e:
        parse_onnx(external(tmp_path, **entries))
    assert text in str(e.value)


def test_four_bit_initializer() -> None:
    tensor = TensorProto(name="q", data_type=TensorProto.INT4, dims=[3], raw_data=b"\x7f\x08")
    with load_bytes(model(BIG).SerializeToString()) as loaded:
        assert loaded.reader.read(tensor).tolist() == [-1, 7, -8]
        tensor.data_type = TensorProto.UINT4
        assert loaded.reader.read(tensor).tolist() == [15, 7, 8]


# ---- memory ------------------------------------------------------------------------------------

_MEASURE = """
import sys
from mgx_mlir.frontends.onnx.importer import parse_onnx
from tests.formats.fuzz import peak_bytes
parse_onnx(sys.argv[1])
print(peak_bytes() // 1024)
"""


def test_weights_exist_once(tmp_path: Path) -> None:
    big = np.random.default_rng(1).standard_normal((32, 1 << 20)).astype(np.float32)  # 128 MB
    path = tmp_path / "m.onnx"
    onnx.save(model(big), path)
    small = tmp_path / "s.onnx"
    onnx.save(model(BIG), small)
    peaks = []
    for p in (small, path):
        done = subprocess.run(
            [sys.executable, "-c", _MEASURE, str(p)], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        peaks.append(int(done.stdout))
    grown = (peaks[1] - peaks[0]) * 1024
    assert grown < 1.15 * big.nbytes, f"{grown >> 20} MiB for {big.nbytes >> 20} MiB of weights"
