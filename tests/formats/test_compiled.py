"""Compiled programs in files: loaded without compiling, and refused where they do not fit."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import mgx_mlir as migraphx
from mgx_mlir.compiler.recording import recording
from mgx_mlir.compiler.saved import tree_digest
from mgx_mlir.core.errors import FileError, UsageError
from mgx_mlir.frontends.mxr.decode import decode_msgpack
from mgx_mlir.printers.tree_files import Binary, json_text, msgpack_bytes
from tests.formats.programs import PROGRAMS, feed_of
from tests.support import compiles


@pytest.fixture(scope="module")
def made() -> migraphx.program:
    p = PROGRAMS["dense"]()
    p.compile(migraphx.get_target("cpu"))
    return p


@pytest.fixture(scope="module")
def saved(made: migraphx.program) -> bytes:
    return migraphx.save_buffer(made)


@pytest.mark.parametrize("kind", ["msgpack", "json"])
def test_it_runs_without_compiling(
    made: migraphx.program, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = migraphx.save_buffer(made, kind)
    compiles.forbidden(monkeypatch)
    q = migraphx.load_buffer(data)
    assert q.is_compiled()
    assert repr(q) == repr(made)
    feed = feed_of(made)
    assert np.array(q.run(feed)[0]).tobytes() == np.array(made.run(feed)[0]).tobytes()
    plain = migraphx.load_buffer(data, compiled=False)
    assert not plain.is_compiled()
    assert repr(plain) == repr(PROGRAMS["dense"]())
    assert migraphx.save_buffer(q, kind) == data


def test_the_weights_are_in_the_file_once(made: migraphx.program, saved: bytes) -> None:
    code = len(memoryview(made.compiled.executable.vmfb))
    assert len(saved) < 40 * 30 * 4 * 1.5 + code + 25_000


def test_optimal_sizes_come_back() -> None:
    """A program with a function of its own for a size."""
    p = PROGRAMS["dynamic"]()
    p.compile(migraphx.get_target("cpu"))
    q = migraphx.load_buffer(migraphx.save_buffer(p))
    assert q.compiled.signature == p.compiled.signature
    for rows in (1, 2, 4, 5):
        feed = {"x": np.ones((rows, 3), "f4"), "n": np.ones((2, 2), "f4")}
        for a, b in zip(p.run(feed), q.run(feed), strict=True):
            assert np.array_equal(np.array(a), np.array(b))


def test_ref() -> None:
    p = PROGRAMS["convolution"]()
    p.compile(migraphx.get_target("ref"))
    q = migraphx.load_buffer(migraphx.save_buffer(p))
    assert q.is_compiled()
    assert repr(q) == repr(p)


def test_code_for_a_gpu_is_loaded_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from mgx_mlir.targets.devices import GpuDevice, gpu_devices

    p = PROGRAMS["worked_example"]()
    p.compile(migraphx.get_target("gpu"), arch="gfx942")
    data = migraphx.save_buffer(p)
    q = migraphx.load_buffer(data)
    assert repr(q) == repr(p)
    if not gpu_devices():
        with pytest.raises(migraphx.MgxError, match="no AMD GPU"):
            q.run({"x": np.zeros(2, "f4")})
    here = (GpuDevice(0, "Radeon", "gfx1100"),)
    monkeypatch.setattr("mgx_mlir.targets.devices.gpu_devices", lambda: here)
    with pytest.raises(FileError, match="for gfx942, this machine has gfx1100"):
        migraphx.load_buffer(data)


# ---- code that does not fit ----------------------------------------------------------------------


def edited(data: bytes, path: str, value: Any, *, sealed: bool = False) -> bytes:
    """A file with one entry of its code (or of the program) replaced; `sealed` with a checksum
    that fits."""

    def plain(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {k: plain(v) for k, v in tree.items()}
        if isinstance(tree, list):
            return [plain(v) for v in tree]
        return Binary(bytes(tree)) if isinstance(tree, memoryview) else tree

    tree = plain(decode_msgpack(data))
    entry = tree["mgx_mlir"]["compiled"][0]
    at = tree if path.startswith("modules") else entry
    *front, last = [int(k) if k.isdigit() else k for k in path.split(".")]
    for key in front:
        at = at[key]
    at[last] = value(at[last]) if callable(value) else value
    if sealed:
        entry["checksum"] = checksum(entry)
    return msgpack_bytes(tree)


def checksum(entry: Any) -> str:
    """The checksum of an entry: of all but itself, and of memory the digests alone."""
    stated = {k: v for k, v in entry.items() if k != "checksum"}

    def bare(blob: Any) -> Any:
        return {k: v for k, v in blob.items() if k != "data"} if isinstance(blob, dict) else blob

    stated["vmfb"] = bare(entry["vmfb"])
    if isinstance(entry["params"], dict):
        stated["params"] = {k: bare(p) for k, p in entry["params"].items()}
    return tree_digest(stated)


def flipped(code: Binary) -> Binary:
    raw = bytearray(code.data)
    raw[len(raw) // 2] ^= 1
    return Binary(bytes(raw))


def with_data(change: Any) -> Any:
    """A change of the bytes of code, which lie behind padding."""
    return lambda code: {**code, "data": {"data": change(code["data"]["data"])}}


@pytest.mark.parametrize(("path", "value", "sealed", "message"), [
    ("vmfb", with_data(flipped), False, "checksum does not match"),
    ("vmfb", with_data(lambda code: Binary(code.data[:-8])), False, "checksum does not match"),
    ("signature.inputs.0.dims", [4, 41], False, "checksum does not match"),
    ("params", lambda params: {k: {**p, "bytes": "0" * 64} for k, p in params.items()}, False,
     "checksum"),
    ("params", lambda params: {k: {**p, "bytes": "0" * 64} for k, p in params.items()}, True,
     "checksum"),
    ("params", lambda params: {k: {**p, "lens": [2**60, 2**60]} for k, p in params.items()}, True,
     "expected"),
    ("params", lambda params: {k: {**p, "lens": [1] * 100} for k, p in params.items()}, True,
     "expected"),
    ("text", "module {", False, "checksum does not match"),
    ("versions.iree", "1.0", True, "the code is for IREE '1.0', expected"),
    ("host", "another", True, "for another CPU"),
    ("target", "fpga", True, "unknown target 'fpga'"),
    ("target", 5, True, "'target' expected a string"),
    ("vmfb", "text", False, "'vmfb' expected an object"),
    ("vmfb", {"bytes": "0" * 64, "data": "x"}, False, "'vmfb' expected bytes"),
    ("executable", {"nothing": 1}, True, "the compiled program is damaged"),
    ("signature", {"inputs": 1}, True, "the compiled program is damaged"),
    ("signature", {}, True, "the compiled program is damaged: keyerror"),
    ("modules.main.nodes.0.literal.shape.lens", [31], False, "not compiled from the program"),
    ("modules.main.nodes.6.normalized", True, True, "not compiled from the program"),
    ("modules.main.nodes.0.literal.data", flipped, True, "not compiled from the program"),
])  # fmt: skip
def test_code_that_does_not_fit_is_refused(
    saved: bytes, path: str, value: Any, sealed: bool, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mgx_mlir.runtime.iree_runtime.LoadedModule.__init__", compiles.never)
    data = edited(saved, path, value, sealed=sealed)
    with pytest.raises(FileError) as e:
        migraphx.load_buffer(data)
    assert message in str(e.value)
    if not path.startswith("modules"):
        assert "compiled=False" in str(e.value)
        assert repr(migraphx.load_buffer(data, compiled=False)) == repr(PROGRAMS["dense"]())


def test_a_file_is_damaged_wherever_a_bit_of_its_code_flips(saved: bytes) -> None:
    start, end = saved.index(b"\xa8compiled"), len(saved)
    for at in range(start, end, (end - start) // 60):
        raw = bytearray(saved)
        raw[at] ^= 4
        with pytest.raises(FileError):
            migraphx.load_buffer(bytes(raw))


def test_json_that_is_edited_by_hand(made: migraphx.program, tmp_path: Path) -> None:
    """The program of a compiled file is not changed behind its code's back."""
    text = migraphx.save_buffer(made, "json").decode()
    assert '"name":"relu"' in text
    path = tmp_path / "p.json"
    path.write_text(text.replace('"name":"relu"', '"name":"sigmoid"'))
    with pytest.raises(FileError, match="not compiled from the program"):
        migraphx.load(path)
    assert "sigmoid" in repr(migraphx.load(path, compiled=False))
    assert json_text({"a": float("nan")}) == '{"a":"nan"}'


