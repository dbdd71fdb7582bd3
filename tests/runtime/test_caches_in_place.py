"""Caches that are updated in the memory that they come in, against onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import mgx_mlir as migraphx
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.core.errors import MgxError
from mgx_mlir.core.literals import aligned_empty
from mgx_mlir.runtime.bound_calls import BoundCall
from tests.support.models import MS, bytes_of, node
from tests.support.oracle import ort_session

HEADS, SHARED, SIZE, ROWS, BATCH = 4, 2, 16, 12, 2
FLOAT, INT8, UINT8, INT32 = (
    TensorProto.FLOAT, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32,
)  # fmt: skip
# caches: ONNX type, numpy type, elements of a row, and attributes of the quantisation
CACHES: tuple[tuple[int, Any, int, dict[str, Any]], ...] = (
    (FLOAT, np.float32, SIZE, {}),
    (INT8, np.int8, SIZE, {"kv_cache_bit_width": 8}),
    (UINT8, np.uint8, SIZE // 2, {"kv_cache_bit_width": 4}),
)


def model(rows: int | str) -> bytes:
    """Attentions with caches of f32, 8 and 4 bits, of which only the run knows how many rows count.

    `rows`: of the caches, a number or a name.
    """
    nodes: list[Any] = []
    outputs: dict[str, Any] = {}
    heads = {"q": HEADS, "k": SHARED, "v": SHARED}
    inputs: dict[str, Any] = {n: [BATCH, 1, count * SIZE] for n, count in heads.items()}
    inputs |= {"last": (INT32, [BATCH]), "total": (INT32, [1])}
    for i, (kind, _, width, more) in enumerate(CACHES):
        past, present = [f"pk{i}", f"pv{i}"], [f"nk{i}", f"nv{i}"]
        inputs |= {p: (kind, [BATCH, SHARED, rows, width]) for p in past}
        outputs[f"y{i}"] = [BATCH, 1, HEADS * SIZE]
        outputs |= {p: (kind, [BATCH, SHARED, "total_rows", width]) for p in present}
        if more:
            more = {**more, "k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR"}
        scales = " _ _ _ _ _ scale scale" if more else ""
        nodes.append(
            node("GroupQueryAttention", f"q k v pk{i} pv{i} last total{scales}",
                 f"y{i} nk{i} nv{i}", domain=MS, num_heads=HEADS, kv_num_heads=SHARED, **more)
        )  # fmt: skip
    return bytes_of(nodes, inputs, outputs, {"scale": np.full(1, 0.05)}, ms=1)


def empty_caches() -> dict[str, np.ndarray]:
    return {
        f"p{part}{i}": np.zeros((BATCH, SHARED, ROWS, width), kind)
        for i, (_, kind, width, _) in enumerate(CACHES)
        for part in "kv"
    }


def step(rng: np.random.Generator, lengths: np.ndarray) -> dict[str, np.ndarray]:
    """The new rows of a step; `lengths`: the rows that each entry has so far."""
    found = {
        name: rng.standard_normal((BATCH, 1, count * SIZE)).astype(np.float32)
        for name, count in (("q", HEADS), ("k", SHARED), ("v", SHARED))
    }
    return {
        **found,
        "last": lengths.astype(np.int32),
        "total": np.array([lengths.max() + 1], np.int32),
    }


def is_cache(name: str) -> bool:
    return name.startswith("n")


def compare(name: str, got: np.ndarray, want: np.ndarray, lengths: np.ndarray) -> None:
    if not is_cache(name):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, err_msg=name)
        return
    for entry, rows in enumerate(lengths + 1):  # the rows behind are any
        a, b = got[entry, :, :rows], want[entry, :, :rows]
        if a.dtype == np.float32:
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=0, err_msg=name)
        else:  # codes of 8 or twice 4 bits
            assert np.array_equal(a, b), name


@pytest.fixture(scope="module", params=[ROWS, "rows"], ids=["fixed", "open"])
def program(request: pytest.FixtureRequest) -> migraphx.CompiledProgram:
    return migraphx.compile(model(request.param), target="cpu", threads=1)


def test_steps_write_their_rows_alone(program: migraphx.CompiledProgram) -> None:
    """Three steps: onnxruntime's results; caches stay where they are, and so do other rows."""
    peer = ort_session(model("rows"))
    rng, caches, theirs = np.random.default_rng(1), empty_caches(), empty_caches()
    lengths = np.array([3, 5])
    for name, array in caches.items():
        kind = array.dtype
        drawn = rng.integers(0, 200, array.shape).astype(kind) if kind != np.float32 else (
            rng.standard_normal(array.shape).astype(np.float32)
        )  # fmt: skip
        array[...] = drawn
        theirs[name][...] = drawn
    assert len(program.signature.in_place) == len(caches)
    for _ in range(3):
        new = step(rng, lengths)
        want = dict(zip(program.output_names, peer.run(None, {**new, **theirs}), strict=True))
        before = {n: a.copy() for n, a in caches.items()}
        plain = dict(zip(program.output_names, program.run({**new, **caches}), strict=True))
        assert all(np.array_equal(before[n], a) for n, a in caches.items())  # without `out`
        out = {name.replace("p", "n", 1): array for name, array in caches.items()}
        found = dict(
            zip(program.output_names, program.run({**new, **caches}, out=out), strict=True)
        )
        for name, got in found.items():
            compare(name, got, want[name], lengths)
            compare(name, plain[name], want[name], lengths)
        for name, array in caches.items():
            assert found[name.replace("p", "n", 1)] is array
            for entry, row in enumerate(lengths):
                others = np.arange(ROWS) != row
                assert np.array_equal(array[entry][:, others], before[name][entry][:, others])
                theirs[name][entry][:, row] = array[entry][:, row]
        lengths += 1


