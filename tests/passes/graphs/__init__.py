"""Cases of the property test of the rewrites, one file for each pass (see pattern_graphs.py)."""
