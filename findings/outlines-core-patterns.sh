#!/usr/bin/env bash
# `pattern` of JSON Schema is a search: "a" allows "bac", "^a" allows "ab". outlines-core puts it between quotes as it
# is: "a" allows "a" alone, "^a" no string at all, as the anchor comes behind a quote, and of "yes|no" the alternatives
# take one quote each: what it generates is no JSON. With both anchors, as pydantic's users often write, it is right.
# llguidance follows the text.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6 \
  outlines-core==0.2.14 jsonschema==4.26.0
"$work/venv/bin/python" - <<'PY'
import json
import re
import sys
from importlib.metadata import version

import jsonschema
from outlines_core.json_schema import build_regex_from_schema

print("outlines-core", version("outlines-core"), "jsonschema", version("jsonschema"))


def valid(schema, text):
    try:
        value = json.loads(text)
    except ValueError:
        return "no JSON"
    return jsonschema.Draft202012Validator(schema).is_valid(value)


changed = []
for pattern, text, expected in (
    ("^a$", '"a"', (True, True)),
    ("a", '"a"', (True, True)),
    ("a", '"bac"', (True, False)),
    ("^a", '"a"', (True, False)),
    ("^a", '"ab"', (True, False)),
    ("yes|no", '"yes"', (True, False)),
    ("yes|no", '"yes', ("no JSON", True)),
    ("yes|no", 'no"', ("no JSON", True)),
):
    schema = {"type": "string", "pattern": pattern}
    regex = build_regex_from_schema(json.dumps(schema))
    found = valid(schema, text), re.fullmatch(regex, text) is not None
    print(f"pattern {pattern:7} text {text:7} valid: {found[0]!s:8} outlines-core: {found[1]!s:6} by {regex}")
    if found != expected:
        changed.append((pattern, text))
if changed:
    sys.exit(f"such patterns are read otherwise now: {changed}")
PY
