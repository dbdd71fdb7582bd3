"""Judges a case: results of `ref` and `cpu` against the oracles.

Each output has a limit by its type. Beyond it the graph is evaluated again with every rounded float
moved by some steps of its type: if results move as far, another order of rounding explains the
difference ("ill-conditioned"). It is also evaluated in f64, which shows whether the oracle is
wrong.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np

from benchmarks.fuzzing.graph import Case
from benchmarks.fuzzing.oracle import Evaluator, Refusal, captured, run_reference

# errors, as shares of an output's largest element: other orders of sums and other polynomials are
# some units of 1e-7 apart and grow over a dozen layers; 16 bits round at each node or at the end;
# attributes and the oracle's own constants (1/6) are f32 in f64 too
LIMITS = {np.dtype(np.float64): 2e-7, np.dtype(np.float32): 2e-5, np.dtype(np.float16): 8e-3}
BF16 = np.dtype(ml_dtypes.bfloat16)
NARROW = 4e-2  # with bf16
MOVED = {np.dtype(np.float64): 4e-16, np.dtype(np.float32): 4e-7, np.dtype(np.float16): 1.5e-3}
# states of recurrent nodes are sums of gates of size one, whose rounding is that of one: a state
# near 0 is not nearer to the truth than that
STATES, STATE_SCALE = ("RNN", "GRU", "LSTM"), 1e-2
# ops that sum: terms that cancel are rounded by their own size, differently in another order,
# so that the terms are moved, not the sum alone
SUMS = {
    "ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "Sum", "Mean", "CumSum",
    "MatMul", "Gemm", "Einsum", "Conv", "ConvTranspose",
}  # fmt: skip
SAMPLES = 4
SLACK = 12.0  # times what the samples moved
SECONDS = 240.0  # limit of a compile, which takes one or two: the machine may be busy

# name: target, options of compile, of which worlds one program of fixed dims is made
VARIANTS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "ref": ("ref", {}, False),
    "passes": ("passes", {"fast_math": True}, False),  # a target's passes, then interpreted
    "shuffled": ("passes", {"shuffled": True}, False),  # some passes in random order
    "cpu": ("cpu", {"threads": 1}, False),
    "exact": ("cpu", {"threads": 1, "fast_math": False}, False),
    "threads": ("cpu", {"threads": 2}, False),
    "plain": ("cpu", {"threads": 1, "kernel_boundaries": False}, False),
    "fixed": ("cpu", {"threads": 1}, True),
}
WRONG, ILL, ORACLE, REFUSED, TRACEBACK, RUN_ERROR, SLOW, CRASH, HANG = (
    "wrong", "ill-conditioned", "oracle", "refused", "traceback", "run error", "slow", "crash",
    "hang",
)  # fmt: skip
FAULTS = (WRONG, TRACEBACK, RUN_ERROR, SLOW, CRASH, HANG)


@dataclass
class Finding:
    """The outcome of one variant: "right", or a kind of fault with its message."""

    variant: str
    kind: str
    message: str = ""

    def as_dict(self) -> dict[str, str]:
        return asdict(self)


def variants_of(seed: int, worlds: int, special: bool = False) -> list[str]:
    """The variants that a seed is judged in: ref, cpu, and some of the others in turn.

    Special values come without `fast_math`, which may lose them.
    """
    if special:
        return ["ref", "passes", "exact"]
    names = ["ref", "passes", "shuffled", "cpu"]
    names += [("exact",), (), ("threads",), ("plain",)][seed % 4]
    if worlds > 1 and seed % 3 == 0:
        names.append("fixed")
    return names


def judged(case: Case, variant: str) -> Finding:
    """Compile and run the case in a variant, and compare."""
    _, _, fixed = VARIANTS[variant]
    if fixed:
        for w in range(case.worlds):
            found = _judged(case.with_worlds([w]), variant)
            if found.kind != "right":
                return found
        return found
    return _judged(case, variant)


def _judged(case: Case, variant: str) -> Finding:
    import mgx_mlir
    from benchmarks.fuzzing.programs import Interpreted
    from mgx_mlir.core.errors import MgxError
    from mgx_mlir.runtime import prepared_calls

    target, options, _ = VARIANTS[variant]
    if case.special and target != "ref":
        options = {**options, "fast_math": False}
    stage = REFUSED
    try:
        data = case.model().SerializeToString()
        program: Any
        if target == "passes":
            program = Interpreted(data, case.seed, **options)
        else:
            program = mgx_mlir.compile(data, target, cache=False, timeout=SECONDS, **options)
        stage = RUN_ERROR
        for world in range(case.worlds):
            feeds = {n: a for n, a in case.feeds(world).items() if n in program.input_names}
            lent = {n: on_64_bytes(a) for n, a in feeds.items()}
            with mock.patch.object(prepared_calls, "_LARGE", 0):  # all inputs in place
                got = [np.asarray(x) for x in program.run(lent)]
            changed = [n for n, a in feeds.items() if lent[n].tobytes() != a.tobytes()]
            if changed:
                return Finding(variant, WRONG, f"world {world}, inputs {changed} were written to")
            found = compared(case, world, got)
            if found is not None:
                return Finding(variant, *found)
    except MgxError as error:
        text = str(error)
        if "time" in text and "limit" in text and stage == REFUSED:
            return Finding(variant, SLOW, text[:600])
        if stage == REFUSED and target != "ref" and re.search("iree|internal|pass '", text):
            stage = TRACEBACK
        return Finding(variant, stage, text[:1500])
    except MemoryError as error:
        return Finding(variant, TRACEBACK, f"MemoryError: {error}")
    except Exception:
        return Finding(variant, TRACEBACK, traceback.format_exc()[-1500:])
    return Finding(variant, "right")


def on_64_bytes(a: np.ndarray) -> np.ndarray:
    """A copy where the runtime takes an array as it is."""
    room = np.empty(a.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    made = room[start : start + a.nbytes].view(a.dtype).reshape(a.shape)
    made[...] = a
    return made


# ---- comparison ----------------------------------------------------------------------------------


def limit_of(case: Case, output: str) -> float:
    """The limit of a float output, by the narrowest float that it comes from."""
    makers = {o: s for s in case.steps for o in s.node.output}
    seen, todo, worst = set(), [output], 0.0
    while todo:
        name = todo.pop()
        if name in seen or name not in case.values:
            continue
        seen.add(name)
        dtype = case.values[name].dtype
        worst = max(worst, NARROW if dtype == BF16 else LIMITS.get(dtype, 0.0))
        if name in makers:
            if any(a.name == "to" and a.i == 16 for a in makers[name].node.attribute):
                worst = max(worst, NARROW)
            todo += captured(makers[name].node)
    return worst


def off(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """|got - want| elementwise in f64; inf where one alone is NaN or infinite."""
    a, b = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(all="ignore"):
        found = np.abs(a - b)
    same = (got == want) | (np.isnan(a) & np.isnan(b))
    if want.dtype.kind in "iub":
        found = np.where(~same & (found == 0), 1.0, found)
    found = np.where(np.isfinite(found), found, np.inf)
    return np.where(same, 0.0, found)


def compared(case: Case, world: int, got: Sequence[np.ndarray]) -> tuple[str, str] | None:
    """None where all outputs are right, else the kind and where."""
    found = _compared(case, world, got)
    if found is not None and found[0] == WRONG and _as_reference(case, world, got):
        return ORACLE, f"{found[1]}; onnx.reference agrees with it"
    return found


def _as_reference(case: Case, world: int, got: Sequence[np.ndarray]) -> bool:
    """Return whether onnx.reference gives the same for all outputs."""
    try:
        wants = run_reference(case.model(), case.feeds(world))
    except Refusal:
        return False
    return all(
        a.shape == b.shape
        and a.dtype == b.dtype
        and (off(a, b) <= limit_of(case, n) * np.abs(b.astype(np.float64)).max(initial=1e-6)).all()
        for n, a, b in zip(case.outputs, got, wants, strict=True)
    )


def _compared(case: Case, world: int, got: Sequence[np.ndarray]) -> tuple[str, str] | None:
    suspects = []
    for name, a, b in zip(case.outputs, got, case.wants(world), strict=True):
        b = np.asarray(b)
        where = f"world {world}, output {name} of {maker(case, name)}"
        if a.shape != b.shape or a.dtype != b.dtype:
            return WRONG, f"{where}: {a.dtype}{list(a.shape)}, expected {b.dtype}{list(b.shape)}"
        if not b.size:
            continue
        far, scale = off(a, b), _scale(case, name, b)
        if (far > limit_of(case, name) * max(scale, 1e-6)).any():
            suspects.append((name, a, b, far, where))
    if not suspects:
        return None
    return weighed(case, world, suspects)


def _scale(case: Case, name: str, values: np.ndarray) -> float:
    """Return what a difference of an output is measured by: its largest element."""
    if values.dtype.kind in "iub":
        return 0.0
    largest = np.abs(values[np.isfinite(values)].astype(np.float64)).max(initial=0.0)
    return max(largest, STATE_SCALE if maker(case, name) in STATES else 0.0)


def weighed(case: Case, world: int, suspects: list[Any]) -> tuple[str, str]:
    """Return the kind of a difference: wrong, ill-conditioned, or the oracle's."""
    spread: dict[str, Any] = {}
    for sample in range(SAMPLES):
        moved = chain(case, world, np.random.default_rng([case.seed, sample]))
        for name, _, b, *_ in suspects:
            if name not in moved or moved[name].shape != b.shape:
                spread[name] = np.full(b.shape, np.inf)
            else:
                spread[name] = np.maximum(spread.get(name, 0.0), off(moved[name], b))
    wide = chain(case, world, None)
    kinds = []
    for name, a, b, far, where in suspects:
        scale = _scale(case, name, b)
        room = SLACK * spread[name] + limit_of(case, name) * scale
        if b.dtype.kind not in "iub":
            room = room + SLACK * np.median(spread[name])
        bad = far > room
        i = int(np.argmax(np.where(bad, far, -1)))
        shown = (
            f"{where}: {a.dtype}{list(a.shape)}, {np.count_nonzero(far > 0)} of {a.size} differ, "
            f"{np.count_nonzero(bad)} beyond rounding, e.g. [{i}] {a.flat[i]}, "
            f"expected {b.flat[i]}"
        )
        if not bad.any():
            kinds.append((ILL, shown))
        elif name in wide and wide[name].shape == b.shape and b.dtype.kind not in "iub":
            ours, theirs = off(a, wide[name]), off(b, wide[name])
            better = (ours <= 2 * theirs + limit_of(case, name) * scale)[bad].all()
            kinds.append((ORACLE if better else WRONG, f"{shown}, in f64 {wide[name].flat[i]}"))
        else:
            kinds.append((WRONG, shown))
    return min(kinds, key=lambda k: (WRONG, ORACLE, ILL).index(k[0]))


