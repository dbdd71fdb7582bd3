"""mgx-reduce: planted bugs come down to a few ops, and what is kept is valid at any time."""

from __future__ import annotations

import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import mgx_mlir.passes  # noqa: F401  (declares the passes)
from mgx_mlir.core.literals import WeightStore
from mgx_mlir.core.weight_files import read_weights, write_weights
from mgx_mlir.debug.edits import editable
from mgx_mlir.debug.reduce import Reduction
from mgx_mlir.debug.reduce_mlir import MlirCandidate, read_candidate, reduce_module
from mgx_mlir.rewrite.passes import run_pipeline
from mgx_mlir.rewrite.pattern import observing
from mgx_mlir.tools.opt import main as opt
from mgx_mlir.tools.reduce import main as reduce
from tests.support.models import model_of, node, parsed

T = "tensor<4x8xf32>"


def planted(length: int, at: int, bug: str, seed: int = 1) -> str:
    """A program of `length` ops that read each other, one of them `bug`."""
    rng = random.Random(seed)
    values, lines = ["%x", "%y"], []
    for i in range(length):
        a, b = values[-1], rng.choice(values[-6:])
        if i == at:
            lines.append(f'  %{i} = "migraphx.{bug}"({a}) : ({T}) -> {T}')
        elif rng.random() < 0.5:
            name = rng.choice(["add", "mul", "sub", "max"])
            lines.append(f'  %{i} = "migraphx.{name}"({b}, {a}) : ({T}, {T}) -> {T}')
        else:
            name = rng.choice(["neg", "exp", "abs", "relu", "tanh"])
            lines.append(f'  %{i} = "migraphx.{name}"({a}) : ({T}) -> {T}')
        values.append(f"%{i}")
    body = "\n".join(lines)
    ends = f"%{length - 1}, %{length // 2}"
    return (
        f"func.func @main(%x: {T}, %y: {T}) -> ({T}, {T}) {{\n{body}\n"
        f"  return {ends} : {T}, {T}\n}}\n"
    )


def script(folder: Path, body: str) -> str:
    """A test command that runs Python on the text of a candidate."""
    file = folder / "test.py"
    file.write_text(f"import sys\ntext = open(sys.argv[1], 'rb').read().decode('latin1')\n{body}\n")
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(file))} {{}}"


def run(path: Path, test: str, *flags: object) -> Path:
    out = path.with_name(f"out{path.suffix}")
    assert reduce.main([str(path), "--test", test, "-o", str(out), *map(str, flags)]) == 0
    return out


def ops(found: Path | MlirCandidate) -> list[str]:
    """The names of the ops of a file, or of what was found in this process."""
    candidate = read_candidate(found) if isinstance(found, Path) else found
    return [op.name.removeprefix("migraphx.") for op in editable(candidate.module())]


def shrink(text: str, interesting: Callable[[MlirCandidate], bool]) -> MlirCandidate:
    """Reduce a module by a test in this process, rather than one process for each candidate."""
    kept: list[MlirCandidate] = []
    start = MlirCandidate(text)
    assert interesting(start)
    found = Reduction(start, interesting, kept.append, lambda _: None, seconds=300)
    reduce_module(found)
    assert found.best is (kept[-1] if kept else start)
    assert all(interesting(c) and c.module().operation.verify() for c in kept)
    return found.best


def test_sixty_ops_with_one_bug(tmp_path: Path) -> None:
    file = tmp_path / "in.mlir"
    file.write_text(planted(60, 37, "erf"))
    out = run(file, 'grep -q "migraphx\\.erf" {}')
    assert ops(out) == ["erf"]
    assert "tensor<f32>" in out.read_text()


@pytest.mark.parametrize("at", [0, 1, 58, 59])
def test_the_bug_may_be_anywhere(at: int) -> None:
    assert ops(shrink(planted(60, at, "erf"), lambda c: "migraphx.erf" in c.text)) == ["erf"]


