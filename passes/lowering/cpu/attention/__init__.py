"""Attention on CPUs, as one kernel."""
