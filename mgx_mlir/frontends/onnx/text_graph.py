"""Moves string operators out of a graph, to steps that run before the program."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from mgx_mlir.core import dtypes
from mgx_mlir.core.errors import MgxError, ModelError
from mgx_mlir.core.records import dataclass
from mgx_mlir.frontends.onnx.attributes import strings_of, value_of
from mgx_mlir.frontends.onnx.graph import topological
from mgx_mlir.frontends.onnx.load import LoadedModel
from mgx_mlir.frontends.onnx.text_plan import DimSource, TextPlan
from mgx_mlir.programs.text_steps import TextStep, pattern

_T = onnx.TensorProto
_MOST = 1 << 16  # most elements of a constant in a step


@dataclass(frozen=True)
class _Kind:
    """A value that steps can compute: its element type, and the source of its dims."""

    number: int
    dims: tuple[DimSource, ...]
    value: np.ndarray | None = None  # value of a constant


@dataclass
class _Found:
    """A node that steps can compute."""

    graph: onnx.GraphProto
    node: onnx.NodeProto
    step: TextStep
    makes: bool  # true: no program can compute it
    kinds: tuple[_Kind, ...]


def take_out(model: LoadedModel) -> TextPlan:
    """Replace operators from strings to strings or numbers by inputs of the graph.

    The operands of such a node must be computed from the graph's inputs by string operators and
    views alone; other nodes stay. Nodes of branches and loops are moved too.
    """
    if model.text_plan is None:
        model.text_plan = _Taker(model).plan()
    return model.text_plan


class _Taker:
    def __init__(self, model: LoadedModel) -> None:
        self.reader, self.graph = model.reader, model.proto.graph
        # nodes that steps can compute, by the name of each output
        self.found: dict[str, _Found] = {}
        self.constants: dict[str, TextStep] = {}
        self.names: set[str] = set()

    def plan(self) -> TextPlan:
        made = TextPlan()
        if not any(_makes(n) for g in _graphs(self.graph) for n in g.node):
            return made
        self.names = set(_names(self.graph))
        known = {i.name: k for i in self.graph.input if (k := _input_kind(i)) is not None}
        self._walk(self.graph, known, {n: n for n in known})
        wanted = [f for f in self.found.values() if f.makes]
        taken = list({id(f): f for f in self._with_sources(wanted)}.values())
        order = {name: i for i, name in enumerate(self.found)}
        taken.sort(key=lambda f: order[f.step.outputs[0]])
        read = {n for f in taken for n in f.step.inputs}
        made.steps = [s for n, s in self.constants.items() if n in read]
        made.steps += [f.step for f in taken]
        for f in reversed(taken):  # readers are removed first, if steps compute them too
            self._replace(f, made)
        return made

    def _walk(
        self, graph: onnx.GraphProto, outer: Mapping[str, _Kind], names: Mapping[str, str]
    ) -> None:
        """Find nodes that steps can compute, in a graph and its bodies; `names` are its values in
        steps.
        """
        known, called = dict(outer), dict(names)
        for own in (*(i.name for i in graph.input), *(o for n in graph.node for o in n.output)):
            if graph is not self.graph:
                known.pop(own, None)
        for t in graph.initializer:
            self._constant(t.name, t, known, called)
        try:
            order = [n for _, n in topological(graph.node, ())[0]]
        except ModelError:
            return  # the importer reports the error
        for node in order:
            for a in node.attribute:
                for body in (*([a.g] if a.HasField("g") else []), *a.graphs):
                    self._walk(body, known, called)
            if node.op_type == "Constant" and not node.domain:
                value = strings_of(list(node.attribute)) or next(
                    (a.t for a in node.attribute if a.name == "value"), None
                )
                if value is not None:
                    self._constant(node.output[0], value, known, called)
            elif all(not x or x in known for x in node.input) and any(node.input):
                self._node(graph, node, known, called)

    def _constant(
        self, name: str, t: onnx.TensorProto, known: dict[str, _Kind], called: dict[str, str]
    ) -> None:
        dims = tuple(t.dims)
        if int(np.prod(dims)) > _MOST:
            return
        try:
            if t.data_type == _T.STRING:
                value = np.array([s.decode() for s in t.string_data], object).reshape(dims)
            else:
                value = self.reader.read(t)
        except (MgxError, ValueError):
            return
        if value.dtype.kind not in "iufO":
            return
        known[name], called[name] = _Kind(t.data_type, dims, value), self._unique(name)
        words: dict[str, Any] = {
            "dtype": "string" if t.data_type == _T.STRING else value.dtype.name,
            "dims": list(dims), "values": value.reshape(-1).tolist(),
        }  # fmt: skip
        self.constants[called[name]] = TextStep("Constant", (), (called[name],), words)

    def _node(
        self,
        graph: onnx.GraphProto,
        node: onnx.NodeProto,
        known: dict[str, _Kind],
        called: dict[str, str],
    ) -> None:
        rule = _RULES.get((node.domain.replace("ai.onnx.ml", "ml"), node.op_type))
        if rule is None:
            return
        kinds: list[Any] = [known[x] if x else None for x in node.input]
        if all(k is None or k.value is not None for k in kinds):
            return  # constants are folded by the importer
        try:
            given = {a.name: value_of(a, self.reader) for a in node.attribute}
            found = rule(kinds, given)
        except (MgxError, ValueError, IndexError, KeyError, TypeError, AttributeError):
            return  # the importer reports the error
        if found is None:
            return
        made, attributes = found
        outputs = tuple(self._unique(o) for o in node.output[: len(made)] if o)
        if len(outputs) < len(made):
            return
        inputs = tuple(called[x] if x else "" for x in node.input)
        op = "Gather" if node.op_type == "ArrayFeatureExtractor" else node.op_type
        step = TextStep(op, inputs, outputs, attributes)
        makes = _makes(node) and (op != "Cast" or _T.STRING in (kinds[0].number, made[0].number))
        entry = _Found(graph, node, step, makes, tuple(made))
        for name, own, kind in zip(node.output, outputs, made, strict=False):
            known[name], called[name], self.found[own] = kind, own, entry

    def _with_sources(self, wanted: Sequence[_Found]) -> Iterator[_Found]:
        for f in wanted:
            sources = [self.found[n] for n in f.step.inputs if n in self.found]
            yield from self._with_sources(sources)
            yield f

    def _unique(self, name: str) -> str:
        made, n = f"{name}/text", 1
        while made in self.names:
            made, n = f"{name}/text{n}", n + 1
        self.names.add(made)
        return made

    def _replace(self, f: _Found, plan: TextPlan) -> None:
        """Replace used outputs of a node by inputs of the main graph.

        Views of strings that the graph reads stay there.
        """
        at = next(i for i, n in enumerate(f.graph.node) if n is f.node or n == f.node)
        made: list[onnx.NodeProto] = []
        read = {x for g in _graphs(self.graph) for n in g.node for x in n.input}
        read |= {o.name for g in _graphs(self.graph) for o in g.output}
        if not f.makes and not read.isdisjoint(f.node.output):
            return
        for name, own, kind in zip(f.node.output, f.step.outputs, f.kinds, strict=False):
            if name not in read:
                continue
            dims = [d if isinstance(d, int) else None for d in kind.dims]
            info = onnx.helper.make_tensor_value_info(own, kind.number, dims)
            self.graph.input.append(info)
            plan.inputs[own] = kind.dims
            made.append(onnx.helper.make_node("Identity", [own], [name], name=f.node.name))
        rest = list(f.graph.node)
        del f.graph.node[:]
        f.graph.node.extend([*rest[:at], *made, *rest[at + 1 :]])


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Return a graph and its bodies."""
    yield graph
    for node in graph.node:
        for a in node.attribute:
            for body in (*([a.g] if a.HasField("g") else []), *a.graphs):
                yield from _graphs(body)


