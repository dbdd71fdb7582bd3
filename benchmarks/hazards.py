"""Tries the hazards of docs/iree-hazards.md on an IREE: which of them are still there.

    python benchmarks/hazards.py [NUMBER ...] [--iree SITE_PACKAGES] [--timeout 300]

SITE_PACKAGES is a folder with iree-base-compiler and iree-base-runtime, of one version, as `pip
install --target` makes it; without it the installed IREE is tried. A row a hazard: its number,
`still there`, `gone` or `not tried`, and why. A program that is refused where it was compiled to
wrong numbers counts as still there. Programs for AMD GPUs run on the emulator. Exit code 0: none
is gone; 1: one is, and its form in the lowering can go; 2: the IREE could not be used.
"""

from __future__ import annotations

import argparse
import os
import pickle
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.hazard_cases import CASES, Fails, NotTried, Refused, Way, Wrong
from mgx_mlir.core.errors import TargetError
from mgx_mlir.targets import emulator
from mgx_mlir.targets.child import compiler_binary
from mgx_mlir.targets.flags import cpu_ladder, gpu_ladder

FOLDER = Path(__file__).resolve().parent / "hazards"
STILL, GONE, NOT_TRIED = "still there", "gone", "not tried"
# relative to the largest result: f16 has 11 bits, the others are exact or sums of a few f32
TOLERANCE = 2e-3

# runs a module in a process of its own, with the IREE that PYTHONPATH names, and prints the results
RUN = """
import pickle, sys
import iree.runtime as rt
import numpy as np
path, driver, given = sys.argv[1:]
arguments = pickle.load(open(given, "rb"))
code = open(path, "rb").read()
if driver == "vm":
    instance = rt.VmInstance()
    module = rt.VmModule.copy_buffer(instance, code)
    context = rt.VmContext(instance, [module])
    numbers, found = rt.VmVariantList(len(arguments)), rt.VmVariantList(3)
    for n in arguments:
        numbers.push_int(n)
    context.invoke(module.lookup_function("f"), numbers, found)
    results = [found.get_variant(i) for i in range(3)]
else:
    config = rt.Config(driver)
    module = rt.load_vm_module(rt.VmModule.copy_buffer(config.vm_instance, code), config)
    made = module.main(*arguments)
    made = made if isinstance(made, (tuple, list)) else [made]
    results = [np.array(a.to_host()) for a in made]
    results += arguments
pickle.dump(results, sys.stdout.buffer)
"""


class Row(NamedTuple):
    """A row of the table."""

    number: int  # hazard of docs/iree-hazards.md
    state: str  # STILL, GONE or NOT_TRIED
    why: str  # observed behaviour, or the reason why it is not tried


class Iree:
    """An IREE: the installed one, or that of a folder of packages."""

    def __init__(self, site: Path | None, seconds: float) -> None:
        self.site, self.seconds = site, seconds
        self.compiler = compiler_binary()
        if site is not None:
            self.compiler = site / "iree" / "compiler" / "_mlir_libs" / "iree-compile"
        if not self.compiler.exists():
            raise TargetError(f"no IREE compiler in {site}: expected {self.compiler}")

    def version(self) -> str:
        """Return the version that iree-compile prints."""
        text = subprocess.run([self.compiler, "--version"], capture_output=True, text=True).stdout
        found = re.search(r"IREE compiler version (\S+)", text)
        return found[1] if found else "?"

    def compile(self, source: Path, target: str, made: Path, without: str = "") -> str:
        """Compile a program with the product's flags but for one; return IREE's error, or ''."""
        if target == "vm":
            flags: tuple[str, ...] = ("--compile-mode=vm",)
        else:
            flags = (cpu_ladder() if target == "cpu" else gpu_ladder(target))[0].flags
        command = [self.compiler, *(f for f in flags if f != without), source, "-o", made]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=self.seconds)
        except subprocess.TimeoutExpired:
            return f"did not end in {self.seconds:g} seconds"
        if done.returncode == 0:
            return ""
        return done.stderr or f"iree-compile ended with code {done.returncode}"

    def run(self, made: Path, target: str, arguments: list) -> list | str:
        """Call a module; return its results and the arguments after the call, or the error."""
        environment = dict(os.environ)
        if self.site is not None:
            environment["PYTHONPATH"] = str(self.site)
        driver = {"cpu": "local-sync", "vm": "vm"}.get(target, "hip")
        if driver == "hip":
            environment["IREE_HIP_DYLIB_PATH"] = str(emulator.activate())
            environment["MGX_EMULATE_ARCH"] = target
        given = made.with_suffix(".arguments")
        given.write_bytes(pickle.dumps(arguments))
        done = subprocess.run(
            [sys.executable, "-c", RUN, made, driver, given],
            env=environment, capture_output=True, timeout=self.seconds,
        )  # fmt: skip
        if done.returncode:
            return done.stderr.decode(errors="replace") or f"ended with code {done.returncode}"
        return pickle.loads(done.stdout)