def test_some_results_have_other_memory(program: migraphx.CompiledProgram) -> None:
    """One cache in place, one written to another array, the rest given as they come."""
    rng, caches, lengths = np.random.default_rng(2), empty_caches(), np.array([4, 4])
    new = step(rng, lengths)
    want = program.run({**new, **caches})
    other = np.full_like(caches["pv0"], 7)
    before = caches["pv0"].copy()
    found = program.run({**new, **caches}, out={"nk0": caches["pk0"], "nv0": other})
    for got, w in zip(found, want, strict=True):
        np.testing.assert_allclose(got, w, rtol=1e-5, atol=1e-6)
    names = program.output_names
    assert found[names.index("nk0")] is caches["pk0"]
    assert found[names.index("nv0")] is other
    assert np.array_equal(caches["pv0"], before)
    assert not caches["pk1"].any()


def test_shared_and_unaligned_memory_is_written_once(program: migraphx.CompiledProgram) -> None:
    rng, lengths = np.random.default_rng(3), np.array([2, 2])
    new = step(rng, lengths)
    raw = np.zeros(BATCH * SHARED * ROWS * SIZE * 4 + 4, np.uint8)
    odd = raw[4:].view(np.float32).reshape(BATCH, SHARED, ROWS, SIZE)
    for caches in ({**empty_caches(), "pk0": odd}, empty_caches()):
        if caches["pk0"] is not odd:
            caches["pv0"] = caches["pk0"]  # keys and values in the same memory: not in place
        want = program.run({**new, **caches})
        found = program.run({**new, **caches}, out={"nk0": caches["pk0"]})
        for got, w in zip(found, want, strict=True):
            np.testing.assert_allclose(got, w, rtol=1e-5, atol=1e-6)


def test_a_cache_that_is_too_small_is_refused(program: migraphx.CompiledProgram) -> None:
    caches = empty_caches()
    new = step(np.random.default_rng(4), np.array([ROWS, ROWS]))
    with pytest.raises(MgxError, match="in whose memory the new rows fit"):
        program.run({**new, **caches}, out={"nk0": caches["pk0"]})
    assert program.run({**new, **caches})[1].shape[2] == ROWS + 1


