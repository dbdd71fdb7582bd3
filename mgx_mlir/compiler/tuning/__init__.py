"""Searches over a target's tunable choices, their cost models, and the file of their results."""
