"""Operators of torch as in training, which no program has: dropout, statistics of a batch."""

from __future__ import annotations

from typing import Any

from mgx_mlir.core.errors import UsageError
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


def _trained(node: Any) -> str:
    """Return what an operator node does as in training, or an empty text."""
    space, _, name = node.target._schema.name.partition("::")
    if space != "aten":
        return ""
    given = {a.name: v for a, v in zip(node.target._schema.arguments, node.args, strict=False)}
    given |= node.kwargs
    if name in _NORMS and given.get(_NORMS[name]) is True:
        return "" if given.get("running_mean") is None else name  # the op keeps no others
    if name in _DROPOUTS and given.get("train") is not False and given["p"] != 0:
        return "dropout"
    if name in _LAYERS and given["train"] and given["dropout"] and given["num_layers"] > 1:
        return f"dropout of {name}"
    return ""
