"""Programs of one session: the model's, and one for each change that a run makes to the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

import mgx_mlir
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.compiler.iree_program import IreeProgram
from mgx_mlir.compiler.without_names import WithoutNames, judge
from mgx_mlir.core import forks
from mgx_mlir.core.errors import UnsupportedModel
from mgx_mlir.integrations.backend import StructuredRep, has_structures
from mgx_mlir.integrations.onnxruntime.errors import InvalidArgument
from mgx_mlir.integrations.onnxruntime.models import Model
from mgx_mlir.integrations.onnxruntime.types import NodeArg
from mgx_mlir.quantization.tables import CalibrationTable
from mgx_mlir.targets.cache import cached_in


@dataclass(frozen=True)
class Settings:
    """Target and options that a session's programs are compiled with."""

    target: str
    options: Mapping[str, Any] = field(default_factory=dict)  # options of `mgx_mlir.compile`
    types: tuple[str, ...] = ()  # smaller types, applied in order: "fp16", "bf16", "int8", "fp8"
    table: str = ""  # path of a calibration table, for "int8" and "fp8"
    cache_folder: str = ""  # folder of the compile cache; empty for the environment's

    def compile(self, model: Model, names: tuple[str, ...] = ()) -> CompiledProgram:
        """Return the program of a model. `names` are names of dims that need not be equal."""
        how = dict(model.options)
        if names:
            how["loose_names"] = names
        with cached_in(self.cache_folder):
            if not self.types:
                return mgx_mlir.compile(model.source, self.target, **{**self.options, **how})
            made = mgx_mlir.program.of(mgx_mlir.read_model(model.source, how))
            for kind in self.types:
                self._quantise(made, kind, model.source)
            return mgx_mlir.compile(made, self.target, **self.options)

    def _quantise(self, made: mgx_mlir.program, kind: str, source: str | bytes) -> None:
        if kind in ("fp16", "bf16"):
            (mgx_mlir.quantize_fp16 if kind == "fp16" else mgx_mlir.quantize_bf16)(made)
            return
        known = None
        if self.table:
            if isinstance(source, bytes):
                raise InvalidArgument(
                    "a calibration table names tensors of a file, and the model is bytes",
                    notes=["make the session of the model's path"],
                )
            known = CalibrationTable.load(self.table).for_model(source)
        # ranges are measured on this machine's CPU, whatever the target
        here = mgx_mlir.get_target("cpu")
        if kind == "int8":
            mgx_mlir.quantize_int8(made, here, ranges=known)
        else:
            mgx_mlir.quantize_fp8(made, here, ranges=known)


class Programs:
    """The program of a model, and those for overridden initializers and for structures.

    `main` is None for a model whose inputs are sequences, optionals, or of no stated rank: its
    programs depend on a run's inputs. Pickles hold the code of all programs made so far.
    """

    def __init__(
        self, model: Model, settings: Settings, main: CompiledProgram | None = None
    ) -> None:
        self.model, self.settings, self.main = model, settings, main
        self._start({})
        if main is None and not model.structured and not model.rankless:
            try:
                self.main = settings.compile(model)
            except UnsupportedModel:
                if not has_structures(model.proto()):
                    raise  # otherwise lengths may follow from values of inputs
                self.model = replace(model, structured=True)

    def _start(self, others: dict[frozenset[str], CompiledProgram]) -> None:
        self._others = others
        self._lock = forks.lock()
        self._structures: StructuredRep | None = None

    def for_feed(self, feed: Mapping[str, Any]) -> CompiledProgram:
        """Return the program for a run: another one if the feed overrides initializers."""
        main = self.main
        if main is None:
            return self._structured(feed) if self.model.structured else self._of_ranks(feed)
        known = {a.name for a in self.model.overridable}
        given = frozenset(n for n in feed if n in known) if known else frozenset()
        if not given:
            return main
        with self._lock:
            if given not in self._others:
                own = self.model.with_inputs(sorted(given))
                self._others[given] = self.settings.compile(own)
            return self._others[given]

    def _structured(self, feed: Mapping[str, Any]) -> CompiledProgram:
        with self._lock:
            if self._structures is None:
                how = {**self.settings.options, **self.model.options}
                if self.settings.types:
                    kinds = ", ".join(self.settings.types)
                    raise InvalidArgument(f"{kinds} of sequences is not supported")
                self._structures = StructuredRep(self.model.proto(), self.settings.target, how)
            given = {a.name: feed.get(a.name) for a in self.model.inputs}
            for a in self.model.inputs:
                self._check_structure(a, given)
            return self._structures.program_for(given)

    @staticmethod
    def _check_structure(a: NodeArg, given: dict[str, Any]) -> None:
        """Convert the elements of a sequence to arrays. Errors: InvalidArgument for another
        value.
        """
        value = given[a.name]
        if "seq(" not in a.type or value is None:
            return
        if not isinstance(value, list | tuple):
            raise InvalidArgument(
                f"input '{a.name}' expected a list of arrays, got {type(value).__name__}"
            )
        given[a.name] = [np.asarray(v) for v in value]

    def _of_ranks(self, feed: Mapping[str, Any]) -> CompiledProgram:
        """Return the program for inputs of these ranks, of a model that does not state them."""
        ranks = {n: np.ndim(feed[n]) for n in self.model.rankless if n in feed}
        key = frozenset(f"{n}:{rank}" for n, rank in ranks.items())
        with self._lock:
            if key not in self._others:
                self._others[key] = self.settings.compile(self.model.with_ranks(ranks))
            return self._others[key]

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self.model, "settings": self.settings, "main": self.main,
                "others": dict(self._others)}  # fmt: skip

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.model, self.settings, self.main = (state[n] for n in ("model", "settings", "main"))
        self._start(state["others"])
        main = self.main
        shared = main.signature.shared_names() if isinstance(main, IreeProgram) else []
        if isinstance(main, IreeProgram) and shared:
            main.without_names = WithoutNames(
                partial(self.settings.compile, self.model),
                judge(self.model.source, self.model.options),
                shared,
            )
