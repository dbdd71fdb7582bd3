"""One program with both forms of each dot, selected by an input, to measure without recompiling."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from mgx_mlir.compiler.compile import compile
from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, mnemonic
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.programs.build import Builder
from mgx_mlir.programs.program_ir import NAME, ProgramIR, entry_block, result_names
from mgx_mlir.programs.taps import set_kind, with_results
from mgx_mlir.quantization.samples import Sample
from mgx_mlir.quantization.sensitivity import Narrow
from mgx_mlir.quantization.sites import Site, sites

_THROUGH = ("softmax", "logsoftmax", "sigmoid", "reshape", "transpose", "squeeze", "unsqueeze")
_CHOICE = "mgx.kept"  # input that selects the ops to keep wide


class Switched:
    """A prepared program of which any dots and convolutions can be computed in smaller types.

    wanted: the ops; narrow: converts one to smaller types; wide: type of the ops that are kept,
    None for their own.
    """

    def __init__(
        self,
        base: ProgramIR,
        wanted: Sequence[Site],
        narrow: Narrow,
        wide: Narrow | None,
        target: str,
    ) -> None:
        self.names = [s.name for s in wanted]
        made = with_results(_with_choice(base, self.names, narrow, wide), _scores)
        self._compiled = compile(made, target)
        self._own = len(result_names(base.main()))

    def outputs(self, kept: Collection[str], given: Sequence[Sample]) -> list[list[np.ndarray]]:
        """Return the results on samples, with all ops except `kept` in smaller types."""
        return [found[: self._own] for found in self._run(kept, given)]

    def scores(self, kept: Collection[str], given: Sequence[Sample]) -> list[list[np.ndarray]]:
        """Return the results; for a softmax or sigmoid its operand.

        The operand's error grows steadily with the rounding, while a probability's is tiny or
        complete.
        """
        return [found[self._own :] for found in self._run(kept, given)]

    def _run(self, kept: Collection[str], given: Sequence[Sample]) -> list[list[np.ndarray]]:
        choice = np.array([name in kept for name in self.names], np.float32)
        run = self._compiled.run
        return [[np.array(a) for a in run({**sample, _CHOICE: choice})] for sample in given]


def _scores(block: ir.Block) -> list[tuple[str, ir.Value]]:
    """Name the operands of softmax and sigmoid behind the results, through views."""
    returned = list(block.operations)[-1].operands
    found: list[tuple[str, ir.Value]] = []
    for i, value in enumerate(returned):
        score = value
        while not isinstance(score.owner, ir.Block) and mnemonic(score.owner) in _THROUGH:
            score = score.owner.operation.operands[0]
        found.append((f"score_{i}", score))
    return found


def _with_choice(
    base: ProgramIR, names: Sequence[str], narrow: Narrow, wide: Narrow | None
) -> ProgramIR:
    """Copy a program in which each op exists twice, and an additional input selects."""
    copy = base.clone()
    found = {s.name: s for s in sites(copy, computed_operands=True)}
    with copy.ctx, copy.store.active(), ir.Location.unknown():
        main = copy.main()
        choice = _argument(main, len(names))
        for i, name in enumerate(names):
            _chosen(found[name], choice, i, narrow, wide)
    return copy


def _argument(main: ir.OpView, count: int) -> ir.Value:
    """Add the selecting input after the others."""
    kind = ir.RankedTensorType.get([count], dtypes.FLOAT.ir_type())
    added = entry_block(main).add_argument(kind, ir.Location.unknown())
    old = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
    entries = [ir.DictAttr.get({}) for _ in old.inputs]
    if "arg_attrs" in main.attributes:
        entries = [ir.DictAttr(a) for a in ir.ArrayAttr(main.attributes["arg_attrs"])]
    entries.append(ir.DictAttr.get({NAME: ir.StringAttr.get(_CHOICE)}))
    set_kind(main, [*old.inputs, kind], list(old.results))
    main.attributes["arg_attrs"] = ir.ArrayAttr.get(entries)
    return added


def _chosen(site: Site, choice: ir.Value, i: int, narrow: Narrow, wide: Narrow | None) -> None:
    """Replace an op by an If that computes the selected one of its two forms."""
    b, op = Builder(), site.op
    result = op.results[0]
    with op.location, ir.InsertionPoint.after(op):
        flag = b.op("slice", choice, axes=[0], starts=[i], ends=[i + 1])
        flag = b.op("greater", b.reshape(flag, dims=[]), b.literal(0.5, dtypes.FLOAT))
        flag = b.op("convert", flag, target_type=dtypes.BOOL)
        made = OPS["if"](flag, [], results=[TensorType.of(result)]).operation
        result.replace_all_uses_with(made.results[0])
        for region, form in zip(made.regions, (wide, narrow), strict=True):
            with ir.InsertionPoint(region.blocks.append()):
                # the rounding of an operand is also after it in the body
                held = [b.op("identity", v) for v in list(op.operands)[: len(site.values)]]
                twin = op.clone()
                for k, v in enumerate(held):
                    twin.operands[k] = v
                end = OPS["yield"]([twin.results[0]]).operation
                if form is not None:
                    copy = Site(site.name, site.kind, twin, site.values, site.weights)
                    end.operands[0] = form(copy)
    op.erase()
