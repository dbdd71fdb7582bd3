"""ONNX decoders: folders as optimum and onnxruntime-genai write them, and a Decoder over one.

The graph is the file's own. A cache that it updates in place (GroupQueryAttention) covers all
slots, and answers share steps. A cache that grows with each run is copied, one answer at a time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import FileError, UnsupportedModel
from mgx_mlir.text.files import read_json
from mgx_mlir.text.slots import HostSlots, SlotDecoder, side_by_side, slots_of
from mgx_mlir.text.tokens import Tokenizer

if TYPE_CHECKING:
    from mgx_mlir.compiler.compiled import CompiledProgram
    from mgx_mlir.programs.signature import Port

_FILES = ("model.onnx", "decoder_model_merged.onnx")
_PAST = "past_key_values.%d.key", "past_key_values.%d.value"
_PRESENT = "present.%d.key", "present.%d.value"
_EXPORT = "optimum-cli export onnx --task text-generation-with-past writes one with a cache"
_LIMITS = 1 << 14  # most layers


@dataclass(frozen=True)
class Names:
    """Names of a decoder's inputs and outputs; those of caches have %d for the layer."""

    ids: str = "input_ids"
    mask: str = "attention_mask"
    positions: str = "position_ids"
    branch: str = "use_cache_branch"  # input that selects the graph with a cache, in a file of two
    logits: str = "logits"
    past: tuple[str, str] = _PAST
    present: tuple[str, str] = _PRESENT


class OnnxFolder:
    """A folder with an ONNX decoder, its tokenizer, and config.json or genai_config.json.

    Raises FileError, and UnsupportedModel for an unsupported form of decoder.
    """

    def __init__(self, path: Path, file: Path | None = None) -> None:
        """Read the configuration; file: the decoder, where the folder has several."""
        self.path = path
        self.names = Names()
        if (path / "genai_config.json").is_file():
            self._of_genai(read_json(path / "genai_config.json"))
            if file is not None:
                self.file = file
            return
        self.config: Mapping[str, Any] = read_json(path / "config.json")
        self.generation: Mapping[str, Any] = read_json(path / "generation_config.json", missing={})
        self.file = _decoder_of(path) if file is None else file

    @staticmethod
    def of_file(file: Path) -> OnnxFolder:
        """Read one of several decoders of a folder, which may lie in its folder `onnx`."""
        beside = file.absolute().parent
        if beside.name == "onnx" and not (beside / "config.json").is_file():
            beside = beside.parent
        return OnnxFolder(beside, file)

    def _of_genai(self, config: Mapping[str, Any]) -> None:
        where = str(self.path / "genai_config.json")
        model = config.get("model")
        decoder = model.get("decoder") if isinstance(model, dict) else None
        if not isinstance(model, dict) or not isinstance(decoder, dict):
            raise FileError("expected a 'model' with a 'decoder'", location=where)
        parts = sorted({"encoder", "vision", "speech", "embedding"} & set(model))
        if parts or "pipeline" in decoder:
            what = (
                f"has the parts {', '.join(parts)}" if parts else "is a pipeline of several files"
            )
            raise UnsupportedModel(f"the model {what}: only a text decoder in one file is read",
                                   location=where)  # fmt: skip
        if "past_names" in (decoder.get("inputs") or ()):
            raise UnsupportedModel("the decoder has keys and values in one cache ('past_names')",
                                   location=where)  # fmt: skip
        name, ins, outs = (decoder.get(k) for k in ("filename", "inputs", "outputs"))
        if not isinstance(name, str) or not isinstance(ins, dict) or not isinstance(outs, dict):
            raise FileError("the 'decoder' expected a filename, inputs and outputs", location=where)
        self.file = self.path / Path(name).name
        if not self.file.is_file():
            raise FileError("no such file", location=str(self.file))
        own = Names()
        self.names = Names(
            ids=str(ins.get("input_ids", own.ids)), mask=str(ins.get("attention_mask", own.mask)),
            positions=str(ins.get("position_ids", own.positions)),
            logits=str(outs.get("logits", own.logits)),
            past=(str(ins.get("past_key_names", own.past[0])),
                  str(ins.get("past_value_names", own.past[1]))),
            present=(str(outs.get("present_key_names", own.present[0])),
                     str(outs.get("present_value_names", own.present[1]))),
        )  # fmt: skip
        self.config = {
            "max_position_embeddings": model.get("context_length"),
            "vocab_size": model.get("vocab_size"), "eos_token_id": model.get("eos_token_id"),
            "head_dim": decoder.get("head_size"),
            "num_key_value_heads": decoder.get("num_key_value_heads"),
        }  # fmt: skip
        self.generation = {}

    def tokenizer(self) -> Tokenizer:
        """Read tokenizer.json and the files beside it."""
        return Tokenizer.of_folder(self.path)

    def decoder(self, program: CompiledProgram, slots: int, rows: int) -> OnnxDecoder:
        """Return a decoder over the compiled file. Raises UnsupportedModel."""
        try:
            return OnnxDecoder(program, self.names, self.config, slots, rows)
        except UnsupportedModel as e:
            raise UnsupportedModel(e.message, location=str(self.file), notes=e.notes) from None


