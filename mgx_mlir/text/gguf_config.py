"""The config of a .gguf file: transformers' settings, from the header's values and tensors.

Names of the values: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgx_mlir.core.errors import FileError
from mgx_mlir.text.gguf_header import Array, Header

Settings = dict[str, Any]
Factors = Callable[[str], np.ndarray | None]  # a vector of the file by its name

FACTORS = "rope_freqs.weight"
LONG, SHORT = "rope_factors_long.weight", "rope_factors_short.weight"
# Llama 3's constants: wavelengths, as shares of the original context, below which no factor applies
# and above which the whole factor does
_LOW, _HIGH, _CONTEXT = 1.0, 4.0, 8192
_BASE = 10000.0  # RoPE's base where a file states none
# texts of tokens that end a message, where they are control tokens
_ENDS = ("<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>")
# layers of the models of 27B parameters, whose attention divides by another root
_LARGE = {"gemma2": 46, "gemma3": 62}
_CONTROL = 3  # gguf's number of the type of such tokens


class Values:
    """Values of one file by the names of its architecture. Raises FileError for wrong ones."""

    def __init__(self, header: Header, architecture: str) -> None:
        self.header, self.architecture = header, architecture

    def has(self, name: str) -> bool:
        """Return whether the file states a value."""
        return self._key(name) in self.header.values

    def whole(self, name: str, default: int | None = None) -> int:
        """Return an integer, 0 or more; of an array, the number that all layers have."""
        found = self._found(name, default)
        if isinstance(found, Array):
            rows = set(self.header.elements(self._key(name)))
            if len(rows) != 1:
                raise self.wrong(name, "expected one number for all layers", sorted(rows))
            [found] = rows
        if not isinstance(found, int) or isinstance(found, bool) or found < 0:
            raise self.wrong(name, "expected an integer, 0 or more", found)
        return found

    def number(self, name: str, default: float | None = None) -> float:
        """Return a finite number above 0."""
        found = self._found(name, default)
        right = isinstance(found, int | float) and not isinstance(found, bool)
        if not right or not 0 < found < math.inf:
            raise self.wrong(name, "expected a number above 0", found)
        return float(found)

    def elements(self, name: str) -> list[Any]:
        """Return the elements of an array; none where the file has another value, or no value."""
        key = self._key(name)
        held = isinstance(self.header.values.get(key), Array)
        return self.header.elements(key) if held else []

    def text(self, name: str, default: str) -> str:
        """Return a string."""
        found = self._found(name, default)
        if not isinstance(found, str):
            raise self.wrong(name, "expected a string", found)
        return found

    def token(self, name: str) -> int | None:
        """Return the number of a token, such as `eos`; None where the file states none."""
        key = f"tokenizer.ggml.{name}_token_id"
        found = self.header.values.get(key)
        if found is None:
            return None
        if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < self.tokens:
            raise self._wrong(key, f"expected a token below {self.tokens}", found)
        return found

    @property
    def tokens(self) -> int:
        """Return the number of tokens of the vocabulary."""
        found = self.header.values.get("tokenizer.ggml.tokens")
        if not isinstance(found, Array):
            raise self._wrong("tokenizer.ggml.tokens", "expected an array", found)
        return found.count

    def wrong(self, name: str, expected: str, got: object) -> FileError:
        """Return the error of a value."""
        return self._wrong(self._key(name), expected, got)

    def _key(self, name: str) -> str:
        return f"{self.architecture}.{name}"

    def _found(self, name: str, default: Any) -> Any:
        found = self.header.values.get(self._key(name), default)
        if found is None:
            raise FileError(f"the file states no '{self._key(name)}'", location=self.header.path)
        return found

    def _wrong(self, key: str, expected: str, got: object) -> FileError:
        return FileError(f"'{key}' {expected}, got {got!r:.80}", location=self.header.path)


@dataclass(frozen=True)
class Family:
    """An architecture of gguf, as one of transformers.

    permuted: rows of queries and keys are in the order of llama.cpp's RoPE. centred: the file has 1
    more than a norm's weight. more: settings beyond those that all families have.
    """

    model: str
    permuted: bool = False
    centred: bool = False
    more: Callable[[Values, Factors, Settings], Settings] = lambda *_: {}


def _llama(values: Values, factors: Factors, own: Settings) -> Settings:
    tensors = values.header.tensors
    return {
        "attention_bias": "blk.0.attn_q.bias" in tensors,
        "mlp_bias": "blk.0.ffn_up.bias" in tensors,
        "rope_parameters": _scaled(values, own["rope_parameters"], factors(FACTORS)),
    }


def _scaled_rope(values: Values, _: Factors, own: Settings) -> Settings:
    return {"rope_parameters": _scaled(values, own["rope_parameters"])}


def _gemma2(values: Values, _: Factors, own: Settings) -> Settings:
    caps = {f"{name}_logit_softcapping": values.number(f"{name}_logit_softcapping", default)
            for name, default in (("attn", 50.0), ("final", 30.0))}  # fmt: skip
    return {**caps, **_divisor(values, own), **_layers(values, own, 4096, 2)}


def _gemma3(values: Values, _: Factors, own: Settings) -> Settings:
    """Layers with windows have another base of RoPE, and no scaling."""
    rope = own["rope_parameters"]
    rope["rope_theta"] = values.number("rope.freq_base", 1e6)
    local = {"rope_type": "default", "rope_theta": values.number("rope.freq_base_swa", _BASE)}
    found = {**_divisor(values, own), **_layers(values, own, 0, 6)}
    if values.has("final_logit_softcapping"):
        found["final_logit_softcapping"] = values.number("final_logit_softcapping")
    found["rope_parameters"] = {"full_attention": _scaled(values, rope),
                                "sliding_attention": local}  # fmt: skip
    return found


def _phi2(values: Values, _: Factors, own: Settings) -> Settings:
    return {
        "layer_norm_eps": values.number("attention.layer_norm_epsilon"),
        "rope_parameters": _partial(values, own),
    }


def _phi3(values: Values, factors: Factors, own: Settings) -> Settings:
    rope = _partial(values, own)
    window = values.whole("attention.sliding_window", 0) or None
    found: Settings = {"sliding_window": window, "rope_parameters": rope}
    context = values.whole("rope.scaling.original_context_length", own["max_position_embeddings"])
    found["original_max_position_embeddings"] = context
    long, short = factors(LONG), factors(SHORT)
    if long is None or short is None:
        return found
    rope |= {
        "rope_type": "longrope", "long_factor": long.tolist(), "short_factor": short.tolist(),
        "original_max_position_embeddings": context,
        "attention_factor": values.number("rope.scaling.attn_factor", 1.0),
    }  # fmt: skip
    return found


def _smollm3(values: Values, factors: Factors, own: Settings) -> Settings:
    return {"no_rope_layer_interval": 4, "use_sliding_window": False,
            **_scaled_rope(values, factors, own)}  # fmt: skip


FAMILIES = {
    "llama": Family("llama", permuted=True, more=_llama),
    "qwen2": Family("qwen2", more=_scaled_rope),
    "qwen3": Family("qwen3", more=_scaled_rope),
    "gemma": Family("gemma", centred=True),
    "gemma2": Family("gemma2", centred=True, more=_gemma2),
    "gemma3": Family("gemma3_text", centred=True, more=_gemma3),
    "phi2": Family("phi", more=_phi2),
    "phi3": Family("phi3", more=_phi3),
    "smollm3": Family("smollm3", permuted=True, more=_smollm3),
}


def config_of(header: Header, factors: Factors) -> Settings:
    """Return the content of transformers' config.json.

    Raises FileError for another architecture, and for missing and wrong values.
    """
    architecture = header.values.get("general.architecture")
    family = FAMILIES.get(architecture) if isinstance(architecture, str) else None
    if family is None or not isinstance(architecture, str):
        raise FileError(
            f"expected an architecture of {', '.join(FAMILIES)}, got {architecture!r:.80}",
            location=header.path,
        )
    values = Values(header, architecture)
    hidden, heads = values.whole("embedding_length"), values.whole("attention.head_count")
    if not hidden or not heads:
        raise values.wrong("attention.head_count", "expected at least one element a head", heads)
    layers, tensors = values.whole("block_count"), len(header.tensors)
    if layers > tensors:  # transformers would make each of them first
        raise values.wrong("block_count", f"expected at most {tensors}, the tensors", layers)
    rotated = values.whole("rope.dimension_count", hidden // heads)
    width = hidden // heads if architecture in ("phi2", "phi3") else rotated
    size = values.whole("attention.key_length", width)
    if values.whole("attention.value_length", size) != size:
        raise values.wrong("attention.value_length", f"expected {size}, the length of keys",
                           values.whole("attention.value_length"))  # fmt: skip
    shared = values.whole("attention.head_count_kv", heads)
    if not size or not shared or heads % shared:
        raise values.wrong("attention.head_count_kv", f"expected a divisor of {heads}", shared)
    own: Settings = {
        "model_type": family.model,
        "vocab_size": values.whole("vocab_size", values.tokens),
        "max_position_embeddings": values.whole("context_length"),
        "hidden_size": hidden,
        "intermediate_size": values.whole("feed_forward_length"),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": shared,
        "head_dim": size,
        "tie_word_embeddings": "output.weight" not in header.tensors,
        "bos_token_id": values.token("bos"),
        "pad_token_id": values.token("padding"),
        "eos_token_id": _ends(values),
        "rope_parameters": {
            "rope_type": "default", "rope_theta": values.number("rope.freq_base", _BASE),
        },
    }  # fmt: skip
    if architecture != "phi2":
        own["rms_norm_eps"] = values.number("attention.layer_norm_rms_epsilon")
    return {**own, **family.more(values, factors, own)}


def _ends(values: Values) -> list[int]:
    """Return the tokens that end an answer: those stated, and control tokens known by text."""
    stated = [values.token(name) for name in ("eos", "eot", "eom")]
    texts = values.header.elements("tokenizer.ggml.tokens")
    kinds = values.header.elements("tokenizer.ggml.token_type")
    known = [i for i, (text, kind) in enumerate(zip(texts, kinds, strict=False))
             if kind == _CONTROL and text in _ENDS]  # fmt: skip
    return sorted({t for t in (*stated, *known) if t is not None})


def _layers(values: Values, own: Settings, window: int, every: int) -> Settings:
    """Return which layers have a window: all but each `every`-th, or those that the file states."""
    window, count = values.whole("attention.sliding_window", window), own["num_hidden_layers"]
    name = "attention.sliding_window_pattern"
    stated = values.elements(name)
    if not stated:
        every = values.whole(name, every)
        stated = [bool(every) and (i + 1) % every > 0 for i in range(count)]
    if len(stated) != count:
        raise values.wrong(name, f"expected {count} layers", len(stated))
    kinds = ["sliding_attention" if window and on else "full_attention" for on in stated]
    return {"layer_types": kinds, "sliding_window": window or None}


def _divisor(values: Values, own: Settings) -> Settings:
    """Return the number whose root divides scores: a head's size, except in the largest models."""
    large = own["num_hidden_layers"] == _LARGE[values.architecture]
    size = own["hidden_size"] // own["num_attention_heads"] if large else own["head_dim"]
    return {"query_pre_attn_scalar": size}


