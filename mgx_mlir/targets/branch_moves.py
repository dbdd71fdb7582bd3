"""Repair of the register moves at branches of compiled programs (docs/iree-hazards.md, hazard 20).

A branch in IREE's bytecode has a list of sequential moves. IREE orders 32-bit moves and 64-bit
moves separately. Where one kind overwrites a register that the other still reads, a size or offset
is corrupted, and memory outside of a buffer is written. The lists are read from the disassembly,
and those in a wrong order are corrected in the module's bytes.
"""

from __future__ import annotations

import functools
import re
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import TargetError
from mgx_mlir.hardware.machine import runtime_tool

# a register's kind ("i": 32 bits, 64-bit values take two; "r": a reference) and number
Register = tuple[str, int]
Move = tuple[Register, Register]

_FUNCTION = re.compile(r"^vm\.func ", re.M)
_LIST = re.compile(r"\^bb\d+\(([^()]*->[^()]*)\)")
_MOVE = re.compile(r"%([iIrR])(\d+)->%([ir])(\d+)")
_MENTION = re.compile(r"%[iI](\d+)(?::(\d+))?")
_SECONDS = 120
VERSION = "moves 1"  # part of a cached module's key; changes with this code
_REFERENCE, _TAKEN = 0x8000, 0x4000


@dataclass(frozen=True)
class _Moves:
    """A list of moves in the module's order, with the indices of moved references."""

    moves: tuple[Move, ...]
    taken: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> _Moves:
        found = _MOVE.findall(text)
        moves = tuple(((a.lower(), int(n)), (b, int(m))) for a, n, b, m in found)
        return cls(moves, frozenset(i for i, row in enumerate(found) if row[0] == "R"))

    @property
    def values(self) -> tuple[Move, ...]:
        """The moves of values. Moves of references have one kind, so IREE orders them correctly."""
        return tuple(m for m in self.moves if m[0][0] == "i")

    def with_values(self, values: tuple[Move, ...]) -> _Moves:
        """Return the list with these moves of values before its references."""
        places = [i for i, m in enumerate(self.moves) if m[0][0] == "r"]
        taken = frozenset(len(values) + n for n, i in enumerate(places) if i in self.taken)
        return _Moves((*values, *(self.moves[i] for i in places)), taken)

    def encoded(self) -> bytes:
        """Encode the list as bytecode: the number of moves, then source and destination of each."""
        words = [len(self.moves)]
        for i, (source, destination) in enumerate(self.moves):
            flags = _REFERENCE if source[0] == "r" else 0
            words.append(source[1] | flags | (_TAKEN if i in self.taken else 0))
            words.append(destination[1] | flags)
        return struct.pack(f"<{len(words)}H", *words)


def mend(vmfb: bytes) -> bytes:
    """Correct the order of every list of moves of a module; return the bytes unchanged if none is
    wrong.

    Errors: ValueError where a list cannot be put right, because its moves form a cycle and no
    register is free; TargetError where the disassembler is missing or fails.
    """
    wrong = _wrong_lists(_disassembly(vmfb))
    for moves, (mended, count) in wrong.items():
        old = moves.encoded()
        if vmfb.count(old) != count:
            raise ValueError("the moves of a branch are not where they were expected")
        vmfb = vmfb.replace(old, mended.encoded())
    if wrong and _wrong_lists(_disassembly(vmfb)):
        raise ValueError("the moves of a branch could not be put in order")
    return vmfb


def _wrong_lists(text: str) -> dict[_Moves, tuple[_Moves, int]]:
    """Return each list in a wrong order, with the corrected list and its number of occurrences."""
    found: dict[_Moves, tuple[_Moves, int]] = {}
    for function in _FUNCTION.split(text)[1:]:
        lists = [_Moves.parse(m[1]) for m in _LIST.finditer(function)]
        if all(_in_order(each.values) for each in lists):
            continue
        scratch = _scratch(function, lists)
        for each in lists:
            values = ordered(each.values, scratch)
            if values != each.values:
                mended = each.with_values(values)
                known, count = found.get(each, (mended, 0))
                if known != mended:
                    raise ValueError("two branches with the same moves mean different ones")
                found[each] = (mended, count + 1)
    return found