# ---- several architectures -----------------------------------------------------------------------


def both(*archs: str) -> bytes:
    p = PROGRAMS["convolution"]()
    p.compile(migraphx.get_target("gpu"), arch=",".join(archs))
    assert p.compiled.archs == archs
    return migraphx.save_buffer(p)


def test_several_architectures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one of the device that is there comes first; weights are in the file once."""
    from mgx_mlir.targets.devices import GpuDevice

    one, data = both("gfx942"), both("gfx942", "gfx1100")
    entries = decode_msgpack(data)["mgx_mlir"]["compiled"]
    assert [e["arch"] for e in entries] == ["gfx942", "gfx1100"]
    shared = [p for p in entries[1]["params"].values() if "data" not in p]
    assert len(shared) == len(entries[1]["params"]) > 0
    assert len(data) < len(one) + len(entries[1]["vmfb"]["data"]["data"]) + 20_000
    assert migraphx.load_buffer(data).compiled.archs == ("gfx942", "gfx1100")
    for arch, archs in (("gfx942", ("gfx942", "gfx1100")), ("gfx1100", ("gfx1100", "gfx942"))):
        here = (GpuDevice(0, "Radeon", arch),)
        monkeypatch.setattr("mgx_mlir.targets.devices.gpu_devices", lambda here=here: here)
        q = migraphx.load_buffer(data)
        assert q.compiled.archs == archs
        assert q.compiled.for_arch("gfx942") is not None
        again = migraphx.load_buffer(migraphx.save_buffer(q))
        assert again.compiled.archs == archs
    other = (GpuDevice(0, "Radeon", "gfx1201"),)
    monkeypatch.setattr("mgx_mlir.targets.devices.gpu_devices", lambda: other)
    with pytest.raises(FileError, match="for gfx942, gfx1100, this machine has gfx1201"):
        migraphx.load_buffer(data)


def test_code_for_gpus_of_two_vendors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's GPU decides; a newer NVIDIA device takes the newest code that runs there."""
    from mgx_mlir.targets.devices import GpuDevice

    data = both("gfx942", "sm_80", "sm_86")
    assert migraphx.load_buffer(data).compiled.archs == ("gfx942", "sm_80", "sm_86")
    for arch, kind, first in (
        ("gfx942", "hip", "gfx942"), ("sm_80", "cuda", "sm_80"), ("sm_90", "cuda", "sm_86"),
        ("sm_87", "cuda", "sm_86"),
    ):  # fmt: skip
        here = (GpuDevice(0, "a card", arch, kind),)
        monkeypatch.setattr("mgx_mlir.targets.devices.gpu_devices", lambda here=here: here)
        compiled = migraphx.load_buffer(data).compiled
        assert (compiled.archs[0], compiled.driver) == (first, kind)
        compiled.placement = replace(compiled.placement, emulate=True)
        assert compiled.driver == "hip"
    for arch, kind in (("sm_75", "cuda"), ("gfx1100", "hip")):
        here = (GpuDevice(0, "a card", arch, kind),)
        monkeypatch.setattr("mgx_mlir.targets.devices.gpu_devices", lambda here=here: here)
        with pytest.raises(FileError, match=f"gfx942, sm_80, sm_86, this machine has {arch}"):
            migraphx.load_buffer(data)


