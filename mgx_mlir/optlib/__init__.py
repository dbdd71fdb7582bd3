"""The parts of mgx-opt: its command line, and its diagnostics."""
