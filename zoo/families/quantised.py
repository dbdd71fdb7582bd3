"""Quantised and fused BERT and ResNet, as onnxruntime's tools make them.

    python -m zoo.families.quantised --out DIR

Writes `bert|resnet.qdq|qoperator|dynamic_int8|...` with inputs beside, as
zoo.families.export does.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnxruntime import quantization as q
from onnxruntime.quantization.shape_inference import quant_pre_process

from zoo.families import export, transformer_nets
from zoo.modules import conv_nets as nets

RESNET_SIZES = ({"batch": 2, "height": 32, "width": 32}, {"batch": 3, "height": 32, "width": 32})
export.FAMILIES["resnet"] = export.Family(
    lambda: nets.ResNet((1, 1, 1, 1), 8, 10), export.images(),
    {"pixel_values": {0: "batch"}}, RESNET_SIZES, ["logits"],
)  # fmt: skip
export.FAMILIES["bert_eager"] = export.Family(
    lambda: transformer_nets.bert("eager"), export.bert,
    export.FAMILIES["bert"].axes, export.TEXT_SIZES, ["last_hidden_state"], scale=4,
)  # fmt: skip


class Reader(q.CalibrationDataReader):
    """A few drawn input sets."""

    def __init__(self, name: str, count: int = 4) -> None:
        sizes = export.FAMILIES[name].sizes[0]
        self.sets: Iterator[dict[str, np.ndarray]] = iter(
            [{k: v.numpy() for k, v in self.drawn(name, sizes, i).items()} for i in range(count)]
        )

    @staticmethod
    def drawn(name: str, sizes: export.Sizes, seed: int) -> export.Inputs:
        torch.manual_seed(100 + seed)
        return export.FAMILIES[name].inputs(sizes)

    def get_next(self) -> Any:
        return next(self.sets, None)


def is_masked(node: onnx.NodeProto) -> bool:
    """Return whether a node of BERT makes the mask of attention, adds it or reads the sum."""
    return node.op_type == "Where" or node.name.endswith(("/self/Add", "/self/Softmax"))


def static(source: Path, target: Path, name: str, form: q.QuantFormat, **options: Any) -> None:
    """Calibrated: every tensor between quantised operators is 8 bits."""
    with tempfile.TemporaryDirectory() as folder:
        ready = Path(folder) / "ready.onnx"
        quant_pre_process(str(source), str(ready), skip_symbolic_shape=True)
        # the scores behind a mask of -inf would be calibrated to a scale of inf
        masked = [n.name for n in onnx.load(ready).graph.node if is_masked(n)]
        q.quantize_static(
            str(ready), str(target), Reader(name), quant_format=form, nodes_to_exclude=masked,
            **options,
        )  # fmt: skip


KINDS: dict[str, Any] = {
    "qdq": lambda s, t, n: static(s, t, n, q.QuantFormat.QDQ),
    "qdq_channel_u8s8": lambda s, t, n: static(
        s, t, n, q.QuantFormat.QDQ, per_channel=True, activation_type=q.QuantType.QUInt8,
        weight_type=q.QuantType.QInt8,
    ),
    "qoperator": lambda s, t, n: static(
        s, t, n, q.QuantFormat.QOperator, activation_type=q.QuantType.QUInt8,
        weight_type=q.QuantType.QInt8,
    ),
    "dynamic_int8": lambda s, t, n: q.quantize_dynamic(str(s), str(t)),
    "dynamic_int8_channel": lambda s, t, n: q.quantize_dynamic(
        str(s), str(t), per_channel=True, weight_type=q.QuantType.QInt8
    ),
}  # fmt: skip


def fused(source: Path, target: Path, name: str) -> None:
    """onnxruntime.transformers.optimizer: Attention, SkipLayerNormalization, BiasGelu ..."""
    from onnxruntime.transformers import optimizer
    from onnxruntime.transformers.fusion_options import FusionOptions

    options = FusionOptions("bert")
    found = optimizer.optimize_model(
        str(source), model_type="bert", num_heads=4, hidden_size=32, optimization_options=options,
        opt_level=0,
    )  # fmt: skip
    found.save_model_to_file(str(target))


def session_fused(source: Path, target: Path, name: str) -> None:
    """Save the model after onnxruntime's extended optimisations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(target)
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    logging.disable(logging.WARNING)
    wanted = [(n, k, f) for n in ("bert", "resnet") for k, f in KINDS.items()]
    wanted += [("bert", "session_fused", session_fused), ("resnet", "session_fused", session_fused)]
    wanted += [("bert_eager", "ort_fused", fused), ("bert_eager", "session_fused", session_fused)]
    failed = 0
    for name, kind, make in wanted:
        for opset in (13, 17) if kind != "ort_fused" else (13, 17, 20):
            stem = f"{name}.{kind}.{opset}.dynamic"
            source = options.out / f"{stem}.source"
            try:
                with contextlib.redirect_stderr(sys.stdout):
                    onnx.save(export.export(name, "script", opset, True), source)
                    make(source, options.out / f"{stem}.onnx", name)
            except Exception as error:  # a tool may fail in any way
                failed += 1
                print(f"{stem}: {type(error).__name__}: {str(error)[:300]}", flush=True)
                continue
            finally:
                source.unlink(missing_ok=True)
            for i, sizes in enumerate(export.FAMILIES[name].sizes):
                arrays = {k: v.numpy() for k, v in export.draw(name, sizes).items()}
                np.savez(options.out / f"{stem}.{i}.npz", **arrays)
            print(stem, flush=True)
    return 2 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
