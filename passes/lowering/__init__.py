"""Lower a fused program to linalg: ops in `ops/`, by target in `cpu/` and `gpu/`.

`iree/` has the forms that IREE asks for. A pass does not belong here.
"""