def test_the_bug_may_need_ops_that_read_each_other() -> None:
    """A real pass decides: a pattern that is applied."""
    text = re.sub(
        r"%13 = .*", f'%13 = "migraphx.log"(%12) : ({T}) -> {T}', planted(24, 12, "exp"), count=1
    )

    def applied(c: MlirCandidate) -> bool:
        with observing() as seen:
            run_pipeline(c.module(), ["mgx-simplify-algebra{fast-math=true}"], store=WeightStore())
        return seen.counts["find_log_exp"] == 1

    assert ops(shrink(text, applied)) == ["exp", "log"]


def test_results_that_are_needed_stay() -> None:
    wanted = re.compile(r"(%\d+) = .migraphx\.erf.*return[^\n]*\1\b", re.DOTALL)
    found = shrink(planted(20, 10, "erf"), lambda c: bool(wanted.search(c.text)))
    assert ops(found) == ["erf"]
    assert "return %0 :" in found.text


def test_regions_are_inlined_and_literals_become_uniform() -> None:
    values = ", ".join(map(str, range(20)))
    text = f"""
func.func @main(%x: tensor<20xi32>) -> tensor<20xi32> {{
  %0 = "migraphx.literal"() {{value = dense<[{values}]> : tensor<20xi32>}} : () -> tensor<20xi32>
  %1 = "migraphx.pointwise"(%x, %0) ({{
  ^bb0(%a: tensor<20xi32>, %b: tensor<20xi32>):
    %2 = "migraphx.add"(%a, %b) : (tensor<20xi32>, tensor<20xi32>) -> tensor<20xi32>
    %3 = "migraphx.mul"(%2, %b) : (tensor<20xi32>, tensor<20xi32>) -> tensor<20xi32>
    "migraphx.yield"(%3) : (tensor<20xi32>) -> ()
  }}) : (tensor<20xi32>, tensor<20xi32>) -> tensor<20xi32>
  return %1 : tensor<20xi32>
}}
"""
    found = shrink(text, lambda c: "migraphx.add" in c.text and "migraphx.literal" in c.text)
    assert sorted(ops(found)) == ["add", "literal"]
    assert "dense<1>" in found.text


def test_dynamic_dims_and_several_functions_stay_valid() -> None:
    kind = "tensor<?x768xf32>"
    text = f"""
func.func private @other(%x: {kind}) -> {kind} {{
  %0 = "migraphx.neg"(%x) : ({kind}) -> {kind}
  return %0 : {kind}
}}
func.func @main(%x: {kind} {{migraphx.name = "x"}}) -> ({kind} {{migraphx.name = "y"}}) {{
  %0 = "migraphx.exp"(%x) : ({kind}) -> {kind}
  %1 = "migraphx.erf"(%0) : ({kind}) -> {kind}
  %2 = "migraphx.neg"(%1) : ({kind}) -> {kind}
  return %2 : {kind}
}}
"""
    found = shrink(text, lambda c: "migraphx.erf" in c.text and "?x" in c.text)
    assert ops(found) == ["erf"]
    assert "768" not in found.text
    assert "@other" not in found.text


def test_weights_go_along_and_a_reproducer_keeps_its_pipeline(tmp_path: Path) -> None:
    """An .mlir with its .npz and pipeline: the candidates have both, and the smallest as well."""
    source = tmp_path / "in.mlir"
    arrays = {k: np.arange(20, dtype=np.int32) + i for i, k in enumerate(("aa", "bb"))}
    write_weights(str(tmp_path / "w.npz"), arrays)
    kind = "tensor<20xi32>"
    source.write_text(f"""
func.func @main(%x: {kind}) -> {kind} {{
  %0 = "migraphx.literal"() {{key = "aa"}} : () -> {kind}
  %1 = "migraphx.literal"() {{key = "bb"}} : () -> {kind}
  %2 = "migraphx.add"(%x, %0) : ({kind}, {kind}) -> {kind}
  %3 = "migraphx.neg"(%1) : ({kind}) -> {kind}
  %4 = "migraphx.sub"(%2, %3) : ({kind}, {kind}) -> {kind}
  return %4 : {kind}
}}
""")
    file = tmp_path / "repro.mlir"
    flags = ["--weights", str(tmp_path / "w.npz"), "--mgx-propagate-constant"]
    flags += ["-o", str(tmp_path / "ignored.mlir"), "--mlir-generate-reproducer", str(file)]
    assert opt.main([str(source), *flags]) == 0
    body = (
        "import os, re\nbeside = os.path.join(os.path.dirname(sys.argv[1]), 'repro.mlir.npz')\n"
        "weight = re.search(r'(%\\w+) = [^\\n]*key = .bb.', text)\n"
        "shown = weight and f'({weight[1]})' in text and 'mgx-propagate-constant' in text\n"
        "sys.exit(not (shown and 'migraphx.neg' in text and os.path.exists(beside)))"
    )
    test = script(tmp_path, body)
    folder = tmp_path / "small"
    folder.mkdir()
    out = folder / "small.mlir"
    assert reduce.main([str(file), "--test", test, "-o", str(out)]) == 0
    assert sorted(ops(out)) == ["literal", "neg"]
    assert 'pipeline: "builtin.module(mgx-propagate-constant)"' in out.read_text()
    assert list(dict(read_weights(str(folder / "repro.mlir.npz")).items())) == ["bb"]
    assert opt.main(["--run-reproducer", str(out), "-o", str(tmp_path / "again.mlir")]) == 0


