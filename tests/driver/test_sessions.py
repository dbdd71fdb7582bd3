"""The sessions of MIGraphX's driver page on a 784-128-10 model, in the forms of its lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from onnx import parser

from examples.mnist import weights
from tests.driver.conftest import Driver

_SHAPE = r"[a-z0-9]+_type, \{[\d, ]*\}, \{[\d, ]*\}"
_NAME = r"(?:@\d+|[A-Za-z_#][\w.:#/]*)"
_OPERATOR = r"[@a-z_0-9:]+(?:\[[^\]]*\]|\{[^}]*\}|:[\w:#]+)?"
LINE = re.compile(
    rf"^{_NAME} = (?:@return\({_NAME}(?:,{_NAME})*\)|"
    rf"{_OPERATOR}(?:\({_NAME}(?:,{_NAME})*\))? -> {_SHAPE})$"
)


def literal(name: str) -> str:
    return "{" + ", ".join(f"{v:g}" for v in weights()[name]) + "}"


def loaded() -> list[str]:
    return [
        f"@0 = @literal{literal('b1')} -> float_type, {{10}}, {{1}}",
        "@1 = @literal{ ... } -> float_type, {128, 10}, {10, 1}",
        "@2 = @literal{ ... } -> float_type, {128}, {1}",
        "@3 = @literal{ ... } -> float_type, {784, 128}, {128, 1}",
        "x = @param:x -> float_type, {1, 28, 28}, {784, 28, 1}",
        "@4 = reshape[dims={-1, 784}](x) -> float_type, {1, 784}, {784, 1}",
        "@5 = dot(@4,@3) -> float_type, {1, 128}, {128, 1}",
        "@6 = multibroadcast[out_lens={1, 128},out_dyn_dims={}](@2) "
        "-> float_type, {1, 128}, {0, 1}",
        "@7 = add(@5,@6) -> float_type, {1, 128}, {128, 1}",
        "@8 = relu(@7) -> float_type, {1, 128}, {128, 1}",
        "@9 = dot(@8,@1) -> float_type, {1, 10}, {10, 1}",
        "@10 = multibroadcast[out_lens={1, 10},out_dyn_dims={}](@0) -> float_type, {1, 10}, {0, 1}",
        "@11 = add(@9,@10) -> float_type, {1, 10}, {10, 1}",
        "@12 = softmax[axis=1](@11) -> float_type, {1, 10}, {10, 1}",
        "@13 = @return(@12)",
    ]


def kernels(lines: list[str], target: str = "cpu") -> list[str]:
    """The operators of the lines that are kernels."""
    return [m[1] for line in lines if (m := re.match(rf"@\d+ = ({target}::\w+)", line))]


def assert_program(lines: list[str], target: str = "cpu") -> None:
    assert all(LINE.match(line) for line in lines), [i for i in lines if not LINE.match(i)]
    assert kernels(lines, target) == [
        f"{target}::dot_add_relu", f"{target}::dot_add", f"{target}::softmax",
    ]  # fmt: skip


def without(lines: list[str], *starts: str) -> list[str]:
    return [line for line in lines if not line.startswith(starts)]


def test_op_list(driver: Driver) -> None:
    ran = driver("op", "--list")
    assert ran.status == 0
    assert ran.err == ""
    assert ran.lines == sorted(ran.lines)
    assert {"@literal", "@param", "@return", "add", "convolution", "pooling", "topk"} < set(
        ran.lines
    )
    assert driver("op", "-l").out == ran.out


def test_op_defaults(driver: Driver) -> None:
    ran = driver("op", "softmax")
    assert (ran.status, ran.out) == (0, 'softmax:\n{\n    "axis": 1\n}\n')
    assert driver("op", "@return").out == "@return:\n{}\n"
    ran = driver("op", "softmaxx")
    assert (ran.status, ran.out) == (2, "")
    assert ran.errors == ["error: unknown operator 'softmaxx'", "note: did you mean 'softmax'?"]


def test_every_operator_prints_its_defaults(driver: Driver) -> None:
    for name in driver("op").lines:
        assert driver("op", name).out.startswith(f"{name}:\n{{"), name


def test_onnx_list(driver: Driver) -> None:
    ran = driver("onnx", "--list")
    assert ran.status == 0
    assert {"Add", "Conv", "MatMul", "LayerNormalization"} < set(ran.lines)
    assert ran.lines == sorted(ran.lines)


def test_params(driver: Driver, models: Path) -> None:
    ran = driver("params", models / "mnist.onnx")
    assert ran.errors == [f"Reading: {models / 'mnist.onnx'}"]
    assert ran.lines == [
        "x: float_type, {1, 28, 28}, {784, 28, 1}",
        "y: float_type, {1, 10}, {10, 1}",
    ]


def test_read(driver: Driver, models: Path) -> None:
    ran = driver("read", models / "mnist.onnx")
    assert ran.status == 0
    assert ran.errors == [f"Reading: {models / 'mnist.onnx'}"]
    assert ran.lines == loaded()


def test_read_with_source_nodes_and_in_the_newer_text(driver: Driver, models: Path) -> None:
    ran = driver("read", models / "mnist.onnx", "--debug-symbols", "--text-version", "2.16")
    assert ran.lines[0] == 'module: "main"'
    assert ran.lines[-1] == ""
    assert "@6 = dot(@5,@3) -> float_type, {1, 128}, {128, 1} # fc0" in ran.lines


def test_read_the_built_in_program(driver: Driver) -> None:
    ran = driver("read", "--test")
    assert ran.lines == [
        "b = @param:b -> float_type, {5, 3}, {3, 1}",
        "a = @param:a -> float_type, {4, 5}, {5, 1}",
        "@0 = dot(a,b) -> float_type, {4, 3}, {3, 1}",
    ]


def test_dims_stay_dynamic(driver: Driver, models: Path) -> None:
    path = models / "open.onnx"
    assert "{[0..], 3}" in driver("run", "--cpu", path, "--dynamic-dims").out
    ran = driver("verify", "--cpu", path, "--dynamic-dims", "--input-dim", "@x", 7, 3)
    assert ran.status == 0
    ran = driver("params", path, "--dynamic-dims", "--default-dyn-dim", "{min:1, max:8}")
    assert (ran.status, "expected one of --dynamic-dims and" in ran.err) == (2, True)


def test_sizes_are_compiled_ahead(driver: Driver, models: Path) -> None:
    path = models / "open.onnx"
    made = driver("compile", "--cpu", path, "--sizes", 2, 8)
    stated = [line.partition(": ")[0] for line in made.err.splitlines() if " = " in line]
    assert (made.status, stated) == (0, ["n = 2", "n = 8"])
    assert "{8, 3}" in made.out
    ran = driver("run", "--cpu", path, "--sizes", "@n", 2, 8, "--batch", 5)
    assert (ran.status, "float_type, {5, 3}" in ran.err) == (0, True)
    assert ran.err.count("loaded from the cache") == 2
    assert driver("verify", "--cpu", path, "--sizes", 8, "--batch", 3).status == 0
    for given, why in (
        ((1, 0), "different sizes from 1 on"),
        (("@k", 1), "no dynamic dim 'k', it has n"),
        ((1, "-o", "x.mxr"), "no single file"),
    ):
        ran = driver("compile", "--cpu", path, "--sizes", *given)
        assert (ran.status, why in ran.err) == (2, True), ran.err
    assert driver("run", "--ref", path, "--sizes", 1).status == 2


WINDOWS = """<ir_version: 8, opset_import: ["":18]>
g (float[b,2,n] x) => (float[b,3,m] y) <float[3,2,4] w = {%s}> { y = Conv(x, w) }"""


def test_what_the_dynamic_dims_count_as_is_told(driver: Driver, tmp_path: Path) -> None:
    """A model that no size of 1 fits: the error says where the 1 comes from."""
    path = tmp_path / "windows.onnx"
    path.write_bytes(parser.parse_model(WINDOWS % ",".join(["1"] * 24)).SerializeToString())
    ran = driver("params", path)
    assert ran.status == 2
    assert "dims that the file leaves dynamic count as 1: --input-dim" in ran.err
    ran = driver("params", path, "--input-dim", "@x", 1, 2, 3)
    assert ran.status == 2
    assert "leaves dynamic" not in ran.err
    assert "{[0..], 2, [0..]}" in driver("params", path, "--dynamic-dims").out
    ran = driver("run", "--ref", path, "--dynamic-dims")
    assert ran.status == 2
    assert "dims that stay dynamic are run at 1: --input-dim" in ran.err
    assert driver("run", "--ref", path, "--dynamic-dims", "--input-dim", "@x", 1, 2, 9).status == 0


def test_dynamic_dimensions(driver: Driver, models: Path) -> None:
    path = models / "open.onnx"

    def first(*options: object) -> str:
        return driver("params", path, *options).lines[0]

    assert first() == "x: float_type, {1, 3}, {3, 1}"
    assert first("--batch", 4) == "x: float_type, {4, 3}, {3, 1}"
    assert first("--input-dim", "@x", 7, 3) == "x: float_type, {7, 3}, {3, 1}"
    assert first("--dim-param", "@n", 6) == "x: float_type, {6, 3}, {3, 1}"
    dynamic = "x: dynamic, float_type, {[2..8], 3}, named {n, 3}"
    assert first("--default-dyn-dim", "{min:2, max:8}") == dynamic
    assert first("--dyn-input-dim", "@x", "[{min:2,max:8}, 3]") == dynamic.split(", named")[0]
    assert first("--dynamic-dims") == "x: dynamic, float_type, {[0..], 3}, named {n, 3}"
    assert first("--dynamic-dims", "--input-dim", "@x", 7, 3) == first("--dynamic-dims")
    assert first("--dim-param", "@n", "{min:2,max:8}") == dynamic
    # dynamic dims stay dynamic: --input-dim is the size to run at
    assert first("--dim-param", "@n", "{min:2,max:8}", "--input-dim", "@x", 7, 3) == dynamic
    assert first("--default-dyn-dim", "{min:2,max:8}", "--input-dim", "@x", 7, 3) == dynamic
    assert first("--dim-param", "@n", 6, "--input-dim", "@x", 7, 3) == (
        "x: float_type, {7, 3}, {3, 1}"
    )


def test_compile(driver: Driver, models: Path) -> None:
    ran = driver("compile", "--cpu", models / "mnist.onnx")
    assert ran.status == 0
    assert_program(ran.lines)
    assert re.match(r"Target: cpu, \d+ threads?$", ran.errors[0])
    assert ran.errors[1:3] == ["Compiling ...", f"Reading: {models / 'mnist.onnx'}"]
    assert re.match(r"Compiled(:| in) .*s", ran.errors[3])
    again = driver("compile", "--cpu", models / "mnist.onnx")
    assert again.out == ran.out
    found = r"Compiled: loaded from the cache in [\d.]+ s \(its compile took [\d.]+ s\)"
    assert re.fullmatch(found, again.errors[3])


def test_compile_says_what_it_took(driver: Driver) -> None:
    ran = driver("compile", "--test", "--cpu", "--no-cache", "--kernel-boundaries=off")
    assert re.search(
        r"^Compiled in [\d.]+ s: import [\d.]+ s, passes [\d.]+ s, lowering [\d.]+ s, "
        r"iree [\d.]+ s; peak memory of this process \d+ MB, of IREE \d+ MB$",
        ran.err, re.M,
    )  # fmt: skip


def test_the_default_target_is_named(driver: Driver) -> None:
    assert re.match(
        r"Target: (cpu, \d+ threads?, by default: no GPU is found"
        r"|gpu, gfx\w+, by default: a GPU is present)",
        driver("compile", "--test").errors[0],
    )


def test_run(driver: Driver, models: Path) -> None:
    ran = driver("run", "--cpu", "--onnx", models / "mnist.onnx")
    assert ran.status == 0
    first, second = ran.out.split("\n\n")
    assert first.splitlines() == second.splitlines()
    assert_program(first.splitlines())
    assert "Allocating params ..." in ran.errors


def test_run_says_which_integers_are_bounded(driver: Driver, models: Path) -> None:
    ran = driver("run", "--ref", models / "tokens.onnx")
    assert ran.status == 0
    assert "ids: 0 to 10: it indexes 11 entries" in ran.errors
    assert any(line.startswith("mask: 1 up to a point") for line in ran.errors)
    ran = driver("run", "--ref", models / "tokens.onnx", "--fill1", "ids", "mask")
    assert not any(line.startswith("ids:") for line in ran.errors)


def test_run_at_a_size_in_range(driver: Driver, models: Path) -> None:
    shape = ("--default-dyn-dim", "{min:2,max:8}")
    assert driver("run", "--cpu", models / "open.onnx", *shape).status == 0
    shape = ("--dyn-input-dim", "@x", "[{min:2,max:8}, 3]")
    ran = driver("run", "--cpu", models / "open.onnx", *shape, "--input-dim", "@x", 9, 3)
    assert ran.status == 2
    assert "expected [2..8], got 9" in ran.err


def test_verify(driver: Driver, models: Path) -> None:
    ran = driver("verify", "--cpu", models / "mnist.onnx", "--verbose")
    assert ran.status == 0
    read, ref, cpu, report = (part.splitlines() for part in ran.out.split("\n\n"))
    assert read == loaded()
    assert all(LINE.match(line) for line in ref)
    assert [line.replace("ref::", "") for line in ref] == loaded()
    assert sum("ref::" in line for line in ref) == 9
    assert_program(cpu)
    assert re.match(
        r"y: max abs diff [\d.e-]+, max rel diff [\d.e-]+, rms [\d.e-]+: pass$", report[0]
    )
    assert report[1:] == [
        "verification passed: cpu and ref agree in 1 output (rms-tol 1e-05, atol 5e-05, rtol 5e-05)"
    ]


def work_of(timed: list[str]) -> list[str]:
    return [line for line in timed if re.search(r": [\d.e-]+ms, \d+%$", line)]


@pytest.mark.parametrize("version", ["seed", "2.16"])
def test_perf(driver: Driver, models: Path, version: str) -> None:
    options = ("--threads", 1, "-n", 8, "--text-version", version)
    ran = driver("perf", "--cpu", models / "mnist.onnx", *options)
    assert ran.status == 0
    assert "Running performance report ..." in ran.errors
    assert any("runtime's counters" in line for line in ran.errors)
    program, rest = ran.out.split("\n\n" if version == "seed" else "\n\n\n", 1)
    timed, summary, totals, memory, table = (part.splitlines() for part in rest.split("\n\n"))
    # columns fill up panels, whose width is the processor's
    assert re.match(r"Memory: weights (407|41\d|4[2-7]\d) kB, ", memory[0])
    rows = [line.split() for line in table[1:-1]]
    assert sorted(row[9] for row in rows) == sorted(
        line.split(": ")[0].split("(")[0].split(" = ")[-1].split()[-1] for line in work_of(timed)
    )
    # the slowest first, each with its nodes
    times = [float(row[0]) for row in rows]
    assert times == sorted(times, reverse=True)
    assert all(row[10:] for row in rows)
    untimed = [re.sub(r": [\d.e-]+ms, \d+%$", "", line) for line in timed]
    same = without(program.splitlines(), "module:")
    assert without(untimed, "packing of operands") == same
    work = work_of(timed)
    assert kernels(work) == kernels(same) != []
    each = r" / \d+ = [\d.e-]+ms" if version == "2.16" else ""
    assert summary[0] == "Summary:"
    assert all(re.match(rf"[\w: ]+: [\d.e-]+ms{each}, \d+%$", line) for line in summary[1:])
    assert {line.split(": ")[0] for line in summary[1:]} >= set(kernels(same))
    number = r"-?[\d.e+-]+"
    wanted = [
        rf"Rate: {number}/sec$" if version == "seed" else rf"Rate: {number} inferences/sec$",
        rf"Total time: {number}ms \(Min: {number}ms, Max: {number}ms, Mean: {number}ms, "
        rf"Median: {number}ms\)$",
        rf"Percentiles \(90%, 95%, 99%\): \({number}ms, {number}ms, {number}ms\)$",
        rf"Total instructions time: {number}ms$",
        rf"Overhead time: {number}ms, {number}ms$",
        r"Overhead: -?\d+%, -?\d+%$",
        r"\(first: a call without kernels; second: total time minus kernels\)$",
    ]
    if version == "2.16":
        wanted.insert(0, "Batch size: 1$")
    assert len(totals) == len(wanted)
    assert all(re.match(w, line) for w, line in zip(wanted, totals, strict=True))


def test_perf_of_the_reference(driver: Driver) -> None:
    ran = driver("perf", "--ref", "--test", "-n", 4)
    assert ran.status == 0
    assert re.search(r"^@0 = ref::dot\(a,b\) -> \S+, .*: [\d.e-]+ms, 100%$", ran.out, re.M)


def test_rate_counts_the_batch(driver: Driver, models: Path) -> None:
    ran = driver("perf", "--ref", models / "open.onnx", "--batch", 32, "-n", 4)
    total = float(re.search(r"Total time: ([\d.e-]+)ms", ran.out)[1])
    rate = float(re.search(r"Rate: ([\d.e+-]+)/sec", ran.out)[1])
    assert rate == pytest.approx(32e3 / total, rel=1e-4)
    assert "Batch size: 32" in ran.lines
