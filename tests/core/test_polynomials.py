"""Dims of a kernel's operands as text, from which the kernel can tell each size."""

from __future__ import annotations

from mgx_mlir.symbolic.polynomials import polynomials, read_polynomials
from mgx_mlir.symbolic.space import Space


def test_a_multiple_tells_a_size() -> None:
    """Rows of all images: their number is known by the rows of one."""
    space = Space()
    images, length = space.size("images"), space.size("length")
    assert polynomials([[images * 257, 1152]]) == ["257*d0, 1152"]
    assert polynomials([[images * 6, 8], [images, length]]) == ["6*d0, 8", "d0, d1"]
    assert polynomials([[images * 6 + 1]]) == ["d0"]
    assert polynomials([[images * length], [length]]) == ["d0", "d1"]
    again = Space()
    ((rows, width),) = read_polynomials(["257*d0, 1152"], again)
    assert (rows, width) == (again.size("d0", 0) * 257, 1152)
