#!/usr/bin/env bash
# sentencepiece adds the scores of a unigram model from the start of the text to its end, in f32. Far into a text a step
# of the sum is larger than what two ways to cut a word differ by, and the word is cut in another way than at the start:
# here, with scores 0.0005 apart, from 1,000 words on. Hugging Face's tokenizers add within a word, in f64,
# and cut it alike everywhere. So one vocabulary has two readings of a long document, and a prompt's tokens
# depend on what stands before them.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check sentencepiece==0.2.3 \
  protobuf==7.36.2 tokenizers==0.23.3
"$work/venv/bin/python" - <<'PY'
import sys
from importlib.metadata import version

import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as format_of_models
from tokenizers import Tokenizer, models, pre_tokenizers

print("sentencepiece", version("sentencepiece"), "tokenizers", version("tokenizers"))
scores = {"\u2581": -3.0, "ab": -9.0, "cd": -9.0, "abc": -9.9995}
scores |= dict.fromkeys("abcdefgh", -8.0)
model = format_of_models.ModelProto()
for name, kind in (("<unk>", 2), ("<s>", 3), ("</s>", 3)):
    model.pieces.add(piece=name, score=0, type=kind)
for name, score in scores.items():
    model.pieces.add(piece=name, score=score)
model.trainer_spec.model_type = model.trainer_spec.UNIGRAM
model.normalizer_spec.name = "identity"
processor = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
other = Tokenizer(models.Unigram([("<unk>", 0.0), *scores.items()], unk_id=0))
other.pre_tokenizer = pre_tokenizers.Metaspace()

print("abc + d:", scores["abc"] + scores["d"], " ab + cd:", scores["ab"] + scores["cd"])
found = {}
for words in (0, 100, 1000, 10000):
    text = "ef " * words + "abcd"
    found[words] = processor.encode(text, out_type=str)[-2:], other.encode(text).tokens[-2:]
    print(f"abcd behind {words:5} words: sentencepiece", *found[words][0], " tokenizers", *found[words][1])
best = ["abc", "d"]
if any(second != best for _, second in found.values()) or found[0][0] != best:
    sys.exit("the best cut is another now")
if found[1000][0] == best:
    sys.exit("the place in the text no longer matters")
PY
