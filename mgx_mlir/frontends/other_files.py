"""Unsupported files, identified by content: what each is, and what to do.

Formats: PyTorch's and Keras's archives (zip), safetensors' and GGUF's headers, the identifier of
TensorFlow Lite's FlatBuffers, HDF5's signature, the pointer files of Git LFS.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import read_at

_HEAD = 512  # bytes at the begin that identify a format
_TAIL = 1 << 16  # bytes at the end, which hold a zip archive's directory
_LISTED = 5  # files of a folder listed in a message
_SCANNED = 1000  # entries of a folder that are examined
_EXPORT = "export the whole model to ONNX, in PyTorch or by optimum-cli (docs/howto/torch-model.md)"
_GENERATE = "'mgx-driver generate' runs it if it is a language model"
_TORCH = "torch.compile(module, backend='mgx') runs the module; torch.onnx.export writes a file"
_AGAIN = "export the model that it was made from to ONNX, or to a TensorFlow SavedModel"
_KERAS = "install tensorflow and name it .keras or .h5, or write a SavedModel: model.export(folder)"
_WEIGHTS = {".safetensors", ".bin", ".gguf", ".pt", ".pth"}
_HUB = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?")

Finding = tuple[str, str]  # content of a file, and what to do
_WITHOUT_A_GRAPH = ("a file of weights without a graph", _EXPORT)
_BY_NAME: dict[str, Finding] = {  # formats without a signature, identified by suffix
    **dict.fromkeys((".bin", ".ckpt", ".pt", ".pth", ".safetensors"), _WITHOUT_A_GRAPH),
    **dict.fromkeys((".caffemodel", ".mlmodel", ".plan"), ("a model of another tool", _AGAIN)),
}


def refuse_other(path: str | os.PathLike[str], *, by_name: bool = False) -> None:
    """Raise FileError for a missing path, or a file that no reader supports.

    by_name: use the suffix if the content is not recognised.
    """
    name = os.fspath(path)
    try:
        mode = os.stat(name).st_mode
    except FileNotFoundError:
        raise FileError("no such file", location=name, notes=missing_notes(name)) from None
    except (OSError, ValueError):
        return  # the reader that opens it reports the error
    found = _folder(name) if stat.S_ISDIR(mode) else _content(name, mode)
    if found is None and by_name:
        found = _BY_NAME.get(Path(name).suffix.lower())
    if found is not None:
        raise FileError(f"expected a model, got {found[0]}", location=name, notes=[found[1]])


def _export_of(name: str) -> str:
    return f"'optimum-cli export onnx --model {name} OUT' writes an ONNX file to OUT"


def missing_notes(name: str) -> list[str]:
    """Return the notes for a missing path: addresses and hub ids are not downloaded."""
    if "://" in name:
        return ["addresses are not fetched: download the model, then name its file"]
    if _HUB.fullmatch(name) and not Path(name).suffix:
        return [f"a hub's ids are not fetched: {_export_of(name)}"]
    return []


def _folder(name: str) -> Finding | None:
    """Return what a folder without a SavedModel contains."""
    with os.scandir(name) as entries:
        found = sorted(e.name for e, _ in zip(entries, range(_SCANNED), strict=False))
    if {"saved_model.pb", "saved_model.pbtxt"} & {*found}:
        return None
    models = [f for f in found if Path(f).suffix.lower() in (".onnx", ".mxr")]
    if models:
        shown = ", ".join(os.path.join(name, f) for f in models[:_LISTED])
        return "a folder of model files", f"name one of them: {shown}"
    if any(Path(f).suffix.lower() in _WEIGHTS for f in found):
        way = (
            f"{_GENERATE}; 'optimum-cli export onnx --model {name} OUT' writes an ONNX file to OUT"
        )
        return "a folder of weights without a graph", way
    return "a folder that holds no saved_model.pb", "name a model file, or a SavedModel's folder"


def _content(name: str, mode: int) -> Finding | None:
    if not stat.S_ISREG(mode):
        return None
    try:
        fd = os.open(name, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
    except OSError:
        return None  # the reader that opens it reports the error
    try:
        return _kind(read_at(fd, _HEAD, 0), _tail(fd))
    finally:
        os.close(fd)


def _tail(fd: int) -> bytes:
    return read_at(fd, _TAIL, max(0, os.fstat(fd).st_size - _TAIL))


def _kind(head: bytes, tail: bytes) -> Finding | None:
    """Return the format from the first and last bytes of a file; None for a model or an unknown
    format.
    """
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if text.startswith(b"version https://git-lfs"):
        return "a pointer of Git LFS, not the file itself", "'git lfs pull' fetches the file"
    if text.startswith((b"<!doctype html", b"<html")):
        return (
            "an HTML page, most likely the page of a failed download",
            "download the file itself: on a hub, the address with 'resolve' in place of 'blob'",
        )
    if text.startswith((b"<?xml", b"<net ")):
        return "XML text (OpenVINO's models are XML)", _AGAIN
    if head.startswith(b"PK\x03\x04"):
        return _archive(head + tail)
    if head.startswith(b"GGUF"):
        return "weights without a graph (GGUF, of llama.cpp)", f"{_GENERATE}; else {_EXPORT}"
    if head[4:8] == b"TFL3":
        return "a TensorFlow Lite model", _AGAIN
    if head[4:8] == b"ftrt" or head.startswith(b"ftrt"):
        return "a TensorRT engine, which is code for one NVIDIA GPU", _AGAIN
    if head[8:10] == b'{"' and int.from_bytes(head[:8], "little") < 1 << 32:
        return "weights without a graph (safetensors)", _EXPORT
    if head.startswith(b"\x93NUMPY"):
        return "an array of numpy without a graph", _EXPORT
    if head.startswith(b"\x80\x02") and b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19" in head:
        return "a PyTorch file (weights, or a pickled module), which holds no graph", _TORCH
    return None


def _archive(data: bytes) -> Finding:
    """Return the format of a zip archive from its entries."""
    if b"/archive_format" in data or b"serialized_exported_program.json" in data:
        return (
            "a program of torch.export",
            "mgx_mlir.compile(torch.export.load(file)) compiles it",
        )
    if b"/data.pkl" in data:
        if b"/code/__torch__/" in data:
            return "a TorchScript module", _TORCH
        return "a PyTorch file (weights, or a pickled module), which holds no graph", _TORCH
    if b"module.fb" in data:
        return "code of IREE without a program", "iree-run-module runs it; FILE.mxr holds both"
    if b"model.weights.h5" in data:
        return "a Keras model", _KERAS
    if b".npy" in data:
        return "arrays of numpy without a graph", _EXPORT
    return "a zip archive", "unpack it, and name the model in it"
