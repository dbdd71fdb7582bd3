"""Tools that find what is wrong or slow: compare, blame, bisect and reduce programs, measure peaks.

Nothing here prints: the commands in `tools/` do.
"""
