"""The pattern base: order, counting, reasons, locations, and the mistakes it must catch."""

import pytest

from mgx_mlir.core.errors import PassError
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.rewrite.pattern import (
    MatchTrace,
    Pattern,
    PatternSet,
    count,
    disabled,
    has_one_use,
    no_match,
    observing,
    pattern,
    rule,
    users,
)

MODULE = """
func.func @f(%a: f32, %b: f32) -> f32 {
  %0 = arith.subf %a, %b : f32 loc("first")
  %1 = arith.negf %0 : f32 loc("second")
  %2 = arith.negf %1 : f32 loc("third")
  return %2 : f32
}
"""


def parse(text=MODULE):
    return ir.Module.parse(text, ir.Context())


def make(function, *roots, benefit=1):
    return Pattern(function.__name__, roots, benefit, function)


def double_neg(op, rw):
    """neg(neg(x)) -> x"""
    inner = rw.defining(op.operands[0])
    if inner is None or inner.operation.name != "arith.negf":
        return no_match("{} is not a neg", op.operands[0].type)
    return inner.operands[0]


def test_applies_and_counts():
    m = parse()
    with observing() as seen:
        assert PatternSet([make(double_neg, "arith.negf")]).apply(m) == 1
    assert seen.counts == {"double_neg": 1}
    assert "negf" not in str(m)
    assert m.operation.verify()


def test_skips_a_module_without_its_roots():
    def never(op, rw):
        raise AssertionError

    assert PatternSet([make(never, "arith.mulf")]).apply(parse()) == 0


def test_higher_benefit_first_then_order():
    tried = []

    def note(name):
        def f(op, rw):
            tried.append(name)
            return no_match("only looking")

        f.__name__ = name
        return f

    a, b, c = (note(n) for n in "abc")
    patterns = [make(a, "arith.subf"), make(b, "arith.subf"), make(c, "arith.subf", benefit=2)]
    PatternSet(patterns).apply(parse())
    assert tried[:3] == ["c", "a", "b"]


def test_trace_gives_the_reason():
    trace = MatchTrace(frozenset({"double_neg"}))
    with observing(trace):
        PatternSet([make(double_neg, "arith.negf")]).apply(parse())
    outcomes = [(where, what) for _, where, what, _ in trace.attempts]
    assert ("third", "applied") in outcomes
    assert ("second", "f32 is not a neg") in outcomes


def test_a_pattern_that_is_off_does_nothing():
    def to_exp(op, rw):
        """neg(x) -> x"""
        return op.operands[0]

    both = PatternSet([make(double_neg, "arith.negf", benefit=2), make(to_exp, "arith.negf")])
    with observing() as seen, disabled(["double_neg"]):
        assert both.apply(parse()) == 2
    assert seen.counts == {"to_exp": 2}
    with disabled(["double_neg"]), disabled(["to_exp"]):
        assert both.apply(parse()) == 0
    assert PatternSet([make(double_neg, "arith.negf")]).apply(parse()) == 1


def test_rules_of_plain_passes_are_switched_counted_and_traced(monkeypatch):
    monkeypatch.setattr("mgx_mlir.rewrite.pattern.RULES", {})
    mine = rule("mine", "a -> b")
    with pytest.raises(TypeError, match="defined twice"):
        rule("mine", "a -> b")
    with disabled(["mine"]):
        assert not mine.enabled
    assert mine.enabled
    trace = MatchTrace(frozenset({"mine"}))
    m = parse()
    op = m.body.operations[0].regions[0].blocks[0].operations[0]
    with m.context, observing(trace) as seen, observing(trace):
        mine.refused(op, "{} of {}", 1, 2)
        mine.applied(op, times=3)
        count("other", op)
    assert seen.counts == {"mine": 3, "other": 1}
    text = "arith.subf {fastmath = #arith.fastmath<none>} : (f32, f32) -> (f32)"
    assert [a[1:] for a in trace.attempts] == [
        ("first", "1 of 2", text),
        ("first", "applied", text),
    ]


def test_new_ops_carry_the_locations_of_what_they_replace():
    def swap(op, rw):
        """neg(sub(a, b)) -> sub(b, a)"""
        inner = rw.defining(op.operands[0])
        if inner is None or inner.operation.name != "arith.subf":
            return no_match("not a sub")
        return arith.SubFOp(inner.operands[1], inner.operands[0])

    m = parse()
    PatternSet([make(swap, "arith.negf")]).apply(m)
    sub = m.body.operations[0].regions[0].blocks[0].operations[0]
    assert str(sub.location) == 'loc(fused["third", "second", "first"])'


