"""Small models with drawn weights, as transformers keeps them in a folder. Needs torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WORDS = 300  # tokens
TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def tokenizer() -> Any:
    """A byte-level tokenizer, trained on one line."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE(vocab={}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=WORDS, special_tokens=["<s>", "</s>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    made.train_from_iterator(["the quick brown fox jumps over the lazy dog"] * 3, trainer)
    return made


def save(
    folder: Path, kind: str = "Llama", *, shared: int = 2, of: str | None = None, **more: Any
) -> Any:
    """Write a model of two layers with four heads, `shared` of keys, and return it.

    of: name of its class. more: settings; None leaves one out.
    """
    import torch
    import transformers

    torch.manual_seed(3)
    settings = {
        "vocab_size": WORDS, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": shared, "head_dim": 16,
        "max_position_embeddings": 96, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1,
        **more,
    }  # fmt: skip
    known = {name: value for name, value in settings.items() if value is not None}
    config = getattr(transformers, f"{kind}Config")(**known)
    model = getattr(transformers, of or f"{kind}ForCausalLM")(config).eval()
    for weights in model.parameters():
        if weights.ndim == 2:
            weights.data *= 3  # logits far enough apart
    model.save_pretrained(folder)
    tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    (folder / "tokenizer_config.json").write_text('{"bos_token": "<s>", "eos_token": "</s>"}')
    return model
