"""Checkpoints: the interface of a loader, and the loader of a Hugging Face folder."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.text.blocks import BlockWeights
from mgx_mlir.text.gguf import Gguf
from mgx_mlir.text.onnx_folder import OnnxFolder, has_decoder
from mgx_mlir.text.tokens import Tokenizer, imported, quiet, read_json

log = logging.getLogger(__name__)


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


class Folder:
    """A folder written by transformers' save_pretrained: config.json, *.safetensors,
    tokenizer.json.

    Raises FileError if one is missing or damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not (path / "config.json").is_file():
            raise FileError("expected a model: the folder has no config.json", location=str(path),
                            notes=["save_pretrained of transformers writes one"])  # fmt: skip
        self.config = read_json(path / "config.json")
        self.generation = read_json(path / "generation_config.json", missing={})
        self._weights = _weights_of(path)
        if not self._weights:
            raise FileError(
                "expected weights in *.safetensors",
                location=str(path),
                notes=["save_pretrained of transformers writes them"],
            )

    def files(self) -> list[Path]:
        """Return the configuration and the weights."""
        index = sorted(self.path.glob("*.safetensors.index.json"))
        return [self.path / "config.json", *index, *self._weights]

    def tokenizer(self) -> Tokenizer:
        """Read tokenizer.json and the tokenizer's other files."""
        return Tokenizer.of_folder(self.path)

    def model(self) -> Any:
        """Read the weights. Raises UsageError for an architecture unknown to transformers."""
        torch, transformers = imported("torch"), imported("transformers")
        try:
            with quiet():
                made, found = transformers.AutoModelForCausalLM.from_pretrained(
                    str(self.path),
                    dtype=torch.float32,
                    local_files_only=True,
                    output_loading_info=True,
                )  # transformers raises exceptions of many kinds
        except Exception as e:  # transformers raises of many kinds
            why = " ".join(str(e).split())[:300] or type(e).__name__
            raise UsageError(
                f"transformers cannot read the model: {why}", location=str(self.path)
            ) from e
        self._check(found)
        return made.eval()

    def _check(self, found: Mapping[str, Any]) -> None:
        """Raise FileError for missing weights: transformers would initialise them at random."""
        if missing := sorted(found["missing_keys"]):
            raise FileError(
                f"{len(missing)} tensors of the config's model are not in the files, such as "
                f"'{missing[0]}'", location=str(self.path),
            )  # fmt: skip
        if more := sorted(found["unexpected_keys"]):
            log.warning("%s: %d tensors are not of the config's model, and were left out, such as "
                        "'%s'", self.path, len(more), more[0])  # fmt: skip

    def blocks(self) -> Mapping[str, BlockWeights]:
        """Return nothing: weights are floats."""
        return {}


def _weights_of(path: Path) -> list[Path]:
    """Return a folder's files of weights. Raises FileError for one that is missing or cut."""
    found = sorted(path.glob("*.safetensors"))
    for index in path.glob("*.safetensors.index.json"):
        names = read_json(index).get("weight_map")
        stated = sorted(set(map(str, names.values()))) if isinstance(names, dict) else []
        if missing := [name for name in stated if not (path / name).is_file()]:
            raise FileError(
                f"{len(missing)} of {len(stated)} files of weights are missing, such as "
                f"'{missing[0]}'", location=str(index), notes=["download the folder again"],
            )  # fmt: skip
    for file in found:
        _check_whole(file)
    return found


def _check_whole(path: Path) -> None:
    """Raise FileError unless a .safetensors file is as long as its header states.

    Form: https://huggingface.co/docs/safetensors/index#format
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(8)
        if head == b"version ":
            raise FileError("the file is a pointer of Git LFS, and has no weights",
                            location=str(path), notes=["git lfs pull brings them"])  # fmt: skip
        length = int.from_bytes(head, "little")
        try:
            row = json.loads(file.read(length) if len(head) == 8 and 8 + length <= size else b"")
            ends = [int(t["data_offsets"][1]) for n, t in row.items() if n != "__metadata__"]
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            raise FileError(f"the file of {size} bytes is cut, or no file of safetensors",
                            location=str(path), notes=["download it again"]) from None  # fmt: skip
    whole = 8 + length + max(ends, default=0)
    if size < whole:
        raise FileError(f"the file has {size} bytes, and its header states {whole}",
                        location=str(path), notes=["download it again"])  # fmt: skip


def checkpoint_of(path: Path) -> Checkpoint | OnnxFolder:
    """Return the loader of a path. Raises FileError, UsageError, UnsupportedModel."""
    if path.is_dir():
        return OnnxFolder(path) if has_decoder(path) else Folder(path)
    if not path.exists():
        raise FileError("no such file or folder", location=str(path))
    if path.suffix == ".gguf":
        return Gguf(path)
    raise UsageError(
        "expected a .gguf file, or a folder with config.json, tokenizer.json, and *.safetensors or "
        "an ONNX decoder",
        location=str(path),
    )
