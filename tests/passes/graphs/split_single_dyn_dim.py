"""Random programs for split_single_dyn_dim."""

from pattern_graphs import case

from mgx_mlir.core.ir import ir


@case("split_single_dyn_dim", rtol=1e-6)
def split_single_dyn_dim(g):
    """One extent of a known range, of one symbol; in other draws two, or no range."""
    k = g.random.randint(1, 4)
    x = g.argument(("n", k))
    bound = "" if g.coin(0.15) else ", max = 5"
    dims = [f'{{min = 1{bound}, symbol = "n"}}, {k}']
    found = g.b.op("dot", x, g.constant((k, 3)))
    if g.coin():
        other = "m" if g.coin(0.3) else "n"
        y = g.argument((3, other))
        dims.append(f'3, {{min = 1, max = 5, symbol = "{other}"}}')
        if other == "n":
            found = g.b.op("mul", found, g.b.op("transpose", y, permutation=[1, 0]))
        else:
            found = g.b.op("dot", found, y)
    found = g.b.op("reduce_sum", g.b.op("relu", found), axes=[g.pick(0, 1)])
    dicts = ", ".join(f"{{migraphx.dims = [{d}]}}" for d in dims)
    g.module.body.operations[0].attributes["arg_attrs"] = ir.Attribute.parse(f"[{dicts}]")
    return [found, g.b.op("dimensions_of", x, start=0, end=2)]