def test_a_crash_is_told_from_an_error(tmp_path: Path) -> None:
    file = tmp_path / "in.mlir"
    file.write_text(planted(12, 5, "erf"))
    body = (
        "import os\nif 'migraphx.erf' in text and 'migraphx.exp' in text: os.kill(os.getpid(), 11)"
        "\nsys.exit(3)"
    )
    assert "migraphx.exp" in file.read_text()
    assert sorted(ops(run(file, script(tmp_path, body)))) == ["erf", "exp"]


def test_a_hang_is_interesting_where_the_input_hangs(tmp_path: Path) -> None:
    file = tmp_path / "in.mlir"
    file.write_text(planted(8, 5, "erf"))
    body = "import time\nif 'migraphx.erf' in text: time.sleep(60)"
    start = time.monotonic()
    assert ops(run(file, script(tmp_path, body), "--test-timeout", 0.5)) == ["erf"]
    assert time.monotonic() - start < 50


def test_a_command_that_finds_everything_interesting_is_noticed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "in.mlir"
    file.write_text(planted(8, 5, "erf"))
    assert ops(run(file, "grep -q nothing {}")) == []
    assert "nothing is left" in capsys.readouterr().err


def test_it_is_deterministic() -> None:
    def interesting(c: MlirCandidate) -> bool:
        return c.text.count("migraphx.add") >= 2 and "migraphx.erf" in c.text

    found = [shrink(planted(30, 11, "erf", seed=3), interesting) for _ in range(2)]
    assert found[0].text == found[1].text
    assert sorted(ops(found[0])) == ["add", "add", "erf"]


