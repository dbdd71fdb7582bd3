"""The emulator's own tests, and its decoder against what the compiler wrote beside its code."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import mgx_mlir
import mgx_mlir.targets.base as targets
from mgx_mlir.targets.flags import DUMP_FILES
from tests.emulator.models import CASES
from tests.emulator.test_programs import ARCHS

pytestmark = pytest.mark.emulator
# hints and waits: their operands are fields of bits that the compiler spells by name
SPELLED = (
    "s_wait", "s_nop", "s_delay_alu", "s_sendmsg", "s_clause", "s_cbranch", "s_branch", "s_getreg",
    "s_setreg", "s_denorm_mode", "s_round_mode", "s_barrier_", "s_endpgm",
)  # fmt: skip
_HINT = re.compile(r"(glc|slc|dlc|nt|sc0|sc1|th:\S+|scope:\S+|row_mask:0xf|bank_mask:0xf)")

_MODIFIER = re.compile(r"offen|idxen|lds|clamp|gds|[a-z_0-9]+:.*")


def test_native_tests(native: Path) -> None:
    done = subprocess.run(
        ["ctest", "--output-on-failure"], cwd=native, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "100% tests passed" in done.stdout


def plain(text: str) -> str:
    """An instruction in one spelling: no encoding suffix, hints, or bases of numbers."""
    return " :: ".join(_one(half.strip()) for half in text.split("::"))


def _one(text: str) -> str:
    name, _, rest = text.partition(" ")
    name = re.sub(r"(_e32|_e64_dpp|_e64|_dpp|_sdwa)$", "", name)
    if name.startswith(SPELLED):
        return name
    if name == "ds_swizzle_b32":  # the instruction's pattern is printed by name
        rest = rest.split(" offset")[0]
    words = [w for w in re.split(r"[ ,]+(?![^\[(]*[\])])", rest) if w]
    kept = []
    for w in words:
        if _HINT.fullmatch(w) or w in ("dst_unused:UNUSED_PAD", "bound_ctrl:0"):
            continue
        number = re.fullmatch(r"(offset:)?(-?)(0x[0-9a-f]+|\d+)", w)
        if number:
            value = int(number[3], 0) * (-1 if number[2] else 1)
            w = f"{number[1] or ''}{value & 0xFFFFFFFF}"
        if "@rel32" in w:
            return name  # an address
        kept.append(w)
    modifiers = sorted(w for w in kept if _MODIFIER.fullmatch(w))
    return " ".join([name, *(w for w in kept if w not in modifiers), *modifiers])


def listing(path: Path) -> dict[str, list[str]]:
    """The instructions of each function of a .rocmasm."""
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for raw in path.read_text().splitlines():
        line = raw.split(";")[0].rstrip()
        label = re.fullmatch(r'"?([\w.$-]+)"?:', line)
        if label and not label[1].startswith((".L", "amdhsa")):
            current = found.setdefault(label[1], [])
        elif line.startswith(".Lfunc_end"):
            current = None
        elif current is not None and re.match(r"\t[a-z]", line):
            current.append(plain(line.strip()))
    return {name: code for name, code in found.items() if code}


def decoded(tool: Path, path: Path) -> dict[str, list[str]]:
    done = subprocess.run([str(tool), str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in done.stdout.splitlines():
        if line.endswith(":") and "\t" not in line:
            current = found.setdefault(line[:-1], [])
        else:
            current.append(plain(line.split("\t", 1)[1]))
    return found


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        pytest.param(n, a, marks=() if n == "attention" else pytest.mark.slow)
        for n in ("attention", "bert", "bottleneck")
        for a in ARCHS
    ],
)
def test_the_decoder_reads_what_the_assembler_wrote(
    name: str, arch: str, native: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machine code against the compiler's own text: every mnemonic, operand and modifier."""
    plain_ladder = targets.GpuTarget.ladder

    def dumping(self: targets.GpuTarget) -> tuple[targets.FlagSet, ...]:
        self.extra_flags = (f"{DUMP_FILES}={tmp_path}",)
        return plain_ladder(self)

    monkeypatch.setattr(targets.GpuTarget, "ladder", dumping)
    case = CASES[name]("f16", 1)
    mgx_mlir.compile(case.model.SerializeToString(), target="gpu", arch=arch, cache=False)
    compared = 0
    for code in tmp_path.rglob("*.hsaco"):
        wanted = listing(code.with_suffix(".rocmasm"))
        got = decoded(native / "mgx-disassemble", code)
        assert set(got) == set(wanted)
        for function, lines in wanted.items():
            # between a preamble and an aligned body, and behind the end, lie fillers
            body = [line for line in got[function] if line not in ("s_nop", "s_code_end")]
            assert body == [line for line in lines if line not in ("s_nop", "s_code_end")]
            compared += len(lines)
    assert compared > 200