def test_buffers_of_the_api_and_of_a_file(tmp_path: Path) -> None:
    """`main:#output_N` is the memory of a parameter; a file keeps the function for it."""
    made = migraphx.parse_onnx_buffer(model(ROWS))
    made.compile(migraphx.get_target("cpu"), offload_copy=False, threads=1)
    path = tmp_path / "step.mxr"
    migraphx.save(made, str(path))
    for p in (made, migraphx.load(str(path))):
        rng, caches = np.random.default_rng(5), empty_caches()
        new = step(rng, np.array([1, 6]))
        want = [np.asarray(a) for a in p.run({**new, **caches})]
        names = [n.replace("p", "n", 1) for n in caches]
        order = [f"{kind}{i}" for i in range(len(CACHES)) for kind in ("y", "nk", "nv")]
        given: dict[str, Any] = {
            f"main:#output_{order.index(n)}": caches[n.replace("n", "p", 1)] for n in names
        }
        found = [np.asarray(a) for a in p.run({**new, **caches, **given})]
        for name, got, w in zip(order, found, want, strict=True):
            np.testing.assert_allclose(got, w, rtol=1e-5, atol=1e-6)
            if is_cache(name):
                assert np.shares_memory(got, caches[name.replace("n", "p", 1)])
    assert p.compiled.signature.in_place


def test_a_binding_of_onnxruntime() -> None:
    """Past and present bound to one value, as onnxruntime's decoders share them."""
    import mgx_mlir.onnxruntime as ort  # other tests need none of it

    session = ort.InferenceSession(model("rows"), providers=["CPUExecutionProvider"])
    caches, rng = empty_caches(), np.random.default_rng(6)
    values = {n: ort.OrtValue.ortvalue_from_numpy(a) for n, a in caches.items()}
    new = step(rng, np.array([1, 3]))
    want = session.run(None, {**new, **caches})
    binding = session.io_binding()
    for name, array in new.items():
        binding.bind_cpu_input(name, array)
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
        binding.bind_ortvalue_output(name.replace("p", "n", 1), value)
    for i in range(len(CACHES)):
        binding.bind_output(f"y{i}")
    session.run_with_iobinding(binding)
    found = dict(zip(list(binding._places), binding.get_outputs(), strict=True))
    for o, w in zip(session.get_outputs(), want, strict=True):
        np.testing.assert_allclose(found[o.name].numpy(), w, rtol=1e-5, atol=1e-6)
    assert values["pk0"].numpy()[1, :, 3].any()
    assert not values["pk0"].numpy()[1, :, 4].any()


def aligned(array: np.ndarray) -> np.ndarray:
    made = aligned_empty(array.shape, array.dtype)
    made[...] = array
    return made


@pytest.mark.parametrize("which", ["all stay", "caches stay"])
def test_a_bound_call_does_what_runs_do(program: migraphx.CompiledProgram, which: str) -> None:
    """Arguments that stay are made once, and hold what the arrays hold at each call."""
    assert isinstance(program, IreeProgram)
    rng, lengths = np.random.default_rng(7), np.array([3, 5])
    theirs = empty_caches()
    mine = {name: aligned(a) for name, a in theirs.items()}
    new = {name: aligned(a) for name, a in step(rng, lengths).items()}
    given = [{**new, **mine}[name] for name in program.input_names]
    caches = {k: given[i] for i, k in program.signature.in_place}
    stays = [a if which == "all stay" or name in mine else None
             for name, a in zip(program.input_names, given, strict=True)]  # fmt: skip
    bound = BoundCall(program.load(), stays, caches, program.signature.value_check())
    others = [a for a, held in zip(given, stays, strict=True) if held is None]
    for _ in range(3):
        for name, array in step(rng, lengths).items():
            new[name][...] = array
        out = {name.replace("p", "n", 1): array for name, array in theirs.items()}
        want = program.run({**new, **theirs}, out=out)
        plain = [w for i, w in enumerate(want) if i not in caches]
        for got, w in zip(bound(others), plain, strict=True):
            assert np.array_equal(got, w)
        assert all(np.array_equal(mine[name], a) for name, a in theirs.items())
        lengths += 1
    new["last"][...] = ROWS + 7
    with pytest.raises(MgxError, match="seqlens_k"):
        bound(others)
    with pytest.raises(MgxError, match="aligned array without gaps"):
        BoundCall(program.load(), [np.asfortranarray(a) for a in given], caches, None)