def maker(case: Case, name: str) -> str:
    return next((s.node.op_type for s in case.steps if name in s.node.output), "?")


def chain(case: Case, world: int, rng: np.random.Generator | None) -> dict[str, np.ndarray]:
    """All values evaluated again: floats moved a little by `rng`, or in f64."""
    evaluate = Evaluator(case.opset)
    arrays = {n: case.values[n].arrays[world] for n in case.sources()}
    fixed = frozenset(n for n in arrays if case.values[n].fixed)
    found = dict(arrays)
    for step in case.steps:
        try:
            if rng is None:
                made = evaluate.wide(step.node, found, fixed)
            else:
                inputs = found
                if step.node.op_type in SUMS:
                    terms = {n: _moved(found[n], rng) for n in step.node.input if n in found}
                    inputs = {**found, **terms}
                made = evaluate(step.node, inputs, fixed=fixed, reference=step.reference)
        except (Refusal, KeyError):
            continue
        for name, a in zip((o for o in step.node.output if o), made, strict=True):
            found[name] = a if rng is None or step.exact else _moved(a, rng)
    return found


def _moved(a: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return floats moved by some steps of their type; others as they are."""
    if a.dtype not in MOVED:
        return a
    shift = 1 + MOVED[a.dtype] * rng.uniform(-1, 1, a.shape)
    return np.asarray(a * shift).astype(a.dtype)


# ---- causes --------------------------------------------------------------------------------------


def cause(finding: Finding, ops: Sequence[str]) -> str:
    """Return the key of findings with one cause: kind, message without numbers and names, the
    ops.
    """
    text = finding.message.strip()
    if finding.kind in (WRONG, CRASH, HANG, SLOW, ILL, ORACLE):
        text = ""
    elif finding.kind == TRACEBACK and "Traceback" in text:
        text = text.splitlines()[-1]
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "'..'", text.split("\n")[0])
    text = re.sub(r"0x[0-9a-f]+|%?\bv?\d[\d_x]*\b", "#", text)
    return f"{finding.kind} [{' '.join(ops[:4])}] {text[:160]}"


Predicate = Callable[[Case], bool]
