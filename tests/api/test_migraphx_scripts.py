"""The calls of MIGraphX's example scripts, in their order, on models of the same signatures.

Each function below is one of the scripts: what it asks of MIGraphX, without what it downloads,
draws or prints. `Memory` stands for torch's tensors on a device. docs/migraphx.md lists them.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mgx_mlir
from tests.api import script_models as models
from tests.support.oracle import ort_session

DTYPES = {"float_type": np.float32, "int64_type": np.int64, "int32_type": np.int32}
NAMES = {np.dtype(v): k for k, v in DTYPES.items()}


class Migraphx:
    """The module, with the `gpu` that this machine has."""

    def __init__(self, gpu: Callable[[], Any], **loading: Any) -> None:
        self.get_target = lambda name: gpu() if name == "gpu" else mgx_mlir.get_target(name)
        self.load = lambda *given, **options: mgx_mlir.load(*given, **options, **loading)

    def __getattr__(self, name: str) -> Any:
        return getattr(mgx_mlir, name)


class Tensor:
    """An array in host memory, or in a device's, as torch's tensors are to these scripts."""

    def __init__(self, lens: list[int], dtype: Any, device: bool) -> None:
        self.lens, self.dtype = lens, np.dtype(dtype)
        self.host = np.zeros(lens, dtype)
        self.held = mgx_mlir.to_gpu(self.host, emulate=True) if device else None

    def data_ptr(self) -> int:
        return self.held.data_ptr() if self.held is not None else self.host.ctypes.data

    def size(self) -> list[int]:
        return self.lens

    def stride(self) -> list[int]:
        return [s // self.dtype.itemsize for s in self.host.strides]

    def copy_(self, data: Any) -> None:
        self.host[...] = data
        if self.held is not None:  # the emulator's memory is the process's
            ctypes.memmove(self.data_ptr(), self.host.ctypes.data, self.host.nbytes)

    def numpy(self) -> np.ndarray:
        if self.held is not None:
            return np.array(mgx_mlir.from_gpu(self.held))
        return self.host.copy()


class Memory:
    def __init__(self, device: bool) -> None:
        self.device = device

    def empty(self, shape: Any) -> Tensor:
        lens = [] if shape.scalar() else shape.lens()
        return Tensor(lens, DTYPES[shape.type_string()], self.device)


Machine = tuple[Any, Memory]


@pytest.fixture(scope="module")
def machine() -> Machine:
    """The module, and where tensors lie; tests/emulator has another one."""
    return Migraphx(lambda: mgx_mlir.get_target("cpu")), Memory(False)


@pytest.fixture(scope="module")
def cpu() -> Any:
    return Migraphx(lambda: mgx_mlir.get_target("cpu"))


def wanted(path: Path, given: Mapping[str, Any]) -> list[np.ndarray]:
    """Return onnxruntime's results."""
    session = ort_session(str(path))
    return session.run(None, dict(given))


def close(found: Any, want: np.ndarray, tolerance: float = 1e-5) -> None:
    found = np.asarray(found)
    assert found.shape == want.shape
    np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance)


def tensor_to_arg(mgx: Any, tensor: Tensor) -> Any:
    return mgx.argument_from_pointer(
        mgx.shape(
            **{
                "type": NAMES[tensor.dtype],
                "lens": list(tensor.size()),
                "strides": list(tensor.stride()),
            }
        ),
        tensor.data_ptr(),
    )


def load_mgx_model(
    mgx: Any, folder: Path, shapes: Mapping[str, Any], *, fp16: bool = False, offload: bool = False
) -> Any:
    """Load a compiled file if there is one, as the scripts of stable-diffusion and RNN-T do."""
    onnx_file = f"{folder}/model.onnx"
    mxr_file = f"{folder}/model_{'fp16' if fp16 else 'fp32'}_{'oc' if offload else 'gpu'}.mxr"
    if os.path.isfile(mxr_file):
        return mgx.load(mxr_file, format="msgpack")
    model = mgx.parse_onnx(onnx_file, map_input_dims=shapes)
    if fp16:
        mgx.quantize_fp16(model)
    model.compile(mgx.get_target("gpu"), exhaustive_tune=False, offload_copy=offload)
    mgx.save(model, mxr_file, format="msgpack")
    return model


