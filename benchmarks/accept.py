"""The project's acceptance figures, measured on this machine, as a table.

    python benchmarks/accept.py all --models DIR [--only resnet50,bert_base]
    python benchmarks/accept.py errors memory import

Checks: errors (torch-exported models against onnxruntime), light (the onnx package's light models,
as shipped and with re-drawn weights), verify (mgx-driver verify, against ref and --ort), flip (one
weight changed on one side must be noticed), compile (shares of compile time, second compile),
memory (a 500 MB model), import (of the package), suite (the onnx backend suite). Exit code 0: all
hold; 1: one does not; 2: a check could not be made.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.measure import Ran, run_measured, write_json  # noqa: E402

JUDGED = ("resnet50", "mobilenet_v2", "bert_base", "gpt2", "llama_100m", "vit_b")
ERROR_LIMIT = 1e-4
FRONT_SECONDS = 5.0  # import + passes + lowering of BERT-base
FRONT_SHARE = 1 / 3
SECOND_COMPILE_SECONDS = 1.0
IMPORT_SECONDS = 0.5
MEMORY_LIMIT = 1.5e9
SUITE_PASSES = 900


@dataclass(frozen=True)
class Figure:
    """One measured figure and its limit. `ok` is None if it could not be measured; `figure` says
    why.
    """

    check: str
    subject: str
    figure: str
    limit: str
    ok: bool | None


Figures = Iterator[Figure]


def child(script: str, *arguments: str, cache: Path | None = None, timeout: float = 1200) -> Ran:
    """Run a Python script in a fresh process with its own compile cache."""
    environment = {"PYTHONPATH": str(ROOT)}
    if cache is not None:
        environment["MGX_CACHE_DIR"] = str(cache)
    command = [sys.executable, "-c", script, *arguments]
    return run_measured(command, environment=environment, timeout=timeout, cwd=ROOT)


def answer_of(ran: Ran) -> dict[str, Any]:
    return json.loads(ran.stdout.splitlines()[-1])


def failure_of(ran: Ran) -> str:
    lines = [line for line in ran.stderr.splitlines() if line.strip()]
    return f"exit {ran.code}: " + " | ".join(lines[-3:])[-300:]


def files(options: argparse.Namespace) -> list[Path]:
    """Return the requested torch-exported models; a missing one is an error with its remedy."""
    names = options.only.split(",") if options.only else list(JUDGED)
    exporters = options.exporters.split(",")
    found = [options.models / f"{name}_{e}.onnx" for name in names for e in exporters]
    missing = [path for path in found if not path.exists()]
    if missing:
        raise SystemExit(
            f"error: no such model: {', '.join(map(str, missing))}\n"
            "note: make them with benchmarks/models.py NAME --exporter both --out DIR"
        )
    return found


COMPARE = """
import json, sys
from pathlib import Path
import mgx_mlir
from benchmarks.oracle import inputs_for, relative_error, session
path = Path(sys.argv[1])
oracle = session(path)
inputs = inputs_for(path, oracle)
wanted = oracle.run(None, inputs)
names = [o.name for o in oracle.get_outputs()]
del oracle
program = mgx_mlir.compile(str(path), target="cpu")
got = program.run(inputs)
assert len(got) == len(wanted), f"{len(got)} outputs, expected {len(wanted)}"
errors = {n: relative_error(a, b) for n, a, b in zip(names, got, wanted)}
spread = min(float(w.std() / abs(w).max()) for w in wanted)
print(json.dumps({"errors": errors, "spread": spread, "stats": program.stats.known()}, default=str))
"""


def compare(check: str, subject: str, path: Path, cache: Path, varied: bool = True) -> Figure:
    """Return the largest relative error over the outputs of one model against onnxruntime.

    `varied`: the outputs must differ among themselves, else agreement would prove little.
    """
    ran = child(COMPARE, str(path), cache=cache)
    if ran.code:
        return Figure(check, subject, failure_of(ran), f"< {ERROR_LIMIT:g}", False)
    answer = answer_of(ran)
    worst = max(answer["errors"].values())
    figure = f"{worst:.1e}"
    if varied and not answer["spread"] > 0.01:
        return Figure(check, subject, f"{figure}, but flat output", f"< {ERROR_LIMIT:g}", False)
    return Figure(check, subject, figure, f"< {ERROR_LIMIT:g}", worst < ERROR_LIMIT)


def check_errors(options: argparse.Namespace, cache: Path) -> Figures:
    """Relative error of the torch-exported models on cpu."""
    for path in files(options):
        yield compare("errors", path.stem, path, cache)


def check_light(options: argparse.Namespace, cache: Path) -> Figures:
    """Relative error of the onnx package's light models, as shipped and re-drawn."""
    import onnx

    from zoo import redraw

    names = options.only.split(",") if options.only else redraw.NAMES
    for name in names:
        shipped = redraw.LIGHT / f"light_{name}.onnx"
        yield compare("light", f"{name} as shipped", shipped, cache, varied=False)
        path = cache / f"{name}.onnx"
        onnx.save(redraw.redraw(redraw.load(name)), path)
        yield compare("light", f"{name} re-drawn", path, cache)
        path.unlink()


