"""Checkpoints in .gguf files: config and tokenizer by transformers, weights in 4 and 8 bits.

Matrices stay as codes where the file has them in blocks (`gguf_blocks`). Others are widened to f32.
"""

# gguf and transformers are extras, and need not be there
# pyright: reportMissingImports=false
from __future__ import annotations

import atexit
import contextlib
import logging
import math
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import mgx_mlir
from mgx_mlir.core.errors import FileError
from mgx_mlir.targets.cache import MODELS, default_cache
from mgx_mlir.targets.digests import digest
from mgx_mlir.text.blocks import BlockWeights
from mgx_mlir.text.gguf_blocks import blocks_of, held
from mgx_mlir.text.gguf_header import Entry, Header, read_header
from mgx_mlir.text.tokens import Tokenizer, imported, quiet, read_json

log = logging.getLogger(__name__)
# architectures that transformers reads, and that are text decoders with dense layers
_DECODERS = ("llama", "qwen2", "qwen3", "gemma2", "gemma3", "phi3")
_FACTORS = "rope_freqs.weight"
# tensors that are derived from the config
_FLOATS = ("F32", "F16", "BF16")  # types of a file that are no blocks
_IMPLIED = frozenset({_FACTORS})
# Llama 3's constants: wavelengths, as shares of the original context, below which no factor applies
# and above which the whole factor does
_LOW, _HIGH, _CONTEXT = 1.0, 4.0, 8192


