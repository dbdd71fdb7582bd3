"""Passes that are wrong on purpose; the fixture `broken_passes` registers them."""
