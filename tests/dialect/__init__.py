"""Tests of the operator classes: types, references, scalar forms."""
