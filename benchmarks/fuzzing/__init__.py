"""The fuzzer of graphs: generation, judgement, and reduction."""