def test_what_cuda_graphs_refuse() -> None:
    compiled = migraphx.load_buffer(both("sm_80"), graph=True, stream_priority=-1).compiled
    compiled.can_mark = True
    with pytest.raises(UsageError, match="markers are for AMD GPUs"):
        recording(compiled, None)
    compiled.can_mark, compiled.graph = False, False
    assert recording(compiled, None) is None
    older = migraphx.load_buffer(both("sm_80"), hip_graph=True).compiled
    assert older.graph


def test_wrong_entries() -> None:
    data = both("gfx942", "gfx1100")

    def changed(change: Any) -> bytes:
        tree = decode_msgpack(edited(data, "arch", "gfx942"))
        own = tree["mgx_mlir"]
        own["compiled"] = change(own["compiled"])
        for entry in own["compiled"]:
            entry["checksum"] = checksum(entry)
        return msgpack_bytes(
            {**tree, "mgx_mlir": {**own, "compiled": [_binary(e) for e in own["compiled"]]}}
        )

    def lost(entries: Any) -> Any:
        for p in entries[1]["params"].values():
            p["bytes"] = "0" * 64
        return entries

    wrong = {
        "expected code for one architecture each, got gfx942, gfx942": lambda e: [e[0], e[0]],
        "expected code for one target, got 'gpu', 'cpu'": lambda e: [
            e[0],
            {**e[1], "target": "cpu"},
        ],
        "expected at most 64 architectures, got 66": lambda e: e * 33,
        "the file lacks the parameter": lost,
    }
    for message, change in wrong.items():
        with pytest.raises(FileError, match=message):
            migraphx.load_buffer(changed(change))


