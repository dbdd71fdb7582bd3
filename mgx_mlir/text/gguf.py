"""Checkpoints in .gguf files: config, tokenizer, and weights in 4 and 8 bits.

Matrices stay as codes where the file has them in blocks (`gguf_blocks`). Others are widened to f32.
"""

# gguf and transformers are extras, and need not be there
# pyright: reportMissingImports=false
from __future__ import annotations

import atexit
import contextlib
import json
import logging
import math
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import mgx_mlir
from mgx_mlir.core.errors import FileError
from mgx_mlir.targets.cache import MODELS, default_cache
from mgx_mlir.targets.digests import digest
from mgx_mlir.text.blocks import BlockWeights
from mgx_mlir.text.files import read_json
from mgx_mlir.text.gguf_blocks import blocks_of, held
from mgx_mlir.text.gguf_config import FACTORS, FAMILIES, LONG, SHORT, Values, config_of
from mgx_mlir.text.gguf_header import Entry, Header
from mgx_mlir.text.gguf_parts import read_parts
from mgx_mlir.text.gguf_tokens import tokenizer_of
from mgx_mlir.text.packages import imported, quiet
from mgx_mlir.text.tokens import Tokenizer

log = logging.getLogger(__name__)
_FLOATS = ("F32", "F16", "BF16")  # types of a file that are no blocks
_OF_CONFIG = frozenset({FACTORS, LONG, SHORT})  # tensors that the config is made from


