"""Exports small models of every family from torch's two exporters, with inputs of two sizes each.

    python -m zoo.families.export --out DIR [FAMILY ...] [--exporter script] [--opset 17]

Beside `FAMILY.EXPORTER.OPSET.static|dynamic.onnx` lies `.0.npz`, and `.1.npz` for a dynamic one:
inputs of one size each. Needs torch, transformers and onnxscript:
`pip install .[bench] -c constraints.txt`.
"""

from __future__ import annotations

import argparse
import io
import logging
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from zoo.families import nets, transformer_nets

Sizes = dict[str, int]
Inputs = dict[str, torch.Tensor]
OPSETS = {"script": (13, 17, 20), "dynamo": (18, 21, 23)}


@dataclass(frozen=True)
class Family:
    """A constructor of a net and its inputs, and the dims that stay dynamic."""

    net: Callable[[], nn.Module]
    inputs: Callable[[Sizes], Inputs]
    axes: dict[str, dict[int, str]]  # input -> axis -> symbol
    sizes: tuple[Sizes, Sizes]
    outputs: list[str]
    fixed: int = 99  # number of inputs before *past
    exporters: tuple[str, ...] = ("script", "dynamo")
    scale: float = 1.0  # factor of weights: above 1 if the library's init gives flat outputs
    finish: Callable[[onnx.ModelProto], onnx.ModelProto] = field(default=lambda model: model)


def images(name: str = "pixel_values") -> Callable[[Sizes], Inputs]:
    return lambda s: {name: torch.randn(s["batch"], 3, s.get("height", 32), s.get("width", 32))}


def tokens(s: Sizes, high: int = 97) -> torch.Tensor:
    return torch.randint(3, high, (s["batch"], s["length"]))


def mask_of(x: torch.Tensor) -> torch.Tensor:
    """Ones, but for padding at the end of the last row."""
    mask = torch.ones_like(x)
    mask[-1, -2:] = 0
    return mask


def text(s: Sizes) -> Inputs:
    ids = tokens(s)
    return {"input_ids": ids, "attention_mask": mask_of(ids)}


def clip_text(s: Sizes) -> Inputs:
    found = text(s)
    found["input_ids"][:, -3] = 99  # the end of the text, whose state is taken
    return found


