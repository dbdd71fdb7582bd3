"""Times convolution nets that onnxruntime's quantize_static made against onnxruntime, in 8 bits.

    python benchmarks/quantised_nets.py                     # all, one thread
    python benchmarks/quantised_nets.py resnet qdq --dynamic   # names with all of these words
    python benchmarks/quantised_nets.py --threads 2 --openvino   # OpenVINO beside them

A ResNet and a MobileNet of fewer blocks with drawn weights, calibrated on drawn images, in both of
onnxruntime's forms: activations u8 with weights scaled by tensor, or i8 with weights scaled by
output channel. The results are those of onnxruntime without saturation, whose time is printed too
(exact); exit code 1 if one is more than one step of its scale off.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.engines import openvino  # noqa: E402
from benchmarks.oracle import session  # noqa: E402
from mgx_mlir.debug.engine_times import time_engines  # noqa: E402
from zoo.made import Graph  # noqa: E402

DIMS = (3, 112, 112)
CLASSES = 1000
FORMS = {"qdq": QuantFormat.QDQ, "qoperator": QuantFormat.QOperator}
SIGNS = {"u8": QuantType.QUInt8, "s8": QuantType.QInt8}


class _Images(CalibrationDataReader):
    """Calibration images."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self._images: Iterator[np.ndarray] = iter(
            rng.standard_normal((3, 1, *DIMS)).astype(np.float32)
        )

    def get_next(self) -> dict[str, np.ndarray] | None:
        found = next(self._images, None)
        return None if found is None else {"x": found}


