"""Printers: a program as text, JSON, Python, C++ or a graph."""