def _names(graph: onnx.GraphProto) -> Iterator[str]:
    for g in _graphs(graph):
        yield from (i.name for i in (*g.input, *g.initializer))
        yield from (o for n in g.node for o in n.output)


def _input_kind(info: onnx.ValueInfoProto) -> _Kind | None:
    t = info.type.tensor_type
    if info.type.WhichOneof("value") != "tensor_type" or not t.HasField("shape"):
        return None
    return _Kind(t.elem_type, tuple((info.name, i) for i in range(len(t.shape.dim))))


def _makes(node: onnx.NodeProto) -> bool:
    """Return whether no program can compute a node that reads strings of a call."""
    if node.op_type == "TfIdfVectorizer":
        return any(a.name == "pool_strings" and a.strings for a in node.attribute)
    return (node.domain in ("", "ai.onnx") and node.op_type in _MAKERS) or (
        node.domain == "com.microsoft" and node.op_type == "Tokenizer"
    )


# ---- result kinds of each operator ---------------------------------------------------------------

_MAKERS = ("Cast", "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit")
Made = tuple[list[_Kind], dict[str, Any]]
Rule = Callable[[Sequence[Any], dict[str, Any]], Made | None]
_RULES: dict[tuple[str, str], Rule] = {}


def _rule(*names: str, domain: str = "") -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        _RULES.update({(domain, n): rule for n in names})
        return rule

    return register


