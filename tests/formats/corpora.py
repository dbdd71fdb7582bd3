"""The kinds of files that the fuzzer damages beside programs: how they are made and read."""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from google.protobuf import text_format

import mgx_mlir as migraphx
import mgx_mlir.passes
from mgx_mlir.compiler.tuning import solutions
from mgx_mlir.core.errors import FileError
from mgx_mlir.core.weight_files import write_weights
from mgx_mlir.debug.peaks import _read as read_peaks
from mgx_mlir.frontends.argument_files import read_argument
from mgx_mlir.frontends.mlir_files import read_mlir
from mgx_mlir.frontends.tf import schema
from mgx_mlir.frontends.tf.options import TfOptions
from mgx_mlir.frontends.tf.program import parse_tf, parse_tf_buffer
from mgx_mlir.programs.signature import Port
from mgx_mlir.rewrite.passes import resolve, run_pipeline
from mgx_mlir.tools.driver.perf_report import REPORT, read_report
from mgx_mlir.tools.opt.arguments import parse_arguments
from mgx_mlir.tools.opt.session import Session
from tests.formats.greedy import GREEDY, ints, long_line, model, n
from tests.formats.models import STORED
from tests.formats.mutations import damaged
from tests.formats.protos import damaged_message

ROOT = Path(__file__).parent.parent.parent
TF = ROOT / "tests" / "frontends" / "tf" / "data"
SMALL = ("gnn.script.17.dynamic", "gru_tagger_padded.script.17.dynamic")  # 12 and 21 KB
FOLDED = "builtin.module(mgx-propagate-constant)"
Damage = Callable[[bytes, random.Random, list[bytes]], bytes]
Reader = Callable[[bytes], None]


class Kind:
    """Undamaged files of one kind, how they are damaged, and how a damaged one is read."""

    def __init__(self, files: list[bytes], damage: Damage, read: Reader) -> None:
        self.files, self.damage, self.read = files, damage, read


def as_bytes(data: bytes, rng: random.Random, donors: list[bytes]) -> bytes:
    return damaged(data, rng, donors, trees=False)


# ---- ONNX --------------------------------------------------------------------------------------


