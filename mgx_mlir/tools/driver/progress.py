"""Progress on stderr and in log files: lines of levels, and a spinner where a step takes long."""

from __future__ import annotations

import contextlib
import datetime
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any

from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.core.names import safe_text
from mgx_mlir.core.progress import watched
from mgx_mlir.tools.driver.arguments import LEVELS, Arguments, level
from mgx_mlir.tools.driver.colour import write_in
from mgx_mlir.tools.ending import drop

DELAY = 2.0  # seconds before a spinner shows
LEVEL_VARIABLE = "MIGRAPHX_LOG_LEVEL"
_PASSES = "MIGRAPHX_TRACE_PASSES"
_INFO = LEVELS.index("info")
_PYTHON = {"error": logging.ERROR, "warn": logging.WARNING, "info": logging.INFO,
           "debug": logging.DEBUG, "trace": logging.DEBUG}  # fmt: skip


class _State:
    """Verbosity, and the files that it goes to besides stderr."""

    level = _INFO
    files: tuple[IO[str], ...] = ()


def say(text: str, at: str = "info") -> None:
    """Write lines to stderr and to the log files, where the level asks for them.

    A full disk loses the lines, and not the work. Errors: BrokenPipeError if stderr is closed.
    """
    if LEVELS.index(at) > _State.level:
        return
    head, warning, rest = text.partition("warning:")
    try:
        sys.stderr.write(head)
        write_in(sys.stderr, "odd", warning)
        sys.stderr.write(f"{rest}\n")
        sys.stderr.flush()
    except BrokenPipeError:
        raise
    except OSError:
        drop(sys.stderr)
    to_files(text, at)


def warn(text: str) -> None:
    """Write a warning."""
    say(f"warning: {text}", "warn")


def to_files(text: str, at: str) -> None:
    """Append lines to the log files alone, each as MIGraphX writes them: time, level, text."""
    now = datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S.%f")
    lines = "".join(f"{now} [{at.upper()}] {line}\n" for line in safe_text(text).splitlines())
    for f in _State.files:
        try:
            f.write(lines)
            f.flush()
        except OSError as e:
            drop(f)
            _State.files = tuple(other for other in _State.files if other is not f)
            warn(f"{f.name}: the log file cannot be written: {(e.strerror or str(e)).lower()}")


@contextmanager
def logging_as(args: Arguments) -> Iterator[None]:
    """Say what --log-level, --log-file and MIGRAPHX_LOG_LEVEL ask for inside the block.

    What the library logs is said too. FileError for a file that cannot be written, UsageError for
    an unknown level.
    """
    before = _State.level, _State.files
    handler = _ToSay()
    logger = logging.getLogger("mgx_mlir")
    old = logger.level
    with ExitStack() as stack:
        try:
            _State.level = args.get("--log-level", _default_level())
            _State.files = tuple(
                stack.enter_context(_opened(f)) for f in args.get("--log-file", [])
            )
            if LEVELS[_State.level] == "trace":
                stack.enter_context(_tracing_passes())
            logger.addHandler(handler)
            logger.setLevel(_PYTHON.get(LEVELS[_State.level], logging.CRITICAL))
            yield
        except Exception as e:
            if _State.files:
                to_files(f"error: {e}", "error")
            raise
        finally:
            logger.removeHandler(handler)
            logger.setLevel(old)
            _State.level, _State.files = before


@contextmanager
def _tracing_passes() -> Iterator[None]:
    """Name each pass as it starts, unless the environment has its own wish."""
    if _PASSES in os.environ:
        yield
        return
    os.environ[_PASSES] = "1"
    try:
        yield
    finally:
        os.environ.pop(_PASSES, None)


def _default_level() -> int:
    text = os.environ.get(LEVEL_VARIABLE, "")
    try:
        return level(text) if text else _INFO
    except ValueError as e:
        raise UsageError(f"{LEVEL_VARIABLE} expected {e}, got '{text}'") from None


@contextmanager
def _opened(path: str) -> Iterator[IO[str]]:
    try:
        f = open(path, "a", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    except (OSError, ValueError) as e:
        why = (getattr(e, "strerror", None) or str(e)).lower()
        raise FileError(f"cannot write the log file: {why}", location=path) from None
    with f:
        yield f


class _ToSay(logging.Handler):
    """Log records of the library as lines of the driver."""

    def emit(self, record: logging.LogRecord) -> None:
        names = {logging.ERROR: "error", logging.WARNING: "warn", logging.INFO: "info"}
        at = names.get(record.levelno, "debug")
        text = record.getMessage()
        # the driver itself reports progress to its user
        with contextlib.suppress(BrokenPipeError):  # the library's work continues
            say(f"warning: {text}" if at == "warn" else text, "debug" if at == "info" else at)


@contextmanager
def step(text: str) -> Iterator[None]:
    """Announce a step; on a terminal, show that it is at work once it has taken two seconds."""
    say(text)
    with working(text):
        yield


@contextmanager
def working(text: str) -> Iterator[_Spinner | None]:
    """Show one line on a terminal after two seconds: the step, the stage of a compile and its
    kernels, and the seconds. MGX_PROGRESS=0 turns it off."""
    is_off = os.environ.get("MGX_PROGRESS", "").strip() == "0"
    if is_off or _State.level < _INFO or not sys.stderr.isatty():
        yield None
        return
    text = text.rstrip(". ")
    spinner = _Spinner(text)
    timer = threading.Timer(DELAY, spinner.start)
    timer.daemon = True
    timer.start()
    try:
        with watched(lambda now: spinner.tell(f"{text}, {now}")):
            yield spinner
    finally:
        timer.cancel()
        spinner.stop()


@contextmanager
def counting(text: str) -> Iterator[Callable[[int], None]]:
    """Show a spinner as `working` does, with the number of samples passed to its function."""
    with working(text) as shown:

        def done(count: int) -> None:
            if shown is not None:
                shown.tell(f"{text}: {count} sample{'s' * (count != 1)}")

        yield done


class _Spinner:
    """A rich spinner with the seconds gone by; starting after `stop` does nothing."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._task: Any = None
        self._lock = threading.Lock()
        self._ended = False
        self._shown: Any = None

    def start(self) -> None:
        # slow to load, and only a terminal sees it
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.table import Column

        with self._lock:
            if self._ended:
                return
            self._shown = Progress(
                SpinnerColumn(),
                TextColumn(
                    "{task.description}",
                    markup=False,
                    table_column=Column(no_wrap=True, overflow="ellipsis"),
                ),
                TimeElapsedColumn(),
                console=Console(file=getattr(sys.stderr, "stream", sys.stderr)),
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._task = task = self._shown.add_task(self._text, total=None)
            self._shown.tasks[task].start_time -= DELAY  # the step is as old as that
            self._shown.start()

    def tell(self, text: str) -> None:
        """Show another text."""
        with self._lock:
            self._text = text
            if self._shown is not None and not self._ended:
                self._shown.update(self._task, description=text)

    def stop(self) -> None:
        with self._lock:
            self._ended = True
            if self._shown is not None:
                self._shown.stop()
