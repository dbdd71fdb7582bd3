"""Recurrent networks on CPUs: all steps of a sequence in one kernel."""
