#!/usr/bin/env bash
# Models of the Llama family write rare characters as byte tokens. A model may stop or stray within one. sentencepiece
# then shows one replacement character, and the characters around it; ByteFallback of Hugging Face's tokenizers makes
# replacement characters of the whole run of bytes: "日本" behind a stray byte is gone. Its DecodeStream, which has shown
# 日 by then, raises "Invalid prefix encountered" at the next token, and the stream of a server breaks off.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  tokenizers==0.23.3 sentencepiece==0.2.3
"$work/venv/bin/python" - <<'PY'
import io
import sys
from importlib.metadata import version

import sentencepiece
from tokenizers import Tokenizer, decoders, models
from tokenizers.decoders import DecodeStream

print("tokenizers", version("tokenizers"), "sentencepiece", version("sentencepiece"))
trained = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(["a b ab ba"] * 50), model_writer=trained, vocab_size=268, model_type="bpe",
    byte_fallback=True, minloglevel=2,
)
processor = sentencepiece.SentencePieceProcessor(model_proto=trained.getvalue())
vocabulary = {processor.id_to_piece(i): i for i in range(processor.get_piece_size())}
tokenizer = Tokenizer(models.BPE(vocabulary, [], byte_fallback=True))
tokenizer.decoder = decoders.Sequence(  # Llama's
    [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
)


def ids(*parts):
    """Return the ids of letters, and of bytes as byte tokens."""
    return [vocabulary[p if isinstance(p, str) else f"<0x{p:02X}>"] for p in parts]


def streamed(tokens):
    stream, shown = DecodeStream(), ""
    try:
        for token in tokens:
            shown += stream.step(tokenizer, token) or ""
    except Exception as error:
        return f"{shown!r}, then {str(error).split('.')[0]}"
    return repr(shown)


kanji, bad = "日本".encode(), "\ufffd"
changed = []
for name, tokens, expected in (
    ("a whole character", ids("a", *kanji, "b"), ("a日本b", "a日本b", "'a日本b'")),
    ("a stray byte before", ids("a", 0xC3, *kanji, "b"), (f"a{bad}日本b", f"a{bad * 7}b", None)),
    ("cut in the second", ids("a", *kanji[:-1], "b"), ("a日", f"a{bad * 5}b", "'a日', then Invalid prefix")),
):
    found = processor.decode(tokens), tokenizer.decode(tokens), streamed(tokens)
    print(f"{name:20} sentencepiece {found[0]!r} tokenizers {found[1]!r} DecodeStream {found[2]}")
    same = found[0].startswith(expected[0]), found[1] == expected[1], found[2].startswith(expected[2] or "")
    if not all(same):
        changed.append(name)
if changed:
    sys.exit(f"bytes are decoded otherwise now: {changed}")
PY
