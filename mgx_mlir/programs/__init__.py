"""A program as the compiler holds it: module, signature, layout, builder, reference interpreter.

No rewrite and no target belongs here.
"""