def bert(s: Sizes) -> Inputs:
    found = text(s)
    found["token_type_ids"] = torch.zeros_like(found["input_ids"])
    found["token_type_ids"][:, s["length"] // 2 :] = 1
    return found


def unet(s: Sizes) -> Inputs:
    return {
        "sample": torch.randn(s["batch"], 4, s["height"], s["width"]),
        "timestep": torch.randint(0, 1000, (s["batch"],)),
        "context": torch.randn(s["batch"], s["length"], 24),
    }


def detr(s: Sizes) -> Inputs:
    found = images()(s)
    mask = torch.ones(s["batch"], s["height"], s["width"], dtype=torch.int64)
    mask[-1, :, -10:] = 0
    return {**found, "pixel_mask": mask}


def tagger(s: Sizes) -> Inputs:
    lengths = torch.linspace(s["length"], 2, s["batch"]).long()  # falling, as packing wants them
    return {"tokens": torch.randint(0, 50, (s["batch"], s["length"])), "lengths": lengths}


def graph(s: Sizes) -> Inputs:
    return {
        "nodes": torch.randn(s["nodes"], 8),
        "edges": torch.randint(0, s["nodes"], (2, s["edges"])),
    }


def past(prefix: str, batch: int, heads: int, length: int) -> Inputs:
    return {
        f"{prefix}{kind}_{layer}": torch.randn(batch, heads, length, 8)
        for layer in range(2)
        for kind in ("key", "value")
    }


def step(heads: int) -> Callable[[Sizes], Inputs]:
    def make(s: Sizes) -> Inputs:
        mask = torch.ones(s["batch"], s["past"] + s["length"], dtype=torch.int64)
        mask[-1, :1] = 0  # padding ahead of the text
        positions = torch.arange(s["past"], s["past"] + s["length"])[None].repeat(s["batch"], 1)
        return {
            "input_ids": tokens(s),
            "attention_mask": mask,
            "position_ids": positions,
            **past("past_", s["batch"], heads, s["past"]),
        }

    return make


def cross_step(s: Sizes) -> Inputs:
    return {
        "input_ids": tokens(s),
        "encoder_states": torch.randn(s["batch"], s["source"], 32),
        **past("self_", s["batch"], 4, s["past"]),
        **past("cross_", s["batch"], 4, s["source"]),
    }


PAST = [f"{kind}_{layer}" for layer in range(2) for kind in ("key", "value")]
STEP_AXES = {
    "input_ids": {0: "batch", 1: "length"},
    "attention_mask": {0: "batch", 1: "total"},
    "position_ids": {0: "batch", 1: "length"},
    **{f"past_{name}": {0: "batch", 2: "past"} for name in PAST},
}
CROSS_AXES = {
    "input_ids": {0: "batch"},
    "encoder_states": {0: "batch", 1: "source"},
    **{f"self_{name}": {0: "batch", 2: "past"} for name in PAST},
    **{f"cross_{name}": {0: "batch", 2: "source"} for name in PAST},
}
CROSS_SIZES = (
    {"batch": 2, "length": 1, "past": 6, "source": 9},
    {"batch": 3, "length": 1, "past": 11, "source": 14},
)
TEXT_AXES = {name: {0: "batch", 1: "length"} for name in ("input_ids", "attention_mask")}
TEXT_SIZES = ({"batch": 2, "length": 9}, {"batch": 3, "length": 14})
STEP_SIZES = ({"batch": 2, "length": 3, "past": 6}, {"batch": 3, "length": 2, "past": 11})
IMAGE_SIZES = (
    {"batch": 2, "height": 64, "width": 64},
    {"batch": 1, "height": 96, "width": 64},
)
OPEN_IMAGE = {0: "batch", 2: "height", 3: "width"}
PRESENT = [f"present_{name}" for name in PAST]
TAGGER = ({"batch": 3, "length": 9}, {"batch": 4, "length": 13})
TAGGER_AXES = {"tokens": {0: "batch", 1: "length"}, "lengths": {0: "batch"}}


def with_nms(model: onnx.ModelProto) -> onnx.ModelProto:
    """NonMaxSuppression behind the head, then the boxes that are kept, as detectors are shipped."""
    boxes, scores = (o.name for o in model.graph.output)
    consts = {
        "nms_most": np.int64([5]), "nms_iou": np.float32([0.5]), "nms_score": np.float32([0.52]),
        "nms_batch_box": np.int64([0, 2]), "nms_one": np.int64([1]),
    }  # fmt: skip
    model.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in consts.items())
    nodes = [
        helper.make_node("NonMaxSuppression", [boxes, scores, "nms_most", "nms_iou", "nms_score"],
                         ["selected"]),
        helper.make_node("Gather", ["selected", "nms_batch_box"], ["batch_box"], axis=1),
        helper.make_node("GatherND", [boxes, "batch_box"], ["kept_boxes"]),
        helper.make_node("GatherND", [scores, "selected"], ["kept_scores"]),
    ]  # fmt: skip
    model.graph.node.extend(nodes)
    kinds = {"selected": (TensorProto.INT64, ["kept", 3]),
             "kept_boxes": (TensorProto.FLOAT, ["kept", 4]),
             "kept_scores": (TensorProto.FLOAT, ["kept"])}  # fmt: skip
    model.graph.output.extend(helper.make_tensor_value_info(k, *v) for k, v in kinds.items())
    return model


