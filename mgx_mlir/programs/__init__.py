"""A program as the compiler holds it: its module, signature, layout, builder and reference interpreter.

No rewrite and no target belongs here.
"""
