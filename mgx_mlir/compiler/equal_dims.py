"""Specialise a program for dynamic dims that are usually equal.

Files often give each dim of each input its own name. Where an operator broadcasts two of them,
either may be 1 at run time. The general program tests for that, and fuses little. The variant
assumes that such dims are equal to each other, and to the dims of weights that they are combined
with. Dims that a check compares with a number are assumed to have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.dialects.migraphx.broadcasts import BroadcastForDot, BroadcastWithDims
from mgx_mlir.dialects.migraphx.require import Require
from mgx_mlir.programs.dim_probe import DimProbe
from mgx_mlir.programs.program_ir import ProgramIR, entry_block
from mgx_mlir.programs.signature import Port, Signature, Variant
from mgx_mlir.symbolic.expressions import Atom, Expr, Int, size_of

FUNCTION = "main_alike"
Place = tuple[int, int]  # an input's number, and a dim's
Specialise = Callable[[ProgramIR, Variant], ProgramIR]
_READINGS = 3  # times that dims are collected again, after the first


class EqualDims:
    """Dynamic dims of the inputs that are assumed equal, collected in several rounds."""

    def __init__(self, signature: Signature) -> None:
        self._ports = signature.inputs
        self._above: dict[Place, Place] = {}
        self._sizes: dict[Place, int] = {}
        self._numbers: set[Place] = set()  # dims with two numbers

    def add(self, program: ProgramIR) -> bool:
        """Collect dims that are broadcast together in a program; return whether there are new
        ones.
        """
        with program.ctx, program.store.active():
            main = program.main()
            arguments = list(entry_block(main).arguments)
            probe, ports = DimProbe(), Signature.of(main).inputs
            probe.active = True
            places: dict[Atom, Place] = {}
            for i, (argument, port) in enumerate(zip(arguments, ports, strict=True)):
                ranges = [(r.min, r.max) for r in port.ranges]
                probe.argument(argument, [r.symbol for r in port.ranges], ranges)
                for d, e in enumerate(probe.dims(argument)):
                    atom = size_of(e)
                    if atom is not None:
                        self._join(places.setdefault(atom, (i, d)), (i, d))
            before = self.variant()
            for view in entry_block(main).operations:
                for met in _meetings(probe, view.operation):
                    self._meet(places, met)
        return self.variant() != before

    def _root(self, p: Place) -> Place:
        while p in self._above:
            p = self._above[p]
        return p

    def _join(self, p: Place, q: Place) -> None:
        a, b = sorted((self._root(p), self._root(q)))
        if a == b:
            return
        self._above[b] = a
        if b in self._numbers:
            self._numbers.add(a)
        if b in self._sizes:
            self._tell(a, self._sizes.pop(b))

    def _tell(self, p: Place, n: int) -> None:
        if self._sizes.setdefault(self._root(p), n) != n:
            self._numbers.add(self._root(p))

    def _meet(self, places: dict[Atom, Place], met: list[Int]) -> None:
        atoms = [size_of(e) for e in met if not isinstance(e, int)]
        found = [places[a] for a in atoms if a in places]
        numbers = {e for e in met if isinstance(e, int) and e != 1}
        # sizes that are computed from dims are skipped; so are dims combined with several constants
        if len(found) < len(atoms) or not found or len(numbers) > 1:
            return
        for p in found[1:]:
            self._join(found[0], p)
        for n in numbers:
            self._tell(found[0], n)

    def variant(self) -> Variant | None:
        """Return the variant for inputs with equal dims; None where no dims are assumed equal."""
        groups: dict[Place, list[Place]] = {}
        for i, port in enumerate(self._ports):
            for d, n in enumerate(port.dims):
                if n == -1:
                    groups.setdefault(self._root((i, d)), []).append((i, d))
        sizes: list[tuple[int, int, int]] = []
        alike: list[tuple[Place, ...]] = []
        for root, members in groups.items():
            ranges = [_range(self._ports, p) for p in members]
            low, high = max(r[0] for r in ranges), min(r[1] for r in ranges)
            n = self._sizes.get(root)
            if root in self._numbers or low > high or (n is not None and not low <= n <= high):
                continue
            if n is not None:
                sizes += [(*p, n) for p in members]
            elif len({_symbol(self._ports, p) for p in members}) > 1:
                alike.append(tuple(members))
        if not sizes and not alike:
            return None
        return Variant(FUNCTION, tuple(sorted(sizes)), tuple(sorted(alike)))


def _range(ports: tuple[Port, ...], p: Place) -> tuple[int, float]:
    r = ports[p[0]].ranges[p[1]]
    return r.min, float("inf") if r.max is None else r.max


def _symbol(ports: tuple[Port, ...], p: Place) -> object:
    """Return the name of a dim; a dim without one gets a unique name."""
    found = ports[p[0]].ranges[p[1]].symbol
    return p if found is None else found


def _meetings(probe: DimProbe, op: ir.Operation) -> Iterator[list[Int]]:
    """Yield groups of different extents that an op broadcasts together, or demands to be equal."""
    if is_a(op, Require):
        yield from map(_demanded, probe.elements(op.operands[1]) or ())
        return
    if is_a(op, BroadcastForDot):
        own, other = (list(probe.dims(v))[:-2] for v in op.operands)
        columns = list(zip(reversed(own), reversed(other), strict=False))
    elif is_a(op, BroadcastWithDims):
        wanted = probe.elements(op.operands[1])
        if wanted is None:
            return
        columns = list(zip(reversed(probe.dims(op.operands[0])), reversed(wanted), strict=False))
    else:
        return
    for own, wanted in columns:
        found = _chosen(wanted) if is_a(op, BroadcastWithDims) else [wanted]
        # a dim that is broadcast to a computed extent is usually 1
        if is_a(op, BroadcastWithDims) and len(found) < 2:
            continue
        if any(e != own for e in found) and own != 1 and 1 not in found:
            yield [own, *found]


def _demanded(condition: Int) -> list[Int]:
    """Return the size and the number that a condition compares; nothing for other conditions."""
    test = None if isinstance(condition, int) else condition.only()
    if test is None or test[0].kind != "eq" or test[1]:
        return []
    difference = test[0].arguments[0]
    for p in (difference, -difference) if isinstance(difference, Expr) else ():
        alone = None if isinstance(p, int) else p.only()
        if alone is not None:
            return [p - alone[1], -alone[1]]
    return []


def _chosen(e: Int) -> list[Int]:
    """Return the extents that a broadcast extent is chosen from."""
    if not isinstance(e, Expr):
        return [e]
    space = e.space
    for test in e.atoms():
        p = test.arguments[0]
        if test.kind != "eq" or not isinstance(p, Expr):
            continue
        kept, other = e.replaced(test, 0), e.replaced(test, 1)
        if space.equal(kept, 1) is space.polynomial({(test,): 1}):
            return [*_chosen(kept), *_chosen(space.solved(other, p))]
    return [e]


def equal_dims(program: ProgramIR, specialised: Specialise) -> tuple[Variant, ProgramIR] | None:
    """Return the variant for equal dims, and its program, if there is one.

    specialised: makes the program of a variant.
    """
    found = EqualDims(Signature.of(program.main()))
    if not found.add(program):
        return None
    variant = found.variant()
    assert variant is not None
    made = specialised(program, variant)
    for _ in range(_READINGS):  # equal dims reveal further pairs
        if not found.add(made):
            break
        variant = found.variant()
        assert variant is not None
        made = specialised(program, variant)
    return variant, made