def _binary(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {k: _binary(v) for k, v in tree.items()}
    if isinstance(tree, list):
        return [_binary(v) for v in tree]
    return Binary(bytes(tree)) if isinstance(tree, memoryview) else tree


# ---- programs without kernels --------------------------------------------------------------------

VIEWS = {
    "identity": ("float[N] x", "y = Identity (x)"),
    "reshape": ("float[N, 2] x", "s = Constant <value_ints: ints = [-1]> ()\n y = Reshape (x, s)"),
    "squeeze": ("float[1, N] x", "s = Constant <value_ints: ints = [0]> ()\n y = Squeeze (x, s)"),
    "constants": ("float[2] x", "y = Constant <value_floats: floats = [1.0, 2.0]> ()"),
    "empty": ("float[0, 3] x", "y = Identity (x)"),
}


@pytest.mark.parametrize("target", ["cpu", "ref"])
@pytest.mark.parametrize("name", VIEWS)
def test_programs_without_kernels(name: str, target: str) -> None:
    given, body = VIEWS[name]
    text = f'<ir_version: 8, opset_import: ["" : 18]> g ({given}) => (float y) {{ {body} }}'
    model = onnx.parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    data = model.SerializeToString()
    dims = {"identity": (4,), "reshape": (3, 2), "squeeze": (1, 5), "constants": (2,)}
    x = np.arange(math.prod(dims.get(name, (0, 3))), dtype=np.float32).reshape(
        dims.get(name, (0, 3))
    )
    want = {"reshape": x.reshape(-1), "squeeze": x.reshape(-1)}.get(name, x)
    want = np.array([1, 2], np.float32) if name == "constants" else want
    made = migraphx.compile(data, target)
    held = migraphx.parse_onnx_buffer(data, map_input_dims={"x": list(x.shape)})
    held.compile(migraphx.get_target(target))
    for p, kind in itertools.product((made, held), ("msgpack", "json")):
        q = migraphx.load_buffer(migraphx.save_buffer(p, kind))
        for found in (p.run({"x": x}), q.run({"x": x})):
            assert np.array_equal(np.array(found[0]), want)
    again = migraphx.load_buffer(migraphx.save_buffer(migraphx.load_buffer(
        migraphx.save_buffer(made))))  # fmt: skip
    assert np.array_equal(np.array(again.run({"x": x})[0]), want)
