"""Programs for a GPU that is elsewhere: compiled here, with inputs and wanted results.

    python -m benchmarks.gpu_suite FOLDER --arch sm_90[,gfx942] [--part edges,programs,families]

edges: operators at the edges of their texts (empty tensors, sizes that values decide, drawn
attributes). programs: what GPUs run most, and layers of networks, in f32, f16 and bf16. families:
networks with dynamic dims at several sizes. models: whole networks, for times. Weights of models
that travel repeat a block of 61 x 67, so that an archive of them is small. Programs that are there
already are left as they are. Exit code 1: a program does not compile; it says which.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import mgx_mlir
from benchmarks.gpu_stored import LIMITS, Arrays, Stored, error_of
from mgx_mlir.core.errors import MgxError

BLOCK = (61, 67)  # primes: rows and columns of tiles never fall on it
_LARGE = 1 << 16  # elements
_ROUNDING = 1e-4  # rounding of f32 over a few operators
# operators that make a step of a rounding: in 16 bits results are apart from those in f32
_STEPS = ("QuantizeLinear", "DynamicQuantizeLinear", "NonMaxSuppression")


@dataclass
class Source:
    """A model to compile, and its case without results where `wanted` computes them."""

    case: Stored
    model: bytes
    wanted: Callable[[Arrays], list[np.ndarray]] | None = None


def thinned(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace large float weights by a repeated block of the same spread."""
    for t in model.graph.initializer:
        small = t.data_type not in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)
        if small or np.prod(t.dims, dtype=int) < _LARGE:
            continue
        t.CopyFrom(numpy_helper.from_array(repeated(numpy_helper.to_array(t)), t.name))
    return model


