"""Base of all packages: the bindings, the op class, dtypes, shapes, literals, errors and files.

Nothing here knows a program, a pass or a target.
"""
