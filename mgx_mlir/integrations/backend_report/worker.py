"""Run backend suite cases one after another; pool.py starts this process.

It reads one path of a case per line from stdin. It writes one pickled answer per case to the
descriptor of its argument: {"outputs": ...} or {"error": text, "kinds": exception class names,
"stage": ...}. During `run` every operator's numpy reference, and the interpreter that calls them,
raise.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import struct
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def assert_blocked() -> None:
    """Check that no other engine can be imported; otherwise the suite would prove nothing."""
    for name in ("onnx.reference", "onnxruntime"):
        try:
            __import__(name)
        except ImportError as error:
            if "blocked" in str(error):
                continue
        raise SystemExit(f"{name} is not blocked in this worker")


class ReferenceCalled(BaseException):
    """Raised by a blocked reference. It derives from BaseException, so that no handler swallows
    it.
    """


@contextlib.contextmanager
def references_raise(calls: list[str]) -> Iterator[None]:
    """Make every `reference` of the dialect raise inside the block; note it in `calls`."""
    # start-up: the parent of the workers needs none of it
    from mgx_mlir.core.op import OPS
    from mgx_mlir.programs.interpreter import Interpreter

    def refuse(name: str) -> Any:
        def reference(*args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            raise ReferenceCalled(name)

        return reference

    saved = [(cls, cls.__dict__.get("reference")) for cls in OPS.values()]
    evaluate = Interpreter.evaluate
    for cls in OPS.values():
        cls.reference = staticmethod(refuse(cls.mnemonic))
    Interpreter.evaluate = refuse("interpreter")
    try:
        yield
    finally:
        Interpreter.evaluate = evaluate
        for cls, original in saved:
            if original is None:
                del cls.reference
            else:
                cls.reference = original


def run_case(path: Path, target: str, threads: int, cache: bool) -> dict[str, Any]:
    """Compile and run every data set of one case."""
    import onnx  # onnx takes long to load

    # not imported at start-up: the parent of the workers does not need it
    from mgx_mlir.integrations.backend import Backend
    from mgx_mlir.integrations.backend_report.cases import read

    case = read(path)
    device = {"cpu": "CPU", "gpu": "GPU"}[target]
    calls: list[str] = []
    stage = "compile"
    start = time.perf_counter()
    try:
        model = onnx.ModelProto.FromString(case.model)
        prepared = Backend.prepare(model, device, threads=threads, cache=cache)
        for inputs, _ in case.data_sets:
            prepared.specialise(inputs)
        compiled = time.perf_counter() - start
        stage = "run"
        outputs = []
        with references_raise(calls):
            for inputs, _ in case.data_sets:
                outputs.append(list(prepared.run(inputs)))
        answer: dict[str, Any] = {"outputs": outputs, "compile_s": compiled}
    except (Exception, ReferenceCalled) as error:
        answer = {
            "error": str(error),
            "kinds": [cls.__name__ for cls in type(error).__mro__],
            "stage": stage,
            "trace": traceback.format_exc(limit=-3),
        }
    answer["reference_calls"] = calls
    answer["seconds"] = time.perf_counter() - start
    return answer


def main() -> None:
    """Answer cases from stdin until its end."""
    assert_blocked()
    channel, target = int(sys.argv[1]), sys.argv[2]
    threads, memory_gb, cache = int(sys.argv[3]), float(sys.argv[4]), sys.argv[5] == "cache"
    limit = int(memory_gb * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))  # children inherit it
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin:
        answer = pickle.dumps(run_case(Path(line.strip()), target, threads, cache))
        os.write(channel, struct.pack("<Q", len(answer)))
        view = memoryview(answer)
        while view:
            view = view[os.write(channel, view) :]


if __name__ == "__main__":
    main()
