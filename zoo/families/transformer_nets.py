"""Small nets of families that transformers has, wrapped as tensors in and tensors out."""

from __future__ import annotations

from typing import Any

import torch
import transformers as hf
from torch import nn

NARROW = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}


class Fields(nn.Module):
    """A model called with named tensors; some fields of what it returns."""

    def __init__(self, model: nn.Module, names: str, *fields: str, **fixed: Any) -> None:
        super().__init__()
        self.model, self.names, self.fields, self.fixed = model, names.split(), fields, fixed

    def forward(self, *args: torch.Tensor) -> tuple[torch.Tensor, ...]:
        out = self.model(**dict(zip(self.names, args, strict=True)), **self.fixed)
        return tuple(getattr(out, field) for field in self.fields)


def cache_of(past: tuple[torch.Tensor, ...], config: Any = None) -> hf.DynamicCache:
    cache = hf.DynamicCache(config=config) if config is not None else hf.DynamicCache()
    for layer in range(len(past) // 2):
        cache.update(past[2 * layer], past[2 * layer + 1], layer)
    return cache


def of_cache(cache: Any) -> tuple[torch.Tensor, ...]:
    return tuple(x for layer in cache.layers for x in (layer.keys, layer.values))


class Step(nn.Module):
    """(ids, mask, positions, past keys and values) -> (logits, present keys and values)."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor, *past: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        out = self.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache_of(past, self.model.config),
            use_cache=True,
        )
        return (out.logits, *of_cache(out.past_key_values))


class CrossStep(nn.Module):
    """(ids, encoder states, past of both attentions) -> (logits, present of the first)."""

    def __init__(self, model: nn.Module, head: nn.Module, positions: bool) -> None:
        super().__init__()
        self.decoder, self.head, self.positions = model, head, positions

    def forward(
        self, ids: torch.Tensor, states: torch.Tensor, *past: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        half = len(past) // 2
        cache = hf.EncoderDecoderCache(cache_of(past[:half]), cache_of(past[half:]))
        more = {}
        if self.positions:
            length = past[0].shape[2]
            more["position_ids"] = torch.arange(ids.shape[1])[None] + length
        out = self.decoder(
            input_ids=ids,
            encoder_hidden_states=states,
            past_key_values=cache,
            use_cache=True,
            **more,
        )
        present = of_cache(out.past_key_values.self_attention_cache)
        return (self.head(out.last_hidden_state), *present)


def eager(config: Any, attention: str = "sdpa") -> Any:
    config._attn_implementation = attention
    return config


def swin() -> nn.Module:
    config = hf.SwinConfig(
        image_size=32, patch_size=2, embed_dim=8, depths=[2, 2], num_heads=[2, 4], window_size=4,
        num_labels=10,
    )  # fmt: skip
    return Fields(hf.SwinForImageClassification(config), "pixel_values", "logits")


def segformer() -> nn.Module:
    config = hf.SegformerConfig(
        num_encoder_blocks=2, depths=[1, 1], sr_ratios=[4, 2], hidden_sizes=[16, 32],
        patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2],
        decoder_hidden_size=16, num_labels=5,
    )  # fmt: skip
    return Fields(hf.SegformerForSemanticSegmentation(config), "pixel_values", "logits")


def t5_config() -> Any:
    return hf.T5Config(
        vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
        feed_forward_proj="gated-gelu",
    )  # fmt: skip


def t5_encoder() -> nn.Module:
    return Fields(hf.T5EncoderModel(t5_config()), "input_ids attention_mask", "last_hidden_state")


def t5_decoder() -> nn.Module:
    model = hf.T5ForConditionalGeneration(t5_config())
    return CrossStep(model.decoder, model.lm_head, positions=False)


def whisper_decoder() -> nn.Module:
    config = hf.WhisperConfig(
        vocab_size=100, d_model=32, decoder_layers=2, encoder_layers=1, decoder_attention_heads=4,
        encoder_attention_heads=4, decoder_ffn_dim=64, encoder_ffn_dim=64, max_target_positions=64,
        max_source_positions=50, num_mel_bins=16, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=3,
    )  # fmt: skip
    model = hf.WhisperForConditionalGeneration(config)
    return CrossStep(model.model.decoder, model.proj_out, positions=True)


def clip_text() -> nn.Module:
    config = hf.CLIPTextConfig(
        **NARROW, vocab_size=100, intermediate_size=64, projection_dim=16, eos_token_id=99,
        bos_token_id=98, pad_token_id=1, max_position_embeddings=40,
    )  # fmt: skip
    model = hf.CLIPTextModelWithProjection(config)
    return Fields(model, "input_ids attention_mask", "text_embeds", "last_hidden_state")


def clip_vision() -> nn.Module:
    config = hf.CLIPVisionConfig(
        **NARROW, intermediate_size=64, projection_dim=16, image_size=32, patch_size=8
    )
    return Fields(hf.CLIPVisionModelWithProjection(config), "pixel_values", "image_embeds")


def detr() -> nn.Module:
    backbone = hf.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1], layer_type="basic",
        out_features=["stage4"],
    )  # fmt: skip
    config = hf.DetrConfig(
        backbone_config=backbone, num_queries=7, d_model=32, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
        decoder_ffn_dim=64, num_labels=5,
    )  # fmt: skip
    model = hf.DetrForObjectDetection(config)
    return Fields(model, "pixel_values pixel_mask", "logits", "pred_boxes")


def gpt2() -> nn.Module:
    config = hf.GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=64)
    return Step(hf.GPT2LMHeadModel(config))


def llama() -> nn.Module:
    config = hf.LlamaConfig(
        **NARROW, vocab_size=100, intermediate_size=64, num_key_value_heads=2,
        max_position_embeddings=64,
    )  # fmt: skip
    return Step(hf.LlamaForCausalLM(config))


def mistral() -> nn.Module:
    config = hf.MistralConfig(
        **NARROW, vocab_size=100, intermediate_size=64, num_key_value_heads=2, head_dim=8,
        max_position_embeddings=64, sliding_window=5,
    )  # fmt: skip
    model = hf.MistralForCausalLM(config)
    return Fields(model, "input_ids attention_mask", "logits", use_cache=False)


def bert(attention: str = "sdpa") -> nn.Module:
    config = hf.BertConfig(
        **NARROW, vocab_size=100, intermediate_size=64, max_position_embeddings=32
    )
    model = hf.BertModel(eager(config, attention), add_pooling_layer=False)
    return Fields(model, "input_ids attention_mask token_type_ids", "last_hidden_state")
