"""The tokenizer of a .gguf file: byte-level BPE (`gpt2`) or pieces of SentencePiece (`llama`).

Both are built as a tokenizer of `tokenizers`. A file names the splitting of its texts ("pre"), and
not the expressions: those here are of the tokenizer.json of the models that the names are of.
"""

# gguf and transformers are extras, and need not be there
# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mgx_mlir.core.errors import FileError
from mgx_mlir.text.gguf_config import Values
from mgx_mlir.text.packages import imported
from mgx_mlir.text.tokens import Tokenizer

# gguf's numbers of the types of tokens
_UNKNOWN, _CONTROL, _GIVEN = 2, 3, 4
_SPACE = "▁"  # SentencePiece's letter for a space

_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


def _cased(ending: str) -> str:
    """Return the expression of words that begin with capitals, as Mistral and OpenAI have it."""
    head = r"[^\r\n\p{L}\p{N}]?"
    return f"{head}{_UPPER}*{_LOWER}+{ending}|{head}{_UPPER}+{_LOWER}*{ending}"


def _lettered(digits: str) -> str:
    return _ENDINGS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|" + digits + "|" + _REST


_REST_OF_CASED = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2 = (_WORDS,)
_DIGITS = (r"\p{N}", _WORDS)  # each digit by itself
_LLAMA3, _QWEN2 = (_lettered(r"\p{N}{1,3}"),), (_lettered(r"\p{N}"),)
_TEKKEN = (_cased("") + r"|\p{N}|" + _REST_OF_CASED,)
_GPT4O = (_cased(_ENDINGS + "?") + r"|\p{N}{1,3}|" + _REST_OF_CASED,)
_PUNCTUATION = (r"[\p{P}\$\+<=>\^~\|]+", _WORDS, r"\p{N}+", r"[0-9][0-9][0-9]")
SPLITS = {
    "default": _PUNCTUATION,
    **dict.fromkeys(("gpt-2", "phi-2", "olmo", "mpt", "exaone4", "trillion"), _GPT2),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone",
                     "minerva-7b"), _DIGITS),
    **dict.fromkeys(("llama3", "llama-v3", "llama-bpe", "falcon3", "pixtral", "lfm2", "dbrx",
                     "smaug-bpe"), _LLAMA3),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan", "megrez"), _QWEN2),
    "tekken": _TEKKEN,
    **dict.fromkeys(("gpt-4o", "llama4"), _GPT4O),
}  # fmt: skip
# names whose words that are tokens are taken whole, and whose texts begin with a token unless the
# file says otherwise
_WHOLE = ("llama3", "llama-v3", "llama-bpe", "falcon3", "pixtral", "lfm2", "tekken")


def tokenizer_of(values: Values) -> Tokenizer:
    """Return the tokenizer of a file, with its template of a chat. Raises FileError."""
    header = values.header
    kind = header.values.get("tokenizer.ggml.model")
    texts = header.elements("tokenizer.ggml.tokens")
    types = header.elements("tokenizer.ggml.token_type") or [1] * len(texts)
    if len(types) != len(texts) or not all(isinstance(t, str) for t in texts):
        raise FileError(f"the tokenizer has {len(texts)} tokens and {len(types)} types",
                        location=header.path)  # fmt: skip
    if kind == "gpt2":
        inner, begins = _byte_level(values, texts, types)
    elif kind == "llama":
        inner, begins = _pieces(values, texts, types), True
    else:
        raise FileError(f"'tokenizer.ggml.model' expected gpt2 or llama, got {kind!r:.80}",
                        location=header.path)  # fmt: skip
    special = {f"{name}_token": texts[number] for name, key in
               (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))
               if (number := values.token(key)) is not None}  # fmt: skip
    _add(inner, texts, types, _spaces_eaten(values))
    _surround(inner, values, special, begins)
    return Tokenizer(
        inner, _template(values, "chat_template"), special,
        _template(values, "chat_template.tool_use"),
    )  # fmt: skip


def _template(values: Values, name: str) -> str | None:
    found = values.header.values.get(f"tokenizer.{name}")
    if not isinstance(found, str | None):
        raise FileError(f"'tokenizer.{name}' expected a string, got {found!r:.80}",
                        location=values.header.path)  # fmt: skip
    return found


