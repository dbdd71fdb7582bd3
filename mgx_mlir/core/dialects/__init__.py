"""Modules of dialects that the bindings find ahead of their own, which take longer to import."""
