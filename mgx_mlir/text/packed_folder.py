"""Folders of quantised models: layers with codes stay as they are, in blocks."""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mgx_mlir.core.errors import FileError, MgxError
from mgx_mlir.text.blocks import BlockWeights
from mgx_mlir.text.files import read_json
from mgx_mlir.text.folder import Folder
from mgx_mlir.text.packages import imported
from mgx_mlir.text.packed_weights import block_weights, layers_of, packing_of

# files of AutoGPTQ's and AutoAWQ's older versions, with their method
_BESIDE = {"quantize_config.json": "gptq", "quant_config.json": "awq"}


def quantised(path: Path) -> bool:
    """Return whether a folder states that its weights are quantised."""
    return bool(_stated(path)[0])


def _stated(path: Path) -> tuple[Any, Path]:
    """Return how weights are quantised, None where nothing says so, and the file that says it."""
    place = path / "config.json"
    found = read_json(place, missing={}).get("quantization_config")
    if found is not None:
        return found, place
    for name, method in _BESIDE.items():
        if (path / name).is_file():
            return {"quant_method": method, **read_json(path / name)}, path / name
    return None, place


class PackedFolder(Folder):
    """A folder whose linear layers have codes of 4 or 8 bits.

    Raises FileError, and UnsupportedModel for a method or form that is not read.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        config, place = _stated(path)
        self._place, self._packing = place, packing_of(config, str(place))
        self._blocks: dict[str, BlockWeights] = {}

    def files(self) -> list[Path]:
        """Return the configuration and the weights."""
        return [*super().files(), *([] if self._place.name == "config.json" else [self._place])]

    def model(self) -> Any:
        """Read the weights, codes as floats."""
        torch, transformers = imported("torch"), imported("transformers")
        with self.reading(), torch.device("meta"):
            config = transformers.AutoConfig.from_pretrained(
                str(self.path), local_files_only=True, trust_remote_code=False
            )
            if hasattr(config, "quantization_config"):
                del config.quantization_config
            empty = transformers.AutoModelForCausalLM.from_config(config, trust_remote_code=False)
        tensors = self._tensors()
        linear = {n: m for n, m in empty.named_modules() if isinstance(m, torch.nn.Linear)}
        for name in sorted(layers_of(tensors, self._packing)):
            own = {s: t.float().numpy() if t.is_floating_point() else t.numpy()
                   for s in self._packing.suffixes
                   if (t := tensors.pop(f"{name}.{s}", None)) is not None}  # fmt: skip
            layer = linear.get(name)
            try:
                if layer is None:
                    raise FileError("the config's model has no such linear layer")
                dims = (layer.out_features, layer.in_features)
                self._blocks[name] = block_weights(own, self._packing, dims)
            except MgxError as e:
                raise type(e)(f"'{name}': {e.message}", location=str(self.path)) from None
            tensors[f"{name}.weight"] = torch.from_numpy(self._blocks[name].floats())
        if not self._blocks:
            raise FileError(f"no layer has codes of {self._packing.method}, as "
                            f"{self._place.name} states", location=str(self.path))  # fmt: skip
        with self.reading():
            made, found = type(empty).from_pretrained(
                None, config=config, state_dict=tensors, dtype=torch.float32,
                output_loading_info=True,
            )  # fmt: skip
        self.check(found)
        return made.eval()

    def _tensors(self) -> dict[str, Any]:
        """Return all tensors of the files, by name."""
        opened = imported("safetensors").safe_open
        found: dict[str, Any] = {}
        for file in self.weights:
            try:
                with opened(str(file), framework="pt") as held:
                    found |= {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118
            except Exception as e:  # safetensors raises exceptions of its own
                raise FileError(f"cannot be read: {e}", location=str(file)) from e
        return found

    def blocks(self) -> Mapping[str, BlockWeights]:
        """Return the linear layers that have codes, by name, once `model` has read them."""
        return self._blocks
