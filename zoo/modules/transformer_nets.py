"""The transformer models of the benchmark: transformers' classes with random weights, as tensors in
and tensors out (transformers returns dataclasses and cache objects, which no exporter can carry).
"""

from __future__ import annotations

import torch
from torch import nn
from transformers import (
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    DynamicCache,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5EncoderModel,
    ViTConfig,
    ViTForImageClassification,
    WhisperConfig,
)
from transformers.models.whisper.modeling_whisper import WhisperEncoder


class Encoder(nn.Module):
    """(ids, mask) -> last hidden state."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=input_ids, attention_mask=attention_mask)[0]


class SegmentEncoder(Encoder):
    """(ids, mask, segment ids) -> last hidden state."""

    def forward(  # type: ignore[override]
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor,
    ) -> torch.Tensor:
        return self.model(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        )[0]


class TokenEncoder(nn.Module):
    """ids -> last hidden state."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=input_ids)[0]


class Causal(nn.Module):
    """ids -> logits. `explicit_mask` passes a mask of ones: without one, transformers looks for
    packed sequences with aten::diff, which the TorchScript exporter cannot write."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.explicit_mask = False

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        mask = torch.ones_like(input_ids) if self.explicit_mask else None
        return self.model(input_ids=input_ids, attention_mask=mask, use_cache=False)[0]


class CausalStep(nn.Module):
    """(ids, position ids, past keys and values) -> (logits, present keys and values)."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: torch.Tensor, position_ids: torch.Tensor, *past: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        cache = DynamicCache(config=self.model.config)
        for layer in range(len(past) // 2):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        out = self.model(
            input_ids=input_ids, position_ids=position_ids, past_key_values=cache, use_cache=True
        )
        present: list[torch.Tensor] = []
        for layer in out.past_key_values.layers:
            present += [layer.keys, layer.values]
        return (out.logits, *present)


class FirstOutput(nn.Module):
    """One tensor in, the first field of the result out."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x)[0]


def bert(*, small: bool, attention: str) -> nn.Module:
    config = (
        BertConfig(
            vocab_size=512,
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=128,
            max_position_embeddings=64,
        )
        if small
        else BertConfig()
    )
    config._attn_implementation = attention
    return SegmentEncoder(BertModel(config, add_pooling_layer=False))


def distilbert(*, small: bool, attention: str) -> nn.Module:
    config = (
        DistilBertConfig(
            vocab_size=512,
            dim=64,
            n_layers=2,
            n_heads=4,
            hidden_dim=128,
            max_position_embeddings=64,
        )
        if small
        else DistilBertConfig()
    )
    config._attn_implementation = attention
    return Encoder(DistilBertModel(config))


def gpt2(*, small: bool, attention: str) -> nn.Module:
    config = (
        GPT2Config(vocab_size=512, n_embd=64, n_layer=2, n_head=4, n_positions=64)
        if small
        else GPT2Config()
    )
    config._attn_implementation = attention
    return Causal(GPT2LMHeadModel(config))


def llama_config(*, small: bool, attention: str) -> LlamaConfig:
    """About 100 million parameters: 8 layers of width 768, 12 heads over 4 key/value heads."""
    config = (
        LlamaConfig(
            vocab_size=512,
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=128,
        )
        if small
        else LlamaConfig(
            vocab_size=32000,
            hidden_size=768,
            intermediate_size=2048,
            num_hidden_layers=8,
            num_attention_heads=12,
            num_key_value_heads=4,
            max_position_embeddings=2048,
        )
    )
    config._attn_implementation = attention
    return config


def llama(*, small: bool, attention: str) -> nn.Module:
    return Causal(LlamaForCausalLM(llama_config(small=small, attention=attention)))


def llama_step(*, small: bool, attention: str) -> nn.Module:
    return CausalStep(LlamaForCausalLM(llama_config(small=small, attention=attention)))


def t5_encoder(*, small: bool, attention: str) -> nn.Module:
    config = (
        T5Config(vocab_size=512, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4)
        if small
        else T5Config()
    )
    config._attn_implementation = attention
    return TokenEncoder(T5EncoderModel(config))


def vit(*, small: bool, attention: str) -> nn.Module:
    config = (
        ViTConfig(
            hidden_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=128,
            image_size=32,
            patch_size=8,
            num_labels=10,
        )
        if small
        else ViTConfig(num_labels=1000)
    )
    config._attn_implementation = attention
    return FirstOutput(ViTForImageClassification(config))


def whisper_encoder(*, small: bool, attention: str) -> nn.Module:
    config = (
        WhisperConfig(
            d_model=64,
            encoder_layers=2,
            encoder_attention_heads=4,
            encoder_ffn_dim=128,
            num_mel_bins=16,
            max_source_positions=50,
        )
        if small
        else WhisperConfig(
            d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536
        )
    )
    config._attn_implementation = attention
    return FirstOutput(WhisperEncoder(config))
