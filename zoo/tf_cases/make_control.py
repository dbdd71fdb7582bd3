"""Writes data/control: graphs of loops and branches in every form, and what TensorFlow computes.

Needs TensorFlow (`pip install tensorflow-cpu`), in an environment of its own:

    python zoo/tf_cases/make_control.py [name ...]

Each function is written three times: as version 2 makes it, lowered to version 1's nodes, and as
version 1 makes it (with its TensorArrays).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf
from make_op_cases import write_npz
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

DATA = Path(__file__).resolve().parents[2] / "tests/frontends/tf/data/control"
CASES: dict[str, Callable[[Any], Any]] = {}


def case(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Register a function of a 3x4 f32 tensor, which may have branches of it as outputs."""
    CASES[f.__name__] = f
    return f


@case
def nested_loops(x):
    def inner(j, v):
        return j + 1, v + tf.cast(j, tf.float32) * x

    def outer(i, v):
        _, w = tf.while_loop(lambda j, _: j < i + 1, inner, [tf.constant(0), v])
        return i + 1, w * 0.5

    return tf.while_loop(lambda i, v: i < 4, outer, [tf.constant(0), x])[1]


@case
def nested_branches(x):
    s = tf.reduce_sum(x)

    def positive():
        return tf.cond(s > 100.0, lambda: (x * 3.0, s), lambda: (x * 2.0, -s))

    return tf.cond(s > 0.0, positive, lambda: (x - 1.0, s * 0.0 + 5.0))


@case
def branches_in_a_row(x):
    """The second branch needs what the first one gives, under the same condition."""
    p = tf.reduce_max(x) > 0.5
    y = tf.cond(p, lambda: x + 1.0, lambda: x - 1.0)
    z = tf.cond(p, lambda: y * 2.0, lambda: y * 3.0)
    return y, z


@case
def constants_of_branches(x):
    p = tf.reduce_max(x) > 100.0
    return tf.cond(p, lambda: tf.ones([2]), lambda: tf.fill([2], 7.0)) + x[0, 0]


@case
def branch_in_a_loop(x):
    def body(i, v):
        w = tf.cond(tf.equal(i % 2, 0), lambda: v + x, lambda: v * 0.5)
        return i + 1, w

    return tf.while_loop(lambda i, v: i < 5, body, [0, x])


@case
def loop_in_a_branch(x):
    def many():
        found = tf.while_loop(
            lambda i, v: tf.reduce_sum(v) < 50.0,
            lambda i, v: (i + 1, v + tf.abs(x) + 0.1),
            [0, x],
        )
        return tuple(found)

    return tf.cond(tf.reduce_sum(tf.abs(x)) > 1.0, many, lambda: (tf.constant(-1), x))


@case
def early_end(x):
    """A list of ten elements, of which the loop writes some."""
    array = tf.TensorArray(tf.float32, 10, element_shape=[4])

    def body(i, a, s):
        return i + 1, a.write(i, x[i % 3] * 2.0), s + tf.reduce_sum(tf.abs(x[i % 3]))

    i, array, s = tf.while_loop(lambda i, a, s: (i < 10) & (s < 8.0), body, [0, array, 0.0])
    return array.stack(), i, s


@case
def list_read_and_written(x):
    """Each element is made of the one before: the list is carried whole."""
    array = tf.TensorArray(tf.float32, 6, element_shape=[4], clear_after_read=False)
    array = array.write(0, x[0])

    def body(i, a):
        return i + 1, a.write(i, a.read(i - 1) * 0.5 + x[1])

    _, array = tf.while_loop(lambda i, a: i < 6, body, [1, array])
    return array.stack()


@case
def written_backwards(x):
    array = tf.TensorArray(tf.float32, 5, element_shape=[3, 4])

    def body(i, a):
        return i + 1, a.write(4 - i, x * tf.cast(i, tf.float32))

    return tf.while_loop(lambda i, a: i < 5, body, [0, array])[1].stack()


@case
def unstacked(x):
    array = tf.TensorArray(tf.float32, 3).unstack(x)
    out = tf.TensorArray(tf.float32, 3)

    def body(i, a, s):
        s = s * 0.5 + array.read(i)
        return i + 1, a.write(i, tf.nn.softmax(s)), s

    _, out, s = tf.while_loop(lambda i, a, s: i < 3, body, [0, out, tf.zeros([4])])
    return out.stack(), s, out.gather([2, 0]), tf.cast(out.size(), tf.float32)


