"""A compiled program as a notebook shows it, and the names of the package."""

from __future__ import annotations

import html.parser

import mgx_mlir
from tests.support.models import parsed


def test_a_notebook_shows_ports_and_kernels() -> None:
    model = parsed("(float[2,3] x) => (float[2,3] y) { [a] b = Exp (x) [b] y = Softmax (b) }")
    program = mgx_mlir.compile(model.SerializeToString(), "cpu")
    text = program._repr_html_()
    assert "<tr><td>input</td><td>x</td><td>float_type {2, 3}</td></tr>" in text
    count = len(program.kernels)
    assert f"<summary>{count} kernel" in text
    assert all(k.name in text for k in program.kernels)
    assert mgx_mlir.compile(model.SerializeToString(), "ref")._repr_html_().startswith("<b>Comp")


def test_names_cannot_leave_their_cell() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Exp (x) }")
    model.graph.input[0].name = model.graph.node[0].input[0] = "<script>x</script>"
    text = mgx_mlir.compile(model.SerializeToString(), "ref")._repr_html_()
    tags = []
    found = html.parser.HTMLParser()
    found.handle_starttag = lambda tag, _: tags.append(tag)  # type: ignore[method-assign]
    found.feed(text)
    assert "script" not in tags
    assert "&lt;script&gt;" in text


def test_the_package_shows_its_own_names_alone() -> None:
    names = [n for n in dir(mgx_mlir) if not n.startswith("__")]
    assert set(names) == {*mgx_mlir.__all__, "torch"} - {"__version__"}
