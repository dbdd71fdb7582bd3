"""Folders of transformers, loaded and compiled, against transformers in f32."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mgx_mlir import text
from mgx_mlir.core.errors import FileError, UnsupportedModel, UsageError
from mgx_mlir.text.beams import Beams
from mgx_mlir.text.tokens import Tokenizer

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from tests.text import tiny  # noqa: E402  (behind what skips)

pytestmark = pytest.mark.slow
PROMPTS = ("the quick", "a lazy dog over there", "x")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    path = tmp_path_factory.mktemp("tiny")
    return path, tiny.save(path, tie_word_embeddings=True)


@pytest.fixture(scope="module")
def loaded(folder: tuple[Path, Any]) -> text.TextModel:
    return text.load(folder[0], slots=3)


def greedy(model: Any, tokens: list[int], count: int, **more: Any) -> list[int]:
    with torch.no_grad():
        found = model.generate(
            torch.tensor([tokens]), max_new_tokens=count, do_sample=False, eos_token_id=None,
            pad_token_id=1, **more,
        )  # fmt: skip
    return found[0, len(tokens) :].tolist()


def request(tokens: list[int], count: int, **more: Any) -> text.Request:
    return text.Request(tokens, count, stop_tokens=frozenset(), **more)


@pytest.mark.parametrize("weights", [None, "int8", "bf16"])
def test_tied_embeddings_are_stored_once(weights: Any, tmp_path: Path) -> None:
    """The lookup reads what the matmul of the logits multiplies, in its layout."""
    rows = 2400
    model = tiny.save(tmp_path, tie_word_embeddings=True, vocab_size=rows, num_hidden_layers=1)
    loaded = text.load(tmp_path, weights=weights, slots=1)
    held = [a.nbytes for a in loaded.decoder.program.params.values()]  # type: ignore[attr-defined]
    numbers = rows * 64 * {None: 4, "int8": 1, "bf16": 2}[weights]
    scales = rows * 2 * 4 if weights == "int8" else 0
    layers = 2 * sum(p.numel() for n, p in model.named_parameters() if "layers" in n) * 4
    [largest] = [n for n in held if n >= numbers]
    assert largest < 1.05 * numbers
    assert sum(held) < 1.05 * numbers + 2 * scales + layers
    if weights is None:
        prompt = [5, 1700, 2399, 40]
        got = [p.token for p in loaded.engine().submit(request(prompt, 20))]
        assert got == greedy(model, prompt, 20)


def test_greedy_tokens_are_those_of_transformers(
    folder: tuple[Path, Any], loaded: text.TextModel
) -> None:
    """Alone, and three together, whose caches are updated where they lie."""
    program = loaded.decoder.program  # type: ignore[attr-defined]
    assert len(program.signature.in_place) == 4  # keys and values of two layers
    prompts = [loaded.tokens(p) for p in PROMPTS]
    want = [greedy(folder[1], p, 60) for p in prompts]
    engine = loaded.engine()
    for prompt, tokens in zip(prompts, want, strict=True):
        assert [p.token for p in engine.submit(request(prompt, 60))] == tokens
    together = [engine.submit(request(p, 60)) for p in prompts]
    assert [[p.token for p in handle] for handle in together] == want


@pytest.fixture
def decoder(folder: tuple[Path, Any], loaded: text.TextModel) -> Any:
    """A decoder that no engine uses, which would know the rows of its slots."""
    return text.load(folder[0], slots=3).decoder


def test_a_prompt_in_parts(decoder: Any, loaded: text.TextModel) -> None:
    """Rows that are written without logits are those of one call, and so are the last logits."""
    tokens = loaded.tokens("a lazy dog over the quick brown fox")
    decoder.write(0, tokens[:4], 0)
    parts = decoder.prefill(0, tokens[4:], 4)
    whole = decoder.prefill(1, tokens, 0)
    np.testing.assert_allclose(parts, whole, rtol=0, atol=1e-4)
    for cache in decoder.held.caches.values():
        a, b = (cache[slot, :, : len(tokens)] for slot in (0, 1))
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-4)


def test_prompts_together(decoder: Any, loaded: text.TextModel) -> None:
    """Logits and rows are those of each alone, at several lengths and behind cached rows."""
    tokens = [loaded.tokens(t) for t in ("a lazy dog over the", "the quick")]
    starts = [0, 3]
    for slot in (1, 2):
        decoder.write(slot, tokens[0][:3], 0)
    found = decoder.prefill_together(0, tokens, starts)
    for slot, row, start, logits in zip((0, 1), tokens, starts, found, strict=True):
        alone = decoder.prefill(2, row, start)
        np.testing.assert_allclose(logits, alone, rtol=0, atol=1e-4)
        for cache in decoder.held.caches.values():
            a, b = (cache[i, :, start : start + len(row)] for i in (slot, 2))
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-4)


def test_beams_are_those_of_transformers(folder: tuple[Path, Any], loaded: text.TextModel) -> None:
    prompts = [loaded.tokens(p) for p in PROMPTS]
    handles = [loaded.engine().submit(request(p, 20, beams=Beams(3))) for p in prompts]
    for prompt, handle in zip(prompts, handles, strict=True):
        assert [p.token for p in handle] == greedy(folder[1], prompt, 20, num_beams=3)


def test_drawn_tokens_are_the_same_in_a_batch(loaded: text.TextModel) -> None:
    engine = loaded.engine()
    requests = [
        request(loaded.tokens(p), 50, sampling=text.Sampling(1.2, top_p=0.9, seed=i))
        for i, p in enumerate(PROMPTS)
    ]
    alone = [[p.token for p in engine.submit(r)] for r in requests]
    together = [engine.submit(r) for r in requests]
    assert [[p.token for p in handle] for handle in together] == alone


def test_threads_use_a_model_at_once(folder: tuple[Path, Any], loaded: text.TextModel) -> None:
    """Greedy and drawn answers, texts and streams, from five threads: each as alone."""
    kinds: list[dict[str, Any]] = [{}, {"temperature": 1.1, "seed": 4, "top_p": 0.9}]
    asked = [(p, how) for p in PROMPTS for how in kinds]
    want = [loaded.generate(p, max_new_tokens=40, **how) for p, how in asked]
    other = text.load(folder[0], slots=2)  # shares weights and code with the first

    def answer(i: int) -> list[str]:
        model = (loaded, other)[i % 2]
        return [
            "".join(model.generate(p, max_new_tokens=40, stream=True, **how)) if i > 2 else
            model.generate(p, max_new_tokens=40, **how)
            for p, how in asked
        ]  # fmt: skip

    with ThreadPoolExecutor(5) as pool:
        assert list(pool.map(answer, range(5))) == [want] * 5


def test_scores_are_those_of_transformers(folder: tuple[Path, Any], loaded: text.TextModel) -> None:
    tokens = loaded.tokens("the fox jumps over the quick dog")
    handle = loaded.engine().submit(request(tokens, 5, logprobs=4))
    pieces = list(handle)
    with torch.no_grad():
        logits = folder[1](torch.tensor([tokens + handle.tokens])).logits[0, len(tokens) - 1 :]
    want = torch.log_softmax(logits.double(), -1).numpy()
    for piece, row in zip(pieces, want, strict=False):
        assert piece.logprob == pytest.approx(row[piece.token], abs=1e-4)
        assert [t for t, _ in piece.top] == np.argsort(-row, kind="stable")[:4].tolist()


def test_texts_chats_and_streams(loaded: text.TextModel) -> None:
    chat = [{"role": "user", "content": "hey"}]
    want = "<user>hey\n<assistant>"
    assert loaded.tokenizer.decode(loaded.tokens(chat)) == want
    whole = loaded.generate(chat, max_new_tokens=20, temperature=0.8, seed=2)
    pieces = list(loaded.generate(chat, max_new_tokens=20, temperature=0.8, seed=2, stream=True))
    assert len(pieces) > 1
    assert "".join(pieces) == whole


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_rounded_weights(folder: tuple[Path, Any], weights: Any) -> None:
    """A program of blocks computes what transformers does with the same weights."""
    from mgx_mlir.text.blocks import rounded

    loaded = text.load(folder[0], weights=weights, slots=1)
    model = folder[1].__class__.from_pretrained(folder[0]).eval()
    bits: Any = {"int8": 8, "int4": 4}[weights]
    for name, layer in model.named_modules():
        if isinstance(layer, torch.nn.Linear):
            wide = rounded(layer.weight.detach().numpy(), 8 if name == "lm_head" else bits)
            layer.weight.data = torch.from_numpy(wide.floats())
    model.set_input_embeddings(
        torch.nn.Embedding.from_pretrained(model.get_output_embeddings().weight.data)
    )
    tokens = loaded.tokens("over the lazy dog")
    with torch.no_grad():
        want = model(torch.tensor([tokens])).logits[0].numpy()
    got = loaded.decoder.scores(0, tokens, 0)  # type: ignore[attr-defined]
    np.testing.assert_allclose(got, want, atol=2e-5 * np.abs(want).max())


@pytest.mark.parametrize("weights", ["bf16", "f16"])
def test_weights_of_16_bits(folder: tuple[Path, Any], tmp_path: Path, weights: Any) -> None:
    """Rounded, or as a file has them: large matrices are not held in f32."""
    kind = {"bf16": torch.bfloat16, "f16": torch.float16}[weights]
    model = folder[1].__class__.from_pretrained(folder[0], dtype=kind)
    if weights == "bf16":  # kept as they are
        model.save_pretrained(tmp_path)
        tiny.tokenizer().save(str(tmp_path / "tokenizer.json"))
        loaded = text.load(tmp_path, slots=1)
    else:
        loaded = text.load(folder[0], weights=weights, slots=1)
    model = model.float().eval()
    tokens = loaded.tokens("over the lazy dog and the quick brown fox")
    with torch.no_grad():
        want = model(torch.tensor([tokens])).logits[0].numpy()
    decoder: Any = loaded.decoder
    got = decoder.scores(0, tokens, 0)
    single = np.stack([decoder.scores(0, [t], i)[0] for i, t in enumerate(tokens)])
    for found in (got, single):
        np.testing.assert_allclose(found, want, atol=2e-5 * np.abs(want).max())
    sizes = {4: 0, 2: 0}
    for array in decoder.program.params.values():
        sizes[array.itemsize] += array.size
    assert sizes[4] < 9000  # keys and values of few weights, and the angles of positions
    matrices = sum(p.numel() for p in model.parameters() if p.ndim > 1)
    assert sizes[2] > matrices - 9000 + model.lm_head.weight.numel()  # packed a second time


@pytest.mark.parametrize(
    ("dtype", "weights", "limit"), [("f16", None, 2e-3), ("bf16", "int4", 2e-2)]
)
def test_everything_of_16_bits(
    folder: tuple[Path, Any], dtype: Any, weights: Any, limit: float
) -> None:
    """Activations and caches, too: logits are off by the type's rounding."""
    wide = text.load(folder[0], weights=weights, slots=1)
    loaded = text.load(folder[0], weights=weights, dtype=dtype, slots=1)
    tokens = loaded.tokens("over the lazy dog and the quick brown fox")
    a, b = (m.decoder.scores(0, tokens, 0) for m in (loaded, wide))  # type: ignore[attr-defined]
    error = np.linalg.norm(a - b) / np.linalg.norm(b)
    assert 1e-5 < error < limit
    ports = loaded.decoder.program.signature.inputs[5:]  # type: ignore[attr-defined]
    assert {p.dtype for p in ports} == {{"f16": "half_type", "bf16": "bf16_type"}[dtype]}


