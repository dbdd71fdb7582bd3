"""Compiles torch modules of many families with backend "mgx", and compares them with eager.

    python -m benchmarks.torch_modules [NAME ...] [--target ref] [--out rows.jsonl] [--time]

One line for each module: whether it compiled whole, graphs and programs over five sizes, the
largest difference from eager. `--time` adds the CPU time of a call: eager, inductor, mgx.
Needs torch, transformers and onnxscript: `pip install .[bench] -c constraints.txt`.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers as hf
from torch import nn

from mgx_mlir.debug.engine_times import time_engines
from mgx_mlir.integrations.torch.backend import mgx
from mgx_mlir.integrations.torch.counters import counters
from zoo.modules import small_nets as own

Call = tuple[tuple[Any, ...], dict[str, Any]]
# the first has no dims in common with the modules: Dynamo would take them for equal ever after
SIZES = ((5, 13), (2, 11), (3, 13), (2, 17), (4, 6))
T: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
                     "intermediate_size": 64, "vocab_size": 100}  # fmt: skip
CAUSAL = {**T, "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0,
          "bos_token_id": 1, "eos_token_id": 2}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A constructor of a module, and of its arguments for (batch, length)."""

    make: Callable[[], nn.Module]
    call: Callable[[int, int], Call]
    fixed: bool = False  # has only one size
    dynamic_batch: bool = False  # the batch alone is dynamic: height and width stay as they are
    tolerance: float = 1e-4


def ids(b: int, n: int) -> Call:
    return (), {"input_ids": torch.randint(3, 97, (b, n))}


def masked(b: int, n: int) -> Call:
    mask = torch.ones(b, n, dtype=torch.int64)
    mask[-1, -2:] = 0
    return (), {"input_ids": torch.randint(3, 97, (b, n)), "attention_mask": mask}


def image(b: int, n: int) -> Call:
    return (), {"pixel_values": torch.randn(b, 3, 32, 32)}


def images(b: int, n: int) -> Call:
    return (torch.randn(b, 3, 32, 32),), {}


def seq2seq(b: int, n: int) -> Call:
    return (), {**masked(b, n)[1], "decoder_input_ids": torch.randint(3, 97, (b, 6))}


def tokens(b: int, n: int) -> Call:
    return (torch.randint(3, 97, (b, n)),), {}


def floats(*shape: Any) -> Callable[[int, int], Call]:
    def make(b: int, n: int) -> Call:
        return (torch.randn([{"b": b, "n": n}.get(s, s) for s in shape]),), {}

    return make


def graph(b: int, n: int) -> Call:
    return (torch.randn(4 * b, 8), torch.randint(0, 4 * b, (2, 5 * n))), {}


def cached(b: int, n: int) -> Call:
    return (torch.randn(2, 1, 32), torch.tensor([n % 16])), {}


def growing(b: int, n: int) -> Call:
    return (torch.randn(b, 7, 32), (torch.randn(b, 4, n, 8), torch.randn(b, 4, n, 8))), {}


def config(kind: str, model: str, **fields: Any) -> Callable[[], nn.Module]:
    """A model of transformers with drawn weights."""

    def make() -> nn.Module:
        made = getattr(hf, kind)(**fields)
        return getattr(hf, model)(made)

    return make


def t5() -> dict[str, Any]:
    return {"vocab_size": 100, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2,
            "num_heads": 4, "decoder_start_token_id": 0}  # fmt: skip


def bart() -> dict[str, Any]:
    return {"vocab_size": 100, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
            "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64, "max_position_embeddings": 64}  # fmt: skip


VISION = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
          "intermediate_size": 64, "image_size": 32, "patch_size": 8}  # fmt: skip
TINY_CONV = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "num_labels": 5}

