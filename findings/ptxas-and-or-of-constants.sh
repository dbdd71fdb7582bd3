#!/usr/bin/env bash
# NVIDIA's LOP3 is any function of three words. ptxas joins a chain of `and` and `or` of registers into one. Where the
# two other operands are constants, `(x & 15) | 0x4B000000`, it leaves two LOP3 at -O3. The same constants written
# as `lop3.b32` are one LOP3: a constant goes to a register once. Such a pair widens each 4-bit weight of a model by
# the bits of a float, where the extra LOP3, at half the rate of a multiplication-addition, is a third of the work.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check triton==3.9.0
tools=$(echo "$work"/venv/lib/python3*/site-packages/triton/backends/nvidia/bin)
cat >"$work/count.py" <<'PY'
import re
import subprocess
import sys

tools, work = sys.argv[1:]
WORDS = 8
FORMS = {
    "and, or of constants": ["and.b32 %t, %x{i}, 15;", "or.b32 %y{i}, %t, 1258291200;"],
    "lop3 of the same": ["lop3.b32 %y{i}, %x{i}, 15, 1258291200, 0xea;"],
    "and, or of registers": ["and.b32 %t, %x{i}, %a;", "or.b32 %y{i}, %t, %b;"],
}


def logic(form):
    """Return the LOP3 of a kernel for eight words in its machine code."""
    body = [line.format(i=i) for i in range(WORDS) for line in form]
    text = "\n".join([
        ".version 8.4", ".target sm_90", ".address_size 64",
        ".visible .entry f(.param .u64 p, .param .u32 q, .param .u32 r) {",
        f".reg .b64 %g; .reg .b32 %t, %a, %b, %x<{WORDS}>, %y<{WORDS}>;",
        "ld.param.u64 %g, [p]; ld.param.u32 %a, [q]; ld.param.u32 %b, [r];",
        *(f"ld.global.b32 %x{i}, [%g+{4 * i}];" for i in range(WORDS)),
        *body,
        *(f"st.global.b32 [%g+{4 * i}], %y{i};" for i in range(WORDS)),
        "ret; }",
    ])
    with open(f"{work}/f.ptx", "w") as f:
        f.write(text)
    subprocess.run([f"{tools}/ptxas", "-O3", "-arch=sm_90", f"{work}/f.ptx", "-o", f"{work}/f"], check=True)
    said = subprocess.run([f"{tools}/nvdisasm", "-c", f"{work}/f"], check=True, capture_output=True, text=True)
    return len(re.findall(r"\bLOP3\.LUT\b", said.stdout))


version = subprocess.run([f"{tools}/ptxas", "--version"], capture_output=True, text=True).stdout
print("ptxas", re.search(r"V[\d.]+", version)[0])
found = {name: logic(form) for name, form in FORMS.items()}
for name, count in found.items():
    print(f"{name:24} {count} LOP3 for {WORDS} words")
want = dict(zip(FORMS, (2 * WORDS, WORDS, WORDS)))
print("as described" if found == want else f"changed: expected {want}")
sys.exit(found != want)
PY
"$work/venv/bin/python" "$work/count.py" "$tools" "$work"