class OnnxDecoder(SlotDecoder):
    """A Decoder over an ONNX file. Not thread-safe; the engine's lock guards it."""

    def __init__(
        self,
        program: CompiledProgram,
        names: Names,
        config: Mapping[str, Any],
        slots: int,
        rows: int,
    ) -> None:
        signature = program.signature
        ports = {port.name: port for port in signature.inputs}
        self.program, self._names, self._ports = program, names, ports
        pairs = dict(_pairs(names, ports, program.output_names))
        if names.ids not in ports or names.logits not in program.output_names:
            raise UnsupportedModel(f"expected an input '{names.ids}' and an output "
                                   f"'{names.logits}'")  # fmt: skip
        if not pairs:
            raise UnsupportedModel("the decoder has no cache of keys and values", notes=[_EXPORT])
        known = {names.ids, names.mask, names.positions, names.branch, *pairs}
        if unknown := [name for name in ports if name not in known]:
            raise UnsupportedModel(f"the decoder has an input that is not known: '{unknown[0]}'")
        inputs, outputs = program.input_names, program.output_names
        updated = {inputs[i]: outputs[k] for i, k in signature.in_place}
        self._stays = all(updated.get(name) == out for name, out in pairs.items())
        self._pairs = pairs
        first = ports[next(iter(pairs))]
        dims = (slots, _dim(first, 1, config, "num_key_value_heads"), rows,
                _dim(first, 3, config, "head_dim"))  # fmt: skip
        make = slots_of if self._stays else HostSlots
        super().__init__(make(program, pairs, dims, _dtype(first)))
        if not self._stays:  # answers are computed one after the other
            self.padding = 0

    def write(self, slot: int, tokens: Sequence[int], start: int) -> None:
        """Write tokens at rows from `start` on."""
        self.scores(slot, tokens, start)

    def prefill(self, slot: int, tokens: Sequence[int], start: int) -> NDArray[Any]:
        """Write tokens at rows from `start` on; return the logits {vocabulary} after the last."""
        return self.scores(slot, tokens, start)[-1]

    def prefill_together(
        self, slot: int, prompts: Sequence[Sequence[int]], starts: Sequence[int]
    ) -> NDArray[Any]:
        """Write tokens of slots from `slot` on; return the logits {slots, vocabulary} after the
        last of each.
        """
        if not self._stays:
            rows = enumerate(zip(prompts, starts, strict=True), slot)
            return np.stack([self.prefill(i, row, start) for i, (row, start) in rows])
        ids, last = side_by_side(prompts)
        return self._run(ids, np.asarray(starts), slot)[np.arange(len(prompts)), last]

    def scores(self, slot: int, tokens: Sequence[int], start: int) -> NDArray[Any]:
        """Write tokens as `prefill` does; return the logits {tokens, vocabulary} after each."""
        # in a file of two graphs, the one with a cache may support only one token
        size = 1 if start and self._names.branch in self._ports else len(tokens)
        found = []
        for at in range(0, len(tokens), size):
            ids = np.asarray(tokens[at : at + size], np.int64)[None]
            found.append(self._run(ids, np.array([start + at]), slot)[0])
        return np.concatenate(found)

    def decode(self, tokens: Sequence[Sequence[int]], starts: Sequence[int]) -> NDArray[Any]:
        """Write tokens, equally many for each of the first slots; return the logits {sequences,
        tokens, vocabulary} after each.
        """
        if self._stays:
            return self._run(np.asarray(tokens), np.asarray(starts), 0)
        rows = zip(tokens, starts, strict=True)
        return np.stack([self.scores(i, row, start) for i, (row, start) in enumerate(rows)])

    def _run(self, ids: NDArray[Any], starts: NDArray[Any], slot: int) -> NDArray[Any]:
        count, length = ids.shape
        ends = starts + length
        names, ports = self._names, self._ports
        mask = np.arange(ends.max()) < ends[:, None]
        given = {names.ids: ids, names.mask: mask,
                 names.positions: starts[:, None] + np.arange(length),
                 names.branch: np.array([starts.max() > 0])}  # fmt: skip
        values = {k: np.ascontiguousarray(v, _dtype(ports[k])) for k, v in given.items()
                  if k in ports}  # fmt: skip
        if self._stays:
            found = self.held.run(values, slot, count, names.logits)
            return np.asarray(found, np.float32)
        assert isinstance(self.held, HostSlots)
        start, end = int(starts[0]), int(ends[0])
        past = {name: np.ascontiguousarray(c[slot : slot + 1, :, :start])
                for name, c in self.held.caches.items()}  # fmt: skip
        found = dict(zip(self.program.output_names, self.program.run({**values, **past}),
                         strict=True))  # fmt: skip
        for name, cache in self.held.caches.items():
            cache[slot, :, start:end] = np.asarray(found[self._pairs[name]])[0, :, start:end]
        return np.asarray(found[names.logits], np.float32)


