"""Runs all functions, or some, and prints a table of how their samples ended."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.integrations.torch.opinfo import expected, processes

# from the best
KINDS = ("skipped", "right", "strides", "dynamo", "refused", "timeout", "crash", "died", "wrong")
Rows = Mapping[tuple[str, str], Mapping[str, Any]]


def main(given: list[str]) -> int:
    """Run what is not in the file of results yet; 1 where something is not as refused.tsv says."""
    at = argparse.ArgumentParser(
        prog="python -m tests.integrations.torch.opinfo", description=__doc__
    )
    at.add_argument("names", nargs="*", help="functions by their OpInfo names; all without")
    at.add_argument("--out", type=Path, help="JSON lines; functions in it are not run again")
    at.add_argument("--again", action="store_true", help="run functions in --out again")
    at.add_argument("--mode", action="append", choices=("fixed", "dynamic"))
    at.add_argument("--target", default="cpu", choices=("cpu", "ref"))
    at.add_argument("--draw", type=int, help="this many functions, drawn")
    at.add_argument("--seed", type=int, default=0)
    at.add_argument("--write", action="store_true", help="write what was run into refused.tsv")
    args = at.parse_args(given)
    # imports torch's tests, which takes seconds
    from tests.integrations.torch.opinfo.samples import drawn, functions

    names = args.names or sorted(functions())
    unknown = set(names) - set(functions())
    if unknown:
        print(f"unknown functions: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    if args.draw:
        names = drawn(args.draw, args.seed)
        print(f"{args.draw} functions of seed {args.seed}")
    modes = args.mode or ["fixed", "dynamic"]
    rows = dict(_read(args.out))
    done = set() if args.again else set(rows)
    for mode in modes:
        left = [n for n in names if (n, mode) not in done]
        for row in processes.run(left, [mode], args.target):
            rows[row["function"], mode] = row
            _report(row)
            if args.out:
                with args.out.open("a") as f:
                    f.write(json.dumps(row) + "\n")
    wanted = {k: v for k, v in rows.items() if k[0] in names and k[1] in modes}
    print(table(wanted))
    if args.write:
        expected.FILE.write_text(expected.text_of(wanted, expected.FILE.read_text()))
    known = expected.refused()
    found = [c for row in wanted.values() for c in expected.complaints(row, known)]
    print("\n".join(found))
    return 1 if found else 0


def _read(file: Path | None) -> Iterable[tuple[tuple[str, str], Any]]:
    """The rows of a file of results; later ones take the place of earlier ones."""
    if file is not None and file.exists():
        for line in file.read_text().splitlines():
            row = json.loads(line)
            yield (row["function"], row["mode"]), row


def _report(row: Mapping[str, Any]) -> None:
    counts = Counter(s["kind"] for s in row["samples"])
    print(f"{row['function']} ({row['mode']}): {', '.join(f'{n} {k}' for k, n in counts.items())}")
    for s in row["samples"]:
        if s["kind"] not in expected.RIGHT:
            print(f"  {s['kind']}: {s['sample']}: {s['text']}")
    sys.stdout.flush()


def table(rows: Rows) -> str:
    """Samples by how they ended, and functions by their worst sample."""
    lines = [f"{'':18}" + "".join(f"{k:>9}" for k in KINDS)]
    for mode in sorted({m for _, m in rows}):
        mine = [r for (_, m), r in rows.items() if m == mode]
        per_sample = Counter(s["kind"] for r in mine for s in r["samples"])
        whole = Counter(
            max((s["kind"] for s in r["samples"]), key=KINDS.index, default="skipped") for r in mine
        )
        for name, counts in (("samples", per_sample), ("functions", whole)):
            lines.append(f"{mode:8}{name:10}" + "".join(f"{counts[k]:>9}" for k in KINDS))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