class Held:
    """A model with a buffer for each of its parameters, results among them."""

    def __init__(self, mgx: Any, memory: Memory, model: Any) -> None:
        self.mgx, self.model = mgx, model
        shapes = model.get_parameter_shapes()
        self.tensors = {name: memory.empty(shape) for name, shape in shapes.items()}
        self.args = {name: tensor_to_arg(mgx, t) for name, t in self.tensors.items()}

    def run(self, given: Mapping[str, Any]) -> list[np.ndarray]:
        for name, value in given.items():
            self.tensors[name].copy_(value)
        self.model.run(self.args)
        self.mgx.gpu_sync()
        outputs = [n for n in self.tensors if n.startswith("main:#output_")]
        return [self.tensors[f"main:#output_{i}"].numpy() for i in range(len(outputs))]


@pytest.mark.parametrize("fp16", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_stable_diffusion(tmp_path: Path, machine: Machine, fp16: bool) -> None:
    """2.1, XL, 3 and ControlNet: a time step that is a scalar; the second time from the .mxr."""
    mgx, memory = machine
    tolerance = 3e-2 if fp16 else 1e-4  # f16 rounds inside; results are of order 1
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 50, (2, 7)).astype(np.int32)
    latents = rng.standard_normal((2, 4, 8, 8)).astype(np.float32)
    paths = {
        "text_encoder": models.text_encoder(tmp_path / "text_encoder" / "model.onnx"),
        "unet": models.unet(tmp_path / "unet" / "model.onnx"),
        "vae_decoder": models.vae_decoder(tmp_path / "vae_decoder" / "model.onnx"),
    }
    shapes: dict[str, dict[str, list[int]]] = {
        "text_encoder": {"input_ids": [2, 7]},
        "unet": {"sample": [2, 4, 8, 8], "encoder_hidden_states": [2, 7, 16], "timestep": []},
        "vae_decoder": {"latent_sample": [1, 4, 8, 8]},
    }
    for _ in range(2):
        held = {
            name: Held(mgx, memory, load_mgx_model(mgx, tmp_path / name, shape, fp16=fp16))
            for name, shape in shapes.items()
        }
        text, pooled = held["text_encoder"].run({"input_ids": ids})
        close(text, wanted(paths["text_encoder"], {"input_ids": ids})[0], tolerance)
        close(pooled, wanted(paths["text_encoder"], {"input_ids": ids})[1], tolerance)
        sample = latents
        for t in (981.0, 1.0):
            given = {"sample": sample, "encoder_hidden_states": text, "timestep": np.float32(t)}
            [noise] = held["unet"].run(given)
            arrays = {k: np.asarray(v) for k, v in given.items()}
            close(noise, wanted(paths["unet"], arrays)[0], tolerance)
            low, high = np.split(noise, 2)
            sample = np.concatenate([sample[:1] - 0.1 * (low + 7.5 * (high - low))] * 2)
        given = {"latent_sample": sample[:1]}
        [image] = held["vae_decoder"].run(given)
        scale = float(np.abs(image).max())
        close(image / scale, wanted(paths["vae_decoder"], given)[0] / scale, tolerance)


def test_flux(tmp_path: Path, machine: Machine) -> None:
    """Results in strided buffers made once, inputs as they come, a run on a stream."""
    mgx, memory = machine
    path = models.transformer(tmp_path / "model.onnx")
    shapes = {"hidden_states": [1, 4, 8], "encoder_hidden_states": [1, 5, 12], "timestep": [1]}
    model = mgx.parse_onnx(str(path), map_input_dims=shapes)
    assert isinstance(model, mgx.program)
    model.compile(mgx.get_target("gpu"), exhaustive_tune=False, offload_copy=False)
    inputs, outputs = [], []
    for n in model.get_parameter_names():
        (outputs if "main:#output_" in n else inputs).append(n)
    assert sorted(inputs) == sorted(shapes)
    buffers, args = {}, {}
    for name in outputs:
        shape = model.get_parameter_shapes()[name]
        assert shape.strides() == [32, 8, 1]
        buffers[name] = memory.empty(shape)
        args[name] = tensor_to_arg(mgx, buffers[name])
    stream = 0
    if memory.device:
        held = mgx.get_target("gpu").get_context().create_stream()
        stream = held.address
    rng = np.random.default_rng(1)
    for _ in range(2):
        given = {n: rng.standard_normal(d).astype(np.float32) for n, d in shapes.items()}
        for name, value in given.items():
            tensor = Tensor(list(value.shape), np.float32, memory.device)
            tensor.copy_(value)
            buffers[name] = tensor
            args[name] = tensor_to_arg(mgx, tensor)
        model.run_async(args, stream, "ihipStream_t")
        mgx.gpu_sync()
        close(buffers["main:#output_0"].numpy(), wanted(path, given)[0], 1e-4)