def _ints(kind: _Kind | None, given: dict[str, Any], name: str) -> list[int] | None:
    """Return numbers of a constant operand, or of an attribute in older operator sets."""
    if kind is None:
        return given.get(name)
    if kind.value is None:
        raise ValueError
    return [int(n) for n in kind.value.reshape(-1)]


def _of_strings(kind: _Kind) -> None:
    if kind.number != _T.STRING:
        raise ValueError


@_rule("Identity")
def _identity(kinds: Sequence[Any], given: dict[str, Any]) -> Made:
    return [_Kind(kinds[0].number, kinds[0].dims)], {}


@_rule("Reshape")
def _reshape(kinds: Sequence[Any], given: dict[str, Any]) -> Made | None:
    if len(kinds) < 2:
        return None
    sizes, own = _ints(kinds[1], given, "shape") or [], kinds[0].dims
    zero = bool(given.get("allowzero", 0))
    dims: list[DimSource] = [
        None if d < 0 else own[i] if d == 0 and not zero else d for i, d in enumerate(sizes)
    ]
    whole = [d for d in own if d != 1]
    if dims.count(None) == 1 and len(whole) == 1 and all(d in (1, None) for d in dims):
        dims[dims.index(None)] = whole[0]
    return [_Kind(kinds[0].number, tuple(dims))], given


@_rule("Flatten")
def _flatten(kinds: Sequence[Any], given: dict[str, Any]) -> Made:
    axis = int(given.get("axis", 1))
    own = kinds[0].dims
    axis += len(own) if axis < 0 else 0

    def product(dims: Sequence[DimSource]) -> DimSource:
        dynamic_dims = [d for d in dims if not isinstance(d, int)]
        size = int(np.prod([d for d in dims if isinstance(d, int)], dtype=np.int64))
        if not dynamic_dims:
            return size
        return dynamic_dims[0] if len(dynamic_dims) == 1 and size == 1 else None

    return [_Kind(kinds[0].number, (product(own[:axis]), product(own[axis:])))], given


@_rule("Squeeze")
def _squeeze(kinds: Sequence[Any], given: dict[str, Any]) -> Made | None:
    if len(kinds) < 2 or kinds[1] is None:
        return None
    own = kinds[0].dims
    gone = {a % len(own) for a in _ints(kinds[1], given, "axes") or []}
    dims = tuple(d for i, d in enumerate(own) if i not in gone)
    return [_Kind(kinds[0].number, dims)], {}


@_rule("Unsqueeze")
def _unsqueeze(kinds: Sequence[Any], given: dict[str, Any]) -> Made | None:
    if len(kinds) < 2:
        return None
    axes = _ints(kinds[1], given, "axes") or []
    rank, own = len(kinds[0].dims) + len(axes), iter(kinds[0].dims)
    new = {a % rank for a in axes}
    dims = tuple(1 if i in new else next(own) for i in range(rank))
    return [_Kind(kinds[0].number, dims)], {}


@_rule("Gather")
def _gather(kinds: Sequence[Any], given: dict[str, Any]) -> Made:
    own, axis = kinds[0].dims, int(given.get("axis", 0))
    if kinds[1].value is None:
        raise ValueError
    axis += len(own) if axis < 0 else 0
    return [_Kind(kinds[0].number, (*own[:axis], *kinds[1].dims, *own[axis + 1 :]))], given


