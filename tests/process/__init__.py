"""Threads, processes and surroundings: what may not end, block or mislead a process."""