class _Net(Graph):
    """A graph of convolutions as they are once batch norms are folded into them."""

    def conv(
        self, x: str, channels: tuple[int, int], k: int, stride: int = 1, group: int = 1,
        act: str = "",
    ) -> str:  # fmt: skip
        """Build a convolution with a bias, and what clips its result."""
        inputs, outputs = channels
        w = self.weight(outputs, inputs // group, k, k, fan_in=inputs // group * k * k)
        y = self.op(
            "Conv", x, w, self.vector(outputs), kernel_shape=[k, k], strides=[stride] * 2,
            pads=[k // 2] * 4, group=group,
        )  # fmt: skip
        if act == "Clip":
            return self.op("Clip", y, self.const(0.0), self.const(6.0))
        return self.op(act, y) if act else y

    def classified(self, x: str, channels: int) -> onnx.ModelProto:
        """Finish with the mean of each channel and a product."""
        y = self.op("Flatten", self.op("GlobalAveragePool", x))
        self.output(self.op("MatMul", y, self.weight(channels, CLASSES)), "y", (1, CLASSES))
        return self.model()


def resnet() -> onnx.ModelProto:
    """Two bottleneck blocks at each of three sizes."""
    g = _Net(0)
    y = g.conv(g.input("x", (1, *DIMS)), (3, 64), 7, 2, act="Relu")
    y, have = g.op("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 64
    for stage, block in product(range(3), range(2)):
        width, stride = 64 << stage, 2 if stage and not block else 1
        z = g.conv(y, (have, width), 1, act="Relu")
        z = g.conv(z, (width, width), 3, stride, act="Relu")
        z = g.conv(z, (width, 4 * width), 1)
        short = y if block else g.conv(y, (have, 4 * width), 1, stride)
        y, have = g.op("Relu", g.op("Add", z, short)), 4 * width
    return g.classified(y, have)


def mobilenet() -> onnx.ModelProto:
    """Inverted residuals: 1x1, depthwise 3x3, 1x1."""
    g = _Net(0)
    y, have = g.conv(g.input("x", (1, *DIMS)), (3, 32), 3, 2, act="Clip"), 32
    for outputs, blocks, stride in ((16, 1, 1), (24, 2, 2), (32, 3, 2), (64, 2, 2), (96, 2, 1)):
        for block in range(blocks):
            wide = have * 6
            z = g.conv(y, (have, wide), 1, act="Clip")
            z = g.conv(z, (wide, wide), 3, 1 if block else stride, wide, act="Clip")
            z = g.conv(z, (wide, outputs), 1)
            y, have = g.op("Add", z, y) if have == outputs else z, outputs
    return g.classified(g.conv(y, (have, 320), 1, act="Clip"), 320)


NETS = {"resnet": resnet, "mobilenet": mobilenet}


def quantised(net: str, form: str, sign: str, folder: Path, *, is_dynamic: bool) -> Path:
    """Return the file of a net in 8 bits; is_dynamic: its batch is."""
    whole, path = folder / f"{net}.onnx", folder / f"{net}_{form}_{sign}.onnx"
    onnx.save(NETS[net](), whole)
    quantize_static(
        whole, path, _Images(), quant_format=FORMS[form], activation_type=SIGNS[sign],
        weight_type=QuantType.QInt8, per_channel=sign == "s8",
    )  # fmt: skip
    if is_dynamic:
        model = onnx.load(path)
        for v in (*model.graph.input, *model.graph.output):
            v.type.tensor_type.shape.dim[0].dim_param = "batch"
        del model.graph.value_info[:]
        onnx.save(model, path)
    return path


def steps_off(got: np.ndarray, want: np.ndarray) -> Counter[int]:
    """Count the elements by how many steps of the result's scale they are off."""
    step = np.diff(np.unique(want)).min()
    return Counter(np.rint(np.abs(got - want) / step).astype(int).reshape(-1).tolist())


def measure(path: Path, options: argparse.Namespace) -> bool:
    """Compare and time one net, print its line, and return whether it is right."""
    import mgx_mlir

    x = np.random.default_rng(7).standard_normal((options.batch, *DIMS)).astype(np.float32)
    oracle, start = session(path, options.threads), time.perf_counter()
    program = mgx_mlir.compile(str(path), target="cpu", threads=options.threads)
    compiled = time.perf_counter() - start
    # the exact form of QLinearMatMul of i8 has no kernel; such products do not saturate
    exact = session(path, options.threads, exact="qoperator_s8" not in path.stem)
    engines = {
        "ort": lambda: oracle.run(None, {"x": x})[0],
        "exact": lambda: exact.run(None, {"x": x})[0],
        "mgx": lambda: np.asarray(program.run([x])[0]),
    }
    if options.openvino:
        peer = openvino(path, {"x": x}, options.threads, path.stem)
        engines["openvino"] = lambda: peer()[0]
    off = steps_off(engines["mgx"](), engines["exact"]())
    clock = "cpu" if options.threads == 1 else "wall"
    times = time_engines(engines, clock=clock, rounds=options.rounds, block=options.seconds)
    ort, mgx, slow = (times.seconds(name) for name in ("ort", "mgx", "exact"))
    beside = ""
    if options.openvino:
        beside = f", openvino {mgx / times.seconds('openvino'):4.2f}"
    print(
        f"{path.stem:24} ort {ort * 1e3:7.3f} ms  mgx {mgx * 1e3:7.3f} ms  {mgx / ort:5.2f}  "
        f"(exact {mgx / slow:4.2f}{beside})  "
        f"{len(program.kernels)} kernels, compiled in {compiled:.1f} s; steps off: "
        f"{dict(sorted(off.items()))}",
        flush=True,
    )
    return max(off) <= 1


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the nets that the words name."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*", help="only nets whose name contains all of these")
    parser.add_argument("--dynamic", action="store_true", help="the batch is dynamic")
    parser.add_argument("--batch", type=int, default=1, help="with --dynamic")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--openvino", action="store_true", help="OpenVINO's time, too")
    parser.add_argument("--rounds", type=int, help="default: until the ratios are known")
    parser.add_argument("--seconds", type=float, default=0.1, help="of one engine in one round")
    options = parser.parse_args(argv)
    if options.batch != 1 and not options.dynamic:
        parser.error("--batch expected 1 without --dynamic")
    right = True
    with tempfile.TemporaryDirectory(prefix="mgx-quantised-") as folder:
        for net, form, sign in product(NETS, FORMS, SIGNS):
            if all(word in f"{net}_{form}_{sign}" for word in options.words):
                path = quantised(net, form, sign, Path(folder), is_dynamic=options.dynamic)
                right &= measure(path, options)
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
