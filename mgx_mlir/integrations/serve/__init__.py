"""The server of `mgx-driver serve`: HTTP in one process, runs in others that can be ended."""
