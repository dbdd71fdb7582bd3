"""Fuzzes graphs: random ONNX models through `ref` and `cpu`, against onnxruntime and f64.

    python benchmarks/fuzz.py --seeds 1000 --jobs 1
    python benchmarks/fuzz.py --seed 4711                  # one, with all that is known of it
    python benchmarks/fuzz.py --seeds 1000 --variant ref,passes,shuffled   # no compiles
    python benchmarks/fuzz.py --seeds 1000 --special       # with NaN and infinities

Each graph is drawn from its seed, judged in a process with limits, and reduced if it fails.
Failures with the same cause are reported once, with a model written to --out. Exit code 1 if
anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.fuzzing.judge import FAULTS, Finding, cause  # noqa: E402
from benchmarks.fuzzing.pool import Worker  # noqa: E402
from benchmarks.fuzzing.shrink import shrunk  # noqa: E402
from benchmarks.fuzzing.tasks import Task, case_of  # noqa: E402


@dataclass
class Report:
    """Results of all graphs."""

    graphs: int = 0
    nodes: int = 0
    tried: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    refused_by_us: Counter[str] = field(default_factory=Counter)
    refused_by_oracle: Counter[str] = field(default_factory=Counter)
    ops: Counter[str] = field(default_factory=Counter)
    causes: dict[str, list[Any]] = field(default_factory=dict)
    lost: int = 0  # the oracle died as the graph was drawn


class Fuzzer:
    """Runs seeds in workers and collects a report; `out` gets a model for each cause."""

    def __init__(
        self,
        out: Path,
        variants: tuple[str, ...] | None = None,
        *,
        shrink: bool = True,
        special: bool = False,
    ) -> None:
        self.out, self.variants, self.shrink, self.special = out, variants, shrink, special
        self.report = Report()

    def run(self, seed: int, worker: Worker) -> None:
        found, ops, worlds = self.findings(Task(seed, self.variants, special=self.special), worker)
        if found is None:
            self.report.lost += 1
            return
        self.report.graphs += 1
        if self.report.graphs % 50 == 0:
            print(f"{self.report.graphs} graphs, {len(self.report.causes)} causes", flush=True)
        bad = False
        for f in found:
            self.report.kinds[f"{f.variant}: {f.kind}"] += 1
            if f.kind in FAULTS and not bad:
                bad = True
                self.note(seed, f, ops, worlds, worker)
            elif f.kind == "refused":
                text = cause(f, [])
                self.report.refused_by_us[text] += 1
                if self.report.refused_by_us[text] == 1:
                    self.log({"seed": seed, "variant": f.variant, "refused": f.message[:600]})
            elif f.kind in ("ill-conditioned", "oracle"):
                self.log({"seed": seed, "variant": f.variant, f.kind: f.message[:600]})

    def findings(self, task: Task, worker: Worker) -> tuple[list[Finding] | None, list[str], int]:
        answers, end, how = worker.run(task)
        found = [Finding(**a["finding"]) for a in answers if "finding" in a]
        facts = next((a for a in answers if "ops" in a), None)
        if facts is None:
            return None, [], 0
        if task.kept is None:
            r = self.report
            r.nodes += len(facts["ops"])
            r.tried += facts["tried"]
            r.ops.update(facts["ops"])
            r.refused_by_oracle.update(facts["refusals"])
        if end:
            stage = next(a["stage"] for a in reversed(answers) if "stage" in a)
            found.append(Finding(stage, end, how))
        return found, facts["ops"], facts["worlds"]

    def note(self, seed: int, f: Finding, ops: list[str], worlds: int, worker: Worker) -> None:
        """Shrink a fault, and count it under its cause."""
        task = Task(seed, (f.variant,), special=self.special)
        kept_ops, message = ops, f.message
        if self.shrink:

            def fails(candidate: Task) -> bool:
                nonlocal kept_ops, message
                again, those, _ = self.findings(candidate, worker)
                same = [a for a in again or () if a.kind == f.kind]
                if same and cause(same[0], []) == cause(f, []):
                    kept_ops, message = those, same[0].message
                    return True
                return False

            task = shrunk(task, len(ops), worlds, fails)
        key = cause(f, kept_ops)
        rows = self.report.causes.setdefault(key, [])
        command = f"python benchmarks/fuzz.py --seed {seed} --variant {f.variant}"
        command += " --special" if self.special else ""
        if task.kept is not None:
            command += f" --keep {','.join(map(str, task.kept))}"
        if task.worlds is not None:
            command += f" --worlds {','.join(map(str, task.worlds))}"
        row = {"seed": seed, "cause": key, "command": command, "message": message}
        rows.append(row)
        self.log(row)
        print(f"\n{key}\n    {command}\n    {message.strip()[:700]}", flush=True)
        if len(rows) == 1:
            self.write(task, f"{seed}_{f.kind.replace(' ', '_')}_{'_'.join(kept_ops[:3])}")

    def write(self, task: Task, name: str) -> None:
        import numpy as np

        case = case_of(task)
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / f"{name}.onnx").write_bytes(case.model().SerializeToString())
        for w in range(case.worlds):
            np.savez(self.out / f"{name}.{w}.npz", **case.feeds(w))

    def log(self, row: dict[str, Any]) -> None:
        self.out.mkdir(parents=True, exist_ok=True)
        with (self.out / "log.jsonl").open("a") as f:
            f.write(json.dumps(row) + "\n")


def show(r: Report, seconds: float) -> None:
    """Print the report."""
    refused = sum(r.refused_by_oracle.values())
    print(f"\n{r.graphs} graphs, {r.nodes} nodes of {len(r.ops)} operators, {seconds:.0f} s")
    print(f"onnxruntime refused {refused} of {r.tried} nodes ({refused / max(r.tried, 1):.1%}); "
          f"{r.lost} graphs were lost as it died")  # fmt: skip
    for kind, n in sorted(r.kinds.items()):
        print(f"  {n:6} {kind}")
    if r.refused_by_us:
        print("refused by mgx_mlir:")
        for text, n in r.refused_by_us.most_common():
            print(f"  {n:6} {text}")
    print(f"{len(r.causes)} causes of faults")
    for key, rows in sorted(r.causes.items(), key=lambda kv: -len(kv[1])):
        print(f"  {len(rows):6} {key}\n         {rows[0]['command']}")


def one(options: argparse.Namespace) -> int:
    """Judge one seed in this process, and print what is known."""
    kept = tuple(map(int, options.keep.split(","))) if options.keep else None
    worlds = tuple(map(int, options.worlds.split(","))) if options.worlds else None
    from benchmarks.fuzzing.judge import judged, variants_of

    case = case_of(Task(options.seed, kept=kept, worlds=worlds, special=options.special))
    model = case.model()
    if options.text:
        import onnx.printer

        print(onnx.printer.to_text(model))
    if options.model:
        Path(options.model).write_bytes(model.SerializeToString())
    failed = False
    variants = options.variants or variants_of(options.seed, case.worlds, options.special)
    for variant in variants:
        found = judged(case, variant)
        failed = failed or found.kind in FAULTS
        print(f"{variant}: {found.kind} {found.message}")
    return int(failed)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1000, help="how many graphs")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "fuzz")
    parser.add_argument("--seed", type=int, help="judge this one graph")
    parser.add_argument(
        "--variant", help="only these: ref,passes,shuffled,cpu,exact,threads,plain,fixed"
    )
    parser.add_argument("--keep", help="of --seed: these of its nodes, 0,3,..")
    parser.add_argument("--worlds", help="of --seed: these of its sizes")
    parser.add_argument(
        "--special", action="store_true", help="NaN and infinities in the inputs; no fast_math"
    )
    parser.add_argument("--text", action="store_true", help="of --seed: print the model")
    parser.add_argument("--model", help="of --seed: write the model")
    parser.add_argument("--no-shrink", action="store_true")
    options = parser.parse_args(argv)
    options.variants = tuple(options.variant.split(",")) if options.variant else None
    if options.seed is not None:
        return one(options)
    fuzzer = Fuzzer(
        options.out, options.variants, shrink=not options.no_shrink, special=options.special
    )
    start = time.perf_counter()
    seeds = list(range(options.first, options.first + options.seeds))

    def share(job: int) -> None:
        worker = Worker()
        try:
            for seed in seeds[job :: options.jobs]:
                fuzzer.run(seed, worker)
        finally:
            worker.stop()

    with ThreadPoolExecutor(options.jobs) as threads:
        list(threads.map(share, range(options.jobs)))
    show(fuzzer.report, time.perf_counter() - start)
    return int(bool(fuzzer.report.causes))


if __name__ == "__main__":
    raise SystemExit(main())
