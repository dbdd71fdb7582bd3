"""Runs models on inputs that fit and on inputs that do not, in a process of its own.

`python -m tests.sizes.invalid TARGET SET` prints a JSON row for each run: model, which wrong inputs
(-1: legal ones), the error, and the outputs' dims. A crash ends the process. The target `saved` is
`ref`, of a file without code.
"""

from __future__ import annotations

import json
import sys
import tempfile

import numpy as np

from mgx_mlir.compiler.compile import compile
from mgx_mlir.core.errors import RunError
from mgx_mlir.frontends.onnx.importer import parse_onnx_buffer
from mgx_mlir.printers.value_tree import print_binary
from tests.sizes.cases import MODELS, Model, together
from tests.sizes.value_cases import COMPILED, VALUES
from tests.support.oracle import ort_session

SETS = {"sizes": MODELS, "values": VALUES, "compiled": COMPILED}
TOGETHER = 20  # models of a compile: many more take longer than in parts


def main(target: str, name: str) -> None:
    groups: dict[object, list[Model]] = {}
    for i, m in enumerate(SETS[name]):  # a compile costs seconds; the interpreter runs all nodes
        part = (m.opset, i // TOGETHER)
        groups.setdefault(part if target == "cpu" else m.name, []).append(m)
    for models in groups.values():
        tell(models, target)


def tell(models: list[Model], target: str) -> None:
    data = together(models).SerializeToString()
    if target == "saved":  # MIGraphX saves it without code
        with tempfile.NamedTemporaryFile(suffix=".mxr") as file:
            print_binary(parse_onnx_buffer(data), file)
            file.flush()
            program = compile(file.name, target="ref")
    else:
        program = compile(data, target=target)
    if target == "cpu":  # all is compiled again for a kernel that is refused
        assert program.executable.fallbacks == ()
    legal: dict[str, np.ndarray] = {}
    for m in models:
        legal.update(m.named(m.legal))

    def compare() -> None:
        results = dict(zip(program.output_names, program.run(legal), strict=True))
        for name, want in wanted.items():
            np.testing.assert_allclose(results[name], want, rtol=1e-4, atol=1e-5, err_msg=name)

    wanted: dict[str, np.ndarray] = {}
    for m in models:
        session = ort_session(m.onnx())
        names = [o.name for o in session.get_outputs()]
        wanted |= zip(names, session.run(names, m.named(m.legal)), strict=True)
    compare()
    for m in models:
        for at, wrong in enumerate(m.wrong):
            print(json.dumps([m.name, at, "began"]), flush=True)
            try:
                found = program.run({**legal, **m.named(wrong)})
            except RunError as e:
                print(json.dumps([m.name, at, "error", str(e)]), flush=True)
                continue
            got = dict(zip(program.output_names, found, strict=True))
            own = {n: list(a.shape) for n, a in got.items() if n.startswith(f"{m.name}.")}
            print(json.dumps([m.name, at, "result", own]), flush=True)
    compare()  # a refused call leaves the program as it was


if __name__ == "__main__":
    main(*sys.argv[1:])