CASES: dict[str, Case] = {
    "bert": Case(config("BertConfig", "BertModel", **T), masked),
    "roberta": Case(config("RobertaConfig", "RobertaForSequenceClassification", **T), masked),
    "distilbert": Case(
        config("DistilBertConfig", "DistilBertForTokenClassification", vocab_size=100, dim=32,
               n_layers=2, n_heads=4, hidden_dim=64), masked),
    "albert": Case(config("AlbertConfig", "AlbertModel", **T, embedding_size=16), masked),
    "electra": Case(config("ElectraConfig", "ElectraForMaskedLM", **T, embedding_size=16), masked),
    "deberta_v2": Case(config("DebertaV2Config", "DebertaV2Model", **T, relative_attention=True,
                              pos_att_type=["p2c", "c2p"], max_relative_positions=16), masked),
    "mpnet": Case(config("MPNetConfig", "MPNetModel", **T), masked),
    "modernbert": Case(config("ModernBertConfig", "ModernBertModel", **T, pad_token_id=0,
                              bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2),
                       masked),
    "funnel": Case(config("FunnelConfig", "FunnelBaseModel", vocab_size=100, d_model=32, n_head=4,
                          d_head=8, d_inner=64, block_sizes=[1, 1]), masked),
    "gpt2": Case(config("GPT2Config", "GPT2LMHeadModel", vocab_size=100, n_embd=32, n_layer=2,
                        n_head=4, n_positions=64, use_cache=False), masked),
    "gpt2_cache": Case(config("GPT2Config", "GPT2LMHeadModel", vocab_size=100, n_embd=32,
                              n_layer=2, n_head=4, n_positions=64), ids),
    "gpt_neox": Case(config("GPTNeoXConfig", "GPTNeoXForCausalLM", **T, use_cache=False), masked),
    "opt": Case(config("OPTConfig", "OPTForCausalLM", vocab_size=100, hidden_size=32,
                       num_hidden_layers=2, ffn_dim=64, num_attention_heads=4,
                       word_embed_proj_dim=32, use_cache=False), masked),
    "bloom": Case(config("BloomConfig", "BloomForCausalLM", vocab_size=100, hidden_size=32,
                         n_layer=2, n_head=4, use_cache=False), masked),
    "llama": Case(config("LlamaConfig", "LlamaForCausalLM", **CAUSAL, use_cache=False), masked),
    "llama_cache": Case(config("LlamaConfig", "LlamaForCausalLM", **CAUSAL), masked),
    "mistral": Case(config("MistralConfig", "MistralForCausalLM", **CAUSAL, sliding_window=6,
                           use_cache=False), masked),
    "qwen2": Case(config("Qwen2Config", "Qwen2ForCausalLM", **CAUSAL, use_cache=False), masked),
    "qwen3": Case(config("Qwen3Config", "Qwen3ForCausalLM", **CAUSAL, head_dim=8,
                         use_cache=False), masked),
    "gemma2": Case(config("Gemma2Config", "Gemma2ForCausalLM", **CAUSAL, head_dim=8,
                          use_cache=False), masked),
    "phi3": Case(config("Phi3Config", "Phi3ForCausalLM", **CAUSAL, use_cache=False), masked),
    "falcon": Case(config("FalconConfig", "FalconForCausalLM", vocab_size=100, hidden_size=32,
                          num_hidden_layers=2, num_attention_heads=4, use_cache=False), masked),
    "mixtral": Case(config("MixtralConfig", "MixtralForCausalLM", **CAUSAL, num_local_experts=4,
                           use_cache=False), masked),
    "qwen3_moe": Case(config("Qwen3MoeConfig", "Qwen3MoeForCausalLM", **CAUSAL, head_dim=8,
                             num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32,
                             use_cache=False), masked),
    "mamba": Case(config("MambaConfig", "MambaForCausalLM", vocab_size=100, hidden_size=16,
                         num_hidden_layers=1, state_size=4, use_cache=False),
                  lambda b, n: ids(2, 6), fixed=True),
    "t5": Case(config("T5Config", "T5ForConditionalGeneration", **t5(), use_cache=False), seq2seq),
    "t5_encoder": Case(config("T5Config", "T5EncoderModel", **t5()), masked),
    "bart": Case(config("BartConfig", "BartForConditionalGeneration", **bart(), use_cache=False),
                 seq2seq),
    "marian": Case(config("MarianConfig", "MarianMTModel", **bart(), pad_token_id=0,
                          decoder_start_token_id=0, use_cache=False), seq2seq),
    "whisper": Case(config("WhisperConfig", "WhisperForConditionalGeneration",
                           **{**bart(), "max_position_embeddings": 64}, num_mel_bins=16,
                           max_source_positions=25, max_target_positions=32, pad_token_id=0,
                           bos_token_id=1, eos_token_id=2, decoder_start_token_id=3,
                           use_cache=False),
                    lambda b, n: ((), {"input_features": torch.randn(b, 16, 50),
                                       "decoder_input_ids": torch.randint(3, 97, (b, n))})),
    "wav2vec2": Case(config("Wav2Vec2Config", "Wav2Vec2ForCTC", **T, conv_dim=[16, 16],
                            conv_stride=[5, 2], conv_kernel=[10, 3], num_feat_extract_layers=2,
                            num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4),
                     lambda b, n: ((torch.randn(b, 100 * n),), {})),
    "hubert": Case(config("HubertConfig", "HubertModel", **T, conv_dim=[16, 16],
                          conv_stride=[5, 2], conv_kernel=[10, 3], num_feat_extract_layers=2,
                          num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4),
                   lambda b, n: ((torch.randn(b, 100 * n),), {})),
    "vit": Case(config("ViTConfig", "ViTForImageClassification", **VISION), image),
    "deit": Case(config("DeiTConfig", "DeiTModel", **VISION), image),
    "beit": Case(config("BeitConfig", "BeitModel", **VISION, use_relative_position_bias=True),
                 image),
    "dinov2": Case(config("Dinov2Config", "Dinov2Model", **VISION), image),
    "clip_vision": Case(config("CLIPVisionConfig", "CLIPVisionModelWithProjection", **VISION,
                               projection_dim=16), image),
    "clip_text": Case(config("CLIPTextConfig", "CLIPTextModel", **T, max_position_embeddings=40,
                             eos_token_id=99), masked),
    "siglip_vision": Case(config("SiglipVisionConfig", "SiglipVisionModel", **VISION), image),
    "swin": Case(config("SwinConfig", "SwinForImageClassification", image_size=32, patch_size=2,
                        embed_dim=8, depths=[2, 2], num_heads=[2, 4], window_size=4), image,
                 dynamic_batch=True),  # torch's reasoning on dynamic windows takes over ten minutes
    "segformer": Case(config("SegformerConfig", "SegformerForSemanticSegmentation",
                             num_encoder_blocks=2, depths=[1, 1], sr_ratios=[4, 2],
                             hidden_sizes=[16, 32], patch_sizes=[7, 3], strides=[4, 2],
                             num_attention_heads=[1, 2], mlp_ratios=[2, 2],
                             decoder_hidden_size=16), image),
    "convnext_hf": Case(config("ConvNextConfig", "ConvNextForImageClassification", **TINY_CONV),
                        image),
    "resnet_hf": Case(config("ResNetConfig", "ResNetForImageClassification", **TINY_CONV,
                             embedding_size=8, layer_type="basic"), image),
    "regnet_hf": Case(config("RegNetConfig", "RegNetModel", **TINY_CONV, embedding_size=8,
                             groups_width=4), image),
    "mobilenet_v2_hf": Case(config("MobileNetV2Config", "MobileNetV2Model", depth_multiplier=0.25,
                                   image_size=32), image),
    "poolformer": Case(config("PoolFormerConfig", "PoolFormerModel", hidden_sizes=[8, 16, 24, 32],
                              depths=[1, 1, 1, 1]), image),
    "dpt": Case(config("DPTConfig", "DPTModel", **VISION), image),
    "resnet": Case(own.resnet, images),
    "regnet": Case(own.regnet, images),
    "efficientnet": Case(own.efficientnet, images),
    "mobilenet": Case(own.mobilenet, images),
    "densenet": Case(own.DenseNet, images),
    "convnext": Case(own.ConvNext, images),
    "unet": Case(own.UNet, images),
    "autoencoder": Case(own.AutoEncoder, images),
    "mixer": Case(own.Mixer, images),
    "detector": Case(own.Detector, images),
    "superres": Case(own.PixelShuffle, floats("b", 1, 16, 16)),
    "style": Case(own.StyleConv, lambda b, n: ((torch.randn(2, 8, 8, n), torch.randn(2, 16)), {})),
    "diffusion": Case(own.DiffusionBlock, lambda b, n: (
        (torch.randn(b, 32, 8, 8), torch.randint(0, 999, (b,)), torch.randn(b, n, 24)), {})),
    "lstm_tagger": Case(lambda: own.Tagger(nn.LSTM), tokens),
    "lstm_deep": Case(lambda: own.Tagger(nn.LSTM, 2), tokens),
    "gru_tagger": Case(lambda: own.Tagger(nn.GRU), tokens),
    "seq2seq": Case(own.Seq2Seq, lambda b, n: (
        (torch.randint(0, 50, (b, n)), torch.randint(0, 50, (b, 4))), {})),
    "graph": Case(own.GraphNet, graph),
    "graph_attention": Case(own.AttentionGraph, graph),
    "cached": Case(own.Cached, cached),
    "growing_cache": Case(own.GrowingCache, growing),
    "position": Case(own.PositionStep, lambda b, n: ((torch.randn(b, n, 16), n + b), {})),
    "tabular": Case(own.Mlp, lambda b, n: (
        ({"numbers": torch.randn(b, 8), "categories": torch.randint(0, 10, (b, 3))},), {})),
    "dlrm": Case(own.DotInteraction, lambda b, n: (
        (torch.randn(b, 13), torch.randint(0, 100, (b, 3)), torch.randint(0, 100, (b, 4))), {})),
    "wavenet": Case(own.WaveNet, floats("b", 1, "n")),
    "experts": Case(own.Experts, floats("b", "n", 16)),
    "spectrogram": Case(own.Spectrogram, lambda b, n: ((torch.randn(b, 32 * n),), {})),
    "transformer_encoder": Case(lambda: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2, enable_nested_tensor=False),
        floats("b", "n", 32)),
    "transformer": Case(lambda: nn.Transformer(32, 4, 1, 1, 64, batch_first=True), lambda b, n: (
        (torch.randn(b, n, 32), torch.randn(b, 6, 32)), {})),
}  # fmt: skip


