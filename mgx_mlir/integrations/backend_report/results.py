"""Results of each case: the verdict on a worker's answer, the counts, and their file."""

from __future__ import annotations

import collections
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mgx_mlir.integrations.backend_report.cases import FORMS, KINDS, Case

STATUSES = ("passed", "wrong", "unsupported", "crashed", "timed out", "error")
Result = dict[str, Any]  # name, kind, form, random, status, detail, seconds


def judge(case: Case, answer: dict[str, Any]) -> tuple[str, str]:
    """Return (status, detail) of a worker's answer."""
    if "status" in answer:
        return answer["status"], answer["detail"]
    if answer["reference_calls"]:
        return "wrong", f"run called the reference of {answer['reference_calls'][0]}"
    if "error" in answer:
        kinds = answer["kinds"]
        if "UnsupportedModel" in kinds or (
            "CompileError" in kinds and "no lowering" in answer["error"]
        ):
            return "unsupported", answer["error"]
        detail = f"{answer['stage']}: {kinds[0]}: {answer['error']}"
        if "MgxError" not in kinds:
            detail += "\n" + answer["trace"]
        return "error", detail
    for (_, expected), got in zip(case.data_sets, answer["outputs"], strict=True):
        try:
            compare(expected, got, case)
        except Exception as error:
            # an AssertionError, or what the suite's comparison raises on a value of another kind
            return "wrong", f"{type(error).__name__}: {str(error).strip()[:600]}"
    return "passed", ""


def compare(expected: list[Any], got: list[Any], case: Case) -> None:
    """Compare as the suite does. Errors: AssertionError where outputs differ.

    The elements of lists are compared here. The suite would compare the rows of each element, which
    fails for 0-d elements and misses a missing one.
    """
    from onnx.backend.test.runner import Runner  # onnx takes long to load

    if len(expected) != len(got):
        raise AssertionError(f"expected {len(expected)} values, got {len(got)}")
    for e, g in zip(expected, got, strict=True):
        if isinstance(e, list) != isinstance(g, list) or (e is None) != (g is None):
            raise AssertionError(f"expected {type(e).__name__}, got {type(g).__name__}")
        if isinstance(e, list):
            compare(e, g, case)
        elif e is not None:
            Runner.assert_similar_outputs([e], [g], rtol=case.rtol, atol=case.atol)


def count(results: list[Result]) -> dict[str, dict[str, int]]:
    """Count statuses by group, by the forms of inputs and outputs, and in all as "total"."""
    table = {}
    for key, names in (("kind", KINDS), ("form", FORMS)):
        for name in names:
            rows = [r["status"] for r in results if r[key] == name]
            if rows:
                table[name] = {s: rows.count(s) for s in STATUSES}
    rows = [r["status"] for r in results]
    return {**table, "total": {s: rows.count(s) for s in STATUSES}}


def show(results: list[Result], seconds: float) -> None:
    """Print the counts, and the most common reasons of refusals and failures."""
    print(f"{'':20}" + "".join(f"{status:>13}" for status in STATUSES) + f"{'of':>8}")
    for name, counts in count(results).items():
        if name in (FORMS[0], "total"):
            print()
        row = "".join(f"{counts[status]:13}" for status in STATUSES)
        print(f"{name:20}{row}{sum(counts.values()):8}")
    print(f"\n{len(results)} cases in {seconds:.0f} s")
    for status in ("unsupported", "error"):
        reasons = collections.Counter(reason(r["detail"]) for r in results if r["status"] == status)
        if reasons:
            print(f"\n{status}, most common reasons:")
            for text, number in reasons.most_common(25):
                print(f"  {number:4}  {text}")


def reason(detail: str) -> str:
    """Return the part of an error that many cases share: its first note is the most specific."""
    lines = [line.strip() for line in detail.splitlines() if line.strip()]
    line = next((line for line in lines[1:] if not line.startswith("note: skip")), "")
    if not line or line.startswith("Traceback"):
        line = lines[0] if lines else ""
    if operator := re.search(r"'migraphx\.\w+' op .*", line):
        line = operator[0]
    line = re.sub(r"^.*?error: |, first '.*$| +1 node", "", line)
    return re.sub(r"\(opset \d+\)", "", re.sub(r"\{[^}]*\}|\[[^]]*\]", "..", line))[:140]


def bad(results: Iterable[Result]) -> list[Result]:
    """Return the cases that are wrong or crashed.

    Cases with random outputs are left out: their expected values come from another generator.
    """
    return [
        r for r in results
        if r["status"] == "crashed" or (r["status"] == "wrong" and not r["random"])
    ]  # fmt: skip


def regressions(results: list[Result], earlier: Path) -> list[str]:
    """Return the cases that passed in an earlier run's JSON and no longer do."""
    before = {case["name"]: case["status"] for case in json.loads(earlier.read_text())["cases"]}
    return [
        f"{r['name']}: passed before, now {r['status']}"
        for r in results
        if before.get(r["name"]) == "passed" and r["status"] != "passed"
    ]


def write_json(path: Path, results: list[Result], seconds: float, target: str) -> None:
    """Write everything about a run, for --earlier and for other tools."""
    import onnx  # onnx takes long to load

    content = {
        "onnx": onnx.__version__,
        "target": target,
        "seconds": round(seconds, 1),
        "counts": count(results),
        "cases": results,
    }
    temporary = path.with_suffix(path.suffix + ".tmp")
    temporary.write_text(json.dumps(content, indent=1))
    os.replace(temporary, path)
