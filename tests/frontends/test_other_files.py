"""Files that people have and no reader takes: the driver, the API and sessions say the same."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import mgx_mlir
import mgx_mlir.onnxruntime
from mgx_mlir.core.errors import FileError, MgxError
from mgx_mlir.frontends.other_files import refuse_other
from mgx_mlir.tools.driver.arguments import Arguments
from mgx_mlir.tools.driver.model import Model


def archive(*names: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as z:
        for name in names:
            z.writestr(name, "{}")
    return made.getvalue()


def by_driver(name: str) -> object:
    return Model(Arguments("read", file=name)).loaded


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 5\n"
LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # torch.save without an archive
OTHERS: dict[str, tuple[bytes, str, str]] = {
    "weights.pt": (archive("w/data.pkl", "w/version"), "a PyTorch file", "torch.compile"),
    "old.pth": (LEGACY, "a PyTorch file", "torch.onnx.export"),
    "script.pt": (archive("s/data.pkl", "s/code/__torch__/m.py"), "TorchScript", "torch.compile"),
    "m.pt2": (archive("m/models/model.json", "m/archive_format"), "torch.export", "export.load"),
    "w.safetensors": (b"\x40" + b"\0" * 7 + b'{"a":{}}', "weights without a graph", "to ONNX"),
    "w.gguf": (b"GGUF\x03\0\0\0", "weights without a graph (GGUF", "mgx-driver generate"),
    "m.tflite": (b"\x1c\0\0\0TFL3", "TensorFlow Lite", "SavedModel"),
    "m.zip": (archive("config.json", "model.weights.h5"), "a Keras model", "model.export"),
    "a.npz": (archive("x.npy"), "arrays of numpy", "to ONNX"),
    "a.npy": (b"\x93NUMPY\x01\0", "an array of numpy", "to ONNX"),
    "m.engine": (b"ftrt" + b"\0" * 8, "a TensorRT engine", "ONNX"),
    "m.xml": (b'<?xml version="1.0"?>\n<net name="a">', "OpenVINO", "ONNX"),
    "lfs.onnx": (LFS, "a pointer of Git LFS", "git lfs pull"),
    "page.onnx": (b"\n<!DOCTYPE html>\n<html>", "an HTML page", "'resolve'"),
    "page.pb": (b"<html><head>", "an HTML page", "download"),
    "weights.bin": (b"\x0f\x01\x02", "weights without a graph", "to ONNX"),  # suffix alone
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_content_is_named_with_the_way_on(tmp_path: Path, name: str) -> None:
    data, what, way = OTHERS[name]
    path = tmp_path / name
    path.write_bytes(data)
    readers: list[Callable[[], object]] = [
        lambda: mgx_mlir.compile(path),
        lambda: by_driver(str(path)),
    ]
    if name != "weights.bin":  # a reader that was asked for does not look at the name
        readers += [lambda: mgx_mlir.parse_onnx(path), lambda: mgx_mlir.parse_tf(path)]
        readers.append(lambda: mgx_mlir.onnxruntime.InferenceSession(str(path)))
    for read in readers:
        with pytest.raises(MgxError) as failed:
            read()
        [note] = failed.value.notes
        assert what in failed.value.message
        assert way in note
        assert failed.value.location == str(path)


@pytest.mark.parametrize(
    ("files", "what", "way"),
    [
        (["a.onnx", "b.onnx"], "a folder of model files", "name one of them"),
        (["config.json", "model.safetensors"], "a folder of weights", "if it is a language model"),
        ([], "no saved_model.pb", "SavedModel"),
    ],
)
def test_folders(tmp_path: Path, files: list[str], what: str, way: str) -> None:
    for name in files:
        (tmp_path / name).touch()
    for read in (mgx_mlir.compile, mgx_mlir.parse_onnx, mgx_mlir.parse_tf):
        with pytest.raises(FileError, match=what) as failed:
            read(tmp_path)
        assert way in str(failed.value)


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("gpt2", "optimum-cli export onnx --model gpt2 "),
        ("org/model-7b", "hub"),
        ("hf://a/b", "download"),
        ("https://a.org/m.onnx", "download"),
        ("gone.onnx", None),
    ],
)
def test_missing_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, note: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    session = mgx_mlir.onnxruntime.InferenceSession
    for read in (mgx_mlir.compile, mgx_mlir.parse_onnx, session, by_driver):
        with pytest.raises(MgxError, match="no such file") as failed:
            read(name)
        assert failed.value.location == name
        assert [(note or "") in n for n in failed.value.notes] == [True] * (note is not None)


def test_what_is_a_model_is_let_through(tmp_path: Path) -> None:
    for data in (b"\x08\x08\x12\x04test", b"\x83\xa7version", b'{"version": 8}', b"module {}", b""):
        (tmp_path / "m").write_bytes(data)
        refuse_other(tmp_path / "m")
    (tmp_path / "saved_model.pb").touch()
    refuse_other(tmp_path)


def test_neither_pipes_nor_devices_are_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    refuse_other(tmp_path / "pipe.gguf", by_name=False)
    with pytest.raises(FileError):
        mgx_mlir.compile(tmp_path / "pipe.gguf")
