"""Attention on GPUs: fixed and dynamic lengths, many queries or one."""
