"""Searches over what a target can choose, their cost models, and what they found."""
