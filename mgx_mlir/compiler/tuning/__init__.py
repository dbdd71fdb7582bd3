"""Searches over what a target can choose, the cost models that judge them, and what they found."""
