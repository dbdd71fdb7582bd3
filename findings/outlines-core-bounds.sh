#!/usr/bin/env bash
# outlines-core leaves out bounds of numbers without a word: its regular expression for an integer from 3 to
# 20 matches 2 and 999. jsonschema, and llguidance, follow them.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  outlines-core==0.2.14 jsonschema==4.26.0 llguidance==1.9.1
"$work/venv/bin/python" - <<'PY'
import json
import re
import sys
from importlib.metadata import version

import jsonschema
import llguidance
from outlines_core.json_schema import build_regex_from_schema

print("outlines-core", version("outlines-core"), "llguidance", version("llguidance"))


class Bytes:
    """Tokens of one byte each."""

    eos_token_id, bos_token_id, special_token_ids = 256, None, [256]
    tokens = [bytes([b]) for b in range(256)] + [b"<end>"]

    def __call__(self, text):
        return list(text if isinstance(text, bytes) else text.encode())


tokens = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Bytes()))


def llguidance_accepts(schema, text):
    grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema))
    matcher = llguidance.LLMatcher(tokens, grammar)
    steps = (matcher.validate_tokens([b]) and matcher.consume_token(b) for b in text.encode())
    return all(steps) and matcher.is_accepting()


cases = [
    ({"type": "integer", "minimum": 3, "maximum": 20}, "2"),
    ({"type": "integer", "minimum": 3, "maximum": 20}, "999"),
    ({"type": "number", "exclusiveMaximum": 0}, "7.5"),
    ({"type": "integer", "multipleOf": 10}, "7"),
]
for schema, text in cases:
    pattern = build_regex_from_schema(json.dumps(schema))
    valid = jsonschema.Draft202012Validator(schema).is_valid(json.loads(text))
    found = re.fullmatch(pattern, text) is not None
    print(json.dumps(schema), text, "valid:", valid, "llguidance:", llguidance_accepts(schema, text), end=" ")
    print("outlines-core:", found, pattern)
    if valid or not found:
        sys.exit("bounds are followed now")
PY