def test_weights_beyond_a_type(folder: tuple[Path, Any]) -> None:
    from mgx_mlir.text.graph import narrow, with_halves

    model = folder[1].__class__.from_pretrained(folder[0])
    model.model.layers[1].mlp.up_proj.weight.data[3, 4] = 1e6
    with pytest.raises(
        UsageError, match=r"'model\.layers\.1\.mlp\.up_proj' is beyond the range of f16"
    ):
        with_halves(model, "f16")
    with pytest.raises(UsageError, match=r"mlp\.up_proj\.weight' is beyond the range of f16"):
        narrow(model, "f16")


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("Qwen2", {}),
        ("Qwen3", {}),
        ("Gemma", {}),
        ("Gemma2", {"sliding_window": 8}),
        ("Phi", {}),
        ("Phi3", {}),
        ("SmolLM3", {"no_rope_layer_interval": 2}),
        ("Llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}}),
    ],
)
def test_families(tmp_path: Path, kind: str, more: dict[str, Any]) -> None:
    """Biases, norms of heads, windows and bounds of scores: the model's own code is traced."""
    model = tiny.save(tmp_path, kind, **more)
    loaded = text.load(tmp_path, slots=1)
    prompt = loaded.tokens("the quick brown fox")
    handle = loaded.engine().submit(request(prompt, 30))
    assert [p.token for p in handle] == greedy(model, prompt, 30)


