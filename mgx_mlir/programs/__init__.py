"""A program in the dialect: module, signature, layout, builder, reference interpreter.

No rewrite and no target belongs here.
"""
