"""Whole programs in 8 bits: prepare, calibrate, choose the unquantised ops, rewrite."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import mgx_mlir.passes  # noqa: F401  (declares the passes)
from mgx_mlir.compiler.compile import compile
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.errors import UsageError
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.programs.program_ir import ProgramIR
from mgx_mlir.quantization.calibrate import Calibration, Progress, calibrate, outputs_of
from mgx_mlir.quantization.eight_bits import Quantiser, Scheme
from mgx_mlir.quantization.equalise import equalise
from mgx_mlir.quantization.ranges import METHODS, Range
from mgx_mlir.quantization.samples import Sample, samples
from mgx_mlir.quantization.scales import KnownRanges
from mgx_mlir.quantization.sensitivity import Sensitivity, sensitivities
from mgx_mlir.quantization.sites import OPS, LeftOut, Place, Site, left_out, sites
from mgx_mlir.quantization.switched import Switched
from mgx_mlir.quantization.twins import in_8_bits, in_floats
from mgx_mlir.rewrite.passes import run_pipeline

# quantised values stay quantised: constants of it are not folded
OPTIMIZE = "mgx-optimize-module{skip=quantizelinear,dequantizelinear,unpack_int4}"
_RANKED = 2  # samples for ordering dots and convolutions by their error
_FEW = 4  # samples of the search for `max_error`; the result is verified on all
_TRIED = 8  # dots and convolutions that are tried again for quantisation
Outputs = list[list[np.ndarray]]
Metric = Callable[[Outputs], float]


@dataclass(frozen=True)
class Options:
    """Options of quantising a program."""

    scheme: Scheme = field(default_factory=Scheme)  # types and scales
    ops: tuple[str, ...] = OPS  # ops that are quantised
    computed_operands: bool = False  # ops whose operands are both computed are quantised too
    keep: tuple[str, ...] = ()  # names of source nodes that are not quantised
    method: str = "mse"  # method of choosing ranges (`Observer.range`)
    percentile: float = 99.99  # percentage of elements that the method "percentile" covers
    # largest rms error of the outputs, relative to their rms (`relative_error`). Ops stay wide
    # until it holds, first those with the most error per multiplication.
    max_error: float | None = None
    # score of the outputs, in place of `max_error`; ops stay wide until it is at least `least`
    metric: Metric | None = None
    least: float = 0.0  # least value of `metric` that is accepted
    # type of the ops that stay wide, if it is accurate enough; None: their own types
    kept_dtype: DType | None = None
    samples: int | None = None  # number of samples that are read; None: all
    # samples for errors and the metric; None: those that the calibration holds
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
    """A quantised program, with its ranges, errors and unquantised ops."""

    program: ProgramIR
    names: list[str]  # names of the quantised ops
    kept: list[str]  # names of the ops that stay wide because of `max_error` or `metric`
    ranges: KnownRanges  # ranges by op, to be written to a file
    sensitivities: list[Sensitivity] = field(default_factory=list)
    # relative error, or value of the metric, on the judged samples; None without such a limit
    error: float | None = None
    left_out: list[LeftOut] = field(default_factory=list)  # ops that no option quantises, and why


@dataclass
class _Judge:
    """Samples that a quantised program is judged on, and the expected results."""

    samples: list[Sample]
    own: Outputs
    share: float = 1.0  # error of all samples, relative to the error of these

    def of(self, options: Options, outputs: Outputs) -> tuple[bool, float]:
        if options.metric is not None:
            found = float(options.metric(outputs))
            return found >= options.least, found
        error = self.share * relative_error(outputs, self.own)
        assert options.max_error is not None
        return error <= options.max_error, error

    def check(self, options: Options) -> None:
        """Raise UsageError if the original program does not reach the required metric."""
        holds, found = self.of(options, self.own)
        if not holds:
            raise UsageError(
                f"the original program has a metric of {found:.6g}, "
                f"below the required minimum of {options.least:.6g}"
            )

    def part(self, outputs: Outputs, count: int) -> _Judge:
        """Return a judge on some of the samples, those with the largest errors.

        outputs: results from which the ratio of their error to that of all samples is computed.
        """
        off = [relative_error([a], [b]) for a, b in zip(outputs, self.own, strict=True)]
        order = np.argsort(off, kind="stable")[::-1]
        taken = order[:: max(1, -(-len(order) // count))]
        own = [self.own[i] for i in taken]
        whole = relative_error(outputs, self.own)
        share = whole / relative_error([outputs[i] for i in taken], own)
        return _Judge([self.samples[i] for i in taken], own, share)


def prepared(program: ProgramIR) -> ProgramIR:
    """Copy a program with its constants folded, and its dots and convolutions not fused."""
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
    """Quantise the dots and convolutions of a copy of a program.

    data: samples (`samples.samples`); None: the ranges are `ranges`, or are computed in each run.
    Errors: UsageError for names of no dot or convolution, for options that need samples, and for a
    metric that the program itself does not reach; those of reading, compiling and running.
    """
    chosen = options or Options()
    base = prepared(program)
    if chosen.scheme.equalize:
        equalise(base)
    found = sites(base, chosen.ops, computed_operands=chosen.computed_operands)
    unknown = [n for n in chosen.keep if n not in {s.name for s in found}]
    if unknown:
        names = ", ".join(s.name for s in found[:8]) or "none"
        raise UsageError(f"keep has names that are no dots or convolutions: {', '.join(unknown)}",
                         notes=[f"the first dots and convolutions are {names}"])  # fmt: skip
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
        if chosen.metric is not None:
            judge.check(chosen)
        narrow = in_8_bits(chosen.scheme, by_place, seen)
        if with_sensitivity:
            ranked = sensitivities(base, wanted, narrow, judge.samples, runs_on(target))
        if seeks:
            search = _Search(base, chosen, by_place, seen, judge, runs_on(target))
            kept, error = search.kept(wanted)
            chosen = search.options
    made = rewritten(base, chosen, by_place, seen, kept)
    names = [s.name for s in wanted if s.name not in kept]
    others = left_out(base, chosen.ops, computed_operands=chosen.computed_operands)
    return Quantised(made, names, kept, known, ranked, error, others)


def _judge(base: ProgramIR, options: Options, seen: Calibration | None, target: str) -> _Judge:
    """Store the samples for comparisons, and the original program's results."""
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
    """Copy a prepared program with its dots and convolutions quantised, except for some.

    Those in `kept` are computed in `options.kept_dtype`; those in `options.keep` are not changed.
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
    """Return the target on which samples run, on this machine."""
    return "ref" if target == "ref" else "cpu"


@dataclass
class _Search:
    """Search for the dots and convolutions that must stay wide for the required error.

    One program with both forms of each gives the outputs of any choice.
    """

    base: ProgramIR
    options: Options
    ranges: dict[Place, Range]
    seen: Calibration | None
    judge: _Judge
    target: str

    def kept(self, wanted: Sequence[Site]) -> tuple[list[str], float | None]:
        """Return names of ops to keep wide, those with the most error per multiplication first, and
        the resulting error or metric.

        If keeping all of them in `kept_dtype` is not enough, they keep their own types, and the
        options are changed accordingly.
        """
        names = [s.name for s in wanted]
        switched = self._switched(wanted)
        if self.options.kept_dtype is not None and not self._judged(switched, names)[0]:
            self.options = replace(self.options, kept_dtype=None)
            switched = self._switched(wanted)
        whole = switched.outputs([], self.judge.samples)
        if self.judge.of(self.options, whole)[0]:
            return self._proven(names, [])
        if self.options.metric is None:  # a metric may need all samples
            self.judge, every = self.judge.part(whole, _FEW), self.judge
        else:
            every = self.judge
        order = self._order(switched, wanted)
        low, high = 0, len(order)
        while high - low > 1:  # `low` misses the limit; with all of them wide it is met
            middle = (low + high) // 2
            holds = self._judged(switched, order[:middle])[0]
            low, high = (low, middle) if holds else (middle, high)
        chosen = order[:high]
        for name in order[: high - 1][-_TRIED:]:  # ops that the last one made unnecessary
            less = [n for n in chosen if n != name]
            chosen = less if self._judged(switched, less)[0] else chosen
        self.judge = every
        return self._proven(order, chosen)

    def _switched(self, wanted: Sequence[Site]) -> Switched:
        options = self.options
        wide = None if options.kept_dtype is None else in_floats(options.kept_dtype)
        narrow = in_8_bits(options.scheme, self.ranges, self.seen)
        return Switched(self.base, wanted, narrow, wide, self.target)

    def _order(self, switched: Switched, wanted: Sequence[Site]) -> list[str]:
        """Return all names, sorted by the outputs' error per multiplication."""
        given = self.judge.samples[:_RANKED]
        every = [s.name for s in wanted]
        own = switched.scores(every, given)
        costs: dict[str, float] = {}
        for site in wanted:
            scores = switched.scores([n for n in every if n != site.name], given)
            costs[site.name] = relative_error(scores, own) ** 2 / self._multiplications(site)
        return sorted(every, key=lambda name: -costs[name])

    def _multiplications(self, site: Site) -> float:
        """Return the number of multiplications, up to a common factor."""
        if site.weights is None:
            return float(np.prod([max(d, 1) for d in TensorType.of(site.op.results[0]).dims]))
        if self.seen is None:
            return float(max(site.weights.size, 1))
        across = site.weights.shape[-2] if site.kind == "dot" else 1
        strides = 1
        if site.kind == "convolution":
            across = TensorType.of(site.op.operands[0]).dims[1]
            strides = int(np.prod(site.op.opview.stride))
        places = self.seen.observers[site.values[0]].count / max(across * strides, 1)
        return max(places * site.weights.size, 1.0)

    def _judged(self, switched: Switched, kept: Collection[str]) -> tuple[bool, float]:
        return self.judge.of(self.options, switched.outputs(kept, self.judge.samples))

    def _proven(self, order: Sequence[str], kept: list[str]) -> tuple[list[str], float | None]:
        """Return the kept names and the final program's error or metric. Its rounding may differ
        slightly from the program with choices, so that more ops may have to stay.
        """
        step = 1
        while True:
            made = rewritten(self.base, self.options, self.ranges, self.seen, kept)
            found = outputs_of(made, self.target, self.judge.samples)
            holds, error = self.judge.of(self.options, found)
            more = [n for n in order if n not in kept]
            if holds or not more:
                return kept, error
            kept, step = [*kept, *more[:step]], 2 * step


def relative_error(got: Any, want: Any) -> float:
    """Return the rms of a difference over the rms of `want`, for the worst output."""
    worst = 0.0
    for i in range(len(want[0])):
        a = np.concatenate([np.asarray(g[i], np.float64).reshape(-1) for g in got])
        b = np.concatenate([np.asarray(w[i], np.float64).reshape(-1) for w in want])
        scale = float(np.sqrt(np.mean(b**2))) if b.size else 0.0
        off = float(np.sqrt(np.mean((a - b) ** 2))) if b.size else 0.0
        worst = max(worst, off / scale if scale else off)
    return worst
