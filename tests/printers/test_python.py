"""--py: executed, the code builds the same program, with equal text and equal results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mgx_mlir as migraphx
from mgx_mlir.printers.text import program_text
from mgx_mlir.tools.driver.scripts import run_script
from tests.formats import models
from tests.formats.programs import PROGRAMS, every_operator, feed_of, tensor

op = migraphx.op


def rebuilt(p: migraphx.program, folder: Path) -> migraphx.program:
    """The program of the script that --py writes, run as mgx-driver runs it."""
    path = folder / "made.py"
    path.write_text(p.to_py(weights=str(folder / "made.npz")), encoding="utf-8")
    return run_script(str(path))


def check_same(p: migraphx.program, q: migraphx.program) -> None:
    for version in ("seed", "2.16"):
        a, b = (program_text(x.program_ir, version=version).splitlines() for x in (p, q))
        for one, other in zip(a, b, strict=True):
            assert one == other


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, tmp_path: Path) -> None:
    p = PROGRAMS[name]()
    q = rebuilt(p, tmp_path)
    check_same(p, q)
    feed = feed_of(p)
    assert models.results(q, feed) == models.results(p, feed)


def test_every_operator(tmp_path: Path) -> None:
    p, feed = every_operator()
    q = rebuilt(p, tmp_path)
    check_same(p, q)
    for a, b in zip(p.run(feed), q.run(feed), strict=True):
        assert np.array(a).tobytes() == np.array(b).tobytes()


@pytest.mark.parametrize("name", models.NAMES)
def test_models(name: str, tmp_path: Path) -> None:
    p, feed = models.model(name)
    q = rebuilt(p, tmp_path)
    check_same(p, q)
    assert models.results(q, feed) == models.results(p, feed)


def test_large_literals_are_generated_without_a_file_for_them() -> None:
    p = PROGRAMS["dense"]()
    assert "weights" not in p.to_py()
    assert 'generate_argument(migraphx.shape(type="float_type", lens=[40, 30]), 0)' in p.to_py()
    names: dict[str, Any] = {}
    exec(p.to_py(), names)
    check_same(p, names["p"])


def test_the_file_of_weights(tmp_path: Path) -> None:
    p = PROGRAMS["dense"]()
    code = p.to_py(weights=str(tmp_path / "w.npz"))
    assert 'weights = migraphx.load_weights(Path(__file__).with_name("w.npz"))' in code
    assert list(migraphx.load_weights(tmp_path / "w.npz")) == ["literal0"]
    assert "Path" not in PROGRAMS["worked_example"]().to_py(weights=str(tmp_path / "none.npz"))
    assert not (tmp_path / "none.npz").exists()
    with pytest.raises(migraphx.MgxError, match="cannot write"):
        p.to_py(weights=str(tmp_path / "no" / "w.npz"))


def test_weights_of_every_kind(tmp_path: Path) -> None:
    """Large literals: types that numpy lacks, orders of their own, broadcast ones."""
    p = migraphx.program()
    m = p.get_main_module()
    rng = np.random.default_rng(0)
    for name in ("bool", "bf16", "fp8e4m3fnuz", "uint64", "half"):
        m.add_literal(migraphx.create_argument(tensor(name, 40, 40), rng.integers(0, 3, 1600)))
    m.add_literal(rng.standard_normal((50, 40)).astype("f4").T)
    m.add_literal(rng.standard_normal((50, 40)).astype(ml_dtypes.float8_e4m3fn).T)
    m.add_literal(np.broadcast_to(np.arange(40, dtype="f8"), (50, 40)))
    q = rebuilt(p, tmp_path)
    check_same(p, q)
    for a, b in zip(p.get_main_module(), q.get_main_module(), strict=True):
        assert a.get_literal().array.tobytes() == b.get_literal().array.tobytes()
        assert a.shape() == b.shape()


def test_names_and_attributes() -> None:
    p = migraphx.program()
    m = p.get_main_module()
    names = ["class", "1", 'a "b"\\', "a\nb", "ä:0 😀", "x_1", "p", "migraphx", "main", "weights"]
    args = [m.add_parameter(n, tensor("float", 2)) for n in names]
    y = m.add_instruction(op("leaky_relu", alpha=0.5), [args[0]])
    low = m.add_literal(np.array([-np.inf, np.nan], np.float16))
    m.add_return([y, low, *args])
    found: dict[str, Any] = {}
    exec(p.to_py(), found)
    check_same(p, found["p"])
    assert 'migraphx.op("leaky_relu", alpha=0.5)' in p.to_py()
    assert found["p"].get_parameter_names() == names


def test_shapes_that_are_more_than_inferred(tmp_path: Path) -> None:
    """Unknown operators, and dims that inference would leave dynamic."""
    p = migraphx.program()
    m = p.get_main_module()
    x = m.add_parameter("x", tensor("float", 2))
    y = m.add_instruction(op("unknown:Odd"), [x], shapes=[tensor("half", 5, 3)])
    n = m.add_instruction(op("nonzero"), [x], shapes=[tensor("int64", 1, 2)])
    m.add_return([y, n])
    assert "-> half_type, {5, 3}, {3, 1}" in repr(p)
    assert "-> int64_type, {1, 2}, {2, 1}" in repr(p)
    check_same(p, rebuilt(p, tmp_path))


def test_modules_that_nothing_takes(tmp_path: Path) -> None:
    p = PROGRAMS["worked_example"]()
    spare = p.create_module("spare")
    spare.add_return([spare.add_parameter("y", tensor("float", 3))])
    check_same(p, rebuilt(p, tmp_path))
    assert 'module: "spare"' in program_text(p.program_ir)
