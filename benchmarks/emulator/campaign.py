"""A mutation campaign: record executed instructions, draw mutants, run them in processes, report.

`python -m benchmarks.emulator.campaign [--arch gfx942] [--count 100] [--seeds 1 2 3] [--weighted]`
prints for each seed the number of detected mutants, by kind and by method, and every undetected
one. With `--folder DIR` the survey and each verdict are stored there, and a stopped campaign
resumes.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.emulator.edges import SEEDS, SUBJECTS
from benchmarks.emulator.kernels import functions
from benchmarks.emulator.mutants import KINDS, Mutant, Site, draw, merged, sites_of
from benchmarks.emulator.unread import unread, unread_in
from mgx_mlir.targets import emulator
from mgx_mlir.targets.report import code_objects

# multiple of the undamaged instruction count that a wave and a launch may run
PATIENCE = 4
TIMEOUT = 3600


@dataclass
class Verdict:
    """Method that detected a mutant ('' if none did), and the evidence."""

    mutant: Mutant
    way: str = ""
    why: str = ""


@dataclass
class Report:
    """All verdicts of one seed. Ways: number, load, launch, check, code, crash."""

    arch: str
    seed: int
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def caught(self) -> int:
        return sum(bool(v.way) for v in self.verdicts)

    @property
    def crashes(self) -> list[Verdict]:
        """Mutants that crashed the process, which are faults of the emulator."""
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


def limits_of(launches: Sequence[dict]) -> dict[str, str]:
    """Return instruction limits of a wave and a launch, beyond which they count as endless.

    A wave's limit follows from the longest wave, which may be a few times its launch's mean. A
    launch's limit follows from the longest launch: in a damaged loop with barriers, all waves of a
    large grid would run for minutes until one of them reaches its own limit.
    """
    wave = max(n["instructions"] / n["waves"] for n in launches)
    whole = max(n["instructions"] for n in launches)
    return {
        "MGX_EMULATE_LIMIT": str(int(10 * PATIENCE * wave)),
        "MGX_EMULATE_LAUNCH_LIMIT": str(PATIENCE * whole),
    }


class Campaign:
    """Programs of one architecture, ready to be damaged.

    Errors: AssertionError where an undamaged program is wrong, or differs between two runs.
    """

    def __init__(self, arch: str, folder: Path, programs: Sequence[str] = SUBJECTS) -> None:
        self.arch, self.folder, self.programs = arch, folder, list(programs)
        self.limits: dict[str, str] = {}
        statistics, surveyed = folder / "statistics.json", folder / "surveyed"
        if not surveyed.exists():
            first = self._run([], MGX_EMULATE_STATS=str(statistics))[0]
            second = self._run([], MGX_EMULATE_CHECK="all")[0]
            assert first["controls"] == second["controls"], "two runs of the same programs differ"
            surveyed.write_text(json.dumps(first["controls"]))
        counted = json.loads(statistics.read_text())
        executed, launches = counted["executed"], counted["launches"]
        self.limits = limits_of(launches)
        for name in self.programs:
            ((_, elf),) = code_objects((folder / f"{name}.{SEEDS[0]}.vmfb").read_bytes())
            for function in functions(elf, arch).values():
                assert not (found := unread(function)), f"undamaged, of {name}: {found}"
        self.sites: list[Site] = []
        for place, name in enumerate(self.programs):
            runs = [
                sites_of(
                    name, (folder / f"{name}.{seed}.vmfb").read_bytes(), arch, executed, number
                )
                for number, seed in enumerate(SEEDS, place * len(SEEDS))
            ]
            self.sites += merged(runs)

    def run(self, count: int, seed: int, weighted: bool = False) -> Report:
        """Draw and run: without the emulator's checks, then, what passes, with them."""
        mutants = draw(self.sites, self.arch, count, seed, weighted)
        report = Report(self.arch, seed, [Verdict(m) for m in mutants])
        self._judge(report.verdicts, "plain")
        passed = [v for v in report.verdicts if not v.way]
        self._judge(passed, "checked", MGX_EMULATE_CHECK="all")
        for verdict in (v for v in passed if not v.way):
            if unread := self._unread(verdict.mutant):
                verdict.way, verdict.why = "code", unread
        return report

    def _unread(self, mutant: Mutant) -> str:
        """Return the unread results in a mutant's kernel."""
        vmfb = (self.folder / f"{mutant.site.program}.{SEEDS[0]}.vmfb").read_bytes()
        ((_, elf),) = code_objects(vmfb)
        return unread_in(elf, self.arch, mutant.site.at - vmfb.index(elf), mutant.code)

    def _judge(self, verdicts: Sequence[Verdict], how: str, **environment: str) -> None:
        """Run mutants; those whose verdict the folder has are not run again."""
        kept = self.folder / "verdicts.jsonl"
        lines = kept.read_text().splitlines() if kept.exists() else []
        known = {(r["how"], r["mutant"]): r for r in map(json.loads, lines)}
        left: list[Verdict] = []
        for verdict in verdicts:
            row = known.get((how, _key(verdict.mutant)))
            if row is None:
                left.append(verdict)
            else:
                verdict.way, verdict.why = row["way"], row["why"]

        def take(verdict: Verdict, way: str, why: str) -> None:
            found = "check" if way and "the checks found" in why else way
            verdict.way, verdict.why = found, why
            row = {"how": how, "mutant": _key(verdict.mutant), "way": found, "why": why}
            with kept.open("a") as f:
                f.write(json.dumps(row) + "\n")

        while left:
            now = left

            def answered(answer: dict, now: list[Verdict] = now) -> None:
                if "number" in answer:
                    take(now[answer["number"]], answer["way"], answer["why"])

            answers = self._run(now, answered, **environment)
            if "done" in answers[-1]:
                return
            done = sum("number" in a for a in answers)
            take(now[done], "crash", "the process ended")
            left = now[done + 1 :]

    def _run(
        self,
        verdicts: Sequence[Verdict],
        answered: Callable[[dict], None] = lambda answer: None,
        **environment: str,
    ) -> list[dict]:
        """Yield the runner's lines as they are printed."""
        needed = {v.mutant.site.program for v in verdicts} or set(self.programs)
        listed = [(v.mutant.site.program, v.mutant.site.at, v.mutant.code.hex()) for v in verdicts]
        (self.folder / "mutants.json").write_text(json.dumps(listed))
        # other tests of this process may have made the emulator its HIP
        inherited = {k: v for k, v in os.environ.items() if k != "IREE_HIP_DYLIB_PATH"}
        seeds = ",".join(map(str, SEEDS))
        answers: list[dict] = []
        with open(self.folder / "errors", "w+") as errors, subprocess.Popen(
            [sys.executable, "-m", "benchmarks.emulator.mutant_runner", str(self.folder), self.arch,
             seeds, *(p for p in self.programs if p in needed)],
            stdout=subprocess.PIPE, stderr=errors, text=True,
            env={**inherited, **self.limits, **environment},
        ) as runner:  # fmt: skip
            late = threading.Timer(TIMEOUT, runner.kill)
            late.start()
            try:
                for line in runner.stdout or ():
                    answers.append(json.loads(line))
                    answered(answers[-1])
            finally:
                late.cancel()
            status = runner.wait()
            errors.seek(0)
            said = errors.read()[-4000:]
        # a negative status is a crash, of which the next mutant is the cause
        assert answers, said
        assert status <= 0, said
        assert status != -signal.SIGKILL, f"not done in {TIMEOUT} s, or killed for memory"
        return answers


def _key(mutant: Mutant) -> str:
    return f"{mutant.site.program} {mutant.site.at} {mutant.code.hex()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--arch", default="gfx942")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--folder", type=Path, help="where to keep what is known, and to go on")
    parser.add_argument("--weighted", action="store_true", help="draw by how often they ran")
    options = parser.parse_args()
    if emulator.find_library() is None:
        raise SystemExit("the emulator is not built; see docs/emulator.md")
    with tempfile.TemporaryDirectory() as folder:
        if options.folder:
            options.folder.mkdir(parents=True, exist_ok=True)
        campaign = Campaign(options.arch, options.folder or Path(folder))
        print(f"{len(campaign.sites)} instructions ran in {', '.join(campaign.programs)}")
        for seed in options.seeds:
            print(campaign.run(options.count, seed, options.weighted), flush=True)


if __name__ == "__main__":
    main()
