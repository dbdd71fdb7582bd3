"""--load-arg: every form of file, and every way that one can be wrong."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest

from mgx_mlir.api.argument import argument
from mgx_mlir.core.errors import FileError
from mgx_mlir.frontends.argument_files import read_argument
from mgx_mlir.programs.signature import Port
from tests.driver.conftest import Driver

X = np.arange(8, dtype=np.float32).reshape(2, 4) - 3
PORT = Port("x", "float_type", (2, 4))


def written(folder: Path, form: str, array: np.ndarray = X) -> Path:
    path = folder / f"x.{form}"
    if form == "npy":
        np.save(path, array)
    elif form == "npz":
        np.savez(path, other=np.zeros(3), x=array)
    elif form == "pb":
        path.write_bytes(onnx.numpy_helper.from_array(array).SerializeToString())
    else:
        argument.save(argument(array), path)
    return path


@pytest.mark.parametrize("form", ["npy", "npz", "pb", "msgpack", "arg"])
def test_every_form(tmp_path: Path, form: str) -> None:
    found = read_argument(written(tmp_path, form), PORT)
    assert found.dtype == np.float32
    assert np.array_equal(found, X)


def test_layouts_and_byte_orders(tmp_path: Path) -> None:
    np.save(tmp_path / "f.npy", np.asfortranarray(X))
    assert np.array_equal(read_argument(tmp_path / "f.npy", PORT), X)
    np.save(tmp_path / "b.npy", X.astype(">f4"))
    found = read_argument(tmp_path / "b.npy", PORT)
    assert found.dtype.isnative
    assert np.array_equal(found, X)
    np.savez(tmp_path / "only.npz", anything=X)
    assert np.array_equal(read_argument(tmp_path / "only.npz", PORT), X)
    np.savez_compressed(tmp_path / "c.npz", x=X)
    assert np.array_equal(read_argument(tmp_path / "c.npz", PORT), X)
    np.save(tmp_path / "s.npy", np.float32(3))
    assert read_argument(tmp_path / "s.npy", Port("x", "float_type", ())) == 3
    np.save(tmp_path / "e.npy", np.zeros((0, 4), np.float32))
    assert read_argument(tmp_path / "e.npy", Port("x", "float_type", (-1, 4))).shape == (0, 4)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("bf16_type", ml_dtypes.bfloat16), ("fp8e4m3fn_type", ml_dtypes.float8_e4m3fn)],
)
def test_types_that_numpy_lacks(tmp_path: Path, name: str, kind: type) -> None:
    np.save(tmp_path / "x.npy", X.astype(kind))
    found = read_argument(tmp_path / "x.npy", Port("x", name, (2, 4)))
    assert found.dtype == kind
    assert np.array_equal(found.astype(np.float32), X)


def header(dims: str, descr: str = "'<f4'") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {dims}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def bomb() -> bytes:
    """A member of 2 GB of zeros in some kilobytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z, z.open("x.npy", "w") as f:
        f.write(header("(500000000,)"))
        for _ in range(64):
            f.write(bytes(1 << 20))
    return out.getvalue()


def external() -> bytes:
    tensor = onnx.numpy_helper.from_array(X)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")
    return tensor.SerializeToString()


def claims(dims: list[int]) -> bytes:
    tensor = onnx.numpy_helper.from_array(X)
    del tensor.dims[:]
    tensor.dims.extend(dims)
    return tensor.SerializeToString()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.npy", b""),
        ("x.npy", b"\x93NUMPY"),
        ("x.npy", bytes(range(200))),
        ("x.npy", header("(2, 4)")),
        ("x.npy", header("(2, 4)") + bytes(31)),
        ("x.npy", header("(1000000000000, 1000000)")),
        ("x.npy", header("(-1, 4)") + bytes(32)),
        ("x.npy", header("(2, 4)", "'|O'") + bytes(64)),
        ("x.npy", header("(2, 4)", "'|V0'")),
        ("x.npy", header("(2, 4)", "__import__('os').system('false')") + bytes(32)),
        ("x.npy", header("(2, 4)", "'<f8'") + bytes(64)),
        ("x.npy", header("(4, 2)") + bytes(32)),
        ("x.npz", b""),
        ("x.npz", b"PK\x03\x04" + bytes(100)),
        ("x.npz", bomb()),
        ("x.pb", b""),
        ("x.pb", b"\xff" * 40),
        ("x.pb", external()),
        ("x.pb", claims([2, 5])),
        ("x.pb", claims([1 << 40])),
        ("x.pb", claims([-2, -4])),
        ("x.arg", b""),
        ("x.arg", b"\xdf\xff\xff\xff\xff"),
    ],
)
def test_hostile_files(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    for port in (PORT, Port("x", "float_type", (-1, 4))):
        with pytest.raises(FileError) as e:
            read_argument(path, port)
        assert e.value.location == str(path)
        assert "\n" not in e.value.message


def test_members_that_are_not_there(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=X, b=X)
    with pytest.raises(FileError, match="has no array 'x'") as e:
        read_argument(tmp_path / "x.npz", PORT)
    assert e.value.notes == ("it has: a, b",)


def test_the_command(driver: Driver, models: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "npy", np.full((2, 4), -1, np.float32))
    ran = driver("verify", "--cpu", models / "wider.onnx", "--load-arg", "@x", path)
    assert ran.status == 0
    assert "  warning: cpu: all elements are 0" in ran.lines  # relu of -1
    # the file decides the sizes of the dims
    np.save(tmp_path / "rows.npy", np.ones((5, 3), np.float32))
    ran = driver("verify", "--cpu", models / "open.onnx", "--default-dyn-dim", "{min:1,max:8}",
                 "--load-arg", "@x", tmp_path / "rows.npy")  # fmt: skip
    assert ran.status == 0


def test_wrong_uses(driver: Driver, models: Path, tmp_path: Path) -> None:
    def failed(*options: object) -> str:
        ran = driver("run", "--ref", models / "wider.onnx", *options)
        assert ran.status == 2
        return ran.errors[-1] if "note" not in ran.errors[-1] else ran.errors[-2]

    path = written(tmp_path, "npy")
    assert "expected @name first" in failed("--load-arg", path)
    assert "expected one file after @x" in failed("--load-arg", "@x", path, path)
    assert "expected one file after @x" in failed("--load-arg", "@x")
    assert "the model has no input 'q'" in failed("--load-arg", "@q", path)
    assert "in both --load-arg and --fill0" in failed("--load-arg", "@x", path, "--fill0", "x")
    missing = tmp_path / "no.npy"
    assert failed("--load-arg", "@x", missing).startswith(f"{missing}: error: cannot open the file")
    (tmp_path / "d.npy").mkdir()
    assert "expected a regular file" in failed("--load-arg", "@x", tmp_path / "d.npy")
    os.mkfifo(tmp_path / "pipe.npy")
    assert "expected a regular file" in failed("--load-arg", "@x", tmp_path / "pipe.npy")
    np.save(tmp_path / "other.npy", X.astype(np.float64))
    assert failed("--load-arg", "@x", tmp_path / "other.npy").endswith(
        "input 'x' is float_type {2, 4}, got double_type {2, 4}"
    )
