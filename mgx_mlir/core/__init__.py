"""Base of all packages: the bindings, the op class, dtypes, shapes, literals, errors and files.

Nothing here depends on programs, passes or targets.
"""
