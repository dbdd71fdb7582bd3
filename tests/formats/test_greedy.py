"""Small files that ask for gigabytes are refused, or read within bounds of memory and time."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest

import mgx_mlir as migraphx
import mgx_mlir.passes
from mgx_mlir.core import attrs
from mgx_mlir.core.context import new_context
from mgx_mlir.core.errors import FileError, MgxError, ModelError
from mgx_mlir.core.ir import ir
from mgx_mlir.core.weight_files import read_weights
from mgx_mlir.frontends import limits
from mgx_mlir.frontends.mlir_files import read_mlir
from mgx_mlir.rewrite.passes import resolve, run_pipeline
from tests.formats.greedy import GREEDY, ints, model, n

ROOT = Path(__file__).parent.parent.parent
HEAVY = ("many ranges", "many products", "long chain")  # at the bounds: half a gigabyte, seconds
READ = """
import sys, time
import mgx_mlir
from mgx_mlir.core.errors import ModelError
from tests.formats.corpora import read_onnx
from tests.formats.fuzz import peak_bytes
from tests.formats.greedy import GREEDY
for name in sys.argv[1:]:
    start = time.process_time()
    try:
        read_onnx(GREEDY[name]())
    except ModelError as e:
        assert "cannot be imported" not in str(e), str(e)
    taken = time.process_time() - start
    peak = peak_bytes()
    assert peak < 1_000_000_000 and taken < 20, (name, peak, taken)