# keys of 24 elements, and values of 16
LATENT = {
    "shared": 4, "head_dim": None, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 16, "v_head_dim": 16, "n_routed_experts": 4, "num_experts_per_tok": 2,
    "moe_intermediate_size": 32, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("Mistral", {"sliding_window": 6}),
        ("Mixtral", {"num_local_experts": 4}),
        ("Granite", {"attention_multiplier": 0.3, "logits_scaling": 2.0}),
        ("Cohere2", {"sliding_window": 6}),
        ("StableLm", {}),
        ("GptOss", {"sliding_window": 6, "num_local_experts": 4}),
        ("Exaone4", {"sliding_window": 6}),
        ("Nemotron", {}),
        ("GPTNeoX", {"shared": 4}),
        ("OPT", {"shared": 4, "word_embed_proj_dim": 64, "ffn_dim": 96}),
        ("DeepseekV3", LATENT),
        ("JetMoe", {"kv_channels": 24, "num_local_experts": 4, "head_dim": None}),
        ("GPT2", {"of": "GPT2LMHeadModel", "n_inner": 96}),
    ],
)
def test_more_families(tmp_path: Path, kind: str, more: dict[str, Any]) -> None:
    """Logits of two chunks in a second slot, by numpy: the graph is that of compiled models."""
    model = tiny.save(tmp_path, kind, **more)
    decoder: Any = text.load(tmp_path, "ref", slots=2).decoder
    tokens = [5, 9, 33, 7, 60, 2, 8, 100, 250, 3, 4, 77]
    got = np.concatenate([decoder.scores(1, tokens[:5], 0), decoder.scores(1, tokens[5:], 5)])
    with torch.no_grad():
        want = model(torch.tensor([tokens])).logits[0].numpy()
    np.testing.assert_allclose(got, want, atol=2e-5 * np.abs(want).max())


