"""Runs programs and their mutants on the emulator in a separate process; see mutants.py.

`python -m benchmarks.emulator.mutant_runner FOLDER ARCH SEEDS SUBJECT...`. The programs are
compiled and run on inputs of each seed; where FOLDER/surveyed has what this gave, it is not done
again. With FOLDER/mutants.json (program, place, bytes) they are then run with each of these in
turn, and a line of JSON says how it was found out, or that it was not:

  load    the module is refused
  launch  the run fails: an access outside of memory, code that does not end
  check   the emulator's checks, where MGX_EMULATE_CHECK asks for them, find something
  number  a result is NaN, or further from the wanted values than the ordinary test allows
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import mgx_mlir
from benchmarks.emulator.edges import deviation, edged, limit, parted
from mgx_mlir.core.errors import MgxError, RunError
from tests.emulator.models import Case

CONTROL_EVERY = 10  # mutants between two control runs of the undamaged programs


class Subject:
    """A program, its inputs and what they should give."""

    def __init__(self, subject: str, arch: str, seeds: list[int]) -> None:
        name, dtype = parted(subject)
        self.limit = limit(subject)
        self.cases = [edged(name, dtype, seed) for seed in seeds]
        self.programs: list[Any] = [
            mgx_mlir.compile(c.model.SerializeToString(), target="gpu", arch=arch, emulate=True)
            for c in self.cases
        ]
        # only the weights of these differ, not the code
        self.plain = [bytes(p.executable.vmfb) for p in self.programs]
        assert len({len(v) for v in self.plain}) == 1

    def load(self, at: int = 0, code: bytes = b"") -> None:
        """The programs with these bytes at a place."""
        for program, plain in zip(self.programs, self.plain, strict=True):
            assert plain[at : at + len(code)] == self.plain[0][at : at + len(code)]
            vmfb = bytearray(plain)
            vmfb[at : at + len(code)] = code
            object.__setattr__(program.executable, "vmfb", bytes(vmfb))
            program._loaded = None

    def digest(self) -> str:
        """Return a digest of the program's results. Errors: AssertionError for wrong ones."""
        found = hashlib.sha256()
        for case, program in zip(self.cases, self.programs, strict=True):
            got = program.run(case.inputs)
            assert (off := self.off(got, case)) <= self.limit, f"{off} of an undamaged program"
            for a in got:
                found.update(np.ascontiguousarray(a).tobytes())
        return found.hexdigest()

    @staticmethod
    def off(got: list[np.ndarray], case: Case) -> float:
        assert case.wanted is not None
        return max(deviation(a, b) for a, b in zip(got, case.wanted, strict=True))

    def judged(self, at: int, code: bytes) -> tuple[str, str]:
        """Return how a mutant is detected, '' where it is not, and by which check."""
        self.load(at, code)
        worst = 0.0
        for seed, (case, program) in enumerate(zip(self.cases, self.programs, strict=True)):
            try:
                got = program.run(case.inputs)
            except RunError as e:
                kind = "check" if "the checks found problems" in str(e) else "launch"
                return kind, _short(e)
            except MgxError as e:
                return "load", _short(e)
            worst = max(worst, off := self.off(got, case))
            if off > self.limit:
                return "number", f"{off:.3g}, seed {seed}"
        return "", f"{worst:.3g}"


def _short(e: Exception) -> str:
    return " ".join(str(e).split())[:300]


def main(folder: Path, arch: str, seeds: list[int], names: list[str]) -> None:
    subjects = {name: Subject(name, arch, seeds) for name in names}
    surveyed = folder / "surveyed"
    if surveyed.exists():
        controls = json.loads(surveyed.read_text())
    else:
        controls = {name: s.digest() for name, s in subjects.items()}
    for name, subject in subjects.items():
        for seed, vmfb in zip(seeds, subject.plain, strict=True):
            (folder / f"{name}.{seed}.vmfb").write_bytes(vmfb)
    print(json.dumps({"controls": controls}), flush=True)
    listed = folder / "mutants.json"
    mutants = json.loads(listed.read_text()) if listed.exists() else []
    for number, (name, at, code) in enumerate(mutants):
        way, why = subjects[name].judged(at, bytes.fromhex(code))
        print(json.dumps({"number": number, "way": way, "why": why}), flush=True)
        if number % CONTROL_EVERY == CONTROL_EVERY - 1 or number == len(mutants) - 1:
            subjects[name].load()
            again = subjects[name].digest()
            assert again == controls[name], f"the control of {name} is another after {number}"
    print(json.dumps({"done": len(mutants)}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], [int(s) for s in sys.argv[3].split(",")], sys.argv[4:])
