"""The Python API: MIGraphX's names, and compile() as the short way."""
