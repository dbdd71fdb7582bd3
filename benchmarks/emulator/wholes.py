"""ResNet-50 and BERT-base whole, with drawn weights; other models by their files.

    python -m benchmarks.emulator.wholes resnet50 bert_base model.onnx [--arch gfx942] [--seeds 3]

prints the errors of the f16 program and of onnxruntime in f16, both against onnxruntime in f32 with
the same rounded weights and inputs. A file is an f32 model; what lies beside it as
`NAME.inputs.npz` (benchmarks/models.py writes both), else drawn numbers, are its inputs, and its
batch norms are folded first.

Batch norms of the models made here are folded. Scales are such that activations stay within what
trained nets have.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx

import mgx_mlir
from benchmarks.oracle import inputs_for
from tests.emulator import oracle
from tests.emulator.blocks import Block, encoder_layer, padding_mask
from tests.emulator.models import Case

STAGES = (3, 4, 6, 3)


def resnet50(dtype: str, seed: int, side: int = 224, stages: tuple[int, ...] = STAGES) -> Case:
    """ResNet-50 v1.5 (the 3x3 convolution has the stride) at batch 1, to 1000 logits."""
    g = Block(seed, dtype)
    he = math.sqrt(2)
    x = g.op("Relu", g.conv(g.input("image", 1, 3, side, side), 3, 64, 7, 2, gain=he))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    into = 64
    for stage, depth in enumerate(stages):
        width, out = 64 << stage, 256 << stage
        for i in range(depth):
            stride = 2 if stage and not i else 1
            y = g.op("Relu", g.conv(x, into, width, 1, gain=he))
            y = g.op("Relu", g.conv(y, width, width, 3, stride, gain=he))
            # trained nets, too, have residuals that are smaller than the values they are added to
            y = g.conv(y, width, out, 1, gain=0.4 * he)
            x = g.conv(x, into, out, 1, stride) if i == 0 else x
            x, into = g.op("Relu", g.op("Add", y, x)), out
    x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    w = g.weight(1000, into, scale=1 / math.sqrt(into))
    y = g.op("Gemm", x, w, g.weight(1000, scale=0.1), transB=1)
    return g.case(y, 1, 1000)


def bert_base(dtype: str, seed: int, rows: int = 128, layers: int = 12) -> Case:
    """BERT-base from token ids to its last hidden state."""
    g = Block(seed, dtype)
    width, words = 768, 30522
    ids = g.given("input_ids", g.rng.integers(0, words, (1, rows)))
    kinds = g.given("token_type_ids", (np.arange(rows)[None] >= rows // 2).astype(np.int64))
    mask = padding_mask(g, rows)
    x = g.op("Gather", g.weight(words, width), ids)
    x = g.op("Add", x, g.op("Gather", g.weight(2, width), kinds))
    x = g.norm(g.op("Add", x, g.weight(1, rows, width)), width)
    for _ in range(layers):
        x = encoder_layer(g, x, rows, width, 12, mask)
    return g.case(x, 1, rows, width)


WHOLE = {f.__name__: f for f in (resnet50, bert_base)}


def of_file(path: Path, seed: int) -> Case:
    """An f32 model in f16, its inputs those beside it (seed 0), or changed by the seed."""
    with tempfile.TemporaryDirectory() as folder:
        folded = f"{folder}/folded.onnx"
        session = oracle.session(str(path), folded)
        model = onnx.load(folded)
    inputs = inputs_for(path, session)
    rng = np.random.default_rng(seed)
    for name, value in inputs.items():
        if value.dtype == np.float32:
            drawn = value if seed == 0 else rng.standard_normal(value.shape)
            inputs[name] = drawn.astype(np.float16)
        elif seed and value.size > 1 and name == "input_ids":
            inputs[name] = rng.permuted(value, axis=-1)
    return Case(oracle.narrowed(model), inputs)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="NAME|FILE")
    parser.add_argument("--arch", default="gfx942")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    for name in options.names:
        for seed in range(options.seeds):
            case = WHOLE[name]("f16", seed) if name in WHOLE else of_file(Path(name), seed)
            want = oracle.wanted(case)
            peer = oracle.worst(oracle.session(case.model).run(None, case.inputs), want)
            model = case.model.SerializeToString()
            program = mgx_mlir.compile(model, target="gpu", arch=options.arch, emulate=True)
            start = time.perf_counter()
            own = oracle.worst(program.run(case.inputs), want)
            seconds = time.perf_counter() - start
            print(
                f"{name} f16 {options.arch} seed {seed}: {own:.2e}, "
                f"onnxruntime in f16 {peer:.2e}, {seconds:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
