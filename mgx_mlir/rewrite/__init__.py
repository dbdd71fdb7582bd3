"""The pattern engine: patterns, passes, pipelines, their registry, switches, traces and reports.

The passes themselves are in `passes/`.
"""
