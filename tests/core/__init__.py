"""Tests of the core that belong to no op, pass or frontend."""
