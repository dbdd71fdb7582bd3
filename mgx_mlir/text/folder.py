"""Folders of transformers: config.json, weights in *.safetensors, and a tokenizer."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from mgx_mlir.core.errors import FileError, MgxError, UnsupportedModel, UsageError
from mgx_mlir.text.blocks import BlockWeights
from mgx_mlir.text.files import read_json
from mgx_mlir.text.packages import imported, quiet
from mgx_mlir.text.tokens import Tokenizer

log = logging.getLogger(__name__)


class Folder:
    """A folder written by transformers' save_pretrained: config.json, *.safetensors,
    tokenizer.json.

    Raises FileError if one is missing or damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if (path / "adapter_config.json").is_file():
            raise UnsupportedModel(
                "the folder has an adapter (adapter_config.json), which changes another model",
                location=str(path),
                notes=["merge_and_unload of peft, and save_pretrained, write the model of both"],
            )
        if not (path / "config.json").is_file():
            raise FileError("expected a model: the folder has no config.json", location=str(path),
                            notes=["save_pretrained of transformers writes one"])  # fmt: skip
        self.config = read_json(path / "config.json")
        self.generation = read_json(path / "generation_config.json", missing={})
        self.weights, tensors = _weights_of(path)
        if not self.weights:
            raise FileError(
                "expected weights in *.safetensors",
                location=str(path),
                notes=["save_pretrained of transformers writes them"],
            )

        _check_layers(self.config, tensors, path)

    def files(self) -> list[Path]:
        """Return the configuration and the weights."""
        index = sorted(self.path.glob("*.safetensors.index.json"))
        return [self.path / "config.json", *index, *self.weights]

    def tokenizer(self) -> Tokenizer:
        """Read tokenizer.json and the tokenizer's other files."""
        return Tokenizer.of_folder(self.path)

    def model(self) -> Any:
        """Read the weights. Raises UsageError for an architecture unknown to transformers."""
        torch, transformers = imported("torch"), imported("transformers")
        with self.reading():
            made, found = transformers.AutoModelForCausalLM.from_pretrained(
                str(self.path),
                dtype=torch.float32,
                local_files_only=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
        self.check(found)
        return made.eval()

    @contextlib.contextmanager
    def reading(self) -> Generator[None]:
        """Give errors of transformers, which have many kinds, one form and one line."""
        try:
            with quiet():
                yield
        except MgxError:
            raise
        except Exception as e:
            why = " ".join(str(e).split())[:300] or type(e).__name__
            if "ignore_mismatched_sizes" in why:
                why = "the files' tensors have other dims than the config states"
            if "custom code" in why:
                why = "it has code of its own (auto_map in config.json), which is not run"
            raise UsageError(
                f"transformers cannot read the model: {why}", location=str(self.path)
            ) from e

    def check(self, found: Mapping[str, Any]) -> None:
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


def _check_layers(config: Mapping[str, Any], tensors: int, path: Path) -> None:
    """Raise FileError if a config has more layers than files have tensors: transformers would make
    each of them first.
    """
    own = config.get("text_config") or config
    for name in ("num_hidden_layers", "n_layer", "num_layers"):
        found = own.get(name) if isinstance(own, Mapping) else None
        if isinstance(found, int) and found > tensors:
            raise FileError(f"{name} of the config is {found}, and the files have {tensors} "
                            "tensors", location=str(path / "config.json"))  # fmt: skip


def _weights_of(path: Path) -> tuple[list[Path], int]:
    """Return a folder's files of weights, and the number of their tensors.

    Raises FileError for a file that is missing or cut.
    """
    found = sorted(path.glob("*.safetensors"))
    for index in path.glob("*.safetensors.index.json"):
        names = read_json(index).get("weight_map")
        stated = sorted(set(map(str, names.values()))) if isinstance(names, dict) else []
        if missing := [name for name in stated if not (path / name).is_file()]:
            raise FileError(
                f"{len(missing)} of {len(stated)} files of weights are missing, such as "
                f"'{missing[0]}'", location=str(index), notes=["download the folder again"],
            )  # fmt: skip
    return found, sum(map(_checked, found))


def _checked(path: Path) -> int:
    """Return the number of tensors of a .safetensors file.

    Raises FileError unless it is as long as its header states. Form:
    https://huggingface.co/docs/safetensors/index#format
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
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
            raise FileError(f"the file of {size} bytes is cut, or no file of safetensors",
                            location=str(path), notes=["download it again"]) from None  # fmt: skip
    whole = 8 + length + max(ends, default=0)
    if size < whole:
        raise FileError(f"the file has {size} bytes, and its header states {whole}",
                        location=str(path), notes=["download it again"])  # fmt: skip
    return len(ends)
