"""Exports small models of architectures that no test has, with inputs of one or two sizes each.

    python benchmarks/held_out_nets.py --out DIR [NAME ...]
    python -m benchmarks.emulator.held_out DIR/*.onnx

Each `NAME.onnx` has drawn weights; beside it lie `NAME.inputs.npz` and, where its dims could be
left dynamic, `NAME.second.npz`, inputs of another size. A model whose file is there is not made
again. Needs torch, transformers and onnxscript: `pip install .[bench] -c constraints.txt`.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
import transformers as hf
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from zoo.modules import held_out_nets as own

Inputs = dict[str, torch.Tensor]
Call = Callable[[int, int], Inputs]  # (batch, length or number) -> inputs
SIZES = ((1, 9), (2, 13))
BATCH, LENGTH = "batch", "length"
LIMIT = 150  # seconds for each export
# (dynamic dims, exporter): tracing takes a tenth of the time
WAYS = ((True, "script"), (True, "dynamo"), (False, "script"), (False, "dynamo"))


@dataclass(frozen=True)
class Case:
    """A model, its inputs, and which of their dims an export leaves dynamic, if it can."""

    make: Callable[[], nn.Module]
    call: Call
    axes: dict[int, str] | None = None  # dynamic axes of every input
    opset: int = 18


def config(kind: str, model: str, **fields: Any) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        return getattr(hf, model)(getattr(hf, kind)(**fields))

    return make


T = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
     "intermediate_size": 64, "max_position_embeddings": 64, "pad_token_id": 0}  # fmt: skip
CAUSAL = {**T, "num_key_value_heads": 2, "use_cache": False, "bos_token_id": 1, "eos_token_id": 2}
ENCODED = {"vocab_size": 100, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1,
           "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
           "decoder_ffn_dim": 64, "max_position_embeddings": 64, "use_cache": False,
           "pad_token_id": 0, "decoder_start_token_id": 0}  # fmt: skip
VISION = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
          "intermediate_size": 64, "image_size": 32, "patch_size": 8}  # fmt: skip
SOUND = {**T, "conv_dim": [16, 16], "conv_stride": [5, 2], "conv_kernel": [10, 3],
         "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 16,
         "num_conv_pos_embedding_groups": 4}  # fmt: skip
SERIES = {"prediction_length": 4, "context_length": 12, "input_size": 1, "lags_sequence": [1, 2],
          "num_time_features": 2, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1,
          "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 32,
          "decoder_ffn_dim": 32}  # fmt: skip


def tokens(b: int, n: int) -> torch.Tensor:
    return torch.randint(3, 97, (b, n))


def ids(b: int, n: int) -> Inputs:
    return {"input_ids": tokens(b, n)}


def masked(b: int, n: int) -> Inputs:
    mask = torch.ones(b, n, dtype=torch.int64)
    mask[-1, -2:] = 0
    return {"input_ids": tokens(b, n), "attention_mask": mask}


def seq2seq(b: int, n: int) -> Inputs:
    return {**masked(b, n), "decoder_input_ids": tokens(b, n)}


def image(side: int = 32, name: str = "pixel_values", channels: int = 3) -> Call:
    return lambda b, n: {name: torch.randn(b, channels, side, side)}


def video(frames: int) -> Call:
    return lambda b, n: {"pixel_values": torch.randn(1, frames, 3, 16, 16)}


def wave(b: int, n: int) -> Inputs:
    return {"input_values": torch.randn(b, 40 * n)}


def floats(name: str, *shape: Any) -> Call:
    """Normal numbers; "b" and "n" among the extents are the sizes."""
    return lambda b, n: {name: torch.randn([{"b": b, "n": n}.get(s, s) for s in shape])}


def series(b: int, n: int) -> Inputs:
    return {
        "past_values": torch.randn(b, 14),
        "past_time_features": torch.randn(b, 14, 2),
        "past_observed_mask": torch.ones(b, 14),
        "future_values": torch.randn(b, 4),
        "future_time_features": torch.randn(b, 4, 2),
    }


def decisions(b: int, n: int) -> Inputs:
    return {
        "states": torch.randn(b, n, 5), "actions": torch.randn(b, n, 3),
        "rewards": torch.randn(b, n, 1), "returns_to_go": torch.randn(b, n, 1),
        "timesteps": torch.arange(n)[None].repeat(b, 1),
        "attention_mask": torch.ones(b, n, dtype=torch.int64),
    }  # fmt: skip


def laid_out(b: int, n: int) -> Inputs:
    corner = torch.randint(0, 30, (b, n, 2))
    return {**masked(b, n), "bbox": torch.cat([corner, corner + 5], -1)}


ROWS = {0: BATCH}
TEXT = {0: BATCH, 1: LENGTH}

CASES: dict[str, Case] = {
    # encoders of text
    "xlnet": Case(config("XLNetConfig", "XLNetModel", vocab_size=100, d_model=32, n_layer=2,
                         n_head=4, d_inner=64, use_mems_eval=False), masked),
    "roformer": Case(config("RoFormerConfig", "RoFormerModel", **T, embedding_size=16), masked,
                     TEXT),
    "bigbird": Case(config("BigBirdConfig", "BigBirdModel", **T,
                           attention_type="original_full"), masked, TEXT),
    "convbert": Case(config("ConvBertConfig", "ConvBertModel", **T, embedding_size=16,
                            head_ratio=2, conv_kernel_size=3), masked, TEXT),
    "mobilebert": Case(config("MobileBertConfig", "MobileBertModel",
                              **{**T, "num_hidden_layers": 1}, embedding_size=16,
                              intra_bottleneck_size=16, true_hidden_size=16), masked, TEXT),
    "squeezebert": Case(config("SqueezeBertConfig", "SqueezeBertModel", **T, embedding_size=32),
                        masked, TEXT),
    "fnet": Case(config("FNetConfig", "FNetModel", **{k: v for k, v in T.items()
                                                      if k != "num_attention_heads"}), ids),
    "layoutlm": Case(config("LayoutLMConfig", "LayoutLMModel", **T, max_2d_position_embeddings=64),
                     laid_out, TEXT),
    "canine": Case(config("CanineConfig", "CanineModel", **{**T, "max_position_embeddings": 64},
                          downsampling_rate=4, local_transformer_stride=16,
                          num_hash_buckets=64), lambda b, n: masked(b, 16)),
    "ibert": Case(config("IBertConfig", "IBertModel", **T, quant_mode=False), masked, TEXT),
    "esm": Case(config("EsmConfig", "EsmModel", **T, position_embedding_type="rotary",
                       mask_token_id=98), masked, TEXT),
    "xlm": Case(config("XLMConfig", "XLMModel", vocab_size=100, emb_dim=32, n_layers=2, n_heads=4,
                       max_position_embeddings=64), ids, TEXT),
    "deberta": Case(config("DebertaConfig", "DebertaModel", **T, relative_attention=True,
                           pos_att_type=["c2p", "p2c"], max_relative_positions=16), masked),
    "perceiver": Case(config("PerceiverConfig", "PerceiverForMaskedLM", vocab_size=100,
                             d_model=16, d_latents=24, num_latents=6, num_self_attends_per_block=1,
                             num_self_attention_heads=2, num_cross_attention_heads=2,
                             qk_channels=16, v_channels=24, max_position_embeddings=12),
                      lambda b, n: {"inputs": tokens(b, 12)}),
    # decoders of text
    "gpt_neo": Case(config("GPTNeoConfig", "GPTNeoForCausalLM", vocab_size=100, hidden_size=32,
                           num_layers=2, attention_types=[[["global", "local"], 1]], num_heads=4,
                           window_size=4, max_position_embeddings=64, use_cache=False), masked,
                    TEXT),
    "gptj": Case(config("GPTJConfig", "GPTJForCausalLM", vocab_size=100, n_embd=32, n_layer=2,
                        n_head=4, rotary_dim=4, n_positions=64, use_cache=False), masked, TEXT),
    "codegen": Case(config("CodeGenConfig", "CodeGenForCausalLM", vocab_size=100, n_embd=32,
                           n_layer=1, n_head=4, rotary_dim=4, n_positions=64, use_cache=False),
                    masked),
    "phi": Case(config("PhiConfig", "PhiForCausalLM", **CAUSAL, partial_rotary_factor=0.5), masked,
                TEXT),
    "gemma": Case(config("GemmaConfig", "GemmaForCausalLM", **CAUSAL, head_dim=8), masked, TEXT),
    "stablelm": Case(config("StableLmConfig", "StableLmForCausalLM", **CAUSAL), masked, TEXT),
    "cohere": Case(config("CohereConfig", "CohereForCausalLM", **CAUSAL), masked, TEXT),
    "mpt": Case(config("MptConfig", "MptForCausalLM", vocab_size=100, d_model=32, n_layers=2,
                       n_heads=4, max_seq_len=64, use_cache=False), masked, TEXT),
    "xglm": Case(config("XGLMConfig", "XGLMForCausalLM", vocab_size=100, d_model=32, num_layers=2,
                        attention_heads=4, ffn_dim=64, max_position_embeddings=64,
                        use_cache=False), masked, TEXT),
    "rwkv": Case(config("RwkvConfig", "RwkvModel", vocab_size=100, hidden_size=16,
                        num_hidden_layers=2, context_length=16, use_cache=False),
                 lambda b, n: ids(b, 6)),
    "mamba2": Case(config("Mamba2Config", "Mamba2Model", vocab_size=100, hidden_size=16,
                          num_hidden_layers=1, state_size=8, expand=2, num_heads=4, head_dim=8,
                          n_groups=1, chunk_size=4, use_cache=False), lambda b, n: ids(b, 8)),
    "recurrent_gemma": Case(config("RecurrentGemmaConfig", "RecurrentGemmaForCausalLM",
                                   **{**CAUSAL, "num_hidden_layers": 3}, lru_width=32,
                                   attention_window_size=8, head_dim=8), lambda b, n: ids(b, 6)),
    "lfm2": Case(config("Lfm2Config", "Lfm2ForCausalLM", **CAUSAL,
                        layer_types=["conv", "full_attention"]), masked),
    # from text to text
    "pegasus": Case(config("PegasusConfig", "PegasusForConditionalGeneration", **ENCODED), seq2seq),
    "prophetnet": Case(config("ProphetNetConfig", "ProphetNetModel", vocab_size=100, hidden_size=32,
                              encoder_ffn_dim=64, num_encoder_layers=1,
                              num_encoder_attention_heads=4, decoder_ffn_dim=64,
                              num_decoder_layers=1, num_decoder_attention_heads=4,
                              max_position_embeddings=64, use_cache=False), seq2seq),
    "long_t5": Case(config("LongT5Config", "LongT5EncoderModel", vocab_size=100, d_model=32, d_kv=8,
                           d_ff=64, num_layers=2, num_heads=4, local_radius=3,
                           encoder_attention_type="transient-global", global_block_size=4),
                    masked),
    # images
    "swinv2": Case(config("Swinv2Config", "Swinv2Model", image_size=32, patch_size=2, embed_dim=8,
                          depths=[2, 2], num_heads=[2, 4], window_size=4), image()),
    "levit": Case(config("LevitConfig", "LevitModel", image_size=64, hidden_sizes=[16, 24, 32],
                         num_attention_heads=[2, 3, 4], depths=[1, 1, 1], key_dim=[8, 8, 8],
                         attention_ratio=[2, 2, 2], mlp_ratio=[2, 2, 2]), image(64), ROWS),
    "mobilevit": Case(config("MobileViTConfig", "MobileViTModel", image_size=32,
                             hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 8, 16, 16, 24, 24,
                                                                           32],
                             num_attention_heads=2, patch_size=2), image(), ROWS),
    "mobilevitv2": Case(config("MobileViTV2Config", "MobileViTV2Model", image_size=32,
                               width_multiplier=0.25, base_attn_unit_dims=[32, 48, 64],
                               n_attn_blocks=[1, 1, 1]), image(64), ROWS),
    "mobilenet_v1": Case(config("MobileNetV1Config", "MobileNetV1Model", depth_multiplier=0.25,
                                image_size=32), image(33), ROWS),
    "efficientnet_hf": Case(config("EfficientNetConfig", "EfficientNetModel", image_size=32,
                                   width_coefficient=0.25, depth_coefficient=0.25,
                                   hidden_dim=320), image(), ROWS),
    "convnextv2": Case(config("ConvNextV2Config", "ConvNextV2Model", hidden_sizes=[8, 16, 24, 32],
                              depths=[1, 1, 1, 1]), image(), ROWS),
    "pvt_v2": Case(config("PvtV2Config", "PvtV2Model", image_size=32, hidden_sizes=[8, 16, 24, 32],
                          num_attention_heads=[1, 2, 3, 4], depths=[1, 1, 1, 1],
                          sr_ratios=[4, 2, 1, 1], mlp_ratios=[2, 2, 2, 2]), image(), ROWS),
    "focalnet": Case(config("FocalNetConfig", "FocalNetModel", image_size=32, patch_size=4,
                            embed_dim=8, depths=[1, 1], hidden_sizes=[8, 16], focal_levels=[2, 2],
                            focal_windows=[3, 3]), image(), ROWS),
    "bit": Case(config("BitConfig", "BitModel", embedding_size=8, hidden_sizes=[32, 32, 64, 64],
                       depths=[1, 1, 1, 1], num_groups=4), image(), ROWS),
    "yolos": Case(config("YolosConfig", "YolosForObjectDetection", **{**VISION, "image_size":
                                                                      [32, 32]},
                         num_detection_tokens=5, num_labels=4), image(), ROWS),
    "swiftformer": Case(config("SwiftFormerConfig", "SwiftFormerModel", image_size=64,
                               embed_dims=[8, 16, 24, 32], depths=[1, 1, 1, 2], mlp_ratio=2),
                        image(64), ROWS),
    "hiera": Case(config("HieraConfig", "HieraModel", embed_dim=8, image_size=[32, 32],
                         patch_size=[3, 3], patch_stride=[2, 2], patch_padding=[1, 1],
                         depths=[1, 1], num_heads=[1, 2], masked_unit_size=[4, 4],
                         query_stride=[2, 2], num_query_pool=1), image(), ROWS),
    "superpoint": Case(lambda: own.SuperPoint(), image(32, channels=1), ROWS),
    "swin2sr": Case(config("Swin2SRConfig", "Swin2SRForImageSuperResolution", image_size=16,
                           embed_dim=12, depths=[2, 2], num_heads=[2, 2], window_size=4,
                           mlp_ratio=2.0, upscale=2), image(16)),
    "dinov3_vit": Case(config("DINOv3ViTConfig", "DINOv3ViTModel", **VISION,
                              num_register_tokens=2), image(), ROWS),
    "rt_detr_resnet": Case(config("RTDetrResNetConfig", "RTDetrResNetBackbone", embedding_size=8,
                                  hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1],
                                  layer_type="basic"), image(), ROWS),
    "glpn": Case(config("GLPNConfig", "GLPNForDepthEstimation", hidden_sizes=[8, 16, 24, 32],
                        depths=[1, 1, 1, 1], sr_ratios=[4, 2, 1, 1],
                        num_attention_heads=[1, 2, 3, 4], mlp_ratios=[2, 2, 2, 2],
                        decoder_hidden_size=16), image(), ROWS),
    "timesformer": Case(config("TimesformerConfig", "TimesformerModel", **{
        **VISION, "image_size": 16}, num_frames=3), video(3)),
    "videomae": Case(config("VideoMAEConfig", "VideoMAEModel", **{**VISION, "image_size": 16},
                            num_frames=4, tubelet_size=2), video(4)),
    # sound
    "sew": Case(config("SEWConfig", "SEWModel", **SOUND, squeeze_factor=2), wave),
    "wavlm": Case(config("WavLMConfig", "WavLMModel", **SOUND, num_buckets=16), wave),
    "unispeech": Case(config("UniSpeechConfig", "UniSpeechModel", **SOUND), wave, TEXT),
    "ast": Case(config("ASTConfig", "ASTModel", **{k: v for k, v in VISION.items()
                                                   if k != "image_size"}, max_length=32,
                       num_mel_bins=16, frequency_stride=8, time_stride=8),
                floats("input_values", "b", 32, 16), ROWS),
    "speech_to_text": Case(config("Speech2TextConfig", "Speech2TextForConditionalGeneration",
                                  **{**ENCODED, "max_source_positions": 64}, conv_channels=16,
                                  input_feat_per_channel=8, max_target_positions=64),
                           lambda b, n: {"input_features": torch.randn(b, 24, 8),
                                         "decoder_input_ids": tokens(b, n)}),
    "univnet": Case(config("UnivNetConfig", "UnivNetModel", model_in_channels=8,
                           model_hidden_channels=8, num_mel_bins=8,
                           resblock_kernel_sizes=[3], resblock_stride_sizes=[4],
                           resblock_dilation_sizes=[[1, 3]], kernel_predictor_num_blocks=1,
                           kernel_predictor_hidden_channels=8),
                    lambda b, n: {"input_features": torch.randn(b, 6, 8),
                                  "noise_sequence": torch.randn(b, 6, 8)}),
    "encodec": Case(own.Encodec, floats("waves", "b", 1, 96)),
    "dac": Case(own.Dac, floats("waves", "b", 1, 64), ROWS),
    "moonshine": Case(own.MoonshineEncoder, lambda b, n: {"waves": torch.randn(b, 1024)}, ROWS),
    # series and decisions
    "patchtst": Case(config("PatchTSTConfig", "PatchTSTModel", num_input_channels=2,
                            context_length=16, patch_length=4, patch_stride=4, d_model=16,
                            num_hidden_layers=1, num_attention_heads=2, ffn_dim=32),
                     floats("past_values", "b", 16, 2), ROWS),
    "patchtsmixer": Case(config("PatchTSMixerConfig", "PatchTSMixerModel", num_input_channels=2,
                                context_length=16, patch_length=4, patch_stride=4, d_model=8,
                                num_layers=1), floats("past_values", "b", 16, 2), ROWS),
    "series_transformer": Case(config("TimeSeriesTransformerConfig", "TimeSeriesTransformerModel",
                                      **SERIES), series),
    "autoformer": Case(config("AutoformerConfig", "AutoformerModel", **SERIES, label_length=4),
                       series),
    "decisions": Case(config("DecisionTransformerConfig", "DecisionTransformerModel", state_dim=5,
                             act_dim=3, hidden_size=16, n_layer=1, n_head=2, n_positions=128,
                             max_ep_len=32), decisions),
    # torch's own layers
    "conv_lstm": Case(own.ConvLstm, floats("frames", "b", 3, 2, 8, 8), ROWS),
    "stacked_gru": Case(own.StackedGru, floats("x", "b", "n", 12), TEXT),
    "attention_unet": Case(own.AttentionUNet, image(16, "image"), ROWS),
    "volume_net": Case(own.VolumeNet, floats("volume", "b", 1, 8, 10, 12), ROWS),
    "temporal_convs": Case(own.TemporalConvs, floats("x", "b", 6, "n"), {0: BATCH, 2: LENGTH}),
    "depthwise_group_norm": Case(own.DepthwiseNet, image(24, "image"), ROWS),
    "graph_sage": Case(own.GraphSage, lambda b, n: {
        "nodes": torch.randn(7 * b, 8), "edges": torch.randint(0, 7 * b, (2, 3 * n))}),
    "point_net": Case(own.PointNet, floats("points", "b", "n", 3), TEXT),
    "pixel_cnn": Case(own.PixelCnn, image(12, "image", 1), ROWS),
    "neural_field": Case(own.NeuralField, floats("at", "b", "n", 3), TEXT),
    "coupling_flow": Case(own.CouplingFlow, floats("x", "b", 8), ROWS),
    "capsules": Case(own.Capsules, image(16, "image", 1), ROWS),
    "hyper_conv": Case(own.HyperConv, image(12, "image"), None),
    "set_slots": Case(own.SlotAttention, floats("features", "b", "n", 16), TEXT),
    "vq_autoencoder": Case(own.VectorQuantiser, image(16, "image"), ROWS),
    "key_points": Case(own.KeyPoints, image(16, "image"), ROWS),
}  # fmt: skip


class Named(nn.Module):
    """A model that takes its inputs by name and returns its tensors of floats and integers."""

    def __init__(self, model: nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.model, self.names = model, list(names)

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        got = self.model(**dict(zip(self.names, inputs, strict=True)))
        return tuple(tensors(got))


def tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [x for v in value.values() for x in tensors(v)]
    if isinstance(value, tuple | list):
        return [x for v in value for x in tensors(v)]
    return []


def drawn(case: Case) -> nn.Module:
    """The model with drawn weights, such that its results differ from each other."""
    torch.manual_seed(11)
    model = case.make().eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim > 1 and 0 < p.std() < 0.05:
                p.mul_(4)
            elif p.numel() and (p == 0).all():
                p.normal_(0, 0.1)  # biases, and scales of layers that start as nothing
        for name, b in model.named_buffers():
            if name.endswith("running_mean"):
                b.normal_(0, 0.1)
            elif name.endswith("running_var"):
                b.uniform_(0.5, 1.5)
    return model


def written(
    case: Case, model: nn.Module, inputs: Inputs, path: Path, how: str, *, opened: bool
) -> None:
    names, given = list(inputs), tuple(inputs.values())
    net = Named(model, names).eval()
    axes = {n: {a: s for a, s in (case.axes or {}).items() if a < v.ndim}
            for n, v in inputs.items()}  # fmt: skip
    common: dict[str, Any] = {"input_names": names, "opset_version": case.opset}
    if how == "script":
        torch.onnx.export(net, given, str(path), dynamo=False,
                          dynamic_axes=axes if opened else None, **common)  # fmt: skip
        return
    shapes = None
    if opened:
        shapes = (tuple(dict.fromkeys(axes[n], torch.export.Dim.DYNAMIC) for n in names),)
    torch.onnx.export(net, given, str(path), dynamo=True, external_data=False,
                      dynamic_shapes=shapes, verbose=False, **common)  # fmt: skip


def agrees(path: Path, model: nn.Module, inputs: Inputs) -> bool:
    """Return whether onnxruntime's results of a file are the model's: traces may freeze values."""
    want = Named(model, list(inputs)).eval()(*inputs.values())
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    made = onnxruntime.InferenceSession(str(path), options)
    given = {n: v.numpy() for n, v in inputs.items() if n in {i.name for i in made.get_inputs()}}
    got = made.run(None, given)
    return len(got) == len(want) and all(
        a.shape == b.shape and np.allclose(a, b.numpy(), 1e-3, 1e-3)
        for a, b in zip(got, want, strict=True)
    )


def exported(name: str, folder: Path) -> str:
    """Export one model by the first way that gives what it computes; how, and its dims."""
    case, path = CASES[name], folder / f"{name}.onnx"
    model = drawn(case)
    torch.manual_seed(12)
    first, second = (case.call(*sizes) for sizes in SIZES)
    why: list[str] = []
    with torch.no_grad():
        for opened, how in WAYS:
            if opened and not case.axes:
                continue
            try:
                # an example of two rows: of one, exporters take the batch for fixed
                written(case, model, second if opened else first, path, how, opened=opened)
                for inputs in (first, second) if opened else (first,):
                    if not agrees(path, model, inputs):
                        raise ValueError("the file computes something else")
            except Exception as e:
                why.append(f"{how}: {type(e).__name__}: {(str(e).splitlines() or [''])[0][:110]}")
                path.unlink(missing_ok=True)
                if isinstance(e, Late):
                    break
                continue
            used = {v.name for v in onnx.load(path).graph.input}
            _saved(path.with_suffix(".inputs.npz"), first, used)
            if opened:
                _saved(path.with_suffix(".second.npz"), second, used)
            nodes = len(onnx.load(path).graph.node)
            return f"{how}, {'open' if opened else 'fixed'}, {nodes} nodes"
    raise ValueError("; ".join(why))


def _saved(path: Path, inputs: Inputs, used: set[str]) -> None:
    np.savez(path, **{n: v.numpy() for n, v in inputs.items() if n in used})


class Late(Exception):
    """An export that took too long."""


def _late(*_: object) -> None:
    raise Late


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    unknown = [n for n in options.names if n not in CASES]
    if unknown:
        parser.error(f"no such model: {', '.join(unknown)}")
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    signal.signal(signal.SIGALRM, _late)
    failed = 0
    for name in options.names or CASES:
        if (options.out / f"{name}.inputs.npz").exists():
            continue
        start = time.perf_counter()
        signal.alarm(LIMIT)
        try:
            said = exported(name, options.out)
        except Exception as e:  # every model is to have its line
            failed += 1
            (options.out / f"{name}.onnx").unlink(missing_ok=True)
            said = f"failed: {type(e).__name__}: {(str(e).splitlines() or [''])[0][:450]}"
        finally:
            signal.alarm(0)
        print(f"{name:<22} {said}  {time.perf_counter() - start:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
