"""Runs the models of cases.py on inputs that fit and on inputs that do not: a process of its own.

`python -m tests.sizes.invalid TARGET` prints a JSON row for each run: model, which wrong inputs
(-1: legal ones), the error, and the outputs' dims. A crash ends the process.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import onnxruntime as ort

from mgx_mlir.compiler.compile import compile
from mgx_mlir.core.errors import MgxError
from tests.sizes.cases import MODELS, together


def main(target: str) -> None:
    program = compile(together(MODELS).SerializeToString(), target=target)
    if target == "cpu":  # all is compiled again for a kernel that is refused
        assert program.executable.fallbacks == ()
    legal: dict[str, np.ndarray] = {}
    for m in MODELS:
        legal.update(m.named(m.legal))
    results = dict(zip(program.output_names, program.run(legal), strict=True))
    for m in MODELS:
        session = ort.InferenceSession(m.onnx().SerializeToString())
        names = [o.name for o in session.get_outputs()]
        wanted = session.run(names, m.named(m.legal))
        for name, want in zip(names, wanted, strict=True):
            np.testing.assert_allclose(results[name], want, rtol=1e-4, atol=1e-6, err_msg=name)
    for m in MODELS:
        for at, wrong in enumerate(m.wrong):
            print(json.dumps([m.name, at, "began"]), flush=True)
            try:
                found = program.run({**legal, **m.named(wrong)})
            except MgxError as e:
                print(json.dumps([m.name, at, "error", str(e)]), flush=True)
                continue
            got = dict(zip(program.output_names, found, strict=True))
            own = {n: list(a.shape) for n, a in got.items() if n.startswith(f"{m.name}.")}
            print(json.dumps([m.name, at, "result", own]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