def test_rnnt(tmp_path: Path, machine: Machine) -> None:
    """Three nets and greedy decoding: states go from results to inputs."""
    mgx, memory = machine
    models.rnnt(tmp_path)
    shapes: dict[str, dict[str, list[int]]] = {
        "rnnt_encoder": {"input": [9, 1, 6], "feature_length": [1]},
        "rnnt_prediction": {
            "symbol": [1, 1], "hidden_in_1": [1, 1, 5], "hidden_in_2": [1, 1, 5],
        },
        "rnnt_joint": {"onnx::Shape_0": [1, 1, 8], "onnx::Shape_1": [1, 1, 5]},
    }  # fmt: skip
    held = {
        name: Held(mgx, memory, load_mgx_model(mgx, tmp_path / name, shape))
        for name, shape in shapes.items()
    }

    def ours(name: str, given: Mapping[str, Any]) -> list[np.ndarray]:
        return held[name].run(given)

    def theirs(name: str, given: Mapping[str, Any]) -> list[np.ndarray]:
        return wanted(tmp_path / name / "model.onnx", given)

    x = np.random.default_rng(2).standard_normal((9, 1, 6)).astype(np.float32) * 3
    found = greedy(ours, x)
    assert found == greedy(theirs, x)
    assert len(found) > 2


def greedy(run: Callable[[str, Mapping[str, Any]], list[np.ndarray]], x: np.ndarray) -> list[int]:
    length = np.array([x.shape[0]], np.int64)
    encoded, lengths = run("rnnt_encoder", {"input": x, "feature_length": length})
    hidden = [np.zeros((1, 1, 5), np.float32)] * 2
    label: list[int] = []
    for step in range(int(lengths[0])):
        for _ in range(3):
            symbol = np.array([[label[-1] if label else 0]], np.int64)
            given = {"symbol": symbol, "hidden_in_1": hidden[0], "hidden_in_2": hidden[1]}
            g, *after = run("rnnt_prediction", given)
            joined = {"onnx::Shape_0": encoded[step][None], "onnx::Shape_1": g}
            k = int(run("rnnt_joint", joined)[0][0, 0, 0].argmax())
            if k == 5:
                break
            label.append(k)
            hidden = after
    return label


def test_resnet50_and_nfnet(tmp_path: Path, cpu: Any, capsys: pytest.CaptureFixture) -> None:
    migraphx = cpu
    path = models.classifier(tmp_path / "resnet50.onnx")
    model = migraphx.parse_onnx(str(path))
    model.compile(migraphx.get_target("gpu"))
    model.print()
    assert "convolution" in capsys.readouterr().out
    assert model.get_parameter_names() == ["data"]
    assert str(model.get_output_shapes()[0]) == "float_type, {1, 10}, {10, 1}"
    image = np.random.default_rng(3).integers(0, 255, (16, 16, 3))
    data = np.expand_dims(image.transpose(2, 0, 1).astype("float32") / 255, 0)
    results = model.run({"data": data})
    res_npa = np.array(results[0])
    assert np.argmax(res_npa) == wanted(path, {"data": data})[0].argmax()


@pytest.mark.parametrize("dims", [(1, 3, 12, 12), (1, 2, 6, 7, 5)])
def test_unet_super_resolution_and_3d_unet(tmp_path: Path, cpu: Any, dims: tuple[int]) -> None:
    """An input whose elements lie in another order."""
    migraphx = cpu
    path = models.segmenter(tmp_path / "m.onnx", "input", dims)
    model = migraphx.parse_onnx(str(path))
    model.compile(migraphx.get_target("gpu"))
    turned = np.random.default_rng(4).standard_normal(dims[::-1]).astype(np.float32).T
    result = model.run({"input": turned})
    data = np.array(result[0])[0]
    close(data, wanted(path, {"input": np.ascontiguousarray(turned)})[0][0], 1e-4)


def test_bert_squad(tmp_path: Path, cpu: Any) -> None:
    migraphx = cpu
    path = models.bert_squad(tmp_path / "bertsquad-10.onnx")
    model = migraphx.parse_onnx(str(path), map_input_dims={
        k: [1, 12] for k in ("input_ids:0", "input_mask:0", "segment_ids:0")
    })  # fmt: skip
    model.compile(migraphx.get_target("gpu"))
    rng = np.random.default_rng(5)
    given = {
        "unique_ids_raw_output___9:0": np.array([7], dtype=np.int64),
        "input_ids:0": rng.integers(0, 30, (1, 12)),
        "input_mask:0": rng.integers(0, 2, (1, 12)),
        "segment_ids:0": rng.integers(0, 2, (1, 12)),
    }
    result = model.run(given)
    want = wanted(path, given)
    assert result[1].get_shape().lens()[0] == 1
    for i in (0, 1):
        close([float(x) for x in result[i].tolist()], want[i].ravel())
    assert result[2].tolist() == [7]