def _partial(values: Values, own: Settings) -> Settings:
    """Return RoPE's settings where a part of each head is rotated."""
    part = values.whole("rope.dimension_count", own["head_dim"]) / own["head_dim"]
    return {**own["rope_parameters"], "partial_rotary_factor": part}


def _scaled(values: Values, rope: Settings, factors: np.ndarray | None = None) -> Settings:
    """Return RoPE's settings with the file's scaling."""
    kind = values.text("rope.scaling.type", "none")
    if factors is not None:
        return {**rope, **_llama3(values, rope["rope_theta"], factors)}
    if kind == "linear":
        return {**rope, "rope_type": "linear", "factor": values.number("rope.scaling.factor", 1.0)}
    if kind == "yarn":
        return {**rope, **_yarn(values)}
    if kind != "none":
        raise values.wrong("rope.scaling.type", "expected none, linear or yarn", kind)
    return rope


def _yarn(values: Values) -> Settings:
    factor = values.number("rope.scaling.factor")
    found: Settings = {
        "rope_type": "yarn", "factor": factor,
        "original_max_position_embeddings": values.whole("rope.scaling.original_context_length"),
    }  # fmt: skip
    for name in ("beta_fast", "beta_slow"):
        if values.has(f"rope.scaling.yarn_{name}"):
            found[name] = values.number(f"rope.scaling.yarn_{name}")
    own = 0.1 * math.log(factor) + 1 if factor > 1 else 1.0
    whole = values.number("rope.scaling.yarn_attn_factor", own)
    found["attention_factor"] = whole * values.number("rope.scaling.attn_factor", 1.0)
    return found


def _llama3(values: Values, theta: float, factors: np.ndarray) -> Settings:
    """Return Llama 3's scaling, whose factors the file has in place of the rule.

    Source: `_compute_llama3_parameters` of transformers' modeling_rope_utils.
    """
    factor = round(float(factors.max()), 6)
    waves = 2 * math.pi * theta ** (np.arange(factors.size) / factors.size)
    smooth = np.clip((_CONTEXT / waves - _LOW) / (_HIGH - _LOW), 0, 1)
    if not np.allclose(factors, 1 / ((1 - smooth) / factor + smooth), rtol=1e-4):
        raise FileError(f"the factors in '{FACTORS}' are not those of Llama 3",
                        location=values.header.path)  # fmt: skip
    return {
        "rope_type": "llama3", "factor": factor, "low_freq_factor": _LOW,
        "high_freq_factor": _HIGH, "original_max_position_embeddings": _CONTEXT,
    }  # fmt: skip
