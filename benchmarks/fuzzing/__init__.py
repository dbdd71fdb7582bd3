"""The fuzzer of graphs: what draws them, what judges them, and what makes them small."""
