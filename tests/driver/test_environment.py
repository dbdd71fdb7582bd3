"""MIGRAPHX_ variables: each row of the table is honoured or warned about; env says what is set."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import mgx_mlir
from mgx_mlir.compiler import environment as compile_environment
from mgx_mlir.compiler.models import read_model
from mgx_mlir.compiler.options import CompileOptions
from mgx_mlir.compiler.stages import run_passes
from mgx_mlir.core.errors import UsageError
from mgx_mlir.passes.pipelines import pipeline
from mgx_mlir.printers.text import program_text
from mgx_mlir.rewrite.names import pass_name
from mgx_mlir.tools.driver import environment
from mgx_mlir.tools.driver.environment import PREFIX, VARIABLES
from tests.driver.conftest import Driver
from tests.support.models import model_of

CPU, GPU = (pipeline(target, fast_math=False) for target in ("cpu", "gpu"))

SOURCES = Path(mgx_mlir.__file__).parent


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)
    environment._warned.cache_clear()


def test_what_is_honoured_is_read_somewhere() -> None:
    text = "".join(
        path.read_text()
        for path in [*SOURCES.rglob("*.py"), *SOURCES.joinpath("passes").rglob("*.py")]
        if path.name != "environment.py" or path.parent.name == "compiler"
    )
    spelled = set(re.findall(r"(?<!ORT_)MIGRAPHX_(\w+)", text))  # others are onnxruntime's
    # prefixes that are put in front of names
    for prefix, names in {
        "{_DECODING}": ("ENABLED", "NUM_SPLITS", "MIN_CHUNK_SIZE", "MAX_SPLITS", "THRESHOLD"),
    }.items():
        assert prefix in text
        head = "FLASH_DECODING_" if "DECODING" in prefix else ""
        spelled |= {head + n for n in names}
    assert {n for n, v in VARIABLES.items() if v.honoured} <= spelled
    assert not {n for n, v in VARIABLES.items() if not v.honoured} & spelled
    assert spelled - {""} <= set(VARIABLES) | {"VERSION", "FLASH_DECODING_"}


def test_warnings(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIGRAPHX_TRACE_COMPLE", "1")
    monkeypatch.setenv("MIGRAPHX_NSTREAMS", "2")
    monkeypatch.setenv("MIGRAPHX_TIME_PASSES", "0")
    assert driver("read", "--test").errors == [
        "warning: MIGRAPHX_NSTREAMS has no effect: a program runs on one queue, in the order that "
        "its kernels need",
        "warning: unknown variable MIGRAPHX_TRACE_COMPLE, did you mean 'MIGRAPHX_TRACE_COMPILE'?",
    ]
    assert driver("read", "--test").errors == []  # once


# ---- what is said --------------------------------------------------------------------------------


def test_log_levels(driver: Driver, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = ("read", models / "mnist.onnx")
    info = driver(*read).errors
    assert info == [f"Reading: {models / 'mnist.onnx'}"]
    for quiet in ("none", "error", "warn", "0", "1", 2):
        assert driver(*read, "--log-level", quiet).errors == []
    assert driver(*read, "--log-level", "info").errors == info
    debug = driver(*read, "--log-level", "debug").errors
    assert debug[0].startswith(f"Running [ {mgx_mlir.__version__} ]: mgx-driver read ")
    assert re.match(r"\[ \S+ \] Complete\([\d.e-]+s\): mgx-driver read ", debug[-1])
    assert not any(line.startswith("Pass: ") for line in debug)
    trace = driver("compile", "--ref", "--test", "--log-level", "trace").errors
    assert "Pass: normalize_ops" in trace
    monkeypatch.setenv("MIGRAPHX_LOG_LEVEL", "error")
    assert driver(*read).errors == []
    assert driver(*read, "--log-level", 3).errors == info
    monkeypatch.setenv("MIGRAPHX_LOG_LEVEL", "loud")
    assert "MIGRAPHX_LOG_LEVEL expected none, error" in driver(*read).err
    assert "option '--log-level' expected none" in driver(*read, "--log-level", "loud").err
    # an error is said in any case
    assert driver("read", "missing.onnx", "--log-level", "none").errors


def test_log_files(driver: Driver, models: Path, tmp_path: Path) -> None:
    files = [tmp_path / "a.log", tmp_path / "b.log"]
    files[0].write_text("before\n")
    driver("read", models / "mnist.onnx", "--log-file", *files)
    driver("read", tmp_path / "missing.onnx", "--log-file", *files)
    first, second = (f.read_text().splitlines() for f in files)
    assert first == ["before", *second]
    stamp = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}"
    assert re.fullmatch(rf"{stamp} \[INFO\] Reading: .*mnist.onnx", second[0])
    assert re.fullmatch(rf"{stamp} \[ERROR\] .*missing.onnx: error: .*", second[-1])
    ran = driver("read", "--test", "--log-file", tmp_path / "no" / "a.log")
    assert ran.status == 2
    assert "cannot write the log file" in ran.err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_loses_lines_and_no_work(models: Path, tmp_path: Path) -> None:
    """Lines of stderr, and of a log file beside another one, are lost."""
    whole = tmp_path / "whole.log"
    command = [sys.executable, "-m", "mgx_mlir.tools.driver", "read", models / "mnist.onnx",
               "--log-file", "/dev/full", whole]  # fmt: skip
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0
    assert "/dev/full: the log file cannot be written: no space left on device" in found.stderr
    with open("/dev/full", "w") as full:
        silent = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=full, text=True, check=False
        )
    assert silent.returncode == 0
    assert silent.stdout == found.stdout
    assert whole.read_text().count("Reading: ") == 2


def test_the_onnx_parser(driver: Driver, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIGRAPHX_TRACE_ONNX_PARSER", "1")
    said = driver("read", models / "mnist.onnx").errors
    assert "Parse: MatMul 'fc0' (flat,w0) -> m0" in said
    assert sum(line.startswith("Parse: ") for line in said) == 7


def test_constants_and_quantization(
    driver: Driver, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIGRAPHX_TRACE_PROPAGATE_CONSTANT", "1")
    said = driver("read", models / "mnist.onnx", "-p", "propagate_constant").err
    assert "Constant replace: migraphx.multibroadcast" in said
    nodes = [helper.make_node("Add", ["c", "c"], ["d"]), helper.make_node("Add", ["x", "d"], ["y"])]
    f32 = TensorProto.FLOAT
    held = {"c": np.ones(3, np.float32)}
    path = models / "constant.onnx"
    onnx.save(model_of(nodes, [("x", f32, [3])], [("y", f32, [3])], held), path)
    said = driver("read", path, "-p", "propagate_constant").err
    assert "Constant replace: migraphx.add" in said
    monkeypatch.setenv("MIGRAPHX_TRACE_QUANTIZATION", "1")
    said = driver("compile", "--ref", "--test", "--fp16").err
    assert "Quantized:\n" in said
    assert "half_type" in said


def test_kernels_and_their_code(
    driver: Driver, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIGRAPHX_MLIR_DUMP", str(tmp_path / "mlir"))
    monkeypatch.setenv("MIGRAPHX_MLIR_DUMP_TO_MXR", str(tmp_path / "mxr"))
    monkeypatch.setenv("MIGRAPHX_GPU_DUMP_ASM", "1")
    monkeypatch.setenv("MIGRAPHX_TRACE_MLIR", "1")
    ran = driver("compile", "--cpu", "--threads", 1, models / "mnist.onnx")
    assert ran.status == 0
    assert len(list((tmp_path / "mlir").glob("*.mlir"))) >= 3
    assert "func.func @main(" in ran.err  # the lowered module
    assert re.search(r"^\s+ret", ran.err, re.M)  # assembly
    kernels = sorted(p.name for p in (tmp_path / "mxr").iterdir())
    assert kernels == ["kernel0_dot_add_relu.mxr", "kernel1_dot_add.mxr", "kernel2_softmax.mxr"]
    read = driver("read", tmp_path / "mxr" / kernels[0]).out
    assert [op for op in ("dot", "add", "relu") if f"= {op}(" in read] == ["dot", "add", "relu"]
    monkeypatch.delenv("MIGRAPHX_MLIR_DUMP")
    monkeypatch.delenv("MIGRAPHX_MLIR_DUMP_TO_MXR")
    monkeypatch.delenv("MIGRAPHX_GPU_DUMP_ASM")
    monkeypatch.delenv("MIGRAPHX_TRACE_MLIR")
    monkeypatch.setenv("MIGRAPHX_DEBUG_SAVE_TEMP_DIR", "1")
    ran = driver("compile", "--cpu", "--threads", 1, "--test")
    [folder] = re.findall(r"^Temporary files: (.*)$", ran.err, re.M)
    assert list(Path(folder).iterdir())


# ---- what is compiled ----------------------------------------------------------------------------


def test_pipelines(monkeypatch: pytest.MonkeyPatch) -> None:
    adjusted = compile_environment.adjusted
    assert adjusted(CPU, "cpu") == CPU
    monkeypatch.setenv("MIGRAPHX_ENABLE_NHWC", "0")
    monkeypatch.setenv("MIGRAPHX_ENABLE_REWRITE_DOT", "0")
    monkeypatch.setenv("MIGRAPHX_SPLIT_REDUCE_SIZE", "-1")
    gone = {"layout_convolution", "rewrite_dot", "split_reduce"}
    kept = tuple(s for s in CPU if pass_name(s.partition("{")[0]) not in gone)
    assert len(kept) == len(CPU) - len(gone)
    assert adjusted(CPU, "cpu") == kept
    assert not any("rewrite-dot" in s for s in adjusted(GPU, "gpu"))
    monkeypatch.setenv("MIGRAPHX_ENABLE_NHWC", "1")
    monkeypatch.setenv("MIGRAPHX_ENABLE_REWRITE_DOT", "1")
    monkeypatch.setenv("MIGRAPHX_SPLIT_REDUCE_SIZE", "100")
    monkeypatch.setenv("MIGRAPHX_REWRITE_LRN", "1")
    found = adjusted(GPU, "gpu")
    assert "mgx-split-reduce{split-size=100}" in found
    assert "mgx-rewrite-pooling{rewrite-lrn=true}" in found
    monkeypatch.setenv("MIGRAPHX_FLASH_DECODING_ENABLED", "1")
    assert "mgx-fuse-attention{splits=-1 flash=true min-wide=16}" in adjusted(GPU, "gpu")
    assert not any("splits" in s for s in adjusted(CPU, "cpu"))
    monkeypatch.setenv("MIGRAPHX_FLASH_DECODING_NUM_SPLITS", "4")
    monkeypatch.setenv("MIGRAPHX_FLASH_DECODING_THRESHOLD", "99")
    wanted = "mgx-fuse-attention{splits=4 threshold=99 flash=true min-wide=16}"
    assert wanted in adjusted(GPU, "gpu")
    monkeypatch.setenv("MIGRAPHX_SPLIT_REDUCE_SIZE", "many")
    with pytest.raises(UsageError, match="MIGRAPHX_SPLIT_REDUCE_SIZE expected an integer"):
        adjusted(CPU, "cpu")


@pytest.mark.parametrize("name", sorted(compile_environment.CHANGE))
def test_the_cache_knows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = CompileOptions("cpu").key()
    monkeypatch.setenv(name, "1")
    assert CompileOptions("cpu").key() != before


def kernels(path: Path) -> list[str]:
    """The kernels that the passes of cpu form."""
    program = read_model(path)
    run_passes(program, CompileOptions("cpu"))
    return re.findall(r"cpu::\w+", program_text(program, kernel_prefix="cpu"))


@pytest.mark.parametrize(
    ("name", "model", "lost"),
    [
        ("DISABLE_POINTWISE_FUSION", "logs.onnx", "cpu::neg_abs_neg_log"),
        ("DISABLE_POINTWISE_FUSION", "mnist.onnx", "cpu::dot_add_relu"),
        ("DISABLE_REDUCE_FUSION", "tail.onnx", "cpu::exp_reduce_sum"),
        ("DISABLE_MULTI_OUTPUT_FUSION", "twice.onnx", "cpu::exp_neg"),
    ],
)
def test_fusions(models: Path, monkeypatch: pytest.MonkeyPatch, name: str, model: str,
                 lost: str) -> None:  # fmt: skip
    f32 = TensorProto.FLOAT
    exp = helper.make_node("Exp", ["x"], ["e"])
    nodes = [exp, helper.make_node("ReduceSum", ["e", "a"], ["y"])]
    held = {"a": np.array([1])}
    onnx.save(
        model_of(nodes, [("x", f32, [4, 8])], [("y", f32, [4, 1])], held), models / "tail.onnx"
    )
    nodes = [exp, helper.make_node("Neg", ["e"], ["y"])]
    outputs = [("e", f32, [4, 8]), ("y", f32, [4, 8])]
    onnx.save(model_of(nodes, [("x", f32, [4, 8])], outputs), models / "twice.onnx")
    fused = kernels(models / model)
    assert lost in fused
    monkeypatch.setenv(f"{PREFIX}{name}", "1")
    apart = kernels(models / model)
    assert lost not in apart
    assert len(apart) > len(fused)


def test_flags_of_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compile_environment.backend_flags("gpu") == ()
    monkeypatch.setenv("MIGRAPHX_GPU_DEBUG", "1")
    monkeypatch.setenv("MIGRAPHX_GPU_COMPILE_PARALLEL", "1")
    assert compile_environment.backend_flags("gpu") == (
        "--iree-hal-executable-debug-level=3", "--mlir-disable-threading",
    )  # fmt: skip
    assert compile_environment.backend_flags("cpu") == ("--mlir-disable-threading",)
    monkeypatch.setenv("MIGRAPHX_GPU_OPTIMIZE", "-O3")
    assert compile_environment.level("gpu", "O2") == "O3"
    assert compile_environment.level("cpu", "O2") == "O2"


# ---- env -----------------------------------------------------------------------------------------


def test_env(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIGRAPHX_TIME_PASSES", "1")
    found = json.loads(driver("env", "--json").out)
    assert found["versions"]["mgx_mlir"] == mgx_mlir.__version__
    assert found["processor"]["threads"] >= 1
    assert found["cache"]["path"] == os.environ["MGX_CACHE_DIR"]
    assert found["tuning"]["path"] == os.path.join(os.environ["MGX_CACHE_DIR"], "tuning.json")
    assert found["environment"]["MIGRAPHX_TIME_PASSES"] == "1"
    text = driver("env").out
    for group in found:
        assert f"{group}:\n" in text
    assert f"  mgx_mlir: {mgx_mlir.__version__}" in text
    assert driver("env", "x").status == 2