def test_llama(tmp_path: Path, cpu: Any) -> None:
    """A prompt that is padded to a fixed length, and one more id from each run."""
    mgx = cpu
    path = models.decoder(tmp_path / "model.onnx", states=False)
    length = 10
    shapes = {k: [1, length] for k in ("input_ids", "attention_mask", "position_ids")}
    for _ in range(2):
        file = tmp_path / f"model-{length}.mxr"
        if file.is_file():
            model = mgx.load(str(file), format="msgpack")
        else:
            model = mgx.parse_onnx(str(path), map_input_dims=shapes)
            model.compile(mgx.get_target("gpu"))
            mgx.save(model, str(file), format="msgpack")
        ids, mask = np.zeros((1, length), np.int64), np.zeros((1, length), np.int64)
        ids[0, :3], mask[0, :3] = (1, 5, 9), 1
        places = np.arange(length)[None]
        for end in range(3, 7):
            given = {"input_ids": ids, "attention_mask": mask, "position_ids": places}
            scores = np.array(model.run(given)[0])
            close(scores, wanted(path, given)[0], 1e-4)
            ids[0, end], mask[0, end] = scores[0, end - 1].argmax(), 1


def test_whisper(tmp_path: Path, cpu: Any) -> None:
    mgx = cpu
    first = models.encoder(tmp_path / "encoder_model.onnx")
    second = models.decoder(tmp_path / "decoder_model.onnx", states=True)
    encoder = mgx.parse_onnx(str(first), map_input_dims={"input_features": [1, 4, 20]})
    encoder.compile(mgx.get_target("gpu"))
    shapes = {
        "input_ids": [1, 6], "attention_mask": [1, 6], "encoder_hidden_states": [1, 10, 8],
    }  # fmt: skip
    decoder = mgx.parse_onnx(str(second), map_input_dims=shapes)
    decoder.compile(mgx.get_target("gpu"))
    features = np.random.default_rng(6).standard_normal((1, 4, 20))  # f64, as numpy makes them
    states = np.array(encoder.run({"input_features": features.astype(np.float32)})[0])
    ids, mask = np.zeros((1, 6), int), np.zeros((1, 6), int)
    ids[0, 0], mask[0, 0] = 3, 1
    given = {
        "input_ids": ids.astype(np.int64),
        "attention_mask": mask.astype(np.int64),
        "encoder_hidden_states": states.astype(np.float32),
    }
    close(np.array(decoder.run(given)[0]), wanted(second, given)[0], 1e-4)


def test_yolo(tmp_path: Path, cpu: Any) -> None:
    """`compile(t=)`, an argument over an array, and `tolist` into a shape."""
    mgx = cpu
    path = models.detector(tmp_path / "yolo.onnx")
    model = mgx.parse_onnx(str(path))
    mgx.quantize_fp16(model)
    model.compile(t=mgx.get_target("gpu"))
    mgx.save(model, str(tmp_path / "yolo.mxr"))
    model = mgx.load(str(tmp_path / "yolo.mxr"), format="msgpack")
    image = np.random.default_rng(7).random((1, 3, 32, 32), np.float32)
    input_name = next(iter(model.get_parameter_shapes()))
    outputs = model.run({input_name: mgx.argument(image)})
    detections = [
        np.ndarray(shape=out.get_shape().lens(), buffer=np.array(out.tolist()), dtype=float)
        for out in outputs
    ]
    close(detections[0], wanted(path, {"images": image})[0], 5e-3)  # computed in f16
    assert np.array(outputs[0])[0].shape == (64, 6)


def test_torch_migraphx(tmp_path: Path, machine: Machine) -> None:
    """A program goes through a file's bytes; inputs in order of names, results by number."""
    mgx, memory = machine
    path = models.classifier(tmp_path / "m.onnx", "x_0")
    with open(path, "rb") as f:
        program = mgx.parse_onnx_buffer(f.read())
    program.compile(
        mgx.get_target("gpu"), offload_copy=False, fast_math=True, exhaustive_tune=False
    )
    mgx.save(program, str(tmp_path / "dummy.mxr"))
    program = mgx.load(str(tmp_path / "dummy.mxr"))
    names = [n for n in program.get_parameter_names() if "output" not in n]
    assert names == ["x_0"]
    x = np.random.default_rng(8).standard_normal((1, 3, 16, 16)).astype(np.float32)
    held = Held(mgx, memory, program)
    [found] = held.run({"x_0": x})
    close(found, wanted(path, {"x_0": x})[0], 1e-4)
    assert [s.lens() for s in program.get_output_shapes()] == [[1, 10]]
