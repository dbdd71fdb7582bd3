"""Torch operators that programs do not support: training behaviour and random draws."""

from __future__ import annotations

from typing import Any

from mgx_mlir.core.errors import UnsupportedModel, UsageError
from mgx_mlir.frontends.torch_routes import operators

TRAINING = (
    "compile the model for inference: call model.eval(), and run it under torch.no_grad() or "
    "torch.inference_mode()"
)
# ops whose operands have the same names in all overloads
_DROPOUTS = {
    "dropout", "dropout_", "feature_dropout", "feature_dropout_", "alpha_dropout", "alpha_dropout_",
    "feature_alpha_dropout", "feature_alpha_dropout_", "native_dropout",
}  # fmt: skip
DRAWS = "random numbers differ between calls of torch, but not between calls of a program"
# arguments of operators that draw only in training
_IN_TRAINING = {"train", "training", "dropout", "dropout_p"}
_LAYERS = {"lstm", "gru", "rnn_tanh", "rnn_relu"}
_NORMS = {"batch_norm": "training", "native_batch_norm": "training",
          "instance_norm": "use_input_stats"}  # fmt: skip


def refuse_training(model: Any) -> None:
    """Raise UsageError for an ExportedProgram with dropout or statistics of batches."""
    for node in operators(model):
        name = _trained(node)
        if name:
            raise UsageError(f"the graph is of a model in training: it has {name} as in training",
                             notes=[TRAINING])  # fmt: skip


def refuse_draws(model: Any) -> None:
    """Raise UnsupportedModel for an ExportedProgram that draws random numbers.

    A program has no state: each call would return the same numbers.
    """
    drawing = sorted({str(node.target) for node in operators(model) if draws(node)})
    if drawing:
        raise UnsupportedModel(
            f"{', '.join(drawing)}: {DRAWS}",
            notes=["take the numbers as an input, or use torch.compile(module, backend='mgx'), "
                   "which leaves the draws to torch"],
        )  # fmt: skip


def draws(node: Any) -> bool:
    """Return whether an operator node draws from torch's generator."""
    target = node.target
    if "nondeterministic_seeded" not in {tag.name for tag in getattr(target, "tags", ())}:
        return False
    return not _IN_TRAINING & {a.name for a in target._schema.arguments}


def _trained(node: Any) -> str:
    """Return the operator's name if the node behaves as in training, else ""."""
    space, _, name = node.target._schema.name.partition("::")
    if space != "aten":
        return ""
    given = {a.name: v for a, v in zip(node.target._schema.arguments, node.args, strict=False)}
    given |= node.kwargs
    if name in _NORMS and given.get(_NORMS[name]) is True:
        # without running statistics the op has no others
        return "" if given.get("running_mean") is None else name
    if name in _DROPOUTS and given.get("train") is not False and given["p"] != 0:
        return "dropout"
    if name in _LAYERS and given["train"] and given["dropout"] and given["num_layers"] > 1:
        return f"dropout of {name}"
    return ""