class Gguf:
    """Checkpoint of a .gguf file, or of several, whose headers were checked."""

    def __init__(self, path: Path) -> None:
        """Read header, config and tokenizer.

        Errors: FileError; UsageError where a package is missing.
        """
        self.path = path
        self._header: Header
        self._header, self._paths = read_parts(path)
        self._folder = self._found_or_written()
        self._family = FAMILIES[self._header.values["general.architecture"]]
        self.config: Mapping[str, Any] = read_json(self._folder / "config.json")
        self.generation: Mapping[str, Any] = {}
        self._read: dict[str, BlockWeights | np.ndarray] | None = None

    def files(self) -> list[Path]:
        """Return the file or files, and the config made from them."""
        return [self._folder / "config.json", *self._paths]

    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer, with the template of a chat."""
        return Tokenizer.of_folder(self._folder)

    def model(self) -> Any:
        """Return transformers' model with all weights, in f32."""
        torch = imported("torch")
        wide = {
            name: torch.tensor(w.floats() if isinstance(w, BlockWeights) else w)
            for name, w in self._weights().items()
        }
        empty = self._empty()
        kind: Any = type(empty)
        with quiet():
            return kind.from_pretrained(
                None, config=empty.config, state_dict=wide, dtype=torch.float32
            ).eval()

    def blocks(self) -> Mapping[str, BlockWeights]:
        """Return the linear layers whose weights are in blocks, by name."""
        found = {
            name.removesuffix(".weight"): w
            for name, w in self._weights().items()
            if isinstance(w, BlockWeights)
        }
        embedding = found.pop("model.embed_tokens", None)
        if embedding is not None and self.config.get("tie_word_embeddings"):
            found["lm_head"] = embedding
        return found

    def _empty(self) -> Any:
        """Return transformers' model without weights."""
        torch, transformers = imported("torch"), imported("transformers")
        try:
            with quiet(), torch.device("meta"):
                config = transformers.AutoConfig.from_pretrained(
                    self._folder, trust_remote_code=False
                )
                return transformers.AutoModelForCausalLM.from_config(
                    config, trust_remote_code=False
                )
        except Exception as e:  # values of the file can cause any exception
            why = f"{type(e).__name__}: {' '.join(str(e).split())[:200]}"
            raise FileError(
                f"transformers takes no such config: {why}", location=str(self.path)
            ) from e

    def _weights(self) -> dict[str, BlockWeights | np.ndarray]:
        if self._read is None:
            imported("gguf")
            self._read = dict(self.weights(self._empty()))
        return self._read

    # ---- config and tokenizer ---------------------------------------------------------------

    def _found_or_written(self) -> Path:
        """Return a folder with config and tokenizer in transformers' form.

        It stays in the cache, because making it takes seconds; with the cache off, until the
        process ends.
        """
        cache = default_cache()
        if cache is None or cache.standing != "own":
            made = tempfile.TemporaryDirectory(prefix="mgx-text-")
            atexit.register(made.cleanup)
            self._write(Path(made.name))
            return Path(made.name)
        # the config also depends on factors, which are tensors
        more = [found for name in sorted(_OF_CONFIG) if (found := self._vector(name)) is not None]
        key = digest(mgx_mlir.__version__, self._header.digest, *more)
        found = cache.root / MODELS / key
        if not found.is_dir():
            found.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.TemporaryDirectory(dir=found.parent) as beside:
                self._write(Path(beside))
                with contextlib.suppress(OSError):  # another process was first
                    os.rename(beside, found)
                    os.mkdir(beside)  # marked before the folder is removed
        with contextlib.suppress(OSError):  # time of last use
            os.utime(found)
        return found

    def _write(self, folder: Path) -> None:
        imported("gguf")  # not read behind it: a folder that was written needs no gguf
        config = config_of(self._header, self._vector)
        architecture = self._header.values["general.architecture"]
        tokenizer = tokenizer_of(Values(self._header, architecture))
        (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
        tokenizer.inner.save(str(folder / "tokenizer.json"))
        templates = {"default": tokenizer.template, "tool_use": tokenizer.of_tools}
        rows = [{"name": n, "template": t} for n, t in templates.items() if t is not None]
        row = {**tokenizer.special, "chat_template": rows}
        (folder / "tokenizer_config.json").write_text(json.dumps(row), encoding="utf-8")

    def _vector(self, name: str) -> np.ndarray | None:
        """Return a tensor of the file in f32; None where it has none of this name."""
        entry = self._header.tensors.get(name)
        return None if entry is None else self._dense(entry, self._bytes(entry))

    # ---- weights ----------------------------------------------------------------------------

    def weights(self, model: Any) -> Iterator[tuple[str, BlockWeights | np.ndarray]]:
        """Yield weights by their names in transformers' model, which may be on device `meta`.

        Matrices in blocks are yielded as codes, all others in f32. Permuted rows are put back in
        order. Errors: FileError for a missing or unexpected tensor, or another shape.
        """
        shapes = {n: tuple(p.shape) for n, p in model.state_dict().items()}
        names = self._names(model, shapes)
        self._check(names, shapes)
        widened: Counter[str] = Counter()
        for entry in self._header.tensors.values():
            if entry.name not in names:
                continue
            found = self._matrix(entry)
            exact = _kind(entry) in _FLOATS  # kept in 16 bits by the graph, or f32
            if isinstance(found, np.ndarray) and found.ndim > 1 and not exact:
                widened[_kind(entry)] += 1
            yield names[entry.name], found
        if widened:
            rows = ", ".join(f"{n} of {kind}" for kind, n in widened.items())
            log.info("%s: matrices widened to f32: %s", self.path, rows)

    def _names(self, model: Any, shapes: Mapping[str, object]) -> dict[str, str]:
        """Return the names of a model's tensors by those of the file."""
        from gguf.constants import MODEL_ARCH_NAMES
        from gguf.tensor_mapping import get_tensor_name_map

        stated = self._header.values["general.architecture"]
        kind = next(number for number, name in MODEL_ARCH_NAMES.items() if name == stated)
        table = get_tensor_name_map(kind, model.config.num_hidden_layers)
        found = {}
        for name in shapes:
            stem, _, end = name.rpartition(".")
            if (own := table.get_name(stem)) is not None:
                found[f"{own}.{end}"] = name
        return found

    def _check(self, names: dict[str, str], shapes: dict[str, tuple[int, ...]]) -> None:
        """Raise FileError unless the file's tensors are the model's, with its shapes."""
        tensors = self._header.tensors
        wrong = [f"'{n}' is unknown" for n in tensors if n not in names and n not in _OF_CONFIG]
        for name, own in names.items():
            # tied embeddings: the second name is an alias of the first
            shared = name == "output.weight" and name not in tensors
            if name not in tensors and not shared:
                wrong.append(f"'{name}' is missing")
            elif not shared and own in shapes and tensors[name].dims != shapes[own]:
                wrong.append(f"'{name}' is {_times(tensors[name].dims)}, the config expects "
                             f"{_times(shapes[own])}")  # fmt: skip
        if wrong:
            raise FileError(
                f"tensors do not fit the architecture "
                f"'{self._header.values['general.architecture']}': {wrong[0]}",
                location=str(self.path), notes=wrong[1:10],
            )  # fmt: skip

    def _matrix(self, entry: Entry) -> BlockWeights | np.ndarray:
        kind, rows = _kind(entry), entry.dims[0]
        raw = self._bytes(entry)
        order = self._order(entry.name, rows)
        if len(entry.dims) == 2 and held(kind):
            found = blocks_of(raw.reshape(rows, -1), kind)
            if not np.isfinite(found.scales).all():
                raise FileError(f"'{entry.name}' has scales that are not finite",
                                location=str(self.path))  # fmt: skip
            return found if order is None else _rows(found, order)
        wide = self._dense(entry, raw)
        if self._family.centred and entry.name.endswith("norm.weight"):
            wide = wide - 1
        return np.ascontiguousarray(wide if order is None else wide[order])

    def _order(self, name: str, rows: int) -> np.ndarray | None:
        """Return the places of a matrix's rows in the file, None where they are in order.

        llama.cpp rotates neighbours, transformers the halves of a head.
        """
        heads = {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}
        part = name.split(".")[-2] if "." in name else ""
        if not self._family.permuted or part not in heads:
            return None
        count = self.config[heads[part]]
        return np.arange(rows).reshape(count, -1, 2).swapaxes(1, 2).reshape(-1)

    def _bytes(self, entry: Entry) -> np.ndarray:
        return np.memmap(entry.path, np.uint8, "r", entry.start, (entry.size,))

    def _dense(self, entry: Entry, raw: np.ndarray) -> np.ndarray:
        from gguf.constants import GGMLQuantizationType
        from gguf.quants import dequantize

        last = entry.size // math.prod(entry.dims[:-1])
        try:
            wide = dequantize(raw.reshape(*entry.dims[:-1], last), GGMLQuantizationType(entry.kind))
        except NotImplementedError:
            raise FileError(f"'{entry.name}' has type {_kind(entry)}, which is not supported",
                            location=str(self.path)) from None  # fmt: skip
        return np.asarray(wide, np.float32).reshape(entry.dims)


def _rows(w: BlockWeights, order: np.ndarray) -> BlockWeights:
    """Return a matrix with its rows in another order."""
    zeros = None if w.zeros is None else w.zeros[order]
    return replace(w, codes=w.codes[order], scales=w.scales[order], zeros=zeros)


def _kind(entry: Entry) -> str:
    from gguf.constants import GGMLQuantizationType

    return GGMLQuantizationType(entry.kind).name


def _times(dims: tuple[int, ...]) -> str:
    return " x ".join(map(str, dims))