@pytest.mark.parametrize(
    ("kind", "more", "message"),
    [
        ("Bloom", {}, "^BloomForCausalLM computes no attention by transformers' AttentionInt"),
        ("Falcon", {"head_dim": None}, "^FalconForCausalLM computes no attention by"),
        ("Mpt", {"d_model": 64, "n_heads": 4, "n_layers": 2}, "^MptForCausalLM computes no"),
        ("Mamba", {}, "^MambaForCausalLM computes no attention"),
        ("Lfm2", {"layer_types": ["conv", "full_attention"]}, "^1 of 2 layers have no attention"),
        ("Bert", {"of": "BertLMHeadModel"}, "^an attention lets token .* see others than the la"),
        ("Gemma3Text", {"of": "Gemma3ForCausalLM", "use_bidirectional_attention": True},
         "^an attention lets token .* see others"),
        ("Roberta", {"is_decoder": True, "max_position_embeddings": 98},
         "^RobertaForCausalLM numbers the positions of tokens otherwise than 0, 1, 2"),
        ("DiffLlama", {}, "^an attention of the model has no layer number"),
    ],
)  # fmt: skip
def test_families_that_caches_do_not_fit(
    kind: str, more: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """A mask or positions of other forms would give other logits without an error."""
    tiny.save(tmp_path, kind, **more)
    with pytest.raises(UnsupportedModel, match=message):
        text.load(tmp_path, "ref")


def test_a_model_that_gives_nan(tmp_path: Path) -> None:
    from mgx_mlir.text.probe import cache_shape

    model = tiny.save(tmp_path)
    assert cache_shape(model) == (2, 2, 16)
    model.model.norm.weight.data[3] = torch.nan
    with pytest.raises(UnsupportedModel, match="gives NaN for 4 tokens"):
        cache_shape(model)


def test_masks_that_are_a_window() -> None:
    from transformers import masking_utils as masks

    from mgx_mlir.text.probe import window_of

    far = window_of(masks.causal_mask_function)
    assert far > 100_000
    for window in (1, 3, 4096):
        assert window_of(masks.sliding_window_causal_mask_function(window)) == window
    left, blocks = torch.zeros(1, dtype=torch.int64), torch.zeros(1, 4, dtype=torch.int64)
    for mask in (
        masks.chunked_causal_mask_function(8192, left),
        masks.bidirectional_mask_function,
        masks.sliding_window_bidirectional_mask_function(8),
        masks.or_masks(masks.causal_mask_function, masks.blockwise_overlay(blocks)),
    ):
        with pytest.raises(UnsupportedModel, match=r"^an attention (lets|sees)"):
            window_of(mask)


LONG = {
    "rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 32,
    "short_factor": [1.0 + 0.1 * i for i in range(8)],
    "long_factor": [2.0 + 0.3 * i for i in range(8)],
}  # fmt: skip


def test_frequencies_do_not_follow_the_batch(tmp_path: Path) -> None:
    """Phi 3's are those of short contexts up to the original one, else those of long ones."""
    model = tiny.save(tmp_path, "Phi3", rope_parameters=LONG)
    short, long = (text.load(tmp_path, slots=2, max_length=n) for n in (32, 96))
    prompts = [short.tokens("the quick brown fox"), short.tokens("x")]
    together = [short.engine().submit(request(p, 20)) for p in prompts]
    for prompt, handle in zip(prompts, together, strict=True):
        assert [p.token for p in handle] == greedy(model, prompt, 20)
    tokens = short.tokens("the lazy dog jumps over the quick brown fox and the lazy dog, " * 2)
    assert len(tokens) > 32
    with torch.no_grad():
        want = model(torch.tensor([tokens])).logits[0].numpy()
    decoder: Any = long.decoder
    single = np.stack([decoder.scores(0, [t], i)[0] for i, t in enumerate(tokens)])
    np.testing.assert_allclose(single, want, atol=2e-5 * np.abs(want).max())


def test_a_second_load_needs_neither_torch_nor_mlir(
    folder: tuple[Path, Any], loaded: text.TextModel
) -> None:
    """The program is found in the cache by the files' content."""
    import subprocess
    import sys

    code = (
        "import sys; from mgx_mlir import text\n"
        f"print(text.load({str(folder[0])!r}, slots=3).generate('the', max_new_tokens=5))\n"
        "print([m for m in ('torch', 'transformers', 'torch_mlir') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.splitlines()[-1] == "[]"
    assert done.stdout.startswith(loaded.generate("the", max_new_tokens=5))


def test_weights_that_do_not_fit_the_config(folder: tuple[Path, Any], tmp_path: Path) -> None:
    """A layer too many would have drawn weights; an index is a part of the model."""
    import json
    import shutil

    shutil.copytree(folder[0], tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(FileError, match=r"9 tensors .* such as 'model\.layers\.2\."):
        text.load(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "model.safetensors").rename(tmp_path / "model-00001-of-00001.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text("{")
    with pytest.raises(FileError, match="cannot be read as JSON") as found:
        text.load(tmp_path)
    assert "\n" not in str(found.value)


def test_code_of_a_model_is_not_run(folder: tuple[Path, Any], tmp_path: Path, capsys: Any) -> None:
    """transformers would ask the terminal whether to run it."""
    import json
    import shutil

    shutil.copytree(folder[0], tmp_path, dirs_exist_ok=True)
    row = json.loads((tmp_path / "config.json").read_text())
    auto = {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"}
    (tmp_path / "own.py").write_text("raise SystemExit('run')")
    (tmp_path / "config.json").write_text(
        json.dumps({**row, "model_type": "own", "auto_map": auto})
    )
    with pytest.raises(UsageError, match=r"code of its own .*, which is not run"):
        text.load(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({**row, "vocab_size": 10**12}))
    with pytest.raises(UsageError, match="tensors have other dims than the config states"):
        text.load(tmp_path)
    assert capsys.readouterr().out == ""


def test_older_files_of_a_tokenizer(tmp_path: Path) -> None:
    import json

    made = tiny.tokenizer()
    row = json.loads(made.to_str())["model"]
    (tmp_path / "vocab.json").write_text(json.dumps(row["vocab"]))
    merges = [m if isinstance(m, str) else " ".join(m) for m in row["merges"]]
    (tmp_path / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]))
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    found = Tokenizer.of_folder(tmp_path)
    said = "the quick brown fox, jumps"
    assert found.encode(said) == made.encode(said).ids
    assert found.decode(found.encode(said)) == said
    (tmp_path / "vocab.json").unlink()
    with pytest.raises(FileError, match=r"no tokenizer\.json, nor tokenizer\.model"):
        Tokenizer.of_folder(tmp_path)
    (tmp_path / "tokenizer.model").write_bytes(b"x" * 100)
    with pytest.raises(FileError, match="transformers cannot make one"):
        Tokenizer.of_folder(tmp_path)


def test_what_is_no_model_is_told(tmp_path: Path, folder: tuple[Path, Any]) -> None:
    for path, message in (
        (tmp_path / "none", "no such file"),
        (tmp_path, "config.json"),
        (__file__, "expected"),
    ):
        with pytest.raises((FileError, UsageError), match=message):
            text.load(path)
    with pytest.raises(UsageError, match="at most 96"):
        text.load(folder[0], max_length=1000)
    with pytest.raises(UsageError, match="unknown weights 'int3'"):
        text.load(folder[0], weights="int3")  # type: ignore[arg-type]