def collect_cases(folder: Path) -> None:
    """Write the onnx package's own cases under `folder`, in a process of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    module = "mgx_mlir.integrations.backend_report.cases"
    subprocess.run([sys.executable, "-m", module, str(folder)], check=True, cwd=ROOT)


def _plain_models() -> list[bytes]:
    """Ordinary nodes, which a small damage leaves valid now and then."""
    x = [("x", 1, [2, 3, 8, 8])]
    rows = [
        ([n("Conv", "x,w", "c", pads=[1, 1, 1, 1]), n("Relu", "c")], {"w": long_line(4, 3, 3, 3)}),
        ([n("MaxPool", "x", kernel_shape=[2, 2], strides=[2, 2])], {}),
        ([n("Reshape", "x,s", "r"), n("MatMul", "r,w", "m"), n("Softmax", "m", axis=-1)],
         {"s": ints(2, 192), "w": long_line(192, 5)}),
        ([n("Transpose", "x", "t", perm=[0, 2, 3, 1]), n("Slice", "t,a,b,c")],
         {"a": ints(1), "b": ints(7), "c": ints(2)}),
        ([n("ReduceMean", "x,a", "m", keepdims=1), n("Sub", "x,m", "d"), n("Mul", "d,d")],
         {"a": ints(2, 3)}),
        ([n("Gather", "x,i", "g", axis=1), n("Concat", "g,x", "c", axis=1), n("Cast", "c", to=6)],
         {"i": ints(0, 2)}),
        ([n("Pad", "x,p", "q", mode="reflect"), n("Resize", "q,,s", mode="linear")],
         {"p": ints(0, 0, 1, 1, 0, 0, 1, 1), "s": long_line(4) * 0 + np.float32([1, 1, 2, 2])}),
        ([n("Unsqueeze", "x,a", "u"), n("Squeeze", "u,a", "v"), n("Clip", "v,l,h")],
         {"a": ints(0), "l": np.float32(0), "h": np.float32(6)}),
    ]  # fmt: skip
    return [model(nodes, inputs=x, **constants) for nodes, constants in rows]


def onnx_models(cases: Path | None) -> list[bytes]:
    found = 4 * [(STORED / f"{name}.onnx").read_bytes() for name in SMALL] + 6 * _plain_models()
    found += [data for make in GREEDY.values() if len(data := make()) < 10_000]
    if cases is not None:
        from mgx_mlir.integrations.backend_report.cases import read

        for path in sorted(cases.glob("node.*.pkl")):
            data = read(path).model
            if len(data) < 100_000:
                found.append(data)
    return found


def _onnx_fields(data: bytes, rng: random.Random, donors: list[bytes]) -> bytes:
    if rng.random() < 0.25:
        return as_bytes(data, rng, donors)
    return damaged_message(onnx.ModelProto, data, rng).SerializeToString()


def read_onnx(data: bytes) -> None:
    """Read a model as `read` does, and fold its constants as `compile` does."""
    p = migraphx.parse_onnx_buffer(data)
    repr(p)
    found = p.program_ir
    with found.ctx, found.store.active():
        run_pipeline(found.module.operation, resolve(FOLDED, found.ctx))


def external(folder: Path) -> Kind:
    """Models whose weights lie in a file beside them."""
    made = onnx.ModelProto.FromString(
        model([n("Mul", "a,b", "c"), n("Add", "c,x")], a=long_line(8, 4), b=long_line(4))
    )
    (folder / "w.bin").write_bytes(bytes(range(256)))
    (folder / "link.bin").unlink(missing_ok=True)
    (folder / "link.bin").symlink_to("/etc/hostname")
    for i, tensor in enumerate(made.graph.initializer):
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        entries = {"location": "w.bin", "offset": str(16 * i), "length": str(128 if not i else 16)}
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value)
    values = ("", "-1", "0", "256", str(2**63), "9" * 400, "w.bin", "../w.bin", "/etc/passwd",
              "link.bin", "/dev/zero", "fifo", ".", "\0", "x\x1b", "no.bin", "1e3")  # fmt: skip

    def damage(data: bytes, rng: random.Random, donors: list[bytes]) -> bytes:
        found = onnx.ModelProto.FromString(data)
        if rng.random() < 0.5:
            tensor = rng.choice(found.graph.initializer)
            rng.choice(tensor.external_data).value = rng.choice(values)
            return found.SerializeToString()
        return damaged_message(onnx.ModelProto, data, rng).SerializeToString()

    path = folder / "external.onnx"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        repr(migraphx.parse_onnx(path))

    return Kind([made.SerializeToString()], damage, read)


# ---- TensorFlow --------------------------------------------------------------------------------


def graphs() -> list[bytes]:
    """Frozen graphs: with branches and loops, as functions and as v1 has them, and of operators."""
    found = []
    for name in ("nested_loops", "branches_in_a_row", "counted_at_run_time"):
        with np.load(TF / "control" / f"{name}.npz") as data:
            found += [data[key].tobytes() for key in ("v2", "v1") if key in data.files]
    found += [p.read_bytes() for p in sorted(TF.glob("ops/*.pb")) if p.stat().st_size < 60_000]
    return found


def _graph_fields(data: bytes, rng: random.Random, donors: list[bytes]) -> bytes:
    if rng.random() < 0.25:
        return as_bytes(data, rng, donors)
    return damaged_message(schema.Graph, data, rng).SerializeToString()


def read_graph(data: bytes) -> None:
    parse_tf_buffer(data, TfOptions())


def texts(folder: Path) -> Kind:
    """Graphs in protobuf's text form."""
    path = folder / "graph.pbtxt"

    def damage(data: bytes, rng: random.Random, donors: list[bytes]) -> bytes:
        graph = schema.Graph.FromString(data)
        if rng.random() < 0.5:
            return as_bytes(text_format.MessageToString(graph).encode(), rng, donors)
        return text_format.MessageToString(damaged_message(schema.Graph, data, rng)).encode(
            errors="surrogatepass"
        )

    def read(data: bytes) -> None:
        path.write_bytes(data)
        parse_tf(path, TfOptions())

    return Kind([g for g in graphs() if len(g) < 20_000], damage, read)


def saved_models(folder: Path) -> Kind:
    """SavedModels as one zip each: one of their files is damaged."""
    place = folder / "saved"
    files = [p.read_bytes() for p in sorted((TF / "saved").glob("*.zip"))]

    def damage(data: bytes, rng: random.Random, donors: list[bytes]) -> bytes:
        with zipfile.ZipFile(io.BytesIO(data)) as z:
            held = {i.filename: z.read(i) for i in z.infolist() if not i.is_dir()}
        chosen = rng.choice(sorted(held))
        if chosen.endswith("saved_model.pb") and rng.random() < 0.7:
            held[chosen] = damaged_message(schema.SavedModel, held[chosen], rng).SerializeToString()
        else:
            held[chosen] = as_bytes(held[chosen], rng, donors)
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as z:
            for name, content in held.items():
                z.writestr(name, content)
        return out.getvalue()

    def read(data: bytes) -> None:
        shutil.rmtree(place, ignore_errors=True)
        with zipfile.ZipFile(io.BytesIO(data)) as z:
            z.extractall(place)
        top = place if (place / "saved_model.pb").exists() else next(place.glob("*"), place)
        parse_tf(top, TfOptions())

    return Kind(files, damage, read)


