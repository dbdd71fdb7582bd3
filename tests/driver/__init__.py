"""Tests of mgx-driver, run in this process."""
