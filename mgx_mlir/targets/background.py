"""Background jobs: one thread of this process runs them in order.

A call returns before its cache entry is on the disk. `settle` waits for jobs, and so does the exit
of the process. A failed job is logged: a missing entry costs a compile. Children of a fork or of
multiprocessing may end without exit handlers, so they run each job at once.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable

from mgx_mlir.core import forks, interrupts

log = logging.getLogger(__name__)

MOST = 8  # jobs in the queue; submitting another one waits
AT_EXIT = 60.0  # seconds that the end of the process waits for its jobs
_STEP = 0.01  # seconds between two polls of a job


class Cancelled(Exception):
    """The job was cancelled."""


class Job:
    """Work under a name. `work` gets the job, and calls its `check` between steps of 10 ms."""

    def __init__(self, name: object, work: Callable[[Job], None]) -> None:
        self.name, self.is_done = name, False
        self._work, self._is_cancelled = work, False

    def check(self) -> None:
        """Raise Cancelled if the job was cancelled."""
        if self._is_cancelled:
            raise Cancelled

    def cancel(self) -> None:
        """End the job at its next step, or before it begins."""
        self._is_cancelled = True

    def run(self) -> None:
        """Do the work. Errors are logged."""
        try:
            self.check()
            self._work(self)
        except Cancelled:
            log.debug("%s: cancelled", self.name)
        except Exception as e:
            log.warning(
                "an entry was not written to the compile cache: %s: %s", type(e).__name__, e
            )
        finally:
            self._work = _nothing  # frees the weights that it holds
            self.is_done = True


def _nothing(_: Job) -> None:
    pass


_lock = forks.lock()
_jobs: deque[Job] = deque()  # the first is under way
_thread: threading.Thread | None = None
_forks = forks.count()
_at_exit = False  # the exit handler is registered


def submit(job: Job) -> Job:
    """Queue a job; run it in the caller's thread where nothing would wait for its end."""
    global _thread, _at_exit
    if forks.count() or _is_child():
        job.run()
        return job
    while True:
        with _lock:
            if len(_jobs) < MOST:
                _jobs.append(job)
                break
        interrupts.pause(_STEP)
    with _lock:
        if _thread is not None:
            return job
        if not _at_exit:
            atexit.register(_end)
            _at_exit = True
        _thread = threading.Thread(target=_run, name="mgx-cache", daemon=True)
        try:
            _thread.start()
            return job
        except RuntimeError:  # the interpreter ends
            _thread = None
    _run()
    return job


def _is_child() -> bool:
    """Say whether this is a process of multiprocessing, which ends without exit handlers."""
    process = sys.modules.get("multiprocessing.process")
    return process is not None and process.parent_process() is not None


def _run() -> None:
    global _thread
    while True:
        with _lock:
            if not _jobs:
                _thread = None
                return
            job = _jobs[0]
        job.run()
        with _lock:
            _jobs.popleft()


def settle(name: object = None, seconds: float | None = None) -> bool:
    """Wait for the jobs of a name, None for all; return whether they have ended in time.

    The thread of the jobs itself does not wait.
    """
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        if forks.count() != _forks:
            _jobs.clear()  # the jobs belong to the parent process
        if threading.current_thread() is _thread:
            return True
        with _lock:
            left = [j for j in _jobs if name is None or j.name == name]
        if not left:
            return True
        if end is not None and time.monotonic() >= end:
            return False
        interrupts.pause(_STEP)


def cancel() -> None:
    """Cancel all jobs, and wait a moment for the end of the one that is under way."""
    with _lock:
        for job in _jobs:
            job.cancel()
    settle(seconds=0.3)


def _end() -> None:
    """Wait for the jobs as the process ends; an interrupt cancels them."""
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        cancel()
        return
    try:
        ended = settle(seconds=AT_EXIT)
    except KeyboardInterrupt:
        ended = True
        with contextlib.suppress(KeyboardInterrupt):
            cancel()
    if not ended:
        log.warning(
            "entries were not written to the compile cache: writing them took over %g s", AT_EXIT
        )
        cancel()