# ---- MLIR --------------------------------------------------------------------------------------

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\w.$%@#!^-]+|\s+|.')
_MLIR = ("[", "]", "(", ")", "{", "}", "<", ">", "-", "->", ":", ",", "=", '"', "//", "?", "x", "*",
         "tensor<", "dense<", "array<i64: ", "affine_map<(d0) -> (d0)>", "loc(", "#a", "!b", "%0",
         "-1", "0", "9223372036854775807", "18446744073709551616", "1e999", "0x7FC00000", "i1",
         "f16", "bf16", "i4", "si8", "index", "none", "\0", "\u202e", "vector<4xf32>",
         "memref<?xf32>", "tensor<4611686018427387904x4611686018427387904xf32>",
         "dense<1.0> : tensor<9999999999xf32>",
         "unit", "@main", "{-#", "#-}", "...", "\n#a0 = [1]\n")  # fmt: skip


def _mlir_tokens(data: bytes, rng: random.Random, donors: list[bytes]) -> bytes:
    if rng.random() < 0.15:
        return as_bytes(data, rng, donors)
    tokens = _TOKENS.findall(data.decode())
    others = _TOKENS.findall(rng.choice(donors).decode(errors="replace")[:20_000])
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at, kind = rng.randrange(len(tokens)), rng.randrange(6)
        if kind == 0:
            del tokens[at : at + rng.choice((1, 1, 3, 20))]
        elif kind == 1:
            tokens[at] = rng.choice(_MLIR)
        elif kind == 2:
            other = rng.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif kind == 3:
            tokens[at:at] = tokens[at : at + rng.choice((1, 4, 30))] * rng.choice((1, 3, 50))
        elif kind == 4 and others:
            start = rng.randrange(len(others))
            tokens[at : at + 1] = others[start : start + rng.choice((1, 5, 40))]
        else:
            digits = [i for i, t in enumerate(tokens) if t[:1].isdigit()]
            if digits:
                tokens[rng.choice(digits)] = rng.choice(("0", "1", "-1", "7", "65", str(2**31),
                                                         str(2**62), "4x0x3xf32"))  # fmt: skip
    return "".join(tokens).encode(errors="surrogatepass")


def modules() -> list[bytes]:
    """The project's own tests of dialect and passes, an input each."""
    found = []
    for path in sorted((ROOT / "lit").rglob("*.mlir")):
        chunks = re.split(r"^// -----.*$", path.read_text(), flags=re.MULTILINE)
        found += [c.encode() for c in chunks if 20 < len(c) < 8000]
    return found


def mlir_programs(folder: Path) -> Kind:
    path = folder / "damaged.mlir"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        p = read_mlir(path)
        p.text()
        repr(migraphx.program.of(p))

    return Kind(modules(), _mlir_tokens, read)


def mlir_inputs() -> Kind:
    """Inputs of mgx-opt, with the passes that simplify and fold."""
    passes = ["--mgx-simplify-algebra", "--mgx-propagate-constant", "--mgx-simplify-reshapes"]

    def read(data: bytes) -> None:
        from mgx_mlir.core.mlir_text import checked_text

        text = checked_text(data, "in.mlir")
        given = parse_arguments([*passes, "--allow-unregistered-dialect", "in.mlir"])
        with contextlib.redirect_stderr(io.StringIO()) as said:
            printed, status = Session(given, given.pipeline(), "in.mlir").run(text)
        if status and "failed: " in said.getvalue() and "Error" in said.getvalue():
            # a pass that raised: the IR was valid, so that this is a bug
            lines = said.getvalue().splitlines()
            raise AssertionError(next(x for x in lines if "failed: " in x))
        if printed is None or status:
            raise FileError("refused")

    return Kind(modules(), _mlir_tokens, read)


