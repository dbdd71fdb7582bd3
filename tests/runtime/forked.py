"""Processes of the fork tests: `python -m tests.runtime.forked CASE THREADS`."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable

import numpy as np
from numpy.testing import assert_array_equal

import mgx_mlir
from tests.support.models import parsed

# a process that hangs is ended by a signal; a child does not inherit the alarm
SECONDS = int(os.environ.get("MGX_TEST_ALARM", "100"))
X = np.arange(70000, dtype=np.float32)
_program: mgx_mlir.compiler.compiled.CompiledProgram


def program(op: str, threads: int) -> mgx_mlir.compiler.compiled.CompiledProgram:
    """x op x on the CPU."""
    model = parsed(f"(float[n] x) => (float[n] y) {{ y = {op} (x, x) }}")
    return mgx_mlir.compile(model, "cpu", threads=threads)


def check(found: mgx_mlir.compiler.compiled.CompiledProgram, want: np.ndarray) -> None:
    """Run a program and compare."""
    for _ in range(3):
        assert_array_equal(found.run(x=X)[0], want)


def limit_time() -> None:
    """End this process by a signal after SECONDS; the stacks of all threads are printed first."""
    faulthandler.register(signal.SIGALRM, all_threads=True, chain=True)
    signal.alarm(SECONDS)


def in_child(work: Callable[[], None]) -> None:
    """Do something in a forked child, which then ends as Python ends."""
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        assert status == 0, status
        return
    limit_time()
    work()
    if threading.current_thread().name == "forker":
        os._exit(0)  # the end of a thread ends no process that has threads of a device
    sys.exit(0)


def start(threads: int) -> None:
    """Begin a child of multiprocessing."""
    global _program
    limit_time()
    _program = program("Add", threads)


def square(n: int) -> float:
    """A call in a child of multiprocessing."""
    return float(_program.run(x=np.full(5, n, np.float32))[0][0])


def run_then_run(threads: int) -> None:
    added = program("Add", threads)
    check(added, X + X)
    kept = added.run(x=X)[0]
    in_child(lambda: (check(added, X + X), in_child(lambda: check(added, X + X)))[0])
    check(added, X + X)
    assert_array_equal(kept, X + X)


def run_then_compile(threads: int) -> None:
    check(program("Add", threads), X + X)
    in_child(lambda: check(program("Mul", threads), X * X))


def fork_in_a_thread(threads: int) -> None:
    """While other threads run the program."""
    added, stop = program("Add", threads), threading.Event()
    check(added, X + X)

    def keep_running() -> None:
        while not stop.wait(0.001):
            check(added, X + X)

    def forks() -> None:
        for _ in range(2):
            in_child(lambda: check(added, X + X))

    runners = [threading.Thread(target=keep_running) for _ in range(2)]
    for t in runners:
        t.start()
    forker = threading.Thread(target=forks, name="forker")
    forker.start()
    forker.join()
    stop.set()
    for t in runners:
        t.join()


def pools(threads: int) -> None:
    """After runs in this process, those of multiprocessing's children."""
    for method in ("fork", "spawn", "forkserver"):
        start(threads)
        assert square(2) == 4
        # a forked child has the program; others make one
        given = {} if method == "fork" else {"initializer": start, "initargs": (threads,)}
        with multiprocessing.get_context(method).Pool(2, **given) as pool:
            assert pool.map(square, range(20)) == [2 * n for n in range(20)]


def amid_first_calls(threads: int) -> None:
    """While another thread compiles and runs for the first time, and loads modules for it."""

    def first() -> None:
        check(program("Add", threads), X + X)

    thread = threading.Thread(target=first)
    thread.start()
    ended: list[int] = []
    for op, want in [("Add", X + X), ("Mul", X * X)] * 2:
        child = os.fork()
        if not child:
            limit_time()
            check(program(op, threads), want)
            os._exit(0)
        ended.append(os.waitpid(child, 0)[1])
    thread.join()
    assert not any(ended), ended


CASES = {
    f.__name__: f
    for f in (run_then_run, run_then_compile, fork_in_a_thread, pools, amid_first_calls)
}

if __name__ == "__main__":
    limit_time()
    CASES[sys.argv[1]](int(sys.argv[2]))