def _in_order(moves: Iterable[Move]) -> bool:
    """Return whether no move reads what an earlier move wrote."""
    written: set[Register] = set()
    for source, destination in moves:
        if source in written:
            return False
        written.add(destination)
    return True


def _scratch(function: str, lists: Iterable[_Moves]) -> frozenset[Register]:
    """Return the scratch registers, which hold values during moves only.

    Their numbers are above those of all instructions, and every list with one writes it before
    reading it. A list that only writes a register moves a value of the program.
    """
    rest = _LIST.sub("", function)
    highest = max((int(b or a) for a, b in _MENTION.findall(rest)), default=-1)
    uses: Counter[Register] = Counter()
    passing: Counter[Register] = Counter()
    for each in lists:
        written: set[Register] = set()
        through: set[Register] = set()
        for source, destination in each.values:
            if source in written:
                through.add(source)
            written.add(destination)
        uses.update(written | {source for source, _ in each.values})
        passing.update(through)
    return frozenset(r for r, n in passing.items() if n == uses[r] and r[1] > highest)


def ordered(moves: tuple[Move, ...], scratch: frozenset[Register]) -> tuple[Move, ...]:
    """Order the moves so that they bring the same values to the same registers.

    The given moves are a parallel move; a pair through a scratch register counts as one. A correct
    list is returned unchanged. Errors: ValueError for a cycle without a scratch register.
    """
    meant = _meant(moves, scratch)
    if _effect(moves, meant) == meant:
        return moves
    left = dict(meant)
    found: list[Move] = []
    free = sorted(scratch.intersection(d for _, d in moves))
    spare = len(moves) - len(meant)
    while left:
        ready = [d for d in left if d not in set(left.values())]
        if ready:
            found += [(left.pop(d), d) for d in ready]
            continue
        # save the value that a cycle would overwrite in a scratch register
        circle = next(iter(left))
        if not spare or not free:
            raise ValueError("the moves of a branch form a cycle, and no register is free")
        spare, keep = spare - 1, free.pop()
        found.append((circle, keep))
        left = {d: keep if s == circle else s for d, s in left.items()}
    # a move of a register to itself fills the list up to its length
    fill = found[-1][1]
    return (*found, *[(fill, fill)] * spare)


def _meant(moves: Iterable[Move], scratch: frozenset[Register]) -> dict[Register, Register]:
    """Return the register whose former value each destination must get."""
    held: dict[Register, Register] = {}
    meant: dict[Register, Register] = {}
    for source, destination in moves:
        origin = held.get(source, source)
        if destination in scratch:
            held[destination] = origin
        else:
            meant[destination] = origin
    return {d: s for d, s in meant.items() if d != s}


def _effect(moves: Iterable[Move], of: Iterable[Register]) -> dict[Register, Register]:
    """Return the register whose former value each register of `of` has after the sequential
    moves.
    """
    value: dict[Register, Register] = {}
    for source, destination in moves:
        value[destination] = value.get(source, source)
    return {d: value.get(d, d) for d in of}


@functools.cache
def _tool() -> Path:
    return runtime_tool("iree-dump-module")


def _disassembly(vmfb: bytes) -> str:
    """Return the code of a module as text, without its data."""
    with tempfile.NamedTemporaryFile(suffix=".vmfb") as f:
        f.write(vmfb)
        f.flush()
        try:
            with interrupts.at_once():
                done = subprocess.run(
                    [str(_tool()), "--output=disassembly", f.name],
                    capture_output=True,
                    text=True,
                    timeout=_SECONDS,
                    check=True,
                )
        except (OSError, subprocess.SubprocessError) as e:
            raise TargetError(f"the compiled module cannot be read: {e}") from e
    return "\n".join(line for line in done.stdout.splitlines() if not line.startswith("vm.rodata"))