def weights(folder: Path) -> Kind:
    """The .npz beside an .mlir file."""
    text = """module { func.func @main(%a: tensor<40xf32>) -> tensor<40xf32> {
      %0 = "migraphx.literal"() {key = "k"} : () -> tensor<40xf32>
      %1 = "migraphx.add"(%a, %0) : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
      return %1 : tensor<40xf32> } }"""
    path, beside = folder / "weighed.mlir", folder / "weighed.mlir.npz"
    path.write_text(text)
    files = []
    for arrays in (
        {"k": np.arange(40, dtype="f4")},
        {"k": np.arange(40, dtype="f4"), "l": np.ones(3)},
    ):
        write_weights(str(beside), arrays)
        files.append(beside.read_bytes())
    compressed = io.BytesIO()
    np.savez_compressed(compressed, k=np.arange(40, dtype="f4"))
    files.append(compressed.getvalue())

    def read(data: bytes) -> None:
        beside.write_bytes(data)
        repr(migraphx.program.of(read_mlir(path)))

    return Kind(files, as_bytes, read)


# ---- data and reports --------------------------------------------------------------------------


def arrays(folder: Path, suffix: str) -> Kind:
    """Inputs of --load-arg: .npy, .npz, .pb."""
    array = np.arange(12, dtype="f4").reshape(3, 4)
    files = []
    for held in (array, np.asfortranarray(array)):
        out = io.BytesIO()
        if suffix == ".npy":
            np.save(out, held)
        elif suffix == ".npz":
            np.savez(out, x=held)
        else:
            out.write(onnx.numpy_helper.from_array(held).SerializeToString())
        files.append(out.getvalue())
    path = folder / f"array{suffix}"
    ports = [Port("x", "float_type", (3, 4)), Port("x", "float_type", (-1, 4))]

    def damage(data: bytes, rng: random.Random, donors: list[bytes]) -> bytes:
        if suffix == ".pb" and rng.random() < 0.6:
            return damaged_message(onnx.TensorProto, data, rng).SerializeToString()
        return as_bytes(data, rng, donors)

    def read(data: bytes) -> None:
        path.write_bytes(data)
        for port in ports:
            read_argument(path, port)

    return Kind(files, damage, read)


def _json_words(data: bytes, rng: random.Random, donors: list[bytes]) -> bytes:
    if rng.random() < 0.4:
        return as_bytes(data, rng, donors)
    numbers = list(re.finditer(rb"-?\d+(?:\.\d+)?", data))
    m = rng.choice(numbers)
    words = (b"9" * 400, b"9" * 5000, b"-1", b"0", b"1e999", b"NaN", b"null", b"true", b'"x"',
             b"[]", b"{}", b"1e-400", b"[" * 100_000)  # fmt: skip
    return data[: m.start()] + rng.choice(words) + data[m.end() :]


def reports(folder: Path) -> Kind:
    """Reports for perf --compare."""
    made = {"report": REPORT, "total_ms": 1.5, "kernels": [{"name": "a", "ms": 0.5},
            {"name": "b", "ms": 1}]}  # fmt: skip
    path = folder / "report.json"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        read_report(str(path))

    return Kind([json.dumps(made).encode()], _json_words, read)


def tunings(folder: Path) -> Kind:
    """Files of solutions, and of a machine's peaks."""
    from mgx_mlir.targets.child import compiler_version

    problem = {"arch": "gfx942", "compiler": compiler_version(), "m": 128, "n": 128, "k": 64}
    rows = [
        [{"name": solutions.MATMUL, "problem": problem}, {"tile": [64, 64, 32], "us": 1.5}],
        [{"name": "program", "problem": {"x": 1}}, {"threads": 2, "opt_level": "O2"}],
    ]
    path = folder / "tuning.json"
    peaks = {"threads": 2, "gb_s": 10.5, "gflop_s": 80.25}

    def read(data: bytes) -> None:
        import os

        path.write_bytes(data)
        if b"gb_s" in data:
            read_peaks(path, 2)
            return
        os.environ[solutions.VARIABLE] = str(path)
        try:
            solutions.solutions()
            solutions.stored_matmuls("gfx942")
            solutions.lookup({"x": 1})
        finally:
            del os.environ[solutions.VARIABLE]

    return Kind([json.dumps(rows).encode(), json.dumps(peaks).encode()], _json_words, read)


def kinds(folder: Path, cases: Path | None) -> dict[str, Kind]:
    """Every kind of this file, by name."""
    return {
        "onnx": Kind(onnx_models(cases), _onnx_fields, read_onnx),
        "external": external(folder),
        "tf": Kind(graphs(), _graph_fields, read_graph),
        "pbtxt": texts(folder),
        "saved_model": saved_models(folder),
        "mlir": mlir_programs(folder),
        "mlir_opt": mlir_inputs(),
        "mlir_npz": weights(folder),
        "npy": arrays(folder, ".npy"),
        "npz": arrays(folder, ".npz"),
        "pb": arrays(folder, ".pb"),
        "compare": reports(folder),
        "tuning": tunings(folder),
    }
