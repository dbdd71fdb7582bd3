"""Programs for NVIDIA GPUs, without a GPU: their PTX runs on the CPU, under IREE's CUDA driver.

The stand-in (cuda_stand_in.cpp) finds memory faults, barriers in diverged code, and reads of shared
memory ahead of its copies. Numbers are compared with onnxruntime's.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto

import mgx_mlir
from tests.runtime import cuda_library
from tests.support.models import MS, bytes_of, node, parsed

STORED = Path(__file__).parents[1] / "families" / "stored"
PADDED = "gru_tagger_padded.script.17.dynamic"
RUN = """
import json, sys
import numpy as np
import mgx_mlir
program = mgx_mlir.load(sys.argv[1])
for _ in range(int(sys.argv[3])):
    with np.load(sys.argv[2]) as held:
        inputs = {n: held[n] for n in held}
    np.savez(sys.argv[1] + ".npz", *program.run(inputs))
print(json.dumps({"done": True}), flush=True)
"""
# the graph, and the largest error; the depth of the f16 matmul is of whole tiles and a rest
GRAPHS = {
    "matmul-f16": ("""(float16[96,136] x, float16[136,128] w) => (float16[96,128] y)
        { y = MatMul (x, w) }""", 2e-3),
    "matmul-dynamic": ("(float[n,72] x, float[72,40] w) => (float[n,40] y) { y = MatMul (x, w) }",
                       1e-5),
    "one-row": ("""(float16[1,512] x, float16[512,1024] w) => (float16[1,1024] y)
        { y = MatMul (x, w) }""", 2e-3),
    "softmax": ("(float[5,1000] x) => (float[5,1000] y) { y = Softmax (x) }", 1e-5),
    "cumulative": ("""(float[3,700] x) => (float[3,700] y) <int64 axis = {1}>
        { y = CumSum (x, axis) }""", 1e-5),
    "largest": ("""(float[7,333] x) => (int64[7] y)
        { y = ArgMax <axis = 1, keepdims = 0> (x) }""", 0.0),
    "scatter": ("""(float[40,8] x, int64[60,1] i, float[60,8] u) => (float[40,8] y)
        { y = ScatterND <reduction = "add"> (x, i, u) }""", 1e-5),
    "convolution": ("""(float16[1,64,14,14] x, float16[64,64,3,3] w) => (float16[1,64,14,14] y)
        { y = Conv <pads = [1, 1, 1, 1]> (x, w) }""", 2e-3),
}  # fmt: skip


Arrays = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def folder() -> Path:
    return cuda_library.built()


def run(
    folder: Path, made: Path, inputs: dict[str, np.ndarray], times: int, **more: str
) -> list[np.ndarray]:
    """Return the results of the last of some calls."""
    given = made.with_suffix(".in.npz")
    np.savez(given, allow_pickle=False, **inputs)
    cuda_library.ran(folder, RUN, str(made), str(given), str(times), **more)
    with np.load(f"{made}.npz") as held:
        return [held[n] for n in held.files]


@pytest.mark.parametrize("name", GRAPHS)
def test_kernels_compute_what_they_should(name: str, folder: Path, tmp_path: Path) -> None:
    text, limit = GRAPHS[name]
    model = parsed(text)
    rng = np.random.default_rng(0)
    inputs: Arrays = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        dims = [d.dim_value or 37 for d in kind.shape.dim]
        drawn = rng.standard_normal(dims) / max(dims[0], 1) ** (value.name == "w")
        if value.name == "i":
            inputs[value.name] = rng.integers(0, 40, dims)
        else:
            inputs[value.name] = drawn.astype(np.float16 if kind.elem_type == 10 else np.float32)
    made = tmp_path / "program.mxr"
    with mgx_mlir.compile(model, "gpu", arch="sm_89") as program:
        mgx_mlir.save(program, made)
    [found] = run(folder, made, inputs, 1)
    [wanted] = ort.InferenceSession(model.SerializeToString()).run(None, inputs)
    assert found.shape == wanted.shape
    error = np.abs(found.astype(np.float64) - wanted).max()
    assert error <= limit * np.abs(wanted.astype(np.float64)).max()


@pytest.mark.parametrize(("rows", "bits"), [("n", 4), (40, 8)])
def test_many_rows_by_few_bits(rows: int | str, bits: int, folder: Path, tmp_path: Path) -> None:
    """Weights are widened ahead of a matmul by matrix instructions: numpy's numbers in f64."""
    rng, depth, columns = np.random.default_rng(1), 288, 256
    codes = rng.integers(0, 256, (columns, depth // 32, 4 * bits)).astype(np.uint8)
    scales = (rng.random((columns, depth // 32)) / 8).astype(np.float16)
    half = TensorProto.FLOAT16
    nodes = [node("MatMulNBits", "x q s", "y", domain=MS, K=depth, N=columns, bits=bits,
                  block_size=32)]  # fmt: skip
    model = bytes_of(nodes, {"x": (half, [rows, depth])}, {"y": (half, [rows, columns])},
                     {"q": codes, "s": scales}, ms=1)  # fmt: skip
    made = tmp_path / "program.mxr"
    with mgx_mlir.compile(model, "gpu", arch="sm_89") as program:
        mgx_mlir.save(program, made)
    x = rng.standard_normal((40, depth)).astype(np.float16)
    [found] = run(folder, made, {"x": x}, 1)
    halves = np.stack([codes & 15, codes >> 4], -1) if bits == 4 else codes
    wide = halves.reshape(columns, -1, 32).astype(np.float64) - (1 << (bits - 1))
    weights = (wide * scales[..., None]).reshape(columns, depth)
    wanted = x.astype(np.float64) @ weights.T
    assert np.abs(found - wanted).max() <= 2e-3 * np.abs(wanted).max()


def test_a_loop_that_appends_runs_while_the_device_is_late(folder: Path, tmp_path: Path) -> None:
    """Copies that wait for copies: IREE's queue corrupts memory unless the host waits ahead."""
    path = STORED / f"{PADDED}.onnx"
    made = tmp_path / "program.mxr"
    with mgx_mlir.compile(path, "gpu", arch="sm_89") as program:
        mgx_mlir.save(program, made)
    with np.load(STORED / f"{PADDED}.0.npz") as held:
        inputs = {n: held[n] for n in held}
    [found] = run(folder, made, inputs, 12, STAND_IN_EVENT_US="500")
    [wanted] = ort.InferenceSession(path).run(None, inputs)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


# a kernel of two warps, run by its PTX: the status, and what is said
KERNEL = """
.version 8.4
.target sm_89
.address_size 64
.extern .shared .align 16 .b8 memory[];
.visible .entry k(.param .u64 .ptr .global .align 16 k_param_0)
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  ld.param::entry.b64 %rd1, [k_param_0];
  mov.b64 %rd2, memory;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  add.s64 %rd5, %rd1, %rd3;
  xor.b32 %r2, %r1, 32;
  mul.wide.u32 %rd6, %r2, 4;
  add.s64 %rd6, %rd2, %rd6;
  setp.lt.u32 %p1, %r1, 16;
BODY
  ret;
}
"""
LAUNCH = """
import ctypes, json, sys
cuda = ctypes.CDLL("libcuda.so.1")
P = ctypes.c_void_p
module, function, memory = P(), P(), P()
status = cuda.cuModuleLoadDataEx(ctypes.byref(module), sys.argv[1].encode(), 0, None, None)
if status == 0:
    cuda.cuModuleGetFunction(ctypes.byref(function), module, b"k")
    cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(256))
    arguments = (P * 1)(ctypes.addressof(memory))
    status = cuda.cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 256, None, arguments, None)
found = list((ctypes.c_uint32 * 64).from_address(memory.value)) if status == 0 else []
print(json.dumps({"status": status, "found": found}))
"""
EXCHANGE = "st.shared.b32 [%rd4], %r1; {} ld.shared.b32 %r3, [%rd6]; st.global.b32 [%rd5], %r3;"
ASYNC = """cp.async.ca.shared.global [%rd4], [%rd5], 4; cp.async.commit_group; {}
    ld.shared.b32 %r3, [%rd4]; st.global.b32 [%rd5], %r3;"""
FAULTS = {
    "a barrier between": (EXCHANGE.format("bar.sync 0;"), 0),
    "no barrier between": (EXCHANGE.format(""), 719),
    "both warps write the same": (
        "st.shared.b32 [%rd2], 7; xor.b32 %r3, %r1, 32; st.global.b32 [%rd5], %r3;", 0),
    "a part of a warp at a barrier": ("@%p1 bar.sync 0;", 719),
    "a shuffle that some lanes leave out": (
        "@%p1 bra A; shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1; bra B; A: bar.sync 0; B: ", 719),
    "beyond an allocation": ("st.global.b32 [%rd5+4], %r1;", 700),
    "beyond shared memory": ("st.shared.b32 [%rd4+4], %r1;", 700),
    "no multiple of the access": ("st.global.b64 [%rd5], %rd3;", 716),
    "an instruction that is not known": ("wgmma.fence.sync.aligned;", 218),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_kernels_are_found(name: str, folder: Path) -> None:
    body, status = FAULTS[name]
    [found] = cuda_library.ran(folder, LAUNCH, KERNEL.replace("BODY", body))
    assert found["status"] == status
    if status == 0:
        assert found["found"] == [i ^ 32 for i in range(64)]


@pytest.mark.parametrize("wait", ["cp.async.wait_group 0;", "cp.async.wait_group 1;"])
def test_a_copy_arrives_when_it_is_waited_for(wait: str, folder: Path) -> None:
    [found] = cuda_library.ran(folder, LAUNCH, KERNEL.replace("BODY", "st.global.b32 [%rd5], %r1;"
                                                              + ASYNC.format(wait)))  # fmt: skip
    arrived = wait.endswith("0;")
    assert found["found"] == [i if arrived else 0xFFFFFFFF for i in range(64)]