FAMILIES: dict[str, Family] = {
    "swin": Family(
        transformer_nets.swin, images(), {"pixel_values": {0: "batch"}},
        ({"batch": 2}, {"batch": 3}), ["logits"], scale=4,
    ),
    "segformer": Family(
        transformer_nets.segformer, images(), {"pixel_values": OPEN_IMAGE}, IMAGE_SIZES,
        ["logits"], scale=4,
    ),
    "t5_encoder": Family(
        transformer_nets.t5_encoder, text, TEXT_AXES, TEXT_SIZES, ["last_hidden_state"]
    ),
    "t5_decoder": Family(
        transformer_nets.t5_decoder, cross_step, CROSS_AXES, CROSS_SIZES, ["logits", *PRESENT], 2
    ),
    "clip_text": Family(
        transformer_nets.clip_text, clip_text, TEXT_AXES, TEXT_SIZES,
        ["text_embeds", "last_hidden_state"], scale=4,
    ),
    "clip_vision": Family(
        transformer_nets.clip_vision, images(), {"pixel_values": {0: "batch"}},
        ({"batch": 2}, {"batch": 3}), ["image_embeds"], scale=4,
    ),
    "unet": Family(
        nets.UNet, unet,
        {"sample": OPEN_IMAGE, "timestep": {0: "batch"}, "context": {0: "batch", 1: "length"}},
        ({"batch": 2, "height": 8, "width": 8, "length": 5},
         {"batch": 3, "height": 12, "width": 8, "length": 7}),
        ["noise"],
    ),
    "vae_decoder": Family(
        nets.VaeDecoder,
        lambda s: {"latent": torch.randn(s["batch"], 4, s["height"], s["width"])},
        {"latent": OPEN_IMAGE},
        ({"batch": 2, "height": 6, "width": 6}, {"batch": 3, "height": 4, "width": 8}),
        ["image"],
    ),
    "yolo": Family(
        nets.Yolo, images("image"), {"image": OPEN_IMAGE}, IMAGE_SIZES, ["boxes", "scores"],
        finish=with_nms,
    ),
    "detr": Family(
        transformer_nets.detr, detr,
        {"pixel_values": OPEN_IMAGE, "pixel_mask": {0: "batch", 1: "height", 2: "width"}},
        IMAGE_SIZES, ["logits", "boxes"], scale=4,
    ),
    "lstm_tagger": Family(
        lambda: nets.Tagger(nn.LSTM, True), tagger, TAGGER_AXES, TAGGER, ["scores"],
        exporters=("script",),
    ),
    "gru_tagger": Family(
        lambda: nets.Tagger(nn.GRU, True), tagger, TAGGER_AXES, TAGGER, ["scores"],
        exporters=("script",),
    ),
    "lstm_tagger_padded": Family(
        lambda: nets.Tagger(nn.LSTM, False), tagger, TAGGER_AXES, TAGGER, ["scores"]
    ),
    "gru_tagger_padded": Family(
        lambda: nets.Tagger(nn.GRU, False), tagger, TAGGER_AXES, TAGGER, ["scores"]
    ),
    "gpt2": Family(
        transformer_nets.gpt2, step(4), STEP_AXES, STEP_SIZES, ["logits", *PRESENT], 3, scale=4
    ),
    "llama": Family(
        transformer_nets.llama, step(2), STEP_AXES, STEP_SIZES, ["logits", *PRESENT], 3, scale=4
    ),
    "whisper_decoder": Family(
        transformer_nets.whisper_decoder, cross_step, CROSS_AXES, CROSS_SIZES,
        ["logits", *PRESENT], 2, scale=4,
    ),
    "mistral": Family(
        transformer_nets.mistral, text, TEXT_AXES, TEXT_SIZES, ["logits"], scale=4
    ),
    "gnn": Family(
        nets.GraphNet, graph, {"nodes": {0: "nodes"}, "edges": {1: "edges"}},
        ({"nodes": 7, "edges": 20}, {"nodes": 12, "edges": 31}), ["scores"],
    ),
    "bert": Family(
        transformer_nets.bert, bert, {**TEXT_AXES, "token_type_ids": TEXT_AXES["input_ids"]},
        TEXT_SIZES, ["last_hidden_state"], scale=4,
    ),
}  # fmt: skip


def randomise(net: nn.Module, scale: float) -> None:
    """Disturb what starts as 0 or 1, and enlarge matrices, so that what is wrong is seen."""
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if parameter.ndim >= 2:
                parameter.mul_(scale)
            elif "norm" in name.lower() and name.endswith("weight"):
                parameter.uniform_(0.5, 1.5)
            else:
                parameter.add_(0.1 * torch.randn_like(parameter))
        for module in net.modules():
            if hasattr(module, "running_var"):
                module.running_var.uniform_(0.5, 1.5)
                module.running_mean.normal_(0.0, 0.1)


