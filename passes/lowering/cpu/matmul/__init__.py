"""Matmuls on CPUs: f32, bf16 pairs, bytes and packed few-bit weights."""