@case
def mapped(x):
    return tf.map_fn(
        lambda r: (tf.reduce_sum(r), r[::-1]), x, fn_output_signature=(tf.float32,) * 2
    )


@case
def scanned(x):
    return tf.scan(lambda a, r: a * 0.5 + r, x), tf.foldl(lambda a, r: a + r, x)


@case
def no_iterations(x):
    return tf.while_loop(lambda i, v: i < 0, lambda i, v: (i + 1, v * 2.0), [0, x])[1]


@case
def counted_at_run_time(x):
    n = tf.cast(tf.reduce_max(x) * 3.0, tf.int32)
    found = tf.while_loop(
        lambda i, v: i < n, lambda i, v: (i + 1, v + 1.0), (0, x), maximum_iterations=20
    )
    return found[1], found[0]


@case
def growing(x):
    """The dims of what is carried change."""
    found = tf.while_loop(
        lambda i, v: i < 3,
        lambda i, v: (i + 1, tf.concat([v, x], 0)),
        [0, x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 4])],
    )
    return tf.reduce_sum(found[1], 0)


@case
def several_ways(x):
    i = tf.cast(tf.reduce_max(x) * 2.0, tf.int32) % 4
    return tf.switch_case(i, [lambda: x, lambda: x * 2.0, lambda: -x], default=lambda: x * x)


@case
def functions(x):
    @tf.function(autograph=False)
    def f(a, b):
        return a + b, a * b

    @tf.function(autograph=False)
    def g(a):
        u, v = f(a, a + 1.0)
        return f(u, v)[0]

    return g(x) + f(x, x)[1]


def arguments() -> list[np.ndarray]:
    random = np.random.RandomState(11)
    first = random.uniform(0.1, 1.5, (3, 4)).astype(np.float32)
    return [first, -first, (first - 0.8).astype(np.float32)]


def write(name: str) -> None:
    f = CASES[name]
    graphs: dict[str, tuple[Any, str, list[str]]] = {}
    spec = tf.TensorSpec((3, 4), tf.float32, name="x")
    call = tf.function(lambda x: tf.nest.flatten(f(x)), autograph=False)
    function = call.get_concrete_function(spec)
    for form, lowered in (("v2", False), ("lowered", True)):
        frozen = convert_variables_to_constants_v2(function, lower_control_flow=lowered)
        graphs[form] = (
            frozen.graph.as_graph_def(), frozen.inputs[0].op.name, [t.name for t in frozen.outputs]
        )  # fmt: skip
    v1 = tf.compat.v1
    v1.disable_control_flow_v2()
    try:
        if name != "functions":
            with tf.Graph().as_default() as graph:
                x = v1.placeholder(tf.float32, (3, 4), name="x")
                outputs = [tf.identity(t) for t in tf.nest.flatten(f(x))]
            graphs["v1"] = (graph.as_graph_def(), "x", [t.name for t in outputs])
    finally:
        v1.enable_control_flow_v2()
    xs = arguments()
    wanted = [[np.asarray(v) for v in function(tf.constant(x))] for x in xs]
    arrays: dict[str, np.ndarray] = {}
    meta = {}
    for form, (graph, argument, outputs) in graphs.items():
        for node in [*graph.node, *(n for fn in graph.library.function for n in fn.node_def)]:
            for key in [k for k in node.attr if k.startswith("_")]:
                del node.attr[key]
        data = graph.SerializeToString(deterministic=True)
        arrays[form] = np.frombuffer(data, np.uint8)
        meta[form] = {"input": argument, "outputs": outputs}
    for i, (x, ws) in enumerate(zip(xs, wanted, strict=True)):
        arrays[f"x{i}"] = x
        arrays |= {f"o{i}_{k}": w for k, w in enumerate(ws)}
    arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    DATA.mkdir(parents=True, exist_ok=True)
    write_npz(DATA / f"{name}.npz", arrays)
    print(name, (DATA / f"{name}.npz").stat().st_size, sorted(graphs))


if __name__ == "__main__":
    for wanted_name in sys.argv[1:] or CASES:
        write(wanted_name)
