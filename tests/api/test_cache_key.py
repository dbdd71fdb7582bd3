"""Keys of cached programs: what changes a program changes its key."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import mgx_mlir
from mgx_mlir.compiler.option_text import option_text
from mgx_mlir.compiler.options import CompileOptions
from mgx_mlir.compiler.program_cache import program_cache_key
from mgx_mlir.targets import get_target
from tests.support.models import parsed_bytes

dim = mgx_mlir.shape.dynamic_dimension


class Way(enum.Enum):
    SLOW = 1
    FAST = 2


@dataclass(repr=False)
class Held:
    name: str
    size: int

    def __repr__(self) -> str:
        return self.name


LONG = np.arange(5000, dtype=np.float32)
OTHER = np.where(LONG == 2500, np.float32(-1), LONG)
DIFFERENT: list[tuple[Any, Any]] = [
    (dim(1, 8), dim(1, 8, {1, 8})),
    (dim(1, 8, {1}), dim(1, 8, {8})),
    (dim(1, 8, sym="n"), dim(1, 8, sym="m")),
    (dim(1, 8, sym="n"), dim(1, 8)),
    ([dim(1, 8)], [dim(1, 8, {4})]),
    ({"x": [dim(1, 8), 3]}, {"x": [dim(1, 8, {4}), 3]}),
    (dim(1, 8).dim(), dim(1, 8, {4}).dim()),
    (mgx_mlir.shape(type="float", dyn_dims=[dim(1, 8)]),
     mgx_mlir.shape(type="float", dyn_dims=[dim(1, 8, {4})])),
    (mgx_mlir.shape(type="float", lens=[2, 2]),
     mgx_mlir.shape(type="float", lens=[2, 2], strides=[1, 2])),
    (LONG, OTHER),
    ([LONG], [OTHER]),
    ({"a": (LONG,)}, {"a": (OTHER,)}),
    (np.array([0.1], np.float32), np.array([0.1], np.float64)),
    ([np.float32(0.1)], [np.nextafter(np.float32(0.1), np.float32(1))]),
    (np.array([1], "<i4"), np.array([1 << 24], ">i4")),
    (np.array([1, 2], "<i4"), np.array([1, 2], "<i4").byteswap().view(">i4").byteswap()),
    (np.array([1], ml_dtypes.bfloat16), np.array([1], np.int16)),
    (np.zeros((2, 3), np.int8), np.zeros((3, 2), np.int8)),
    (np.array(["a", "b"], object), np.array(["a", "c"], object)),
    ([1], [True]),
    ([1], ["1"]),
    ([1.0], [1]),
    (["a, b"], ["a", "b"]),
    ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
    (b"a", "a"),
    (Path("a"), "a"),
    (Way.SLOW, Way.FAST),
    (Held("a", 1), Held("a", 2)),
    ({1, 2}, {1, 3}),
    (None, "None"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_values_that_differ_have_two_texts(one: Any, other: Any) -> None:
    assert option_text(one) != option_text(other)
    for value in (one, other):
        assert option_text(value) == option_text(value)


def test_equal_values_have_one_text() -> None:
    assert option_text({"a": 1, "b": 2}) == option_text({"b": 2, "a": 1})
    assert option_text({3, 1, 2}) == option_text({2, 3, 1})
    assert option_text(LONG) == option_text(LONG.copy())
    assert option_text(LONG.reshape(50, 100).T) == option_text(LONG.reshape(50, 100).T.copy())


class Opaque:
    pass


def key_of(data: bytes, **options: Any) -> str | None:
    return program_cache_key(data, CompileOptions("cpu", importer=options), get_target("cpu"))


def test_what_has_no_text_is_not_looked_up() -> None:
    """An object's address could be another's later."""
    with pytest.raises(TypeError, match="cannot write as text: Opaque"):
        option_text([Opaque()])
    assert key_of(b"m", input_values={"x": 1}) is not None
    assert key_of(b"m", input_values={"x": Opaque()}) is None


def test_a_folder_of_external_data_counts_by_what_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = set()
    for name in "ab":
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        keys.add(key_of(b"m", external_data_path="weights"))
    assert len(keys) == 1


def test_optimals_make_another_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cached program without variants is not the one with them."""
    monkeypatch.setenv("MGX_CACHE_DIR", str(tmp_path))
    data = parsed_bytes("(float[n,4] x) => (float[n,4] y) { y = Relu (x) }")

    def compiled(*optimals: int) -> Any:
        dims = {"x": [dim(1, 8, optimals), dim(4, 4)]}
        return mgx_mlir.compile(data, "cpu", map_dyn_input_dims=dims)

    assert compiled().signature.variants == ()
    assert [v.function for v in compiled(2, 4).signature.variants] == ["main_2", "main_4"]
    assert compiled().signature.variants == ()
    assert compiled(4, 2).stats.cached


def dense(weight: np.ndarray) -> bytes:
    held = helper.make_tensor("w", TensorProto.FLOAT, weight.shape, weight.tobytes(), raw=True)
    return parsed_bytes("(float[2,32] x) => (float[2,32] y) { y = MatMul (x, w) }", [held])


WEIGHT = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)


@pytest.mark.parametrize("quantized", [False, True])
def test_programs_in_memory_are_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quantized: bool
) -> None:
    """The key of a parsed or quantized program is that of its instructions and weights."""
    monkeypatch.setenv("MGX_CACHE_DIR", str(tmp_path))
    x = np.random.default_rng(1).standard_normal((2, 32)).astype(np.float32)

    def result(weight: np.ndarray) -> tuple[bool, np.ndarray]:
        made = mgx_mlir.parse_onnx_buffer(dense(weight))
        if quantized:
            mgx_mlir.quantize_bf16(made)
        made.compile(mgx_mlir.get_target("cpu"))
        return made.compiled.stats.cached, np.array(made.run({"x": x})[0])

    cached, first = result(WEIGHT)
    assert not cached
    assert np.allclose(first, x @ WEIGHT, atol=0.2 if quantized else 1e-4)
    cached, again = result(WEIGHT)
    assert cached
    assert np.array_equal(first, again)
    other = WEIGHT.copy()
    other[3, 5] += 1
    cached, changed = result(other)
    assert not cached
    assert np.allclose(changed, x @ other, atol=0.2 if quantized else 1e-4)


def test_a_key_of_a_file_does_not_stand_for_its_weight() -> None:
    """Two programs may keep different arrays under one key."""
    keys = set()
    for value in (1, 2, 2):
        made = mgx_mlir.parse_onnx_buffer(dense(WEIGHT)).program_ir
        (key,) = made.store
        made.store.put(key, WEIGHT * value)
        keys.add(program_cache_key(made, CompileOptions("cpu"), get_target("cpu")))
    assert len(keys) == 2
    assert None not in keys