print("done")
"""


def read_all(names: list[str]) -> None:
    done = subprocess.run(
        ["bash", "-c", 'ulimit -v 12000000; exec "$@"', "_", sys.executable, "-c", READ, *names],
        capture_output=True, text=True, check=False, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-1500:]


def test_models_that_ask_for_much() -> None:
    read_all([name for name in GREEDY if name not in HEAVY])


@pytest.mark.slow
@pytest.mark.parametrize("name", HEAVY)
def test_models_at_the_bounds(name: str) -> None:
    read_all([name])


def test_tables_of_all_nodes_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_TABLES", 100_000)
    nodes = [n("Range", f"a,e{i},b", f"r{i}") for i in range(3)]
    nodes.append(n("Concat", "r0,r1,r2", axis=0))
    ends = {f"e{i}": np.int64(5000 + i) for i in range(3)}
    data = model(nodes, a=np.int64(0), b=np.int64(1), **ends)
    for _ in range(2):  # each model by itself
        with pytest.raises(ModelError, match="the tables of all nodes take more than 100000"):
            migraphx.parse_onnx_buffer(data)
    monkeypatch.setattr(limits, "MOST_TABLES", 200_000)
    for _ in range(2):
        migraphx.parse_onnx_buffer(data)


def test_constants_are_still_folded() -> None:
    """Weights that are unpacked, scaled and turned take more than themselves on the way."""
    w = np.random.default_rng(0).integers(-128, 127, (3000, 2000)).astype(np.int8)
    nodes = [
        n("DequantizeLinear", "w,s", "f", axis=1), n("Transpose", "f", "t", perm=[1, 0]),
        n("Mul", "t,t", "q"), n("Add", "q,x"),
    ]  # fmt: skip
    data = model(nodes, w=w, s=np.full(2000, 0.5, np.float32))
    p = migraphx.parse_onnx_buffer(data)
    found = p.program_ir
    with found.ctx, found.store.active():
        steps = "builtin.module(mgx-propagate-constant{max-growth=100000000},canonicalize)"
        run_pipeline(found.module.operation, resolve(steps, found.ctx))
    assert "migraphx.transpose" not in found.text()
    expected = np.square(w.T.astype(np.float32) * 0.5)
    largest = max((a for _, a in found.store.items()), key=lambda a: a.nbytes)
    np.testing.assert_array_equal(largest, expected)


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "i8", "u1", "?"])
def test_one_number_takes_no_more_than_itself(dtype: str) -> None:
    wide = np.broadcast_to(np.array(1).astype(dtype), (1 << 20, 1 << 20))
    with new_context(), ir.Location.unknown():
        found = attrs.array_of(attrs.dense(wide))
        few = attrs.array_of(attrs.dense(np.ones((3, 4), dtype)))
    assert found.shape == wide.shape
    assert found.dtype == wide.dtype
    assert found[7, 9] == 1
    np.testing.assert_array_equal(few, np.ones((3, 4), dtype))


def test_literals_of_mlir_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text("""module { func.func @main() -> tensor<99999999999xf32> {
      %0 = "migraphx.literal"() {value = dense<1.0> : tensor<99999999999xf32>}
        : () -> tensor<99999999999xf32>
      return %0 : tensor<99999999999xf32> } }""")
    with pytest.raises(ModelError, match="take 399999999996 bytes, far more than the file"):
        read_mlir(path)


def test_weights_that_expand_too_far(tmp_path: Path) -> None:
    text = """module { func.func @main() -> tensor<2xf32> {
      %0 = "migraphx.literal"() {key = "k"} : () -> tensor<2xf32>
      return %0 : tensor<2xf32> } }"""
    path, beside = tmp_path / "m.mlir", tmp_path / "m.mlir.npz"
    path.write_text(text)
    np.savez_compressed(beside, k=np.zeros(40_000_000, np.float32))
    with pytest.raises(FileError, match="bytes, which is implausible"):
        read_mlir(path)
    # a head that states more than the archive holds
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f4", "fortran_order": False, "shape": (1 << 40,)}
    )
    with zipfile.ZipFile(beside, "w") as z:
        z.writestr("k.npy", head.getvalue() + bytes(64))
    with pytest.raises(FileError, match="shorter than its header says"):
        read_mlir(path)
    np.savez(beside, k=np.array([{}], object))
    with pytest.raises(FileError, match="pickle"):
        read_mlir(path)
    np.savez(beside, k=np.float32([1, 2]))
    whole = bytearray(beside.read_bytes())
    for at in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        beside.write_bytes(damaged)
        try:
            read_mlir(path)
        except MgxError:
            continue
    beside.write_bytes(bytes(whole[: len(whole) // 2]))
    with pytest.raises(FileError, match=r"is not an \.npz of weights"):
        read_weights(str(beside))


def test_a_program_of_too_wide_strides_is_not_saved(tmp_path: Path) -> None:
    extent = 1 << 62
    path = tmp_path / "m.mlir"
    t = f"tensor<{extent}x{extent}x{extent}xf32>"
    path.write_text(f"module {{ func.func @main(%a: {t}) -> {t} {{ return %a : {t} }} }}")
    p = migraphx.program.of(read_mlir(path))
    with pytest.raises(FileError, match="beyond 64 bits"):
        migraphx.save_buffer(p)
    with pytest.raises(FileError, match="beyond 64 bits"):
        migraphx.save(p, str(tmp_path / "m.mxr"))
    assert not (tmp_path / "m.mxr").exists()


def test_a_range_of_no_numbers() -> None:
    for bad in (np.nan, np.inf, -np.inf):
        for place in range(3):
            values = [np.float32(v) for v in (0, 5, 1)]
            values[place] = np.float32(bad)
            names = dict(zip("abc", values, strict=True))
            with pytest.raises(ModelError, match="expected finite numbers"):
                migraphx.parse_onnx_buffer(model([n("Range", "a,b,c")], **names))
    data = model([n("Range", "a,b,c")], a=np.float32(3), b=np.float32(-2), c=np.float32(-1.5))
    p = migraphx.parse_onnx_buffer(data)
    p.compile(migraphx.get_target("ref"))
    np.testing.assert_array_equal(np.asarray(p.run({"x": np.zeros(1, "f4")})[0]), [3, 1.5, 0, -1.5])


def test_tensors_of_too_many_dims() -> None:
    """numpy holds 64: a damaged file states more."""
    tensor = onnx.helper.make_tensor("v", 1, [1] * 71, [1.0])
    with pytest.raises(ModelError, match="rank 71, expected at most 64"):
        migraphx.parse_onnx_buffer(model([n("Constant", "", value=tensor)]))
    with pytest.raises(ModelError, match="input 'x' of rank 70, expected at most 64"):
        migraphx.parse_onnx_buffer(model([n("Relu", "x")], inputs=[("x", 1, [1] * 70)]))


def test_attention_of_other_ranks() -> None:
    for ranks in ((2, 2), (7, 7), (3, 4), (4, 3), (4, 2), (0, 0), (4, 7)):
        q, k = ([2] * r for r in ranks)
        data = model([n("Attention", "q,k,k")], opset=23, inputs=[("q", 1, q), ("k", 1, k)])
        with pytest.raises(ModelError, match="rank 3 or 4"):
            migraphx.parse_onnx_buffer(data)


def test_unsqueeze_by_axes_without_end() -> None:
    data = model([n("Unsqueeze", "x,a")], a=ints(1 << 33))
    with pytest.raises(ModelError, match="out of range"):
        migraphx.parse_onnx_buffer(data)
    data = model([n("Unsqueeze", "x,a")], inputs=[("x", 1, [1]), ("a", 7, [1 << 33])])
    with pytest.raises(ModelError, match="rank"):
        migraphx.parse_onnx_buffer(data)
    data = model([n("Unsqueeze", "x,a")], a=ints(*range(1, 70)))
    with pytest.raises(ModelError, match="rank 70, expected at most 64"):
        migraphx.parse_onnx_buffer(data)
