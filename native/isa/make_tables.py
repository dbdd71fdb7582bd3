"""Writes the decoder's tables: every opcode of every format, as LLVM's disassembler names it.

usage: python native/isa/make_tables.py --llvm-mc PATH [GENERATION...]
LLVM 22 or newer; for gfx10 14 or newer.

Each opcode number of each format is probed with a word whose operand fields hold registers of
known numbers. The printed operands say which fields the instruction has, in which order, and how
many registers each takes. That is a row: format, opcode, mnemonic, signature, architectures.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from formats import GENERATIONS, Format

HERE = Path(__file__).resolve().parent
# the register that each operand letter is given: multiples of 16, so any register tuple fits
REGISTER = {"d": 16, "a": 32, "b": 48, "c": 64, "x": 64, "y": 80, "s": 80, "r": 96, "o": 36}
LITERAL = 0x12345678
# facts that no probe shows: instructions without fields, and operands that are printed as names
UNPROBED = {
    "gfx9": {
        ("VOP1", 0): ("v_nop", ""),
        ("VOP3", 320): ("v_nop", ""),
        ("SMEM", 36): ("s_memtime", "d2"),
        ("SMEM", 37): ("s_memrealtime", "d2"),
    },
    "gfx10": {
        ("VOP1", 0): ("v_nop", ""),
        ("VOP3", 384): ("v_nop", ""),
        ("SMEM", 36): ("s_memtime", "d2"),
        ("SMEM", 37): ("s_memrealtime", "d2"),
    },
    **{
        generation: {
            ("VOP1", 0): ("v_nop", ""),
            ("VOP3", 384): ("v_nop", ""),
            ("SOP1", 76): ("s_sendmsg_rtn_b32", "d1 a1"),
            ("SOP1", 77): ("s_sendmsg_rtn_b64", "d2 a1"),
        }
        for generation in ("gfx11", "gfx12")
    },
}
_OPERAND = re.compile(r"^[-|]*(?:neg\()?([vsa])(?:\[(\d+):(\d+)\]|(\d+))(\.[lh])?\)?\|?$")


def disassemble(tool: str, arch: str, form: Format, probes: list[list[int]]) -> list[str | None]:
    """The text of the one instruction that each probe starts with; None where it is none."""
    mask = form.mask | ((1 << form.opcode[1]) - 1) << form.opcode[0]
    marker = [0xBF807A7A]  # an s_nop between the probes tells their output apart
    lines = []
    for words in (w for p in probes for w in (p, marker)):
        lines.append(",".join(f"0x{b:02x}" for w in words for b in w.to_bytes(4, "little")))
    command = [tool, "--disassemble", "--triple=amdgcn", f"-mcpu={arch}", "--show-encoding"]
    if arch.startswith(("gfx11", "gfx12")):
        command.append("-mattr=+real-true16")  # feature of LLVM's code objects
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True)
    found: list[str | None] = []
    first: str | None = None
    fresh = True
    for line in done.stdout.splitlines():
        text, _, encoding = line.partition("; encoding: [")
        if not encoding:
            continue
        code = [int(b, 16) for b in encoding.rstrip("]").split(",")]
        if code == [0x7A, 0x7A, 0x80, 0xBF]:
            found.append(first)
            first, fresh = None, True
        elif fresh:
            fresh = False
            words = probes[len(found)]
            got = int.from_bytes(bytes(code[:4]), "little")  # unused fields are printed as 0
            if (got ^ words[0]) & mask == 0 and len(code) >= 4 * (len(words) - 1):
                first = text.strip()
    assert len(found) == len(probes)
    return found


def place(words: list[int], bit: int, width: int, value: int) -> None:
    """Set bits of an instruction."""
    for i in range(width):
        if value >> i & 1:
            words[(bit + i) // 32] |= 1 << ((bit + i) % 32)


def probe(form: Format, opcode: int, variant: str) -> list[int]:
    """The words that ask for an opcode; variants: what some instructions insist on."""
    words = [0] * form.words
    words[0] = form.match
    place(words, *form.opcode, opcode)
    for letter, (kind, bit, width) in form.fields.items():
        value = REGISTER.get(letter, 0)
        if kind == "v" or kind == "r":
            value += 256 if kind == "r" else 0
            if letter == "s":
                value = 80
        elif kind == "b":
            value //= 2
        elif kind == "q":
            value //= 4
        elif kind == "k" and form.name == "SOPC":
            continue
        elif kind == "k":
            value = 0x1234 if variant != "zero" else 0
        if variant == "scalar" and kind == "r":
            value = {"a": 32, "b": 36, "c": 40}[letter]
        if variant == "s-first" and letter == "a" and kind == "r":
            value = 32
        if variant == "s-rest" and letter in "bc" and kind == "r":
            value = {"b": 36, "c": 40}[letter]
        if variant == "inline" and kind == "r":
            value = 129
        if variant.startswith("-") and letter in variant:
            continue
        place(words, bit, width, value)
    if form.name == "SMEM" and "imm" in form.modifiers:
        place(words, *form.modifiers["imm"], 1)
        bit, width = form.fields["o"][1:]
        words[bit // 32] &= ~(((1 << width) - 1) << bit % 32)
        place(words, *form.modifiers["offset"], 0x40)
    if form.name == "SMEM" and "imm" not in form.modifiers:
        bit, width = form.fields["o"][1:]
        words[bit // 32] &= ~(((1 << width) - 1) << bit % 32) & 0xFFFFFFFF
        place(words, bit, width, 124)
        place(words, *form.modifiers["offset"], 0x40)
    if form.name in ("FLAT", "GLOBAL", "SCRATCH"):
        bit, width = form.fields["s"][1:]
        words[bit // 32] &= ~(((1 << width) - 1) << bit % 32) & 0xFFFFFFFF
        off = 0x7F if "acc" in form.modifiers else 0x7C if "sve" in form.modifiers else 0x7D
        if not (form.name == "FLAT" and "acc" in form.modifiers):
            place(words, bit, width, off)
        if form.name == "SCRATCH" and variant != "zero" and "sve" in form.modifiers:
            place(words, *form.modifiers["sve"], 1)
    if form.name == "VOP3P" and variant != "zero":
        place(words, *form.modifiers["opselhi"], 3)
        place(words, *form.modifiers["opselhi2"], 1)
    if variant == "glc" and "glc" in form.modifiers:
        place(words, *form.modifiers["glc"], 1)
    if variant == "glc" and "th" in form.modifiers and form.modifiers["th"][1] == 3:
        place(words, *form.modifiers["th"], 1)
    if form.name == "VOPDX":
        place(words, 17, 5, 8)  # v_dual_mov_b32 beside it
        place(words, 32, 9, 256 + 33)
        place(words, 49, 7, 17 // 2)
    if form.name == "VOPDY":
        place(words, 22, 4, 8)
        place(words, 0, 9, 256 + 33)
        place(words, 56, 8, 17)
    words.append(LITERAL)
    return words


VARIANTS = ("", "zero", "glc", "scalar", "s-first", "s-rest", "inline", "-b")
UNUSED = ("-y", "-d", "-yd", "-xy", "-xyd", "-axyd", "-ay", "-axy", "-ayd")  # fields DS leaves zero


def signature(form: Format, operands: str) -> str | None:
    """Printed operands as letters of fields with sizes, such as `d2 a1 b1`."""
    letters = {}
    for letter in form.fields:
        letters[REGISTER.get(letter)] = letter
    parts, depth, current = [], 0, ""
    for ch in operands:
        depth += (ch in "[(") - (ch in "])")
        if ch == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += ch
    if current.strip():
        parts.append(current.strip())
    found = []
    for i, part in enumerate(parts):
        words = part.split()
        text = words[0] if words else ""
        got = _OPERAND.match(text)
        if got:
            kind, first, last, single, half = got.groups()
            number = int(first or single)
            size = int(last) - int(first) + 1 if first else 1
            letter = letters.get(number)
            if letter is None and number in (36, 40):
                letter = {36: "b", 40: "c"}[number]
            if letter is None:
                return None
            mark = "h" if half else f"{size:x}" if size < 16 else {16: "g", 32: "w"}[size]
            if kind == "a":
                mark += "A"
            elif kind == "s" and form.fields[letter][0] == "v":
                mark += "S"
            found.append(letter + mark)
        elif text in ("vcc", "vcc_lo"):
            found.append("C")
        elif text in ("off", "null"):
            found.append({"GLOBAL": "s", "FLAT": "s", "SCRATCH": "s", "MUBUF": "a", "SMEM": "o"}[
                form.name] + "0")  # fmt: skip
        elif form.name == "SMEM":
            found.append("o1")
        elif text == "0x12345678":
            found.append("K")
        elif form.name in ("SOPP", "SOPK"):
            if not found or found[-1] != "k":
                found.append("k")
        elif text == "1" and i < len(parts):
            found.append({0: "?", 1: "a", 2: "b", 3: "c"}[i] + "1")
        elif text in ("exec", "exec_lo", "scc", "m0", "lds_direct"):
            return None
        else:
            return None
    return " ".join(found)


def taken(word: int, before: list[Format]) -> bool:
    """Return whether a word belongs to one of the formats that are asked first."""
    return any(word & f.mask == f.match for f in before if not f.name.startswith("VOPD"))


def rows_of(tool: str, form: Format, arch: str, before: list[Format]) -> dict[int, tuple[str, str]]:
    """Opcode -> mnemonic and signature."""
    count = 1 << form.opcode[1]
    found: dict[int, tuple[str, str]] = {}
    variants = VARIANTS
    if form.name == "DS":
        variants = ("", *UNUSED)
    if form.name == "VOP3":  # most have op_sel and abs where few have a scalar result
        # before LLVM 22 bits of a source that an instruction lacks make it another one
        variants = ("-s", "-sc", "-sbc", *VARIANTS, "-c")
    if form.name == "VOP3P":
        variants = (*VARIANTS, "-c")
    for variant in variants:
        missing = [
            op
            for op in range(count)
            if op not in found and not taken(probe(form, op, variant)[0], before)
        ]
        texts = disassemble(tool, arch, form, [probe(form, op, variant) for op in missing])
        for op, text in zip(missing, texts, strict=True):
            if text is None or "Invalid register" in text:
                continue
            if form.name in ("VOPDX", "VOPDY"):
                halves = text.split("::")
                if len(halves) < 2:
                    continue
                text = halves[form.name == "VOPDY"].strip()
            mnemonic, _, operands = text.partition(" ")
            # other formats whose words this one's mask also takes
            stem = re.sub(r"_e(32|64)$", "", mnemonic)
            if form.name == "VOP3" and mnemonic.endswith("_e32"):
                continue
            sig = signature(form, operands.strip())
            if stem == "s_set_gpr_idx_on":  # the second source is a mode
                sig = "a1 k"
            if form.name == "SCRATCH" and "_load_" in stem and sig[0] != "d" and "lds" not in stem:
                continue
            if sig is None and variant.startswith("-s"):
                continue
            if sig is None:
                print("cannot read", arch, form.name, op, text)
                continue
            found[op] = (stem, sig)
    return found


def write(path: Path, generation: str, forms: Iterable[Format], rows: dict) -> None:
    """One C++ table: formats with their fields, then the opcodes, several to a line."""
    kinds = {"v": "Vgpr", "r": "Source", "s": "Scalar", "b": "Pair", "q": "Quad", "k": "Immediate"}
    lines = [
        f"// Formats and opcodes of {generation}, written by make_tables.py; do not edit.",
        "// FORMAT(name, mask, match, words, opcode bit, opcode width)",
        "// FIELD(letter, kind, bit, width)  MODIFIER(name, bit, width)",
    ]
    for f in forms:
        lines.append(
            f"FORMAT({f.name}, 0x{f.mask:08x}, 0x{f.match:08x}, {f.words}, "
            f"{f.opcode[0]}, {f.opcode[1]})"
        )
        items = [f"FIELD('{k}', {kinds[v[0]]}, {v[1]}, {v[2]})" for k, v in f.fields.items()]
        items += [f"MODIFIER({k}, {v[0]}, {v[1]})" for k, v in f.modifiers.items()]
        lines += pack(items)
    lines.append("// OP(format, opcode, mnemonic, signature, architectures)")
    lines += pack(
        f'OP({form}, {op}, "{name}", "{sig}", {mask})'
        for (form, op, name, sig), mask in sorted(rows.items(), key=lambda r: (r[0][0], r[0][1]))
    )
    path.write_text("\n".join(lines) + "\n")


def pack(items: Iterable[str]) -> list[str]:
    """Items side by side on lines of up to 170 columns."""
    lines, current = [], ""
    for item in items:
        if current and len(current) + len(item) > 169:
            lines.append(current)
            current = ""
        current += (" " if current else "") + item
    return [*lines, current] if current else lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--llvm-mc", default="llvm-mc")
    parser.add_argument("generations", nargs="*", metavar="GENERATION", default=list(GENERATIONS))
    options = parser.parse_args()
    tool = options.llvm_mc
    for generation in options.generations:
        forms, archs = GENERATIONS[generation]
        rows: dict[tuple[str, int, str, str], int] = {}
        for j, form in enumerate(forms):
            for i, arch in enumerate(archs):
                for op, (name, sig) in rows_of(tool, form, arch, forms[:j]).items():
                    key = (form.name, op, name, sig)
                    rows[key] = rows.get(key, 0) | 1 << i
        for (form_name, op), (name, sig) in UNPROBED[generation].items():
            rows[form_name, op, name, sig] = (1 << len(archs)) - 1
        write(HERE / f"{generation}.inc", generation, forms, rows)
        print(generation, len(rows), "opcodes")


if __name__ == "__main__":
    main()
