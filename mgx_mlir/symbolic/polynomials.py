"""Text of rows of dims, as attributes store them: polynomials of sizes d0, d1, ..."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.symbolic.expressions import Atom, Expr, Int
from mgx_mlir.symbolic.space import Space


def polynomials(rows: Sequence[Sequence[Int]]) -> list[str]:
    """Return each row as `3, d0, 2*d0*d1 + 1`; each size, or a multiple of it, is a dim of a row.

    Every atom becomes a size. So does an expression with an atom that is not a dim by itself.
    """
    dims = [e for row in rows for e in row if isinstance(e, Expr)]
    alone = {found[0] for e in dims if (found := e.multiple()) is not None}
    numbers: dict[Atom | Expr, int] = {}

    def size(x: Atom | Expr) -> str:
        return f"d{numbers.setdefault(x, len(numbers))}"

    def text(e: Int) -> str:
        if isinstance(e, int):
            return str(e)
        if not alone.issuperset(e.atoms()):
            return size(e)
        return " + ".join(
            "*".join([str(c)] * (c != 1 or not m) + [size(a) for a in m])
            for m, c in e.terms.items()
        )

    return [", ".join(map(text, row)) for row in rows]


def read_polynomials(rows: Sequence[str], space: Space) -> list[list[Int]]:
    """Parse rows of `polynomials`, over sizes of these names."""

    def factor(text: str) -> Int:
        return space.size(text, 0) if text.startswith("d") else int(text)

    def expression(text: str) -> Int:
        total: Int = 0
        for term in text.split(" + "):
            part: Int = 1
            for x in term.split("*"):
                part = part * factor(x)
            total = total + part
        return total

    return [[expression(x) for x in row.split(", ")] if row else [] for row in rows]