def _byte_level(values: Values, texts: Sequence[str], types: Sequence[int]) -> tuple[Any, bool]:
    """Return byte-level BPE, and whether texts begin with a token by default."""
    tokenizers = imported("tokenizers")
    from tokenizers import decoders, models, pre_tokenizers

    name = values.header.values.get("tokenizer.ggml.pre", "default")
    if name not in SPLITS:
        raise FileError(f"'tokenizer.ggml.pre' expected one of {', '.join(SPLITS)}, got "
                        f"{name!r:.80}", location=values.header.path)  # fmt: skip
    merges = values.header.elements("tokenizer.ggml.merges")
    pairs = [tuple(m.split(" ")) for m in merges if isinstance(m, str)]
    known = {t: i for i, t in enumerate(texts)}
    for pair in pairs:
        if len(pair) != 2 or not {*pair, "".join(pair)} <= known.keys():
            raise FileError(f"a merge of the tokenizer expected two tokens, got {pair!r:.80}",
                            location=values.header.path)  # fmt: skip
    inner = tokenizers.Tokenizer(
        models.BPE(vocab=known, merges=pairs, ignore_merges=name in _WHOLE)
    )
    splits = [pre_tokenizers.Split(tokenizers.Regex(x), "isolated") for x in SPLITS[name]]
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.pre_tokenizer = pre_tokenizers.Sequence([*splits, bytes_])
    inner.decoder = decoders.ByteLevel()
    return inner, name in _WHOLE


def _pieces(values: Values, texts: Sequence[str], types: Sequence[int]) -> Any:
    """Return pieces of SentencePiece: pairs are joined in the order of the results' scores."""
    tokenizers = imported("tokenizers")
    from tokenizers import decoders, models, normalizers

    scores = values.header.elements("tokenizer.ggml.scores") or [0.0] * len(texts)
    if len(scores) != len(texts):
        raise FileError(f"the tokenizer has {len(texts)} tokens and {len(scores)} scores",
                        location=values.header.path)  # fmt: skip
    # files have runs of spaces as they are
    texts = [_SPACE * len(t) if t and not t.strip(" ") else t for t in texts]
    known = {t: i for i, t in enumerate(texts)}
    pairs: list[tuple[float, int, str, str]] = []
    for i, text in enumerate(texts):
        if types[i] in (1, _GIVEN):
            pairs += [(-scores[i], i, text[:at], text[at:]) for at in range(1, len(text))
                      if text[:at] in known and text[at:] in known]  # fmt: skip
    pairs.sort()
    unknown = values.token("unknown")
    if unknown is None:
        unknown = next((i for i, kind in enumerate(types) if kind == _UNKNOWN), None)
    inner = tokenizers.Tokenizer(models.BPE(
        vocab=known, merges=[(a, b) for _, _, a, b in pairs], byte_fallback=True, fuse_unk=True,
        unk_token=None if unknown is None else texts[unknown],
    ))  # fmt: skip
    prefix = bool(values.header.values.get("tokenizer.ggml.add_space_prefix", True))
    steps = [normalizers.Replace(" ", _SPACE)]
    inner.normalizer = normalizers.Sequence([normalizers.Prepend(_SPACE)] * prefix + steps)
    back = [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    inner.decoder = decoders.Sequence(back + [decoders.Strip(" ", 1, 0)] * prefix)
    return inner


def _spaces_eaten(values: Values) -> bool:
    """Return whether control tokens take the spaces behind them: Phi 3's do, by its name."""
    name = str(values.header.values.get("general.name", "")).lower()
    return "phi-3" in name or "phi3" in name


def _add(inner: Any, texts: Sequence[str], types: Sequence[int], eaten: bool) -> None:
    """Add the tokens that are found in a text before it is split."""
    from tokenizers import AddedToken

    plain = ("<unk>", "<s>", "<|endoftext|>")
    rows = [
        AddedToken(
            text,
            normalized=False,
            special=kind == _CONTROL,
            rstrip=eaten and kind == _CONTROL and text not in plain,
        )
        for text, kind in zip(texts, types, strict=True)
        if kind in (_CONTROL, _GIVEN)
    ]
    inner.add_tokens(rows)


def _surround(inner: Any, values: Values, special: dict[str, str], begins: bool) -> None:
    """Put the tokens around a text that the file states."""
    from tokenizers import processors

    said = {name: bool(values.header.values.get(f"tokenizer.ggml.add_{name}_token", default))
            for name, default in (("bos", begins), ("eos", False))}  # fmt: skip
    marks = {name: special[f"{name}_token"] for name, on in said.items()
             if on and f"{name}_token" in special}  # fmt: skip
    if not marks:
        return
    form = [*([marks["bos"]] if "bos" in marks else []), "$A",
            *([marks["eos"]] if "eos" in marks else [])]  # fmt: skip
    inner.post_processor = processors.TemplateProcessing(
        single=form, special_tokens=[(text, inner.token_to_id(text)) for text in marks.values()]
    )
