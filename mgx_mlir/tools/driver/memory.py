"""Peak memory of this process during a block."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from types import TracebackType

from mgx_mlir.hardware.machine import peak_memory

_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")
_PEAK = re.compile(r"^VmHWM:\s*(\d+) kB", re.M)


class PeakMemory:
    """Measures a block: `bytes` is what the process held at most in it.

    Where the system cannot forget an earlier peak, that of the whole process; None on Windows.
    """

    bytes: int | None = None

    def __enter__(self) -> PeakMemory:
        with contextlib.suppress(OSError):
            _CLEAR.write_text("5")  # forgets the peak so far
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            found = _PEAK.search(_STATUS.read_text())
        except OSError:
            found = None
        if found is not None:
            self.bytes = int(found[1]) * 1024
        else:
            self.bytes = peak_memory()
