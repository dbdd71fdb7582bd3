"""Makes the benchmark's models: torch nets with random weights of a sane scale, exported to ONNX.

    python benchmarks/models.py resnet50 bert_base --out DIR --exporter dynamo --opset 18

Beside each `NAME_EXPORTER.onnx` lies `NAME_EXPORTER.inputs.npz`, one set of inputs for it (token
ids stay inside the vocabulary). Needs torch, transformers, onnx and onnxscript:
`pip install .[bench] -c constraints.txt`.
"""

from __future__ import annotations

import argparse
import collections
import logging
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from zoo.modules import conv_nets as nets
from zoo.modules import dense_nets, transformer_nets

SEED = 20
Dims = dict[str, dict[int, str]]  # input name -> axis -> symbol


@dataclass(frozen=True)
class Spec:
    """One model: how to build the net and its inputs, full size or small."""

    net: Callable[..., nn.Module]  # net(small=..., attention=...)
    inputs: Callable[[bool], dict[str, torch.Tensor]]  # inputs(small)
    outputs: Callable[[bool], list[str]]
    axes: Callable[[bool], Dims]


def image(size: int, small_size: int) -> Callable[[bool], dict[str, torch.Tensor]]:
    def make(small: bool) -> dict[str, torch.Tensor]:
        side = small_size if small else size
        return {"image": torch.randn(1, 3, side, side)}

    return make


def ids(small: bool, vocabulary: int, length: int) -> torch.Tensor:
    high = 512 if small else vocabulary
    return torch.randint(0, high, (1, 16 if small else length))


