"""The steps of recurrent networks as one kernel: a workgroup runs all steps of some sequences.

A workgroup owns some rows of the batch in one direction, and its states stay in scratch: each
step reads the whole state before it. A tile is some rows by some registers of every gate, whose
sums of h R^T begin with the input's share and accumulate over the hidden units; the state is
computed from the gates in registers.

States that are quantized have a range over the whole batch: a workgroup owns all rows of its
direction. Their number is dynamic, so the states are unused results of the dispatch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, vector
from mgx_mlir.core.records import dataclass
from mgx_mlir.passes.lowering.cpu.frame.elements import narrow, widen
from mgx_mlir.passes.lowering.cpu.frame.exponential import bounded
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    SCRATCH_BYTES,
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.cpu.recurrent.activations import Function
from mgx_mlir.passes.lowering.cpu.recurrent.recurrent_codes import Column, StateCodes
from mgx_mlir.passes.lowering.iree import iree_ops
from mgx_mlir.passes.lowering.scalar import TypedScalar

Vector = ir.Value
Tensors = dict[str, ir.Value]

ROWS = 4  # rows of a tile and of a workgroup: 4 gates have as many sums as a GEMM tile
STREAMS = 4  # registers of hidden units of a tile; more streams of R map to the same cache sets


@dataclass(frozen=True)
class Network:
    """The recurrent network that a kernel computes."""

    # gates whose matmuls are summed in one loop; a second group multiplies another state than h
    groups: tuple[tuple[int, ...], ...]
    gates: int
    hidden: int  # hidden units
    directions: int
    backward: bool  # steps run from the last to the first
    clip: float  # bound of the inputs of activation functions, 0 for none
    functions: tuple[Function, ...]  # activations of the gates, of the candidate, of the cell
    late: bool = False  # reset gate of a GRU is applied after its matmul
    forget_tied: bool = False  # forget gate of an LSTM is 1 - i
    has_cell: bool = False  # state has a cell beside h
    quantized: bool = False  # R holds whole numbers, multiplied by 8-bit codes of the state
    bytes: bool = False  # whole numbers of R are i8, not f32

    @property
    def kept(self) -> dict[str, DType]:
        """Return the tensors kept for all rows where states are quantized: states, codes, cells."""
        return {
            "h": dtypes.FLOAT,
            "codes": dtypes.INT8 if self.bytes else dtypes.FLOAT,
            "c": dtypes.FLOAT,
        }

    @property
    def scratch_rows(self) -> int:
        """Return how many vectors of hidden units a row of the batch keeps."""
        return 2 + int(self.has_cell) + (2 if len(self.groups) > 1 else 0)

    def registers(self, lanes: int) -> int:
        """Return the registers that the hidden units take."""
        return -(-self.hidden // lanes)

    def rows(self, batch: Index, isa: Isa) -> int:
        """Return the rows of a workgroup; 0 if not even one row's states fit into scratch."""
        room = SCRATCH_BYTES // (4 * self.scratch_rows * self.registers(isa.lanes) * isa.lanes)
        widest = max(len(g) for g in self.groups)
        most = min(ROWS, room, max(1, isa.sums // widest))
        if most < 1 or not isinstance(batch, int):
            return max(most, 0)
        return -(-batch // -(-batch // most)) if batch else most


def pack(recurrence: np.ndarray, network: Network, lanes: int) -> list[np.ndarray]:
    """R {directions, gates hidden, hidden} as it is read, for each group of gates.

    {directions, registers, hidden, gates lanes}: the rows of R that make a register of each gate.
    """
    d, h, count = network.directions, network.hidden, network.registers(lanes)
    wide = np.zeros((d, network.gates, count * lanes, h), np.float32)
    wide[:, :, :h] = recurrence.reshape(d, network.gates, h, h)
    wide = wide.reshape(d, network.gates, count, lanes, h)
    return [
        np.ascontiguousarray(wide[:, list(g)].transpose(0, 2, 4, 1, 3)).reshape(
            d, count, h, len(g) * lanes
        )
        for g in network.groups
    ]


def steps_kernel(
    network: Network,
    isa: Isa,
    extents: tuple[Index, Index],
    inputs: dict[str, ir.Value],
    results: Sequence[str],
    dtype: DType,
) -> list[ir.Value]:
    """Make the dispatch.

    extents: of the steps and of the batch. inputs: `x`, `r0` (and `r1`) of `pack`, and as they are
    given `bias`, `lens`, `h`, `c`, `peephole`, `scale` of R's rows. Of i8 R `r0` is of
    `pack_bytes`, and `totals` are the sums of its rows. results: `out`, `cells`.
    """
    steps, batch = extents
    names = list(inputs)

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        own = dict(zip(names, k.inputs, strict=True))
        return _Body(k, network, isa, extents, own, dtype).build(results)

    dims = [steps, network.directions, batch, network.hidden]
    made = [(dims, dtype) for _ in results]
    rows = (batch, network.rows(batch, isa))
    if network.quantized:
        wide = network.registers(isa.lanes) * isa.lanes
        states = [network.directions, batch, wide]
        made += [(states, t) for t in network.kept.values()]
        rows = (1, 1)
    given = list(inputs.values())
    found = dispatch(given, made, [(network.directions, 1), rows], body, [steps, batch])
    for state in found[len(results) :]:  # otherwise IREE drops the result and its memory
        iree_ops.barrier(state)
    return found[: len(results)]


class _Body:
    """The loops of one workgroup. The tensors that they carry go by name: `out` and `cells`, the
    states `h` of this step and the next, `c`, and `z` and `reset` (r h) of an early reset."""

    def __init__(
        self, k: WorkgroupBuilder, network: Network, isa: Isa, extents: tuple[Index, Index],
        inputs: Tensors, dtype: DType,
    ) -> None:  # fmt: skip
        self.k, self.n, self.lanes, self.inputs, self.dtype = k, network, isa.lanes, inputs, dtype
        self.steps, batch = k.inner(extents[0]), k.inner(extents[1])
        self.direction, self.row = k.at
        self.most = network.rows(extents[1], isa)
        whole = isinstance(batch, int) and batch % self.most == 0
        self.rows: Index = self.most if whole else k.min(self.most, k.sub(batch, self.row))
        if network.quantized:
            self.rows = batch
        self.count, self.sums = network.registers(isa.lanes), isa.sums
        # rows of the last group, for a known batch
        self.last = batch % self.most if isinstance(batch, int) else 0
        self.names: list[str] = []
        self.t: Index = 0
        self.now: Index = 0  # first index of the states of this step, and of the next
        self.next: Index = 0
        # registers beside the sums hold states only, while columns are streamed
        self.columns_first = isa.registers >= 32
        self.codes = StateCodes(k, isa, network.hidden, inputs)

    # ---- the loops ---------------------------------------------------------------------------

    def build(self, results: Sequence[str]) -> list[ResultTile]:
        k, n = self.k, self.n
        sizes = [self.steps, 1, self.rows, n.hidden]
        wide = self.count * self.lanes
        made = {name: k.empty(sizes, self.dtype) for name in results}
        own = [1, self.rows, wide]
        if n.quantized:
            made |= {name: k.empty(own, t) for name, t in n.kept.items()}
        else:
            made["h"] = k.empty([2 * self.most, wide])
            if n.has_cell:
                made["c"] = k.empty([self.most, wide])
        if len(n.groups) > 1:
            made |= {name: k.empty([self.most, wide]) for name in ("z", "reset")}
        self.names = list(made)
        made = self.started(made)

        def step(i: Index, carried: list[ir.Value]) -> list[ir.Value]:
            back = k.sub(k.sub(self.steps, 1), i)
            self.t = back if n.backward else i
            if n.directions > 1:
                first = k.is_equal(self.direction, 0)
                self.t = arith.SelectOp(first, k.index(i), k.index(back)).result
            if not n.quantized:  # the matmul reads a copy then
                self.now = k.mul(k.rem(i, 2), self.most)
                self.next = k.sub(self.most, self.now)
            return self.values(self.step(self.named(carried)))

        made = self.named(k.loop(0, self.steps, 1, self.values(made), step))
        at = [0, self.direction, self.row, 0]
        tiles = [ResultTile(made[name], at, sizes) for name in results]
        if n.quantized:
            tiles += [ResultTile(made[name], [self.direction, 0, 0], own) for name in n.kept]
        return tiles

    def named(self, values: Sequence[ir.Value]) -> Tensors:
        return dict(zip(self.names, values, strict=True))

    def values(self, tensors: Tensors) -> list[ir.Value]:
        return [tensors[name] for name in self.names]

    def started(self, made: Tensors) -> Tensors:
        """Return the scratch with the first states in it."""
        k = self.k
        zero = k.splat(0.0, self.lanes)

        def row(i: Index, carried: list[ir.Value]) -> list[ir.Value]:
            own = self.named(carried)
            for p in range(self.count):
                for name in ("h", "c"):
                    if name in own:
                        first = zero
                        if name in self.inputs:
                            at = [self.direction, k.add(self.row, i), p * self.lanes]
                            first = self.read(name, at, masked=self.is_tail(p))
                        own[name] = k.write(first, own[name], self.position(i, p * self.lanes))
            return self.values(own)

        return self.named(k.loop(0, self.rows, 1, self.values(made), row))

    def step(self, made: Tensors) -> Tensors:
        """Run one step: rows in tiles, and what is left one by one."""
        k = self.k
        if self.n.quantized:
            made["codes"] = self.codes.of_states(made["h"], made["codes"], self.rows)
        if isinstance(self.rows, int) and self.rows <= self.most:
            return self.tiles(0, self.rows, made)

        def single(i: Index, carried: list[ir.Value]) -> list[ir.Value]:
            return self.values(self.tiles(i, 1, self.named(carried)))

        def tile(i: Index, carried: list[ir.Value]) -> list[ir.Value]:
            return self.values(self.tiles(i, self.most, self.named(carried)))

        values = self.values(made)
        if self.n.quantized:
            whole = k.sub(self.rows, k.rem(self.rows, self.most))
            values = k.loop(0, whole, self.most, values, tile)
            return self.named(k.loop(whole, self.rows, 1, values, single))
        if self.most == 1:
            return self.tiles(0, 1, made)

        def rest() -> list[ir.Value]:
            if self.last:
                return self.values(self.tiles(0, self.last, made))
            return k.loop(0, self.rows, 1, values, single)

        return self.named(
            k.when(
                k.is_equal(self.rows, self.most),
                lambda: self.values(self.tiles(0, self.most, made)),
                rest,
                [v.type for v in values],
            )
        )

    def tiles(self, row: Index, high: int, made: Tensors) -> Tensors:
        """Run one step of `high` rows: every group of gates, in tiles of registers."""
        for i, group in enumerate(self.n.groups):
            wide = max(1, min(STREAMS, self.sums // (len(group) * high)))
            made = self.along(
                wide, made, lambda p, count, m, i=i: self.tile(i, (row, high), (p, count), m)
            )
        return made

    def along(
        self, wide: int, made: Tensors, body: Callable[[Index, int, Tensors], Tensors]
    ) -> Tensors:
        """Split the registers of the hidden units into tiles of `wide`; the last tile is built
        separately.

        Only the last register may be masked, so it is in a tile whose position is a number.
        """
        whole = self.n.hidden // self.lanes
        main = whole - whole % wide
        if main == wide:
            made = body(0, wide, made)
        elif main:
            found = self.k.loop(
                0, main, wide, self.values(made),
                lambda p, c: self.values(body(p, wide, self.named(c))),
            )  # fmt: skip
            made = self.named(found)
        return body(main, self.count - main, made) if main < self.count else made

    # ---- a tile ------------------------------------------------------------------------------

    def tile(
        self, which: int, rows: tuple[Index, int], position: tuple[Index, int], made: Tensors
    ) -> Tensors:
        """One group of gates of some rows, `position`: the first register and how many."""
        k, group = self.k, self.n.groups[which]
        (row, high), (p, count) = rows, position
        spots = [(i, j) for i in range(high) for j in range(count)]
        shares = [self.share(g, k.add(row, i), k.add(p, j)) for i, j in spots for g in group]
        if not self.n.quantized:
            name, first = ("h", self.now) if which == 0 else ("reset", 0)
            positions = [self.position(k.add(row, first, i), 0) for i in range(high)]
            sums = self.products(f"r{which}", made[name], positions, position, shares)
        else:
            # sums of whole numbers are exact where they begin with 0
            zero = [k.splat(0.0, self.lanes) for _ in shares]
            positions = [self.position(k.add(row, i), 0) for i in range(high)]
            columns = [self.row_of_r(g, k.add(p, j)) for j in range(count) for g in group]
            if self.n.bytes:
                sums = self.codes.products(made["codes"], positions, position, columns)
            else:
                sums = self.products("r0", made["codes"], positions, position, zero)
            sums = self.codes.scaled(sums, columns, shares)
        for at, (i, j) in enumerate(spots):
            own = sums[at * len(group) : (at + 1) * len(group)]
            spot = _Spot(self, made, k.add(row, i), k.add(p, j))
            made = spot.finished(which, own)
        return made

    def products(
        self, weights: str, source: ir.Value, rows: Sequence[list[Index]],
        position: tuple[Index, int], init: list[Vector],
    ) -> list[Vector]:  # fmt: skip
        """Multiply some rows of states with R, and add to `init`: by row, register and gate."""
        k, (p, count) = self.k, position
        gates = len(init) // (len(rows) * count)

        spots = [(j, g) for j in range(count) for g in range(gates)]

        def column(d: Index, j: int, g: int) -> ir.Value:
            at = [self.direction, k.add(p, j), d, g * self.lanes]
            return k.read(self.inputs[weights], at, self.lanes)

        def state(d: Index, position: list[Index]) -> ir.Value:
            *outer, first = position
            return k.broadcast(k.element(source, [*outer, k.add(first, d)]), self.lanes)

        def depth(d: Index, sums: list[ir.Value]) -> list[ir.Value]:
            out = list(sums)
            if self.columns_first:
                columns = [column(d, *spot) for spot in spots]
                for i, row in enumerate(rows):
                    h = state(d, row)
                    for at, c in enumerate(columns):
                        to = i * len(spots) + at
                        out[to] = k.fma(h, c, sums[to])
                return out
            states = [state(d, row) for row in rows]
            for at, spot in enumerate(spots):
                c = column(d, *spot)
                for i, h in enumerate(states):
                    to = i * len(spots) + at
                    out[to] = k.fma(h, c, sums[to])
            return out

        return k.loop(0, self.n.hidden, 1, init, depth)

    def row_of_r(self, gate: int, p: Index) -> Column:
        """Return where the rows of R that a register takes begin, and whether it is the last."""
        return self.k.add(gate * self.n.hidden, self.k.mul(p, self.lanes)), self.is_tail(p)

    def share(self, gate: int, row: Index, p: Index) -> Vector:
        """Return the initial value of a gate's sums: the input's share, and biases."""
        n = self.n
        if n.late and gate == 2:  # the input's share is added after the reset
            return self.bias((5,), p)
        found = self.shown(gate, row, p)
        if "bias" not in self.inputs:
            return found
        return arith.AddFOp(found, self.bias((gate, n.gates + gate), p)).result

    def shown(self, gate: int, row: Index, p: Index) -> Vector:
        """Return the input's share of a gate."""
        k, n = self.k, self.n
        column = k.add(
            k.mul(self.direction, n.gates * n.hidden), gate * n.hidden, k.mul(p, self.lanes)
        )
        at = [self.t, k.add(self.row, row), column]
        return self.read("x", at, masked=self.is_tail(p))

    def bias(self, parts: Sequence[int], p: Index) -> Vector:
        """Return the sum of parts of the biases; 0 without them."""
        k = self.k
        total = k.splat(0.0, self.lanes)
        if "bias" not in self.inputs:
            return total
        for part in parts:
            at = [self.direction, k.add(part * self.n.hidden, k.mul(p, self.lanes))]
            own = self.read("bias", at, masked=self.is_tail(p))
            total = own if part == parts[0] else arith.AddFOp(total, own).result
        return total

    def position(self, row: Index, column: Index) -> list[Index]:
        """Return where an element of a state stands."""
        return [0, row, column] if self.n.quantized else [row, column]

    # ---- vectors -----------------------------------------------------------------------------

    def is_tail(self, p: Index) -> bool:
        """Return whether a register reaches past the hidden units."""
        return isinstance(p, int) and (p + 1) * self.lanes > self.n.hidden

    def read(self, name: str, at: Sequence[Index], *, masked: bool) -> Vector:
        """Return a vector of an input, in f32; lanes past the hidden units are undefined."""
        found = self.k.read(self.inputs[name], at, self.lanes, masked=0.0 if masked else None)
        return widen(self.k, TypedScalar(found, self.dtype), self.lanes).value

    def limited(self, x: Vector) -> Vector:
        return bounded(self.k, x, self.n.clip) if self.n.clip else x


class _Spot:
    """One register of hidden units of one row: from its gates to its states."""

    def __init__(self, body: _Body, made: Tensors, row: Index, p: Index) -> None:
        self.b, self.k, self.n, self.made = body, body.k, body.n, dict(made)
        self.row, self.p = row, p
        self.column = self.k.mul(p, body.lanes)

    def finished(self, which: int, sums: list[Vector]) -> Tensors:
        """Return the tensors after the activations of a group's sums."""
        n = self.n
        if n.has_cell:
            return self.lstm(sums)
        if n.gates == 1:
            return self.kept(n.functions[0](self.k, self.b.limited(sums[0])))
        if n.late:
            return self.late_gru(sums)
        return self.gates(sums) if which == 0 else self.early_gru(sums)

    def scratch(self, name: str) -> Vector:
        row = self.k.add(self.row, self.b.now) if name == "h" else self.row
        return self.k.read(self.made[name], self.b.position(row, self.column), self.b.lanes)

    def keep(self, name: str, x: Vector) -> None:
        if name == "h" and self.n.quantized and self.b.is_tail(self.p):
            # lanes past the hidden units are excluded from the range
            live = self.n.hidden % self.b.lanes
            kind = ir.VectorType.get([self.b.lanes], ir.IntegerType.get_signless(1))
            mask = vector.CreateMaskOp(kind, [self.k.index(live)]).result
            x = arith.SelectOp(mask, x, self.k.splat(0.0, self.b.lanes)).result
        row = self.k.add(self.row, self.b.next) if name == "h" else self.row
        self.made[name] = self.k.write(x, self.made[name], self.b.position(row, self.column))

    def gated(self, x: Vector, function: int = 0) -> Vector:
        return self.n.functions[function](self.k, self.b.limited(x))

    # ---- networks ----------------------------------------------------------------------------

    def gates(self, sums: list[Vector]) -> Tensors:
        """Keep the gate z and the reset state for the candidate's matmul."""
        z, reset = (self.gated(x) for x in sums)
        self.keep("z", z)
        self.keep("reset", arith.MulFOp(reset, self.scratch("h")).result)
        return self.made

    def early_gru(self, sums: list[Vector]) -> Tensors:
        return self.mixed(self.scratch("z"), self.gated(sums[0], 1))

    def late_gru(self, sums: list[Vector]) -> Tensors:
        z, reset = self.gated(sums[0]), self.gated(sums[1])
        shown = self.b.shown(2, self.row, self.p)
        if "bias" in self.b.inputs:
            shown = arith.AddFOp(shown, self.b.bias((2,), self.p)).result
        return self.mixed(z, self.gated(self.k.fma(reset, sums[2], shown), 1))

    def mixed(self, z: Vector, candidate: Vector) -> Tensors:
        """(1 - z) candidate + z h."""
        one = self.k.splat(1.0, self.b.lanes)
        new = arith.MulFOp(arith.SubFOp(one, z).result, candidate).result
        return self.kept(self.k.fma(z, self.scratch("h"), new))

    def lstm(self, sums: list[Vector]) -> Tensors:
        k, (i, o, forget, candidate) = self.k, sums
        cell = self.scratch("c")
        i = self.gated(self.peeked(i, 0, cell))
        if self.n.forget_tied:
            forget = arith.SubFOp(k.splat(1.0, self.b.lanes), i).result
        else:
            forget = self.gated(self.peeked(forget, 2, cell))
        new = arith.MulFOp(i, self.gated(candidate, 1)).result
        new = k.fma(forget, cell, new)
        o = self.gated(self.peeked(o, 1, new))
        return self.kept(arith.MulFOp(o, self.n.functions[2](k, new)).result, new)

    def peeked(self, x: Vector, part: int, cell: Vector) -> Vector:
        if "peephole" not in self.b.inputs:
            return x
        at = [self.b.direction, self.k.add(part * self.n.hidden, self.column)]
        own = self.b.read("peephole", at, masked=self.b.is_tail(self.p))
        return self.k.fma(own, cell, x)

    # ---- states ------------------------------------------------------------------------------

    def kept(self, state: Vector, cell: Vector | None = None) -> Tensors:
        """Store the new states; past a sequence's length keep the old ones, and store 0 as
        output.
        """
        k = self.k
        live = self.live()
        for name, shown, x in (("h", "out", state), ("c", "cells", cell)):
            if x is None:
                continue
            stored = x
            if live is not None:
                stored = arith.SelectOp(live, x, k.splat(0.0, self.b.lanes)).result
                x = arith.SelectOp(live, x, self.scratch(name)).result
            self.keep(name, x)
            if shown in self.made:
                value = narrow(
                    k, TypedScalar(stored, dtypes.FLOAT), self.b.dtype, self.b.lanes
                ).value
                at = [self.b.t, 0, self.row, self.column]
                self.made[shown] = k.write(
                    value, self.made[shown], at, masked=self.b.is_tail(self.p)
                )
        return self.made

    def live(self) -> ir.Value | None:
        """Return whether the step counts for the row, None where all do."""
        if "lens" not in self.b.inputs:
            return None
        k = self.k
        found = k.element(self.b.inputs["lens"], [k.add(self.b.row, self.row)])
        return k.is_less(self.b.t, arith.IndexCastOp(ir.IndexType.get(), found).result)
