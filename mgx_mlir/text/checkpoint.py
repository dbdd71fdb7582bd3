"""A checkpoint: what a loader of files has to give, and the folder that transformers keeps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.text.blocks import BlockWeights
from mgx_mlir.text.gguf import Gguf
from mgx_mlir.text.tokens import Tokenizer, imported, read_json


class Checkpoint(Protocol):
    """Files of a model. Nothing but `model` and `blocks` may import torch: a warm load has none."""

    @property
    def config(self) -> Mapping[str, Any]:
        """Return what config.json of transformers holds."""
        ...

    @property
    def generation(self) -> Mapping[str, Any]:
        """Return what generation_config.json holds; it may be empty."""
        ...

    def files(self) -> list[Path]:
        """Return the files whose content makes the model."""
        ...

    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer, with the template of a chat."""
        ...

    def model(self) -> Any:
        """Return transformers' model for a causal language model, in f32, for inference."""
        ...

    def blocks(self) -> Mapping[str, BlockWeights]:
        """Return weights that are kept in blocks as they are, by the names of linear layers."""
        ...


class Folder:
    """A folder as transformers keeps it: config.json, *.safetensors, tokenizer.json.

    Raises FileError where one is missing or damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = read_json(path / "config.json")
        self.generation = read_json(path / "generation_config.json", missing={})
        self._weights = sorted(path.glob("*.safetensors"))
        if not self._weights:
            raise FileError(
                "expected weights in *.safetensors",
                location=str(path),
                notes=["save_pretrained of transformers writes them"],
            )

    def files(self) -> list[Path]:
        """Return the configuration and the weights."""
        return [self.path / "config.json", *self._weights]

    def tokenizer(self) -> Tokenizer:
        """Read tokenizer.json and what stands beside it."""
        return Tokenizer.of_folder(self.path)

    def model(self) -> Any:
        """Read the weights. Raises UsageError for an architecture unknown to transformers."""
        torch, transformers = imported("torch"), imported("transformers")
        try:
            made = transformers.AutoModelForCausalLM.from_pretrained(
                str(self.path), dtype=torch.float32, local_files_only=True
            )
        except Exception as e:  # transformers raises of many kinds
            raise UsageError(
                f"transformers cannot read the model: {e}", location=str(self.path)
            ) from e
        return made.eval()

    def blocks(self) -> Mapping[str, BlockWeights]:
        """Return none: weights are floats."""
        return {}


def checkpoint_of(path: Path) -> Checkpoint:
    """Return the loader of a path. Raises FileError, UsageError."""
    if path.is_dir():
        return Folder(path)
    if not path.exists():
        raise FileError("no such file or folder", location=str(path))
    if path.suffix == ".gguf":
        return Gguf(path)
    raise UsageError(
        "expected a .gguf file, or a folder with config.json, *.safetensors and tokenizer.json",
        location=str(path),
    )
