"""A campaign of mutants: survey what ran, draw, run in processes that may die, report.

`python -m tests.emulator.campaign [--arch gfx942] [--count 100] [--seeds 1 2 3] [--weighted]`
prints for each seed how many were caught, by kind and by way, and every one that was not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mgx_mlir.targets import emulator
from tests.emulator.edges import SEEDS, SUBJECTS
from tests.emulator.mutants import KINDS, Mutant, Site, draw, merged, sites_of

# of a wave: the longest of the programs takes a tenth of it
LIMIT = "1000000"
TIMEOUT = 1500


@dataclass
class Verdict:
    """How a mutant was found out ('' where it was not), and by what."""

    mutant: Mutant
    way: str = ""
    why: str = ""


@dataclass
class Report:
    """All verdicts of one seed. Ways: number, load, launch, check, crash."""

    arch: str
    seed: int
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def caught(self) -> int:
        return sum(bool(v.way) for v in self.verdicts)

    @property
    def crashes(self) -> list[Verdict]:
        """Those that ended the process: faults of the emulator."""
        return [v for v in self.verdicts if v.way == "crash"]

    def __str__(self) -> str:
        total = Counter(v.mutant.kind for v in self.verdicts)
        found = Counter(v.mutant.kind for v in self.verdicts if v.way)
        ways = Counter(v.way for v in self.verdicts if v.way)
        lines = [
            f"{self.arch}, seed {self.seed}: {self.caught} of {len(self.verdicts)} caught; "
            + ", ".join(f"by {way} {n}" for way, n in ways.most_common()),
            "  " + ", ".join(f"{k} {found[k]}/{total[k]}" for k in KINDS if total[k]),
        ]
        lines += [f"  not caught: {v.mutant} ({v.why})" for v in self.verdicts if not v.way]
        return "\n".join(lines)


class Campaign:
    """Programs of one architecture, ready to be damaged.

    Errors: AssertionError where an undamaged program is wrong, or differs between two runs.
    """

    def __init__(self, arch: str, folder: Path, programs: Sequence[str] = SUBJECTS) -> None:
        self.arch, self.folder, self.programs = arch, folder, list(programs)
        statistics = folder / "statistics.json"
        first = self._run([], MGX_EMULATE_STATS=str(statistics))[0]
        second = self._run([], MGX_EMULATE_CHECK="all")[0]
        assert first["controls"] == second["controls"], "two runs of the same programs differ"
        executed = json.loads(statistics.read_text())["executed"]
        self.sites: list[Site] = []
        for place, name in enumerate(self.programs):
            runs = [
                sites_of(name, (folder / f"{name}.{seed}.vmfb").read_bytes(), executed, number)
                for number, seed in enumerate(SEEDS, place * len(SEEDS))
            ]
            self.sites += merged(runs)

    def run(self, count: int, seed: int, weighted: bool = False) -> Report:
        """Draw and run: without the emulator's checks, then, what passes, with them."""
        mutants = draw(self.sites, self.arch, count, seed, weighted)
        report = Report(self.arch, seed, [Verdict(m) for m in mutants])
        self._judge(report.verdicts)
        self._judge([v for v in report.verdicts if not v.way], MGX_EMULATE_CHECK="all")
        return report

    def _judge(self, verdicts: Sequence[Verdict], **environment: str) -> None:
        left = list(verdicts)
        while left:
            answers = self._run(left, **environment)
            for answer in answers[1:]:
                if "number" in answer:
                    verdict = left[answer["number"]]
                    verdict.way, verdict.why = answer["way"], answer["why"]
                    checked = "the checks found" in verdict.why
                    verdict.way = "check" if checked and verdict.way else verdict.way
            done = sum("number" in a for a in answers)
            if "done" in answers[-1]:
                return
            left[done].way, left[done].why = "crash", "the process ended"
            left = left[done + 1 :]

    def _run(self, verdicts: Sequence[Verdict], **environment: str) -> list[dict]:
        listed = [(v.mutant.site.program, v.mutant.site.at, v.mutant.code.hex()) for v in verdicts]
        (self.folder / "mutants.json").write_text(json.dumps(listed))
        # other tests of this process may have made the emulator its HIP
        inherited = {k: v for k, v in os.environ.items() if k != "IREE_HIP_DYLIB_PATH"}
        seeds = ",".join(map(str, SEEDS))
        done = subprocess.run(
            [sys.executable, "-m", "tests.emulator.mutant_runner", str(self.folder), self.arch,
             seeds, *self.programs],
            capture_output=True, text=True, timeout=TIMEOUT,
            env={**inherited, "MGX_EMULATE_LIMIT": LIMIT, **environment},
        )  # fmt: skip
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        # a negative status is a crash, of which the next mutant is the cause
        assert answers, done.stderr[-4000:]
        assert done.returncode <= 0, done.stderr[-4000:]
        return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--arch", default="gfx942")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--weighted", action="store_true", help="draw by how often they ran")
    options = parser.parse_args()
    if emulator.find_library() is None:
        raise SystemExit("the emulator is not built; see docs/emulator.md")
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(options.arch, Path(folder))
        print(f"{len(campaign.sites)} instructions ran in {', '.join(campaign.programs)}")
        for seed in options.seeds:
            print(campaign.run(options.count, seed, options.weighted), flush=True)


if __name__ == "__main__":
    main()