def driver(*arguments: str, cache: Path) -> Ran:
    """Run mgx-driver in a fresh process."""
    script = "import sys; from mgx_mlir.tools.driver.main import main; sys.exit(main())"
    return child(script, *arguments, cache=cache)


def check_verify(options: argparse.Namespace, cache: Path) -> Figures:
    """Check that `mgx-driver verify` and `verify --ort` end with 0."""
    for path in files(options):
        for extra in ((), ("--ort",)):
            ran = driver("verify", "--onnx", str(path), "--cpu", *extra, cache=cache)
            subject = f"{path.stem} {'against onnxruntime' if extra else 'against ref'}"
            said = failure_of(ran) if ran.code else f"exit 0, {ran.seconds:.0f} s"
            yield Figure("verify", subject, said, "exit 0", ran.code == 0)


def check_compile(options: argparse.Namespace, cache: Path) -> Figures:
    """Measure our own stages' share of BERT-base's first compile, and the second compile."""
    for exporter in options.exporters.split(","):
        path = options.models / f"bert_base_{exporter}.onnx"
        with tempfile.TemporaryDirectory(dir=cache) as empty:
            first = child(COMPILE_TWICE, str(path), cache=Path(empty))
            if first.code:
                yield Figure("compile", path.stem, failure_of(first), "compiles", False)
                continue
            again = answer_of(child(COMPILE_TWICE, str(path), cache=Path(empty)))
        answer = answer_of(first)
        stats = answer["stats"]
        ours = stats["import_s"] + stats["passes_s"] + stats["lowering_s"]
        share = ours / answer["first"]
        parts = ", ".join(f"{k} {stats[k]:.2f}" for k in ("import_s", "passes_s", "lowering_s"))
        limit = f"< {FRONT_SECONDS:g} s"
        subject = f"{path.stem} import + passes + lowering"
        figure = f"{ours:.2f} s ({parts})"
        yield Figure("compile", subject, figure, limit, ours < FRONT_SECONDS)
        yield Figure("compile", f"{path.stem} share of {answer['first']:.1f} s", f"{share:.0%}",
                     "< 33 %", share < FRONT_SHARE)  # fmt: skip
        limit = f"< {SECOND_COMPILE_SECONDS:g} s"
        for name, seconds in (("same process", answer["second"]), ("new process", again["first"])):
            yield Figure("compile", f"{path.stem} second compile, {name}", f"{seconds:.2f} s",
                         limit, seconds < SECOND_COMPILE_SECONDS)  # fmt: skip


COMPILE_TWICE = """
import json, sys, time
import mgx_mlir
seconds = []
for _ in range(2):
    start = time.perf_counter()
    program = mgx_mlir.compile(sys.argv[1], target="cpu")
    seconds.append(time.perf_counter() - start)
    stats = program.stats.known() if len(seconds) == 1 else stats
print(json.dumps({"first": seconds[0], "second": seconds[1], "stats": stats}, default=str))
"""


def check_memory(options: argparse.Namespace, cache: Path) -> Figures:
    """Peak memory, over all processes, of compiling a model with 500 MB of weights."""
    path = cache / "weights_500mb.onnx"
    size = make_large_model(path)
    ran = child(COMPILE_ONCE, str(path), cache=cache)
    figure = (
        failure_of(ran) if ran.code else f"{ran.peak / 1e6:.0f} MB in {ran.processes} processes"
    )
    limit = f"< {MEMORY_LIMIT / 1e6:.0f} MB"
    subject = f"{size / 1e6:.0f} MB of weights"
    yield Figure("memory", subject, figure, limit, ran.code == 0 and ran.peak < MEMORY_LIMIT)
    path.unlink()


COMPILE_ONCE = """
import sys
import numpy as np
import mgx_mlir
program = mgx_mlir.compile(sys.argv[1], target="cpu")
(out,) = program.run({"x": np.ones((1, 3968), np.float32)})
assert np.isfinite(out).all() and out.std() > 0
"""


