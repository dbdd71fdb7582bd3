"""Reading MIGraphX's own files: .mxr (msgpack) and JSON."""
