"""Large tensors of a file are read and digested ahead, and are what the importer reads itself."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.literals import bytes_digest
from mgx_mlir.frontends.onnx import ahead
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
    assert reading.take(1 << 20, 99) is None  # of another size than the tensor's
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
