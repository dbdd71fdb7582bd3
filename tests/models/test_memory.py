"""Memory of a compile: copies of weights that a process holds at most, and keeps."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mgx_mlir
from mgx_mlir.core import files
from mgx_mlir.core.errors import FileError
from mgx_mlir.programs.repeats import Repeated
from mgx_mlir.targets.base import CpuTarget, KernelsLeftOut

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/status is Linux's")

# argv: the models; the first one loads the code that the second one needs as well
COMPILE = """
import json, re, sys
import mgx_mlir

def status(name):
    text = open("/proc/self/status").read()
    return int(re.search(rf"{name}:\\\\s+(\\\\d+) kB", text)[1]) * 1024

small, large = sys.argv[1:]
mgx_mlir.compile(small, target="cpu", cache=False)
with open("/proc/self/clear_refs", "w") as f:
    f.write("5")  # sets VmHWM back
before = status("VmRSS")
program = mgx_mlir.compile(large, target="cpu", cache=False)
held = sum(a.nbytes for a in program.params.values())
print(json.dumps([status("VmHWM") - before, status("VmRSS") - before, held]))
""".replace("\\\\", "\\")


def grown(small: Path, large: Path) -> tuple[int, int, int]:
    """Bytes of a compile at its peak, bytes that it keeps, and those of its parameters."""
    ran = subprocess.run(
        [sys.executable, "-c", COMPILE, small, large], capture_output=True, text=True, check=True
    )
    peak, kept, held = json.loads(ran.stdout)
    return peak, kept, held


def few_bits(path: Path, depth: int, columns: int) -> Path:
    """A product of one row with weights of 4 bits, in blocks of 32."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (columns, depth // 32, 16), np.uint8)
    scales = rng.uniform(0.5, 1.5, columns * depth // 32).astype(np.float32)
    node = helper.make_node(
        "MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft",
        K=depth, N=columns, bits=4, block_size=32,
    )  # fmt: skip
    return saved(path, node, depth, columns, {"w": codes, "s": scales})


def matmul(path: Path, depth: int, columns: int) -> Path:
    """A product of one row with f32 weights."""
    weights = np.random.default_rng(0).standard_normal((depth, columns), np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    return saved(path, node, depth, columns, {"w": weights})


def saved(
    path: Path, node: onnx.NodeProto, depth: int, columns: int, arrays: dict[str, np.ndarray]
) -> Path:
    """A model of one node in a file."""
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, n])
        for name, n in (("x", depth), ("y", columns))
    )
    weights = [numpy_helper.from_array(a, name) for name, a in arrays.items()]
    graph = helper.make_graph([node], "g", [x], [y], weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return path


def test_weights_of_four_bits_are_never_widened(tmp_path: Path) -> None:
    depth, columns = 2048, 16384
    small = few_bits(tmp_path / "small.onnx", 256, 256)
    peak, _, _ = grown(small, few_bits(tmp_path / "large.onnx", depth, columns))
    # f32 takes four bytes of an element; codes of 8 bits are there once more, in another order
    assert peak < 4 * depth * columns


def test_weights_are_kept_once(tmp_path: Path) -> None:
    small = matmul(tmp_path / "small.onnx", 256, 256)
    peak, kept, held = grown(small, matmul(tmp_path / "large.onnx", 4096, 4096))
    assert held == 4096 * 4096 * 4
    assert peak < 2.5 * held
    assert kept < 1.3 * held


def test_program_of_a_file_lists_its_kernels(tmp_path: Path) -> None:
    path = matmul(tmp_path / "m.onnx", 256, 256)
    assert "migraphx.dot" in mgx_mlir.compile(path, target="cpu", cache=False).program.text()


def test_weights_are_read_again_for_kernels_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_lowered = CpuTarget.compile_lowered
    calls: list[int] = []

    def fail(self: Any, lowered: Any, options: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise KernelsLeftOut
        return compile_lowered(self, lowered, options)

    monkeypatch.setattr(CpuTarget, "compile_lowered", fail)
    path = matmul(tmp_path / "m.onnx", 256, 256)
    program = mgx_mlir.compile(path, target="cpu", cache=False)
    x = np.random.default_rng(1).standard_normal((1, 256), np.float32)
    weights = numpy_helper.to_array(onnx.load(path).graph.initializer[0])
    np.testing.assert_allclose(program.run({"x": x})[0], x @ weights, rtol=1e-4, atol=1e-4)
    assert len(calls) == 2


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_model_that_changes_before_it_is_read_again_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_replaced: bool
) -> None:
    path, other = (matmul(tmp_path / f"{name}.onnx", 256, 256) for name in ("m", "other"))
    changed = numpy_helper.from_array(np.ones((256, 256), np.float32), "w")
    model = onnx.load(other)
    model.graph.initializer[0].CopyFrom(changed)

    def fail(self: Any, lowered: Any, options: Any) -> Any:
        if is_replaced:
            onnx.save(model, other)
            other.replace(path)
        else:
            onnx.save(model, path)
        raise KernelsLeftOut

    monkeypatch.setattr(CpuTarget, "compile_lowered", fail)
    with pytest.raises(FileError, match="changed during the compile") as e:
        mgx_mlir.compile(path, target="cpu", cache=False)
    assert e.value.location == str(path)


def test_weights_of_a_file_whose_changes_cannot_be_seen_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = matmul(tmp_path / "m.onnx", 256, 256)
    weights = numpy_helper.to_array(onnx.load(path).graph.initializer[0])
    compile_lowered = CpuTarget.compile_lowered
    calls: list[int] = []

    def fail(self: Any, lowered: Any, options: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            path.unlink()
            raise KernelsLeftOut
        return compile_lowered(self, lowered, options)

    monkeypatch.setattr(files, "is_young", lambda status: True)
    monkeypatch.setattr(CpuTarget, "compile_lowered", fail)
    program = mgx_mlir.compile(path, target="cpu", cache=False)
    x = np.random.default_rng(1).standard_normal((1, 256), np.float32)
    np.testing.assert_allclose(program.run({"x": x})[0], x @ weights, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(60))
def test_repeated_arrays(seed: int) -> None:
    """Views in any order give what numpy's copies do."""
    rng = np.random.default_rng(seed)
    dims = tuple(rng.choice([1, 2, 3, 4, 6], rng.integers(1, 4)))
    array = rng.integers(0, 99, dims)
    found = Repeated.of(array)
    for _ in range(6):
        kind = rng.integers(3)
        if kind == 0:
            order = rng.permutation(array.ndim).tolist()
            found, array = found.transposed(order), array.transpose(order)
        elif kind == 1 and array.size < 5000:
            start = int(rng.integers(2))
            wanted = [n if n != 1 else int(rng.integers(1, 4)) for n in array.shape]
            wanted = [*rng.integers(1, 3, start).tolist(), *wanted]
            found, array = found.broadcast(wanted, start), np.broadcast_to(array, wanted)
        else:
            parts = factors(array.size, rng)
            found, array = found.reshaped(parts), array.reshape(parts)
        np.testing.assert_array_equal(found.dense(), array)
        assert found.dims == array.shape
        rows, size = found.distinct()
        np.testing.assert_array_equal(np.repeat(rows, size, axis=0), array)


def factors(n: int, rng: np.random.Generator) -> list[int]:
    """Dims of an array of n elements."""
    out: list[int] = []
    while n > 1 and len(out) < 4:
        divisors = [d for d in range(1, n + 1) if n % d == 0]
        out.append(int(rng.choice(divisors)))
        n //= out[-1]
    return [*out, n]


def test_repeated_elements_take_no_memory() -> None:
    scales = np.arange(6, dtype=np.float32).reshape(3, 2, 1)
    found = Repeated.of(scales).broadcast((3, 2, 32), 0).reshaped((3, 64)).transposed((1, 0))
    assert np.shares_memory(found.data, scales)
    rows, size = found.distinct()
    assert (rows.shape, size) == ((2, 3), 32)
