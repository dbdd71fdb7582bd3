"""Runs drawn cases of every kernel family, guard pages around all that is read or written.

    LD_PRELOAD=guard.so python -m tests.lowering.kernel_families.run SEED [SEED ...] --workers 1,2,8
    LD_PRELOAD=guard.so python -m tests.lowering.kernel_families.run --boundaries --kinds dynamic

Inputs and weights end at a page that nobody may touch, and begin behind one in further runs; what
the runtime allocates, results among it, is guarded by tests/runtime/guarded.py. Results are
compared with numpy in f64, and where inputs have NaN and infinities with onnxruntime's. Exit code 1
and a line for each difference; a process that an access outside of a buffer ended says which buffer
it was.
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
import sys
from collections.abc import Mapping, Sequence

import numpy as np

from tests.lowering.kernel_families.boundaries import boundaries
from tests.lowering.kernel_families.cases import Case, merged, own_names
from tests.lowering.kernel_families.draws import drawn
from tests.runtime import guarded

PAGE = mmap.PAGESIZE
UNUSED = 0xFF  # byte of the memory around an array: NaN in floats


class Guarded:
    """An array of the same values between two pages that nobody may touch."""

    def __init__(self, a: np.ndarray, alignment: int, *, at_end: bool) -> None:
        length = -(-(a.nbytes + alignment) // PAGE) * PAGE
        self._memory = mmap.mmap(-1, length + 2 * PAGE)
        whole = np.frombuffer(self._memory, np.uint8)
        start = whole.__array_interface__["data"][0]
        libc = ctypes.CDLL(None, use_errno=True)
        for page in (start, start + PAGE + length):
            if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), 0):  # PROT_NONE
                raise OSError(ctypes.get_errno(), "mprotect")
        room = whole[PAGE : PAGE + length]
        room[:] = UNUSED
        begin = (length - a.nbytes) // alignment * alignment if at_end else 0
        self.array = room[begin : begin + a.nbytes].view(a.dtype).reshape(a.shape)
        self.array[...] = a
        self._before = room.copy()
        self._room = room

    def is_as_it_was(self) -> bool:
        """Return whether nothing was written to it or beside it."""
        return bool(np.array_equal(self._room, self._before))


def ordered(cases: Sequence[Case], turn: int, seed: int, *, special: bool) -> dict[str, np.ndarray]:
    """Draw the inputs of all cases."""
    rng = np.random.default_rng(seed)
    found = {}
    for i, case in enumerate(cases):
        for name, a in case.arrays(rng, turn, special=special).items():
            found[f"c{i}_{name}"] = a
    return found


def difference(case: Case, got: np.ndarray, want: np.ndarray) -> str:
    """Return how a result differs, or an empty text; NaN equals NaN."""
    if got.shape != want.shape:
        return f"dims {got.shape}, expected {want.shape}"
    a, b = got.astype(np.float64), want.astype(np.float64)
    if got.dtype.kind in "iu":
        worst = np.abs(a - b).max(initial=0.0)
        return f"integers differ by {worst:g}" if worst > case.steps else ""
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return f"{np.isnan(a).sum()} NaN, expected {np.isnan(b).sum()}"
    infinite = np.isinf(a) | np.isinf(b)
    if not np.array_equal(a[infinite], b[infinite]):
        return "infinities differ"
    finite = np.isfinite(b)
    error = np.abs(a[finite] - b[finite]).max(initial=0.0)
    largest = max(1.0, np.abs(b[finite]).max(initial=0.0))
    return f"error {error / largest:.1e} of the largest" if error > case.limit * largest else ""


class Program:
    """Cases that are compiled once, and what they are compared with."""

    def __init__(self, cases: Sequence[Case], seed: int, *, is_dynamic: bool) -> None:
        import mgx_mlir
        from benchmarks.oracle import session

        self.seed, self.is_dynamic, self.cases = seed, is_dynamic, cases
        model = merged(self.cases, is_dynamic=is_dynamic)
        self.compiled = mgx_mlir.compile(model, "cpu", cache=False)
        self.exact = mgx_mlir.compile(model, "ref", ref_double=True)
        assert not self.compiled.executable.fallbacks
        known = merged(self.cases, is_dynamic=is_dynamic, keep=lambda case: case.in_onnxruntime)
        self.session = session(known, exact=True)
        self.names = list(self.compiled.input_names)

    def expected(
        self, given: Mapping[str, np.ndarray], *, special: bool, zero: bool
    ) -> list[list[np.ndarray | None]]:
        """Return what each result is compared with: numpy's in f64, onnxruntime's where it must be.

        onnxruntime has no windows on nothing: sizes of zero are compared with numpy alone.
        """
        wide = self.exact.run(dict(given))
        others: dict[str, np.ndarray] = {}
        if not zero:
            names = [o.name for o in self.session.get_outputs()]
            known = {i.name: given[i.name] for i in self.session.get_inputs()}
            others = dict(zip(names, self.session.run(names, known), strict=True))
        return [
            [w, others.get(f"c{i}_{name}") if case.as_onnxruntime or not special else None]
            for (i, case, name), w in zip(own_names(self.cases), wide, strict=True)
        ]

    def problems(self, workers: Sequence[int]) -> list[str]:
        """Run all cases with each number of workers; what is wrong."""
        from mgx_mlir.runtime.iree_runtime import LoadedModule

        program, found = self.compiled, []
        # (sizes, special values)
        turns = [(0, False), (0, True)]
        if self.is_dynamic:
            turns += [(turn, False) for turn in range(1, max(len(c.sizes) for c in self.cases))]
        wanted = []
        for turn, special in turns:
            given = ordered(self.cases, turn, self.seed + turn, special=special)
            zero = any(0 in a.shape for a in given.values())
            with np.errstate(all="ignore"):
                wanted.append((given, self.expected(given, special=special, zero=zero)))
        for count in workers:
            weights = {k: Guarded(v, 64, at_end=True) for k, v in program.params.items()}
            module = LoadedModule(
                program.executable.vmfb,
                {k: g.array for k, g in weights.items()},
                inputs=list(program.signature.inputs),
                outputs=list(program.signature.outputs),
                threads=count,
                input_alignment=program.executable.input_alignment,
            )
            for given, wants in wanted:
                for at_end in (True, False):
                    args = [
                        Guarded(given[n], module.input_alignment, at_end=at_end) for n in self.names
                    ]
                    results = module.run([g.array for g in args])
                    results = module.run([g.array for g in args])
                    found += self._compared(results, wants, count)
                    changed = [n for n, g in zip(self.names, args, strict=True)
                               if not g.is_as_it_was()]  # fmt: skip
                    found += [f"seed {self.seed}: input {n} was written to" for n in changed]
            module.close()
            found += [f"seed {self.seed}: weight {k} was written to"
                      for k, g in weights.items() if not g.is_as_it_was()]  # fmt: skip
        return list(dict.fromkeys(found))

    def _compared(
        self,
        results: Sequence[np.ndarray],
        wants: Sequence[Sequence[np.ndarray | None]],
        count: int,
    ) -> list[str]:
        found = []
        names = list(own_names(self.cases))
        for (_, case, name), got, sides in zip(names, results, wants, strict=True):
            for side, want in zip(("numpy", "onnxruntime"), sides, strict=True):
                text = "" if want is None else difference(case, got, want)
                if text:
                    kind = "dynamic" if self.is_dynamic else "fixed"
                    found.append(
                        f"seed {self.seed}, {kind} dims, {count} workers: {name} of {case.family} "
                        f"against {side}: {text}: {list(case.nodes)} of {dict(case.inputs)}, "
                        f"{list(case.sizes)}"
                    )
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", type=int, nargs="*", help="of the cases to draw")
    parser.add_argument("--boundaries", action="store_true", help="run the cases of boundaries.py")
    parser.add_argument("--workers", default="1,2,8")
    parser.add_argument("--kinds", default="fixed,dynamic")
    options = parser.parse_args()
    guard = guarded.watch()
    from mgx_mlir.runtime import prepared_calls

    prepared_calls._LARGE = 1  # inputs of any length are read in place
    workers = [int(n) for n in options.workers.split(",")]
    found = []
    programs = [(seed, drawn(seed)) for seed in options.seeds]
    programs += [(0, boundaries())] * options.boundaries
    for seed, cases in programs:
        for kind in options.kinds.split(","):
            found += Program(cases, seed, is_dynamic=kind == "dynamic").problems(workers)
    for text in found:
        print(text)
    if guard.guard_refused() or guard.guard_count() < 100:
        print(f"{guard.guard_count()} buffers were guarded, {guard.guard_refused()} were not")
        return 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
