"""Launches and buffers of nothing are left out by the program, where a target takes none.

The guards are tried on the host's CPU, which has the same operations behind the phase `hal`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mgx_mlir.programs.lowered import Lowered
from mgx_mlir.runtime.iree_runtime import LoadedModule
from mgx_mlir.targets import flags, worker, worker_barriers
from mgx_mlir.targets.base import GpuTarget
from mgx_mlir.targets.cache import Cache
from mgx_mlir.targets.child import IreeCompiler

# three launches and two transient buffers of dynamic sizes: a, b -> ((a + b) (a + b)^T) (a + b)
DYNAMIC = """
#i = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>
func.func @main(%a: tensor<?x8xf32>, %b: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?x8xf32>
  %x = arith.addf %a, %b : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<8x?xf32>
  %y = linalg.generic {indexing_maps = [#t, #i], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x8xf32>) outs(%e : tensor<8x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
  } -> tensor<8x?xf32>
  %f = tensor.empty(%n, %n) : tensor<?x?xf32>
  %g = linalg.fill ins(%zero : f32) outs(%f : tensor<?x?xf32>) -> tensor<?x?xf32>
  %h = linalg.matmul ins(%x, %y : tensor<?x8xf32>, tensor<8x?xf32>)
      outs(%g : tensor<?x?xf32>) -> tensor<?x?xf32>
  %k = tensor.empty(%n) : tensor<?x8xf32>
  %l = linalg.fill ins(%zero : f32) outs(%k : tensor<?x8xf32>) -> tensor<?x8xf32>
  %r = linalg.matmul ins(%h, %x : tensor<?x?xf32>, tensor<?x8xf32>)
      outs(%l : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %r : tensor<?x8xf32>
}
"""
# compiles a module for the host's CPU with guards: worker's file, module, result, flags
GUARDED = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("worker", sys.argv[1])
worker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(worker)
options = sys.argv[4:]
worker._set_options()
kernels, empty = worker._beside("worker_kernels"), worker._beside("worker_empty")
ir = worker._bindings()
stage = kernels.Stage(open(sys.argv[2], "rb").read(), options, verify=True)
assert stage.read and stage.run("", "hal")
print(empty.guard(ir, stage.module))
print(stage.module)
assert stage.run("hal", "end") and stage.module.verify()
from iree.compiler.api import Output
output = Output.open_membuffer()
with output:
    stage.invocation.output_vm_bytecode(output)
    open(sys.argv[3], "wb").write(bytes(output.map_memory()))
stage.close()
"""


def guarded(text: str, tmp_path: Path) -> tuple[int, str, bytes]:
    """Return the number of guards, the guarded text, and the module."""
    source, out = tmp_path / "in.mlir", tmp_path / "out.vmfb"
    source.write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", GUARDED, str(worker.__file__), str(source), str(out),
         *flags.cpu_ladder()[0].flags],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    count, _, host = done.stdout.partition("\n")
    return int(count), host, out.read_bytes()


def test_a_guarded_program_computes_what_it_did_and_nothing_of_nothing(tmp_path: Path) -> None:
    count, text, vmfb = guarded(DYNAMIC, tmp_path)
    launches = len(re.findall(r"hal\.command_buffer\.dispatch<", text))
    buffers = len(re.findall(r"hal\.device\.queue\.alloca<", text))
    assert launches >= 3
    assert buffers >= 1
    assert count == launches + buffers
    assert len(re.findall(r"scf\.if %\w+ \{\s+hal\.command_buffer\.dispatch<", text)) == launches
    assert text.count("arith.maxui") >= buffers
    module = LoadedModule(vmfb, threads=1)
    rng = np.random.default_rng(0)
    for rows in (0, 1, 5, 0, 37):
        a, b = (rng.standard_normal((rows, 8)).astype(np.float32) for _ in range(2))
        (y,) = module.run([a, b])
        x = a.astype(np.float64) + b
        np.testing.assert_allclose(y, x @ x.T @ x, rtol=2e-5, atol=2e-5)


def test_launches_of_fixed_sizes_are_left_as_they_are(tmp_path: Path) -> None:
    count, text, vmfb = guarded(DYNAMIC.replace("?", "4").replace("(%n)", "()")
                                .replace("(%n, %n)", "()"), tmp_path)  # fmt: skip
    assert count == 0
    assert "scf.if" not in text
    (y,) = LoadedModule(vmfb, threads=1).run([np.ones((4, 8), np.float32)] * 2)
    np.testing.assert_array_equal(y, np.full((4, 8), 2.0 * 32 * 4, np.float32))


@pytest.mark.parametrize("process", ["worker", "binary"])
def test_both_ways_to_compile_guard_programs_for_cuda(
    process: str, worker: IreeCompiler, binary: IreeCompiler, cache: Cache
) -> None:
    compiler = worker if process == "worker" else binary
    # a worker takes no options of a process
    of_process = ("block-dyn", "nvvm-reflect")
    flags = GpuTarget(architecture="sm_86").ladder()[0].flags
    options = [f for f in flags if not any(name in f for name in of_process)]
    made = compiler.run(DYNAMIC.encode(), options, statistics=True)
    assert made.via == process
    assert "dispatch" in made.reports["statistics"]
    plain = GpuTarget(architecture="gfx942").compile_lowered(
        Lowered(DYNAMIC.encode()), compiler=compiler, cache=cache
    )
    assert plain.fallbacks == ()
    failed = DYNAMIC.replace("arith.addf", "arith.addq")
    with pytest.raises(Exception, match="addq"):
        compiler.run(failed.encode(), options, reproducer=False)


def test_barriers_of_tensors_are_taken_out_and_those_of_scalars_stay() -> None:
    from iree.compiler import ir

    text = """func.func @main(%a: tensor<?xf32>, %n: index) -> (tensor<?xf32>, index) {
  %b = util.optimization_barrier %a : tensor<?xf32>
  %m = util.optimization_barrier %n : index
  %c = util.optimization_barrier %b : tensor<?xf32>
  return %c, %m : tensor<?xf32>, index
}"""
    with ir.Context():
        module = ir.Module.parse(text)
        assert worker_barriers.drop(ir, module.operation) == 2
        assert module.operation.verify()
        assert "return %arg0, %0" in str(module)