def _pairs(
    names: Names, ports: Mapping[str, Port], outputs: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the caches' inputs with their outputs, layer by layer."""
    found = []
    for layer in range(_LIMITS):
        rows = [(p.replace("%d", str(layer)), q.replace("%d", str(layer)))
                for p, q in zip(names.past, names.present, strict=True)]  # fmt: skip
        if not all(p in ports for p, _ in rows):
            return found
        for past, present in rows:
            if present not in outputs:
                raise UnsupportedModel(f"the decoder has '{past}' and no output '{present}'")
            if len(ports[past].dims) != 4:
                raise UnsupportedModel(f"the cache '{past}' expected four dims: batch, heads, "
                                       "tokens, elements")  # fmt: skip
        found += rows
    return found


def _dim(port: Port, dim: int, config: Mapping[str, Any], key: str) -> int:
    size = port.dims[dim] if port.dims[dim] >= 0 else config.get(key)
    if not isinstance(size, int) or size < 1:
        raise UnsupportedModel(f"neither dim {dim} of the cache '{port.name}' nor '{key}' of the "
                               "config is a number")  # fmt: skip
    return size


def _dtype(port: Port) -> np.dtype[Any]:
    return dtypes.from_name(port.dtype).np


def _decoder_of(path: Path) -> Path:
    """Return the decoder of a folder: the file of a usual name, or the only one.

    Raises UnsupportedModel where there are several, or one without a cache and one with it.
    """
    found = _candidates(path)
    usual = [folder / name for folder in (path, path / "onnx") for name in _FILES]
    chosen = [p for p in usual if p in found] or found
    if {"decoder_model.onnx", "decoder_with_past_model.onnx"} & {p.name for p in chosen}:
        raise UnsupportedModel("the decoder is in two files, without a cache and with one: "
                               f"expected one, {' or '.join(_FILES)}", location=str(path),
                               notes=[_EXPORT])  # fmt: skip
    if len(chosen) > 1 and chosen is found:
        names = ", ".join(str(p.relative_to(path)) for p in found[:8])
        raise UnsupportedModel(f"the folder has several decoders: {names}", location=str(path),
                               notes=["give the path of one in place of the folder's"])  # fmt: skip
    return chosen[0]


def has_decoder(path: Path) -> bool:
    """Return whether a folder has an ONNX decoder in place of safetensors."""
    if (path / "genai_config.json").is_file():
        return True
    return not any(path.glob("*.safetensors")) and bool(_candidates(path))


def _candidates(path: Path) -> list[Path]:
    """Return the files of a folder, and of its folder `onnx`, that may be decoders."""
    return [p for p in sorted((*path.glob("*.onnx"), *path.glob("onnx/*.onnx")))
            if re.search(r"(model|decoder).*\.onnx$", p.name)]  # fmt: skip
