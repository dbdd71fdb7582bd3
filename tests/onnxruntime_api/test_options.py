"""Options: types, what is honoured, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import mgx_mlir
import mgx_mlir.onnxruntime as ours
from mgx_mlir.compiler.sized_program import SizedProgram
from mgx_mlir.integrations.onnxruntime.gpu_options import GpuOptions
from mgx_mlir.onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument, NotImplemented
from mgx_mlir.targets import background
from tests.onnxruntime_api.conftest import K, W, X, two_outputs
from tests.support.models import parsed

FEED = {"x": X, "k": K}


def test_values_and_types(ort: ModuleType) -> None:
    o = ort.SessionOptions()
    assert (o.intra_op_num_threads, o.enable_profiling, o.logid) == (0, False, "")
    assert int(o.graph_optimization_level) == 99
    o.intra_op_num_threads = 2
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    o.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    assert (o.intra_op_num_threads, int(o.graph_optimization_level)) == (2, 0)
    with pytest.raises(AttributeError):
        o.no_option = 1
    with pytest.raises(TypeError):
        o.intra_op_num_threads = "two"
    with pytest.raises(TypeError):
        o.graph_optimization_level = 99
    o.add_session_config_entry("a", "b")
    assert o.get_session_config_entry("a") == "b"
    with pytest.raises(RuntimeError):
        o.get_session_config_entry("c")
    assert not o.has_providers()
    r = ort.RunOptions()
    assert (r.terminate, r.log_severity_level) == (False, -1)
    r.add_run_config_entry("a", "b")
    assert r.get_run_config_entry("a") == "b"


def test_free_dims_get_sizes(ort: ModuleType) -> None:
    o = ort.SessionOptions()
    o.add_free_dimension_override_by_name("batch", 2)
    o.add_free_dimension_override_by_name("no_dim_of_the_model", 2)
    made = ort.InferenceSession(two_outputs(), o)
    assert [a.shape for a in made.get_inputs()] == [[2, 3], [3]]
    assert np.array_equal(made.run(["y"], FEED)[0], X + W)
    with pytest.raises(Exception, match="INVALID_ARGUMENT"):
        made.run(["y"], {"x": np.ones((4, 3), np.float32), "k": K})


def test_free_dims_by_denotation(ort: ModuleType) -> None:
    made = parsed("(float[n,3] x) => (float[] y) { y = Neg (x) }")
    made.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    o = ort.SessionOptions()
    o.add_free_dimension_override_by_denotation("DATA_BATCH", 2)
    made = ort.InferenceSession(made.SerializeToString(), o)
    assert made.get_inputs()[0].shape == [2, 3]
    assert np.array_equal(made.run(None, {"x": X})[0], -X)


def test_initializers_get_values() -> None:
    o = ours.SessionOptions()
    o.add_initializer("w", ours.OrtValue.ortvalue_from_numpy(K))
    assert np.array_equal(ours.InferenceSession(two_outputs(), o).run(["y"], FEED)[0], X + K)
    for name, value, wrong in (
        ("q", K, "no initializer 'q'"),
        ("w", K.astype(np.float64), "expected FLOAT, got DOUBLE"),
        ("w", K[:2], r"expected \[3\], got \[2\]"),
    ):
        o = ours.SessionOptions()
        o.add_initializer(name, ours.OrtValue.ortvalue_from_numpy(value))
        with pytest.raises(InvalidArgument, match=wrong):
            ours.InferenceSession(two_outputs(), o)


def test_a_profile(ort: ModuleType, tmp_path: Path) -> None:
    o = ort.SessionOptions()
    o.enable_profiling = True
    o.profile_file_prefix = str(tmp_path / "times")
    made = ort.InferenceSession(two_outputs(), o)
    for _ in range(3):
        made.run(None, FEED)
    assert made.get_profiling_start_time_ns() > 0
    path = Path(made.end_profiling())
    assert path.parent == tmp_path
    assert path.name.startswith("times_")
    events = json.loads(path.read_text())
    runs = [e for e in events if e["name"] == "model_run"]
    assert len(runs) == 3
    assert all(e["ph"] == "X" and e["dur"] >= 0 and e["cat"] == "Session" for e in runs)
    assert any(e["name"] == "session_initialization" for e in events)
    assert len(made.run(None, FEED)) == 2  # still runs
    made = ort.InferenceSession(two_outputs())
    assert (made.end_profiling(), made.get_profiling_start_time_ns()) == ("", 0)


def test_an_optimised_model(tmp_path: Path) -> None:
    o = ours.SessionOptions()
    o.optimized_model_filepath = str(tmp_path / "m.mxr")
    ours.InferenceSession(two_outputs(), o)
    again = ours.InferenceSession(tmp_path / "m.mxr")
    assert [(a.name, a.type, a.shape) for a in again.get_inputs()] == [
        ("x", "tensor(float)", ["batch", 3]), ("k", "tensor(float)", [3]),
    ]  # fmt: skip
    assert np.array_equal(again.run(["z"], FEED)[0], (X + W) * K)
    o.optimized_model_filepath = str(tmp_path / "m.mlir")
    ours.InferenceSession(two_outputs(), o)
    assert "migraphx.add" in (tmp_path / "m.mlir").read_text()
    o.optimized_model_filepath = str(tmp_path / "m.onnx")
    with pytest.warns(UserWarning, match="is not written"):
        ours.InferenceSession(two_outputs(), o)
    assert not (tmp_path / "m.onnx").exists()


def test_levels_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, object]] = []
    compile = mgx_mlir.compile

    def noting(*args: object, **named: object) -> object:
        seen.append(named)
        return compile(*args, **named)

    monkeypatch.setattr(mgx_mlir, "compile", noting)
    for level, fast in (("ORT_ENABLE_BASIC", False), ("ORT_ENABLE_EXTENDED", True)):
        o = ours.SessionOptions()
        o.graph_optimization_level = getattr(ours.GraphOptimizationLevel, level)
        o.intra_op_num_threads = 1
        ours.InferenceSession(two_outputs(), o)
        assert (seen[-1]["fast_math"], seen[-1]["threads"]) == (fast, 1)


@pytest.mark.parametrize(("given", "wanted"), [(0, False), (2, True), (None, False), (0.0, False)])
def test_switches_take_numbers(ort: ModuleType, given: Any, wanted: bool) -> None:
    o, r = ort.SessionOptions(), ort.RunOptions()
    o.enable_mem_pattern, r.terminate = given, given
    assert o.enable_mem_pattern is wanted
    assert r.terminate is wanted
    for wrong in ("yes", []):
        with pytest.raises(TypeError):
            o.enable_mem_pattern = wrong


def test_options_of_the_other_package() -> None:
    theirs = onnxruntime.SessionOptions()
    theirs.intra_op_num_threads = 1
    theirs.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    made = ours.InferenceSession(two_outputs(), theirs)
    own = made.get_session_options()
    assert own.intra_op_num_threads == 1
    assert own.graph_optimization_level is ours.GraphOptimizationLevel.ORT_ENABLE_BASIC
    value = onnxruntime.OrtValue.ortvalue_from_numpy(X)
    [y] = made.run_with_ort_values(["y"], {"x": value, "k": K})
    assert np.array_equal(y.numpy(), X + W)
    with pytest.raises(TypeError, match="expected SessionOptions"):
        ours.InferenceSession(two_outputs(), {"threads": 1})


def test_what_is_refused() -> None:
    with pytest.raises(NotImplemented, match="register_custom_ops_library"):
        ours.SessionOptions().register_custom_ops_library("ops.so")
    with pytest.raises(NotImplemented, match="ModelCompiler"):
        ours.ModelCompiler(None, "m.onnx")
    with pytest.raises(NotImplemented, match="sparse_coo_from_numpy"):
        ours.SparseTensor.sparse_coo_from_numpy()
    o = ours.SessionOptions()
    o.add_session_config_entry("session.load_model_format", "ORT")
    with pytest.raises(NotImplemented, match="ORT format"):
        ours.InferenceSession(two_outputs(), o)


def test_a_gpu_provider_compiles_for_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[object, ...]] = []

    def compile(model: object, target: str, **named: object) -> object:
        seen.append((target, named.get("device_id"), named.get("arch"), named.get("emulate")))
        return cpu(model, "cpu")

    cpu = mgx_mlir.compile
    monkeypatch.setattr(mgx_mlir, "compile", compile)
    options = {"device_id": 0, "arch": "gfx942", "emulate": 1, "migraphx_mem": 5}
    with pytest.warns(UserWarning, match="unknown options of 'MIGraphXEx.*: migraphx_mem; it has"):
        made = ours.InferenceSession(
            two_outputs(), providers=[("MIGraphXExecutionProvider", options)]
        )
    assert seen == [("gpu", 0, "gfx942", True)]
    assert made.get_providers() == ["MIGraphXExecutionProvider", "CPUExecutionProvider"]
    made = ours.InferenceSession(
        two_outputs(),
        providers=["ROCMExecutionProvider"],
        provider_options=[{"emulate": "1", "migraphx_fp16_enable": "1"}],
    )
    assert seen[-1][0] == "gpu"
    half = (X.astype(np.float16) + W.astype(np.float16)).astype(np.float32)
    assert np.array_equal(made.run(["y"], FEED)[0], half)


def dense(path: Path) -> Path:
    rng = np.random.default_rng(0)
    model = parsed(
        "(float[4,16] x) => (float[4,8] y) { [a] h = MatMul (x, v) [b] y = MatMul (h, w) }",
        {"v": rng.standard_normal((16, 16)), "w": rng.standard_normal((16, 8))},
    )
    onnx.save(model, path / "dense.onnx")
    return path / "dense.onnx"


def on_a_gpu(path: Path, **options: Any) -> ours.InferenceSession:
    given = {"emulate": 1, **options}
    return ours.InferenceSession(str(path), providers=[("MIGraphXExecutionProvider", given)])


@pytest.fixture
def gpu_is_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = mgx_mlir.compile
    keys = ("emulate", "arch", "device_id")

    def compile(model: object, _: str, **named: Any) -> object:
        return cpu(model, "cpu", **{k: v for k, v in named.items() if k not in keys})

    monkeypatch.setattr(mgx_mlir, "compile", compile)


@pytest.mark.usefixtures("gpu_is_a_cpu")
def test_8_bits_of_a_gpu_provider(tmp_path: Path) -> None:
    path = dense(tmp_path)
    x = np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32)
    full = on_a_gpu(path).run(None, {"x": x})[0]
    scale = np.abs(full).max()
    table = {"x": [-4.0, 4.0], "h": [-20.0, 20.0]}
    (tmp_path / "table.json").write_text(json.dumps(table))
    kernels = []
    for options in (
        {"migraphx_int8_enable": "1"},
        {
            "migraphx_int8_enable": True,
            "migraphx_int8_calibration_table_name": tmp_path / "table.json",
        },
        {"migraphx_fp8_enable": True, "migraphx_fp16_enable": "1"},
    ):
        made = on_a_gpu(path, **options)
        error = np.abs(made.run(None, {"x": x})[0] - full).max() / scale
        assert 1e-4 < error < 0.1, options  # other numbers than in f32, and near
        assert made._programs.main is not None
        kernels.append(len(made._programs.main.kernels))
    assert kernels[1] < kernels[0]  # no run looks for the ranges that the table states


@pytest.mark.usefixtures("gpu_is_a_cpu")
def test_the_compiled_model_of_a_gpu_provider(tmp_path: Path) -> None:
    path, saved = dense(tmp_path), tmp_path / "m.mxr"
    cache = tmp_path / "cache"
    both = {"migraphx_save_compiled_model": 1, "migraphx_save_model_path": saved}
    made = on_a_gpu(path, **both, migraphx_model_cache_dir=cache)
    assert saved.stat().st_size
    background.settle()
    assert [*cache.rglob("*")]
    load = {"migraphx_load_compiled_model": "1", "migraphx_load_model_path": str(saved)}
    model = made._programs.model
    found = GpuOptions.of(load).loaded(model, "cpu")
    assert found is not None
    x = np.ones((4, 16), np.float32)
    assert np.array_equal(found.run({"x": x})[0], made.run(None, {"x": x})[0])
    with pytest.raises(InvalidArgument, match="expected code for gpu, got code for cpu"):
        GpuOptions.of(load).loaded(model)
    with pytest.raises(InvalidArgument, match="the file's code is for cpu"):
        on_a_gpu(path, **load)
    other = ours.InferenceSession(two_outputs())._programs.model
    with pytest.raises(InvalidArgument, match="inputs of the compiled program differ"):
        GpuOptions.of(load).loaded(other, "cpu")
    saved.unlink()
    with pytest.warns(UserWarning, match="does not exist: compiling the model"):
        on_a_gpu(path, **load)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"migraphx_int8_enable": "1", "migraphx_fp8_enable": "1"}, "exclude each other"),
        ({"migraphx_save_compiled_model": "1"}, "needs 'migraphx_save_model_path'"),
        ({"migraphx_int8_calibration_table_name": "t"}, "needs 'migraphx_int8_enable'"),
        ({"device_id": "x"}, "'device_id' expected a number"),
    ],
)
def test_wrong_options_of_a_gpu_provider(options: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        GpuOptions.of(options)


def test_options_that_change_nothing_are_no_warnings(recwarn: pytest.WarningsRecorder) -> None:
    """onnxruntime takes any option of its CPU provider; packages pass those of its arena."""
    options = [("CPUExecutionProvider", {"arena_extend_strategy": "kSameAsRequested"})]
    ours.InferenceSession(two_outputs(), providers=options)
    assert not recwarn.list


def test_a_session_is_there_before_its_model_is_compiled() -> None:
    """The entries reach the compile: a call of another size is padded, or the reference answers."""
    o = ours.SessionOptions()
    o.add_session_config_entry("mgx.background", "1")
    o.add_session_config_entry("mgx.sizes", "n=1,4")
    model = parsed("(float[n,3] x) => (float[n,3] y) { y = Neg (x) }").SerializeToString()
    made = ours.InferenceSession(model, o)
    program = made._programs.main
    assert isinstance(program, SizedProgram)
    assert np.array_equal(made.run(None, {"x": X})[0], -X)
    assert program.wait() is program
    assert program.sizes == [1, 4]
    assert np.array_equal(made.run(["y"], {"x": X})[0], -X)
    with pytest.raises(InvalidArgument, match="size 5 of n is not compiled"):
        made.run(None, {"x": np.ones((5, 3), np.float32)})


@pytest.mark.parametrize(
    ("key", "value"), [("mgx.background", "yes"), ("mgx.sizes", "n=1,x"), ("mgx.sizes", "n=0")]
)
def test_wrong_entries_on_the_compile(key: str, value: str) -> None:
    o = ours.SessionOptions()
    o.add_session_config_entry(key, value)
    with pytest.raises(InvalidArgument, match=r"expected"):
        ours.InferenceSession(two_outputs(), o)
