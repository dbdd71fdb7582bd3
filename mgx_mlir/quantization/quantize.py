"""Whole programs in 8 bits: prepare, calibrate, choose what stays wide, rewrite."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import mgx_mlir.passes  # noqa: F401  (declares the passes)
from mgx_mlir.compiler.compile import compile
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import UsageError
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.quantization.calibrate import Calibration, Progress, calibrate, outputs_of
from mgx_mlir.quantization.eight_bits import Quantiser, Scheme
from mgx_mlir.quantization.equalise import equalise
from mgx_mlir.quantization.ranges import METHODS, Range
from mgx_mlir.quantization.samples import Sample, samples
from mgx_mlir.quantization.scales import KnownRanges
from mgx_mlir.quantization.sensitivity import Sensitivity, sensitivities
from mgx_mlir.quantization.sites import OPS, LeftOut, Place, left_out, sites
from mgx_mlir.quantization.twins import in_8_bits, in_floats
from mgx_mlir.rewrite.passes import run_pipeline

# what is quantised already stays quantised: constants of it are not folded
OPTIMIZE = "mgx-optimize-module{skip=quantizelinear,dequantizelinear}"
Outputs = list[list[np.ndarray]]
Metric = Callable[[Outputs], float]


@dataclass(frozen=True)
class Options:
    """How a program is quantised.

    scheme: the types and scales. ops: the products that are; `computed_operands`: those of two
    computed operands too. keep: names of source nodes that stay as they are. method, percentile:
    how ranges are chosen (`Observer.range`). max_error: products stay wide, the most sensitive
    first, until the root mean square of what the outputs change by is at most this part of the
    outputs' own; metric, least: or until `metric` of the outputs of the held samples is at least
    `least`. kept_dtype: what products stay in for that, where it is enough; None: as they are.
    samples: how many are read. evaluate: the samples that errors and the metric are of,
    in place of the held ones of the calibration.
    """

    scheme: Scheme = field(default_factory=Scheme)
    ops: tuple[str, ...] = OPS
    computed_operands: bool = False
    keep: tuple[str, ...] = ()
    method: str = "mse"
    percentile: float = 99.99
    max_error: float | None = None
    metric: Metric | None = None
    least: float = 0.0
    kept_dtype: DType | None = None
    samples: int | None = None
    evaluate: object = None

    def __post_init__(self) -> None:
        unknown = [name for name in self.ops if name not in OPS]
        if unknown:
            raise UsageError(
                f"only {' and '.join(OPS)} are computed in 8 bits, got {', '.join(unknown)}"
            )
        if self.method not in METHODS:
            raise UsageError(f"unknown method '{self.method}'",
                             notes=[f"expected one of {', '.join(METHODS)}"])  # fmt: skip
        if self.scheme.smooth is not None and not 0 <= self.scheme.smooth <= 1:
            raise UsageError(f"smooth expected a number in [0, 1], got {self.scheme.smooth}")


@dataclass
class Quantised:
    """A quantised program and what was found on the way.

    kept: names of the products that stay wide because of `max_error` or `metric`; left_out: those
    that no option would quantise, and why; ranges: by product, to be written to a file.
    """

    program: ProgramIR
    names: list[str]
    kept: list[str]
    ranges: KnownRanges
    sensitivities: list[Sensitivity] = field(default_factory=list)
    error: float | None = None
    left_out: list[LeftOut] = field(default_factory=list)


@dataclass
class _Judge:
    """The samples that a quantised program is judged on, and what it is compared with there."""

    samples: list[Sample]
    own: Outputs

    def of(self, options: Options, outputs: Outputs) -> tuple[bool, float]:
        if options.metric is not None:
            found = float(options.metric(outputs))
            return found >= options.least, found
        error = relative_error(outputs, self.own)
        assert options.max_error is not None
        return error <= options.max_error, error


def prepared(program: ProgramIR) -> ProgramIR:
    """Copy a program with its constants folded, in which products stand by themselves."""
    copy = program.clone()
    run_pipeline(copy.module, ["normalize_ops", OPTIMIZE], store=copy.store)
    copy.prune_store()
    return copy


def quantised(
    program: ProgramIR,
    data: object = None,
    options: Options | None = None,
    *,
    target: str = "cpu",
    ranges: KnownRanges | None = None,
    with_sensitivity: bool = False,
    progress: Progress | None = None,
) -> Quantised:
    """Quantise the products of a program, which stays as it is.

    data: samples (`samples.samples`); None: with `ranges` the ranges are those, else each run
    finds the ranges of its own activations. Errors: UsageError for names that are no product's
    and for options that need samples, and those of reading, compiling and running.
    """
    chosen = options or Options()
    base = prepared(program)
    if chosen.scheme.equalize:
        equalise(base)
    found = sites(base, chosen.ops, computed_operands=chosen.computed_operands)
    unknown = [n for n in chosen.keep if n not in {s.name for s in found}]
    if unknown:
        names = ", ".join(s.name for s in found[:8]) or "none"
        raise UsageError(f"keep has names that are no products: {', '.join(unknown)}",
                         notes=[f"the first products are {names}"])  # fmt: skip
    wanted = [s for s in found if s.name not in chosen.keep]
    seeks = chosen.max_error is not None or chosen.metric is not None
    observes = {
        "smooth": chosen.scheme.smooth is not None,
        "bias_correction": chosen.scheme.bias_correction,
    }
    compares = {"max_error or metric": seeks, "a report of sensitivity": with_sensitivity}
    needs = [name for name, given in observes.items() if given]
    if chosen.evaluate is None:
        needs += [name for name, given in compares.items() if given]
    seen: Calibration | None = None
    if data is not None and wanted:
        seen = calibrate(base, wanted, data, target=runs_on(target), progress=progress,
                         most=chosen.samples)  # fmt: skip
        known = KnownRanges.of(wanted, seen, chosen.method, chosen.percentile)
    elif needs and wanted:
        raise UsageError(f"{' and '.join(needs)} need calibration data")
    else:
        known = ranges or KnownRanges()
    by_place = known.by_place(wanted)
    ranked: list[Sensitivity] = []
    kept: list[str] = []
    error: float | None = None
    if wanted and (seeks or with_sensitivity):
        judge = _judge(base, chosen, seen, runs_on(target))
        narrow = in_8_bits(chosen.scheme, by_place, seen)
        ranked = sensitivities(base, wanted, narrow, judge.samples, runs_on(target))
        if seeks:
            search = _Search(base, chosen, by_place, seen, judge, runs_on(target))
            kept, error = search.fewest(ranked)
            chosen = search.options
    made = rewritten(base, chosen, by_place, seen, kept)
    names = [s.name for s in wanted if s.name not in kept]
    others = left_out(base, chosen.ops, computed_operands=chosen.computed_operands)
    return Quantised(made, names, kept, known, ranked, error, others)


def _judge(base: ProgramIR, options: Options, seen: Calibration | None, target: str) -> _Judge:
    """Hold the samples that are compared on, and the results of the program as it is."""
    if options.evaluate is None:
        assert seen is not None
        return _Judge(seen.samples, seen.outputs)
    compiled = compile(base, target)
    given = list(samples(options.evaluate, compiled.signature.inputs))
    if not given:
        raise UsageError("the evaluation data has no sample")
    return _Judge(given, [list(map(np.asarray, compiled.run(dict(s)))) for s in given])


def rewritten(
    base: ProgramIR,
    options: Options,
    ranges: dict[Place, Range],
    seen: Calibration | None,
    kept: Collection[str],
) -> ProgramIR:
    """Copy a prepared program with its products quantised, but for those that stay.

    Those in `kept` stay in `options.kept_dtype`, those in `options.keep` as they are.
    """
    copy = base.clone()
    found = sites(copy, options.ops, computed_operands=options.computed_operands)
    narrower = None if options.kept_dtype is None else in_floats(options.kept_dtype)
    with copy.ctx, copy.store.active():
        quantiser = Quantiser(options.scheme, ranges, seen)
        for site in found:
            if site.name in options.keep:
                continue
            if site.name not in kept:
                quantiser.apply(site)
            elif narrower is not None:
                result = site.op.results[0]
                made = narrower(site)
                result.replace_all_uses_with(made)
    run_pipeline(copy.module, ["dead_code_elimination"], store=copy.store)
    copy.prune_store()
    return copy


def runs_on(target: str) -> str:
    """Return where samples are run: on this machine."""
    return "ref" if target == "ref" else "cpu"


@dataclass
class _Search:
    """The search for the fewest products that must stay for the wanted error."""

    base: ProgramIR
    options: Options
    ranges: dict[Place, Range]
    seen: Calibration | None
    judge: _Judge
    target: str

    def fewest(self, ranked: Sequence[Sensitivity]) -> tuple[list[str], float | None]:
        """Return their names, the most sensitive first, and what the samples give then.

        Where they are not enough in `kept_dtype`, all of them, they stay as they are, and the
        options say so.
        """
        order = [s.name for s in sorted(ranked, key=lambda s: s.sqnr)]
        if self.options.kept_dtype is not None and not self._judged(order)[0]:
            self.options = replace(self.options, kept_dtype=None)
        judged: dict[int, tuple[bool, float]] = {}

        def holds(count: int) -> bool:
            if count not in judged:
                judged[count] = self._judged(order[:count])
            return judged[count][0]

        low, high = 0, len(order)
        if not holds(0):
            while high - low > 1:  # `low` does not hold; all of them wide does
                middle = (low + high) // 2
                low, high = (low, middle) if holds(middle) else (middle, high)
        else:
            high = 0
        return order[:high], judged[high][1] if high in judged else 0.0

    def _judged(self, kept: Collection[str]) -> tuple[bool, float]:
        made = rewritten(self.base, self.options, self.ranges, self.seen, kept)
        return self.judge.of(self.options, outputs_of(made, self.target, self.judge.samples))


def relative_error(got: Any, want: Any) -> float:
    """Return the root mean square of a difference over that of `want`: the worst output's."""
    worst = 0.0
    for i in range(len(want[0])):
        a = np.concatenate([np.asarray(g[i], np.float64).reshape(-1) for g in got])
        b = np.concatenate([np.asarray(w[i], np.float64).reshape(-1) for w in want])
        scale = float(np.sqrt(np.mean(b**2))) if b.size else 0.0
        off = float(np.sqrt(np.mean((a - b) ** 2))) if b.size else 0.0
        worst = max(worst, off / scale if scale else off)
    return worst
