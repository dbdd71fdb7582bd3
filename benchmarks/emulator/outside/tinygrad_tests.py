"""Runs tinygrad's instruction tests, whose values its authors verified on hardware, on the
emulator.

usage: python -m benchmarks.emulator.outside.tinygrad_tests CHECKOUT [-k TEXT]

CHECKOUT is a clone of https://github.com/tinygrad/tinygrad (MIT): its wheel has no tests. Its tests
hand machine code to `test.mockgpu.amd.emu.run_asm`; here that function runs the code on this
emulator. Each test is right, wrong, or refused: the emulator names what it does not know.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import sys
import types
import unittest
from pathlib import Path

import numpy as np

from benchmarks.emulator.outside.code_objects import Hip, HipError, wrap

ARCHS = {"rdna3": "gfx1100", "rdna4": "gfx1201", "cdna": "gfx950", "cdna4": "gfx950"}
# defaults of an assembled kernel: f32 denormals are flushed, 64- and
# 16-bit ones kept, IEEE 754 and DX10's clamp are on
RSRC1 = 3 << 18 | 1 << 21 | 1 << 23
KERNARG, WAVE32 = 1 << 3, 1 << 10
LDS_UNIT, SHARED = 512, 1 << 20
NO_OFFSET = 124 << 25


def with_immediate(code: bytes) -> bytes:
    """s_load_dwordx2 of CDNA without an offset: the tests' own epilogue leaves `imm` out, which
    would name s0 as the offset; on hardware they do not run it."""
    words = np.frombuffer(code, np.uint32).copy()
    loads = np.flatnonzero((words[:-1] & 0xFFFFC000 == 0xC0040000) & (words[1:] == NO_OFFSET))
    words[loads] |= 1 << 17
    return words.tobytes()


class Runner:
    """`run_asm` over this emulator."""

    def __init__(self) -> None:
        self.hip = Hip()

    def run_asm(
        self,
        lib: int,
        lib_sz: int,
        gx: int,
        gy: int,
        gz: int,
        lx: int,
        ly: int,
        lz: int,
        args_ptr: int,
        rsrc2: int = 0x19C,
        scratch_size: int = 0,
        arch: str = "rdna3",
        user_data: list[int] | None = None,
    ) -> int:
        """Run `lib_sz` bytes of code; the arguments are one pointer to memory of the host."""
        if user_data:
            raise HipError("user data are not taken")
        name = ARCHS[arch]
        wave64 = name.startswith("gfx9") or getattr(self, "wave64", False)
        code = ctypes.string_at(lib, lib_sz)
        image = wrap(
            with_immediate(code) if name.startswith("gfx9") else code,
            name,
            lds=(rsrc2 >> 15 & 0x1FF) * LDS_UNIT,
            scratch=scratch_size,
            rsrc1=RSRC1,
            rsrc2=rsrc2 & 0x7FFF,
            properties=KERNARG | (0 if wave64 else WAVE32),
        )
        segment = ctypes.string_at(args_ptr, 8)
        memory = int.from_bytes(segment, "little")
        self.hip.share(memory, SHARED)
        module = self.hip.load(image)
        try:
            self.hip.launch(self.hip.function(module, "test"), (gx, gy, gz), (lx, ly, lz), segment)
        finally:
            self.hip.unload(module)
            self.hip.unshare(memory)
        return 0


class Result(unittest.TextTestResult):
    """Counts what was refused apart from what is wrong."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.right = 0
        self.refused: list[tuple[str, str]] = []

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.right += 1

    def addError(self, test: unittest.TestCase, err: object) -> None:
        kind, value = err[0], err[1]  # type: ignore[index]
        if issubclass(kind, HipError):
            self.refused.append((str(test), str(value)))
        else:
            super().addError(test, err)  # type: ignore[arg-type]


def load(checkout: Path, runner: Runner) -> unittest.TestSuite:
    """The tests of a checkout, with its emulator replaced."""
    sys.path.insert(0, str(checkout))
    sys.modules["test.mockgpu.amd.emu"] = types.SimpleNamespace(run_asm=runner.run_asm)  # type: ignore[assignment]
    suite = unittest.TestSuite()
    for path in sorted((checkout / "test/amd/hw").glob("test_*.py")):
        module = importlib.import_module(f"test.amd.hw.{path.stem}")
        suite.addTests(unittest.defaultTestLoader.loadTestsFromModule(module))
    return suite


def chosen(suite: unittest.TestSuite, text: str) -> unittest.TestSuite:
    found = unittest.TestSuite()
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            found.addTests(chosen(part, text))
        elif text in str(part):
            found.addTest(part)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("-k", default="", help="tests whose name has this text")
    chosen_by = parser.parse_args()
    suite = chosen(load(chosen_by.checkout.resolve(), Runner()), chosen_by.k)
    result = Result(unittest.runner._WritelnDecorator(sys.stderr), False, 0)  # type: ignore[attr-defined]
    suite.run(result)
    wrong = [*result.failures, *result.errors]
    for test, text in wrong:
        print(f"wrong: {test}\n{text}")
    for name, text in result.refused:
        print(f"refused: {name}: {text}")
    print(f"{result.right} right, {len(wrong)} wrong, {len(result.refused)} refused, "
          f"{len(result.skipped)} skipped")  # fmt: skip
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