def repeated(a: np.ndarray) -> np.ndarray:
    """Return an array that repeats a block of another one's elements along rows and columns."""
    flat = a.reshape(a.shape[0], -1)
    block = flat.ravel()[: BLOCK[0] * BLOCK[1]].reshape(BLOCK)
    times = [-(-n // b) for n, b in zip(flat.shape, BLOCK, strict=True)]
    return np.tile(block, times)[: flat.shape[0], : flat.shape[1]].reshape(a.shape)


def edges() -> Iterator[Source]:
    """Operators at the edges of their texts, against onnxruntime or ONNX's reference."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "frontends"))
    import contrib_cases  # pyright: ignore[reportMissingImports]
    import onnx_draws  # pyright: ignore[reportMissingImports]
    import test_empty_tensors as empty  # pyright: ignore[reportMissingImports]

    from tests.sizes.cases import MODELS
    from tests.sizes.value_cases import VALUES
    from tests.support.oracle import ort_session

    for m in (*MODELS, *VALUES):
        model = m.onnx().SerializeToString()
        inputs = m.named(m.legal)
        case = Stored("edges", f"size-{m.name}", [(inputs, [])], by_largest=True)

        def want(i: Arrays, model: bytes = model, case: Stored = case) -> list[np.ndarray]:
            found = ort_session(model).run(None, i)
            case.limit = max(case.limit, 2 * rounding(model, i, found))
            return found

        yield Source(case, model, want)
    given = [(f"empty-{f.__name__}", c) for f in empty.FAMILIES for c in f()]
    given += [
        (f"drawn{seed}-{f.__name__.strip('_')}", f(contrib_cases.Draws(seed)))
        for seed in (300, 301)
        for f in onnx_draws.DRAWS
    ]
    for n, (name, c) in enumerate(given):
        model, feeds, _ = contrib_cases.model([c])
        limit = c.tol or contrib_cases.TOLERANCES.get(_kind(c), LIMITS["f32"])
        case = Stored("edges", f"{name}-{n}-{c.op}", [(feeds, [])], limit, True, int(c.off_by_one))
        yield Source(case, model, lambda _, c=c: contrib_cases.expected(c))


def rounding(model: bytes, inputs: Arrays, found: list[np.ndarray]) -> float:
    """Return the error of results in f32 beside float64, of the largest element, else 0.

    A result in f32 may be as far on the other side: GRU_4, whose weights are up to 7, has 1.7e-5.
    """
    try:
        wide = mgx_mlir.compile(model, "ref", ref_double=True).run(inputs)
    except MgxError:
        return 0.0
    pairs = [(a, np.asarray(b)) for a, b in zip(found, wide, strict=True)]
    each = [
        error_of(a, b, True)
        for a, b in pairs
        if a.dtype == np.float32 and a.shape == b.shape and a.size
    ]
    # beyond it two texts of an operator differ, not two roundings
    return max((e for e in each if e < _ROUNDING), default=0.0)


def _kind(case: Any) -> str:
    return next((x.dtype.name for x in case.inputs if x is not None), "")


def programs() -> Iterator[Source]:
    """Kernels and layers of networks, against float64 or onnxruntime in f32."""
    from tests.emulator.blocks import BLOCKS
    from tests.emulator.models import CASES
    from tests.emulator.oracle import wanted

    for name, make in {**CASES, **BLOCKS}.items():
        for kind in ("f32", "f16", "bf16"):
            for seed in (0, 1) if name in CASES else (0,):
                try:
                    found = make(kind, seed)
                except (KeyError, TypeError, ValueError):
                    continue  # not of this type
                if name in BLOCKS:
                    thinned(found.model)
                    found.wanted = None
                case = Stored("programs", f"{name}-{kind}-{seed}", [(found.inputs, [])],
                              LIMITS[kind])  # fmt: skip
                yield Source(case, found.model.SerializeToString(), lambda _, f=found: wanted(f))


def families() -> Iterator[Source]:
    """Networks with dynamic dims, each at all its sizes, in f32, f16 and bf16."""
    from tests.emulator.oracle import narrowed, session
    from tests.families import check
    from tests.models.test_small_models import DYNAMIC, draw
    from zoo.families import store

    def three(model: onnx.ModelProto, name: str, sizes: list[Arrays]) -> Iterator[Source]:
        steps = any(n.op_type in _STEPS for n in model.graph.node)
        for kind, dtype in (("f32", None), ("f16", np.float16), ("bf16", "bfloat16")):
            if steps and dtype is not None:
                continue
            small = model if dtype is None else narrowed(model, np.dtype(dtype))
            floats = {v.name for v in model.graph.input
                      if v.type.tensor_type.elem_type == TensorProto.FLOAT}  # fmt: skip
            runs: list[tuple[Arrays, list[np.ndarray]]] = []
            for inputs in sizes:
                given = {k: a.astype(dtype) if dtype and k in floats else a
                         for k, a in inputs.items()}  # fmt: skip
                runs.append((given, []))
            # rounding of weights and inputs is no error of the program
            limit = check.limit_of(name) if kind == "f32" else 4 * LIMITS[kind]
            case = Stored("families", f"{name}-{kind}", runs, limit, True)

            def want(inputs: Arrays, floats: set[str] = floats) -> list[np.ndarray]:
                wide = {k: a.astype(np.float32) if k in floats else a for k, a in inputs.items()}
                return session(model).run(None, wide)

            yield Source(case, small.SerializeToString(), want)

    for name in store.NAMES:
        path = store.STORED / f"{name}.onnx"
        yield from three(onnx.load(path), name, check.inputs_of(path))
    for name, (make, sizes) in DYNAMIC.items():
        model = make()
        drawn = [draw(model, 0, **s) for s in sizes]
        yield from three(model, f"made-{name}", drawn)


def models() -> Iterator[Callable[[], Source]]:
    """Whole networks in f16, exported from torch; wanted are onnxruntime's results in f32."""
    from benchmarks.gpu_networks import NETWORKS

    for name, network in NETWORKS.items():
        if not network.program:
            yield partial(exported, name)


def exported(name: str) -> Source:
    """Export one of the networks."""
    from benchmarks.gpu_networks import NETWORKS, export

    network = NETWORKS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        export(network, str(path))
        model = thinned(onnx.load(path))
    inputs = dict(zip(network.names, (t.numpy() for t in network.inputs()), strict=True))
    if network.bits == 4:
        model = in_four_bits(model)
    case = Stored("models", name, [(inputs, [])], 4 * LIMITS["f16"], True)

    def want(inputs: Arrays) -> list[np.ndarray]:
        floats = {k: a.astype(np.float32) if a.dtype == np.float16 else a
                  for k, a in inputs.items()}  # fmt: skip
        return session_of(widened(model)).run(None, floats)

    return Source(case, model.SerializeToString(), want)


def session_of(model: onnx.ModelProto) -> Any:
    """Return an onnxruntime session of a model."""
    from tests.emulator.oracle import session

    return session(model)


def widened(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model in f16 as one in f32, weights rounded as they are."""
    from tests.emulator.oracle import widened as wide

    return wide(model)


def in_four_bits(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace matrices of matmuls by com.microsoft's MatMulNBits of 4 bits, blocks of 32."""
    held = {t.name: t for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type != "MatMul" or node.input[1] not in held:
            continue
        t = held[node.input[1]]
        w = numpy_helper.to_array(t).astype(np.float32)  # K x N
        k, n = w.shape
        blocks = w.T.reshape(n, k // 32, 32)
        scale = np.maximum(np.abs(blocks).max(-1), 1e-6) / 7
        q = np.clip(np.rint(blocks / scale[..., None]) + 8, 0, 15).astype(np.uint8)
        packed = q[..., 0::2] | (q[..., 1::2] << 4)
        model.graph.initializer.remove(t)
        names = [f"{t.name}.q", f"{t.name}.s"]
        arrays = packed, scale.reshape(-1).astype(np.float16)
        new = [numpy_helper.from_array(a, m) for a, m in zip(arrays, names, strict=True)]
        model.graph.initializer.extend(new)
        node.CopyFrom(helper.make_node(
            "MatMulNBits", [node.input[0], *names], list(node.output), domain="com.microsoft",
            K=k, N=n, bits=4, block_size=32,
        ))  # fmt: skip
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


PARTS: dict[str, Callable[[], Iterator[Source | Callable[[], Source]]]] = {
    "edges": edges, "programs": programs, "families": families, "models": models,
}  # fmt: skip


def prepared(source: Source, folder: Path, archs: str) -> str:
    """Compile a case into the folder; return why that cannot be, or ""."""
    case = source.case
    place = folder / case.part / f"{case.name}.mxr"
    if place.is_file():
        return ""
    if any(a.dtype.kind in "OUS" for inputs, _ in case.runs for a in inputs.values()):
        return "skipped: strings"
    if source.wanted is not None:
        try:
            case.runs = [(i, list(map(np.asarray, source.wanted(i)))) for i, _ in case.runs]
        except BaseException as e:  # the oracle's own; a skip of pytest's is no Exception
            if isinstance(e, KeyboardInterrupt):
                raise
            return f"skipped: no oracle: {_line(e)}"
    if any(a.dtype.kind in "OUS" for _, wanted in case.runs for a in wanted):
        return "skipped: strings"
    try:
        with mgx_mlir.compile(source.model, target="gpu", arch=archs) as made:
            case.write(folder)
            mgx_mlir.save(made, place)
    except MgxError as e:
        return _line(e)
    except Exception as e:  # a fault of the compiler's own must not end the others
        return f"internal: {type(e).__name__}: {_line(e)}"
    return ""


def _line(e: BaseException) -> str:
    return (str(e).strip().splitlines() or [type(e).__name__])[0][:300]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arch", required=True, help="what to compile for, as of mgx-driver")
    parser.add_argument("--share", default="0/1", help="every so many programs, I/N")
    parser.add_argument("--part", default=",".join(PARTS), help="parts, with commas")
    options = parser.parse_args(argv)
    failed: dict[str, str] = {}
    mine, shares = map(int, options.share.split("/"))
    for part in options.part.split(","):
        start, count = time.monotonic(), 0
        for n, source in enumerate(PARTS[part]()):
            if n % shares != mine:
                continue
            source = source if isinstance(source, Source) else source()
            why = prepared(source, options.folder, options.arch)
            count += 1
            if why:
                failed[f"{part}/{source.case.name}"] = why
                print(f"{part}/{source.case.name}: {why}", flush=True)
        print(f"{part}: {count} in {time.monotonic() - start:.0f} s", flush=True)
        log = options.folder / f"not-compiled-{options.part.split(',')[0]}-{mine}.json"
        log.write_text(json.dumps(failed, indent=1))
    return int(any(not why.startswith("skipped") for why in failed.values()))


if __name__ == "__main__":
    sys.exit(main())