def test_the_best_so_far_is_kept(tmp_path: Path) -> None:
    """Interrupted, or out of time: the output is there, valid and interesting."""
    file, out = tmp_path / "in.mlir", tmp_path / "out.mlir"
    file.write_text(planted(60, 30, "erf"))
    test = script(tmp_path, "import time\ntime.sleep(0.2)\nsys.exit('migraphx.erf' not in text)")
    assert run(file, test, "--timeout", "1.5") == out
    assert "migraphx.erf" in out.read_text()
    assert ops(out)
    out.unlink()
    command = [
        sys.executable,
        "-m",
        "mgx_mlir.tools.reduce",
        str(file),
        "--test",
        test,
        "-o",
        str(out),
    ]
    # tests that run in the background may have inherited that interrupts are ignored
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stderr is not None
    lines = [process.stderr.readline() for _ in range(3)]
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "Traceback" not in rest
    assert "interrupted" in rest
    assert "ops" in lines[-1]
    assert "migraphx.erf" in out.read_text()
    assert len(ops(out)) < 60
    assert not [p for p in os.listdir(tmp_path) if p.startswith(".")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["in.mlir"], "expected a file and --test"),
        (["in.txt", "--test", "true"], "expected a .mlir or .onnx file"),
        (["missing.mlir", "--test", "true"], "cannot open the file"),
        (["Missing.onnx", "--test", "true"], "Missing.onnx: error: cannot read the model: no such"),
        (["Bad.onnx", "--test", "true"], "onnx.ModelProto"),
        (["bad.mlir", "--test", "true"], "cannot be reduced"),
        (["in.mlir", "--test", "true", "--interesting", "nonzero"], "is not interesting"),
        (["in.mlir", "--test", "true", "--interesting", "often"], "expected one of same, zero"),
        (["in.mlir", "--test", "true", "--timeout", "-1"], "expected a number of seconds"),
        (["in.mlir", "--test", "true", "-o", "x.onnx"], "ends in .mlir"),
        (["in.mlir", "--test", "true", "-o", "/nonexistent/x.mlir"], "cannot write"),
        (["in.mlir", "in.mlir", "--test", "true"], "expected one input file"),
        (["in.mlir", "--test"], "expected a value"),
    ],
)
def test_errors(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.mlir").write_text(planted(2, 1, "erf"))
    Path("bad.mlir").write_text("func.func @main(")
    Path("Bad.onnx").write_text("garbage")
    assert reduce.main(arguments) == 2
    assert said in capsys.readouterr().err


# ---- ONNX ---------------------------------------------------------------------------------------


def chain(length: int, at: int, bug: str) -> onnx.ModelProto:
    """MatMul, Add, Relu over and over, one of them `bug`, with weights and two outputs."""
    rng = np.random.default_rng(0)
    nodes, held, last = [], {}, "x"
    for i in range(length):
        out = f"v{i}"
        if i == at:
            nodes.append(node(bug, last, out, name="bug"))
        elif i % 3 == 0:
            held[f"w{i}"] = rng.random((16, 16), np.float32)
            nodes.append(node("MatMul", f"{last} w{i}", out))
        elif i % 3 == 1:
            held[f"b{i}"] = rng.random(16, np.float32)
            nodes.append(node("Add", f"{last} b{i}", out))
        else:
            nodes.append(node("Relu", last, out))
        last = out
    model = model_of(nodes, {"x": [4, 16]}, {last: [4, 16], "v2": [4, 16]}, held)
    onnx.checker.check_model(model, full_check=True)
    return model


@pytest.mark.parametrize("at", [0, 17, 29])
def test_thirty_nodes_with_one_bug(tmp_path: Path, at: int) -> None:
    file = tmp_path / "in.onnx"
    onnx.save(chain(30, at, "Erf"), file)
    out = onnx.load(run(file, "grep -q Erf {}"))
    onnx.checker.check_model(out, full_check=True)
    assert [n.op_type for n in out.graph.node] == ["Erf"]
    assert not out.graph.initializer
    assert [d.dim_value for d in out.graph.input[0].type.tensor_type.shape.dim] == [1, 1]


def test_a_model_under_the_driver(tmp_path: Path) -> None:
    """The importer decides, and a weight that is needed stays."""
    file = tmp_path / "in.onnx"
    onnx.save(chain(4, 1, "Erf"), file)
    test = (
        f"{shlex.quote(sys.executable)} -m mgx_mlir.tools.driver read {{}} "
        "| tr '\\n' ' ' | grep -q '@literal.*erf(.*dot('"
    )
    out = onnx.load(run(file, test))
    onnx.checker.check_model(out, full_check=True)
    kinds = [n.op_type for n in out.graph.node]
    assert len(kinds) == 2
    assert kinds[0] == "Erf"


def test_branches_take_the_place_of_their_if(tmp_path: Path) -> None:
    model = parsed("""(bool c, float[2,3] x) => (float[2,3] y) {
        y = If <
            then_branch = t () => (float[2,3] t) { t_a = Neg (x) t = Erf (t_a) },
            else_branch = e () => (float[2,3] e) { e_a = Neg (x) e = Exp (e_a) }
        > (c) }""")
    file = tmp_path / "in.onnx"
    onnx.save(model, file)
    out = onnx.load(run(file, "grep -q Erf {}"))
    onnx.checker.check_model(out, full_check=True)
    assert [n.op_type for n in out.graph.node] == ["Erf"]
