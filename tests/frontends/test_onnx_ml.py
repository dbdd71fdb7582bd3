"""ai.onnx.ml operators against onnxruntime, over their attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper, numpy_helper

import mgx_mlir
from tests.support.compare import agrees
from tests.support.models import ML, bytes_of, node

KINDS = {np.dtype(np.float32): T.FLOAT, np.dtype(np.float64): T.DOUBLE,
         np.dtype(np.int64): T.INT64, np.dtype(np.int32): T.INT32}  # fmt: skip


def compare_nodes(nodes, x, outputs, *, opset=3, rtol=1e-4, atol=1e-5):
    """Every output of a model of `nodes`, which all read `x`, is onnxruntime's."""
    results = {name: (kind, None) for name, kind in outputs}
    model = bytes_of(nodes, {"x": x}, results, opset=18, ml=opset)
    agrees(model, [{"x": x}], rtol=rtol, atol=atol)


def ml(op, name, **attributes):
    return helper.make_node(op, ["x"], [name], domain="ai.onnx.ml", **attributes)


def classifier(op, name, **attributes):
    out = [f"{name}_label", f"{name}_scores"]
    return helper.make_node(op, ["x"], out, domain="ai.onnx.ml", **attributes)


def random_forest(rng, trees, features, outputs, what, *, depth=3, modes=("BRANCH_LEQ",),
                  positive=False, only=None):  # fmt: skip
    """Attributes of random trees of which some stop early."""
    a = {f"nodes_{k}": [] for k in ("treeids", "nodeids", "featureids", "values", "modes",
                                    "truenodeids", "falsenodeids",
                                    "missing_value_tracks_true")}  # fmt: skip
    a |= {f"{what}_{k}": [] for k in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(trees):
        count = 0

        def grow(level, tree):
            nonlocal count
            number, count = count, count + 1
            row = len(a["nodes_treeids"])
            leaf = level == depth or (level and rng.random() < 0.2)
            values = {"treeids": tree, "nodeids": number,
                      "featureids": int(rng.integers(features)), "values": rng.integers(-4, 5) / 2,
                      "modes": "LEAF" if leaf else str(rng.choice(modes)), "truenodeids": 0,
                      "falsenodeids": 0,
                      "missing_value_tracks_true": int(rng.integers(2))}  # fmt: skip
            for key, value in values.items():
                a[f"nodes_{key}"].append(value)
            if leaf:
                for target in [only] if only is not None else range(outputs):
                    weight = float(rng.random()) / trees if positive else float(rng.normal())
                    a[f"{what}_treeids"].append(tree)
                    a[f"{what}_nodeids"].append(number)
                    a[f"{what}_ids"].append(target)
                    a[f"{what}_weights"].append(weight)
            else:
                a["nodes_truenodeids"][row] = grow(level + 1, tree)
                a["nodes_falsenodeids"][row] = grow(level + 1, tree)
            return number

        grow(0, tree)
    return a


def rows(rng, n=17, features=5, dtype=np.float32):
    x = rng.integers(-6, 7, (n, features)) / 2
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tree_regressors(dtype):
    rng = np.random.default_rng(1)
    x = rows(rng, dtype=dtype)
    x[::3, 1] = np.nan
    nodes = []
    modes = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
    for i, (how, transform) in enumerate(
        [
            ("SUM", "NONE"),
            ("AVERAGE", "NONE"),
            ("MIN", "NONE"),
            ("MAX", "NONE"),
            ("SUM", "LOGISTIC"),
        ]
    ):
        a = random_forest(rng, 4, 5, 3, "target", modes=modes[: 1 + 5 * (i % 2)])
        nodes.append(ml("TreeEnsembleRegressor", f"y{i}", n_targets=3, aggregate_function=how,
                        post_transform=transform, base_values=[0.5, 0.0, -1.0], **a))  # fmt: skip
    compare_nodes(nodes, x, [(f"y{i}", T.FLOAT) for i in range(len(nodes))])


def test_trees_that_compare_alike_and_a_dynamic_number_of_rows() -> None:
    rng = np.random.default_rng(5)
    modes = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
    nodes = [
        ml("TreeEnsembleRegressor", f"y{i}", n_targets=2,
           **random_forest(rng, 3 + i, 4, 2, "target", depth=1 + i, modes=(mode,)))
        for i, mode in enumerate(modes)
    ]  # fmt: skip
    outputs = {f"y{i}": ["n", 2] for i in range(len(modes))}
    model = bytes_of(nodes, {"x": ["n", 4]}, outputs, opset=18, ml=3)
    xs = [rows(rng, n, 4) for n in (33, 1, 0)]
    for x in xs:
        x[::3, 1] = np.nan
    program = agrees(model, ({"x": x} for x in xs), atol=1e-6)
    assert str(program.program.text()).count("tree_sums") == len(modes)


def test_trees_of_a_dynamic_number_of_features() -> None:
    rng = np.random.default_rng(6)
    trees = ml("TreeEnsembleRegressor", "y", n_targets=1, **random_forest(rng, 9, 4, 1, "target"))
    model = bytes_of([trees], {"x": ["n", "features"]}, {"y": ["n", 1]}, opset=18, ml=3)
    program = agrees(model, ({"x": rows(rng, 5, features)} for features in (4, 6)), atol=1e-6)
    with pytest.raises(mgx_mlir.MgxError, match="extent 4 along dim 1"):
        program.run({"x": rows(rng, 5, 2)})


def test_trees_of_one_class_each_and_sets_of_members() -> None:
    """Boosters write one tree for each class in sequence. onnxruntime takes whole members."""
    rng = np.random.default_rng(7)
    trees, outputs = 11, 3  # the last class has a tree less
    a = {"nodes_featureids": [], "nodes_truenodeids": [], "nodes_falsenodeids": []}
    modes, splits, members, targets = [], [], [], []
    for tree in range(trees):
        for mode in (6, 4 + tree % 2, 0):  # a node, its no; the last one has two leaves
            a["nodes_featureids"].append(int(rng.integers(0, 4)))
            here = len(modes)
            a["nodes_truenodeids"].append(len(targets))
            targets += [tree % outputs]
            a["nodes_falsenodeids"].append(here + 1 if mode else len(targets))
            targets += [] if mode else [tree % outputs]
            members += [*rng.integers(-3, 4, 3), np.nan] if mode == 6 else []
            modes.append(mode)
            splits.append(rng.integers(-6, 7) / 2)
    trained = node(
        "TreeEnsemble", "x", "y", domain=ML, n_targets=outputs, **a,
        tree_roots=list(range(0, 3 * trees, 3)), leaf_targetids=targets,
        nodes_trueleafs=[1] * len(modes), nodes_falseleafs=[int(m == 0) for m in modes],
        nodes_modes=numpy_helper.from_array(np.array(modes, np.uint8)),
        nodes_splits=numpy_helper.from_array(np.array(splits, np.float32)),
        leaf_weights=numpy_helper.from_array(rng.normal(size=len(targets)).astype(np.float32)),
        membership_values=numpy_helper.from_array(np.array(members, np.float32)),
    )  # fmt: skip
    ends = {"x": ["n", 4]}, {"y": ["n", outputs]}
    model = bytes_of([trained], *ends, opset=21, ir_version=10, **{ML: 5})
    x = np.round(rows(rng, 70, 4))  # onnxruntime takes 0.5 for a member where 0 is one
    x[::7, 1] = np.nan
    for target in ("ref", "cpu"):
        agrees(model, [{"x": x}], target, atol=1e-6)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
def test_tree_classifiers(transform):
    rng = np.random.default_rng(2)
    x = rows(rng)
    nodes = [
        classifier("TreeEnsembleClassifier", "many", classlabels_int64s=[3, 5, 9],
                   post_transform=transform, **random_forest(rng, 4, 5, 3, "class")),
        classifier("TreeEnsembleClassifier", "one", classlabels_int64s=[7, 2],
                   post_transform=transform, **random_forest(rng, 4, 5, 2, "class", only=0)),
        classifier("TreeEnsembleClassifier", "likely", classlabels_int64s=[7, 2],
                   post_transform=transform,
                   **random_forest(rng, 4, 5, 2, "class", only=0, positive=True)),
    ]  # fmt: skip
    outputs = [(f"{n}_{k}", t) for n in ("many", "one", "likely")
               for k, t in (("label", T.INT64), ("scores", T.FLOAT))]  # fmt: skip
    compare_nodes(nodes, x, outputs)


def test_linear_models():
    rng = np.random.default_rng(3)
    x, nodes, outputs = rows(rng), [], []
    for i, transform in enumerate(["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]):
        c = [float(v) for v in rng.normal(size=15)]
        nodes.append(ml("LinearRegressor", f"r{i}", coefficients=c, intercepts=[0.5, 1.0, -1.0],
                        targets=3, post_transform=transform))  # fmt: skip
        nodes.append(classifier("LinearClassifier", f"c{i}", coefficients=c,
                                intercepts=[0.5, 1.0, -1.0], classlabels_ints=[4, 2, 8],
                                post_transform=transform))  # fmt: skip
        nodes.append(classifier("LinearClassifier", f"b{i}", coefficients=c[:5],
                                intercepts=[0.5], classlabels_ints=[4, 2],
                                post_transform=transform))  # fmt: skip
        outputs += [(f"r{i}", T.FLOAT), (f"c{i}_label", T.INT64), (f"c{i}_scores", T.FLOAT),
                    (f"b{i}_label", T.INT64), (f"b{i}_scores", T.FLOAT)]  # fmt: skip
    compare_nodes(nodes, x, outputs)


@pytest.mark.parametrize("kernel", ["LINEAR", "RBF", "POLY", "SIGMOID"])
def test_support_vectors(kernel):
    rng = np.random.default_rng(4)
    x = rows(rng) / 4
    vectors = [float(v) for v in rng.normal(size=35)]
    shared = {"kernel_type": kernel, "kernel_params": [0.25, 0.5, 3.0], "support_vectors": vectors}
    c = [float(v) for v in rng.normal(size=14)]
    nodes = [
        ml("SVMRegressor", "r", coefficients=c[:7], n_supports=7, rho=[0.25], **shared),
        ml("SVMRegressor", "o", coefficients=c[:7], n_supports=7, rho=[0.25], one_class=1,
           **shared),
        classifier("SVMClassifier", "c", coefficients=c, vectors_per_class=[2, 3, 2],
                   classlabels_ints=[4, 2, 8], rho=[0.1, -0.2, 0.3], **shared),
        classifier("SVMClassifier", "b", coefficients=c[:7], vectors_per_class=[3, 4],
                   classlabels_ints=[4, 2], rho=[0.1], **shared),
    ]  # fmt: skip
    outputs = [("r", T.FLOAT), ("o", T.FLOAT)]
    outputs += [(f"{n}_{k}", t) for n in "cb"
                for k, t in (("label", T.INT64), ("scores", T.FLOAT))]  # fmt: skip
    compare_nodes(nodes, x, outputs)
    if kernel in ("POLY", "SIGMOID"):
        return  # probabilities are computed from the same sums, whatever the kernel
    nodes = [
        classifier("SVMClassifier", "p", coefficients=c[:7], vectors_per_class=[3, 4],
                   classlabels_ints=[4, 2], rho=[0.1], prob_a=[-1.5], prob_b=[0.2], **shared),
        classifier("SVMClassifier", "q", coefficients=c, vectors_per_class=[2, 3, 2],
                   classlabels_ints=[4, 2, 8], rho=[0.1, -0.2, 0.3], prob_a=[-1.5, -0.7, -2.0],
                   prob_b=[0.2, -0.1, 0.0], **shared),
    ]  # fmt: skip
    outputs = [(f"{n}_{k}", t) for n in "pq" for k, t in (("label", T.INT64), ("scores", T.FLOAT))]
    compare_nodes(nodes, x, outputs)


def test_support_vectors_far_from_zero():
    """Squares of 1000 have no digits left for distances of 1; an infinite row is at no vector."""
    rng = np.random.default_rng(14)
    x = rows(rng) / 4 + np.float32(1000)
    x[1, 2] = np.inf
    vectors = [float(v) for v in rng.normal(size=35) + 1000]
    node = ml("SVMRegressor", "r", kernel_type="RBF", kernel_params=[0.25, 0.0, 3.0],
              support_vectors=vectors, coefficients=[float(v) for v in rng.normal(size=7)],
              n_supports=7, rho=[0.25])  # fmt: skip
    compare_nodes([node], x, [("r", T.FLOAT)])


def test_features():
    rng = np.random.default_rng(5)
    x = rows(rng)
    x[2] = 0
    nodes = [
        ml("Scaler", "s", offset=[0.5, 1.0, 2.0, 0.0, -1.0], scale=[2.0, 1.0, 0.5, 1.0, 3.0]),
        ml("Scaler", "s1", offset=[0.5], scale=[2.0]),
        *[ml("Normalizer", f"n{k}", norm=k) for k in ("L1", "L2")],
        ml("Imputer", "i", imputed_value_floats=[1.0, 2.0, 3.0, 4.0, 5.0],
           replaced_value_float=1.5),
        ml("Binarizer", "b", threshold=0.5),
        ml("LabelEncoder", "l", keys_floats=[0.5, -1.0, 2.5, 0.0],
           values_int64s=[5, 6, 7, 8], default_int64=-9),
    ]  # fmt: skip
    outputs = [(n.output[0], T.INT64 if n.op_type == "LabelEncoder" else T.FLOAT) for n in nodes]
    compare_nodes(nodes, x, outputs)


def test_features_of_integers():
    rng = np.random.default_rng(6)
    x = rng.integers(-3, 4, (6, 4)).astype(np.int64)
    nodes = [
        ml("OneHotEncoder", "o", cats_int64s=[2, -1, 3], zeros=1),
        ml("Imputer", "i", imputed_value_int64s=[10, 20, 30, 40], replaced_value_int64=2),
        ml("LabelEncoder", "l", keys_int64s=[3, -2, 0], values_floats=[0.5, 1.5, 2.5],
           default_float=-1.0),
        ml("LabelEncoder", "far", keys_int64s=[3, -2, 10**9, 3], values_int64s=[5, 6, 7, 8]),
        ml("LabelEncoder", "twice", keys_int64s=[3, 0, 3, 0], values_int64s=[5, 6, 7, 8]),
    ]  # fmt: skip
    outputs = [("o", T.FLOAT), ("i", T.INT64), ("l", T.FLOAT), ("far", T.INT64),
               ("twice", T.INT64)]  # fmt: skip
    compare_nodes(nodes, x, outputs)


def test_keys_that_lie_close_are_places_of_a_table() -> None:
    """Launches by the bits of the number of keys were most of a small net of strings."""
    table = node("LabelEncoder", "x", "y", domain=ML, keys_int64s=[7, *range(100)],
                 values_int64s=range(101), default_int64=-5)  # fmt: skip
    model = bytes_of([table], {"x": (T.INT64, [5])}, {"y": (T.INT64, [5])}, ml=3)
    ends = np.iinfo(np.int64)
    program: Any = mgx_mlir.compile(model, target="cpu")
    found = program.run({"x": np.array([ends.min, -1, 7, 99, ends.max])})[0]
    assert found.tolist() == [-5, -5, 0, 100, -5]  # the first of two keys 7
    assert len(program.kernels) <= 3


def test_one_hot_of_several_columns_and_a_dynamic_batch() -> None:
    """Extents that come from different operands need no sizes of the run: such a broadcast read
    elements one by one, of slices, and iree-compile failed on it."""
    nodes, held = [], {}
    for i, n in enumerate((3, 4, 5)):
        held[f"i{i}"] = np.array([i])
        nodes += [
            node("Gather", f"x i{i}", f"c{i}", axis=1),
            node("OneHotEncoder", f"c{i}", f"o{i}", domain=ML, cats_int64s=list(range(n))),
        ]
    nodes.append(node("Concat", "o0 o1 o2", "y", axis=2))
    data = bytes_of(nodes, {"x": (T.INT64, ["n", 3])}, {"y": ["n", 1, 12]}, held, ml=1)
    calls = ({"x": np.array(x)} for x in ([[0, 1, 2], [2, 3, 4], [1, 9, 0]], [[2, 0, 1]]))
    agrees(data, calls, rtol=0, atol=0)
