"""Scans, NonZero and scatters on GPUs: by all lanes, at the edges of waves and blocks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mgx_mlir
from tests.support.models import parsed

ARCHES = ["gfx942", pytest.param("gfx1100", marks=pytest.mark.slow)]
SUMS = """(int64[r,s] x, float[r,s] w) => (int64[r,s] y, float[r,s] z) {
  last = Constant<value_int = 1>()
  first = Constant<value_int = 0>()
  y = CumSum<exclusive = 1>(x, last)
  z = CumSum<reverse = 1>(w, first) }"""
FOUND = "(float[r,s] x) => (int64[m,n] y) { y = NonZero(x) }"
UPDATED = """(float[r,s] x, int64[r,s] i, float[r,s] u, int64[t,1] j, float[t,s] v)
    => (float[r,s] a, float[r,s] b, float[r,s] c, float[r,s] d) {
  a = ScatterElements<axis = 1>(x, i, u)
  b = ScatterElements<axis = 1, reduction = "add">(x, i, u)
  c = ScatterND(x, j, v)
  d = ScatterND<reduction = "max">(x, j, v) }"""
FIXED = """(float[3,77] x, int64[2,70] i, float[2,70] u, bool[40] p, int64[90,1] j, bool[90] q)
    => (float[3,77] a, float[3,77] b, bool[40] c) {
  a = ScatterElements<axis = 1>(x, i, u)
  b = ScatterElements<axis = 0, reduction = "mul">(x, i, u)
  c = ScatterND(p, j, q) }"""
COUNTED = """
import numpy as np, sys
import mgx_mlir
from tests.support.models import parsed
model = parsed(sys.argv[1], {}, opset=18).SerializeToString()
program = mgx_mlir.compile(model, "gpu", arch="gfx942", emulate=True, cache=False)
i, u = np.zeros((300, 77), np.int64), np.ones((300, 77), np.float32)
program.run(x=u, i=i, u=u)
"""


def compiled(net: str, arch: str) -> mgx_mlir.Program:
    model = parsed(net, {}, opset=18).SerializeToString()
    return mgx_mlir.compile(model, "gpu", arch=arch, emulate=True, cache=False)


@pytest.mark.parametrize("arch", ARCHES)
def test_running_sums(arch: str, library: Path) -> None:
    program = compiled(SUMS, arch)
    rng = np.random.default_rng(0)
    for shape in ((3, 0), (1, 1), (2, 63), (2, 64), (65, 65), (1, 4097), (2, 4160), (129, 2)):
        x, w = rng.integers(-9, 9, shape), rng.integers(-9, 9, shape).astype(np.float32)
        y, z = program.run(x=x, w=w)
        np.testing.assert_array_equal(y, np.cumsum(x, 1) - x)
        np.testing.assert_array_equal(z, np.cumsum(w[::-1], 0)[::-1])


@pytest.mark.parametrize("arch", ARCHES)
def test_running_sums_keep_what_comes_later_out(arch: str, library: Path) -> None:
    """No infinity or NaN reaches the sums ahead of it."""
    x = np.ones((1, 130), np.float32)
    x[0, 70], x[0, 90] = np.inf, np.nan
    program = compiled("(float[1,130] x, int64 a) => (float[1,130] y) { y = CumSum(x, a) }", arch)
    np.testing.assert_array_equal(program.run(x=x, a=np.array(1))[0], np.cumsum(x, 1))


@pytest.mark.parametrize("arch", ARCHES)
def test_nonzero(arch: str, library: Path) -> None:
    program = compiled(FOUND, arch)
    rng = np.random.default_rng(0)
    for shape in ((3, 0), (1, 1), (1, 64), (13, 5), (2, 2049), (3, 1400)):
        x = rng.integers(0, 2, shape).astype(np.float32)
        np.testing.assert_array_equal(program.run(x=x)[0], np.array(np.nonzero(x)))
    np.testing.assert_array_equal(program.run(x=np.zeros((5, 7), np.float32))[0], np.empty((2, 0)))


def scattered(x: np.ndarray, i: np.ndarray, u: np.ndarray, axis: int, how: str) -> np.ndarray:
    out = x.copy()
    for at in np.ndindex(*i.shape):
        to = [*at]
        to[axis] = i[at]
        new = {"none": u[at], "add": out[tuple(to)] + u[at], "mul": out[tuple(to)] * u[at]}
        out[tuple(to)] = new[how]
    return out


@pytest.mark.parametrize("arch", ARCHES)
def test_updates_that_meet(arch: str, library: Path) -> None:
    program = compiled(UPDATED, arch)
    rng = np.random.default_rng(0)
    for (rows, columns), count in (((1, 1), 1), ((2, 63), 65), ((5, 64), 0), ((3, 65), 64)):
        x, u = (rng.integers(-9, 9, (rows, columns)).astype(np.float32) for _ in range(2))
        v = rng.integers(-9, 9, (count, columns)).astype(np.float32)
        i = rng.integers(-columns, columns, (rows, columns))
        j = rng.integers(-rows, rows, (count, 1))
        a, b, c, d = program.run(x=x, i=i, u=u, j=j, v=v)
        np.testing.assert_array_equal(a, scattered(x, i, u, 1, "none"))
        np.testing.assert_array_equal(b, scattered(x, i, u, 1, "add"))
        want = x.copy(), x.copy()
        for at, row in zip(j[:, 0], v, strict=True):
            want[0][at], want[1][at] = row, np.maximum(want[1][at], row)
        np.testing.assert_array_equal(c, want[0])
        np.testing.assert_array_equal(d, want[1])


@pytest.mark.parametrize("arch", ARCHES)
def test_updates_of_fixed_dims(arch: str, library: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-2, 3, (3, 77)).astype(np.float32)
    u = rng.integers(-2, 3, (2, 70)).astype(np.float32)
    i, j = rng.integers(-3, 3, (2, 70)), rng.integers(-40, 40, (90, 1))
    p, q = rng.random(40) < 0.5, rng.random(90) < 0.5
    a, b, c = compiled(FIXED, arch).run(x=x, i=i, u=u, p=p, j=j, q=q)
    np.testing.assert_array_equal(a, scattered(x, i, u, 1, "none"))
    np.testing.assert_array_equal(b, scattered(x, i, u, 0, "mul"))
    want = p.copy()
    for at, to in zip(j[:, 0], q, strict=True):
        want[at] = to
    np.testing.assert_array_equal(c, want)


@pytest.mark.emulator
def test_no_wave_does_all_updates(library: Path, tmp_path: Path) -> None:
    """One wave took 181 thousand instructions for 23,100 updates."""
    net = """(float[300,77] x, int64[300,77] i, float[300,77] u) => (float[300,77] y) {
y = ScatterElements<axis=1>(x, i, u) }"""
    stats = tmp_path / "stats"
    environment = {**os.environ, "MGX_EMULATE_STATS": str(stats)}
    environment["MGX_EMULATOR_PATH"] = str(library)
    subprocess.run([sys.executable, "-c", COUNTED, net], env=environment, check=True)
    launches = json.loads(stats.read_text())["launches"]
    assert max(one["instructions"] / one["waves"] for one in launches) < 181_000 / 100
