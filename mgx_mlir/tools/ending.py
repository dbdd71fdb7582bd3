"""Exit of a tool that is interrupted, or whose output cannot be written: one line and a status."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import IO

from mgx_mlir.core.errors import MgxError

INTERRUPTED = 130  # exit code that shells show for SIGINT


def ended(tool: str, run: Callable[[], int], *, interrupted: str = "interrupted") -> int:
    """Return the exit status of `run`, whose errors are said on stderr."""
    try:
        status = run()
        sys.stdout.flush()
        return status
    except MgxError as e:
        print(f"{tool}: error: {e}", file=sys.stderr)
        return e.exit_code
    except BrokenPipeError:
        drop_stdout()  # the reader of stdout is gone
        return 2
    except KeyboardInterrupt:
        print(f"{tool}: {interrupted}", file=sys.stderr)
        return INTERRUPTED
    except OSError as e:
        drop_stdout()
        where = f"{e.filename}: " if e.filename else ""
        why = e.strerror or str(e)
        print(f"{tool}: error: {where}{why[:1].lower()}{why[1:]}", file=sys.stderr)
        return 2


def drop_stdout() -> None:
    """Point stdout elsewhere: see `drop`."""
    drop(sys.stdout)


def drop(stream: IO[str]) -> None:
    """Point a stream to /dev/null, as flushing it would fail again at exit."""
    # a stream of a caller may have no number
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
