#!/usr/bin/env bash
# tokenizers' NFKC and NFKD know no character that is newer than 2018 (Unicode 11), while its small
# letters are those of a newer version. The sign of Japan's era since 2019, U+32FF, stays one
# character. Python, sentencepiece and ICU make two of it, and all of them, tokenizers too, make two
# of the signs of earlier eras (U+337B to U+337E). 71 others differ too, such as small letters set high.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check tokenizers==0.23.3 sentencepiece==0.2.3
"$work/venv/bin/python" - <<'PY'
import sys
import unicodedata
from importlib.metadata import version

import sentencepiece
from tokenizers import normalizers

print("tokenizers", version("tokenizers"), "sentencepiece", version("sentencepiece"),
      "Python's Unicode", unicodedata.unidata_version)
nfkc = normalizers.NFKC()
charsmap = sentencepiece.SentencePieceNormalizer(rule_name="nfkc")
rows = {}
for name, sign in (("Heisei, 1989", "\u337b"), ("Reiwa, 2019", "\u32ff")):
    rows[name] = (nfkc.normalize_str(sign), unicodedata.normalize("NFKC", sign), charsmap.normalize(sign))
    print(f"{name} U+{ord(sign):04X}: tokenizers {rows[name][0]}, Python {rows[name][1]}, "
          f"sentencepiece {rows[name][2]}")
known = [c for c in map(chr, range(0x110000)) if unicodedata.category(c) not in ("Cn", "Cs")]
other = [c for c in known if nfkc.normalize_str(c) != unicodedata.normalize("NFKC", c)]
print(f"{len(other)} characters differ:", " ".join(f"U+{ord(c):04X}" for c in other[:12]), "...")
lower = [c for c in known if normalizers.Lowercase().normalize_str(c) != c.lower()]
print(f"small letters: {len(lower)} differ")
if rows["Heisei, 1989"][0] != "平成" or rows["Reiwa, 2019"][0] != "\u32ff" or len(other) < 60:
    sys.exit("newer characters are known now")
PY
