"""Checkpoints: the interface of a loader, and the choice of one for a path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.text.blocks import BlockWeights
from mgx_mlir.text.folder import Folder
from mgx_mlir.text.gguf import Gguf
from mgx_mlir.text.onnx_folder import OnnxFolder, has_decoder
from mgx_mlir.text.packed_folder import PackedFolder, quantised
from mgx_mlir.text.tokens import Tokenizer


class Checkpoint(Protocol):
    """Files of a model. Only `model` and `blocks` may import torch, which a warm load does not
    need.
    """

    @property
    def config(self) -> Mapping[str, Any]:
        """Return the content of transformers' config.json."""
        ...

    @property
    def generation(self) -> Mapping[str, Any]:
        """Return the content of generation_config.json; it may be empty."""
        ...

    def files(self) -> list[Path]:
        """Return the files that define the model."""
        ...

    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer, with the template of a chat."""
        ...

    def model(self) -> Any:
        """Return transformers' model for a causal language model, in f32, for inference."""
        ...

    def blocks(self) -> Mapping[str, BlockWeights]:
        """Return the weights that the files store in blocks, by the names of linear layers."""
        ...


def checkpoint_of(path: Path) -> Checkpoint | OnnxFolder:
    """Return the loader of a path. Raises FileError, UsageError, UnsupportedModel."""
    if path.is_dir():
        if has_decoder(path):
            return OnnxFolder(path)
        return PackedFolder(path) if quantised(path) else Folder(path)
    if not path.exists():
        raise FileError("no such file or folder", location=str(path))
    if path.suffix == ".gguf":
        return Gguf(path)
    if path.suffix == ".onnx":
        return OnnxFolder.of_file(path)
    raise UsageError(
        "expected a .gguf file, an .onnx file of a decoder, or a folder with config.json, "
        "tokenizer.json, and *.safetensors or an ONNX decoder",
        location=str(path),
    )
