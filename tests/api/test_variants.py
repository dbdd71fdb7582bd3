"""Variants for optimal sizes: which there are, what a run calls, and what they compute."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mgx_mlir
from mgx_mlir.compiler.variants import MOST, variants_of
from mgx_mlir.core.errors import UsageError
from mgx_mlir.programs.signature import DimRange, Port, Signature, Variant

ROWS = """
func.func @main(%x: tensor<?x16xf32> {{migraphx.name = "x",
    migraphx.dims = [{{min = 1, max = 64{}, symbol = "n"}}, 16]}},
    %y: tensor<?x4xf32> {{migraphx.name = "y",
    migraphx.dims = [{{min = 1, max = 64, symbol = "n"}}, 4]}})
    -> (tensor<?x4xf32>, tensor<?x16xf32>) {{
  %w = "migraphx.literal"() {{value = dense<0.25> : tensor<16x4xf32>}} : () -> tensor<16x4xf32>
  %0 = "migraphx.dot"(%x, %w) : (tensor<?x16xf32>, tensor<16x4xf32>) -> tensor<?x4xf32>
  %1 = "migraphx.add"(%0, %y) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = "migraphx.softmax"(%x) {{axis = 1}} : (tensor<?x16xf32>) -> tensor<?x16xf32>
  return %1, %2 : tensor<?x4xf32>, tensor<?x16xf32>
}}
"""


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as m:
        m.setenv("MGX_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("m") / "rows.mlir"
    path.write_text(ROWS.format(", optimals = array<i64: 1, 8>"))
    return path


def inputs(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(n)
    return {k: rng.standard_normal((n, d)).astype(np.float32) for k, d in (("x", 16), ("y", 4))}


def test_runs_call_the_variant_of_their_sizes(model: Path) -> None:
    program = mgx_mlir.compile(model, "cpu", threads=1)
    assert program.signature.variants == (
        Variant("main_1", ((0, 0, 1), (1, 0, 1))),
        Variant("main_8", ((0, 0, 8), (1, 0, 8))),
    )
    for n, function in ((1, "main_1"), (2, "main"), (8, "main_8"), (64, "main")):
        given = inputs(n)
        assert program.function_for(list(given.values())) == function
        first, second = program.run(given)
        w = np.full((16, 4), 0.25)
        np.testing.assert_allclose(first, given["x"] @ w + given["y"], rtol=1e-5, atol=1e-5)
        e = np.exp(given["x"].astype(np.float64))
        np.testing.assert_allclose(second, e / e.sum(1, keepdims=True), rtol=1e-5)
    with pytest.raises(mgx_mlir.MgxError, match=r"expected float_type \{\[1..64\], 16\}"):
        program.run({"x": np.zeros((8, 15), np.float32), "y": inputs(8)["y"]})


def test_each_variant_has_kernels_of_its_own_sizes(model: Path) -> None:
    dispatches = mgx_mlir.compile(model, "cpu", threads=1).executable.dispatches
    assert set(dispatches) >= {"main", "main_1", "main_8"}
    # a kernel of one size is no kernel of another: its name says only what the compiler found
    assert not set(dispatches["main_8"]) & {*dispatches["main"], *dispatches["main_1"]}


def test_variants_share_their_weights_and_survive_cache_and_files(
    model: Path, tmp_path: Path
) -> None:
    made = mgx_mlir.compile(model, "cpu", threads=1)
    again = mgx_mlir.compile(model, "cpu", threads=1)
    assert again.stats.cached
    p = mgx_mlir.load(_saved(model, tmp_path))
    given = inputs(8)
    wanted = made.run(given)
    for program in (again, p.compiled):
        assert program.signature.variants == made.signature.variants
        assert program.function_for(list(given.values())) == "main_8"
        for a, b in zip(program.run(given), wanted, strict=True):
            np.testing.assert_array_equal(a, b)


def _saved(model: Path, folder: Path) -> Path:
    from mgx_mlir.tools.driver.main import main

    path = folder / "rows.mxr"
    assert main(["compile", "--cpu", "--threads", "1", str(model), "-o", str(path)]) == 0
    return path


def test_nothing_without_optimals(tmp_path: Path) -> None:
    path = tmp_path / "rows.mlir"
    path.write_text(ROWS.format(""))
    assert mgx_mlir.compile(path, "cpu", threads=1).signature.variants == ()


def signature(*ranges: DimRange) -> Signature:
    ports = [Port(f"x{i}", "float_type", (-1,), (r,)) for i, r in enumerate(ranges)]
    return Signature(tuple(ports), ())


def test_choices_among_optimals() -> None:
    n = DimRange(1, 8, (2, 4), "n")
    m = DimRange(1, 8, (3,), "m")
    assert [v.function for v in variants_of(signature(n, m))] == ["main_2x3", "main_4x3"]
    # without symbols dims of one range go together; those of a symbol do wherever it stands
    loose = DimRange(1, 8, (2, 4))
    assert [v.sizes for v in variants_of(signature(loose, loose))] == [
        ((0, 0, 2), (1, 0, 2)),
        ((0, 0, 4), (1, 0, 4)),
    ]
    [only] = variants_of(signature(m, DimRange(1, 8, (), "m")))
    assert only.sizes == ((0, 0, 3), (1, 0, 3))
    many = DimRange(1, 64, tuple(range(1, MOST + 2)), "n")
    with pytest.raises(UsageError, match=f"{MOST} variants"):
        variants_of(signature(many))


def test_a_signature_keeps_its_variants() -> None:
    made = Signature((), (), variants=(Variant("main_2", ((0, 1, 2),)),))
    assert Signature.from_json(made.to_json()) == made
    assert "variants" not in Signature((), ()).to_json()


@pytest.mark.slow
def test_a_variant_is_faster_than_the_general_program(tmp_path: Path) -> None:
    import time

    times: dict[str, list[float]] = {"general": [], "variant": []}
    programs = {}
    for name, optimals in (("general", ""), ("variant", ", optimals = array<i64: 32>")):
        path = tmp_path / f"{name}.mlir"
        path.write_text(ROWS.format(optimals))
        programs[name] = mgx_mlir.compile(path, "cpu", threads=1)
    arrays = list(inputs(32).values())
    for _ in range(400):
        for name, program in programs.items():
            start = time.process_time()
            program.execute(arrays)
            times[name].append(time.process_time() - start)
    assert np.median(times["variant"]) < np.median(times["general"])