def leaves(value: Any) -> list[Any]:
    """Tensors and numbers of what a model returns."""
    if isinstance(value, torch.Tensor | int | float | bool) or value is None:
        return [value]
    if isinstance(value, dict):
        return [x for v in value.values() for x in leaves(v)]
    if isinstance(value, tuple | list):
        return [x for v in value for x in leaves(v)]
    layers = getattr(value, "layers", None)  # a cache of transformers
    if layers is not None:
        return [x for layer in layers for x in (layer.keys, layer.values)]
    return []


def drawn(case: Case) -> nn.Module:
    """The module with drawn weights, such that its results differ from each other."""
    torch.manual_seed(7)
    model = case.make().eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim > 1 and p.std() < 0.05:
                p.mul_(4)
        for name, b in model.named_buffers():
            if name.endswith("running_mean"):
                b.normal_(0, 0.1)
            elif name.endswith("running_var"):
                b.uniform_(0.5, 1.5)
    return model


def difference(got: Any, want: Any) -> float:
    """The largest difference, relative to the largest element of a result (at least 1)."""
    a, b = leaves(got), leaves(want)
    if len(a) != len(b):
        return float("inf")
    worst = 0.0
    for x, y in zip(a, b, strict=True):
        if not isinstance(y, torch.Tensor):
            worst = max(worst, 0.0 if x == y else float("inf"))
            continue
        if x.shape != y.shape or x.dtype != y.dtype:
            return float("inf")
        if y.numel():
            d = (x.double() - y.double()).abs()
            d = torch.where(x == y, 0.0, d)  # infinities that agree
            worst = max(worst, float(d.max() / max(1.0, float(y[y.isfinite()].abs().max()))))
    return worst


