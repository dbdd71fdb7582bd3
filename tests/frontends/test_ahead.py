"""Large tensors of a file are read and digested ahead, and are what the importer reads itself."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.literals import bytes_digest
from mgx_mlir.frontends.onnx import ahead, file_digest
from mgx_mlir.frontends.onnx.ahead import ReadAhead
from mgx_mlir.frontends.onnx.importer import parse_onnx


@pytest.fixture
def file(tmp_path: Path) -> tuple[int, bytes]:
    data = np.random.default_rng(0).bytes(5 << 20)
    path = tmp_path / "weights"
    path.write_bytes(data)
    return os.open(path, os.O_RDONLY), data


def test_tensors_are_read_once_and_in_any_order(file: tuple[int, bytes]) -> None:
    fd, data = file
    mb = 1 << 20
    places = [(0, mb), (mb, 2 * mb), (3 * mb, 2 * mb), (mb, 12)]
    reading = ReadAhead(fd, "weights", places[:3])
    reading._thread.join()
    for offset, nbytes in places[2::-1]:
        found = reading.take(offset, nbytes)
        assert found is not None
        assert found[0].tobytes() == data[offset : offset + nbytes]
        assert found[1] == bytes_digest(found[0])
        assert reading.take(offset, nbytes) is None
    reading.close()
    os.close(fd)


def test_what_is_not_there_is_left_to_the_importer(file: tuple[int, bytes]) -> None:
    fd, _ = file
    beyond, small = (4 << 20, 2 << 20), (0, 64)
    reading = ReadAhead(fd, "weights", [beyond, small, (1 << 20, 1 << 20)])
    assert reading.take(*beyond) is None  # behind the end of the file
    assert reading.take(*small) is None
    assert reading.take(1 << 20, 99) is None  # size differs from the tensor's
    reading.close()
    assert not reading._thread.is_alive()
    os.close(fd)


def test_it_waits_for_room(file: tuple[int, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    fd, data = file
    monkeypatch.setattr(ahead, "_ROOM", 1)
    mb = 1 << 20
    reading = ReadAhead(fd, "weights", [(i * mb, mb) for i in range(4)])
    while not reading._rows[0].done.wait(1):
        pass
    assert [row.is_begun for row in reading._rows.values()] == [True, False, False, False]
    for i in (0, 3, 2, 1):
        found = reading.take(i * mb, mb)
        assert found is None or found[0].tobytes() == data[i * mb : (i + 1) * mb]
    reading.close()
    os.close(fd)


def test_a_program_has_the_weights_of_its_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    weights = {f"w{i}": rng.standard_normal((512, 512)).astype(np.float32) for i in range(3)}
    nodes = [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(3)]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 512]) for n in ("x0", "x3"))
    tensors = [numpy_helper.from_array(a, n) for n, a in reversed(weights.items())]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y], tensors), ir_version=8)
    path = tmp_path / "m.onnx"
    onnx.save(model, str(path))
    store = parse_onnx(path).store
    found = {a.tobytes(): key for key, a in store.items()}
    assert set(found) == {a.tobytes() for a in weights.values()}
    assert all(store.get(key).flags.writeable is False for key in found.values())
    path.write_bytes(path.read_bytes()[: -(1 << 20)])
    with pytest.raises(FileError):
        parse_onnx(path)


def two_weights(path: Path, fill: float = 0.5) -> bytes:
    weights = [np.full((600, 900), 0.25, np.float32), np.full((700, 800), fill, np.float32)]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", f"w{i}"], [f"y{i}"]) for i in range(2)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "k"])],
        [helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, None) for i in range(2)],
        [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)],
    )
    opsets = [helper.make_opsetid("", 17)]
    data = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    path.write_bytes(data)
    time.sleep(0.1)  # digests of a file that is new are not kept
    return data


def test_tensors_of_a_file_whose_digest_was_asked_for_are_not_digested_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.onnx"
    two_weights(path)
    file_digest.file_digest(path)
    fd = os.open(path, os.O_RDONLY)
    known = file_digest.tensor_digests(fd)
    for (offset, nbytes), found in known.items():
        data = np.frombuffer(os.pread(fd, nbytes, offset), np.uint8)
        assert found == bytes_digest(data)
    with monkeypatch.context() as patch:
        patch.setattr(ahead, "bytes_digest", lambda array: 1 / 0)
        reading = ReadAhead(fd, "weights", known)
        reading._thread.join()
        assert [reading.take(*place) is not None for place in known] == [True, True]
        reading.close()
    two_weights(path, 0.75)
    changed = os.open(path, os.O_RDONLY)
    assert file_digest.tensor_digests(changed) == {}
    for number in (fd, changed):
        os.close(number)


def test_the_digest_of_a_file_is_of_all_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    data = two_weights(path)
    found = {file_digest.file_digest(path)}
    path.write_bytes(data)
    assert file_digest.file_digest(path) in found
    at = [data.index(b"MatMul"), data.index(b"w1"), len(data) // 4, 3 * len(data) // 4]
    for i in at:
        path.write_bytes(data[:i] + bytes([data[i] ^ 1]) + data[i + 1 :])
        found.add(file_digest.file_digest(path))
    assert len(found) == 1 + len(at)
    path.write_bytes(b"no model" * 1000)
    with pytest.raises(FileError):
        file_digest.file_digest(path)