def make(name: str) -> nn.Module:
    torch.manual_seed(20)
    net = FAMILIES[name].net().eval()
    randomise(net, FAMILIES[name].scale)
    return net.eval()


def draw(name: str, sizes: Sizes) -> Inputs:
    torch.manual_seed(sum(sizes.values()))
    return FAMILIES[name].inputs(sizes)


def export(name: str, exporter: str, opset: int, dynamic: bool) -> onnx.ModelProto:
    family, net = FAMILIES[name], make(name)
    if opset < 14:  # the exporter writes fused attention from 14 on
        for module in net.modules():
            if hasattr(module, "set_attn_implementation"):
                module.set_attn_implementation("eager")
    inputs = draw(name, family.sizes[0])
    args, names = tuple(inputs.values()), list(inputs)
    common: dict = {"input_names": names, "output_names": family.outputs, "opset_version": opset}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if exporter == "script":
            stream = io.BytesIO()
            torch.onnx.export(
                net, args, stream, dynamo=False,
                dynamic_axes=family.axes if dynamic else None, **common,
            )  # fmt: skip
            model = onnx.load_from_string(stream.getvalue())
        else:
            shapes = dynamic_dims(family, names) if dynamic else None
            program = torch.onnx.export(
                net, args, dynamo=True, dynamic_shapes=shapes, verbose=False, **common
            )
            model = program.model_proto
    return family.finish(model)


def dynamic_dims(family: Family, names: list[str]) -> tuple:
    def of(name: str) -> dict[int, object]:
        # DYNAMIC: a dimension that the net specialises is an error, not a static export
        return dict.fromkeys(family.axes.get(name, {}), torch.export.Dim.DYNAMIC)

    shapes = [of(name) for name in names]
    if isinstance(family.net(), transformer_nets.Fields):
        return (tuple(shapes),)
    if family.fixed < len(shapes):
        return (*shapes[: family.fixed], tuple(shapes[family.fixed :]))
    return tuple(shapes)


def write(name: str, exporter: str, opset: int, dynamic: bool, out: Path) -> Path | None:
    """Export a model and its inputs into a folder; None where the exporter fails, which is said."""
    family = FAMILIES[name]
    stem = f"{name}.{exporter}.{opset}.{'dynamic' if dynamic else 'static'}"
    path = out / f"{stem}.onnx"
    if exporter not in family.exporters:
        return None
    start = time.perf_counter()
    try:
        model = export(name, exporter, opset, dynamic)
    except Exception as error:  # an exporter may fail in any way
        lines = (str(error).strip() or "?").splitlines()
        print(f"{stem}: {type(error).__name__}: {lines[0][:300]}", flush=True)
        return None
    onnx.save(model, path)
    for i, sizes in enumerate(family.sizes[: 2 if dynamic else 1]):
        arrays = {k: v.numpy() for k, v in draw(name, sizes).items()}
        np.savez(path.with_suffix(f".{i}.npz"), **arrays)
    seconds = time.perf_counter() - start
    print(f"{stem}: {path.stat().st_size / 1e3:.0f} kB, {seconds:.1f} s", flush=True)
    return path


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", metavar="FAMILY")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--exporter", choices=("script", "dynamo"), action="append")
    parser.add_argument("--opset", type=int, action="append")
    options = parser.parse_args(argv)
    for noisy in ("torch.onnx", "transformers"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    options.out.mkdir(parents=True, exist_ok=True)
    wanted = [
        (name, exporter, opset, dynamic)
        for name in options.families or FAMILIES
        for exporter in options.exporter or FAMILIES[name].exporters
        if exporter in FAMILIES[name].exporters
        for opset in options.opset or OPSETS[exporter]
        for dynamic in (False, True)
    ]
    written = [write(*each, options.out) for each in wanted]
    return 0 if all(written) else 2


if __name__ == "__main__":
    sys.exit(main())