@_rule("ArrayFeatureExtractor", domain="ml")
def _extract(kinds: Sequence[Any], given: dict[str, Any]) -> Made:
    if kinds[1].value is None:
        raise ValueError
    own = kinds[0].dims if len(kinds[0].dims) > 1 else (1, *kinds[0].dims)
    if len(own) != len(kinds[0].dims):
        raise ValueError
    count = int(kinds[1].value.size)
    if len(kinds[1].dims) != 1:
        raise ValueError
    return [_Kind(kinds[0].number, (*own[:-1], count))], {"axis": -1}


@_rule("Concat")
def _concat(kinds: Sequence[Any], given: dict[str, Any]) -> Made:
    axis, own = int(given["axis"]), list(kinds[0].dims)
    along = [k.dims[axis] for k in kinds]
    own[axis] = sum(along) if all(isinstance(d, int) for d in along) else None
    return [_Kind(kinds[0].number, tuple(own))], given


@_rule("Transpose")
def _transpose(kinds: Sequence[Any], given: dict[str, Any]) -> Made:
    own = kinds[0].dims
    perm = given.get("perm") or list(range(len(own)))[::-1]
    return [_Kind(kinds[0].number, tuple(own[i] for i in perm))], given


@_rule("StringNormalizer")
def _string_normalizer(kinds: Sequence[Any], given: dict[str, Any]) -> Made:
    _of_strings(kinds[0])
    dims: tuple[DimSource, ...] = kinds[0].dims
    if given.get("stopwords"):
        dims = (*(1 for _ in dims[1:]), None)
    given.pop("locale", None)
    return [_Kind(_T.STRING, dims)], given


@_rule("StringConcat")
def _string_concat(kinds: Sequence[Any], given: dict[str, Any]) -> Made:
    for k in kinds:
        _of_strings(k)
    rank = max(len(k.dims) for k in kinds)
    rows = [(*[1] * (rank - len(k.dims)), *k.dims) for k in kinds]
    dims = tuple(
        a if a == b or b == 1 else b if a == 1 else None for a, b in zip(*rows, strict=True)
    )
    return [_Kind(_T.STRING, dims)], given


@_rule("StringSplit")
def _string_split(kinds: Sequence[Any], given: dict[str, Any]) -> Made:
    _of_strings(kinds[0])
    own = kinds[0].dims
    return [_Kind(_T.STRING, (*own, None)), _Kind(_T.INT64, own)], given


@_rule("RegexFullMatch")
def _regex(kinds: Sequence[Any], given: dict[str, Any]) -> Made:
    _of_strings(kinds[0])
    pattern(given["pattern"])
    return [_Kind(_T.BOOL, kinds[0].dims)], given


@_rule("Tokenizer", domain="com.microsoft")
def _tokenizer(kinds: Sequence[Any], given: dict[str, Any]) -> Made:
    _of_strings(kinds[0])
    for text in (given.get("tokenexp"), *(given.get("separators") or ())):
        pattern(text or "")
    given.pop("stopwords", None)
    return [_Kind(_T.STRING, (*kinds[0].dims, None))], given


@_rule("Cast")
def _cast(kinds: Sequence[Any], given: dict[str, Any]) -> Made:
    to = int(given["to"])
    name = "string" if to == _T.STRING else dtypes.from_onnx(to).np.name
    return [_Kind(to, kinds[0].dims)], {"to": name}


@_rule("TfIdfVectorizer")
def _tf_idf(kinds: Sequence[Any], given: dict[str, Any]) -> Made:
    _of_strings(kinds[0])
    own = kinds[0].dims
    total = _gram_count(given)
    indexes = given["ngram_indexes"]
    weights = given.get("weights")
    if len(indexes) != total or min(indexes, default=0) < 0 or len(own) > 2:
        raise ValueError
    if weights and len(weights) != total:
        raise ValueError
    if given["mode"] not in ("TF", "IDF", "TFIDF"):
        raise ValueError
    width = max(indexes, default=-1) + 1
    return [_Kind(_T.FLOAT, (*own[:-1], width))], given


def _gram_count(given: dict[str, Any]) -> int:
    ends = [*given["ngram_counts"], len(given["pool_strings"])]
    sizes = [b - a for a, b in itertools.pairwise(ends)]
    if any(n < 0 or n % size for size, n in enumerate(sizes, 1)):
        raise ValueError
    return sum(n // size for size, n in enumerate(sizes, 1))


__all__ = ["DimSource", "TextPlan", "take_out"]