class Gguf:
    """Checkpoint of one .gguf file, whose header was checked."""

    def __init__(self, path: Path) -> None:
        """Read header, config and tokenizer.

        Errors: FileError; UsageError where a package is missing.
        """
        self.path = path
        imported("gguf")
        self._header: Header = read_header(path)
        self.architecture = str(self._header.values.get("general.architecture", ""))
        if self.architecture not in _DECODERS:
            raise FileError(
                f"expected an architecture of {', '.join(_DECODERS)}, got "
                f"'{self.architecture[:80]}'",
                location=str(path),
            )
        self._folder = self._found_or_written()
        self.config: Mapping[str, Any] = read_json(self._folder / "config.json")
        self.generation: Mapping[str, Any] = {}
        self._read: dict[str, BlockWeights | np.ndarray] | None = None

    def files(self) -> list[Path]:
        """Return the file, and the config made from it."""
        return [self._folder / "config.json", self.path]

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
        config = transformers.AutoConfig.from_pretrained(self._folder)
        with torch.device("meta"):
            return transformers.AutoModelForCausalLM.from_config(config)

    def _weights(self) -> dict[str, BlockWeights | np.ndarray]:
        if self._read is None:
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
            self._write(made.name)
            return Path(made.name)
        versions = mgx_mlir.__version__, metadata.version("transformers")
        factors = self._header.tensors.get(_FACTORS)  # the config also depends on these factors
        more = () if factors is None else (self._bytes(factors),)
        found = cache.root / MODELS / digest(*versions, self._header.digest, *more)
        if not found.is_dir():
            found.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.TemporaryDirectory(dir=found.parent) as beside:
                self._write(beside)
                with contextlib.suppress(OSError):  # another process was first
                    os.rename(beside, found)
                    os.mkdir(beside)  # marked before the folder is removed
        with contextlib.suppress(OSError):  # time of last use
            os.utime(found)
        return found

    def _write(self, folder: str) -> None:
        for name in ("torch", "transformers"):
            imported(name)
        from transformers import AutoConfig, AutoTokenizer

        config = self._by_transformers("config", AutoConfig)
        self._scale_positions(config)
        config.save_pretrained(folder)
        self._by_transformers("tokenizer", AutoTokenizer).save_pretrained(folder)

    def _by_transformers(self, what: str, kind: Any) -> Any:
        folder, name = os.path.split(os.path.abspath(self.path))
        try:
            with quiet():
                return kind.from_pretrained(folder, gguf_file=name, local_files_only=True)
        except Exception as e:  # values of the file can cause any exception
            why = f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:200]}"
            raise FileError(
                f"cannot read the {what} in the .gguf file: {why}", location=str(self.path)
            ) from e

    # ---- weights ----------------------------------------------------------------------------

    def weights(self, model: Any) -> Iterator[tuple[str, BlockWeights | np.ndarray]]:
        """Yield weights by their names in transformers' model, which may be on device `meta`.

        Matrices in blocks are yielded as codes, all others in f32. Permuted rows are put back in
        order. Errors: FileError for a missing or unexpected tensor, or another shape.
        """
        from transformers.modeling_gguf_pytorch_utils import (
            TENSOR_PROCESSORS,
            TensorProcessor,
            get_gguf_hf_weights_map,
        )

        process = TENSOR_PROCESSORS.get(self.architecture, TensorProcessor)
        processor = process(config=model.config.to_dict())
        shapes = {n: tuple(p.shape) for n, p in model.state_dict().items()}
        names: dict[str, str] = get_gguf_hf_weights_map(_Whole(model.config, shapes), processor)
        self._check(names, shapes)
        widened: Counter[str] = Counter()
        for entry in self._header.tensors.values():
            if entry.name not in names:
                continue
            found = self._matrix(entry, processor)
            exact = _kind(entry) in _FLOATS  # kept in 16 bits by the graph, or f32
            if isinstance(found, np.ndarray) and found.ndim > 1 and not exact:
                widened[_kind(entry)] += 1
            yield names[entry.name], found
        if widened:
            rows = ", ".join(f"{n} of {kind}" for kind, n in widened.items())
            log.info("%s: matrices widened to f32: %s", self.path, rows)

    def _check(self, names: dict[str, str], shapes: dict[str, tuple[int, ...]]) -> None:
        """Raise FileError unless the file's tensors are the model's, with its shapes."""
        tensors = self._header.tensors
        wrong = [f"'{n}' is unknown" for n in tensors if n not in names and n not in _IMPLIED]
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
                f"tensors do not fit the architecture '{self.architecture}': {wrong[0]}",
                location=str(self.path), notes=wrong[1:10],
            )  # fmt: skip

    def _matrix(self, entry: Entry, processor: Any) -> BlockWeights | np.ndarray:
        kind, rows = _kind(entry), entry.dims[0]
        raw = self._bytes(entry)
        if len(entry.dims) == 2 and held(kind):
            found = blocks_of(raw.reshape(rows, -1), kind)
            if not np.isfinite(found.scales).all():
                raise FileError(f"'{entry.name}' has scales that are not finite",
                                location=str(self.path))  # fmt: skip
            moved = processor.process(np.arange(rows, dtype=np.float64)[:, None], entry.name)
            order = np.asarray(moved.weights)[:, 0]
            if np.array_equal(np.sort(order), np.arange(rows)):
                return _rows(found, order.astype(np.int64))
        return np.ascontiguousarray(processor.process(self._dense(entry, raw), entry.name).weights)

    def _bytes(self, entry: Entry) -> np.ndarray:
        return np.memmap(self.path, np.uint8, "r", entry.start, (entry.size,))

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

    def _scale_positions(self, config: Any) -> None:
        """Add the file's RoPE scaling to the config, which transformers omits."""
        values, prefix = self._header.values, f"{self.architecture}.rope.scaling"
        kind = values.get(f"{prefix}.type", "none")
        if kind == "linear":
            factor = float(values.get(f"{prefix}.factor", 1.0))
            config.rope_parameters.update(rope_type="linear", factor=factor)
        elif kind != "none":
            raise FileError(f"rope.scaling.type expected none or linear, got '{kind}'",
                            location=str(self.path))  # fmt: skip
        entry = self._header.tensors.get(_FACTORS)
        if entry is None:
            return
        factors = self._dense(entry, self._bytes(entry))
        stated: dict[str, Any] = {
            "rope_type": "llama3", "factor": round(float(factors.max()), 6),
            "low_freq_factor": _LOW, "high_freq_factor": _HIGH,
            "original_max_position_embeddings": _CONTEXT,
        }  # fmt: skip
        theta = config.rope_parameters["rope_theta"]
        if not np.allclose(factors, _llama3(theta, stated, factors.size), rtol=1e-4):
            raise FileError(f"the factors in '{_FACTORS}' are not those of Llama 3",
                            location=str(self.path))  # fmt: skip
        config.rope_parameters.update(stated)


@dataclass(frozen=True)
class _Whole:
    """View of a model's names without submodules, for each of which gguf would build a new
    table.
    """

    config: Any
    names: Mapping[str, object]

    def state_dict(self) -> Mapping[str, object]:
        return self.names

    def named_children(self) -> tuple[()]:
        return ()


def _rows(w: BlockWeights, order: np.ndarray) -> BlockWeights:
    """Return a matrix with its rows in another order."""
    zeros = None if w.zeros is None else w.zeros[order]
    return replace(w, codes=w.codes[order], scales=w.scales[order], zeros=zeros)


def _llama3(theta: float, stated: dict[str, Any], count: int) -> np.ndarray:
    """Return the divisors of Llama 3's frequencies.

    Source: `_compute_llama3_parameters` of transformers' modeling_rope_utils.
    """
    waves = 2 * math.pi * theta ** (np.arange(count) / count)
    share = stated["original_max_position_embeddings"] / waves
    low, high, factor = (stated[k] for k in ("low_freq_factor", "high_freq_factor", "factor"))
    smooth = np.clip((share - low) / (high - low), 0, 1)
    return 1 / ((1 - smooth) / factor + smooth)


def _kind(entry: Entry) -> str:
    from gguf.constants import GGMLQuantizationType

    return GGMLQuantizationType(entry.kind).name


def _times(dims: tuple[int, ...]) -> str:
    return " x ".join(map(str, dims))