def make_large_model(path: Path, layers: int = 8, width: int = 3968) -> int:
    """Make a chain of MatMul and Relu with 500 MB of float32 weights; return their bytes."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(3)
    nodes, weights, value, size = [], [], "x", 0
    for layer in range(layers):
        weight = rng.standard_normal((width, width), np.float32) * np.float32((2 / width) ** 0.5)
        weights.append(numpy_helper.from_array(weight, f"w{layer}"))
        size += weight.nbytes
        nodes.append(helper.make_node("MatMul", [value, f"w{layer}"], [f"m{layer}"]))
        nodes.append(helper.make_node("Relu", [f"m{layer}"], [f"r{layer}"]))
        value = f"r{layer}"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, width])
    y = helper.make_tensor_value_info(value, TensorProto.FLOAT, [1, width])
    graph = helper.make_graph(nodes, "large", [x], [y], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)
    return size


def check_import(options: argparse.Namespace, cache: Path) -> Figures:
    """Seconds of `import mgx_mlir` in a fresh process, median of 7."""
    script = "import time; s = time.perf_counter(); import mgx_mlir; print(time.perf_counter() - s)"
    runs = [child(script) for _ in range(8)][1:]  # the first writes .pyc files
    bad = [ran for ran in runs if ran.code]
    if bad:
        yield Figure("import", "import mgx_mlir", failure_of(bad[0]), "imports", False)
        return
    seconds = statistics.median(float(ran.stdout) for ran in runs)
    yield Figure("import", "import mgx_mlir", f"{seconds:.2f} s", f"< {IMPORT_SECONDS:g} s",
                 seconds < IMPORT_SECONDS)  # fmt: skip


def check_flip(options: argparse.Namespace, cache: Path) -> Figures:
    """Check that verify notices a flipped sign of the largest element of one weight."""
    import onnx

    from benchmarks.flip import flip

    for path in files(options):
        changed = cache / f"{path.stem}_flipped.onnx"
        what = flip(path, changed)
        outputs = [o.name for o in onnx.load(path, load_external_data=False).graph.output]
        for extra in ((), ("--ort",)):
            command = ("verify", "--onnx", str(path), "--cpu", "--against", str(changed), *extra)
            ran = driver(*command, cache=cache)
            said = [line for line in ran.stdout.splitlines() if line.startswith("FAILED")]
            named = any(name in line for line in said for name in outputs)
            subject = f"{path.stem} {'onnxruntime' if extra else 'ref'}, {what.weight}"
            figure = f"exit {ran.code}, {'names the output' if named else 'names no output'}"
            ok = ran.code == 1 and named
            yield Figure("flip", subject, figure, "exit 1, output named", ok)
        changed.unlink()


def check_suite(options: argparse.Namespace, cache: Path) -> Figures:
    """The onnx package's backend suite on cpu."""
    report = cache / "suite.json"
    command = [sys.executable, "-m", "mgx_mlir.backend_report", "--quiet", "--json", str(report)]
    subprocess.run(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, env={**os.environ, "MGX_CACHE": "0"}
    )
    if not report.exists():
        yield Figure("suite", "onnx backend suite", "did not run", f">= {SUITE_PASSES}", None)
        return
    total = json.loads(report.read_text())["counts"]["total"]
    said = ", ".join(f"{n} {status}" for status, n in total.items() if n)
    ok = total["passed"] >= SUITE_PASSES and not total["wrong"] and not total["crashed"]
    limit = f">= {SUITE_PASSES} passed, 0 wrong"
    yield Figure("suite", "onnx backend suite", said, limit, ok)


CHECKS: dict[str, Callable[[argparse.Namespace, Path], Figures]] = {
    "import": check_import,
    "compile": check_compile,
    "memory": check_memory,
    "light": check_light,
    "errors": check_errors,
    "verify": check_verify,
    "flip": check_flip,
    "suite": check_suite,
}


def show(figures: list[Figure]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("check", "subject", "figure", "limit", "holds")
    words = {True: "yes", False: "NO", None: "?"}
    for f in figures:
        table.add_row(f.check, f.subject, f.figure, f.limit, words[f.ok])
    Console(width=max(150, Console().width)).print(table)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checks", nargs="+", choices=[*CHECKS, "all"], metavar="CHECK")
    parser.add_argument("--models", type=Path, default=ROOT / "build/models")
    parser.add_argument("--only", default="", help="comma-separated model names")
    parser.add_argument("--exporters", default="dynamo,script")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="mgx-accept-") as folder:
        for name in CHECKS if "all" in options.checks else options.checks:
            start = time.perf_counter()
            for figure in CHECKS[name](options, Path(folder)):
                figures.append(figure)
                spent = time.perf_counter() - start
                print(f"{figure.check}: {figure.subject}: {figure.figure} ({spent:.0f} s)",
                      file=sys.stderr, flush=True)  # fmt: skip
    show(figures)
    if options.json:
        write_json(options.json, [asdict(f) for f in figures])
    if any(f.ok is None for f in figures):
        return 2
    return 0 if all(f.ok for f in figures) else 1


if __name__ == "__main__":
    raise SystemExit(main())
