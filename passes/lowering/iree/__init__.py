"""Forms that IREE needs: its ops, dispatch regions, buffer views, workarounds for its faults."""
