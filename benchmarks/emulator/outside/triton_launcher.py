"""Launch a Triton kernel with Triton's own launcher on the emulator, without torch.

usage: MGX_EMULATE_ARCH=gfx942 python -m benchmarks.emulator.outside.triton_launcher

Needs `pip install triton` and a C compiler with Python's headers, as Triton itself does.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from benchmarks.emulator.outside.code_objects import Hip, library

N = 1000


def emulated_driver() -> Any:
    """Triton's driver for HIP, with the device and stream that torch would tell it."""
    os.environ["TRITON_LIBHIP_PATH"] = str(library())
    from triton.backends.amd.driver import HIPDriver, HIPLauncher, HIPUtils

    class Driver(HIPDriver):
        def __init__(self) -> None:
            self.utils = HIPUtils()
            self.launcher_cls = HIPLauncher
            self.get_current_device = lambda: 0
            self.set_current_device = lambda device: None
            self.get_current_stream = lambda device: 0
            self.get_device_capability = lambda device: (9, 4)

    return Driver()


def main() -> int:
    from triton.runtime import driver

    driver.set_active(emulated_driver())
    from benchmarks.emulator.outside import triton_kernels

    hip = Hip()
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal(N).astype(np.float32) for _ in range(2))

    class Array:
        """An argument in the form that Triton expects: an address and a type."""

        def __init__(self, array: np.ndarray) -> None:
            self.p, self.dtype = hip.put(array), "fp32"

        def data_ptr(self) -> int:
            return self.p

    a, b, out = Array(x), Array(y), Array(np.zeros_like(x))
    triton_kernels.add[(4, 1, 1)](a, b, out, N, B=256)
    np.testing.assert_array_equal(hip.get(out.p, x), x + y)
    target = driver.active.get_current_target()
    print(f"right, by Triton's launcher on {target.backend} {target.arch}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