def bert_inputs(small: bool) -> dict[str, torch.Tensor]:
    tokens = ids(small, 30522, 128)
    mask = torch.ones_like(tokens)
    mask[:, -3:] = 0  # padding at the end, so that a mask that is ignored is seen
    segment = torch.zeros_like(tokens)
    segment[:, tokens.shape[1] // 2 :] = 1
    return {"input_ids": tokens, "attention_mask": mask, "token_type_ids": segment}


def distilbert_inputs(small: bool) -> dict[str, torch.Tensor]:
    full = bert_inputs(small)
    return {name: full[name] for name in ("input_ids", "attention_mask")}


def step_inputs(small: bool) -> dict[str, torch.Tensor]:
    layers, heads, width, past = (2, 2, 16, 15) if small else (8, 4, 64, 63)
    result = {
        "input_ids": ids(small, 32000, 1)[:, :1],
        "position_ids": torch.tensor([[past]]),
    }
    for layer in range(layers):
        for kind in ("key", "value"):
            result[f"past_{kind}_{layer}"] = torch.randn(1, heads, past, width)
    return result


def step_outputs(small: bool) -> list[str]:
    names = ["logits"]
    for layer in range(2 if small else 8):
        names += [f"present_key_{layer}", f"present_value_{layer}"]
    return names


def batch_axis(small: bool) -> Dims:
    return {"image": {0: "batch"}}


def token_axes(*names: str) -> Callable[[bool], Dims]:
    return lambda small: {name: {0: "batch", 1: "sequence"} for name in names}


def step_axes(small: bool) -> Dims:
    past = [name for name in step_inputs(small) if name.startswith("past_")]
    return {"input_ids": {0: "batch"}, "position_ids": {0: "batch"}} | {
        name: {0: "batch", 2: "past"} for name in past
    }


def conv_net(build: Callable[[bool], nn.Module]) -> Callable[..., nn.Module]:
    def make(*, small: bool, attention: str) -> nn.Module:
        return build(small)  # no attention in these

    return make


def named(*names: str) -> Callable[[bool], list[str]]:
    return lambda small: list(names)


SPECS: dict[str, Spec] = {
    "resnet50": Spec(
        conv_net(lambda small: nets.ResNet((1, 1, 1, 1), 16, 10) if small else nets.ResNet()),
        image(224, 64),
        named("logits"),
        batch_axis,
    ),
    "mobilenet_v2": Spec(
        conv_net(lambda small: nets.MobileNetV2(0.25, 0.34, 10) if small else nets.MobileNetV2()),
        image(224, 64),
        named("logits"),
        batch_axis,
    ),
    "efficientnet_b0": Spec(
        conv_net(lambda small: nets.EfficientNet(0.25, 0.34, 10) if small else nets.EfficientNet()),
        image(224, 64),
        named("logits"),
        batch_axis,
    ),
    "convnext_tiny": Spec(
        conv_net(
            lambda small: (
                nets.ConvNeXt((1, 1, 1, 1), (16, 32, 48, 64), 10) if small else nets.ConvNeXt()
            )
        ),
        image(224, 64),
        named("logits"),
        batch_axis,
    ),
    "yolov8n_320": Spec(
        conv_net(
            lambda small: dense_nets.YOLOv8(8, (1, 1, 1, 1), 4) if small else dense_nets.YOLOv8()
        ),
        image(320, 64),
        named("boxes"),
        batch_axis,
    ),
    "unet": Spec(
        conv_net(lambda small: dense_nets.UNet(8, 2) if small else dense_nets.UNet()),
        image(256, 32),
        named("logits"),
        batch_axis,
    ),
    "bert_base": Spec(
        transformer_nets.bert,
        bert_inputs,
        named("last_hidden_state"),
        token_axes("input_ids", "attention_mask", "token_type_ids"),
    ),
    "distilbert": Spec(
        transformer_nets.distilbert,
        distilbert_inputs,
        named("last_hidden_state"),
        token_axes("input_ids", "attention_mask"),
    ),
    "t5_small_encoder": Spec(
        transformer_nets.t5_encoder,
        lambda small: {"input_ids": ids(small, 32128, 128)},
        named("last_hidden_state"),
        token_axes("input_ids"),
    ),
    "gpt2": Spec(
        transformer_nets.gpt2,
        lambda small: {"input_ids": ids(small, 50257, 64)},
        named("logits"),
        token_axes("input_ids"),
    ),
    "llama_100m": Spec(
        transformer_nets.llama,
        lambda small: {"input_ids": ids(small, 32000, 64)},
        named("logits"),
        token_axes("input_ids"),
    ),
    "llama_100m_kv": Spec(transformer_nets.llama_step, step_inputs, step_outputs, step_axes),
    "vit_b": Spec(transformer_nets.vit, image(224, 32), named("logits"), batch_axis),
    "whisper_tiny_encoder": Spec(
        transformer_nets.whisper_encoder,
        lambda small: {"mel": torch.randn(1, 16, 100) if small else torch.randn(1, 80, 3000)},
        named("last_hidden_state"),
        lambda small: {"mel": {0: "batch"}},
    ),
}


def randomise(net: nn.Module, inputs: dict[str, torch.Tensor]) -> None:
    """Give every parameter that starts as 0 or 1 a value of its own, and batch norms statistics.

    A bias left at 0 or a scale left at 1 would hide a wrong one. Running statistics are measured
    on random inputs and then disturbed, so that activations keep their scale through a deep net
    and the norm is still not the identity.
    """
    norms = (nn.BatchNorm2d, nn.LayerNorm)
    with torch.no_grad():
        for module in net.modules():
            if isinstance(module, norms) or type(module).__name__.endswith("RMSNorm"):
                module.weight.uniform_(0.5, 1.5)
            bias = getattr(module, "bias", None)
            if isinstance(bias, nn.Parameter):
                bias.normal_(0.0, 0.1)
            if type(module).__name__ == "ConvNeXtBlock":
                module.scale.uniform_(0.1, 0.5)
        batch_norms = [m for m in net.modules() if isinstance(m, nn.BatchNorm2d)]
        if not batch_norms:
            return
        for module in batch_norms:
            module.momentum = 1.0
        net.train()
        net(*[torch.randn(4, *x.shape[1:]) for x in inputs.values()])
        net.eval()
        for module in batch_norms:
            var = module.running_var
            var.clamp_(min=1e-3).mul_(torch.empty_like(var).uniform_(0.7, 1.3))
            module.running_mean.add_(0.2 * torch.randn_like(var) * var.sqrt())


def build(
    name: str, *, small: bool = False, attention: str = "sdpa"
) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """The net of `name` with its weights drawn (always the same ones), and a set of inputs."""
    torch.manual_seed(SEED)
    spec = SPECS[name]
    net = spec.net(small=small, attention=attention).eval()
    inputs = spec.inputs(small)
    randomise(net, inputs)
    return net.eval(), inputs


def export(
    name: str,
    path: Path,
    *,
    exporter: str,
    opset: int,
    small: bool = False,
    dynamic: bool = False,
    attention: str = "sdpa",
) -> None:
    """Export one model to `path` (written under a temporary name and renamed) and its inputs."""
    net, inputs = build(name, small=small, attention=attention)
    if isinstance(net, transformer_nets.Causal):
        net.explicit_mask = exporter == "script"
    spec = SPECS[name]
    if dynamic:  # torch takes an example batch of 1 for a constant in some nets
        inputs = {key: torch.cat([x, x.roll(1, -1)]) for key, x in inputs.items()}
    names, outputs = list(inputs), spec.outputs(small)
    axes = spec.axes(small) if dynamic else {}
    temporary = path.with_suffix(".tmp")
    args = tuple(inputs.values())
    common: dict = {"input_names": names, "output_names": outputs, "opset_version": opset}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if exporter == "script":
            marked = axes | {outputs[0]: axes[names[0]]} if axes else None
            torch.onnx.export(
                net, args, str(temporary), dynamo=False, dynamic_axes=marked, **common
            )
        else:
            shapes = dynamic_shapes(names, axes) if axes else None
            if shapes is not None and name == "llama_100m_kv":
                shapes = (shapes[0], shapes[1], tuple(shapes[2:]))  # *past is one argument
            program = torch.onnx.export(
                net, args, dynamo=True, dynamic_shapes=shapes, verbose=False, **common
            )
            program.save(str(temporary), external_data=False)
        expected = net(*args)
    os.replace(temporary, path)
    arrays = {key: value.numpy() for key, value in inputs.items()}
    inputs_file = path.with_suffix(".inputs.npz")
    partial = inputs_file.with_suffix(".tmp.npz")
    np.savez(partial, **arrays)
    os.replace(partial, inputs_file)
    report(path, expected[0] if isinstance(expected, tuple) else expected)


def dynamic_shapes(names: list[str], axes: Dims) -> tuple:
    symbols: dict[str, object] = {}

    def dim(symbol: str) -> object:
        # not AUTO: a dimension that the net specialises must be an error, not a static export
        return symbols.setdefault(symbol, torch.export.Dim(symbol, min=1, max=512))

    return tuple({axis: dim(s) for axis, s in axes.get(name, {}).items()} for name in names)


def report(path: Path, expected: torch.Tensor) -> None:
    """Print what was written: size, op types and how varied torch's first output is."""
    model = onnx.load(path, load_external_data=False)
    counts = collections.Counter(node.op_type for node in model.graph.node)
    ops = " ".join(f"{op}:{n}" for op, n in sorted(counts.items()))
    opsets = ", ".join(f"{o.domain or 'ai.onnx'} {o.version}" for o in model.opset_import)
    spread = float(expected.std() / expected.abs().max())
    print(
        f"{path.name}  {path.stat().st_size / 1e6:.1f} MB  opset {opsets}  "
        f"{len(model.graph.node)} nodes  output std/max {spread:.2f}\n    {ops}",
        flush=True,
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="NAME", choices=[*SPECS, "all"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--exporter", choices=("dynamo", "script", "both"), default="dynamo")
    parser.add_argument("--opset", type=int, default=18)
    parser.add_argument("--dynamic", action="store_true", help="batch and sequence stay dynamic")
    parser.add_argument("--small", action="store_true", help="a few layers of tiny width")
    parser.add_argument(
        "--attention", choices=("sdpa", "eager"), default="sdpa", help="as transformers names it"
    )
    options = parser.parse_args(argv)
    for noisy in ("torch.onnx", "transformers"):  # warnings of missing packages
        logging.getLogger(noisy).setLevel(logging.ERROR)
    names = list(SPECS) if "all" in options.names else options.names
    exporters = ("script", "dynamo") if options.exporter == "both" else (options.exporter,)
    options.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in names:
        for exporter in exporters:
            stem = f"{name}_{exporter}" + ("_dynamic" if options.dynamic else "")
            try:
                export(
                    name,
                    options.out / f"{stem}.onnx",
                    exporter=exporter,
                    opset=options.opset,
                    small=options.small,
                    dynamic=options.dynamic,
                    attention=options.attention,
                )
            except Exception as error:  # an exporter may fail in any way; the others go on
                failed += 1
                print(f"{stem}: {type(error).__name__}: {str(error)[:600]}", file=sys.stderr)
    return 2 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