def examine(name: str, target: str) -> dict[str, Any]:
    """Compile one module over five sizes."""
    case = CASES[name]
    model, plain = drawn(case), drawn(case)
    torch._dynamo.reset()
    counters.clear()
    dynamic = None if case.dynamic_batch else not case.fixed
    run = torch.compile(
        model, backend=mgx, fullgraph=True, dynamic=dynamic, options={"target": target}
    )
    start, worst = time.perf_counter(), 0.0
    first = 0.0
    for b, n in SIZES:
        args, kwargs = case.call(b, n)
        if case.dynamic_batch:
            for value in (*args, *kwargs.values()):
                torch._dynamo.mark_dynamic(value, 0)
        with torch.no_grad():
            want = plain(*args, **kwargs)
            got = run(*args, **kwargs)
        worst = max(worst, difference(got, want))
        first = first or time.perf_counter() - start
    return {
        "name": name, "ok": worst <= case.tolerance and counters.graphs == 1, "error": worst,
        "graphs": counters.graphs, "programs": counters.programs, "seconds": round(first, 1),
    }  # fmt: skip


def timed(name: str) -> dict[str, float]:
    """CPU microseconds of a call at one size, one thread: medians over blocks."""
    case = CASES[name]
    torch.set_num_threads(1)
    args, kwargs = case.call(4, 16)
    ways: dict[str, Callable[..., Any]] = {"eager": drawn(case)}
    torch._dynamo.reset()
    for backend, options in (("inductor", {}), (mgx, {"options": {"threads": 1}})):
        ways[backend if isinstance(backend, str) else "mgx"] = torch.compile(
            drawn(case), backend=backend, **options
        )
    with torch.no_grad():
        error = difference(ways["mgx"](*args, **kwargs), ways["eager"](*args, **kwargs))
        calls = {way: partial(run, *args, **kwargs) for way, run in ways.items()}
        times = time_engines(calls, clock="cpu", block=0.05, limit=5)
    found = {way: round(1e6 * times.seconds(way), 1) for way in ways}
    return {**found, "error": error}


class Late(Exception):
    """A module that took too long."""


def _late(*_: object) -> None:
    raise Late


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--limit", type=int, default=600, help="seconds for each module")
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _late)
    good = 0
    names = options.names or list(CASES)
    for name in names:
        signal.alarm(options.limit)
        try:
            row = timed(name) if options.time else examine(name, options.target)
            row = {"name": name, **row}
        except BaseException as e:  # every module is to have its line
            if isinstance(e, KeyboardInterrupt):
                raise
            row = {"name": name, "ok": False, "failed": f"{type(e).__name__}: {e}"[:1500]}
        finally:
            signal.alarm(0)
        good += bool(row.get("ok", True))
        line = json.dumps(row)
        print(line[:400], flush=True)
        if options.out:
            with options.out.open("a") as f:
                f.write(line + "\n")
    print(f"{good} of {len(names)} modules")
    return 0 if good == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