def test_updated_in_place():
    def mark(op, rw):
        """neg -> neg {seen}"""
        if "seen" in op.attributes:
            return no_match("seen")
        op.attributes["seen"] = ir.UnitAttr.get()
        return rw.updated()

    m = parse()
    assert PatternSet([make(mark, "arith.negf")]).apply(m) == 2
    assert str(m).count("seen") == 2


def test_a_long_chain_of_new_candidates_is_rewritten_to_its_end():
    body = "\n".join(f"  %{i} = arith.negf %{i - 1 if i else 'a'} : f32" for i in range(101))
    m = parse(f"func.func @f(%a: f32) -> f32 {{\n{body}\n  return %100 : f32\n}}")
    assert PatternSet([make(double_neg, "arith.negf")]).apply(m) == 50
    assert str(m).count("negf") == 1


def test_patterns_that_never_end_are_stopped_and_named():
    def ping(op, rw):
        """neg(x) -> neg(x)"""
        return arith.NegFOp(op.operands[0])

    with pytest.raises(PassError, match="patterns do not end: stopped after") as e:
        PatternSet([make(ping, "arith.negf")]).apply(parse())
    assert "ping (100)" in e.value.notes[0]


def test_max_iterations_stops_without_an_error():
    def step(op, rw):
        """neg {n} -> neg {n + 1}"""
        n = ir.IntegerAttr(op.attributes["n"]).value if "n" in op.attributes else 0
        if n == 50:
            return no_match("done")
        op.attributes["n"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), n + 1)
        return rw.updated()

    m = parse()
    assert 1 < PatternSet([make(step, "arith.negf")]).apply(m, max_iterations=2) < 20
    assert PatternSet([make(step, "arith.negf")]).apply(m) > 60
    assert str(m).count("n = 50") == 2


def test_a_replacement_of_another_type_is_refused():
    def widen(op, rw):
        """neg(x) -> ext(x)"""
        return arith.ExtFOp(ir.F64Type.get(), op.operands[0])

    with pytest.raises(PassError, match=r"'widen' changes the type of 'arith.negf': f32 -> f64"):
        PatternSet([make(widen, "arith.negf")]).apply(parse())


def test_replacing_an_op_by_itself_is_refused():
    def itself(op, rw):
        """neg(x) -> neg(x)"""
        return op.result

    with pytest.raises(PassError, match=r"'itself' replaces 'arith.negf' by itself"):
        PatternSet([make(itself, "arith.negf")]).apply(parse())


def test_an_exception_names_the_pattern_and_the_place():
    def broken(op, rw):
        """neg(x) -> x"""
        return {}["x"]

    with pytest.raises(PassError, match="pattern 'broken' failed: KeyError: 'x'") as e:
        PatternSet([make(broken, "arith.negf")]).apply(parse())
    assert e.value.location in ("second", "third")


def test_registering_asks_for_a_docstring():
    with pytest.raises(TypeError, match="before -> after"):

        @pattern("arith.negf")
        def undocumented(op, rw):
            return None


def test_uses():
    m = parse()
    with m.context:
        block = m.body.operations[0].regions[0].blocks[0]
        first = block.operations[0]
        assert has_one_use(first.result)
        assert [u.operation.name for u in users(first.result)] == ["arith.negf"]
        assert not has_one_use(block.operations[2].result) or len(users(first.result)) == 1


def test_what_a_failed_match_built_is_taken_back():
    """Without that the driver sees a change in every sweep and never ends."""
    from mgx_mlir import dialects
    from mgx_mlir.core.context import new_context

    def builds_then_gives_up(op, rw):
        rw.op("neg", rw.op("reshape", op.input, dims=[6]))
        rw.literal([1.0, 2.0])
        return no_match("the operand does not fit after all")

    dialects.load()
    text = """
    func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %0 = "migraphx.relu"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
      return %0 : tensor<2x3xf32>
    }"""
    ctx = new_context()
    with ctx:
        m = ir.Module.parse(text, ctx)
        assert PatternSet([make(builds_then_gives_up, "migraphx.relu")]).apply(m) == 0
        assert [op.name for op in m.body.operations[0].regions[0].blocks[0]] == [
            "migraphx.relu",
            "func.return",
        ]
