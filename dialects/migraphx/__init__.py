"""migraphx."""