def source_of(number: int) -> Path:
    """The reduced input of a hazard."""
    return FOLDER / f"{number:02}.mlir"


def tried(number: int, way: Way, iree: Iree, folder: Path) -> Row:
    """Try one hazard."""
    if isinstance(way, NotTried):
        return Row(number, NOT_TRIED, way.why)
    made = folder / f"{number}.vmfb"
    target = "cpu" if isinstance(way, Fails) else way.target
    without = way.without if isinstance(way, Fails) else ""
    error = iree.compile(source_of(number), target, made, without)
    if "Unknown command line argument" in error:
        return Row(number, NOT_TRIED, f"IREE does not know a flag: {brief(error)}")
    if isinstance(way, Refused):
        if not error:
            return Row(number, GONE, "it compiles")
        known = "" if way.message in error else "otherwise "
        return Row(number, STILL, f"{known}refused: {brief(error, way.message)}")
    if error:
        return Row(number, STILL, f"refused: {brief(error)}")
    arguments = list(way.arguments())
    try:
        found = iree.run(made, target, arguments)
    except TargetError as refusal:
        return Row(number, NOT_TRIED, str(refusal))
    if isinstance(way, Fails):
        if isinstance(found, str) and way.message in found:
            return Row(number, GONE, "the call fails, as it has to")
        return Row(number, STILL, "the call does not fail")
    if isinstance(found, str):
        return Row(number, STILL, f"the call fails: {brief(found)}")
    return compared(number, way, found)


def compared(number: int, way: Wrong, found: list) -> Row:
    """Compare the results of a call, and the arguments where IREE changes them."""
    want = way.want(*way.arguments())
    if not way.keeps_arguments:
        found = found[: len(want)]
    for i, (a, b) in enumerate(zip(found, want, strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape:
            return Row(number, STILL, f"value {i} has the shape {a.shape}, right is {b.shape}")
        if a.dtype.kind in "iu":
            right = np.array_equal(a.view(b.dtype) if a.dtype.itemsize == b.itemsize else a, b)
        else:
            bound = tolerance_of(number) * float(np.nanmax(np.abs(b), initial=1e-30))
            right = np.allclose(a, b, rtol=0, atol=bound, equal_nan=True)
        if not right:
            at = np.unravel_index(int(np.argmax(differs(a, b))), b.shape)
            return Row(number, STILL, f"value {i} has {a[at]}, right is {b[at]}")
    return Row(number, GONE, "the numbers are right")


def tolerance_of(number: int) -> float:
    """The tolerance of a hazard's results: none where one rounding is the matter."""
    return 0.0 if number == 19 else TOLERANCE


def differs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the differences of elements; infinite where one of both is NaN."""
    gap = np.abs(a.astype(np.float64) - b.astype(np.float64))
    return np.where(np.isnan(a.astype(np.float64)) ^ np.isnan(b.astype(np.float64)), np.inf, gap)


def brief(error: str, message: str = "") -> str:
    """The line of an error that says most: the one with the message, the first error, the last."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    for part in filter(None, (message, "error: ")):
        found = next((line for line in lines if part in line), None)
        if found is not None:
            return found.partition("error: ")[2][:120] or found[:120]
    return lines[-1][:120]


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("number", nargs="*", type=int, help="hazards to try, all without one")
    parser.add_argument("--iree", type=Path, help="folder of another IREE's packages")
    parser.add_argument("--timeout", type=float, default=300, help="seconds of a compile or a run")
    args = parser.parse_args(argv)
    unknown = [n for n in args.number if n not in CASES]
    if unknown:
        parser.error(f"no hazard {unknown[0]}; docs/iree-hazards.md has 1 to {max(CASES)}")
    try:
        iree = Iree(args.iree, args.timeout)
    except TargetError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"IREE {iree.version()}\n\n| hazard | state | why |\n|---|---|---|")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number in args.number or CASES:
            rows.append(tried(number, CASES[number], iree, Path(folder)))
            print("| {} | {} | {} |".format(*rows[-1]), flush=True)
    counts = {s: sum(r.state == s for r in rows) for s in (STILL, GONE, NOT_TRIED)}
    print("\n" + ", ".join(f"{n} {s}" for s, n in counts.items()))
    return 1 if counts[GONE] else 0


if __name__ == "__main__":
    sys.exit(main())
