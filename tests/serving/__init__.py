"""Tests of the Open Inference Protocol, of Ray, and of bundles for Triton and MLServer."""
