"""Forms that IREE asks for: its own ops, dispatch regions, buffer views, ways around its faults."""
